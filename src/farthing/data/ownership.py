"""Whose the rows of a table are, as a dataset declares it: by columns that name a unit, or the row of another table.

A ledger writes this down for every table that it pays for, because the charges of an account add up for one meaning of
"the rows of a person" (`linked_rows.rows_of_one_unit`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.data.view_columns import stored_column

if TYPE_CHECKING:
    from farthing.data.sources import Source


@dataclass(frozen=True)
class Ownership:
    """How the rows of `source` say whose they are.

    Args:
        source: The table.
        columns: The columns that name the unit, or a row of another table; none where a unit is one row.
        parent: The table whose rows they name; None where they name the unit itself.
        target: The column of that table in which the name stands.
        place: What the table is called among linked ones.
    """

    source: Source
    columns: tuple[str, ...]
    parent: Source | None = None
    target: str = ""
    place: str = ""

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """The columns as the table itself calls them, whatever a view does."""
        return tuple(stored_column(self.source, column) for column in self.columns)

    @property
    def stored_target(self) -> str:
        """The column of the parent as that table calls it."""
        return stored_column(self.parent, self.target) if self.parent is not None else ""

    def __str__(self) -> str:
        return owner_words(self.columns, self.target, self.parent.name if self.parent is not None else "")


def owner_words(columns: Iterable[str], target: str = "", parent: str = "") -> str:
    """How rows say whose they are, in words.

    >>> owner_words(["sender"]), owner_words(["visit_id"], "id", "visits.csv"), owner_words([])
    ('by sender', 'by visit_id, which leads to id of visits.csv', 'each row by itself')
    """
    named = " + ".join(columns)
    leads = f", which leads to {target} of {parent}" if parent else ""
    return f"by {named}{leads}" if named else "each row by itself"
