"""From ranges, and from cdfs of many cells, to slots and outputs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.stability import Sensitivity
from farthing.errors import InvalidValue
from farthing.matrix.strategies.optimisation import cached_optimum, optimised
from farthing.matrix.strategies.strategy import Norm, Strategy
from farthing.matrix.strategies.strategy_registry import find
from farthing.matrix.workloads.interval_queries import Identity, Intervals, SomeRanges
from farthing.matrix.workloads.named_workloads import all_ranges, prefix
from farthing.matrix.workloads.workload import Workload
from farthing.statistics.counts.cell_partitions import RefinedQuestion, groups_of
from farthing.statistics.counts.count_queries import labels_of, question_of
from farthing.statistics.counts.cumulative_shares import CdfOutput, cdf_labels
from farthing.statistics.counts.expected_shares import (
    Refinement,
    assumptions_of,
    completed_at_no_cost,
    shares_expected,
)
from farthing.statistics.counts.piece_counts import counts_of_axes
from farthing.statistics.measurements import Kind, Output, RowCounts, Slot
from farthing.statistics.public_facts import Assumption, Facts
from farthing.statistics.ranges.cdf_outputs import StrategyCdfOutput, cdf_loss
from farthing.statistics.ranges.cell_conditions import Between
from farthing.statistics.ranges.range_outputs import RangesOutput
from farthing.statistics.ranges.strategy_slots import StrategySlot
from farthing.statistics.ranges.strategy_transforms import StrategyTransform, sensitivity_through
from farthing.statistics.statistic import COUNT_FAMILY, Statistic, text_of

Loss = Callable[[StrategyTransform], float]

NAMES = ("auto", "identity", "hierarchical", "wavelet", "tree", "optimised")
"""What may be measured for ranges; `auto` takes the best that needs no time."""

NORMS: dict[Kind, Norm] = {"laplace": "l1", "gaussian": "l2"}


def transforms_for(
    workloads: Sequence[Workload],
    loss: Loss,
    kinds: Sequence[Kind],
    groups: int,
    places: NDArray[np.int64] | None,
    name: str = "auto",
) -> dict[Kind, StrategyTransform]:
    """For each kind of noise the transform of the least error.

    Strategies are made for each of `workloads` and compared by `loss`, the mean variance of what will be answered when
    every measured number has noise of variance 1. The transforms of the kinds are scaled so that their losses are about
    the same: then one number says what noise does to the answers, whichever kind a planner chooses.
    """
    transforms: dict[Kind, StrategyTransform] = {}
    for kind in kinds:
        tried = [
            _weighted(strategy, workload, NORMS[kind])
            for workload in workloads
            for strategy in candidates(workload, NORMS[kind], name)
        ]
        transforms[kind] = min(tried, key=lambda each: relative_loss(each, loss, kind))
    least = min(loss(each) for each in transforms.values())
    return {
        kind: replace(_heavier(each, (loss(each) / least) ** 0.5), groups=groups, places=places)
        for kind, each in transforms.items()
    }


def relative_loss(transform: StrategyTransform, loss: Loss, kind: Kind) -> float:
    """The loss at a sensitivity of 1: what is compared between transforms."""
    columns = transform.columns
    return loss(transform) * (columns.l1**2 if kind == "laplace" else columns.l2_squared)


def candidates(workload: Workload, norm: Norm, name: str) -> tuple[Strategy, ...]:
    """The strategies worth trying: the one that was named, else those that take no time, or were found before."""
    known = checked_name(name)
    if known == "optimised":
        return (optimised(workload, norm),)
    if known != "auto":
        return (find(known, workload, norm),)
    strategies = (*_quick(workload, norm), cached_optimum(workload, norm))
    return tuple(strategy for strategy in strategies if strategy is not None)


@lru_cache(maxsize=512)
def _weighted(strategy: Strategy, workload: Workload, norm: Norm) -> StrategyTransform:
    """Columns of one size are common, and the best weights are the same for all of them."""
    return StrategyTransform.weighted(strategy, workload, norm)


@lru_cache(maxsize=512)
def _quick(workload: Workload, norm: Norm) -> tuple[Strategy, ...]:
    return (find("identity", workload, norm), find("tree", workload, norm))


def checked_name(name: str) -> str:
    """The name of a strategy for ranges, as it is spelt here."""
    known = name.strip().lower().replace("optimized", "optimised")
    if known in NAMES or re.fullmatch(r"hierarchical-[1-9][0-9]{0,5}", known):
        return known
    raise InvalidValue("strategy", name, f"must be one of {', '.join(NAMES)}", "hierarchical-16 fixes the branching")


def _heavier(transform: StrategyTransform, factor: float) -> StrategyTransform:
    """All weights times a factor of at least 1, so that rounding to whole numbers changes little."""
    return replace(transform, weights=tuple(round(weight * factor) for weight in transform.weights))


Floats = NDArray[np.float64]

FEW_CELLS = 16
"""Up to here a cdf is best measured cell by cell, with all other counts."""

_ONE_ROW = Sensitivity(l0=1, l1=1, l2_squared=1, linf=1)
_REPLACED = Sensitivity(l0=2, l1=2, l2_squared=2, linf=1)


@dataclass(frozen=True, eq=False)
class Member:
    """A statistic with its cells: what it will answer, and what an error in it is worth."""

    asked: RefinedQuestion

    @property
    def statistic(self) -> Statistic:
        """The statistic that was asked for."""
        return self.asked.question.statistic

    @property
    def width(self) -> int:
        """Cells of the column, in one group."""
        return self.asked.question.shape[-1]

    @property
    def expected(self) -> Floats:
        """Rows in each cell: groups x cells."""
        return self.asked.expected.reshape(-1, self.width)

    @property
    def intervals(self) -> Intervals:
        """The ranges that are answered: those that were listed, else the cells."""
        column = self.statistic.column
        if not self.statistic.ranges:
            return Identity(self.width, column)
        edges = self.asked.question.axes[-1].edges
        assert edges is not None
        place = {edge: number for number, edge in enumerate(edges)}
        lows, highs = (np.array([place[pair[end]] for pair in self.statistic.ranges]) for end in (0, 1))
        return SomeRanges(self.width, column, lows, highs)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """What strategies are made for."""
        if self.statistic.kind == "cdf":
            return (prefix(self.width), all_ranges(self.width))
        return (self.intervals,) if self.statistic.ranges else (all_ranges(self.width),)

    def loss(self, transform: StrategyTransform) -> float:
        """The mean squared relative error at noise of variance 1."""
        if self.statistic.kind == "cdf":
            return cdf_loss(transform, self.expected) / 0.25
        # Relative to the mean size of what may be asked, ranges or cells.
        (workload,) = self.workloads
        mean = transform.estimator.total_variance(workload) / workload.queries
        return mean / self.reference**2

    @property
    def reference(self) -> float:
        """The mean expected count of what may be asked: of the ranges that were listed, else of all ranges."""
        (workload,) = self.workloads
        if self.statistic.ranges:
            counts = np.concatenate([workload.answers(group) for group in self.expected])
            return max(1.0, float(counts.mean()))
        held = np.arange(1, self.width + 1) * np.arange(self.width, 0, -1)  # ranges that hold each cell
        return max(1.0, float((self.expected @ held).mean()) / workload.queries)


def cdfs_by_strategy(statistics: Sequence[Statistic], facts: Facts) -> frozenset[str]:
    """The cdfs whose plan is better when they have a strategy of their own than when they share cells with counts."""
    wide = [
        Member(asked)
        for statistic in statistics
        if statistic.kind == "cdf"
        for asked in [RefinedQuestion.of(facts, question_of(statistic, facts.schema))]
        if asked.question.shape[-1] > FEW_CELLS and asked.refinement.cells > 0
    ]
    if not wide:
        return frozenset()
    others = [
        RefinedQuestion.of(facts, question_of(statistic, facts.schema))
        for statistic in statistics
        if statistic.kind in COUNT_FAMILY and statistic.kind != "cdf"
    ]
    names = set()
    for member in wide:
        # Only counts that look at the same columns could share its cells.
        near = [each for each in others if each.question.sources & member.asked.question.sources]
        exact = replace(member.asked, loss=_cell_loss(member))
        apart, together = (_shares(facts, each) for each in (near, [*near, exact]))
        if _share(member, facts) + apart < together or member.statistic.strategy != "auto":
            names.add(member.statistic.name)
    return frozenset(names)


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[tuple[Slot, ...], tuple[Output, ...], dict[str, Any], tuple[Assumption, ...]]:
    """Slots and outputs of ranges and cdfs; those of the same cells share their measurements."""
    members = [Member(RefinedQuestion.of(facts, question_of(statistic, facts.schema))) for statistic in statistics]
    together: dict[Any, list[Member]] = {}
    for member in members:
        question = member.asked.question
        if member.asked.refinement.cells == 0:
            raise InvalidValue("where", question.statistic.where, "must be true for some row")
        where = None if question.statistic.where is None else text_of(question.statistic.where)
        together.setdefault((question.axes, where, question.statistic.strategy), []).append(member)
    slots: list[Slot] = []
    outputs: dict[str, Output] = {}
    for number, group in enumerate(together.values(), start=1):
        slot = _slot(facts, group, number)
        slots.append(slot)
        outputs.update((member.statistic.name, _output(facts, member, slot)) for member in group)
    columns = dict.fromkeys(
        name
        for member in members
        for name in (
            *(axis.column for axis in member.asked.question.axes),
            *member.asked.question.plain_atoms,
        )
    )
    ordered = tuple(outputs[statistic.name] for statistic in statistics)
    return tuple(slots), ordered, {}, assumptions_of(facts, tuple(columns))


def _slot(facts: Facts, members: Sequence[Member], number: int) -> StrategySlot:
    first = members[0].asked
    if facts.bound is not None:
        return _bounded_slot(facts, members, number)
    refinement = first.refinement if facts.asked == len(members) else completed_at_no_cost(facts, first.refinement)
    aggregate = refinement.aggregate()
    cells = facts.sensitivity(aggregate)
    transforms = _transforms(members, facts, refinement.members[0])
    row_counts: tuple[RowCounts, ...] = ()
    if refinement.is_complete:
        transforms = {kind: each.with_others(NORMS[kind]) for kind, each in transforms.items()}
        row_counts = (_row_counts(refinement, transforms[next(iter(transforms))]),)
    what = ", ".join(sorted(first.question.sources))
    names = {kind: each.strategy.name for kind, each in transforms.items()}
    return StrategySlot.of(f"ranges {number} ({what})", (aggregate,), cells, transforms, names, row_counts)


def _bounded_slot(facts: Facts, members: Sequence[Member], number: int) -> StrategySlot:
    """The cells as they are, of rows that are kept of each unit: no other count is of the same rows."""
    question = members[0].asked.question
    where = None if question.statistic.where is None else text_of(question.statistic.where)
    aggregate = facts.bounded(counts_of_axes(question.axes, facts.schema, where))
    transforms = _transforms(members, facts, np.arange(question.cells))
    name = facts.slot_name(f"ranges {number} ({', '.join(sorted(question.sources))})")
    names = {kind: each.strategy.name for kind, each in transforms.items()}
    return StrategySlot.of(name, (aggregate,), facts.sensitivity(aggregate), transforms, names)


def _row_counts(refinement: Refinement, transform: StrategyTransform) -> RowCounts:
    """Which refined cell every number of a transform belongs to; cells that no row can lie in belong to none."""
    places = refinement.members[0]
    cells = np.full(transform.groups * transform.strategy.cells, -1)
    cells[places[places >= 0]] = np.flatnonzero(places >= 0)
    return RowCounts(refinement.partition, np.concatenate([cells, np.flatnonzero(places < 0)]))


def _transforms(
    members: Sequence[Member], facts: Facts, places: NDArray[np.int64] | None = None
) -> dict[Kind, StrategyTransform]:
    kinds: tuple[Kind, ...] = ("laplace",) if facts.pure else ("laplace", "gaussian")
    first = members[0]
    return transforms_for(
        tuple(dict.fromkeys(workload for member in members for workload in member.workloads)),
        lambda transform: math.fsum(member.loss(transform) for member in members),
        kinds,
        len(first.expected),
        first.asked.refinement.members[0] if places is None else places,
        first.statistic.strategy,
    )


def _output(facts: Facts, member: Member, slot: StrategySlot) -> Output:
    statistic, question = member.statistic, member.asked.question
    units = facts.rows_per_unit
    if statistic.kind == "cdf":
        return StrategyCdfOutput(
            statistic,
            cdf_labels(question),
            (slot,),
            member.asked.reference,
            expected=member.expected,
            rows_per_unit=units,
            is_expected=shares_expected(facts, question),
        )
    cells = member.intervals
    counts = np.concatenate([cells.answers(group) for group in member.expected])
    labels = question.labels
    if statistic.ranges:
        outer = labels_of(question.axes[:-1])
        wrapped = len(question.axes) > 2
        labels = pairs = tuple(Between(pair) for pair in statistic.ranges)
        if outer:
            labels = tuple((*group, pair) if wrapped else (group, pair) for group in outer for pair in pairs)
    return RangesOutput(
        statistic,
        labels,
        (slot,),
        np.full(len(counts), member.reference),
        axes=question.axes,
        workload=cells,
        expected=counts,
        rows_per_unit=units,
    )


def _shares(facts: Facts, asked: Sequence[RefinedQuestion]) -> float:
    return sum(group.share(facts.pure) for group in groups_of(facts, asked))


def _share(member: Member, facts: Facts) -> float:
    """What a slot of its own would take of a plan, as `Group.share` counts it."""
    kind: Kind = "laplace" if facts.pure else "gaussian"
    transform = _transforms([member], facts)[kind]
    replaced = facts.dataset.neighbours == "replace"
    moved = sensitivity_through(_REPLACED if replaced else _ONE_ROW, transform.columns, transform.size)
    if facts.pure:
        return float(np.cbrt(member.loss(transform) * moved.l1**2))
    return float(np.sqrt(member.loss(transform) * moved.l2_squared))


def _cell_loss(member: Member) -> float:
    """The same for a cdf that is measured cell by cell, without its sensitivity."""
    asked = member.asked
    output = CdfOutput(
        member.statistic,
        (),
        (),
        asked.reference,
        members=asked.refinement.members[0],
        expected=member.expected,
    )
    return float(np.mean(output.variances_at_unit) / 0.25)
