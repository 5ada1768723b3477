"""Pairs (lower, upper): what they hold, wherever they stand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from farthing.data.schema import Dates, Domain, Integers

PAIRS = "a pair (lower, upper) holds lower <= value < upper, and the column's upper bound if it ends there"
"""The rule, as refusals state it."""


def within_bound(pair: tuple[Any, Any], domain: Domain) -> tuple[Any, Any]:
    """The pair that ends at the upper bound instead of one step after it: both hold the bound.

    >>> within_bound((40, 100), Integers(0, 99)), within_bound((40, 99), Integers(0, 99))
    ((40, 99), (40, 99))
    >>> within_bound((40, 150), Integers(0, 99))
    (40, 150)
    """
    lower, upper = pair
    if isinstance(domain, Integers) and upper == domain.upper + 1:
        return lower, domain.upper
    if isinstance(domain, Dates) and isinstance(upper, date) and upper == domain.upper + timedelta(days=1):
        return lower, domain.upper
    return pair


def place_among(edges: Sequence[Any], end: Any) -> int | None:
    """Which edge an end is; beyond the bounds there is nothing, so an end may lie there. None for one between edges.

    >>> place_among((0, 18, 65), 18), place_among((0, 18, 65), 200), place_among((0, 18, 65), 20)
    (1, 2, None)
    """
    if not edges[0] <= end <= edges[-1]:  # a TypeError for one of another kind
        return 0 if end < edges[0] else len(edges) - 1
    return edges.index(end) if end in edges else None
