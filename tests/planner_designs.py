"""Designs made by hand, for tests of the planner: slots with noise, and outputs that are linear in them or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from farthing.data import Count
from farthing.data.stability import Sensitivity
from farthing.privacy import BoundedRange, Composed, Event
from farthing.statistics.measurements import Noise, Slot


@dataclass(frozen=True)
class HandDistribution:
    """A normal error, in steps of `step` if that is not 0."""

    standard_error: float
    step: float = 0.0

    def error(self, confidence: float) -> float:
        width = self.standard_error * NormalDist().inv_cdf(0.5 + confidence / 2)
        return width if not self.step else float(np.ceil(width / self.step) * self.step)

    worst = error


@dataclass(frozen=True)
class HandOutput:
    """Linear in its slots."""

    name: str
    slots: tuple[Slot, ...]
    reference: Any
    coefficients: Mapping[str, Any]
    step: float = 0.0
    condition = depends_on = limitless = assumed_column = ""
    holds = "in every release"
    links = None

    @property
    def alone(self) -> Mapping[str, Any]:
        return self.coefficients

    def predicted(self, noises: Mapping[str, Noise]) -> HandDistribution:
        variances = sum(self.coefficients[slot.name] * slot.variance(noises[slot.name]) for slot in self.slots)
        return HandDistribution(float(np.sqrt(np.mean(variances))), self.step)

    promised = predicted


@dataclass(frozen=True)
class ChoiceOutput:
    """A quantile-like output: its error falls with epsilon, first fast, then to a floor."""

    name: str
    slots: tuple[Slot, ...]
    reference: Any
    spread: float
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    condition = depends_on = limitless = assumed_column = ""
    holds = "in every release"
    links = None
    choices = (1, 1.0)

    @property
    def alone(self) -> Mapping[str, Any]:
        return {}

    def variance_curve(self, epsilon: float) -> Any:
        return np.array([(self.spread / epsilon) ** 2 + 0.01])

    alone_curve = variance_curve

    def predicted(self, noises: Mapping[str, Noise]) -> HandDistribution:
        return HandDistribution(float(np.sqrt(self.variance_curve(noises[self.slots[0].name].parameter)[0])))

    promised = predicted


@dataclass(frozen=True)
class ChoiceSlot(Slot):
    """A choice by exponential weights in so many parts."""

    parts: int = 1

    def event(self, noise: Noise) -> Event:
        return Composed(((BoundedRange(noise.parameter / self.parts), self.parts),))


@dataclass(frozen=True, eq=False)
class HandDesign:
    slots: tuple[Slot, ...]
    outputs: tuple[Any, ...]


def slot(name: str, moved: int = 1, cells: int = 1, kinds: Any = ("laplace", "gaussian")) -> Slot:
    sensitivity = Sensitivity(l0=1, l1=moved, l2_squared=moved**2, linf=moved)
    return Slot(name, Count(), sensitivity, cells, kinds=kinds)


def choice(name: str, parts: int = 1) -> ChoiceSlot:
    return ChoiceSlot(
        name, Count(), Sensitivity(l0=1, l1=1, l2_squared=1, linf=1), 1, kinds=("exponential",), parts=parts
    )


def counts(
    references: Sequence[float], moved: Sequence[int] | None = None, kinds: Any = ("laplace", "gaussian")
) -> HandDesign:
    """One slot and one output "o<i>" for each reference: what its relative error is relative to."""
    steps = moved or [1] * len(references)
    slots = tuple(slot(f"s{i}", steps[i], kinds=kinds) for i in range(len(references)))
    outputs = tuple(
        HandOutput(f"o{i}", (slots[i],), np.array([float(r)]), {f"s{i}": np.ones(1)}) for i, r in enumerate(references)
    )
    return HandDesign(slots, outputs)


def mixed() -> HandDesign:
    """A histogram, two sums that share a count, a fine sum, and two choices."""
    histogram, number = slot("histogram", cells=12), slot("number")
    small, fine = slot("small sum", 60), slot("fine sum", 100_000)
    median, quartiles = choice("median"), choice("quartiles", 2)
    return HandDesign(
        (histogram, number, small, fine, median, quartiles),
        (
            HandOutput("histogram", (histogram,), np.full(12, 800.0), {"histogram": np.ones(12)}),
            HandOutput(
                "mean",
                (small, number),
                np.array([40.0]),
                {"small sum": np.array([1e-8]), "number": np.array([2e-5])},
            ),
            HandOutput("total", (fine,), np.array([3e6]), {"fine sum": np.ones(1)}),
            HandOutput("number", (number,), np.array([1e4]), {"number": np.ones(1)}),
            ChoiceOutput("median", (median,), np.array([50.0]), 0.5),
            ChoiceOutput("quartiles", (quartiles,), np.array([50.0]), 1.5),
        ),
    )
