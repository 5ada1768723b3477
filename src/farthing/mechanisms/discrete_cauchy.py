"""Integer noise with a heavy tail, drawn exactly: mass proportional to scale^2 / (scale^2 + n^2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import acb, arb, fmpq

from farthing.mechanisms.exact import Bits, bernoulli
from farthing.mechanisms.laws import NoiseLaw


def discrete_cauchy(scale: Fraction, bits: Bits) -> int:
    """n with mass exactly proportional to scale^2 / (scale^2 + n^2), scale > 0.

    Rejection from an envelope that is flat on |n| < 2^J, with 2^J near the scale, and scale^2 / 4^j on each octave
    2^j <= |n| < 2^(j+1) beyond. Octave j then weighs 2 scale^2 / 2^j, half of the one before: coins choose it. All
    probabilities are fractions; about half of the candidates are accepted.

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> isinstance(discrete_cauchy(Fraction(5, 2), Bits(SYSTEM)), int)
    True
    """
    square = scale * scale
    octave = max(0, math.ceil(scale).bit_length() - 1)
    edge = 1 << octave
    centre, tail = 2 * edge - 1, 4 * square / edge
    while True:
        if bernoulli(centre / (centre + tail), bits):
            n = bits.below(centre) - (edge - 1)
            if bernoulli(square / (square + n * n), bits):
                return n
            continue
        start = edge
        while bits.bit():
            start *= 2
        n = start + bits.below(start)
        negative = bits.bit()
        if bernoulli(start * start / (square + n * n), bits):
            return -n if negative else n


@dataclass(frozen=True, slots=True)
class DiscreteCauchyLaw(NoiseLaw):
    """Mass proportional to scale^2 / (scale^2 + n^2); it has a median and quantiles, but no variance.

    >>> law = DiscreteCauchyLaw(Fraction(4))
    >>> law.error(0.5), law.error(0.95), law.variance
    (4, 51, inf)
    """

    scale: Fraction

    @property
    def variance(self) -> float:
        """Infinite: the tail falls as 1 / n^2."""
        return math.inf

    def _normaliser(self) -> Any:
        width = arb.pi() * self._scale_ball()
        return width / width.tanh()  # the sum of scale^2 / (scale^2 + n^2) is pi scale coth(pi scale)

    def _mass(self, n: int) -> Any:
        square = self._scale_ball() ** 2
        return square / (square + arb(n) ** 2) / self._normaliser()

    def _tail(self, n: int) -> Any:
        # The sum over m > n of 1 / (m^2 + s^2) is Im digamma(n + 1 + i s) / s.
        scale = self._scale_ball()
        return 2 * scale * acb(arb(n + 1), scale).digamma().imag / self._normaliser()

    def _scale_ball(self) -> Any:
        return arb(fmpq(self.scale.numerator, self.scale.denominator))
