"""A slot: one private measurement of a design, whose noise is chosen later by the planner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate_shape import Aggregate
from farthing.data.stability import Sensitivity
from farthing.errors import InvalidValue
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.gaussian_domination import vector_event
from farthing.mechanisms.mechanism import Mechanism
from farthing.mechanisms.noise_distributions import NoiseLaw
from farthing.mechanisms.quantile_surroundings import CHOICE_SHARE, GROWTH, QuantileSurroundings
from farthing.mechanisms.quantiles import NeighboringRelation
from farthing.privacy import Event
from farthing.privacy.events import checked_real

Kind = Literal["laplace", "gaussian", "exponential"]
KINDS: tuple[Kind, ...] = ("laplace", "gaussian", "exponential")


@dataclass(frozen=True, slots=True)
class Noise:
    """A kind of noise and its parameter: epsilon, or for the Gaussian sigma over the l2 sensitivity.

    >>> Noise("laplace", 0.5)
    Noise(kind='laplace', parameter=0.5)
    """

    kind: Kind
    parameter: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValue("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        number = checked_real(self.parameter, "parameter")
        if not 0 < number < math.inf:
            raise InvalidValue("parameter", self.parameter, "must be a finite number > 0")
        object.__setattr__(self, "parameter", number)


Integers = NDArray[np.int64]

WIDE_SIGMA = 30.0
"""From so many steps on, Gaussian noise on one number is priced by continuous noise."""


@dataclass(frozen=True)
class Slot:
    """A vector of whole numbers that an engine adds up, and how far one unit moves it.

    `step` is the size of one whole number in the units of the data. `merge` gives, for every cell of the aggregate,
    the cell of the slot it is added to before any noise (-1: left out); a row lies in one cell either way, so the
    sensitivity stays that of the aggregate.
    """

    name: str
    aggregate: Aggregate
    sensitivity: Sensitivity
    cells: int
    step: float = 1.0
    kinds: tuple[Kind, ...] = ("laplace", "gaussian")
    merge: tuple[int, ...] | None = None

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        """What the engine adds up for it, by names that no other slot has."""
        return {self.name: self.aggregate}

    @property
    def counted(self) -> Sensitivity:
        """How far one unit moves each of its aggregates, before anything is made of them."""
        return self.sensitivity

    @property
    def facts(self) -> list[Any]:
        """Everything public about it that decides what is measured, for a fingerprint."""
        return [self.name, repr(self.aggregate), repr(self.sensitivity), self.cells, self.step,
                None if self.merge is None else list(self.merge)]  # fmt: skip

    def told(self, noise: Noise) -> str:
        """How many numbers get the noise, in words."""
        return f"{self.cells:,} cell{'s' if self.cells > 1 else ''}"

    def mechanism(self, noise: Noise) -> Mechanism:
        """The mechanism that adds this noise to the slot's numbers."""
        self._check(noise)
        if noise.kind == "laplace":
            return DiscreteLaplace(noise.parameter, l1_sensitivity=self.sensitivity.l1, cells=self.cells)
        return DiscreteGaussian(noise.parameter, l2_sensitivity=self.sensitivity.l2, cells=self.cells)

    def event(self, noise: Noise) -> Event:
        """What the accountant prices.

        Where a unit moves one number only, wide Gaussian noise is priced as a vector's is, by continuous noise that
        dominates it: from a sigma of 30 steps on that costs a quarter of a percent or less, and the accountant answers
        in milliseconds, where exact lattices of many widths would take it minutes.
        """
        mechanism = self.mechanism(noise)
        if not (noise.kind == "gaussian" and self.moves_one_number and self.scale(noise) >= WIDE_SIGMA):
            return mechanism.event
        l2 = math.floor(self.sensitivity.l2)  # whole numbers move by whole steps
        return vector_event((Fraction(noise.parameter) * l2) ** 2, l2, 1)

    @property
    def moves_one_number(self) -> bool:
        """Whether a unit moves one of the slot's numbers only, in l2: whole vectors of norm 1 have one entry."""
        return self.cells == 1 or self.sensitivity.l2_squared == 1

    def law(self, noise: Noise) -> NoiseLaw:
        """The exact law of the noise in one cell, in whole steps."""
        law: NoiseLaw = self.mechanism(noise).law  # type: ignore[attr-defined]
        return law

    def scale(self, noise: Noise) -> float:
        """The scale t of exp(-|n| / t) for Laplace noise, sigma for Gaussian noise; in steps."""
        self._check(noise)
        if noise.kind == "laplace":
            return self.sensitivity.l1 / noise.parameter
        return self.sensitivity.l2 * noise.parameter

    def variance(self, noise: Noise) -> float:
        """The variance of the noise in one cell, in squared steps."""
        scale = self.scale(noise)
        if noise.kind == "laplace":
            return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > 1e-2 else 0.0
        # From sigma = 2 on the discrete Gaussian's variance is sigma^2 to 1e-30.
        return scale**2 if scale >= 2 else self.law(noise).variance

    def measure(self, exact: NDArray[Any], noise: Noise) -> Integers:
        """The slot's numbers with noise, drawn from the operating system's randomness."""
        released = self.mechanism(noise).release(self.merged(exact))
        return np.asarray(released).reshape(-1)

    def own(self, exact: Mapping[str, NDArray[Any]]) -> Any:
        """Its part of what the engine added up for everybody; private."""
        return exact[self.name]

    def merged(self, exact: NDArray[Any]) -> NDArray[Any]:
        """The aggregate's cells added up into those of the slot; still private."""
        flat = np.asarray(exact).reshape(-1)
        if self.merge is None:
            return flat
        places = np.asarray(self.merge)
        totals = np.zeros(self.cells, dtype=flat.dtype)
        inside = places >= 0
        np.add.at(totals, places[inside], flat[inside])
        return totals

    def _check(self, noise: Noise) -> None:
        if noise.kind not in self.kinds:
            raise InvalidValue("noise", noise.kind, f"must be {' or '.join(self.kinds)} for {self.name!r}")


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
