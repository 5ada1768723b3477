"""How a raw cell is read: once, the same way on every engine, and without a way to fail.

    number     NULL and NaN are missing; infinity and what lies out of range is clipped to the bounds; a real number
               nearer to zero than 2^-60 is zero; the fraction of a cell declared whole is dropped (rounded down)
    category   a value outside the list is missing; text is compared by its bytes, whatever the collation of the
               column, and text longer than every category is not even unpacked
    date       what lies out of range is clipped; a time of day is dropped

The type of a column is public, so that a column of the wrong type is refused before any row is seen.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from farthing.data.expressions.literals import literal
from farthing.data.schema import SMALLEST_REAL, Categories, Dates, Domain, Flags, Integers, Reals
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.data.engines import Engine


def read_cell(cell: Any, domain: Domain) -> bool | int | float | str | datetime.date | None:
    """One cell as `domain` reads it, in plain Python; the twin of `read_column`.

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

    Without an `engine`, text is compared as the table itself compares it.
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
        f"type of column {column.get_name()!r}", str(column.type()),
        f"does not hold what {type(domain).__name__} declares",
        "correct the schema, or convert the column in the source",
    )  # fmt: skip
