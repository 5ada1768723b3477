"""Two ways to the owner of the same rows in one declaration: refused, because a row is protected for one person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from farthing.data.ownership import Ownership
from farthing.data.table_identity import pieces_of
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.data.sources import Source


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
    if sorted(one.stored_columns) != sorted(other.stored_columns) or (one.parent is None) != (other.parent is None):
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
