"""Whether a column can hold its domain, decided from its type alone, and what the text of a CSV file spells.

How a cell is read from then on stands in `farthing.data.expressions.cells`. The type is checked when the dataset is
made, so a wrong type never becomes an error that depends on a row.
"""

from __future__ import annotations

import math
from typing import Any

from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.errors import InvalidValue

EXACT_IN_A_DOUBLE = 2**53
MOST_DIGITS = 38  # of a decimal, on the engines that have a limit


def refuse_wrong_type(name: str, kind: Any, domain: Domain, *, text_file: bool) -> None:
    """Refuse a column whose type cannot hold its domain; `kind` is the Ibis type."""
    if text_file:
        _refuse_inexact(name, domain, "a CSV file")
        return
    if kind.is_array():  # its elements are read after `explode`
        kind = kind.value_type
    if isinstance(domain, Integers | Reals):
        fits, wanted = kind.is_numeric() and not kind.is_boolean(), "numbers"
    elif isinstance(domain, Dates):
        fits = kind.is_date() or (kind.is_timestamp() and kind.timezone is None)
        wanted = "dates, or timestamps without a time zone"
    elif isinstance(domain, Flags):
        fits, wanted = kind.is_boolean(), "true/false values"
    else:
        fits, wanted = _holds(kind, domain)
    if not fits:
        raise InvalidValue(
            f"schema[{name!r}]", domain, f"needs a column of {wanted}, and this one holds {kind}",
            "declare what the column holds, or convert it in the source",
        )  # fmt: skip
    if kind.is_decimal() and kind.scale is not None:
        _refuse_undecimal(name, kind, domain)
    if kind.is_floating() or kind.is_decimal():
        _refuse_inexact(name, domain, f"a column of type {kind}")


def typed(text: Any, domain: Domain) -> Any:
    """A column of text in the type of its domain; what does not spell a value of that type is missing.

    Stripped first, and not only for the spaces: DuckDB moves a bare cast into its CSV reader, which then drops
    the whole line instead of the cell.
    """
    if isinstance(domain, Categories) and isinstance(domain.values[0], str):
        return text
    text = text.strip()
    if isinstance(domain, Integers | Reals):
        return text.try_cast("float64")
    if isinstance(domain, Dates):
        return text.try_cast("date")
    flags = isinstance(domain, Flags) or isinstance(domain.values[0], bool)
    return text.try_cast("boolean" if flags else "float64")


def _holds(kind: Any, domain: Categories) -> tuple[bool, str]:
    first = domain.values[0]
    if isinstance(first, bool):
        return kind.is_boolean(), "true/false values"
    if isinstance(first, int):
        return kind.is_numeric() and not kind.is_boolean(), "numbers"
    return kind.is_string(), "text"


def _refuse_undecimal(name: str, kind: Any, domain: Domain) -> None:
    """Refuse bounds that do not fit beside the fraction of a decimal: the engine would fail in a query."""
    room = max(MOST_DIGITS, kind.precision or 0) - kind.scale
    ends = (domain.lower, domain.upper) if isinstance(domain, Integers | Reals) else ()
    numbers = ends or [value for value in getattr(domain, "values", ()) if isinstance(value, int)]
    if any(math.ceil(abs(number)) >= 10**room for number in numbers):
        raise InvalidValue(
            f"schema[{name!r}]", domain, f"must be numbers that fit {kind}, below 10^{room}",
            "narrow the bounds, or store it with fewer digits after the point",
        )  # fmt: skip


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
