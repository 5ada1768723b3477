"""Typed trees: what a checked expression means, in few operators that every engine computes alike.

    column, constant
    + - * / // %   negative, absolute, sign   floor, ceiling, round   sqrt, ln, exp   least, greatest, clip
    real (whole to double), number (flag to 0 or 1)
    = <> < <= > >=   in, between   and, or, not, is null   case, coalesce, nullif
    table (a function of a public list, written out)   year, month, day, days between

A missing argument makes the result missing, except in and, or, between, is null, case, coalesce and nullif,
which follow SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from farthing.data.expressions.value_ranges import Range

DEEPEST_MEANING = 100
HEAVIEST = 5_000

# How often the SQL of an operator repeats its first argument, and its others; once where nothing is said. SQL has no
# names for intermediate results, so that nesting these would double the text again and again without a limit.
_REPEATS = {
    "%": (1, 3), "least": (2, 2), "greatest": (2, 2), "clip": (3, 3), "round": (3, 3), "sign": (3, 3),
    "sqrt": (2, 2), "number": (2, 2),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """One operator on checked arguments, with the range of its values."""

    operator: str
    arguments: tuple[Meaning, ...]
    value: object
    range: Range
    depth: int
    weight: int

    def walk(self) -> Iterator[Meaning]:
        """This part and every part below it."""
        waiting = [self]
        while waiting:
            part = waiting.pop()
            yield part
            waiting.extend(part.arguments)


def meaning(operator: str, arguments: tuple[Meaning, ...], values: Range, value: object = None) -> Meaning:
    """A part of an expression, with its depth and the length of its SQL."""
    first, others = _REPEATS.get(operator, (1, 1))
    if operator in {"sqrt", "round"} and getattr(arguments[0].range, "lower", -1) >= 0:
        first = 1  # both are written in one piece where no sign has to be asked
    weight = 1 + sum(part.weight * (first if index == 0 else others) for index, part in enumerate(arguments))
    if operator == "table" and isinstance(value, tuple):
        weight += len(value) // 10
    depth = 1 + max((part.depth for part in arguments), default=0)
    return Meaning(operator, arguments, value, values, depth, weight)
