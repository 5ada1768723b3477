"""Choices of quantiles: measurements without noise, from counts of rows at the points of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.counted_quantiles import CountedQuantiles
from farthing.mechanisms.quantiles import NeighboringRelation
from farthing.privacy import Event
from farthing.release.noise import Noise
from farthing.release.slots import Integers, Slot


@dataclass(frozen=True)
class QuantileSlot(Slot):
    """Counts of rows at the points of a grid, from which points are chosen. No noise is added to anything."""

    probabilities: tuple[float, ...] = (0.5,)
    points: int = 1
    groups: int = 1
    max_rows: int = 1
    neighbours: str = "add-remove"

    def mechanism(self, noise: Noise) -> CountedQuantiles:
        """The choice among the points, with this epsilon for all the probabilities together."""
        self._check(noise)
        return CountedQuantiles(
            self.probabilities,
            noise.parameter,
            self.points,
            self.groups,
            self.max_rows,
            cast(NeighboringRelation, self.neighbours),
        )

    def event(self, noise: Noise) -> Event:
        """One choice for each probability, however many groups there are."""
        return self.mechanism(noise).event

    def scale(self, noise: Noise) -> float:
        """There is none."""
        raise AssertionError(f"{self.name!r} is a choice, not a number with noise")

    def measure(self, exact: NDArray[Any], noise: Noise) -> Integers:
        """For each group and probability, the number of a point of the grid."""
        return np.asarray(self.mechanism(noise).release(exact)).reshape(-1)
