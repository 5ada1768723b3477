"""Gaussian noises alone: they compose to one Gaussian, whose curve is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flint

from farthing.accounting.inversion import Curve
from farthing.numerics.bounds import down, precision, up

_BITS = 320


@dataclass(frozen=True, eq=False)
class GaussianCurve:
    """The curve of independent Gaussian noises.

    Statement:
        Gaussian noises with parameters mu_i compose to one with mu^2 = sum mu_i^2, and
            D(x) = Q(x / mu - mu / 2) - exp(x) Q(x / mu + mu / 2),   Q(v) = erfc(v / sqrt(2)) / 2.
    Source: Balle & Wang, arXiv:1805.06530v2, Theorem 8; Dong, Roth & Su, arXiv:1905.02383v3, Corollary 3.3.
    Assumes: mu_i = 1 / noise_multiplier for doubles as given; x >= 0.
    Direction: both, in balls; where the difference may be 0 the first term alone is the upper bound.
    Checked by: tests/theorems/test_gaussian_curve.py
    """

    spread: Any  # mu^2, a ball

    @classmethod
    def of(cls, noises: tuple[tuple[float, int], ...]) -> GaussianCurve:
        """The curve for (noise_multiplier, count) pairs."""
        with precision(_BITS):
            return cls(sum((flint.arb(n) / flint.arb(m) ** 2 for m, n in noises), flint.arb(0)))

    def log_delta(self, x: float) -> Curve:
        """log D(x) from below and from above."""
        with precision(_BITS):
            mu, loss, root = self.spread.sqrt(), flint.arb(x), flint.arb(2).sqrt()
            first = ((loss / mu - mu / 2) / root).erfc() / 2
            delta = first - loss.exp() * ((loss / mu + mu / 2) / root).erfc() / 2
            upper = delta.upper() if delta.is_finite() and delta.upper() > 0 else first.upper()
            high = up(upper.log()) if upper.is_finite() and upper > 0 else 0.0
            return Curve(down(delta.log()) if delta > 0 else float("-inf"), min(0.0, high))
