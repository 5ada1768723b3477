"""Which types can hold which domain, and how text becomes a number, a date or a flag.

Whether a column can hold its domain is decided from its type alone, when the dataset is made, so a wrong type never
becomes an error that depends on a row (`refuse_wrong_type`). How a cell is read from then on stands in
`farthing.data.expressions.ibis_compiler`.
"""

from __future__ import annotations

import math
from typing import Any

from farthing.data.engines.engine import Engine
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.errors import InvalidValue

EXACT_IN_A_DOUBLE = 2**53
_TO_DATES = " to dates, or to timestamps without a time zone (the zone decides which day it was)"
MOST_DIGITS = 38  # of a decimal, on the engines that have a limit


def refuse_wrong_type(name: str, kind: Any, domain: Domain, *, text_file: bool) -> None:
    """Refuse a column whose type cannot hold its domain; `kind` is the Ibis type."""
    if text_file:
        _refuse_inexact(name, domain, "a CSV file")
        return
    if kind.is_array():  # its elements are read after `explode`
        kind = kind.value_type
    if isinstance(domain, Integers | Reals):
        spelled = isinstance(domain, Reals) and bool(domain.decimal) and kind.is_string()
        fits = spelled or (kind.is_numeric() and not kind.is_boolean())
        types = "numbers, or of text with decimal declared"
    elif isinstance(domain, Dates):
        fits = kind.is_date() or kind.is_string() or (kind.is_timestamp() and kind.timezone is None)
        types = "dates, timestamps without a time zone, or text such as 2024-12-31"
    elif isinstance(domain, Flags):
        fits, types = _can_be_flags(kind), "true/false values, 0 and 1, or text"
    else:
        fits, types = _holds(kind, domain)
    if not fits:
        zoned = kind.is_timestamp() and kind.timezone is not None
        actual = f"timestamps with a time zone ({kind})" if zoned else type_text(kind)
        raise InvalidValue(
            f"schema[{name!r}]",
            _in_words(domain),
            f"needs a column of {types}, and this one holds {actual}",
            f"declare what the column holds, or convert it in the source{_TO_DATES if zoned else ''}",
        )
    if kind.is_decimal() and kind.scale is not None:
        _refuse_undecimal(name, kind, domain)
    if kind.is_floating() or kind.is_decimal():
        _refuse_inexact(name, domain, f"a column of type {kind}")


def type_text(kind: Any) -> str:
    """A column's type; one that Ibis does not know, such as a domain of PostgreSQL, by the name that its engine has."""
    own = getattr(kind, "raw_type", None)
    return str(kind) if own is None else own.sql(dialect="postgres")


def _in_words(domain: Domain) -> str:
    """What was declared, in the words of Python and of study.toml alike."""
    if isinstance(domain, Categories):
        few = ", ".join(map(str, domain.values[:4]))
        return f"categories {few}{', ...' if len(domain.values) > 4 else ''}"
    if isinstance(domain, Flags):
        return "flags"
    called = {Integers: "whole numbers", Reals: "real numbers", Dates: "dates"}[type(domain)]
    return f"{called} from {domain.lower} to {domain.upper}"


def typed(column: Any, domain: Domain, engine: Engine, *, csv: bool = False) -> Any:
    """A column in the type of its domain: text is read, 0 and 1 are flags; what spells no such value is missing.

    The same on every engine, and the same for a CSV file as for text that is stored otherwise.
    """
    import ibis

    kind = column.type()
    labels = isinstance(domain, Categories) and isinstance(domain.values[0], str)
    flags = isinstance(domain, Flags) or (isinstance(domain, Categories) and isinstance(domain.values[0], bool))
    if flags and kind.is_numeric() and not kind.is_boolean():
        return ibis.cases((column == 1, ibis.literal(True)), (column == 0, ibis.literal(False)))
    if not kind.is_string():
        return column
    if isinstance(domain, Categories) and labels:
        if not (domain.trim or domain.lowered):
            return column
        longest = max(len(str(value).encode()) for value in domain.values)
        return _tidy(short_text(column, 2 * longest + MOST_BLANKS, engine, csv), domain)
    # Stripped first, and not only for the spaces: DuckDB moves a bare cast into its CSV reader, which then drops the
    # whole line instead of the cell.
    text = short_text(column, _LONGEST_SPELLING, engine, csv).strip()
    if isinstance(domain, Dates):
        return _date(text, engine)
    if flags:
        word = text.lower()
        return ibis.cases((word.isin(_TRUE), ibis.literal(True)), (word.isin(_FALSE), ibis.literal(False)))
    if isinstance(domain, Reals) and domain.decimal == ",":
        text = text.translate(",.", ".x")  # a point is no comma: 1.234 might be meant as a thousand
    return _number(text, engine)


