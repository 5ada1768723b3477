"""What the same budget gives if it is split evenly over all questions: the thing to beat."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.accounting import calibrate
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.privacy.events import ApproxDP, Composed, GaussianNoise


@dataclass(frozen=True, slots=True)
class SplitBudget:
    """The better of Laplace and Gaussian noise on every answer, and how far the worst answer is off.

    >>> split_budget(1.0, 1e-9, 10_000, 1, 0.95).mechanism
    'Gaussian'
    """

    mechanism: str
    standard_error: float
    error: int


def split_budget(
    epsilon: float, delta: float, queries: int, sensitivity: int, confidence: float
) -> SplitBudget:
    """The least error of all `queries` answers at once, under optimal composition and with discrete noise.

    >>> found = split_budget(1.0, 0.0, 1, 1, 0.95)
    >>> found.mechanism, round(found.standard_error, 3), found.error
    ('Laplace', 1.357, 3)
    """
    each = epsilon / queries
    if delta > 0 and queries > 1:
        each = calibrate(
            lambda found: [Composed(((ApproxDP(found), queries),))],
            epsilon, delta, direction="epsilon", bracket=(each * (1 - 1e-9), 1.1 * epsilon), tolerance=1e-6,
        ).parameter  # fmt: skip
    laplace = DiscreteLaplace(each, sensitivity, cells=queries)
    choices = [("Laplace", laplace.standard_error, laplace.error(confidence, every_cell=True))]
    if delta > 0:
        # By the curve of continuous noise: that of noise as narrow as a step rises and falls.
        multiplier = calibrate(
            lambda found: [Composed(((GaussianNoise(found), queries),))], epsilon, delta
        ).parameter
        gaussian = DiscreteGaussian(multiplier * sensitivity, 1, cells=queries)
        choices.append(("Gaussian", gaussian.standard_error, gaussian.error(confidence, every_cell=True)))
    name, standard_error, error = min(choices, key=lambda choice: choice[2])
    return SplitBudget(name, standard_error, math.ceil(error))
