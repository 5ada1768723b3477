"""Columns that a design derives before anything is added up: each expression once, under a name nobody has."""

from __future__ import annotations

from typing import Any

from farthing.data import Schema
from farthing.data.schema import folded


class DerivedColumns:
    """What to derive so far, by name. The same expression with the same bounds gets the same name.

    Names are short: Postgres cuts one after 63 letters.

    >>> columns = DerivedColumns(Schema.read({"moment_1": (0, 9)}), "moment")
    >>> columns.named(("moment_1 - 5", (-5, 5))), columns.named(("moment_1 - 5", (-5, 5)))
    ('moment_2', 'moment_2')
    >>> columns.found
    {'moment_2': ('moment_1 - 5', (-5, 5))}
    """

    def __init__(self, schema: Schema, stem: str) -> None:
        self._taken = {folded(name) for name in schema}
        self._stem, self._number = stem, 0
        self._names: dict[Any, str] = {}
        self.found: dict[str, Any] = {}

    def named(self, derived: tuple[str, tuple[int, int]]) -> str:
        """The name under which an expression with its bounds is derived."""
        if derived not in self._names:
            self._names[derived] = name = self._fresh()
            self.found[name] = derived
        return self._names[derived]

    def _fresh(self) -> str:
        while True:
            self._number += 1
            name = f"{self._stem}_{self._number}"
            if folded(name) not in self._taken:
                return name
