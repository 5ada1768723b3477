"""Numbers that carry their error: enclosures, rounding to the safe side, and digits that keep the side.

`Bounds` encloses a number that cannot be computed exactly. Balls (Arb) compute such numbers, at a precision of their
own in every thread. `exact` reads a double as the decimal that was typed; `float_up`, `rounded_up` and their
counterparts go back to a double on the safe side. `rounded_up_text`, `rounded_down_text` and `ceiling` print one.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
from flint import arb, fmpq

from farthing.errors import InvalidValue


def rounded_text(value: float, digits: int = 6) -> str:
    """`value` to the nearest `digits` significant digits.

    >>> rounded_text(1e-6), rounded_text(4.7745680811), rounded_text(float("inf")), rounded_text(3.0)
    ('1e-06', '4.77457', 'inf', '3')
    """
    return _digits_rounded(value, digits, ROUND_HALF_EVEN)


def rounded_up_text(value: float, digits: int = 6) -> str:
    """`value` rounded up, so that the text is still an upper bound.

    An excess of a few units in the last place of the double is dropped: 100 x 0.1 reads 10, not 10.0001.

    >>> rounded_up_text(4.77456808), rounded_up_text(1e-6), rounded_up_text(10.000000000000002)
    ('4.77457', '1e-06', '10')
    """
    nearest = float(rounded_text(value, digits))
    close = math.isfinite(value) and abs(value - nearest) <= _UNREADABLE * abs(value)
    return rounded_text(value, digits) if close else ceiling(value, digits)


def ceiling(value: float, digits: int = 6) -> str:
    """`value` rounded up without exception: typed back, it is at least `value`.

    >>> ceiling(10.000000000000002), ceiling(0.1)
    ('10.0001', '0.1')
    """
    return _digits_rounded(value, digits, ROUND_CEILING)


def rounded_down_text(value: float, digits: int = 6) -> str:
    """`value` rounded down, so that the text is still a lower bound.

    >>> rounded_down_text(4.77456808), rounded_down_text(0.3)
    ('4.77456', '0.3')
    """
    return _digits_rounded(value, digits, ROUND_FLOOR)


def interval(lower: float, upper: float) -> str:
    """Both ends rounded outward, with just the digits that distinguish them.

    >>> interval(4.77456758810789, 4.77456758810809), interval(0.5, 0.75)
    ('[4.77456758810789, 4.77456758810809]', '[0.5, 0.75]')
    """
    width = upper - lower
    digits = math.ceil(math.log10(upper / width)) + 1 if 0 < width < upper else 15
    digits = min(max(digits, 7), 15)
    return f"[{rounded_down_text(lower, digits)}, {ceiling(upper, digits)}]"


def as_typed(value: float) -> str:
    """The shortest text that reads back as the same double.

    >>> as_typed(1e-6), as_typed(3.0), as_typed(0.1)
    ('1e-06', '3', '0.1')
    """
    return repr(value).removesuffix(".0")


_UNREADABLE = 1e-14  # relative; far below the last digit that is ever shown rounded up


def _digits_rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value + 0.0:g}"
    # repr first: the decimal a person typed (0.3) is what they expect to read back, although the double lies
    # a fraction of an ulp beside it.
    number = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(value)))
    return f"{float(number):.{digits}g}"


_LOCK = threading.RLock()


def _renew_lock() -> None:
    """A forked process has one thread; a lock that another thread held at the fork would never be given back there."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Work at `bits` of precision, one thread at a time.

    >>> with precision(200):
    ...     x = flint.arb(2).sqrt()
    >>> x.rad() < 1e-50
    True
    """
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def down(ball: Any) -> float:
    """A double at or below everything in the ball; -inf when the ball says nothing.

    >>> down(flint.arb(1) / 3) <= 1 / 3
    True
    """
    if not ball.is_finite():
        return -math.inf
    # float() of a ball's end may round either way: one step further is on the safe side of both.
    return math.nextafter(float(ball.lower()), -math.inf)


def up(ball: Any) -> float:
    """A double at or above everything in the ball; inf when the ball says nothing.

    >>> up(flint.arb(1) / 3) >= 1 / 3
    True
    """
    if not ball.is_finite():
        return math.inf
    return math.nextafter(float(ball.upper()), math.inf)


def around(value: float, error: float) -> Any:
    """The ball of radius `error` around `value`."""
    return flint.arb(value, error)


@dataclass(frozen=True, slots=True)
class Bounds:
    """`lower <= truth <= upper`, floating-point error included when `proven`.

    `float(bounds)` is `upper`, because that is what gets charged. `estimate` is the best single value inside;
    it is for pictures and comparisons, never for charging.

    Args:
        lower: The value is not below this.
        upper: The value is not above this.
        estimate: The best single value inside; the middle by default.
        proven: Whether floating-point error is inside the bounds too.

    Raises:
        InvalidValue: If upper is below lower, or a bound is NaN.

    >>> b = Bounds(1.0, 1.5)
    >>> float(b), b.width, b.estimate, b.proven
    (1.5, 0.5, 1.25, True)
    >>> 1.2 in b
    True
    >>> Bounds(2.0, 1.0)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: upper=1.0: must be at least lower=2.0.
    """

    lower: float
    upper: float
    estimate: float = math.nan
    proven: bool = True

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # written so that NaN fails
            raise InvalidValue("upper", self.upper, f"must be at least lower={self.lower!r}")
        value = self.estimate
        if math.isnan(value):
            # The difference, not the sum, so that two large bounds cannot overflow on the way to their middle.
            value = self.upper if math.isinf(self.upper) else self.lower + (self.upper - self.lower) / 2
        object.__setattr__(self, "estimate", min(max(value, self.lower), self.upper))

    def __float__(self) -> float:
        return float(self.upper)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """`upper - lower`; 0 when both are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __str__(self) -> str:
        """The value to charge, rounded up, and the interval, rounded outward: what is printed holds as well.

        >>> print(Bounds(4.7745675881079, 4.774567588108015))
        4.77456759 (proven in [4.7745675881079, 4.774567588108015])
        """
        if not self.proven:
            low, high = _rounded(self.lower, 9, ROUND_FLOOR), _rounded(self.upper, 9, ROUND_CEILING)
            return f"{self.estimate:.9g} (estimated in [{low}, {high}])"
        # Enough digits that rounding outward does not blow the interval up.
        size = max(abs(self.lower), abs(self.upper))
        digits = 9 if not 0 < self.width < size else min(17, max(9, 2 - math.floor(math.log10(self.width / size))))
        lower, upper = _rounded(self.lower, digits, ROUND_FLOOR), _rounded(self.upper, digits, ROUND_CEILING)
        return f"{_rounded(self.upper, 9, ROUND_CEILING)} (proven in [{lower}, {upper}])"


