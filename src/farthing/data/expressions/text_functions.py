"""Functions of text, computed in Python over the public categories and never by an engine over cells."""

from __future__ import annotations

import operator
import re

from farthing.data.expressions.syntax_tree import CONSTANT, Meaning, meaning
from farthing.data.expressions.value_ranges import Flag, Label, Range, Whole

_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def changed(part: Meaning, function: str) -> Meaning:
    """lower, upper or length of every category."""
    assert isinstance(part.range, Label)
    if function == "length":
        lengths = tuple((value, len(value)) for value in part.range.values)
        sizes = [size for _, size in lengths]
        return table(part, lengths, Whole(min(sizes), max(sizes)))
    change = str.lower if function == "lower" else str.upper
    pairs = tuple((value, change(value)) for value in part.range.values)
    return table(part, pairs, Label(tuple(dict.fromkeys(new for _, new in pairs))))


def compared(part: Meaning, symbol: str, other: str) -> Meaning:
    """Every category beside `other`, by code point."""
    assert isinstance(part.range, Label)
    pairs = tuple((value, bool(_COMPARED[symbol](value, other))) for value in part.range.values)
    return table(part, pairs, Flag())


def pattern_match(part: Meaning, pattern: str) -> Meaning:
    """Every category against a pattern of %, _ and plain characters."""
    assert isinstance(part.range, Label)
    pairs = tuple((value, matches(value, pattern)) for value in part.range.values)
    return table(part, pairs, Flag())


def table(part: Meaning, pairs: tuple[tuple[object, object], ...], values: Range) -> Meaning:
    """A function of a public list, written out."""
    if part.operator == CONSTANT:
        return meaning(CONSTANT, (), values, dict(pairs).get(part.value))
    return meaning("table", (part,), values, pairs)


def matches(value: str, pattern: str) -> bool:
    """LIKE without escapes, in time proportional to the product of the lengths.

    >>> matches("north west", "north%"), matches("north", "_orth"), matches("south", "north%")
    (True, True, False)
    """
    pieces = re.split("%+", pattern)
    if len(pieces) == 1:
        return _fits(value, 0, pattern) and len(value) == len(pattern)
    first, *middle, last = pieces
    if len(value) < len(first) + len(last) or not _fits(value, 0, first):
        return False
    at, end = len(first), len(value) - len(last)
    if not _fits(value, end, last):
        return False
    for piece in middle:  # the leftmost place is always as good as any other
        while at + len(piece) <= end and not _fits(value, at, piece):
            at += 1
        if at + len(piece) > end:
            return False
        at += len(piece)
    return True


def _fits(value: str, at: int, piece: str) -> bool:
    window = value[at : at + len(piece)]
    return len(window) == len(piece) and all(p in ("_", c) for p, c in zip(piece, window, strict=True))
