"""Log-moments of the noises a plan chooses from, for many slots and many orders at once, in floats.

K(z) = log E[exp(z L)] of the privacy loss L. These are the accountant's own transforms written for a search: z or
epsilon may be complex (a line of integration, or a derivative by a complex step), and nothing is rounded to a side.
What is charged is proven by `farthing.accounting` afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REAL_LAPLACE = 2.0**44
"""A number of steps so large that discrete Laplace noise is real Laplace noise to every digit."""


def laplace_log_moment(z: Any, epsilon: Any, steps: Any) -> Any:
    """K(z) of discrete Laplace noise on a number that moves by `steps`; at one step, of randomized response.

    >>> float(laplace_log_moment(1.0, 0.5, REAL_LAPLACE))  # ((z+1) exp(z e) + z exp(-(z+1) e)) / (2z+1), logged
    0.200...
    """
    rate = epsilon / steps
    turn = -(2 * z + 1) * rate
    ends = (1 + np.exp(turn * steps)) / (1 + np.exp(-rate))
    between = np.tanh(rate / 2) * np.exp(turn) * np.expm1(turn * (steps - 1)) / np.expm1(turn)
    return z * epsilon + np.log(ends + between)


def range_log_moment(z: Any, epsilon: Any) -> Any:
    """K(z) of a choice by exponential weights: sinh((z + 1/2) e) / ((2z + 1) sinh(e / 2)), logged.

    >>> float(range_log_moment(1.0, 0.5))
    0.081...
    """
    s = 2 * z + 1
    return z * epsilon + np.log(np.expm1(-s * epsilon) / (s * np.expm1(-epsilon)))


@dataclass(frozen=True, eq=False)
class Losses:
    """The noises of a plan as the accountant will see them, sorted by kind.

    `gaussian` is the sum of 1 / noise_multiplier^2; `laplace` and `steps` are the epsilons and sensitivities of Laplace
    noises; `ranges` and `counts` the epsilons and multiplicities of choices by exponential weights.
    """

    gaussian: float
    laplace: Floats
    steps: Floats
    ranges: Floats
    counts: Floats

    def log_moment(self, z: Any) -> Any:
        """K of all together at each z (an array of one dimension)."""
        total = z * (z + 1) * (self.gaussian / 2)
        column = z[:, None]
        if len(self.laplace):
            total = total + laplace_log_moment(column, self.laplace, self.steps).sum(axis=1)
        if len(self.ranges):
            total = total + (self.counts * range_log_moment(column, self.ranges)).sum(axis=1)
        return total

    def pull(self, saddle: float) -> float:
        """How fast the Renyi divergence of order saddle + 1 grows with the logarithm of a common factor."""
        if np.isinf(saddle):
            return self.pure
        turned = 1 + 1e-20j
        total = (saddle + 1) * self.gaussian
        if len(self.laplace):
            moved = laplace_log_moment(saddle, self.laplace * turned, self.steps).imag
            total += float(moved.sum()) / (1e-20 * saddle)
        if len(self.ranges):
            moved = self.counts * range_log_moment(saddle, self.ranges * turned).imag
            total += float(moved.sum()) / (1e-20 * saddle)
        return total

    @property
    def pure(self) -> float:
        """The sum of the epsilons; infinite with Gaussian noise."""
        if self.gaussian > 0:
            return float("inf")
        return float(self.laplace.sum() + (self.counts * self.ranges).sum())
