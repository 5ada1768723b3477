"""Constants for an engine, with a type that leaves it no choice.

`1.5` is a decimal to DuckDB, Postgres and Spark, and `100000` a 32-bit number that overflows when it is squared, so a
bare literal would change the arithmetic around it. Text that is cast to a double is read correctly by all three.
"""

from __future__ import annotations

import datetime
from typing import Any

from farthing.data.expressions.value_ranges import Day, Flag, Label, Range, Real, Whole

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
