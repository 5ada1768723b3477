"""From sums, means, variances and standard deviations to what is measured for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.schema import Flags
from farthing.errors import InvalidValue
from farthing.statistics.counts.count_queries import group_axes
from farthing.statistics.counts.expected_shares import sizes_expected
from farthing.statistics.disjoint_conditions import disjoint_sets
from farthing.statistics.measurements import Output, Slot
from farthing.statistics.moments.mean_outputs import MeanOutput, MomentOutput
from farthing.statistics.moments.moment_measurements import Shared, shared_slots
from farthing.statistics.moments.variance_outputs import DeviationOutput, SumOutput, VarianceOutput
from farthing.statistics.public_facts import Assumption, DerivedColumns, Facts
from farthing.statistics.statistic import Kind, Statistic, text_of

Floats = NDArray[np.float64]

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
    slots: list[Slot] = []
    assumptions: dict[Assumption, None] = {}
    shared_sums: dict[tuple[str, tuple[str, ...], str], Shared] = {}
    derived = DerivedColumns(facts.schema, "moment")
    for (column, by), conditions in together.items():
        groups = math.prod(len(axis) for axis in group_axes(by, facts.schema)) if by else 1
        asked = list(conditions.values())
        wheres = [statistics[0].where for statistics in asked]
        alone = [[0]]  # one condition, or none, has a measurement of its own
        sets = alone if len(wheres) == 1 else disjoint_sets(wheres, facts.schema, MOST_CELLS // groups)
        for places in sets:
            every = shared_slots([asked[place] for place in places], facts, derived)
            slots.extend(every[0].slots)
            for place, shared in zip(places, every, strict=True):
                shared_sums[column, by, _condition(asked[place][0])] = shared
            if every[0].known_rows is not None:
                fact = f"every row has {column}; a missing one counts as the middle of its bounds"
                assumptions[Assumption(fact)] = None
        every_one = [statistic for statistics in asked for statistic in statistics]
        assumptions.update(dict.fromkeys(_assumed(facts, every_one, every[0].known_rows is not None)))
    outputs: list[Output] = [
        _output(statistic, facts, shared_sums[statistic.column, statistic.by, _condition(statistic)])
        for statistic in statistics
    ]
    return slots, outputs, derived.expressions, list(assumptions)


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
    floor = 1e-9 * shared.centred.half_width * math.sqrt(shared.centred.half_width)
    return _OUTPUTS[statistic.kind](
        statistic,
        shared.labels,
        _slots_of(statistic, shared),
        np.maximum(reference, max(floor, 1e-300)),
        shared=shared,
        mean=mean,
        variance=variance,
        is_expected=shared.is_expected or given is not None,
    )


def _slots_of(statistic: Statistic, shared: Shared) -> tuple[Slot, ...]:
    slots = [shared.plain, shared.number, shared.first]
    if statistic.kind in ("variance", "std"):
        slots.append(shared.second)
    return tuple(slot for slot in slots if slot is not None)


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
