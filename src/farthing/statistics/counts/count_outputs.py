"""Counts as outputs: sums of the cells of one slot, with the exact distribution of their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from farthing.inference import (
    Answer,
    ErrorDistribution,
    StatedDistribution,
    Term,
    nearest_nonnegative,
    rounded,
)
from farthing.inference.noise_terms import variance_of
from farthing.inference.noisy_numbers import CellNoise, NoisyCells, Spread
from farthing.statistics.measurements import Integers, Kind, Noise, Output, Slot

Places = NDArray[np.int64]

NEAR = 2.0
"""Cells up to this many standard deviations of their noise are near zero, and move alike."""

LARGEST = 2**45
"""Counts from here on are not made whole: doubles are too coarse for it."""


def consistent_cells(cells: NDArray[Any], members: Sequence[Places], deviation: float) -> NDArray[Any]:
    """The cells of a slot, moved so that no count that is a sum of them is negative and totals stay what they are.

    Whole numbers stay whole; estimates, which are not, need not become so.

    `members` is, for each statistic, the place of every cell in it, -1 for none. Statistics without a negative count
    keep all of their counts, unless even their cells near zero are negative together; the others keep their total.

    >>> everybody, by_age = np.array([0, 0, 0, 0]), np.array([0, 1, 2, 3])
    >>> consistent_cells(np.array([500, 4, 3, -2]), [everybody, by_age], 2.0)
    array([500,   3,   2,   0])
    >>> consistent_cells(np.array([500, 4, -9, -2]), [by_age], 2.0)
    array([493,   0,   0,   0])
    """
    near = np.clip(cells, -(2**53), 2**53)  # noise without a limit may leave 64 bits
    plain: NDArray[Any] = near if near.dtype.kind == "f" else near.astype(np.int64)
    negative = [bool((_sums(plain, places) < 0).any()) for places in members]
    if not any(negative):
        return plain
    # Of a statistic with a negative count it is the total that stays: one count of all its cells.
    wholes = [np.where(places >= 0, 0, -1) for places, below in zip(members, negative, strict=True) if below]
    kept = [places for places, below in zip(members, negative, strict=True) if not below]
    moving = np.flatnonzero(np.any(np.array(wholes) >= 0, axis=0))
    settled = plain.copy()
    for whole in _blocks(moving, wholes):
        parts = _blocks(whole, kept)
        sums = np.array([plain[part].sum() for part in parts], dtype=plain.dtype)
        if (sums < 0).any():
            sizes = np.sqrt([float(len(part)) for part in parts])
            sums = settled_counts(sums, max(0, sums.sum()), deviation * sizes)
        for part, total in zip(parts, sums.tolist(), strict=True):
            settled[part] = settled_counts(plain[part], total, np.full(len(part), deviation))
    return settled


def settled_counts(values: NDArray[Any], total: float, deviations: Floats) -> NDArray[Any]:
    """Numbers >= 0 with the given total, near to `values`, whole where these are; see `counts_of_total`.

    >>> settled_counts(np.array([4, 3, -2]), 5, np.full(3, 2.0))
    array([3, 2, 0])
    """
    if bool(total == values.sum()) and not (values < 0).any():
        return values
    if values.dtype.kind == "f":
        return np.asarray(counts_of_total(values, float(total), deviations))
    # So much noise that doubles are whole steps: what has been paid for is not refused.
    if not total < LARGEST:
        return np.asarray(np.maximum(values, 0))
    return rounded(counts_of_total(values.astype(np.float64), float(total), deviations), int(total))


def counts_of_total(values: Floats, total: float, deviations: Floats) -> Floats:
    """Numbers >= 0 with the given total, near to `values`; the larger a cell, the less it moves.

    Moving all cells alike would push every large count down by what the empty cells have too much: a bias where counts
    matter most. So beyond two standard deviations of its noise a cell moves in inverse proportion to its square.

    >>> counts_of_total(np.array([500.0, 4.0, 3.0, -2.0]), 505.0, np.full(4, 2.0)).round(2)
    array([500.,   3.,   2.,   0.])
    """
    large = NEAR * deviations
    return nearest_nonnegative(values, total, np.square(large / np.maximum(values, large)))


def moved_note(plain: Floats, values: Floats, deviations: Floats) -> str:
    """What is said where counts below zero were made up by others: nothing where that is little beside the noise.

    >>> moved_note(np.array([500.0, 4.0, -2.0]), np.array([499.0, 3.0, 0.0]), np.full(3, 2.0))
    ''
    >>> moved_note(np.array([3.0, -9.0]), np.array([0.0, 0.0]), np.full(2, 2.0))
    'the noisy total was below zero: the counts add up to 0; `raw` has the unadjusted numbers'
    """
    total = float(plain.sum())
    if total < -0.5 and (values < 0.5).all():
        return "the noisy total was below zero: the counts add up to 0; `raw` has the unadjusted numbers"
    lowered = (plain > 0) & (plain - values > deviations)
    if not lowered.any():
        return ""
    return (
        f"counts below zero were set to 0 and others lowered to keep the total, {int(lowered.sum()):,} of them by more "
        "than a standard error: single small counts may be off by up to 1.6 times their error; `raw` has the "
        "unadjusted numbers"
    )


def _sums(cells: NDArray[Any], places: Places) -> NDArray[Any]:
    inside = places >= 0
    sums = np.zeros(int(places.max(initial=-1)) + 1, dtype=cells.dtype)
    np.add.at(sums, places[inside], cells[inside])
    return sums


def _blocks(cells: Places, partitions: Sequence[Places]) -> list[Places]:
    """Those of the cells that lie in the same counts of all partitions, together."""
    if not partitions or not len(cells):
        return [cells] if len(cells) else []
    block = np.zeros(len(cells), dtype=np.int64)
    for places in partitions:  # renumbered every time, so that the numbers stay small
        own = places[cells]
        _, block = np.unique(block * (int(own.max(initial=0)) + 2) + own + 1, return_inverse=True)
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order])) + 1
    return np.split(cells[order], starts)


WIDE = 3.0
"""From this scale on, steps of whole numbers are small beside the noise."""


def smooth_noise(kind: Kind) -> tuple[Literal["laplace", "normal"], float]:
    """A kind of noise, and a scale, on so fine a grid that it has none.

    It differs from the noise in whole numbers by less than a step, and its distribution is the same at every scale.
    """
    assert kind != "exponential"
    return ("laplace", 4096.0) if kind == "laplace" else ("normal", 1.0)


def smooth_factor(slot: Slot, noise: Noise) -> float:
    """What the smooth noise is multiplied by to have the variance of the slot's."""
    return math.sqrt(slot.variance(noise) / variance_of(*smooth_noise(noise.kind)))


