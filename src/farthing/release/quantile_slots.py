"""Quantiles as measurements: points chosen from counts of rows, and noisy counts of the rows around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.quantile_surroundings import CHOICE_SHARE, GROWTH, QuantileSurroundings
from farthing.mechanisms.quantiles import NeighboringRelation
from farthing.privacy import Event
from farthing.release.noise import Noise
from farthing.release.slots import Integers, Slot

__all__ = ["CHOICE_SHARE", "QuantileSlot"]


@dataclass(frozen=True)
class QuantileSlot(Slot):
    """Counts of rows at the points of a grid: points are chosen, and the rows around them counted with noise."""

    probabilities: tuple[float, ...] = (0.5,)
    points: int = 1
    groups: int = 1
    max_rows: int = 1
    neighbours: str = "add-remove"

    @property
    def facts(self) -> list[Any]:
        """Also how rows around the choice are counted: earlier versions did so in other ways, or not at all."""
        return [*super().facts, "surroundings", str(CHOICE_SHARE), str(GROWTH)]

    def mechanism(self, noise: Noise) -> QuantileSurroundings:
        """The choice among the points and the counts around it, with this epsilon for everything together."""
        self._check(noise)
        return QuantileSurroundings(
            self.probabilities,
            noise.parameter,
            self.points,
            self.groups,
            self.max_rows,
            cast(NeighboringRelation, self.neighbours),
            self.sensitivity.l1,
        )

    def event(self, noise: Noise) -> Event:
        """One choice for each probability and one noise, however many groups there are."""
        return self.mechanism(noise).event

    def scale(self, noise: Noise) -> float:
        """There is none: the value of a quantile is chosen."""
        raise AssertionError(f"{self.name!r} is a choice, not a number with noise")

    def measure(self, exact: NDArray[Any], noise: Noise) -> Integers:
        """For each group and probability the number of a point of the grid, then the noisy counts around them."""
        return np.asarray(self.mechanism(noise).release(exact)).reshape(-1)
