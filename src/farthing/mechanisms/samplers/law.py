"""The two laws that vectors are drawn from, as one formula."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import flint


@dataclass(frozen=True)
class Law:
    """Whole numbers n with mass proportional to w(|n|) = exp(-unit * |n|**power), unit > 0, power 1 or 2.

    The exponent is convex, 0 at 0 and rational: that is all the sampler needs to know.
    """

    unit: Fraction
    power: int

    @classmethod
    def laplace(cls, scale: Fraction) -> Law:
        """Mass proportional to exp(-|n| / scale)."""
        return cls(1 / scale, 1)

    @classmethod
    def gaussian(cls, variance: Fraction) -> Law:
        """Mass proportional to exp(-n^2 / (2 variance))."""
        return cls(1 / (2 * variance), 2)

    def exponent(self, n: int) -> Fraction:
        """-log w(n), exactly."""
        power: int = n**self.power
        return self.unit * power

    def reach(self, exponent: Fraction) -> int:
        """The largest n with -log w(n) <= `exponent`."""
        whole = exponent / self.unit
        return isqrt(int(whole)) if self.power == 2 else int(whole)

    def weight(self, n: int) -> Any:
        """w(n) as a ball, at the precision in force."""
        return (-ball(self.unit) * n**self.power).exp()


def ball(value: Fraction) -> Any:
    """A fraction as a ball, at the precision in force."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))
