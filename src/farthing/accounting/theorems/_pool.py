"""The two multisets that every composition theorem here reads: epsilons, and leaks.

A theorem sees k charges (epsilon_i, delta_i) only through sums over the epsilons and through the product of the
(1 - delta_i), so equal values are merged at the door; a million charges of three kinds are three numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.accounting.charges import joined, read_charges
from farthing.errors import InvalidValue

_GOLDEN = (math.sqrt(5) - 1) / 2


def best_order(log_moment: Callable[[float], float], delta: float, improved: bool) -> float:
    """alpha near the minimum of either conversion, for log_moment(z) = z times the divergence of order 1 + z."""
    log_inverse = -math.log(delta)

    def price(log_z: float) -> float:
        z = math.exp(log_z)
        classic = (log_moment(z) + log_inverse) / z
        return classic - math.log1p(1 / z) - math.log1p(z) / z if improved else classic

    # A coarse look over many scales (alpha - 1 from 6e-6 to 2e16), then golden sections around the best.
    best = min((-12.0 + 0.5 * i for i in range(100)), key=price)
    low, high = best - 0.5, best + 0.5
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if price(left) <= price(right) else (left, high)
    return 1 + math.exp((low + high) / 2)


def rounded_up(ball: Any) -> float:
    """The least float known to be at least every point of the ball; inf when the ball says nothing.

    `farthing.numerics.bounds.up` always steps one float outwards. Theorems state sums such as 3.0 exactly, so here the
    step is taken only when it is needed.
    """
    if not ball.is_finite():
        return math.inf
    value = _nearest(ball.upper())
    # float() rounds to nearest, so it may have gone down.
    while not flint.arb(value) >= ball:
        value = math.nextafter(value, math.inf)
    return value


def rounded_down(ball: Any) -> float:
    """The largest float known to be at most every point of the ball; -inf when the ball says nothing."""
    if not ball.is_finite():
        return -math.inf
    value = _nearest(ball.lower())
    while not flint.arb(value) <= ball:
        value = math.nextafter(value, -math.inf)
    return value


def ball_of(fraction: Fraction) -> Any:
    """A ball around a rational number."""
    return flint.arb(flint.fmpq(fraction.numerator, fraction.denominator))


def ball_between(lower: float, upper: float) -> Any:
    """A ball that holds both ends."""
    return flint.arb(lower).union(flint.arb(upper))


def _nearest(ball: Any) -> float:
    """Near the middle of a very thin ball; a number too large for a float becomes an infinity of its sign."""
    try:
        return float(ball)
    except OverflowError:
        return math.inf if ball > 0 else -math.inf


Array = NDArray[np.float64]

RELATIVE_ERROR = 2.0**-44
"""Allowed to a sum of positive terms, each made by a handful of NumPy calls right to 2^-48."""

_EXACT_TERMS = 4096  # up to so many terms are added without any rounding but the last
_BLOCK = 64
_EXACT_LEAKS = 64  # up to so many leaks the product of (1 - delta_i) is formed in rationals
_BALL_LEAKS = 4096  # up to so many distinct leaks it is formed in balls, beyond that in floats with their error


@dataclass(frozen=True, eq=False)
class Pool:
    """Distinct positive epsilons and leaks with their counts; `k` also counts the charges that cost nothing."""

    epsilons: Array
    counts: NDArray[np.int64]
    leaks: Array
    leak_counts: NDArray[np.int64]
    k: int
    alike: bool
    """Whether all k charges have one epsilon and one delta."""

    @cached_property
    def active(self) -> int:
        """How many charges have a positive epsilon."""
        return sum(self.counts.tolist())

    def expanded(self) -> Array:
        """Every positive epsilon, repeated as often as it is charged."""
        return np.repeat(self.epsilons, self.counts)

    def sum_of(self, term: Callable[[Array], Array]) -> float:
        """An upper bound on the sum of `term` (positive) over all epsilons; inf on overflow."""
        with np.errstate(over="ignore"):
            terms = self.counts * term(self.epsilons)
        # Every term errs by a relative amount and all are positive, so the sum errs by the same relative amount;
        # a term that underflowed has lost less than the smallest normal float.
        return sum_of_positives(terms) * (1 + RELATIVE_ERROR) + self.active * 2.0**-1022

    def epsilon_sum(self) -> float:
        """The sum of the epsilons, rounded up; up to `_EXACT_TERMS` distinct ones by one unit in the last place."""
        return _sum_rounded_up(self.epsilons, self.counts)

    def leak_sum(self) -> float:
        """The sum of the deltas, rounded up in the same way."""
        return _sum_rounded_up(self.leaks, self.leak_counts)

    def left_by_sum(self, delta_g: float) -> float:
        """delta_g minus the sum of the deltas, rounded down; up to `_EXACT_TERMS` distinct ones the sign is exact."""
        if len(self.leaks) > _EXACT_TERMS:
            return math.nextafter(delta_g - self.leak_sum(), -math.inf)
        parts = [*_exact_products(self.leaks, self.leak_counts).tolist(), -delta_g]
        rest = -math.fsum(parts)
        # fsum rounds to nearest: step down when what was rounded off lies on the other side.
        return math.nextafter(rest, -math.inf) if math.fsum([*parts, rest]) > 0 else rest

    def left_by_product(self, delta_g: float) -> Any:
        """A ball around 1 - (1 - delta_g) / prod(1 - delta_i), in the working precision.

        It is what remains for the tail of the loss once the leaks are paid (MV16, Theorem 1.5, right side). Below
        `_EXACT_LEAKS` leaks its sign is always decided, so that delta_g equal to the leak is not called infeasible.
        """
        if not len(self.leaks):
            return flint.arb(delta_g)
        if sum(self.leak_counts.tolist()) <= _EXACT_LEAKS:
            survival = Fraction(1)
            for leak, count in zip(self.leaks.tolist(), self.leak_counts.tolist(), strict=True):
                survival *= (1 - Fraction(leak)) ** count
            return ball_of(1 - (1 - Fraction(delta_g)) / survival)
        if len(self.leaks) <= _BALL_LEAKS:
            log_survival = flint.arb(0)
            for leak, count in zip(self.leaks.tolist(), self.leak_counts.tolist(), strict=True):
                log_survival += count * (-flint.arb(leak)).log1p()
        else:
            total = sum_of_positives(-np.log1p(-self.leaks) * self.leak_counts)
            log_survival = -ball_between(total * (1 - RELATIVE_ERROR), total * (1 + RELATIVE_ERROR))
        return -((-flint.arb(delta_g)).log1p() - log_survival).expm1()


def read_pool(charges: Any, deltas: Any = None, counts: Any = None) -> Pool:
    """`charges` as `farthing.compose` reads them; only (epsilon, delta) charges have these theorems."""
    read = read_charges(charges, deltas, counts)
    if read.events:
        raise InvalidValue(
            "charges",
            next(iter(read.events)),
            "must be known by an (epsilon, delta) guarantee alone",
            "use farthing.compose, which knows the loss of this event itself",
        )
    if read.k >= 2**62:
        raise InvalidValue("counts", read.k, "must add up to less than 2**62")
    chunk = joined(read.chunks)
    epsilons, epsilon_counts = _merged(chunk.epsilons, chunk.counts)
    leaks, leak_counts = _merged(chunk.deltas, chunk.counts)
    alike = len(epsilons) <= 1 and len(leaks) <= 1
    return Pool(*_positive(epsilons, epsilon_counts), *_positive(leaks, leak_counts), read.k, alike)


def _sum_rounded_up(values: Array, counts: NDArray[np.int64]) -> float:
    """An upper bound on the sum of counts * values, the next float up when there are not too many."""
    if len(values) > _EXACT_TERMS:
        with np.errstate(over="ignore"):
            return sum_of_positives(counts * values) * (1 + RELATIVE_ERROR)
    parts = _exact_products(values, counts).tolist()
    try:
        total = math.fsum(parts)
        return math.nextafter(total, math.inf) if math.fsum([*parts, -total]) > 0 else total
    except (OverflowError, ValueError):  # beyond the largest float, or already infinite
        return math.inf


def sum_of_positives(terms: Array) -> float:
    """The sum of terms >= 0 to a relative 2^-47, whatever their number and order; inf on overflow."""
    if len(terms) > _EXACT_TERMS:
        # 63 additions of positive numbers err by at most 63 units of 2^-53, relatively; fsum adds none of its own.
        padded = np.concatenate([terms, np.zeros(-len(terms) % _BLOCK)])
        terms = padded.reshape(-1, _BLOCK).sum(axis=1)
    try:
        return math.fsum(terms.tolist())
    except OverflowError:
        return math.inf


def _merged(values: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    if bool((counts == 1).all()):
        distinct, repeats = np.unique(values, return_counts=True)
        return distinct, repeats.astype(np.int64)
    distinct, place = np.unique(values, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(total, place, counts)
    return distinct, total


def _positive(values: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    positive = values > 0
    return values[positive], counts[positive]


def _exact_products(values: Array, counts: NDArray[np.int64]) -> Array:
    """Floats whose exact sum is the sum of counts * values.

    Each value is cut into 26 leading and 27 trailing bits and each count into blocks of 26 bits; then every product
    fits into the 53 bits of a float. A whole multiple of a float's last place cannot underflow.
    """
    if bool((counts == 1).all()):
        return values
    fraction, exponent = np.frexp(values)
    leading = np.ldexp(np.floor(np.ldexp(fraction, 26)), exponent - 26)
    trailing = values - leading
    parts = []
    for shift in (0, 26, 52):
        block = ((counts >> shift) & (2**26 - 1)).astype(np.float64) * 2.0**shift
        if block.any():
            with np.errstate(over="ignore"):
                parts += [block * leading, block * trailing]
    return np.concatenate(parts)
