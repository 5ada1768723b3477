"""What theorems say about an attacker: the lower boundary of the region of error rates that each of them proves.

An attacker who sees the answers guesses which of two neighbouring tables was used. With a false-alarm rate P_FA, no
test misses less often than the boundary says. The higher it is, the more attacks a theorem rules out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.compose import compose
from farthing.accounting.theorems import advanced_composition, basic_composition, kov_homogeneous_bound
from farthing.numerics import Bounds
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon

_INFINITE = float("inf")


def epsilons_of_equals(epsilon: float, delta: float, k: int, delta_g: float) -> dict[str, float]:
    """Epsilon at `delta_g` of k mechanisms of (epsilon, delta)-DP, by theorem; infinite where one has no answer.

    For pictures: the optimum is an estimate, which is far finer than a pixel, and nobody charges it.

    >>> {name: round(value, 2) for name, value in epsilons_of_equals(0.1, 0.0, 1000, 1e-6).items()}
    {'basic': 100.0, 'advanced': 27.14, 'kov': 21.62, 'optimal': 19.34}
    """
    total, leak = basic_composition([epsilon], deltas=[delta], counts=[k])
    optimum: Bounds = compose([epsilon], deltas=[delta], counts=[k]).epsilon_at(delta_g, proof=False)
    return {
        "basic": total if leak <= delta_g else _INFINITE,
        "advanced": advanced_composition([epsilon], delta_g, deltas=[delta], counts=[k]),
        "kov": kov_homogeneous_bound(epsilon, k, delta_g, delta),
        "optimal": optimum.estimate,
    }


Floats = NDArray[np.float64]

GRID: Floats = np.concatenate([np.linspace(0.0, 0.2, 81), np.linspace(0.21, 1.0, 80)])
"""False-alarm rates, more of them where boundaries bend."""

_SLACKS = np.logspace(-15, np.log10(0.9), 120)  # the delta' over which a closed form is optimised


def lower_boundaries(epsilon: float, delta: float, k: int, rates: Any = GRID) -> dict[str, Floats]:
    """P_MD at the false-alarm rates for k mechanisms of (epsilon, delta)-DP, by theorem: three, and the optimum.

    A closed form holds for every delta' at once, so its region is the intersection over all of them. After Kairouz,
    Oh & Viswanath (arXiv:1311.0776v4), figure 2.

    >>> {name: round(float(curve[0]), 6) for name, curve in lower_boundaries(0.1, 0.001, 3).items()}
    {'basic': 0.997, 'advanced': 0.997, 'kov': 0.997003, 'optimal': 0.997003}
    """
    epsilon, delta, k = checked_epsilon(epsilon), checked_delta(delta), checked_count(k, "k")
    sums = basic_composition([epsilon], deltas=[delta], counts=[k])
    totals = [1 - (1 - slack) * (1 - delta) ** k for slack in _SLACKS]
    families: dict[str, Iterable[tuple[float, float]]] = {
        "basic": [sums],
        "advanced": [
            (advanced_composition([epsilon], sums[1] + slack, deltas=[delta], counts=[k]), sums[1] + slack)
            for slack in _SLACKS
            if sums[1] + slack < 1
        ],
        "kov": [(kov_homogeneous_bound(epsilon, k, total, delta), total) for total in totals if total < 1],
    }
    curves = {name: intersection(guarantees, rates) for name, guarantees in families.items()}
    # The trade-off function is drawn through finitely many proven points; whatever else is proven lies below it too.
    optimum = np.asarray(compose([epsilon], deltas=[delta], counts=[k]).tradeoff()(rates))
    curves["optimal"] = np.maximum.reduce([optimum, *curves.values()])
    return curves


def intersection(guarantees: Iterable[tuple[float, float]], rates: Floats) -> Floats:
    """The highest of all lines P_FA + e^epsilon P_MD >= 1 - delta and their mirror images."""
    highest = np.zeros_like(rates)
    for epsilon, delta in guarantees:
        steep = 1 - delta - np.exp(min(epsilon, 700.0)) * rates
        flat = np.exp(-epsilon) * (1 - delta - rates)
        highest = np.maximum(highest, np.maximum(steep, flat))
    return highest
