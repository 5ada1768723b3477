"""Designs: what is measured to answer the statistics of one plan, before any noise is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.statistics import moments
from farthing.statistics.counts import count_design as counting
from farthing.statistics.marginals import marginal_outputs
from farthing.statistics.measurements import Measurements
from farthing.statistics.output import Output
from farthing.statistics.public_facts import Counted, Facts
from farthing.statistics.quantiles import quantile_outputs
from farthing.statistics.ranges import range_design as ranging
from farthing.statistics.regression import regression_outputs
from farthing.statistics.slots import Noise, Slot
from farthing.statistics.statistic import COUNT_FAMILY, MARGINALS, MOMENTS, QUANTILES, RANGES, Statistic
from farthing.statistics.validation import checked_all, nearest

Family = Callable[
    [Sequence[Statistic], Facts],
    tuple[Sequence[Slot], Sequence[Output], Mapping[str, Any], Sequence[str]],
]


@dataclass(frozen=True, eq=False)
class Design:
    """Slots to be measured and the outputs that read them. Made from public facts alone.

    `derived` are the columns that are computed before anything is added up. `assumptions` says in words what the
    predicted errors assume about the table. `assumed_rows` is the number of rows that errors are for where it is not
    public, expected or counted, and None where no error depends on it; `counted` is a private count that is used.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.statistics import count
    >>> people = dataset(pyarrow.table({"sex": ["F"]}), schema={"sex": ["F", "M"]})
    >>> design = design_of([count(), count(by="sex")], people)
    >>> [slot.cells for slot in design.slots], [output.name for output in design.outputs]
    ([3], ['count', 'count by sex'])
    """

    slots: tuple[Slot, ...]
    outputs: tuple[Output, ...]
    derived: tuple[tuple[str, Any], ...]
    assumptions: tuple[str, ...]
    assumed_rows: int | None = None
    rows_public: bool = False
    counted: Counted | None = None

    @property
    def sized(self) -> tuple[Output, ...]:
        """The outputs whose errors depend on how many rows the table has."""
        return tuple(output for output in self.outputs if output.sized)

    def output(self, name: str) -> Output:
        """The output of a statistic by its name."""
        for output in self.outputs:
            if output.name == name:
                return output
        raise InvalidValue(
            "name",
            name,
            "must be a statistic of the plan",
            nearest(name, (output.name for output in self.outputs)),
        )

    def measurements(self, noises: Mapping[str, Noise]) -> Measurements:
        """What is charged and run, once noises are chosen."""
        return Measurements(self.derived, self.slots, dict(noises))


def design_of(
    statistics: Sequence[Statistic],
    dataset: Dataset,
    expected: Mapping[str, Any] | None = None,
    pure: bool = False,
    counted: Counted | None = None,
) -> Design:
    """The design for statistics of one dataset; `pure` for delta = 0. No row is read.

    `expected` holds what is known in public: "rows", columns and statistics by name (see `Facts`); `counted` is a
    private count of the rows.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.statistics import count
    >>> people = dataset(pyarrow.table({"sex": ["F"]}), schema={"sex": ["F", "M"]})
    >>> design_of([count(by="sex")], people, expected={"rows": 5_000}).output("count by sex").reference
    array([2500., 2500.])
    """
    asked = checked_all(statistics, dataset.schema)
    facts = Facts(dataset, _checked_expected(expected, asked, dataset), pure, counted)
    slots: list[Slot] = []
    outputs: dict[str, Output] = {}
    derived: dict[str, Any] = {}
    assumptions: list[str] = []
    by_strategy = ranging.cdfs_by_strategy(asked, facts)
    for kinds, family in _families():
        own = [statistic for statistic in asked if statistic.kind in kinds]
        if family is counting.outputs_of:
            own = [statistic for statistic in own if statistic.name not in by_strategy]
        elif family is ranging.outputs_of:
            own += [statistic for statistic in asked if statistic.name in by_strategy]
        if not own:
            continue
        found = family(own, facts)
        slots.extend(found[0])
        outputs.update((output.name, output) for output in found[1])
        derived.update(found[2])
        assumptions.extend(found[3])
    ordered = tuple(outputs[statistic.name] for statistic in asked)
    return Design(
        tuple(slots),
        ordered,
        tuple(derived.items()),
        tuple(dict.fromkeys(assumptions)),
        facts.assumed_rows if slots and any(output.sized for output in ordered) else None,
        rows_public="rows" not in facts.expected and facts.rows_known,
        counted=None if facts.rows_known else counted,
    )


def _families() -> tuple[tuple[tuple[str, ...], Family], ...]:
    return (
        (COUNT_FAMILY, counting.outputs_of),
        (MOMENTS, moments.outputs_of),
        (QUANTILES, quantile_outputs.outputs_of),
        (RANGES, ranging.outputs_of),
        (MARGINALS, marginal_outputs.outputs_of),
        (("linear_regression",), regression_outputs.outputs_of),
    )


def _checked_expected(
    expected: Mapping[str, Any] | None, statistics: Sequence[Statistic], dataset: Dataset
) -> dict[str, Any]:
    if expected is None:
        return {}
    if not isinstance(expected, Mapping):
        raise InvalidValue("expected", expected, "must be a mapping", "for example {'rows': 100_000}")
    known = ["rows", *(statistic.name for statistic in statistics), *dataset.schema]
    for name in expected:
        # A count that is not asked for may still be known: "count by sex" tells how large the groups are.
        if name not in known and not str(name).startswith("count"):
            raise InvalidValue(
                "expected",
                name,
                "must be rows, a column or a statistic of the plan",
                nearest(str(name), known),
            )
    return dict(expected)
