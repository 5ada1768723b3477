"""How likely a key is kept, given how many units have it: three laws, each safe for one unit more or less.

Probabilities that decide anything are whole multiples of a power of two, rounded down from balls, so that coins with
exactly these probabilities can be thrown. Thresholds are the smallest that surely meet their delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint

from farthing.errors import InvalidValue
from farthing.numerics.balls import down, precision

_LONGEST = 2**18  # a key that needs more units than this is never seen in practice


@dataclass(frozen=True, slots=True)
class KeepLaw:
    """A count plus discrete Laplace noise of `rate` (no further from 0 than `reach`), kept from `threshold` on."""

    rate: Fraction
    threshold: int
    reach: int | None = None

    def keep_probability(self, units: int) -> float:
        """P(units + noise >= threshold), by the exact law, rounded down; exactly 0 and 1 where it is."""
        if units == 0:
            return 0.0  # keys without a unit are dropped before any noise
        least = self.threshold - units
        with precision(192):
            if self.reach is None:
                return max(0.0, down(_laplace_tail(self.rate, least)))
            if least > self.reach:
                return 0.0
            if least <= -self.reach:
                return 1.0
            q = _power(self.rate, 1)
            inside = 1 - 2 * _power(self.rate, self.reach + 1) / (1 + q)
            beyond = _power(self.rate, self.reach + 1) / (1 + q)
            return max(0.0, down((_laplace_tail(self.rate, least) - beyond) / inside))


@lru_cache(maxsize=256)
def delta_per_key(delta: float, keys: int) -> Fraction:
    """The largest d, up to rounding down, with 1 - (1 - d)^keys <= delta.

    >>> delta_per_key(0.75, 2)
    Fraction(1, 2)
    >>> 1 - (1 - delta_per_key(1e-6, 3)) ** 3 <= Fraction(1e-6)
    True
    """
    if keys == 1:
        return Fraction(delta)
    width = 64 + _bits_of(Fraction(delta) / keys)
    with precision(width + 64):
        exact = -((1 - flint.arb(delta)).log() / keys).expm1()
        found = Fraction(_floor_scaled(exact, width), 1 << width)
        if (
            keys * width > _LONGEST
        ):  # an exact power of so many digits would take minutes; the ball is good enough
            return found
        # A root that is a short fraction itself must not be lost to the ball around it.
        above = found + Fraction(1, 1 << width)
        return above if 1 - (1 - above) ** keys <= Fraction(delta) else found


@lru_cache(maxsize=8)
def optimal_keep_probabilities(epsilon: Fraction, delta: Fraction) -> tuple[Fraction, ...]:
    """The largest keep probability for n = 0, 1, 2, ... units, up to the first n where it is 1.

    Statement:
        A rule that keeps a key of n units with probability p(n), p(0) = 0, is (epsilon, delta)-DP for n and n + 1 if
        and only if, for both outcomes and both directions, P <= e^epsilon Q + delta. The largest such p is
            p(n) = min(e^epsilon p(n-1) + delta, 1 - e^-epsilon (1 - p(n-1) - delta), 1).
        Here e^epsilon is replaced by a rational just below and each p(n) is rounded down to a multiple of a power of
        two far below delta. Lowering p(n) after the minimum was taken keeps both constraints between n - 1 and n, and
        the next step starts from the lowered value; p still rises by nearly delta or more a step, so the other two
        constraints (which ask that p does not fall by much) hold as well. The rounded sequence is therefore private
        as it stands, not up to an error.
    Source: Desfontaines, Voss, Gipson & Mandayam, arXiv:2006.03684, Theorem 1 (recurrence) and Theorem 2 (closed
        form, used in the test).
    Assumes: 0 < delta < 1, epsilon > 0; one unit moves the count by one.
    Direction: at or below the optimum, by a relative 2^-50 for each unit at most.
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> [float(p) for p in optimal_keep_probabilities(Fraction(1), Fraction(1, 4))]
    [0.0, 0.25, 0.8160602794142788, 1.0]
    """
    width = 64 + _bits_of(delta)
    unit = 1 << width
    with precision(width + 64):
        growth = _floor_scaled(
            _ball(epsilon).exp(), width
        )  # e^epsilon as a multiple of 2^-width, rounded down
    leak = delta.numerator * unit // delta.denominator
    kept = [0]
    while kept[-1] < unit:
        if len(kept) > _LONGEST:
            raise InvalidValue(
                "epsilon", float(epsilon), f"is too small: a key would need more than {_LONGEST:,} units",
                "raise epsilon or delta, or lower max_keys_per_unit",
            )  # fmt: skip
        before = kept[-1]
        rising = growth * before // unit + leak
        # 1 - (1 - p - delta) / E rounded down: the subtracted part is rounded up.
        missing = max(0, unit - before - leak)
        falling = unit - -(-missing * unit // growth)
        kept.append(min(rising, falling, unit))
    return tuple(Fraction(p, unit) for p in kept)


@lru_cache(maxsize=256)
def truncated_geometric_threshold(epsilon: Fraction, delta: Fraction) -> KeepLaw:
    """Noise of mass proportional to e^(-epsilon |j|), |j| <= K, with the least K whose edge has mass <= delta.

    Statement:
        With P(noise = K) <= delta, releasing n + noise if it is at least K + 1, and nothing otherwise, is
        (epsilon, delta)-DP for n and n + 1, n >= 0, and drops n = 0 always.
        Proof: at every value that both can reach, the two masses differ by a factor e^epsilon at most; each of the
        two can reach one value that the other cannot, its edge, of mass P(noise = K) <= delta. Thresholding is
        post-processing, and 0 + noise never reaches K + 1.
    Source: Desfontaines, Voss, Gipson & Mandayam, arXiv:2006.03684, on truncated geometric thresholding; the
        proof above is complete for the K used here.
    Assumes: 0 < delta < 1, epsilon > 0.
    Direction: K is the smallest that surely meets delta (comparisons by balls; doubt makes K larger).
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> truncated_geometric_threshold(Fraction(1), Fraction(1, 10**6)).threshold
    15
    """

    def meets(reach: int) -> bool:
        q = _power(epsilon, 1)
        mass = (1 - q) * _power(epsilon, reach) / (1 + q - 2 * _power(epsilon, reach + 1))
        return bool(mass <= _ball(delta))

    reach = _least(meets, delta)
    return KeepLaw(epsilon, reach + 1, reach)


@lru_cache(maxsize=256)
def laplace_threshold(epsilon: Fraction, delta: Fraction) -> KeepLaw:
    """Discrete Laplace noise of rate epsilon, with the least threshold that one unit passes with at most delta.

    Statement:
        With P(1 + noise >= t) <= delta, releasing n + noise if it is at least t, and nothing otherwise (and nothing
        for n = 0), is (epsilon, delta)-DP for n and n + 1, n >= 0.
        Proof: for n >= 1 it is post-processing of an epsilon-DP count. For n = 0 against 1 the laws differ only on
        "something is released", of probability at most delta under one and 0 under the other.
    Source: Korolova, Kenthapadi, Mishra & Ntoulas, "Releasing search queries and clicks privately", WWW 2009,
        Theorem 1, for the continuous law; P(noise >= m) = e^(-epsilon m) / (1 + e^-epsilon), m >= 1, for the
        discrete one.
    Assumes: 0 < delta < 1, epsilon > 0.
    Direction: the smallest threshold that surely meets delta (comparisons by balls; doubt makes it larger).
    Checked by: tests/theorems/test_key_selection_is_private.py

    >>> laplace_threshold(Fraction(1), Fraction(1, 10**6)).threshold
    15
    """
    return KeepLaw(epsilon, 1 + _least(lambda m: bool(_laplace_tail(epsilon, m) <= _ball(delta)), delta))


def _least(meets: Any, delta: Fraction) -> int:
    """The least m >= 0 that surely meets a condition which, once met, stays met."""
    with precision(128 + 2 * _bits_of(delta)):
        low, high = -1, 1
        while not meets(high):
            low, high = high, 2 * high
            if high > 2**80:
                raise InvalidValue("epsilon", high, "is too small for any threshold", "raise epsilon")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(middle) else (middle, high)
        return high


def _laplace_tail(rate: Fraction, least: int) -> Any:
    """P(noise >= least) for mass proportional to e^(-rate |j|)."""
    q = _power(rate, 1)
    if least > 0:
        return _power(rate, least) / (1 + q)
    return 1 - _power(rate, 1 - least) / (1 + q)


def _power(rate: Fraction, times: int) -> Any:
    return (-_ball(rate) * times).exp()


def _ball(value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def _floor_scaled(ball: Any, width: int) -> int:
    """A whole number at or below ball * 2^width, and within two of it."""
    mantissa, exponent = (ball * flint.arb(2) ** width).lower().man_exp()
    scaled = int(mantissa) << int(exponent) if int(exponent) >= 0 else int(mantissa) >> -int(exponent)
    return max(0, scaled)


def _bits_of(value: Fraction) -> int:
    """About log2(1 / value), at least 0."""
    return max(0, value.denominator.bit_length() - value.numerator.bit_length() + 1)
