"""The slow twin for many charges on a lattice: the whole distribution of the loss, one charge after the other.

Two-tap convolutions of positive numbers in extended precision lose about one unit in the last place per charge and
nothing by cancellation, so the relative error of every tail is below (number of charges) * 4 units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_Long = np.longdouble
_UNIT = float(np.finfo(_Long).eps)


@dataclass(frozen=True)
class LatticeTwin:
    """P[loss = (top - 2 i) * step] for i = 0, 1, ..., top."""

    step: float
    top: int
    masses: Any
    error: float

    @classmethod
    def of(cls, multiples: Sequence[int], step: float) -> LatticeTwin:
        """Charges multiples[i] * step, one after the other."""
        masses = np.zeros(sum(multiples) + 1, dtype=_Long)
        masses[0], reached = 1, 0
        for multiple in multiples:
            wrong = np.exp(_Long(-multiple) * _Long(step))
            told = 1 / (1 + wrong)
            # A lie costs 2 * multiple steps of loss, that is `multiple` cells.
            reached += multiple
            shifted = masses[: reached - multiple + 1] * (wrong * told)
            masses[: reached + 1] *= told
            masses[multiple : reached + 1] += shifted
        return cls(step, sum(multiples), masses, 8 * _UNIT * (len(multiples) + 8))

    def log_curve(self, x: float) -> float:
        """log D(x), with relative error `error` in D."""
        loss = (self.top - 2 * np.arange(self.top + 1)) * _Long(self.step)
        use = loss > x
        total = np.sum(self.masses[use] * -np.expm1(_Long(x) - loss[use]))
        return float(np.log(total)) if total > 0 else -math.inf

    def epsilon_at(self, delta: float) -> float:
        """The least x with D(x) <= delta: the curve is tail - e^x other between two losses."""
        loss = (self.top - 2 * np.arange(self.top + 1)) * _Long(self.step)
        tail, other = np.cumsum(self.masses), np.cumsum(self.masses * np.exp(-loss))
        curve = tail[:-1] * -np.expm1(loss[1:] + np.log(other[:-1] / tail[:-1]))
        above = np.flatnonzero(curve > delta)
        place = int(above[0]) if len(above) else len(loss) - 1
        root = np.log(tail[place] / other[place]) + np.log1p(-_Long(delta) / tail[place])
        return max(0.0, float(root))
