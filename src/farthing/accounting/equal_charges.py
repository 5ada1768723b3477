"""What theorems say about k equal charges: the sum, the older closed forms and the optimum."""

from __future__ import annotations

from farthing.accounting.compose import compose
from farthing.accounting.theorems import advanced_composition, basic_composition, kov_homogeneous_bound
from farthing.numerics import Bounds

_INFINITE = float("inf")


def epsilons_of_equals(epsilon: float, delta: float, k: int, delta_g: float) -> dict[str, float]:
    """Epsilon at `delta_g` of k mechanisms of (epsilon, delta)-DP, by theorem; infinite where one has no answer.

    For pictures: the optimum is an estimate, which is far finer than a pixel, and nobody charges it.

    >>> {name: round(value, 2) for name, value in epsilons_of_equals(0.1, 0.0, 1000, 1e-6).items()}
    {'basic': 100.0, 'DRV': 27.14, 'KOV bound': 21.62, 'optimal': 19.34}
    """
    total, leak = basic_composition([epsilon], deltas=[delta], counts=[k])
    found: Bounds = compose([epsilon], deltas=[delta], counts=[k]).epsilon_at(delta_g, proof=False)
    return {
        "basic": total if leak <= delta_g else _INFINITE,
        "DRV": advanced_composition([epsilon], delta_g, deltas=[delta], counts=[k]),
        "KOV bound": kov_homogeneous_bound(epsilon, k, delta_g, delta),
        "optimal": found.estimate,
    }
