"""Two ways to the owner of the same rows in one declaration: refused, because a row is protected for one person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from farthing.data.ownership import Ownership
from farthing.data.table_identity import pieces_of
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.data.sources import Source


def refuse_two_owners(owners: Iterable[Ownership]) -> None:
    """Refuse one table whose rows would be somebody's by one column, and somebody else's by another."""
    several = list(owners)
    texts = [_texts_of(each.source) for each in several] if len(several) > 1 else []
    for place in range(1, len(texts)):
        for before in range(place):
            each, other = several[place], several[before]
            if _meet(texts[place], texts[before]) and not _is_same(other, each):
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


class _Texts(NamedTuple):
    """What a table is known by in this process, and which of these texts stand for it and nothing else.

    A table of Spark is also known by the folders that it lies in, which it shares with others.
    """

    known_by: set[str]
    own: set[str]


def _texts_of(source: Source) -> _Texts:
    pieces = pieces_of(source)
    known_by = {text for piece in pieces for text in piece.known_by}
    own = {text for piece in pieces for text in piece.kept if isinstance(text, str)}
    alone = {f"this {id(source.frame)}"} if source.frame is not None else set[str]()
    if not known_by | alone:
        alone = {f"named {source.name} in {id(source.engine)}"}
    return _Texts(known_by | alone, own | alone)


def _meet(one: _Texts, other: _Texts) -> bool:
    """Whether they may have rows in common: one is the other, or lies in it."""
    return bool(one.own & other.known_by or other.own & one.known_by)
