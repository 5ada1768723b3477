"""Every exception farthing raises on purpose.

    FarthingError
    ├── InvalidValue      (also ValueError)   an argument breaks its rule
    └── BudgetExceeded                        a filter or ledger refused a charge

Messages state the value, the rule and the way out. They never hold a private row or anything computed
from one. The same facts are on the exception as fields, so that nobody has to parse text.
"""

from __future__ import annotations


class FarthingError(Exception):
    """The root of the tree: catch this to catch everything farthing refuses."""


class InvalidValue(FarthingError, ValueError):
    """An argument breaks its rule: `name=value: rule; way out.`"""

    def __init__(self, name: str, value: object, rule: str, way_out: str = "") -> None:
        self.name = name
        self.value = value
        self.rule = rule
        self.way_out = way_out
        tail = f"; {way_out}" if way_out else ""
        super().__init__(f"{name}={_shown(value)}: {rule}{tail}.")


class BudgetExceeded(FarthingError):
    """A charge was refused because it does not fit into what is left; nothing was changed."""

    def __init__(self, message: str, *, requested: object, remaining: object) -> None:
        self.requested = requested
        self.remaining = remaining
        super().__init__(message)


def _shown(value: object) -> str:
    """A short repr: long inputs are cut so that a message stays one line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
