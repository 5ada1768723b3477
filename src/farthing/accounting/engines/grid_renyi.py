"""Renyi divergences of pairs, by adding up or integrating exp((alpha - 1) * loss) over P."""

from __future__ import annotations

import math

import numpy as np

from farthing.accounting.engines.grid_cells import panels
from farthing.accounting.engines.grid_events import loss_pair
from farthing.accounting.engines.grid_pairs import Direction, LossPair
from farthing.numerics import Bounds
from farthing.privacy import DiscreteGaussianNoise, Event, GaussianNoise, Sampled

_DEEP = 40.0  # -log of the part of the integral that may be left to a tail bound


def renyi_of_pairs(items: tuple[tuple[Event, int], ...], direction: Direction, alpha: float) -> Bounds:
    """The Renyi divergence of order `alpha` of a composition, in one direction.

    Statement:
        D_alpha = sum over events of count * log(E_P[exp((alpha - 1) L)]) / (alpha - 1). Beyond y = alpha mu + z a Gaussian
        pair, sampled or not, discrete or not, has at most exp(alpha (alpha - 1) mu^2 / 2 - z^2 / 2) / 2 of the expectation
        E_P[exp((alpha - 1) L)], and below y = -z (or mu - z) at most its P-mass there.
    Source: Mironov, arXiv:1702.07476, Proposition 1 (composition). Sampling never raises a loss above max(u, 0), so beyond
        the cut the integrand is at most exp(alpha u) Q, which is exp(alpha (alpha - 1) mu^2 / 2) N(alpha mu, 1).
    Assumes: alpha > 1.
    Direction: two-sided; inf when an event leaks.
    Checked by: tests/theorems/test_grid_renyi.py

    >>> from farthing.privacy import RandomizedResponse
    >>> round(renyi_of_pairs(((RandomizedResponse(1.0), 2),), "remove", 2.0).upper, 9)
    1.471...
    """
    lower = upper = 0.0
    for event, count in items:
        low, high = _log_moment(event, direction, alpha)
        lower += count * low / (alpha - 1)
        upper += count * high / (alpha - 1)
    slack = 2.0**-48 * (1 + len(items))
    return Bounds(max(0.0, lower - slack * abs(lower)), max(0.0, upper + slack * abs(upper)))
