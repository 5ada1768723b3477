"""From statistics of the count family to slots and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data import Count
from farthing.errors import InvalidValue
from farthing.statistics.counts.cell_partitions import Group, RefinedQuestion, groups_of
from farthing.statistics.counts.count_outputs import CountOutput, ExactOutput
from farthing.statistics.counts.count_queries import question_of
from farthing.statistics.counts.cumulative_shares import CdfOutput
from farthing.statistics.counts.expected_shares import assumptions_of, completed_at_no_cost, shares_expected
from farthing.statistics.counts.piece_counts import counts_of_axes
from farthing.statistics.measurements import Output, RowCounts, Slot
from farthing.statistics.public_facts import Assumption, Facts
from farthing.statistics.statistic import Statistic, text_of

Floats = NDArray[np.float64]


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[tuple[Slot, ...], tuple[Output, ...], dict[str, Any], tuple[Assumption, ...]]:
    """Slots and outputs of counts, histograms, cdfs and contingency tables; nothing is derived for them."""
    if facts.bound is not None:
        return _bounded(statistics, facts)
    asked = [RefinedQuestion.of(facts, question_of(statistic, facts.schema)) for statistic in statistics]
    exact = [public for each in asked if (public := _public(facts, each)) is not None]
    known = {output.name for output in exact}
    measured = [each for each in asked if each.question.statistic.name not in known]
    groups = groups_of(facts, measured)
    outputs: dict[str, Output] = {output.name: output for output in exact}
    if len(groups) > 1 or facts.asked > len(statistics):
        groups = tuple(_completed(facts, group) for group in groups)
    slots = [_slot(facts, group, number) for number, group in enumerate(groups, start=1)]
    for group, slot in zip(groups, slots, strict=True):
        outputs.update((output.name, output) for output in _outputs(facts, group, slot))
    columns = dict.fromkeys(
        name
        for each in measured
        for name in (*(axis.column for axis in each.question.axes), *each.question.plain_atoms)
    )
    assumed = assumptions_of(facts, tuple(columns)) if groups else ()
    return tuple(slots), tuple(outputs[statistic.name] for statistic in statistics), {}, assumed


def _bounded(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[tuple[Slot, ...], tuple[Output, ...], dict[str, Any], tuple[Assumption, ...]]:
    """A slot for one statistic with a bound of its own: its counts agree with each other alone.

    A unit may be in several cells, so that no other statistic has their sum. It is still what people add up: counts
    that are clipped at 0 one by one have far too large a sum where most cells are empty.
    """
    (statistic,) = statistics
    asked = RefinedQuestion.of(facts, question_of(statistic, facts.schema))
    public = _public(facts, asked)
    question = asked.question
    columns = dict.fromkeys((*(axis.column for axis in question.axes), *question.plain_atoms))
    if public is not None:
        return (), (public,), {}, ()
    where = None if statistic.where is None else text_of(statistic.where)
    aggregate = facts.bounded(counts_of_axes(question.axes, facts.schema, where))
    what = ", ".join(sorted(question.sources)) or "all rows"
    slot = Slot(facts.slot_name(f"counts ({what})"), aggregate, facts.sensitivity(aggregate), question.cells)
    members, units = np.arange(question.cells), facts.rows_per_unit
    if statistic.kind == "cdf":
        expected = shares_expected(facts, question)
        output: Output = CdfOutput.of(question, asked.reference, slot, members, asked.expected, units, expected)
    else:
        known: Any = {"members": members, "expected": asked.expected, "rows_per_unit": units}
        output = CountOutput(statistic, question.labels, (slot,), asked.reference, together=(members,), **known)
    return (slot,), (output,), {}, assumptions_of(facts, tuple(columns))


def _completed(facts: Facts, group: Group) -> Group:
    """The group with cells for all other rows, where these cost nothing: then others say something about its counts."""
    return replace(group, refinement=completed_at_no_cost(facts, group.refinement))


def _slot(facts: Facts, group: Group, number: int) -> Slot:
    refinement = group.refinement
    aggregate = refinement.aggregate()
    what = ", ".join(sorted(group.sources)) or "all rows"
    return Slot(
        f"counts {number} ({what})",
        aggregate,
        facts.sensitivity(aggregate),
        refinement.cells,
        row_counts=(RowCounts(refinement.partition, np.arange(refinement.cells)),) if refinement.is_complete else (),
    )


def _outputs(facts: Facts, group: Group, slot: Slot) -> Iterator[Output]:
    together = tuple(
        places
        for asked, places in zip(group.asked, group.refinement.members, strict=True)
        if asked.question.statistic.kind != "cdf"
    )
    units = facts.rows_per_unit
    for asked, members in zip(group.asked, group.refinement.members, strict=True):
        statistic = asked.question.statistic
        if statistic.kind == "cdf":
            expected = shares_expected(facts, asked.question)
            yield CdfOutput.of(asked.question, asked.reference, slot, members, asked.expected, units, expected)
            continue
        known: Any = {
            "members": members,
            "together": together,
            "expected": asked.expected,
            "rows_per_unit": units,
        }
        yield CountOutput(statistic, asked.question.labels, (slot,), asked.reference, **known)


def _public(facts: Facts, asked: RefinedQuestion) -> Output | None:
    """The output of a question whose answer is public, or None."""
    question = asked.question
    values: Floats | None = None
    everybody = not question.axes and question.formula is None and facts.bound is None
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
