"""The exact distributions of integer noise: mass, tails, variance, and the error at a confidence.

Everything is enclosed in balls. A variance is rounded to the nearest double; an error is an integer that certainly
holds the asked share of the noise, and when rounding leaves a doubt it is the next integer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from farthing.errors import InvalidValue
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_count, checked_real

_BITS = 160
_WIDE = 64  # from this standard deviation on, sums over the tail are integrals with a small remainder


class NoiseDistribution(ABC):
    """A symmetric distribution on the integers, known exactly."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance of the distribution itself (not of its continuous cousin), to the nearest double."""

    @abstractmethod
    def _mass(self, n: int) -> Any:
        """P[noise = n] as a ball."""

    @abstractmethod
    def _tail(self, n: int) -> Any:
        """P[|noise| > n] as a ball, n >= 0."""

    def mass(self, n: int) -> float:
        """P[noise = n], to the nearest double."""
        with precision(_BITS):
            return float(self._mass(abs(int(n))).mid())

    def tail(self, n: int) -> float:
        """P[|noise| > n], both sides together, to the nearest double."""
        if n < 0:
            return 1.0
        with precision(_BITS):
            return float(self._tail(int(n)).mid())

    def error(self, confidence: float = 0.95, cells: int = 1) -> int:
        """The least integer e with P[all of `cells` independent noises are within +-e] >= confidence."""
        level = checked_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidValue("confidence", confidence, "must be above 0 and below 1", "0.95 is a common choice")
        if not checked_count(cells, "cells") >= 1:
            raise InvalidValue("cells", cells, "must be a whole number >= 1")
        with precision(_BITS):
            # P[all within] = (1 - tail)^cells, so each tail may be 1 - confidence^(1/cells).
            allowed = -(arb(_rational(Fraction(level))).log() / cells).expm1()
            high = 1
            while not self._tail(high) <= allowed:
                high *= 2
            low = -1  # a tail beyond -1 is everything, which is never allowed
            while high - low > 1:
                middle = (low + high) // 2
                if self._tail(middle) <= allowed:  # false when in doubt, which moves the error up
                    high = middle
                else:
                    low = middle
            return high


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceDistribution(NoiseDistribution):
    """Mass proportional to exp(-|n| / scale).

    >>> distribution = DiscreteLaplaceDistribution(Fraction(2))
    >>> round(distribution.variance, 4), distribution.error(0.95), round(distribution.tail(5), 4)
    (7.8354, 6, 0.062)
    """

    scale: Fraction

    @property
    def variance(self) -> float:
        """2 r / (1 - r)^2 with r = exp(-1/scale): the two-sided geometric, a little less than 2 scale^2."""
        with precision(_BITS):
            gap = -(-1 / arb(_rational(self.scale))).expm1()
            return float((2 * (1 - gap) / gap**2).mid())

    def _mass(self, n: int) -> Any:
        rate = 1 / arb(_rational(self.scale))
        return (-rate * n).exp() * -(-rate).expm1() / (1 + (-rate).exp())

    def _tail(self, n: int) -> Any:
        rate = 1 / arb(_rational(self.scale))
        return 2 * (-rate * (n + 1)).exp() / (1 + (-rate).exp())


@dataclass(frozen=True, slots=True)
class DiscreteGaussianDistribution(NoiseDistribution):
    """Mass proportional to exp(-n^2 / (2 sigma_squared)).

    >>> distribution = DiscreteGaussianDistribution(Fraction(9))
    >>> round(distribution.variance, 9), distribution.error(0.95), round(distribution.tail(6), 4)
    (9.0, 6, 0.0295)
    """

    sigma_squared: Fraction

    @property
    def variance(self) -> float:
        """The distribution's own variance: below 1 it is far less than `sigma_squared`, above 2 nearly the same."""
        with precision(_BITS):
            v = arb(_rational(self.sigma_squared))
            if self.sigma_squared < 1:
                return float((_direct(v, 0, power=2) * 2 / self._normaliser()).mid())
            # Poisson summation: the normaliser is sqrt(2 pi v) (1 + 2 sum q^(k^2)); its logarithmic derivative by v,
            # times 2 v^2, is the variance.
            q = (-2 * arb.pi() ** 2 * v).exp()
            terms = range(1, 6)  # q is below e^-19, so q^36 is nothing at 160 bits
            weighted = sum((k * k * q ** (k * k) for k in terms), arb(0))
            plain = 1 + 2 * sum((q ** (k * k) for k in terms), arb(0))
            return float((v - 8 * (arb.pi() * v) ** 2 * weighted / plain).mid())

    def _normaliser(self) -> Any:
        v = arb(_rational(self.sigma_squared))
        if self.sigma_squared < 1:
            return 1 + 2 * _direct(v, 0)
        q = (-2 * arb.pi() ** 2 * v).exp()
        rest = arb(0, 1) * q**30  # what the series leaves out is below 2 q^36 / (1 - q)
        return (2 * arb.pi() * v).sqrt() * (1 + 2 * sum((q ** (k * k) for k in range(1, 6)), rest))

    def _mass(self, n: int) -> Any:
        v = arb(_rational(self.sigma_squared))
        return (-(arb(n) ** 2) / (2 * v)).exp() / self._normaliser()

    def _tail(self, n: int) -> Any:
        v = arb(_rational(self.sigma_squared))
        if self.sigma_squared < _WIDE**2:
            return 2 * _direct(v, n) / self._normaliser()
        # The midpoint rule on unit cells: sum over m > n of f(m) differs from the integral of f above n + 1/2 by at
        # most 1/24 of the integral of |f''|, which is |f'(n + 1/2)| where f is convex and at most 2 max|f'| anywhere.
        edge = arb(n) + arb(1) / 2
        integral = (arb.pi() * v / 2).sqrt() * (edge / (2 * v).sqrt()).erfc()
        if edge**2 >= v:
            bend = edge / v * (-(edge**2) / (2 * v)).exp()
        else:
            bend = 2 * (-arb(1) / 2).exp() / v.sqrt()
        return 2 * (integral + arb(0, 1) * bend / 24) / self._normaliser()


def _direct(v: Any, n: int, power: int = 0) -> Any:
    """Sum over m > n of m^power exp(-m^2 / (2v)); the rest, once tiny, is bounded by a geometric series."""
    total, m = arb(0), n + 1
    while True:
        term = arb(m) ** power * (-(arb(m) ** 2) / (2 * v)).exp()
        total += term
        # From m on each term is at most `ratio` times the one before (the powers grow by at most (1 + 1/m)^power).
        ratio = (-(2 * arb(m) + 1) / (2 * v)).exp() * (1 + arb(1) / m) ** power
        if ratio < 1:
            rest = term * ratio / (1 - ratio)
            if rest <= total * arb(2) ** -150:
                return total + arb(0, 1) * rest
        m += 1


def _rational(value: Fraction) -> Any:
    return fmpq(value.numerator, value.denominator)