def block_of(slot: Slot, noise: Noise) -> tuple[str, Literal["laplace", "gaussian"], float]:
    """The noise of a slot's numbers: which it is, its kind and its scale."""
    assert noise.kind != "exponential"
    return slot.name, noise.kind, slot.scale(noise)


class RememberedDistribution(ErrorDistribution):
    """A distribution that finds the error at a confidence once."""

    @cached_property
    def _errors(self) -> dict[float, float]:
        return {}

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        if confidence not in self._errors:
            self._errors[confidence] = super().error(confidence)
        return self._errors[confidence]

    @cached_property
    def _of_cells(self) -> dict[float, Floats]:
        return {}

    def errors(self, confidence: float = 0.95) -> Floats:
        if confidence not in self._of_cells:
            self._of_cells[confidence] = super().errors(confidence)
        return self._of_cells[confidence]

    @cached_property
    def _largest(self) -> dict[float, float]:
        return {}

    def worst(self, confidence: float = 0.95) -> float:
        if confidence not in self._largest:
            self._largest[confidence] = super().worst(confidence)
        return self._largest[confidence]


class ScaledDistribution(StatedDistribution):
    """A smooth distribution times a factor; for whole numbers, with errors rounded up to whole numbers."""

    def __init__(self, distribution: RememberedDistribution, factor: float, *, whole: bool = False) -> None:
        step = np.ceil if whole else np.asarray
        super().__init__(distribution.standard_errors * factor, lambda level: step(distribution.errors(level) * factor))
        self._distribution, self._factor, self._whole = distribution, factor, whole

    def error(self, confidence: float = 0.95) -> float:
        """The least e that holds the asked share of errors, all cells taken together."""
        return self._stepped(self._distribution.error(confidence) * self._factor)

    def worst(self, confidence: float = 0.95) -> float:
        return self._stepped(self._distribution.worst(confidence) * self._factor)

    def _stepped(self, error: float) -> float:
        return math.ceil(error) if self._whole else error


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactOutput(Output):
    """Counts that are public already: the number of rows where that is public and fixed, or of rows that cannot be."""

    values: Floats = field(kw_only=True)

    @property
    def coefficients(self) -> Mapping[str, Floats]:
        return {}

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        return ErrorDistribution((), len(self.values))

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        distribution = self.predicted(noises)
        return Answer.around(self.name, self.values, distribution, self.labels, confidence=confidence, least=0.0)

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise:
        return CellNoise((), NoisyCells(tuple(self.values.tolist()), ()), least=0.0)