_TRUE, _FALSE = ("true", "t", "yes", "y", "1", "1.0"), ("false", "f", "no", "n", "0", "0.0")
MOST_BLANKS = 1000  # bytes around a category
_LONGEST_SPELLING = 100  # bytes of a number, a date or a flag
_SPELLED_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"
_SPELLED_DATE = "^[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}([T ]|$)"


def short_text(column: Any, longest: int, engine: Engine, csv: bool) -> Any:
    """Text without a collation of its own, and of a size that is safe to work on; longer cells are missing."""
    import ibis

    short = ibis.cases((engine.octets(column) <= longest, column))
    return short if csv else engine.text_of_key(engine.key(short))


def _tidy(text: Any, domain: Categories) -> Any:
    if domain.trim:
        text = text.strip()
    if domain.lowered:
        # Letters of the list alone: a cell with another one is none of its categories, and engines agree on these.
        letters = sorted(set("".join(map(str, domain.values))))
        pairs = [(large, small) for small in letters for large in {small.upper(), small.title()} - {small}]
        pairs = [(large, small) for large, small in pairs if len(large) == 1]
        if pairs:
            text = text.translate(*("".join(side) for side in zip(*pairs, strict=True)))
    return text


def _number(text: Any, engine: Engine) -> Any:
    import ibis

    if engine.name == "duckdb":
        return ibis.cases((~text.contains("_"), text)).try_cast("float64")  # which reads 1_000 as a thousand
    return ibis.cases((text.re_search(_SPELLED_NUMBER), text)).cast("float64")


def _date(text: Any, engine: Engine) -> Any:
    """The day that ISO 8601 spells at the beginning of a text; 2023-02-30 is none."""
    import ibis

    text = ibis.cases((text.re_search(_SPELLED_DATE) & (text.substr(0, 4) != "0000"), text.substr(0, 10)))
    if engine.name == "duckdb":
        return text.try_cast("date")
    year, month, day = (text.substr(*place).cast("int64") for place in ((0, 4), (5, 2), (8, 2)))
    leap = ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)
    thirty = month.isin([4, 6, 9, 11])
    days = ibis.cases((month == 2, ibis.cases((leap, 29), else_=28)), (thirty, 30), else_=31)
    valid = month.between(1, 12) & day.between(1, days)
    # Of a day that is none, the first of its year is made, and left out: an engine may fail where it looks too early.
    real = ibis.date(year, ibis.cases((valid, month), else_=1), ibis.cases((valid, day), else_=1))
    return ibis.cases((valid, real))


def _can_be_flags(kind: Any) -> bool:
    return bool(kind.is_boolean() or kind.is_numeric() or kind.is_string())


def _holds(kind: Any, domain: Categories) -> tuple[bool, str]:
    first = domain.values[0]
    if isinstance(first, bool):
        return _can_be_flags(kind), "true/false values, 0 and 1, or text"
    if isinstance(first, int):
        return kind.is_numeric() and not kind.is_boolean(), "numbers"
    return kind.is_string(), "text"


def _refuse_undecimal(name: str, kind: Any, domain: Domain) -> None:
    """Refuse bounds that do not fit beside the fraction of a decimal: the engine would fail in a query."""
    room = max(MOST_DIGITS, kind.precision or 0) - kind.scale
    ends = (domain.lower, domain.upper) if isinstance(domain, Integers | Reals) else ()
    numbers = ends or [value for value in getattr(domain, "values", ()) if isinstance(value, int)]
    if isinstance(domain, Flags):
        numbers = [1]
    if any(math.ceil(abs(number)) >= 10**room for number in numbers):
        raise InvalidValue(
            f"schema[{name!r}]",
            domain,
            f"must be numbers that fit {kind}, below 10^{room}",
            "narrow the bounds, or store it with fewer digits after the point",
        )


def _refuse_inexact(name: str, domain: Domain, where: str) -> None:
    numbers: tuple[float, ...] = ()
    if isinstance(domain, Integers):
        numbers = (domain.lower, domain.upper)
    elif isinstance(domain, Categories):
        numbers = tuple(value for value in domain.values if isinstance(value, int))
    if any(abs(number) > EXACT_IN_A_DOUBLE for number in numbers):
        raise InvalidValue(
            f"schema[{name!r}]", domain, f"must stay within 2^53 for {where}", "store it as 64-bit integers"
        )
