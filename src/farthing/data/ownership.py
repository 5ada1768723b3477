"""Whose the rows of a table are, as a dataset declares it: by columns that name a unit, or the row of another table.

A ledger writes this down for every table that it pays for, because the charges of an account add up for one meaning of
"the rows of a person" (`linked_rows.rows_of_one_unit`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.data.table_identity import pieces_of
from farthing.data.view_columns import stored_column
from farthing.errors import InvalidValue

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


def refuse_two_owners(owners: Iterable[Ownership]) -> None:
    """Refuse one table whose rows would be somebody's by one column, and somebody else's by another."""
    several, seen = list(owners), dict[str, Ownership]()
    for each in several if len(several) > 1 else ():
        for text in _texts_of(each.source):
            other = seen.setdefault(text, each)
            if other is not each and not _is_same(other, each):
                raise InvalidValue(
                    "keys",
                    f"{each.place or each.source.name} {each}",
                    f"must be one way to the owner of a row, and rows of the same table are also owned {other}",
                    "keep the key to the person whom the rows are about; rows of two people can be protected for one "
                    "of them only",
                )


def _is_same(one: Ownership, other: Ownership) -> bool:
    """Whether two declarations give every row of a table the same owner, given that of the parent's rows."""
    if one.stored_columns != other.stored_columns or (one.parent is None) != (other.parent is None):
        return False
    if one.parent is None or other.parent is None:
        return True
    return one.stored_target == other.stored_target and _texts_of(one.parent) == _texts_of(other.parent)


def _texts_of(source: Source) -> set[str]:
    """What a table is known by in this process."""
    texts = {text for piece in pieces_of(source) for text in piece.known_by}
    if source.frame is not None:
        texts.add(f"this {id(source.frame)}")
    return texts or {f"named {source.name} in {id(source.engine)}"}
