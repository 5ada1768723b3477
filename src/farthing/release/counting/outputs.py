"""Counts as outputs: sums of the cells of one slot, with the exact law of their noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Count
from farthing.errors import InvalidValue
from farthing.inference import Answer, ErrorLaw, Term
from farthing.release.counting.cdf import CdfOutput
from farthing.release.counting.consistency import settled_cells
from farthing.release.counting.grouping import Asked, Group, groups_of
from farthing.release.counting.laws import WIDE, RememberedLaw, ScaledLaw, smooth_factor, smooth_noise
from farthing.release.counting.questions import question_of
from farthing.release.counting.shares import assumptions_of
from farthing.release.facts import Facts
from farthing.release.noise import Noise
from farthing.release.outputs import Output
from farthing.release.slots import Integers, Slot
from farthing.release.statistic import Statistic

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
        if self.statistic.for_population:
            # Units that come and go by themselves, each with up to so many rows: at most this variance.
            terms.append(Term("normal", 1.0, np.sqrt(self.rows_per_unit * np.maximum(counts, 0.0))))
        return ErrorLaw(terms, len(self.reference))

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
        )  # fmt: skip

    def _sums(self, cells: NDArray[np.int64]) -> Floats:
        inside = self.members >= 0
        return np.bincount(
            self.members[inside], weights=cells[inside].astype(np.float64), minlength=len(self.reference)
        ).astype(np.float64)


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[tuple[Slot, ...], tuple[Output, ...], dict[str, Any], tuple[str, ...]]:
    """Slots and outputs of counts, histograms, cdfs and contingency tables; nothing is derived for them."""
    asked = [Asked.of(facts, question_of(statistic, facts.schema)) for statistic in statistics]
    exact = [found for each in asked if (found := _public(facts, each)) is not None]
    known = {output.name for output in exact}
    measured = [each for each in asked if each.question.statistic.name not in known]
    groups = groups_of(facts, measured)
    outputs: dict[str, Output] = {output.name: output for output in exact}
    slots = []
    for number, group in enumerate(groups, start=1):
        slot = _slot(facts, group, number)
        slots.append(slot)
        outputs.update((output.name, output) for output in _outputs(facts, group, slot))
    columns = dict.fromkeys(
        name
        for each in measured
        for name in (*(axis.column for axis in each.question.axes), *each.question.plain_atoms)
    )
    assumed = assumptions_of(facts, tuple(columns)) if groups else ()
    return tuple(slots), tuple(outputs[statistic.name] for statistic in statistics), {}, assumed


def _slot(facts: Facts, group: Group, number: int) -> Slot:
    aggregate = group.refinement.aggregate()
    what = ", ".join(sorted(group.sources)) or "all rows"
    return Slot(f"counts {number} ({what})", aggregate, facts.sensitivity(aggregate), group.refinement.cells)


def _outputs(facts: Facts, group: Group, slot: Slot) -> Iterator[Output]:
    together = tuple(
        places
        for asked, places in zip(group.asked, group.refinement.members, strict=True)
        if asked.question.statistic.kind != "cdf"
    )
    units = facts.dataset.rows_per_unit
    for asked, members in zip(group.asked, group.refinement.members, strict=True):
        statistic = asked.question.statistic
        if statistic.kind == "cdf":
            yield CdfOutput.of(asked.question, asked.reference, slot, members, asked.expected, units)
            continue
        yield CountOutput(
            statistic, asked.question.labels, (slot,), asked.reference,
            members=members, together=together, expected=asked.expected, rows_per_unit=units,
        )  # fmt: skip


def _public(facts: Facts, asked: Asked) -> Output | None:
    """The output of a question whose answer is public, or None."""
    question = asked.question
    values: Floats | None = None
    everybody = not question.axes and question.formula is None
    if everybody and facts.sensitivity(Count()).l1 == 0:
        assert facts.dataset.rows is not None
        values = np.array([float(facts.dataset.rows)])
    elif asked.refinement.cells == 0:  # a condition that no row can meet
        if question.statistic.kind == "cdf":
            raise InvalidValue("where", question.statistic.where, "must be true for some row")
        values = np.zeros(question.cells)
    if values is None:
        return None
    return ExactOutput(question.statistic, question.labels, (), asked.reference, values=values)
