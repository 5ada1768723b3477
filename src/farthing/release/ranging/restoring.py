"""From a stored release back to what can be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.errors import InvalidData
from farthing.inference.answers import Asking
from farthing.release.ranging.asking import restored_ranges
from farthing.release.ranging.marginal_asking import restored_marginals


def restored_asking(form: Mapping[str, Any], centre: Any = None, shown: Any = None) -> Asking:
    """The questions of a stored answer; `centre` is what its intervals lie around, `shown` its values."""
    if form.get("kind") == "ranges":
        return restored_ranges(form, shown)
    if form.get("kind") == "marginals":
        return restored_marginals(form, centre)
    raise InvalidData("stored answer", "is of a kind that this farthing does not know", "use a newer one")
