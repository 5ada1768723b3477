"""Numbers as whole multiples of a public grid: floor(value / grid), exact because the grid is a power of two."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from farthing.data.aggregates.shape import LARGEST_TERM, domain_of
from farthing.data.expressions.literals import literal
from farthing.data.schema import Categories, Dates, Flags, Integers, Reals, Schema
from farthing.errors import InvalidValue

STEPS = 20  # the default grid splits the larger bound into about 2**20 steps, a millionth of it each


def default_grid(name: str, schema: Schema) -> float:
    """1 for whole numbers; for reals the power of two that makes the bounds about a million steps."""
    domain = domain_of(name, schema)
    if not isinstance(domain, Reals):
        return 1.0
    size = max(abs(domain.lower), abs(domain.upper))
    return 2.0 ** (math.frexp(size)[1] - STEPS) if size else 1.0


def checked_grid(grid: object) -> float:
    """A power of two: dividing by one is exact in floating point, on every engine."""
    valid = isinstance(grid, int | float) and not isinstance(grid, bool) and 2.0**-1000 <= grid <= 2.0**62
    if not valid or math.frexp(grid)[0] != 0.5:  # type: ignore[arg-type]
        raise InvalidValue("grid", grid, "must be a power of two", "for example 2**-10, or leave it out")
    return float(grid)  # type: ignore[arg-type]


def on_grid(name: str, grid: float, schema: Schema) -> tuple[int, int, Callable[[Any], Any]]:
    """The least and the largest whole number that a column takes on its grid, and its Ibis value."""
    domain = domain_of(name, schema)
    if isinstance(domain, Flags):
        return 0, 1, lambda table: _zero_or_one(table[name])
    if isinstance(domain, Categories | Dates):
        raise InvalidValue(
            "column", name, "must hold numbers", "count it instead, or derive a number from it"
        )
    # Dividing by a power of two is exact, so the smallest and largest integers are those of the bounds.
    if not max(abs(domain.lower), abs(domain.upper)) <= LARGEST_TERM * grid:
        raise _too_fine(name, grid)
    lower, upper = math.floor(domain.lower / grid), math.floor(domain.upper / grid)
    if isinstance(domain, Integers):
        if grid == 1:
            return domain.lower, domain.upper, lambda table: table[name]
        if not max(abs(domain.lower), abs(domain.upper)) <= 2**53:
            raise InvalidValue("grid", grid, f"must be 1 for the large whole numbers of {name!r}")
    if not max(abs(lower), abs(upper)) <= LARGEST_TERM:
        raise _too_fine(name, grid)
    return lower, upper, lambda table: (table[name].cast("float64") / literal(grid)).floor().cast("int64")


def _zero_or_one(flag: Any) -> Any:
    """A flag as a number; Postgres does not cast one to 64 bits."""
    import ibis

    return ibis.cases((flag, 1), (~flag, 0), else_=ibis.null("int64")).cast("int64")


def _too_fine(name: str, grid: float) -> InvalidValue:
    return InvalidValue("grid", grid, f"is too fine for the bounds of {name!r}", "use a coarser one")
