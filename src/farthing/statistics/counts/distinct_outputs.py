"""How many different values a column has: one measured number for each group, with the exact distribution of its noise.

A unit changes it by at most as many values as are kept of it, and in one group by at most all that are listed. Where
nobody listed them, there is one number, and no most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import axis_of
from farthing.data.aggregates.distinct_counts import DistinctCount
from farthing.data.aggregates.distinct_keys import DistinctKeys
from farthing.data.aggregates.unit_bounds import Bounded
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.inference.answers import SymmetricInterval
from farthing.inference.error_distributions import WorstDistribution
from farthing.statistics.counts.count_queries import group_axes, labels_of
from farthing.statistics.coverage import bound_in, counts_all_values, values_kept
from farthing.statistics.measurements import Integers, Noise, Output, Slot
from farthing.statistics.public_facts import Assumption, Facts, checked_expectation
from farthing.statistics.statistic import Statistic

Floats = NDArray[np.float64]

_SUPPOSED = 1_000.0  # different values, where nobody listed or expects any: it weighs one statistic against another


@dataclass(frozen=True)
class DistinctOutput(Output):
    """The number of different values, between 0 and all that the schema lists; without a list, `values` is infinite."""

    values: float = field(kw_only=True)

    @property
    def independent(self) -> bool:
        return True

    @property
    def coefficients(self) -> Mapping[str, Floats]:
        return {self.slots[0].name: np.ones(len(self.reference))}

    @property
    def most(self) -> float:
        return float(self.values)

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """That of the noise, whatever the truth; the released number and the true one are both within the list."""
        return WorstDistribution([self._noise(noises)], self.most)

    def _noise(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        (slot,) = self.slots
        noise = noises[slot.name]
        assert noise.kind != "exponential"
        return ErrorDistribution([Term(noise.kind, slot.scale(noise), 1.0)], len(self.reference))

    def limits(self, measured: Mapping[str, Integers]) -> tuple[Floats | float, Floats | float] | None:
        return 0.0, float(self.values)

    def caution(self, noises: Mapping[str, Noise]) -> str:
        if not float(np.min(self._noise(noises).errors(0.95))) >= self.most:
            return ""
        return (
            f"{self.name!r} is noise: it can be off by all {self.values:,} listed values; use a longer list of values, "
            "raise its weight, or set a smaller max_cells="
        )

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The noisy number, moved to what the list of values allows; the interval is around it as it came."""
        plain = np.asarray(measured[self.slots[0].name], dtype=np.float64).reshape(-1)
        noise = self._noise(noises)
        return Answer.within(
            self.name,
            np.clip(plain, 0.0, self.values),
            np.minimum(noise.standard_errors, self.most),
            SymmetricInterval(plain, noise, 0.0, self.most),
            self.labels,
            confidence=confidence,
            raw=plain,
        )


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[list[Slot], list[Output], dict[str, Any], list[Assumption]]:
    """A slot and an output for each statistic; nothing is assumed."""
    slots: dict[str, Slot] = {}  # by what they count: it may be asked for under two names
    outputs: list[Output] = []
    for statistic in statistics:
        if counts_all_values(statistic, facts.dataset):
            slot, output = _of_open_text(statistic, facts)
            slots[output.name] = slot
            outputs.append(output)
            continue
        values_of = DistinctCount(statistic.column, by=statistic.by, where=statistic.where)
        bound = bound_in(statistic, facts.dataset)
        aggregate = values_of if bound is None else Bounded(values_of, bound)
        axes = group_axes(statistic.by, facts.schema) if statistic.by else ()
        cells = math.prod(len(axis) for axis in axes)
        values = len(axis_of(statistic.column, facts.schema))
        sensitivity = facts.dataset.sensitivity(aggregate)
        # No other slot begins with these words, and no two statistics of a plan have one name.
        slot = slots.setdefault(
            repr(aggregate), Slot(f"different values: {statistic.name}", aggregate, sensitivity, cells)
        )
        given = facts.expected.get(statistic.name)
        expected = np.full(cells, float(values)) if given is None else checked_expectation(statistic.name, given, cells)
        labels = labels_of(axes) if axes else ()
        outputs.append(DistinctOutput(statistic, labels, (slot,), np.maximum(expected, 1.0), values=values))
    return list(slots.values()), outputs, {}, []


def _of_open_text(statistic: Statistic, facts: Facts) -> tuple[Slot, DistinctOutput]:
    """The number of different values that nobody listed, of which a unit brings at most so many."""
    rules = facts.schema.open_text(statistic.column)
    assert rules is not None
    dataset = facts.dataset
    aggregate = DistinctKeys(statistic.column, values_kept(statistic, dataset), rules)
    slot = Slot(f"different values: {statistic.name}", aggregate, dataset.sensitivity(aggregate), 1)
    given = facts.expected.get(statistic.name)
    expected = np.full(1, _SUPPOSED) if given is None else checked_expectation(statistic.name, given, 1)
    return slot, DistinctOutput(statistic, (), (slot,), np.maximum(expected, 1.0), values=math.inf)
