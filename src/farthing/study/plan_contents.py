"""What a policy looks at in a plan: its kinds of statistics, the columns it reads, how many people a cell holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from farthing.data.expressions.expression import read
from farthing.errors import FarthingError
from farthing.ledger.rights import Contents

if TYPE_CHECKING:
    from farthing.data import Dataset
    from farthing.statistics import Statistic
    from farthing.study.plan_text import PlanFacts


def contents_of(plan: PlanFacts, asked: Iterable[Statistic]) -> Contents:
    """The contents of a plan; what cannot be told is None, and a policy that minds it does not cover the plan.

    How many people a cell holds is said on average: the public number of rows, over the most rows of one person and the
    most numbers of one statistic. What an analyst expects has no part in it, and neither have rows: a condition, or a
    table that was filtered first, leaves it open.
    """
    statistics, dataset = tuple(asked), plan.study.dataset
    kinds = tuple(dict.fromkeys(statistic.kind for statistic in statistics))
    if not dataset.is_untransformed or plan.study.sampling_rate is not None:
        return Contents(kinds)
    columns = _columns(statistics, dataset)
    rows = dataset.rows
    if rows is None and plan.design.counted is not None:
        rows = plan.design.counted.lower
    cell, people = None, dataset.people
    if people is None and rows is not None and (dataset.bounds_rows or not dataset.unit):
        people = rows // max(1, dataset.rows_per_unit if dataset.unit else 1)
    if people is not None and all(statistic.where is None for statistic in statistics):
        cell = people // max(planned.cells for planned in plan.statistics)
    return Contents(kinds, columns, cell)


def _columns(statistics: Iterable[Statistic], dataset: Dataset) -> tuple[str, ...] | None:
    """Every column that is read, sorted; None where one of them is not a column."""
    names: set[str] = set()
    for statistic in statistics:
        names.update(statistic.columns, statistic.by)
        if statistic.where is not None:
            try:
                names.update(read(statistic.where, dataset.schema).columns)
            except FarthingError:
                return None
    return tuple(sorted(names)) if names <= set(dataset.schema) else None
