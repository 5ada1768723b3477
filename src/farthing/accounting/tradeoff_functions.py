"""The testing view: what a test of D against D' can achieve, as a trade-off function and as a region.

Any test with false-alarm rate a and missed-detection rate b obeys, for every epsilon >= 0 of the curve,
    b >= 1 - delta(epsilon) - exp(epsilon) a    and    b >= exp(-epsilon) (1 - delta(epsilon) - a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accounting.loss_transforms import Array
from farthing.errors import InvalidValue

if TYPE_CHECKING:
    from farthing.accounting.algorithm_choice import Pricing

_LINES = 64
_FAINTEST = 1e-12


@dataclass(frozen=True, eq=False)
class TradeoffFunction:
    """f(alpha): no test with false-alarm rate alpha misses less often than this.

    Built from finitely many proven points of the curve, so it lies at or below the exact function: its promise holds.

    Attributes:
        alpha: False-alarm rates, increasing.
        beta: The least missed-detection rate at each of them.

    >>> from farthing.accounting import compose
    >>> f = compose([1.0]).tradeoff()
    >>> bool(f(0.1) <= 1 - 0.1)
    True
    """

    alpha: Array
    beta: Array

    def __call__(self, alpha: Any) -> Any:
        """f at one rate or at an array of rates."""
        values = np.asarray(alpha, dtype=np.float64)
        if not np.all((values >= 0) & (values <= 1)):
            raise InvalidValue("alpha", alpha, "must be a rate between 0 and 1")
        result = np.interp(values, self.alpha, self.beta)
        return result if values.ndim else float(result)


@dataclass(frozen=True, eq=False)
class Region:
    """The convex polygon of the pairs (P_FA, P_MD) that tests can reach at most.

    Attributes:
        vertices: Its corners in order around it, one row (P_FA, P_MD) for each.

    >>> from farthing.accounting import compose
    >>> region = compose([(0.4, 0.1)]).region()
    >>> (0.5, 0.5) in region, (0.01, 0.01) in region
    (True, False)
    """

    vertices: Array

    def __contains__(self, point: tuple[float, float]) -> bool:
        a, b = float(point[0]), float(point[1])
        if not (0 <= a <= 1 and 0 <= b <= 1):
            return False
        half = len(self.vertices) // 2
        below = np.interp(a, self.vertices[:half, 0], self.vertices[:half, 1])
        return bool(below <= b <= 1 - np.interp(1 - a, self.vertices[:half, 0], self.vertices[:half, 1]))


def tradeoff_of(pricing: Pricing) -> TradeoffFunction:
    """The lower envelope of the proven lines, at its own corners."""
    lines = _lines(pricing)
    corners = _upper_envelope(lines)
    return TradeoffFunction(corners[:, 0], corners[:, 1])


def region_of(pricing: Pricing) -> Region:
    """The region between the trade-off function and its mirror image through (1/2, 1/2)."""
    lower = _upper_envelope(_lines(pricing))
    return Region(np.concatenate([lower, 1 - lower]))


def _lines(pricing: Pricing) -> list[tuple[float, float]]:
    """(slope, intercept) of the lower bounds b >= intercept - slope * a; the last one is b >= 0."""
    lines: list[tuple[float, float]] = [(0.0, 0.0)]
    for epsilon in sorted(_epsilons(pricing), reverse=True):
        delta = pricing.delta_at(epsilon, True).upper
        if delta > 1 - _FAINTEST:
            break  # at every smaller epsilon too: such lines are not above 0 anywhere to be seen
        slope = math.exp(min(epsilon, 700.0))
        lines.append((slope, 1 - delta))
        lines.append((1 / slope, (1 - delta) / slope))
    return lines


def _epsilons(pricing: Pricing) -> list[float]:
    """Where the curve has its corners, if they are few; else evenly up to where it no longer moves visibly."""
    corners = pricing.loss.losses(most=_LINES)
    if corners is not None:
        return corners
    leak = pricing.leak().upper
    visible = leak + 1e-9 * (1 - leak)
    if not visible < 1:
        return [0.0]
    reach = min(pricing.epsilon_at(visible, False).upper, 600.0)
    # Below, delta is 1 for all that can be seen.
    start = pricing.epsilon_at(max(visible, 1 - 1e-6), False).lower
    return [*np.linspace(min(start, reach), reach, _LINES).tolist(), *pricing.loss.largest_loss(600.0)]


def _upper_envelope(lines: list[tuple[float, float]]) -> Array:
    """The corners, from a = 0 to a = 1, of the largest of finitely many decreasing lines."""
    ordered = sorted(set(lines), key=lambda line: (-line[0], line[1]))
    hull: list[tuple[float, float]] = []
    for slope, intercept in ordered:
        while hull and hull[-1][1] <= intercept:
            hull.pop()  # flatter and higher at 0: higher everywhere
        while len(hull) >= 2 and _meet(hull[-2], (slope, intercept)) <= _meet(hull[-2], hull[-1]):
            hull.pop()
        hull.append((slope, intercept))
    corners = [(0.0, hull[0][1])]
    for left, right in pairwise(hull):
        a = _meet(left, right)
        if 0 < a < 1:
            corners.append((a, max(0.0, right[1] - right[0] * a)))
    last = hull[-1]
    corners.append((1.0, max(0.0, last[1] - last[0])))
    return np.array(corners)


def _meet(steep: tuple[float, float], flat: tuple[float, float]) -> float:
    return (steep[1] - flat[1]) / (steep[0] - flat[0])
