"""What an expression means, in plain Python on one row: the slow definition that engines are tested against.

It also computes the parts that hold no column, so that no engine folds a constant in its own way.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from farthing.data.expressions.syntax_tree import COLUMN, CONSTANT, Meaning
from farthing.data.expressions.value_ranges import half_away

Value = bool | int | float | str | datetime.date | None


def evaluate(part: Meaning, row: Mapping[str, Value]) -> Value:
    """The value of `part` on a row whose cells have been read already (`cells.read_cell`)."""
    if part.operator == COLUMN:
        return row[str(part.value)]
    if part.operator == CONSTANT:
        return part.value  # type: ignore[return-value]
    if part.operator in _LAZY:
        return _LAZY[part.operator](part, row)
    values = [evaluate(argument, row) for argument in part.arguments]
    if any(value is None for value in values):
        return None
    return _STRICT[part.operator](part.value, *values)


def _and(part: Meaning, row: Mapping[str, Value]) -> Value:
    values = [evaluate(argument, row) for argument in part.arguments]
    return False if False in values else None if None in values else True


def _or(part: Meaning, row: Mapping[str, Value]) -> Value:
    values = [evaluate(argument, row) for argument in part.arguments]
    return True if True in values else None if None in values else False


def _case(part: Meaning, row: Mapping[str, Value]) -> Value:
    *pairs, otherwise = part.arguments
    for test, result in zip(pairs[::2], pairs[1::2], strict=True):
        if evaluate(test, row) is True:
            return evaluate(result, row)
    return evaluate(otherwise, row)


def _coalesce(part: Meaning, row: Mapping[str, Value]) -> Value:
    values = (evaluate(argument, row) for argument in part.arguments)
    return next((value for value in values if value is not None), None)


def _is_null(part: Meaning, row: Mapping[str, Value]) -> Value:
    return evaluate(part.arguments[0], row) is None


def _between(part: Meaning, row: Mapping[str, Value]) -> Value:
    value, low, high = (evaluate(argument, row) for argument in part.arguments)
    sides = [
        None if value is None or bound is None else compared(value, bound)
        for bound, compared in ((low, operator.ge), (high, operator.le))
    ]
    return False if False in sides else None if None in sides else True


def _nullif(part: Meaning, row: Mapping[str, Value]) -> Value:
    left, right = (evaluate(argument, row) for argument in part.arguments)
    return None if left == right else left


_LAZY: dict[str, Callable[[Meaning, Mapping[str, Value]], Value]] = {
    "and": _and,
    "or": _or,
    "case": _case,
    "coalesce": _coalesce,
    "is null": _is_null,
    "nullif": _nullif,
    "between": _between,
}


def _plain(function: Callable[..., Any]) -> Callable[..., Value]:
    return lambda _, *values: function(*values)


def _divide(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _floor_divide(a: int, b: int) -> int | None:
    return None if b == 0 else a // b


def _modulo(a: int, b: int) -> int | None:
    return None if b == 0 else a % b


def _sqrt(a: float) -> float | None:
    return None if a < 0 else math.sqrt(a)


def _ln(a: float) -> float | None:
    return None if a <= 0 else math.log(a)


_STRICT: dict[str, Callable[..., Value]] = {
    "+": _plain(operator.add), "-": _plain(operator.sub), "*": _plain(operator.mul), "/": _plain(_divide),
    "//": _plain(_floor_divide), "%": _plain(_modulo), "negative": _plain(operator.neg), "absolute": _plain(abs),
    "sign": _plain(lambda a: (a > 0) - (a < 0)), "floor": _plain(math.floor), "ceiling": _plain(math.ceil),
    "round": _plain(half_away), "sqrt": _plain(_sqrt), "ln": _plain(_ln), "exp": _plain(math.exp),
    "least": _plain(min), "greatest": _plain(max), "clip": lambda bounds, a: min(max(a, bounds[0]), bounds[1]),
    "real": _plain(float), "number": _plain(int),
    "=": _plain(operator.eq), "<>": _plain(operator.ne), "<": _plain(operator.lt), "<=": _plain(operator.le),
    ">": _plain(operator.gt), ">=": _plain(operator.ge), "not": _plain(operator.not_),
    "in": _plain(lambda a, *options: a in options),
    "table": lambda pairs, a: dict(pairs).get(a),
    "year": _plain(lambda a: a.year), "month": _plain(lambda a: a.month), "day": _plain(lambda a: a.day),
    "days between": _plain(lambda first, last: (last - first).days),
}  # fmt: skip
