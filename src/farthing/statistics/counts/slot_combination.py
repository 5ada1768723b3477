"""Slots whose counts say something about each other: the best linear estimate from all of them.

Two partitions that were better measured apart may still overlap: two tables of the same columns, cut differently, have
the same total. Then every count is estimated from both by least squares, and its error shrinks, by a few percent as a
rule. Most slots have nothing in common, as a row without a value is in one of them and not in the other; they are left
as they are, and so are large ones, whose estimates would take longer than they gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorDistribution, LeastSquares, Term, rounded
from farthing.inference.least_squares import sums_matrix
from farthing.statistics.counts.cell_partitions import Group
from farthing.statistics.counts.count_outputs import (
    WIDE,
    CountOutput,
    counts_of_total,
    moved_note,
    smooth_factor,
    smooth_noise,
)
from farthing.statistics.counts.expected_shares import Places, joined
from farthing.statistics.measurements import Integers, Noise, Slot

Floats = NDArray[np.float64]

MOST_COMMON_CELLS = 64
_MOST_GROUPS = 24
_LEAST = 1e-9  # variance of noise that is next to none: estimates need some


@dataclass(frozen=True, eq=False)
class Combination:
    """Slots and their common refinement: for each slot, the cell of it that every common cell lies in, or -1."""

    slots: tuple[Slot, ...]
    members: tuple[Places, ...]
    _known: dict[tuple[Noise, ...], LeastSquares] = field(default_factory=dict, repr=False)

    def squares(self, noises: Mapping[str, Noise]) -> LeastSquares:
        """The estimate under these noises; the last one is kept, as all outputs ask for it."""
        key = tuple(noises[slot.name] for slot in self.slots)
        if key not in self._known:
            self._known.clear()
            variances = tuple(max(slot.variance(noise), _LEAST) for slot, noise in zip(self.slots, key, strict=True))
            self._known[key] = LeastSquares(self.members, variances)
        return self._known[key]


@dataclass(frozen=True, eq=False)
class CombinedOutput(CountOutput):
    """Counts estimated from several slots; `places` is the count that every common cell belongs to, or -1."""

    combination: Combination = field(kw_only=True)
    places: Places = field(kw_only=True)

    @property
    def independent(self) -> bool:
        """One measured number is part of several estimates."""
        return False

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The exact distribution of the linear estimate."""
        return self._combined_distribution(noises, self.expected)

    def _combined_distribution(self, noises: Mapping[str, Noise], counts: Floats) -> ErrorDistribution:
        coefficients = self.weights(noises)
        terms: list[Term] = []
        start = 0
        for slot in self.combination.slots:
            own = coefficients[:, start : start + slot.cells]
            terms.extend(_terms(slot, noises[slot.name], own[:, np.any(own, axis=0)]))
            start += slot.cells
        return ErrorDistribution([*terms, *self._sampling(counts)], len(self.reference))

    def weights(self, noises: Mapping[str, Noise]) -> Floats:
        """By how much every measured number of the combination enters into each count."""
        weights = np.zeros((len(self.reference), sum(slot.cells for slot in self.combination.slots)))
        own = self.combination.squares(noises).coefficients_of(self.places)
        weights[: len(own)] = np.where(np.abs(own) > 1e-12, own.round(12), 0.0)
        return weights

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The least-squares estimates, none of them below zero, whole where that was asked for."""
        numbers = [np.asarray(measured[slot.name], dtype=np.float64) for slot in self.combination.slots]
        plain = self.weights(noises) @ np.concatenate(numbers)
        values = self._counts_of(plain, noises)
        distribution = self._combined_distribution(noises, values)
        return Answer.around(
            self.name,
            values,
            distribution,
            self.labels,
            confidence=confidence,
            centre=plain,
            least=0.0,
            note=moved_note(plain, values, distribution.standard_errors),
        )

    def _counts_of(self, plain: Floats, noises: Mapping[str, Noise]) -> Floats:
        """The estimates without negative ones, with the same total; whole where that was asked for."""
        total = max(0.0, float(plain.sum()))
        if (plain < 0).any():
            deviations = self._combined_distribution(noises, plain).standard_errors
            plain = counts_of_total(plain, total, np.maximum(deviations, 1e-9))
        if not self.statistic.rounded or not total < 2**45:
            return np.maximum(plain, 0.0)
        return rounded(np.maximum(plain, 0.0), round(total)).astype(np.float64)


def _terms(slot: Slot, noise: Noise, coefficients: Floats) -> list[Term]:
    """One term for each cell of a slot. Estimates are on no grid, so that wide noise may as well be smooth."""
    assert noise.kind != "exponential"
    if not slot.scale(noise) >= WIDE:
        return [Term(noise.kind, slot.scale(noise), column) for column in coefficients.T]
    factor = smooth_factor(slot, noise)
    return [Term(*smooth_noise(noise.kind), column * factor) for column in coefficients.T]


def combinations_of(groups: Sequence[Group], slots: Sequence[Slot]) -> list[Combination]:
    """Groups that have sums in common, together; those that have none are in no combination."""
    if not 2 <= len(groups) <= _MOST_GROUPS:
        return []
    sets: list[list[int]] = []
    for number, group in enumerate(groups):
        for together in sets:
            if _have_sums_in_common([groups[other] for other in together], group):
                together.append(number)
                break
        else:
            sets.append([number])
    combinations = []
    for together in sets:
        common = _common_cells([groups[number] for number in together])
        if len(together) > 1 and common is not None:
            combinations.append(Combination(tuple(slots[number] for number in together), common))
    return combinations


def _have_sums_in_common(groups: Sequence[Group], other: Group) -> bool:
    """Whether some sum of cells is measured by the groups and by the other one, too."""
    if other.refinement.by_itself or any(group.refinement.by_itself for group in groups):
        return False
    common = _common_cells([*groups, other])
    if common is None:
        return False
    matrices = [sums_matrix(places) for places in common]
    alone = int(np.linalg.matrix_rank(np.vstack(matrices[:-1]))) + other.refinement.cells
    return int(np.linalg.matrix_rank(np.vstack(matrices))) < alone


def _common_cells(groups: Sequence[Group]) -> tuple[Places, ...] | None:
    """For each group, the cell of it that every cell of the common refinement lies in, or -1."""
    own = [
        replace(each, questions=each.questions[:1], members=(np.arange(each.cells),))
        for each in (group.refinement for group in groups)
    ]
    common = own[0]
    for refinement in own[1:]:
        if max(common.cells, refinement.cells) > MOST_COMMON_CELLS:
            return None
        both = joined(common, refinement)
        if both is None or both.cells > MOST_COMMON_CELLS:
            return None
        common = both
    return common.members
