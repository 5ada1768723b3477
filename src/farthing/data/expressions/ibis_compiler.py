"""From meaning to Ibis, in SQL that cannot fail on any row.

No guard here relies on the order in which an engine evaluates things. Operands are made safe first (a zero divisor is
NULL, the argument of ln is NULL unless positive), and ranges have already shown that nothing overflows or vanishes,
so that a branch evaluated for nothing is as harmless as one that is used.

How a raw cell is read: once, the same way on every engine, and without a way to fail.

    number     NULL and NaN are missing; infinity and what lies out of range is clipped to the bounds; a real number
               nearer to zero than 2^-60 is zero; the fraction of a cell declared whole is dropped (rounded down)
    category   a value outside the list is missing; text is compared by its bytes, whatever the collation of the
               column, and text longer than every category is not even unpacked
    date       what lies out of range is clipped; a time of day is dropped

The type of a column is public, so that a column of the wrong type is refused before any row is seen.

Constants for an engine, with a type that leaves it no choice.

`1.5` is a decimal to DuckDB, Postgres and Spark, and `100000` a 32-bit number that overflows when it is squared, so a
bare literal would change the arithmetic around it. Text that is cast to a double is read correctly by all three.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from farthing.data.expressions.syntax_tree import COLUMN, CONSTANT, Meaning
from farthing.data.expressions.value_ranges import Day, Flag, Label, Nothing, Range, Real, Whole
from farthing.data.schema import SMALLEST_REAL, Categories, Dates, Domain, Flags, Integers, Reals, Schema
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.data.engines.engine import Engine


_TYPES: dict[type, str] = {Whole: "int64", Real: "float64", Flag: "boolean", Day: "date", Label: "string"}


def literal(value: bool | int | float | str | datetime.date) -> Any:
    """The constant as an Ibis value of 64-bit, boolean, date or string type."""
    import ibis

    if isinstance(value, bool | str | datetime.date):
        return ibis.literal(value)
    if isinstance(value, int):
        return ibis.literal(value).cast("int64")
    return ibis.literal(repr(value)).cast("float64")


def missing(values: Range) -> Any:
    """A missing value of the type of `values`."""
    import ibis

    return ibis.null(_TYPES[type(values)])


def read_cell(cell: Any, domain: Domain) -> bool | int | float | str | datetime.date | None:
    """One cell as `domain` reads it, in plain Python; the twin of `read_column`.

    Args:
        cell: The raw cell.
        domain: What its column may hold.

    Returns:
        A value of the domain, or None where it is missing.

    >>> read_cell(float("inf"), Reals(0.0, 60.0)), read_cell(float("nan"), Reals(0.0, 60.0))
    (60.0, None)
    >>> read_cell("X", Categories(("F", "M"))), read_cell(2.7, Integers(0, 110))
    (None, 2)
    """
    if cell is None or (isinstance(cell, float | Decimal) and math.isnan(cell)):
        return None
    if isinstance(domain, Flags):
        return bool(cell)
    if isinstance(domain, Categories):
        return next((value for value in domain.values if value == cell), None)
    if isinstance(domain, Dates):
        day: datetime.date = cell.date() if isinstance(cell, datetime.datetime) else cell
        return min(max(day, domain.lower), domain.upper)
    clipped: float = min(max(cell, domain.lower), domain.upper)
    if isinstance(domain, Integers):
        return math.floor(clipped)
    number = min(max(float(clipped), domain.lower), domain.upper)
    return 0.0 if abs(number) < SMALLEST_REAL and domain.lower <= 0 <= domain.upper else number


def read_column(column: Any, domain: Domain, engine: Engine | None = None) -> Any:
    """An Ibis column as `domain` reads it: int64, float64, string, date or boolean, and total on every engine.

    Args:
        column: The raw column.
        domain: What it may hold.
        engine: The engine of the table; without it, text is compared as the table itself compares it.

    Returns:
        An Ibis column whose cells lie in the domain or are missing.

    Raises:
        InvalidValue: If the column's type cannot hold the domain.

    >>> import ibis
    >>> people = ibis.table({"age": "float64"}, name="people")
    >>> str(read_column(people.age, Integers(0, 110)).type())
    'int64'
    """
    import ibis

    kind = column.type()
    if isinstance(domain, Flags) and kind.is_boolean():
        return column
    if isinstance(domain, Categories):
        return _categories(column, domain, engine)
    if isinstance(domain, Dates) and (kind.is_date() or kind.is_timestamp()):
        day = column.date() if kind.is_timestamp() else column
        return _clipped(day, literal(domain.lower), literal(domain.upper))
    if isinstance(domain, Integers) and kind.is_numeric() and not kind.is_boolean():
        if kind.is_floating():
            column = column.cast("float64")
            low, high = literal(float(domain.lower)), literal(float(domain.upper))
            inside = ibis.cases((column.isnan(), ibis.null("float64")), else_=_clipped(column, low, high))
            return _clipped(inside.floor(), literal(domain.lower), literal(domain.upper))
        clipped = _clipped(_wide(column), literal(domain.lower), literal(domain.upper))
        return clipped.floor().cast("int64") if clipped.type().is_decimal() else clipped.cast("int64")
    if isinstance(domain, Reals) and kind.is_numeric() and not kind.is_boolean():
        return _reals(column, domain)
    raise _wrong_type(column, domain)


def _reals(column: Any, domain: Reals) -> Any:
    import ibis

    kind = column.type()
    if kind.is_decimal():  # a cast of a huge decimal raises, so it is clipped among decimals first
        column = _clipped(column, literal(math.floor(domain.lower)), literal(math.ceil(domain.upper)))
        if kind.scale is None:  # and so does the cast of one that is nearer to zero than any double
            tiny = ibis.literal("1e-100").cast("decimal")
            column = ibis.cases((column.between(-tiny, tiny), literal(0).cast("decimal")), else_=column)
    number = column.cast("float64")
    low, high = literal(domain.lower), literal(domain.upper)
    branches = [(number <= low, low), (number >= high, high)]
    if kind.is_floating():
        branches.insert(0, (number.isnan(), ibis.null("float64")))
    if domain.lower <= 0 <= domain.upper and not kind.is_integer():
        branches.append((number.between(literal(-_BELOW), literal(_BELOW)), literal(0.0)))
    return ibis.cases(*branches, else_=number)


def without_dust(column: Any, domain: Domain) -> Any:
    """A column whose cells lie in their domain, with numbers nearer to zero than 2^-60 as zero.

    Postgres raises when a product of such numbers vanishes, and derived columns may hold them.
    """
    import ibis

    if not (isinstance(domain, Reals) and domain.lower <= 0 <= domain.upper):
        return column
    return ibis.cases((column.between(literal(-_BELOW), literal(_BELOW)), literal(0.0)), else_=column)


_BELOW = math.nextafter(SMALLEST_REAL, 0.0)


def _categories(column: Any, domain: Categories, engine: Engine | None) -> Any:
    import ibis

    kind, first = column.type(), domain.values[0]
    if isinstance(first, bool):
        if kind.is_boolean():
            return column if len(domain.values) == 2 else ibis.cases((column == literal(first), column))
    elif isinstance(first, int):
        if kind.is_numeric() and not kind.is_boolean():
            if kind.is_floating():
                column = column.cast("float64")
                kept = ibis.cases((column.isin([literal(float(value)) for value in domain.values]), column))
                return kept.floor()
            kept = ibis.cases((column.isin([literal(value) for value in domain.values]), column))
            return kept.floor().cast("int64") if kind.is_decimal() else kept.cast("int64")
    elif kind.is_string():
        return _labels(column, [str(value) for value in domain.values], engine)
    raise _wrong_type(column, domain)


def _labels(column: Any, labels: list[str], engine: Engine | None) -> Any:
    import ibis

    if engine is None:
        return ibis.cases((column.isin(labels), column))
    if column.type().length is None:  # a cell of any size: what cannot match is gone before it is unpacked
        longest = max(len(label.encode()) for label in labels)
        # Twice: another encoding than UTF-8 may take more bytes for a character, and none takes that many more.
        column = ibis.cases((engine.octets(column) <= 2 * longest, column))
    key, keys = engine.key(column), [engine.constant_key(label) for label in labels]
    if len(labels) <= _FEW:  # constants for constants: DuckDB groups by them twice as fast
        return key.cases(*zip(keys, map(ibis.literal, labels), strict=True))
    return engine.text_of_key(ibis.cases((key.isin(keys), key)))


_FEW = 16


def _clipped(column: Any, lower: Any, upper: Any) -> Any:
    import ibis

    return ibis.cases((column < lower, lower), (column > upper, upper), else_=column)


def _wide(column: Any) -> Any:
    """Unsigned 64-bit numbers as decimals, since they do not fit beside signed ones."""
    kind = column.type()
    return column.cast("decimal(20, 0)") if kind.is_unsigned_integer() and kind.nbytes == 8 else column


def _wrong_type(column: Any, domain: Domain) -> InvalidValue:
    return InvalidValue(
        f"type of column {column.get_name()!r}",
        str(column.type()),
        f"does not hold what {type(domain).__name__} declares",
        "correct the schema, or convert the column in the source",
    )


def compiled(part: Meaning, table: Any, schema: Schema, *, cells_read: bool) -> Any:
    """`part` as a value of the Ibis `table`."""
    return _Compiler(table, schema, cells_read).value(part, part.range)


class _Compiler:
    def __init__(self, table: Any, schema: Schema, cells_read: bool) -> None:
        self.table = table
        self.schema = schema
        self.cells_read = cells_read

    def value(self, part: Meaning, target: Range) -> Any:
        """`part`; `target` is the kind of a null that has none of its own."""
        if part.operator == COLUMN:
            name = str(part.value)
            column = self.table[name]
            return (without_dust if self.cells_read else read_column)(column, self.schema[name])
        if part.operator == CONSTANT:
            return missing(target) if part.value is None else literal(part.value)  # type: ignore[arg-type]
        if part.operator == "case":
            return self.case(part)
        if part.operator in {"is null", "coalesce"}:
            kind = part.arguments[0].range if part.operator == "is null" else part.range
            kind = Flag() if isinstance(kind, Nothing) else kind
            return _LOGIC[part.operator](*(self.operand(part, argument, kind) for argument in part.arguments))
        values = [self.operand(part, argument, argument.range) for argument in part.arguments]
        return _OPERATORS[part.operator](part, *values)

    def operand(self, part: Meaning, argument: Meaning, target: Range) -> Any:
        """An argument, set apart where Ibis would write `NOT x IN (...) IS NULL` without parentheses."""
        value = self.value(argument, target)
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
