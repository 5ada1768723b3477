"""The slow twin of a dataset: rows as dictionaries, sums as Python integers, nothing but loops.

It knows nothing of SQL, of Ibis or of farthing's own code; the rules are written out again from the contract.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

Row = dict[str, Any]
Rows = list[Row]


def read(rows: Iterable[Row], schema: dict[str, Any], unit: Sequence[str] = ()) -> Rows:
    """Raw rows as the schema reads them: without those of nobody, and every cell in its domain or missing."""
    kept = [row for row in rows if all(row[name] is not None for name in unit)]

    def seen(name: str, value: Any) -> Any:
        domain = schema.get(name)
        return [cell(part, domain) for part in value] if isinstance(value, list) else cell(value, domain)

    return [{name: seen(name, value) for name, value in row.items()} for row in kept]


def cell(value: Any, domain: Any) -> Any:
    """One raw cell, by its domain as a user writes it."""
    if value is None or domain is None or (isinstance(value, float) and math.isnan(value)):
        return value if domain is None else None
    if domain is bool:
        return value
    if isinstance(domain, list):
        return value if value in domain else None
    lower, upper = domain
    if isinstance(lower, datetime.date):
        value = value.date() if isinstance(value, datetime.datetime) else value
    elif isinstance(lower, float):
        value = 0.0 if abs(value) < 2.0**-60 else float(value)  # dust is zero: products of it vanish or raise
    clipped = min(max(value, lower), upper)
    return math.floor(clipped) if isinstance(lower, int) else clipped


def on_grid(value: Any, grid: float) -> int:
    """floor(value / grid), in exact arithmetic."""
    return math.floor(Fraction(value) / Fraction(grid))


def cells(domain: Any) -> list[Any]:
    """The public cells of a domain, in order."""
    if domain is bool:
        return [False, True]
    if isinstance(domain, list):
        return domain
    lower, upper = domain
    if isinstance(lower, datetime.date):
        return [lower + datetime.timedelta(days=day) for day in range((upper - lower).days + 1)]
    return list(range(lower, upper + 1))


def total(rows: Rows, term: Callable[[Row], int | None], axes: Sequence[tuple[Callable[[Row], Any], list[Any]]]) -> Any:
    """The sum of `term` in every cell of the axes, as nested lists; a row without a cell adds nothing."""

    def at(combination: tuple[Any, ...]) -> int:
        cell_of = list(combination)
        inside = [row for row in rows if [key(row) for key, _ in axes] == cell_of]
        return sum(found for row in inside if (found := term(row)) is not None)

    shape = [len(labels) for _, labels in axes]
    flat = [at(combination) for combination in itertools.product(*(labels for _, labels in axes))]
    return _nested(flat, shape)


def place(value: Any, edges: Sequence[Any]) -> int | None:
    """The cell between edges that holds a value; the last one holds its upper edge too."""
    if value is None:
        return None
    return max(number for number in range(len(edges) - 1) if value >= edges[number])


def column(name: str) -> Callable[[Row], Any]:
    """What a row holds under a name."""
    return lambda row: row[name]


def _nested(flat: list[int], shape: list[int]) -> Any:
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = len(flat) // shape[0]
    return [_nested(flat[start : start + step], shape[1:]) for start in range(0, len(flat), step)]
