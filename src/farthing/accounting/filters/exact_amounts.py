"""Amounts of privacy as exact fractions: how a typed number is read, and how a sum is shown.

A budget of 0.3 must admit three charges of 0.1, and a fourth must not slip in. Floats get the first wrong
(0.1 + 0.1 + 0.1 > 0.3), a tolerance gets the second wrong. So a double that some decimal of at most 12
significant digits names is read as that decimal: 0.1 is one tenth. Any other double is the result of arithmetic
(one result in ten thousand looks like a decimal by chance) and is read as exactly the number it is. Sums are then
exact, and comparisons need no tolerance.

What the reading means: the guarantee is about the decimals. A mechanism that honours the double 0.1 and not
one tenth is off by 6e-18, the rounding of its own parameter; sums add nothing to that.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from farthing.numerics.balls import precision

# 1/3 + 1/7 + ... would grow without end; past this many bits a sum is rounded up instead.
_MAX_BITS = 8192


@lru_cache(maxsize=4096)
def exact(number: float) -> Fraction:
    """The number that `number` stands for: the short decimal that names it, else the double itself.

    >>> exact(0.1) + exact(0.2) == exact(0.3)
    True
    >>> exact(0.1 + 0.2) == exact(0.3)
    False
    """
    text = f"{number:.12g}"
    return Fraction(text) if float(text) == number else Fraction(number)


def float_down(amount: Fraction) -> float:
    """A double that stands for at most `amount` >= 0: the largest, or the one below it.

    >>> float_down(exact(0.3) - exact(0.1))
    0.2
    >>> exact(float_down(Fraction(1, 3))) <= Fraction(1, 3)
    True
    """
    try:
        number = float(amount)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
    # Either the decimal it names is the amount, or it is below by both readings.
    fits = exact(number) == amount or max(exact(number), Fraction(number)) <= amount
    return number if fits else math.nextafter(number, -math.inf)


def float_up(amount: Fraction) -> float:
    """A double that stands for at least `amount` >= 0: the smallest, or the one above it; else infinity.

    >>> float_up(exact(0.1) * 3)
    0.3
    """
    try:
        number = float(amount)
    except OverflowError:
        return math.inf
    fits = exact(number) == amount or min(exact(number), Fraction(number)) >= amount
    return number if fits else math.nextafter(number, math.inf)


def bounded(amount: Fraction) -> Fraction:
    """`amount`, rounded up if its exact form has grown past any practical need."""
    if amount.denominator.bit_length() <= _MAX_BITS:
        return amount
    return Fraction(math.ceil(amount * 2**_MAX_BITS), 2**_MAX_BITS)


def precise_balls() -> AbstractContextManager[None]:
    """Ball arithmetic with enough bits that rounding never decides a charge people care about."""
    return precision(160)


def ball(amount: Fraction) -> Any:
    """`amount` as an arb ball."""
    return arb(fmpq(amount.numerator, amount.denominator))


def upper_fraction(value: Any) -> Fraction | None:
    """A fraction >= the ball `value`; None when the ball is not finite (treat it as infinity)."""
    return _endpoint(value.upper()) if value.is_finite() else None


def lower_fraction(value: Any) -> Fraction | None:
    """A fraction <= the ball `value`; None when the ball is not finite."""
    return _endpoint(value.lower()) if value.is_finite() else None


def _endpoint(end: Any) -> Fraction:
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