def _rounded(value: float, digits: int, rounding: str) -> str:
    """`value` to so many significant digits, rounded the given way, written as short as it goes."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    short = exact.normalize()
    return f"{short:f}" if 1e-5 <= abs(value) < 1e15 else f"{short:e}"


# 1/3 + 1/7 + ... would grow without end; past this many bits a sum is rounded up instead.
_MAX_BITS = 8192
_MAX_EXPONENT = 8192  # of two, above and below which a bound is rounded away from what it bounds


@lru_cache(maxsize=4096)
def exact(number: float) -> Fraction:
    """The number that `number` stands for: the short decimal that names it, else the double itself.

    A budget of 0.3 must admit three charges of 0.1, and a fourth must not slip in. Floats get the first wrong (0.1 +
    0.1 + 0.1 > 0.3), a tolerance gets the second wrong. So a double that some decimal of at most 12 significant digits
    names is read as that decimal: 0.1 is one tenth. Any other double is the result of arithmetic (one result in ten
    thousand looks like a decimal by chance) and is read as exactly the number it is. Sums are then exact, and
    comparisons need no tolerance.

    The guarantee is about the decimals. A mechanism that honours the double 0.1 and not one tenth is off by 6e-18, the
    rounding of its own parameter; sums add nothing to that.

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
    """A fraction >= the ball `value`; None when the ball is not finite, or absurdly large (treat it as infinity)."""
    if not value.is_finite():
        return None
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    if mantissa.bit_length() + exponent > _MAX_EXPONENT:
        return None if mantissa > 0 else -(Fraction(2) ** _MAX_EXPONENT)
    if exponent < -_MAX_EXPONENT:  # e^-(10^12) is a number of 10^12 bits: what is above it will do
        return Fraction(-(-mantissa >> min(-exponent - _MAX_EXPONENT, mantissa.bit_length())), 2**_MAX_EXPONENT)
    return Fraction(mantissa) * Fraction(2) ** exponent


def lower_fraction(value: Any) -> Fraction | None:
    """A fraction <= the ball `value`; None when the ball is not finite, or absurdly far below 0."""
    opposite = upper_fraction(-value)
    return None if opposite is None else -opposite


def rounded_down(value: Fraction) -> float:
    """The largest double at or below `value` (a smaller noise multiplier is charged more)."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def rounded_up(value: Fraction) -> float:
    """The smallest double at or above `value` (a larger epsilon is charged more)."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def number_text(number: float, digits: int = 3) -> str:
    """A number with three significant digits, thousands apart; small ones keep their size.

    >>> number_text(41234.5), number_text(0.000123456), number_text(12.0), number_text(float("inf"))
    ('41,200', '0.000123', '12', 'unlimited')
    """
    if math.isnan(number):
        return "unknown"
    if math.isinf(number):
        return "unlimited"
    if number == 0:
        return "0"
    size = math.floor(math.log10(abs(number)))
    if size < -5:
        return f"{number:.{digits - 1}e}"
    places = max(0, digits - 1 - size)
    text = f"{round(number, digits - 1 - size):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def error_text(number: float) -> str:
    """An error with three significant digits, never rounded down: what is shown is what holds.

    >>> error_text(0.2541), error_text(41_201.0), error_text(3.0)
    ('0.255', '41,300', '3')
    """
    return number_text(float(rounded_up_text(number, 3)))
