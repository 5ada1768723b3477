"""From a stored release back to what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from farthing.errors import InvalidData
from farthing.inference.answers import Asking
from farthing.release.ranging.asking import restored_ranges

_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Asking]] = {"ranges": restored_ranges}


def restored_asking(form: Mapping[str, Any]) -> Asking:
    """The questions that a stored answer can be asked."""
    if form.get("kind") not in _KINDS:
        raise InvalidData("stored answer", "is of a kind that this farthing does not know", "use a newer one")
    return _KINDS[form["kind"]](form)
