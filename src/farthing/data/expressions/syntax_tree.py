"""What an expression says, before anyone asks what it means: a small tree, and its text again.

Both text and Ibis end in this tree. It has three shapes of node: a column, a constant, and an operator
with arguments. Which operators exist is decided by the tables of `parser`, `ibis_deferred` and `expression`.

Typed trees: what a checked expression means, in few operators that every engine computes alike.

    column, constant
    + - * / // %   negative, absolute, sign   floor, ceiling, round   sqrt, ln, exp   least, greatest, clip
    real (whole to double), number (flag to 0 or 1)
    = <> < <= > >=   in, between   and, or, not, is null   case, coalesce, nullif
    table (a function of a public list, written out)   year, month, day, days between

A missing argument makes the result missing, except in and, or, between, is null, case, coalesce and nullif,
which follow SQL.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from farthing.data.expressions.value_ranges import Range

DEEPEST_MEANING = 100
HEAVIEST = 5_000

# How often the SQL of an operator repeats its first argument, and its others; once where nothing is said. SQL has no
# names for intermediate results, so that nesting these would double the text again and again without a limit.
_REPEATS = {
    "%": (1, 3),
    "least": (2, 2),
    "greatest": (2, 2),
    "clip": (3, 3),
    "round": (3, 3),
    "sign": (3, 3),
    "sqrt": (2, 2),
    "number": (2, 2),
}


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


COLUMN = "column"
CONSTANT = "constant"

# How tightly an operator binds; what is not here is written as a call.
_BINDS = {
    "or": 1, "and": 2, "not": 3,
    "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "is null": 4, "in": 4, "between": 4, "like": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "negative": 7,
}  # fmt: skip
_ATOM = 9

RESERVED = frozenset(
    {
        "and", "or", "not", "in", "is", "null", "between", "like", "case", "when", "then", "else", "end",
        "true", "false", "cast", "as", "escape",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Node:
    """One operator with its arguments; `value` is a column's name, a constant or a fixed parameter."""

    operator: str
    arguments: tuple[Node, ...] = ()
    value: object = None
    position: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return written(self)


def column(name: str, position: int | None = None) -> Node:
    """A column by its name."""
    return Node(COLUMN, (), name, position)


def constant(value: object, position: int | None = None) -> Node:
    """A number, a text, a date, true, false or None for a missing value."""
    return Node(CONSTANT, (), value, position)


def written(node: Node) -> str:
    """The text of `node`, with no more parentheses than it needs; reading it gives the same tree."""
    return _written(node)[0]


def _written(node: Node) -> tuple[str, int]:
    operator, arguments = node.operator, node.arguments
    if operator == COLUMN:
        return written_name(str(node.value)), _ATOM
    if operator == CONSTANT:
        return written_constant(node.value), _ATOM
    if operator == "case":
        return _written_case(arguments), _ATOM
    if operator == "cast":
        return f"cast({written(arguments[0])} as {node.value})", _ATOM
    if operator not in _BINDS:
        return f"{operator}({', '.join(written(argument) for argument in arguments)})", _ATOM
    binds = _BINDS[operator]
    # The left side may bind equally (all our operators lean left), the right side must bind tighter; comparisons
    # do not chain at all, so both of their sides must bind tighter.
    left = _inside(arguments[0], binds if operator not in {"negative"} and binds != 4 else binds + 1)
    if operator == "not":
        return f"not {left}", binds
    if operator == "negative":
        return f"-{left}" if not left.startswith("-") else f"-({left})", binds
    if operator == "is null":
        return f"{left} is null", binds
    rest = [_inside(argument, binds + 1) for argument in arguments[1:]]
    if operator == "in":
        return f"{left} in ({', '.join(rest)})", binds
    if operator == "between":
        return f"{left} between {rest[0]} and {rest[1]}", binds
    return f"{left} {operator} " + f" {operator} ".join(rest), binds


def _inside(node: Node, least: int) -> str:
    text, binds = _written(node)
    return text if binds >= least else f"({text})"


def _written_case(arguments: tuple[Node, ...]) -> str:
    *pairs, otherwise = arguments
    branches = (
        f"when {written(test)} then {written(result)}" for test, result in zip(pairs[::2], pairs[1::2], strict=True)
    )
    return f"case {' '.join(branches)} else {written(otherwise)} end"


def written_name(name: str) -> str:
    """A column's name as it stands in an expression: quoted unless it is a plain word."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) and name.lower() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def written_constant(value: object) -> str:
    """A constant as it stands in an expression."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"({value!r})" if str(value).startswith("-") else repr(value)
