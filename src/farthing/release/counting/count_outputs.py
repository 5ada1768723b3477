"""Counts as outputs: sums of the cells of one slot, with the exact law of their noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer, ErrorLaw, Term
from farthing.release.counting.consistency import moved_note, settled_cells
from farthing.release.counting.laws import WIDE, RememberedLaw, ScaledLaw, smooth_factor, smooth_noise
from farthing.release.noise import Noise
from farthing.release.outputs import Output
from farthing.release.slots import Integers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactOutput(Output):
    """Counts that are public already: the number of rows where that is public and fixed, or of rows that cannot be."""

    values: Floats = field(kw_only=True)

    @property
    def coefficients(self) -> Mapping[str, Floats]:
        """Nothing is measured."""
        return {}

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """No error."""
        return ErrorLaw((), len(self.values))

    def answer(
        self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The public numbers."""
        law = self.predicted(noises)
        return Answer.around(self.name, self.values, law, self.labels, confidence=confidence, least=0.0)


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

    def predicted(self, noises: Mapping[str, Noise]) -> ErrorLaw:
        """The exact law of a sum of independent noises; of wide ones, up to a step of whole numbers."""
        (slot,) = self.slots
        noise = noises[slot.name]
        if self.statistic.for_population or not slot.scale(noise) >= WIDE or np.all(self.parts <= 1):
            return self._law(noises, self.expected)
        kind, scale = smooth_noise(noise.kind)
        if kind not in self._at_unit_scale:
            terms = [Term(kind, scale, 1.0, self._counts)]
            self._at_unit_scale[kind] = RememberedLaw(terms, len(self.reference))
        return ScaledLaw(self._at_unit_scale[kind], smooth_factor(slot, noise), whole=True)

    @cached_property
    def _at_unit_scale(self) -> dict[str, RememberedLaw]:
        return {}

    def _law(self, noises: Mapping[str, Noise], counts: Floats) -> ErrorLaw:
        (slot,) = self.slots
        noise = noises[slot.name]
        assert noise.kind != "exponential"
        terms = [Term(noise.kind, slot.scale(noise), 1.0, self._counts)]
        return ErrorLaw([*terms, *self._sampling(counts)], len(self.reference))

    def _sampling(self, counts: Floats) -> list[Term]:
        if not self.statistic.for_population:
            return []
        # Units that come and go by themselves, each with up to so many rows: at most this variance.
        return [Term("normal", 1.0, np.sqrt(self.rows_per_unit * np.maximum(counts, 0.0)))]

    @cached_property
    def _counts(self) -> Any:
        alike = np.unique(self.parts)
        return int(alike[0]) if len(alike) == 1 else self.parts

    def answer(
        self, measured: Mapping[str, Integers], noises: Mapping[str, Noise], confidence: float = 0.95
    ) -> Answer:
        """The sums, made into counts that agree with each other; the interval is that of the sums as they came."""
        (slot,) = self.slots
        cells = np.asarray(measured[slot.name])
        deviation = float(np.sqrt(slot.variance(noises[slot.name])))
        plain = self._sums(cells)
        values = self._sums(settled_cells(cells, self.together, deviation))
        return Answer.around(
            self.name, values, self._law(noises, values), self.labels,
            confidence=confidence, centre=plain, least=0.0,
            note=moved_note(plain, values, deviation * np.sqrt(np.maximum(self.parts, 1))),
        )  # fmt: skip

    def _sums(self, cells: NDArray[np.int64]) -> Floats:
        inside = self.members >= 0
        return np.bincount(
            self.members[inside], weights=cells[inside].astype(np.float64), minlength=len(self.reference)
        ).astype(np.float64)
