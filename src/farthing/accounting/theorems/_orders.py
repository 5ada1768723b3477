"""The Renyi order at which a conversion to (epsilon, delta) is cheapest.

Every order gives a valid bound, so this search need not be rigorous; it has to be good.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_GOLDEN = (math.sqrt(5) - 1) / 2


def best_order(log_moment: Callable[[float], float], delta: float, improved: bool) -> float:
    """alpha near the minimum of either conversion, for log_moment(z) = z times the divergence of order 1 + z."""
    log_inverse = -math.log(delta)

    def price(log_z: float) -> float:
        z = math.exp(log_z)
        classic = (log_moment(z) + log_inverse) / z
        return classic - math.log1p(1 / z) - math.log1p(z) / z if improved else classic

    # A coarse look over many scales (alpha - 1 from 6e-6 to 2e16), then golden sections around the best.
    best = min((-12.0 + 0.5 * i for i in range(100)), key=price)
    low, high = best - 0.5, best + 0.5
    for _ in range(40):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if price(left) <= price(right) else (left, high)
    return 1 + math.exp((low + high) / 2)
