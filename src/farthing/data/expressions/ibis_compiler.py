"""From meaning to Ibis, in SQL that cannot fail on any row.

No guard here relies on the order in which an engine evaluates things. Operands are made safe first (a zero divisor is
NULL, the argument of ln is NULL unless positive), and ranges have already shown that nothing overflows or vanishes,
so that a branch evaluated for nothing is as harmless as one that is used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from farthing.data.expressions.literals import literal, missing
from farthing.data.expressions.raw_cells import read_column, without_dust
from farthing.data.expressions.syntax_tree import COLUMN, CONSTANT
from farthing.data.expressions.typed_tree import Meaning
from farthing.data.expressions.value_ranges import Flag, Nothing, Range, Real, Whole
from farthing.data.schema import Schema


def compiled(part: Meaning, table: Any, schema: Schema, *, cells_read: bool) -> Any:
    """`part` as a value of the Ibis `table`."""
    return _Compiler(table, schema, cells_read).value(part, part.range)


class _Compiler:
    def __init__(self, table: Any, schema: Schema, cells_read: bool) -> None:
        self.table = table
        self.schema = schema
        self.cells_read = cells_read

    def value(self, part: Meaning, wanted: Range) -> Any:
        """`part`; `wanted` is the kind of a null that has none of its own."""
        if part.operator == COLUMN:
            name = str(part.value)
            column = self.table[name]
            return (without_dust if self.cells_read else read_column)(column, self.schema[name])
        if part.operator == CONSTANT:
            return missing(wanted) if part.value is None else literal(part.value)  # type: ignore[arg-type]
        if part.operator == "case":
            return self.case(part)
        if part.operator in {"is null", "coalesce"}:
            kind = part.arguments[0].range if part.operator == "is null" else part.range
            kind = Flag() if isinstance(kind, Nothing) else kind
            return _LOGIC[part.operator](*(self.operand(part, argument, kind) for argument in part.arguments))
        values = [self.operand(part, argument, argument.range) for argument in part.arguments]
        return _OPERATORS[part.operator](part, *values)

    def operand(self, part: Meaning, argument: Meaning, wanted: Range) -> Any:
        """An argument, set apart where Ibis would write `NOT x IN (...) IS NULL` without parentheses."""
        value = self.value(argument, wanted)
        if part.operator in _TIGHT and isinstance(argument.range, Flag) and argument.arguments:
            return _coalesce(value, missing(Flag()))
        return value

    def case(self, part: Meaning) -> Any:
        import ibis

        *pairs, otherwise = (
            self.value(argument, part.range if index % 2 or index == len(part.arguments) - 1 else Flag())
            for index, argument in enumerate(part.arguments)
        )
        return ibis.cases(*zip(pairs[::2], pairs[1::2], strict=True), else_=otherwise)


def _coalesce(*values: Any) -> Any:
    import ibis

    return ibis.coalesce(*values)


_TIGHT = {"is null", "=", "<>", "in"}
_LOGIC: dict[str, Callable[..., Any]] = {"is null": lambda value: value.isnull(), "coalesce": _coalesce}


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda part, *values: function(*values)


def _nonzero(part: Meaning, value: Any) -> Any:
    """The divisor, missing where it is zero."""
    values = part.range
    assert isinstance(values, Whole | Real)
    if values.lower > 0 or values.upper < 0:
        return value
    return value.nullif(literal(0.0 if isinstance(values, Real) else 0))


def _divide(part: Meaning, a: Any, b: Any) -> Any:
    return a / _nonzero(part.arguments[1], b)


def _floor_divide(part: Meaning, a: Any, b: Any) -> Any:
    # Below 2^51 the correctly rounded quotient of two whole numbers never crosses a whole number.
    return (a.cast("float64") / _nonzero(part.arguments[1], b).cast("float64")).floor()


def _modulo(part: Meaning, a: Any, b: Any) -> Any:
    left, right = (argument.range for argument in part.arguments)
    assert isinstance(left, Whole) and isinstance(right, Whole)
    divisor = _nonzero(part.arguments[1], b)
    if left.lower >= 0 and right.lower >= 0:
        return a % divisor
    return ((a % divisor) + b) % divisor  # engines give the sign of a, Python and we the sign of b


def _sign(part: Meaning, a: Any) -> Any:
    import ibis

    zero = literal(0.0 if isinstance(part.arguments[0].range, Real) else 0)
    return ibis.cases((a > zero, literal(1)), (a < zero, literal(-1)), (a == zero, literal(0)))


def _round(part: Meaning, a: Any) -> Any:
    import ibis

    values, half = part.arguments[0].range, literal(0.5)
    assert isinstance(values, Real)
    if values.lower >= 0:
        return (a + half).floor()
    down = -((half - a).floor())
    return down if values.upper < 0 else ibis.cases((a >= literal(0.0), (a + half).floor()), else_=down)


def _sqrt(part: Meaning, a: Any) -> Any:
    import ibis

    values = part.arguments[0].range
    assert isinstance(values, Real)
    if values.lower >= 0:
        return a.sqrt()
    return ibis.cases((a >= literal(0.0), ibis.greatest(a, literal(0.0)).sqrt()))


def _ln(part: Meaning, a: Any) -> Any:
    import ibis

    # greatest skips a missing argument on every engine and gives 0, which nullif makes missing again.
    return ibis.greatest(a, literal(0.0)).nullif(literal(0.0)).ln()


def _extreme(part: Meaning, a: Any, b: Any) -> Any:
    import ibis

    pick = ibis.least if part.operator == "least" else ibis.greatest
    present = [
        value.notnull()
        for value, argument in zip((a, b), part.arguments, strict=True)
        if argument.operator != CONSTANT or argument.value is None
    ]
    whole = present[0] if len(present) == 1 else present[0] & present[1]
    return ibis.cases((whole, pick(a, b)))


def _clip(part: Meaning, a: Any) -> Any:
    import ibis

    low, high = (literal(bound) for bound in part.value)  # type: ignore[attr-defined]
    return ibis.cases((a < low, low), (a > high, high), else_=a)


def _table(part: Meaning, a: Any) -> Any:
    import ibis

    pairs: tuple[tuple[Any, Any], ...] = part.value  # type: ignore[assignment]
    if isinstance(part.range, Flag):
        chosen = [key for key, value in pairs if value]
        if 0 < len(chosen) < len(pairs):
            return a.isin([literal(key) for key in chosen])
        return ibis.cases((a.notnull(), literal(bool(chosen))))
    return a.cases(*((literal(key), literal(value)) for key, value in pairs))


def _number(part: Meaning, a: Any) -> Any:
    import ibis

    return ibis.cases((a, literal(1)), (~a, literal(0)))


_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": _plain(operator.add), "-": _plain(operator.sub), "*": _plain(operator.mul), "/": _divide,
    "//": _floor_divide, "%": _modulo, "negative": _plain(operator.neg), "absolute": _plain(lambda a: a.abs()),
    "sign": _sign, "floor": _plain(lambda a: a.floor()), "ceiling": _plain(lambda a: a.ceil()), "round": _round,
    "sqrt": _sqrt, "ln": _ln, "exp": _plain(lambda a: a.exp()), "least": _extreme, "greatest": _extreme,
    "clip": _clip, "real": _plain(lambda a: a.cast("float64")), "number": _number, "table": _table,
    "=": _plain(operator.eq), "<>": _plain(operator.ne), "<": _plain(operator.lt), "<=": _plain(operator.le),
    ">": _plain(operator.gt), ">=": _plain(operator.ge), "in": _plain(lambda a, *options: a.isin(options)),
    "between": _plain(lambda a, low, high: a.between(low, high)),
    "and": _plain(operator.and_), "or": _plain(operator.or_), "not": _plain(operator.invert),
    "nullif": _plain(lambda a, b: a.nullif(b)),
    "year": _plain(lambda a: a.year().cast("int64")), "month": _plain(lambda a: a.month().cast("int64")),
    "day": _plain(lambda a: a.day().cast("int64")),
    "days between": _plain(lambda first, last: last.delta(first, unit="day").cast("int64")),
}  # fmt: skip
