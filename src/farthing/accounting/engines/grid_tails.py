"""Where a Gaussian pair is cut, and how much lies beyond."""

from __future__ import annotations

import math

import numpy as np

from farthing.accounting.engines.grid_pairs import ARGUMENT_ERROR, Direction

LOW_CUT = 50.0
"""-log of the P-mass that may be moved up from the low end: far below what a tilted law can feel."""


def gaussian_range(mu: float, q: float, direction: Direction, cut: float) -> tuple[float, float]:
    """Where to cut y, with Q = N(0, 1) and P = N(mu, 1), so that P has less than exp(-cut) above.

    >>> gaussian_range(1.0, 1.0, "remove", 50.0)
    (-9.0, 11.0)
    """
    lowest_centre = 0.0 if direction == "remove" and q < 1.0 else mu
    return lowest_centre - math.sqrt(2 * LOW_CUT), mu + math.sqrt(2 * max(cut, 1.0))


def gaussian_tails(mu: float, low: float, high: float, q: float, direction: Direction) -> tuple[float, float]:
    """Upper bounds of log P(y > high) and log P(y < low), P after sampling.

    Statement:
        P[N(0, 1) > z] <= exp(-z^2 / 2) / 2 for z >= 0. The same bounds the discrete Gaussian of any deviation s beyond
        an outcome k with k / s >= z: the sum over larger outcomes of exp(-k^2 / (2 s^2)) is below the integral from k
        on, and the total is at least s sqrt(2 pi).
    Source: exp(-z^2 / 2) / 2 - P[N > z] is 0 at 0 and at infinity and grows until z = sqrt(2 / pi), then falls. The
        total by Poisson summation, whose terms are all positive.
    Assumes: low <= 0 <= mu <= high in sampled remove pairs, low <= mu <= high otherwise.
    Direction: upper bounds.
    Checked by: tests/theorems/test_sampling_pairs.py

    >>> above, below = gaussian_tails(1.0, -9.0, 11.0, 1.0, "remove")
    >>> above < -50 and below < -50
    True
    """
    parts = [(q, mu), (1 - q, 0.0)] if direction == "remove" else [(1.0, mu)]

    def log_tail(distance: float) -> float:
        return -distance * distance / 2 - math.log(2.0) if distance > 0 else 0.0

    above = [math.log(weight) + log_tail(high - centre) for weight, centre in parts if weight > 0]
    below = [math.log(weight) + log_tail(centre - low) for weight, centre in parts if weight > 0]
    # 1e-9 pays for the rounding here and of high and low.
    return float(np.logaddexp.reduce(above)) + 1e-9, float(np.logaddexp.reduce(below)) + 1e-9


def largest_sampled_loss(q: float, direction: Direction) -> float:
    """The supremum of the loss of a sampled event whose own loss is unbounded.

    >>> largest_sampled_loss(0.5, "remove"), round(largest_sampled_loss(0.5, "add"), 6)
    (inf, 0.693147)
    """
    return -math.log1p(-q) * (1 + ARGUMENT_ERROR) if direction == "add" and q < 1.0 else math.inf