@dataclass(frozen=True, eq=False)
class CountOutput(Output):
    """Counts that are sums of cells of one slot: `members` is the place of every cell of the slot, -1 for none."""

    members: NDArray[np.int64] = field(kw_only=True)
    together: tuple[NDArray[np.int64], ...] = field(kw_only=True)  # members of all counts from the same slot
    expected: Floats = field(kw_only=True)
    rows_per_unit: int = field(kw_only=True, default=1)

    @property
    def independent(self) -> bool:
        """A cell of the slot is part of one count at most; but units that come and go bring several counts."""
        return not self.statistic.for_population

    @cached_property
    def parts(self) -> NDArray[np.int64]:
        """How many cells of the slot each count is the sum of."""
        return np.bincount(self.members[self.members >= 0], minlength=len(self.reference))

    @cached_property
    def coefficients(self) -> Mapping[str, Floats]:
        """As many variances as there are parts."""
        return {self.slots[0].name: self.parts.astype(np.float64)}

    @property
    def alone(self) -> Mapping[str, Floats]:
        """Every count would be one cell; one of rows that cannot be, none."""
        return {self.slots[0].name: np.minimum(self.parts, 1).astype(np.float64)}

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorDistribution:
        """The exact distribution of a sum of independent noises; of wide ones, up to a step of whole numbers."""
        (slot,) = self.slots
        noise = noises[slot.name]
        if self.statistic.for_population or not slot.scale(noise) >= WIDE or np.all(self.parts <= 1):
            return self._distribution(noises, self.expected)
        kind, scale = smooth_noise(noise.kind)
        if kind not in self._at_unit_scale:
            terms = [Term(kind, scale, 1.0, self._counts)]
            self._at_unit_scale[kind] = RememberedDistribution(terms, len(self.reference))
        return ScaledDistribution(self._at_unit_scale[kind], smooth_factor(slot, noise), whole=True)

    @cached_property
    def _at_unit_scale(self) -> dict[str, RememberedDistribution]:
        return {}

    def _distribution(self, noises: Mapping[str, Noise], counts: Floats) -> ErrorDistribution:
        (slot,) = self.slots
        noise = noises[slot.name]
        assert noise.kind != "exponential"
        terms = [Term(noise.kind, slot.scale(noise), 1.0, self._counts)]
        return ErrorDistribution([*terms, *self._sampling(counts)], len(self.reference))

    def _sampling(self, counts: Floats) -> list[Term]:
        if not self.statistic.for_population:
            return []
        # Units that come and go by themselves, each with up to so many rows: at most this variance.
        return [Term("normal", 1.0, np.sqrt(self.rows_per_unit * np.maximum(counts, 0.0)))]

    @cached_property
    def _counts(self) -> Any:
        alike = np.unique(self.parts)
        return int(alike[0]) if len(alike) == 1 else self.parts

    def answer(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95) -> Answer:
        """The sums, made into counts that agree with each other; the interval is that of the sums as they came."""
        (slot,) = self.slots
        cells = np.asarray(measured[slot.name])
        deviation = float(np.sqrt(slot.variance(noises[slot.name])))
        plain = self._sums(cells)
        values = self._sums(consistent_cells(cells, self.together, deviation))
        return Answer.around(
            self.name,
            values,
            self._distribution(noises, values),
            self.labels,
            confidence=confidence,
            centre=plain,
            least=0.0,
            note=moved_note(plain, values, deviation * np.sqrt(np.maximum(self.parts, 1))),
        )

    def noise_in(self, measured: Mapping[str, Integers], noises: Mapping[str, Noise]) -> CellNoise | None:
        """The noises of its cells, each once."""
        (slot,) = self.slots
        plain = self._sums(np.asarray(measured[slot.name]))
        cells = NoisyCells(tuple(plain.tolist()), (Spread(0, 1.0, tuple(self.members.tolist())),))
        return self.with_sampling(CellNoise((block_of(slot, noises[slot.name]),), cells, least=0.0), plain)

    def with_sampling(self, noise: CellNoise, counts: Floats) -> CellNoise:
        """The same with the errors of sampling, where it is about a population."""
        if not self.statistic.for_population:
            return noise
        sampling = np.sqrt(self.rows_per_unit * np.maximum(counts, 0.0))
        return replace(noise, sampling=tuple(sampling.tolist()), apart=self.rows_per_unit == 1)

    def _sums(self, cells: NDArray[Any]) -> Floats:
        inside = self.members >= 0
        return np.bincount(
            self.members[inside], weights=cells[inside].astype(np.float64), minlength=len(self.reference)
        ).astype(np.float64)
