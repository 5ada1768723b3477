"""One Gaussian release in doubles: what it leaks, and how strong it may be. For a search, never for a charge."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=4096)
def gaussian_strength(epsilon: float, delta: float) -> float:
    """The l2 sensitivity over sigma of one Gaussian release that costs (epsilon, delta), in doubles.

    >>> round(gaussian_strength(1.0, 1e-9), 3)
    0.182
    """

    low, high = 1e-12, 100.0
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def gaussian_delta(epsilon: float, mu: float) -> float:
    """What one Gaussian release of l2 sensitivity / sigma = mu leaks at epsilon, in doubles.

    Phi(mu / 2 - epsilon / mu) - e^epsilon Phi(-mu / 2 - epsilon / mu): Balle & Wang, arXiv:1805.06530, Theorem 8.
    """
    below = 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    above = 0.5 * math.erfc((epsilon / mu - mu / 2) / math.sqrt(2))
    return above - (math.exp(min(epsilon, 700.0)) * below if below > 0 else 0.0)
