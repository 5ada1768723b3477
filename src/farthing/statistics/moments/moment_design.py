"""From sums, means, variances and standard deviations to what is measured for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.aggregates.soft_partitions import SoftPartition, completed_shape
from farthing.data.aggregates.unit_bounds import Bounded
from farthing.data.schema import Flags
from farthing.errors import InvalidValue
from farthing.statistics.counts.cell_partitions import FEW
from farthing.statistics.counts.count_queries import group_axes
from farthing.statistics.counts.expected_shares import sizes_expected
from farthing.statistics.disjoint_conditions import disjoint_sets
from farthing.statistics.measurements import Output, Slot
from farthing.statistics.moments.mean_outputs import MeanOutput, MomentOutput
from farthing.statistics.moments.moment_measurements import Shared, Way, known_rows_of, shared_slots
from farthing.statistics.moments.variance_outputs import DeviationOutput, SumOutput, VarianceOutput
from farthing.statistics.public_facts import Assumption, DerivedColumns, Facts
from farthing.statistics.statistic import Kind, Statistic, text_of

Floats = NDArray[np.float64]
Family = tuple[tuple[Statistic, ...], ...]
"""Statistics that are measured together: of one column, for each of disjoint conditions."""

_LEVEL = 1e-9  # no worse than with a share of one's own
_GAUSSIAN_FROM = 25  # so many measurements have less Gaussian than Laplace noise, at delta = 1e-9 and any usual epsilon
_CAUTION = 2 * math.log(1.05)  # a gain of five percent in every error, that only holds if expectations do, is none

_OUTPUTS: dict[Kind, type[MomentOutput]] = {
    "sum": SumOutput,
    "mean": MeanOutput,
    "variance": VarianceOutput,
    "std": DeviationOutput,
}


def outputs_of(
    statistics: Sequence[Statistic], facts: Facts
) -> tuple[list[Slot], list[Output], dict[str, Any], list[Assumption]]:
    """Slots, outputs, columns to derive and assumptions of sums, means, variances and standard deviations."""
    together: dict[tuple[str, tuple[str, ...]], dict[str, list[Statistic]]] = {}
    for statistic in statistics:
        conditions = together.setdefault((statistic.column, statistic.by), {})
        conditions.setdefault(_condition(statistic), []).append(statistic)
    assumptions: dict[Assumption, None] = {}
    families: list[Family] = []
    derived = facts.derived_columns("moment")
    for (column, by), conditions in together.items():
        groups = math.prod(len(axis) for axis in group_axes(by, facts.schema)) if by else 1
        asked = list(conditions.values())
        wheres = [statistics[0].where for statistics in asked]
        alone = [[0]]  # one condition, or none, has a measurement of its own
        sets = alone if len(wheres) == 1 else disjoint_sets(wheres, facts.schema, MOST_CELLS // groups)
        families += [tuple(tuple(asked[place]) for place in places) for places in sets]
        known = known_rows_of(facts, wheres[0], by) is not None
        if known:
            fact = f"every row has {column}; a missing one counts as the middle of its bounds"
            assumptions[Assumption(fact)] = None
        every_one = [statistic for statistics in asked for statistic in statistics]
        assumptions.update(dict.fromkeys(_assumed(facts, every_one, known)))
    slots: list[Slot] = []
    outputs: dict[str, MomentOutput] = {}
    for own in _merged([_measured_best(family, facts, derived) for family in families], facts, derived):
        slots.extend({slot.name: slot for output in own for slot in output.shared.slots}.values())
        outputs.update((output.name, output) for output in own)
    used = {name for slot in slots for name in _derived_columns(slot)}
    expressions = {name: what for name, what in derived.expressions.items() if name in used}
    return slots, [outputs[statistic.name] for statistic in statistics], expressions, list(assumptions)


def _merged(families: list[list[MomentOutput]], facts: Facts, derived: DerivedColumns) -> list[list[MomentOutput]]:
    """Families of one column, of which one has the groups of the other and more, as one where none of them loses.

    Every statistic brings its share of the budget along, as counts do (see `counts.cell_partitions`): n of them are
    measured with noise of 1 / n of the scale, and a cell that consists of m groups has m times the variance.
    """
    laplace = facts.pure or facts.asked <= FEW
    power = 2.0 if laplace else 1.0
    merged = list(families)
    while True:
        best: tuple[float, int, int, list[MomentOutput]] | None = None
        for one, other in combinations(range(len(merged)), 2):
            if not _mergeable(merged[one], merged[other], facts):
                continue
            asked = tuple(output.statistic for output in (*merged[one], *merged[other]))
            together = _measured_best((asked,), facts, derived)
            apart = [_variances(own, laplace) / len(own) ** power for own in (merged[one], merged[other])]
            gains = np.log(_variances(together, laplace) / len(asked) ** power / np.concatenate(apart))
            if gains.max() <= _LEVEL and (best is None or gains.sum() < best[0]):
                best = float(gains.sum()), one, other, together
        if best is None:
            return merged
        merged[best[1]] = best[3]
        del merged[best[2]]


def _mergeable(one: Sequence[MomentOutput], other: Sequence[MomentOutput], facts: Facts) -> bool:
    """Whether two families are about the same rows of one column, in groups of which one refines the other."""
    first, second = one[0].statistic, other[0].statistic
    if first.column != second.column or any(output.shared.known_rows is not None for output in (*one, *other)):
        return False
    if {_condition(output.statistic) for output in (*one, *other)} != {_condition(first)}:
        return False
    finer, coarser = (set(_finest(own)) for own in (one, other))
    if not (finer <= coarser or coarser <= finer):
        return False
    sizes = [len(axis) for axis in group_axes(tuple(finer | coarser), facts.schema)] if finer | coarser else []
    return math.prod(completed_shape(sizes)) <= MOST_CELLS


def _finest(outputs: Sequence[MomentOutput]) -> tuple[str, ...]:
    return max((output.statistic.by for output in outputs), key=len)


def _derived_columns(slot: Slot) -> tuple[str, ...]:
    aggregate = slot.aggregate.aggregate if isinstance(slot.aggregate, Bounded) else slot.aggregate
    own = aggregate.columns if isinstance(aggregate, SoftPartition) else (getattr(aggregate, "column", None),)
    return (*aggregate.by, *(name for name in own if name is not None))


def _measured_best(conditions: Family, facts: Facts, derived: DerivedColumns) -> list[MomentOutput]:
    """The outputs of statistics that share their measurements, in the way with the least errors."""
    ways = _ways(conditions, facts)
    candidates = []
    for way in ways:
        every = shared_slots(conditions, facts, derived, way)
        outputs = [
            _output(statistic, facts, shared.for_groups(statistic, facts))
            for shared, statistics in zip(every, conditions, strict=True)
            for statistic in statistics
        ]
        candidates.append(outputs)
    laplace = facts.pure or facts.asked <= FEW
    merits = (
        [float(np.log(_variances(outputs, laplace)).sum()) for outputs in candidates] if len(candidates) > 1 else [0.0]
    )
    if len(candidates) > 1:  # apart is best for what is expected, and bad for anything else
        merits[-1] += _CAUTION * len(candidates[-1])
    chosen = candidates[int(np.argmin(merits))]
    if not laplace and len(candidates) > 1 and chosen is candidates[-1] and not _even_with_gaussian(candidates, facts):
        chosen = candidates[0]
    if chosen[0].shared.way == "apart" and len(candidates) > 1:
        return [_with_partition_alone(own, whole) for own, whole in zip(chosen, candidates[0], strict=True)]
    if len(chosen) == 1 or chosen[0].shared.way in ("apart", "plain"):
        return chosen
    return [replace(output, less=output.less_alone) for output in chosen]


def _even_with_gaussian(candidates: Sequence[Sequence[MomentOutput]], facts: Facts) -> bool:
    """Whether Gaussian noise apart leaves nobody worse than an even share of Laplace noise in a whole partition.

    Of n equal measurements, 2 (n / epsilon)^2 and n / mu^2 are the variances of the two kinds.
    """
    whole, apart = candidates
    gaussian, laplace = _variances(apart, laplace=False), _variances(whole, laplace=True)
    return bool((gaussian * _GAUSSIAN_FROM / facts.asked <= laplace).all())


def _with_partition_alone(output: MomentOutput, whole: MomentOutput) -> MomentOutput:
    """The output, measured apart; by itself it would be a soft partition, if its even share is better with that.

    By itself it has Laplace noise, and apart is chosen for the sake of Gaussian noise, or of other statistics. The
    coefficients of the partition are those of the number of rows, which a row moves by as much.
    """
    (slot,) = whole.slots
    number = next(part.slot for part in output.shared.parts if part.number)
    scale = (slot.sensitivity.l1 / number.sensitivity.l1) ** 2
    alone = whole.coefficients[slot.name] * whole.less_alone * float(scale)
    variance = float(np.mean(alone / output.reference**2)) * float(number.sensitivity.l1) ** 2
    if math.log(variance) > math.log(float(_variances([output], laplace=True)[0])) + _CAUTION:
        return output
    return replace(output, instead={number.name: alone})


def _ways(conditions: Family, facts: Facts) -> list[Way]:
    """The ways in which statistics can be measured together, of which any may be the best."""
    every = [statistic for statistics in conditions for statistic in statistics]
    first, kinds = every[0], {statistic.kind for statistic in every}
    if known_rows_of(facts, first.where, first.by) is not None:
        return ["apart"]
    alike = len({statistic.by for statistic in every}) == 1
    if kinds == {"sum"} and alike:  # as it is: that costs no more than its two parts, and less in most cases
        return ["plain"]
    squares = kinds & {"variance", "std"} and not isinstance(facts.schema[first.column], Flags)
    whole: Way = "thirds" if squares else "halves"
    expected = {first.column, *(statistic.name for statistic in every)} & set(facts.expected)
    # For the worst that a column can be, one partition is always better than measurements apart. With a bound of its
    # own each measurement chooses rows anew, and a mean must be of one choice.
    return [whole, "apart"] if expected and alike and facts.bound is None else [whole]


def _variances(outputs: Sequence[MomentOutput], laplace: bool) -> Floats:
    """The mean squared relative errors of outputs that share a budget of 1 so that their logarithms are least."""
    slots = list({slot.name: slot for output in outputs for slot in output.shared.slots}.values())
    matters = np.array(
        [
            [
                float(np.mean(output.coefficients.get(slot.name, 0.0) / output.reference**2))
                * (slot.sensitivity.l1**2 if laplace else slot.sensitivity.l2_squared)
                for slot in slots
            ]
            for output in outputs
        ]
    )
    power = 2.0 if laplace else 1.0
    shares = np.full(len(slots), 1 / len(slots))
    for _ in range(12 if len(slots) > 1 else 0):
        # Of the sum of c / share^2 (or c / share) for each output, logarithms are least where this no longer moves.
        weight = (1 / np.maximum(matters @ shares**-power, 1e-300)) @ matters
        part = np.maximum(weight, 1e-9 * weight.max()) ** (1 / (power + 1))
        shares = part / part.sum()
    return np.asarray(np.maximum(matters @ shares**-power, 1e-300))


def _assumed(facts: Facts, statistics: Sequence[Statistic], known: bool) -> Iterator[Assumption]:
    """What errors rest on, in words: of sums nothing but the noise, unless they are for a population."""
    yield from facts.row_assumptions
    plain = {statistic.kind for statistic in statistics} == {"sum"}
    for statistic in statistics:
        whole = statistic.where is None and not statistic.by
        if not (plain or known or whole or sizes_expected(facts, statistic.where, statistic.by)):
            name = Statistic("count", where=statistic.where, by=statistic.by).name
            fact = "errors of groups and conditions are predicted for half of an even share of the rows"
            yield Assumption(fact, name)
    column = statistics[0].column
    if column in facts.expected or plain:
        return
    what = "share" if isinstance(facts.schema[column], Flags) else "values"
    rows = "" if known else f", and a quarter of the rows are assumed to lack {column}"
    yield Assumption(f"errors are predicted for the worst {what} of {column} within its bounds{rows}", column)


def _condition(statistic: Statistic) -> str:
    return "" if statistic.where is None else text_of(statistic.where)


def _output(statistic: Statistic, facts: Facts, shared: Shared) -> MomentOutput:
    cells = len(shared.rows)
    mean, variance = np.full(cells, shared.mean), np.full(cells, shared.variance)
    given = _expected_value(statistic, facts, cells)
    if given is not None and statistic.kind == "mean":
        mean = np.clip(given, shared.centred.lower, shared.centred.upper)
    elif given is not None and statistic.kind in ("variance", "std"):
        variance = np.maximum(given**2 if statistic.kind == "std" else given, 1e-12 * shared.variance)
    spread = np.sqrt(variance)
    reference = {
        "sum": shared.rows * np.maximum(np.abs(mean), spread) if given is None else np.abs(given),
        "mean": np.maximum(np.abs(mean), spread),
        "variance": variance,
        "std": spread,
    }[statistic.kind]
    # The squares are no part of sums and means; those of a population vary with them.
    means = statistic.kind in ("sum", "mean")
    read = [part for part in shared.parts if not means or part.number or part.first]
    shared = replace(shared, parts=shared.parts if statistic.for_population else tuple(read))
    floor = 1e-9 * shared.centred.half_width * math.sqrt(shared.centred.half_width)
    return _OUTPUTS[statistic.kind](
        statistic,
        shared.labels,
        tuple({part.slot.name: part.slot for part in read}.values()),
        np.maximum(reference, max(floor, 1e-300)),
        shared=shared,
        mean=mean,
        variance=variance,
        is_expected=shared.is_expected or given is not None,
    )


def _expected_value(statistic: Statistic, facts: Facts, cells: int) -> Floats | None:
    """What the steward expects the statistic itself to be."""
    given = facts.expected.get(statistic.name)
    if given is None or statistic.name in facts.schema:  # a column of that name is what is meant
        return None
    try:
        values = np.asarray(given, dtype=float).reshape(-1)
    except (TypeError, ValueError):
        values = np.empty(0)
    if len(values) == 1:
        values = np.repeat(values, cells)
    negative = statistic.kind in ("variance", "std") and bool((values < 0).any())
    if len(values) != cells or not np.isfinite(values).all() or negative:
        rule = f"must be a number, or a list of {cells:,}, one for each cell"
        raise InvalidValue(f"expected[{statistic.name!r}]", given, rule + (", none below 0" if negative else ""))
    return values
