"""Real numbers on a power-of-two grid, with the rounding counted into the sensitivity.

Noise is added to integers, where arithmetic is exact. A real value becomes the nearest multiple of the grid's step,
and what rounding can add to the distance between neighbours is added to the sensitivity, so nothing is left to the
low bits of a double.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms.mechanism import SATURATION
from farthing.numerics.bounds import rounded_up
from farthing.privacy.events import checked_real

_FINEST, _COARSEST = -900, 900  # exponents: steps and their multiples stay normal doubles


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of `step`, a power of two.

    >>> grid = Grid(0.25)
    >>> grid.steps(np.array([0.1, 0.13, -7.0])).tolist()
    [0, 1, -28]
    >>> grid.l1_steps(3.0, cells=1), grid.l1_steps(3.0, cells=10)
    (12, 21)
    """

    step: float

    def __post_init__(self) -> None:
        step = checked_real(self.step, "grid")
        if not (0 < step < math.inf and math.frexp(step)[0] == 0.5):
            raise InvalidValue("grid", self.step, "must be a power of two", "for example 2**-10 or 0.25")
        if not _FINEST <= math.frexp(step)[1] - 1 <= _COARSEST:
            raise InvalidValue("grid", self.step, "must be between 2**-900 and 2**900")
        object.__setattr__(self, "step", step)

    def steps(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Each value to its nearest multiple (halves go up), clamped to +-2^62 steps.

        Dividing by a power of two is exact (or overflows into the clamp, or underflows to zero, where it belongs).
        floor(x + 1/2) is computed as a comparison because x + 1/2 itself may round. Rounding by floor commutes with
        whole steps, so two values at most d apart are at most ceil(d / step) steps apart.
        """
        with np.errstate(over="ignore", under="ignore"):
            scaled = values / self.step
        scaled = np.clip(scaled, -float(SATURATION), float(SATURATION))
        below = np.floor(scaled)
        return np.asarray(below + (scaled - below >= 0.5), np.int64)

    def values(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Multiples back as doubles. Beyond 2^53 steps the double is the nearest one: rounding an answer is free."""
        return np.asarray(steps, np.float64) * self.step

    def l1_steps(self, l1_sensitivity: float, cells: int) -> int:
        """How far, in steps, neighbours `l1_sensitivity` apart can be in l1 after rounding each of `cells` cells.

        A cell that moved by d moves by at most ceil(d), which is less than d + 1; so the sum of `cells` of them is an
        integer below l1_sensitivity / step + cells.
        """
        return math.ceil(Fraction(l1_sensitivity) / Fraction(self.step)) + cells - 1

    def l2_steps(self, l2_sensitivity: float, cells: int) -> float:
        """The same in l2, rounded up: rounding adds a vector with entries below 1, of norm below sqrt(cells)."""
        moved = Fraction(l2_sensitivity) / Fraction(self.step)
        if cells == 1:
            return float(math.ceil(moved))
        return rounded_up(moved + Fraction(math.nextafter(math.sqrt(cells), math.inf)))
