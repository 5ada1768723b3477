"""Recognise epsilons that share a lattice.

People type decimals, repeat one value, or split a budget into equal parts: then every epsilon is a whole multiple of
one step s, the composed loss lives on a lattice of span d = 2 s gcd(multiples), and nothing has to be discretised.

The inputs are doubles, and the double 0.1 is not a tenth. If |e_i - n_i s| <= 2^-51 e_i for all i, the doubles lie
between the two exact lattices of steps s (1 - 2^-51) and s (1 + 2^-51); the optimum is monotone in every epsilon
(randomized response of a smaller epsilon is a garbling of a larger one), so bounds that hold for every step in that
range hold for the doubles as given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.loss_transforms import Array

RELATIVE_ERROR = 2.0**-51
"""How far, relatively, an epsilon may lie from its lattice point."""

_LARGEST_MULTIPLE = 2**40


@dataclass(frozen=True, eq=False)
class Lattice:
    """epsilons[i] = multiples[i] * step, up to RELATIVE_ERROR; the multiples have no common divisor."""

    step: float
    multiples: NDArray[np.int64]

    @property
    def span(self) -> float:
        """The distance between neighbouring losses: one randomized response moves the loss by twice its epsilon."""
        return 2 * self.step


def recognise(epsilons: Array) -> Lattice | None:
    """The coarsest lattice that holds all (positive) `epsilons`, or None.

    >>> import numpy as np
    >>> recognise(np.array([0.1, 0.25, 0.3])).step
    0.05
    >>> recognise(np.array([0.1, 2**0.5])) is None
    True
    """
    if not len(epsilons):
        return None
    smallest = float(epsilons.min())
    if smallest == float(epsilons.max()):
        return Lattice(smallest, np.ones(len(epsilons), dtype=np.int64))
    for candidate in _candidates(epsilons, smallest):
        multiples = _multiples(epsilons, candidate)
        if multiples is not None:
            common = int(np.gcd.reduce(multiples))
            coarse = multiples // common
            # The candidate as people typed it, else a step fitted to the largest epsilon.
            top = int(np.argmax(epsilons))
            for step in (candidate[0] * common / candidate[1], float(epsilons[top]) / int(coarse[top])):
                if np.all(np.abs(coarse * step - epsilons) <= 0.99 * RELATIVE_ERROR * epsilons):
                    return Lattice(step, coarse)
    return None


def _candidates(epsilons: Array, smallest: float) -> list[tuple[float, float]]:
    """Steps worth trying, as fractions (numerator, denominator), after a look at a few values."""
    few = epsilons[:: max(1, len(epsilons) // 16)][:17]
    steps: list[tuple[float, float]] = [(1.0, 10.0**digits) for digits in range(13)]
    steps += [(smallest, float(q)) for q in range(1, 65)]
    return [step for step in steps if _multiples(few, step) is not None]


def _multiples(epsilons: Array, step: tuple[float, float]) -> NDArray[np.int64] | None:
    """The whole numbers n with n * step = epsilons to within RELATIVE_ERROR, or None."""
    ratio = epsilons * (step[1] / step[0]) if step[0] != 1.0 else epsilons * step[1]
    nearest = np.rint(ratio)
    if not (nearest.min() >= 1 and nearest.max() <= _LARGEST_MULTIPLE):
        return None
    back = nearest / step[1] if step[0] == 1.0 else nearest * step[0] / step[1]
    if not np.all(np.abs(back - epsilons) <= RELATIVE_ERROR * epsilons):
        return None
    return nearest.astype(np.int64)
