"""The transform of discrete Laplace noise whose sensitivity is several steps.

With mass proportional to r^|n|, r = exp(-a), and a shift of s steps (epsilon e = a s), the loss is e for n <= 0, -e for
n >= s and a (s - 2n) between. Summing the geometric series, with q = exp(-(2z + 1) a),

    M(z) exp(-z e) = (1 - r q + q^s (r - q)) / ((1 + r) (1 - q)),

which is randomized response at s = 1 and Laplace noise in the limit of many steps. The differences are taken as expm1,
so that small rates lose nothing: 1 - r q = -expm1(-(2z + 2) a), r - q = -r expm1(-2 z a), 1 - q = -expm1(-(2z + 1) a).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Stepped(NamedTuple):
    """Epsilons, steps and counts of discrete Laplace noises, as arrays of one length."""

    epsilons: Array
    steps: Array
    counts: Array

    @classmethod
    def none(cls) -> Stepped:
        """None of them."""
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))

    @property
    def rates(self) -> Array:
        """What one step is worth."""
        return self.epsilons / self.steps

    def cumulants(self, c: float) -> tuple[float, float, float, float]:
        """K, K' and K'' at c >= 0 and a bound on the error of K; the derivatives only guide a search."""
        a, s, n = self.rates, self.steps, self.counts
        r = np.exp(-a)
        e1, e2, d = -np.expm1(-(2 * c + 2) * a), -np.expm1(-2 * c * a), -np.expm1(-(2 * c + 1) * a)
        tail = r * np.exp(-(2 * c + 1) * self.epsilons)  # r q^s
        top = e1 + tail * e2
        slope, twice = 2 * a, 4 * a * a
        top1 = slope * (1 - e1) - slope * s * tail * e2 + tail * slope * (1 - e2)
        top2 = -twice * (1 - e1) + twice * tail * (s * s * e2 - 2 * s * (1 - e2) - (1 - e2))
        first_top, first_d = top1 / top, slope * (1 - d) / d
        value = c * self.epsilons + np.log(top / (d * (1 + r)))
        first = self.epsilons + first_top - first_d
        second = top2 / top - first_top**2 + twice * (1 - d) / d + first_d**2
        error = 2.0**-44 * float(np.sum(n * (1 + c * self.epsilons)))
        return float(np.sum(n * value)), float(np.sum(n * first)), float(np.sum(n * second)), error

    def log_ratio(self, c: float, t: Array) -> tuple[Array, Array, Array]:
        """log |Phi|, arg Phi and what their rounding is in proportion to, summed over the noises, at every t."""
        a, n = self.rates, self.counts
        level = np.log(_quotient(self, np.array([[complex(c)]]))[0].real)
        z = c + 1j * t[:, None]
        value, spread = _quotient(self, z)
        log_value = np.log(value) - level
        argument = log_value.imag + t[:, None] * self.epsilons
        spread = spread + 2 + np.abs(argument) + np.abs(z) * a
        return (n * log_value.real).sum(axis=1), (n * argument).sum(axis=1), (n * spread).sum(axis=1)

    def log_top_mass(self) -> float:
        """The log of the probability of the largest loss: 1 / (1 + r) each."""
        return -float(np.sum(self.counts * np.log1p(np.exp(-self.rates))))


def _quotient(stepped: Stepped, z: Any) -> tuple[Any, Any]:
    """(1 - r q + q^s (r - q)) / (1 - q), and how much larger the parts are than what they make."""
    a = stepped.rates
    w1, w2, w3, ws = (2 * z + 2) * a, 2 * z * a, (2 * z + 1) * a, (2 * z + 1) * stepped.epsilons
    e1, e2, d = -np.expm1(-w1), -np.expm1(-w2), -np.expm1(-w3)
    tail = np.exp(-a) * np.exp(-ws)
    top = e1 + tail * e2
    # An expm1 is off by units of itself and of its argument; the tail by units of its own argument.
    off = np.abs(e1) + np.abs(w1) + np.abs(tail) * (np.abs(e2) * (1 + np.abs(ws)) + np.abs(w2))
    return top / d, off / np.abs(top) + 1 + np.abs(w3) / np.abs(d)
