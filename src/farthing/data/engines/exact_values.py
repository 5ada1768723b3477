"""Rows from a driver as Python values, with whole numbers as `int` whatever the engine calls them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any


def exact_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Tuples in which a whole `Decimal` has become an `int`; nothing passes through a float.

    >>> from decimal import Decimal
    >>> exact_rows([(Decimal("9223372036854775822"), "F", None)])
    [(9223372036854775822, 'F', None)]
    """
    return [tuple(map(_exact, row)) for row in rows]


def _exact(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value
