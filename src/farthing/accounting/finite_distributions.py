"""Distributions over finitely many outcomes, typed in by people and kept exactly; and e^epsilon as a fraction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from farthing.errors import InvalidValue
from farthing.numerics.bounds import ball, exact, precision, upper_fraction
from farthing.privacy.events import checked_delta, checked_epsilon

Number = int | float | str | Fraction | Decimal
"""A number that has one exact value; a double such as 0.1 is read as the short decimal 1/10, if there is one."""

Distribution = tuple[Fraction, ...]
Pair = tuple[Distribution, Distribution]
"""The distributions of one answer for two neighbouring tables, over the same outcomes."""

_SUM_ERROR = Fraction(1, 10**9)
_MOST_EPSILON = 5000.0  # e^5000 has 7,214 binary digits
_ODDS_BITS = 50
_MOST_POWER = 1000
_LARGEST = Fraction(10) ** 300


def checked_number(value: object, name: str) -> Fraction:
    """`value` as a fraction; refuses NaN, infinities, bools, powers of ten beyond a thousand and what is not a number.

    >>> checked_number(0.1, "x"), checked_number("1/3", "x")
    (Fraction(1, 10), Fraction(1, 3))
    """
    try:
        if isinstance(value, str | Decimal) and abs(_power_of_ten(value)) > _MOST_POWER:
            raise ValueError(value)  # as a fraction it would fill the memory
        if isinstance(value, Fraction | int | str | Decimal) and not isinstance(value, bool):
            return Fraction(value)
        if not isinstance(value, bool | bytes | bytearray):
            return exact(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        pass
    raise InvalidValue(name, value, "must be a finite number", "fractions may be typed as '1/3'")


def _power_of_ten(value: str | Decimal) -> int:
    """The exponent that is written behind a number, 0 if there is none."""
    return int(str(value).lower().partition("e")[2] or 0)


def checked_distribution(values: Iterable[Number], name: str) -> Distribution:
    """Probabilities >= 0 whose sum is within 1e-9 of 1, divided by their sum, so that it is exactly 1.

    >>> checked_distribution([0.9, 0.1], "P")
    (Fraction(9, 10), Fraction(1, 10))
    >>> checked_distribution([0.9, 0.2], "P")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: P=[0.9, 0.2]: must add up to 1, not 1.1.
    """
    given = list(values)
    shares = [checked_number(value, f"{name}[{place}]") for place, value in enumerate(given)]
    for place, share in enumerate(shares):
        if share < 0:
            raise InvalidValue(f"{name}[{place}]", given[place], "must be a probability >= 0")
    total = sum(shares, Fraction(0))
    if not abs(total - 1) <= _SUM_ERROR:
        raise InvalidValue(name, given, f"must add up to 1, not {float(min(total, _LARGEST)):.10g}")
    return tuple(share / total for share in shares)


def checked_pair(P: Iterable[Number], Q: Iterable[Number], names: tuple[str, str] = ("P", "Q")) -> Pair:
    """Two distributions over the same outcomes.

    >>> checked_pair([1], [0.5, 0.5])
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: Q=[0.5, 0.5]: must have as many outcomes as P, 1; write 0 where one cannot occur.
    """
    P, Q = list(P), list(Q)
    pair = checked_distribution(P, names[0]), checked_distribution(Q, names[1])
    if len(P) != len(Q):
        rule = f"must have as many outcomes as {names[0]}, {len(P)}"
        raise InvalidValue(names[1], Q, rule, "write 0 where one cannot occur")
    return pair


def odds_above(epsilon: float) -> Fraction:
    """e^epsilon as a fraction, rounded up by at most one part in 2^50.

    The grid is coarser than doubles, so that what somebody typed as log(2) has odds of 2.

    >>> odds_above(math.log(2)), odds_above(0.0)
    (Fraction(2, 1), Fraction(1, 1))
    """
    number = checked_epsilon(epsilon)
    if number == 0:
        return Fraction(1)
    if not number <= _MOST_EPSILON:
        raise InvalidValue("epsilon", epsilon, f"must be at most {_MOST_EPSILON:g}", "beyond 50 nothing is protected")
    with precision(160 + int(1.5 * number)):
        # Of both readings of the double, the larger one.
        above = upper_fraction(ball(max(exact(number), Fraction(number))).exp())
    assert above is not None  # e^5000 has fewer digits than the largest fraction
    # Its denominator is a power of two, so the difference of the lengths is the whole part of its binary logarithm.
    step = Fraction(2) ** (above.numerator.bit_length() - above.denominator.bit_length() - _ODDS_BITS)
    return math.ceil(above / step) * step


def leaky_response(odds: Fraction, delta: float) -> Pair:
    """Randomized response at these odds that reveals its bit outright with probability delta: four outcomes.

    >>> [[str(p) for p in side] for side in leaky_response(Fraction(3), 0.2)]
    [['1/5', '3/5', '1/5', '0'], ['0', '1/5', '3/5', '1/5']]
    """
    leak = exact(checked_delta(delta))
    truth = (1 - leak) * odds / (1 + odds)
    lie = (1 - leak) / (1 + odds)
    return (leak, truth, lie, Fraction(0)), (Fraction(0), lie, truth, leak)
