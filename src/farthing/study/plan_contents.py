"""What a policy looks at in a plan: its kinds of statistics, the columns it reads, the least people in a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from farthing.data.expressions.expression import read
from farthing.errors import FarthingError
from farthing.ledger.rights import Contents
from farthing.statistics.withheld_cells import companion

if TYPE_CHECKING:
    from farthing.data import Dataset
    from farthing.statistics import Statistic
    from farthing.study.plan_text import PlanFacts


def contents_of(plan: PlanFacts, asked: Iterable[Statistic], least: int | None) -> Contents:
    """The contents of a plan; what cannot be told is None, and a policy that minds it does not cover the plan.

    `least` is the number of people below which the release withholds a cell: see `least_in_cell`.
    """
    statistics, dataset = tuple(asked), plan.study.dataset
    kinds = tuple(dict.fromkeys(statistic.kind for statistic in statistics))
    if not dataset.is_untransformed or plan.study.sampling_rate is not None:
        return Contents(kinds)
    return Contents(kinds, columns_of(statistics, dataset), least)


def least_in_cell(plan: PlanFacts) -> int | None:
    """How many people a cell must hold to be shown in a release of this plan: as the analyst's policy says.

    It holds for whatever the analyst releases while the policy stands, except for plans that a curator approved as they
    are. None where the plan does not release a count of every cell, or the table was changed first: then nobody could
    tell how many people are in a cell.
    """
    study = plan.study
    if study.analyst is None or study.ledger.requests.approved(study.name, study.payer, plan.request.name) is not None:
        return 0
    rules = [each.cell for each in study.ledger.requests.policies(study.name) if each.analyst == study.analyst]
    least = max(rules, default=0)
    if not least:
        return 0
    outputs = plan.design.outputs
    counted = all(companion(each.statistic, outputs) is not None for each in outputs)
    return least if counted and study.dataset.is_untransformed and study.sampling_rate is None else None


def withheld_cells(plan: PlanFacts) -> str | None:
    """What a release of this plan may withhold, in words, before it is spent; None where everything will be shown."""
    least = least_in_cell(plan)
    if not least or (plan.earlier is not None and plan.earlier.exact):  # what was released stays as it is
        return None
    return (
        f"cells of fewer than {least:,} people may be withheld, as the policy of {plan.study.analyst} says: a number "
        f"is shown only if the 95% interval of the released count of its cell begins at {least:,} people or more"
    )


def columns_of(statistics: Iterable[Statistic], dataset: Dataset) -> tuple[str, ...] | None:
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
