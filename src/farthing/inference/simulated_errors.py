"""Errors that are no sum of noises: their law from many cases, spread evenly over all that the noise can do.

A mean of few rows is a ratio of two noisy numbers, cut at its bounds; a standard deviation is a root. Where the noise
is small beside the numbers the first order is enough, and exact laws are at hand (`ErrorLaw`). Where it is not, what is
computed from the noisy numbers is computed from a few thousand cases instead, the same ones every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.inference.error_distributions import ErrorLaw, StatedLaw
from farthing.inference.noise_sums import checked_confidence
from farthing.inference.noise_terms import Floats

CASES = 4096
_FARTHEST = 1e-8  # from an end of a coordinate, where ends matter
_FEWEST_BEYOND = 40  # cases beyond a quantile that is read off them


def even_cases(dimensions: int, cases: int = CASES) -> Floats:
    """Points that fill the unit cube evenly: cases x dimensions, each coordinate in (0, 1).

    The additive recurrence with the powers of 1 / phi_d, phi_d the positive root of x^(d + 1) = x + 1 (M. Roberts 2018,
    "The unreasonable effectiveness of quasirandom sequences").

    >>> even_cases(2, 3).round(3)
    array([[0.255, 0.07 ], [0.01 , 0.64 ], [0.765, 0.21 ]])
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.arange(1, cases + 1)[:, None] * steps) % 1.0)


@cache
def cases_far_out(dimensions: int, cases: int = CASES) -> tuple[Floats, Floats]:
    """Points of the unit cube, half of each coordinate's near its ends, and the probability that each stands for.

    An end is reached as often in every power of ten down to 1e-8, so that what happens once in a million cases is among
    a few thousand. Weights are those of importance sampling: one over the density, adding up to 1.

    >>> points, weights = cases_far_out(1)
    >>> round(float(weights.sum()), 6), round(1000 * float(weights[points[:, 0] < 0.001].sum()), 1)
    (1.0, 1.0)
    """
    shares = even_cases(dimensions, cases)
    span = np.log(0.5 / _FARTHEST)
    side = np.where(shares < 0.75, 4 * shares - 2, 4 * (1 - shares))  # 0.5 .. 0.75 below, 0.75 .. 1 above
    tail = 0.5 * np.exp(-span * np.clip(side, 0.0, 1.0))
    points = np.where(shares < 0.5, 2 * shares, np.where(shares < 0.75, tail, 1 - tail))
    nearest = np.minimum(points, 1 - points)
    density = 0.5 + np.where(nearest >= _FARTHEST, 0.5 / (2 * span * np.maximum(nearest, _FARTHEST)), 0.0)
    weights = np.prod(1 / density, axis=1)
    return points, weights / weights.sum()


def noise_at(kind: str, scale: float, shares: Floats) -> Floats:
    """Laplace or Gaussian noise at shares of its distribution, in whole steps.

    >>> noise_at("laplace", 10.0, np.array([0.025, 0.5, 0.975]))
    array([-30.,   0.,  30.])
    """
    from scipy.special import ndtri

    if kind == "laplace":
        away = shares - 0.5
        return np.asarray(
            np.rint(-scale * np.sign(away) * np.log1p(-2 * np.minimum(np.abs(away), 0.5 - 1e-12)))
        )
    return np.asarray(np.rint(scale * ndtri(shares)))


class SampledLaw(StatedLaw):
    """The law of errors in cases that are all alike probable; `beyond` is a law whose far ends have the same shape.

    >>> law = SampledLaw(np.linspace(-1, 1, 4001)[:, None], ErrorLaw((), 1))
    >>> round(law.error(0.95), 2), round(law.standard_error, 3)
    (0.95, 0.577)
    """

    def __init__(self, errors: NDArray[np.float64], beyond: ErrorLaw, most: ArrayLike = np.inf) -> None:
        self._sizes = np.sort(np.abs(np.asarray(errors, dtype=float)), axis=0)
        self._beyond, self._most = beyond, np.asarray(most, dtype=float)
        super().__init__(np.sqrt(np.mean(self._sizes**2, axis=0)), self._at)

    def _at(self, confidence: float) -> Floats:
        level = min(confidence, 1 - _FEWEST_BEYOND / len(self._sizes))
        found = self._sizes[int(np.ceil(level * len(self._sizes))) - 1]
        if confidence > level:  # too few cases lie so far out: as the other law does from there on
            inner, outer = self._beyond.errors(level), self._beyond.errors(confidence)
            found = found * np.where(inner > 0, outer / np.where(inner > 0, inner, 1.0), 1.0)
        return np.asarray(np.minimum(found, self._most))

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        level = checked_confidence(confidence)
        if level > 1 - _FEWEST_BEYOND / len(self._sizes) or self.cells == 1:
            return float(np.max(self.errors(level), initial=0.0))
        every = np.sort(self._sizes, axis=None)
        return float(every[int(np.ceil(level * len(every))) - 1])


class WorstLaw(StatedLaw):
    """Of several laws the largest error of every cell: what holds whichever of them is the true one.

    >>> from farthing.inference import Term
    >>> WorstLaw([ErrorLaw([Term("normal", 1.0)]), ErrorLaw([Term("normal", 3.0)])]).standard_error
    3.0
    """

    def __init__(self, laws: Sequence[ErrorLaw], most: float = np.inf) -> None:
        errors = np.max([law.standard_errors for law in laws], axis=0)
        super().__init__(
            np.minimum(errors, most),
            lambda level: np.minimum(np.max([law.errors(level) for law in laws], axis=0), most),
        )


class RootLaw(StatedLaw):
    """The law of the error of a square root, whatever the number under it: |sqrt(v + e) - sqrt(v)| <= sqrt(|e|).

    The mean square is at most half the mean of |e| at v = 0, where only errors above zero are left, and hardly more
    elsewhere.

    >>> from farthing.inference import Term
    >>> RootLaw(ErrorLaw([Term("normal", 8.0)])).standard_error
    2.0
    """

    def __init__(self, law: ErrorLaw, most: float = np.inf) -> None:
        super().__init__(
            np.minimum(np.sqrt(law.standard_errors / 2), most),
            lambda level: np.minimum(np.sqrt(law.errors(level)), most),
        )
