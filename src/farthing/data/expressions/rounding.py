"""Rounding as every engine can do it: by adding a half and going down."""

from __future__ import annotations

import math


def half_away(value: float) -> int:
    """To the nearest whole number, halves away from zero, as floor(|x| + 0.5) in doubles.

    >>> half_away(2.5), half_away(-2.5), half_away(2.4)
    (3, -3, 2)
    """
    return math.floor(value + 0.5) if value >= 0 else -math.floor(0.5 - value)
