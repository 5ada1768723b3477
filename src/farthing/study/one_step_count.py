"""Which plans can have a count that finds its values by itself, in one step with everything that stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from farthing.data.unknown_columns import table_itself
from farthing.mechanisms.weighted_keys import MOST_KEYS
from farthing.statistics import Statistic
from farthing.study.release_request import Control
from farthing.study.staged_plan import in_use, unknown_columns
from farthing.study.study_account import StudyAccount

CONTROLS = ("weight", "require", "reserve")
"""What a plan with such a count and other statistics takes."""


@dataclass(frozen=True)
class OneStepCount:
    """A count that finds the values of its column by itself, and what is asked beside it.

    Args:
        statistic: The count.
        column: The column of unknown text.
        most: How many of its values a unit counts for.
        others: The statistics beside it.
    """

    statistic: Statistic
    column: str
    most: int
    others: tuple[Statistic, ...]

    def takes(self, controls: Sequence[Control]) -> bool:
        """Whether a plan in one step can have these controls: none where it is the count alone."""
        words = [word for word, *_ in controls]
        required = [control[1] for control in controls if control[0] == "require"]
        return not words or (bool(self.others) and set(words) <= set(CONTROLS) and self.statistic.name not in required)

    def expected_of_others(self, expected: Mapping[str, Any] | None) -> dict[str, Any]:
        """What is expected, without what is about the count."""
        own = (self.statistic.name, self.column)
        return {name: value for name, value in (expected or {}).items() if name not in own}

    def expected_of_count(self, expected: Mapping[str, Any] | None) -> dict[str, Any]:
        """What is expected, without what is about the other statistics."""
        names = {each.name for each in self.others}
        return {name: value for name, value in (expected or {}).items() if name not in names}


def one_step_count(
    study: StudyAccount, asked: tuple[Statistic, ...], expected: Mapping[str, Any] | None = None
) -> OneStepCount | None:
    """The one count by unknown text among what is asked; None where something else has to be found first."""
    table = study.declared
    if not table.is_whole_table or table.is_auto or table.stability().group > 1 or study.sampling_rate is not None:
        return None
    if study.by_request or not study.budget.total.delta > 0 or not study.budget.total.epsilon > 0:
        return None  # what is in the way is said where values are found first
    counts = [(each, _most_keys(study, each)) for each in asked]
    counts = [(each, most) for each, most in counts if most]
    if len(counts) != 1:
        return None
    ((statistic, most),) = counts
    others = tuple(each for each in asked if each is not statistic)
    one = OneStepCount(statistic, (*statistic.columns, *statistic.by)[0], most, others)
    return one if not others or _stand_beside(study, one, expected) else None


def _stand_beside(study: StudyAccount, one: OneStepCount, expected: Mapping[str, Any] | None) -> bool:
    """Whether the other statistics are of the table that is searched, and need nothing that is unknown."""
    table = study.declared
    searched, own = table_itself(table, one.column).sources(), table.sources()
    if len(searched) != len(own) or any(each is not other for each, other in zip(searched, own, strict=True)):
        return False
    known_by_now = copy(study)
    known_by_now.dataset = table
    known_by_now = in_use(known_by_now, one.others, one.expected_of_others(expected))
    return not unknown_columns(known_by_now.dataset, one.others, one.expected_of_others(expected))


def _most_keys(study: StudyAccount, statistic: Statistic) -> int:
    """How many values a unit counts for in a count that can find them by itself; 0 for any other statistic."""
    cells = (*statistic.columns, *statistic.by)
    if statistic.kind not in ("count", "histogram") or len(cells) != 1 or statistic.bins:
        return 0
    rules = study.declared.unknown.get(cells[0])
    if rules is None or rules.kind != "text" or statistic.where is not None or statistic.for_population:
        return 0
    if not study.declared.unit:
        return 1 if statistic.bound is None else 0
    if not statistic.counts_people or not 1 <= (statistic.max_cells or 1) <= MOST_KEYS:
        return 0  # one unit may have many rows: its rows are counted when values are known
    return statistic.max_cells or 1
