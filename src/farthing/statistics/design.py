"""Designs: what is measured to answer the statistics of one plan, before any noise is chosen.

A statistic against a schema: every mistake is found before anything is planned, charged or read.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from farthing.data import Dataset, DistinctCount
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.expressions import read
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema, not_found_yet
from farthing.errors import InvalidValue
from farthing.statistics import moments
from farthing.statistics.cells.statistic_cells import cut_of
from farthing.statistics.counts import count_design as counting
from farthing.statistics.counts import distinct_outputs
from farthing.statistics.counts.count_queries import group_axes, refuse_too_many
from farthing.statistics.counts.expected_shares import category_shares
from farthing.statistics.counts.slot_combination import linked_outputs
from farthing.statistics.coverage import counts_all_values
from farthing.statistics.marginals import marginal_outputs
from farthing.statistics.measurements import Measurements, Noise, Output, Slot
from farthing.statistics.public_facts import Assumption, Counted, Facts, checked_expectation
from farthing.statistics.quantiles import quantile_outputs
from farthing.statistics.ranges import range_design as ranging
from farthing.statistics.ranges.cell_conditions import PAIRS, within_bound
from farthing.statistics.regression import regression_outputs
from farthing.statistics.statistic import COUNT_FAMILY, DISTINCT, MARGINALS, MOMENTS, QUANTILES, RANGES, Statistic

_WHOLE = {"count", "histogram", "top", "contingency", "ranges", "marginals", "sum", "quantile", "quantiles"}


def checked(statistic: Statistic, schema: Schema, *, is_open: bool = False) -> Statistic:
    """The statistic, its predicate as text, or a refusal that says what to do.

    `is_open` says that it counts all different values of a column, though nobody listed them.
    """
    if not isinstance(statistic, Statistic):
        raise InvalidValue(
            "statistic", statistic, "must be a statistic", 'for example count(by="sex") or mean("income")'
        )
    for name in () if is_open else statistic.columns:
        _refuse_unknown(name, schema, "column")
    for name in statistic.by:
        _refuse_unknown(name, schema, "by")
        if name in statistic.columns:
            raise InvalidValue("by", name, f"must not be what {statistic.name!r} is about", "leave it out")
    if statistic.rounded and statistic.kind not in _WHOLE:
        raise InvalidValue("rounded", True, f"must be left out: a {statistic.kind} is not a whole number")
    where = statistic.where
    if where is not None:
        condition = read(where, schema)
        if not condition.is_predicate:
            raise InvalidValue("where", condition.text, "must be true or false", "compare it with something")
        where = condition.text
    groups = group_axes(statistic.by, schema) if statistic.by else ()
    if statistic.kind in MARGINALS:
        for chosen in combinations(statistic.columns, statistic.way):
            cut = tuple(cut_of(name, schema[name], statistic.bins_of(name)) for name in chosen)
            refuse_too_many(f"marginal of {' and '.join(chosen)}", (*groups, *cut))
    elif statistic.kind in DISTINCT:
        if not is_open:
            _refuse_endless(statistic, schema)
    elif statistic.kind in (*COUNT_FAMILY, *RANGES):
        if statistic.ranges and isinstance(schema[statistic.column], Categories | Flags):
            raise InvalidValue(
                "ranges",
                statistic.ranges[0],
                f"must be left out for {statistic.column!r}, which has categories",
                "without them, any of its categories can be asked for",
            )
        if statistic.ranges:
            statistic = replace(statistic, ranges=_within_bounds(statistic, schema[statistic.column]))
        own = tuple(cut_of(name, schema[name], statistic.bins_of(name)) for name in statistic.columns)
        refuse_too_many(statistic.name, (*groups, *own))
        if statistic.kind == "cdf" and not hasattr(schema[statistic.column], "lower"):
            raise InvalidValue(
                "column",
                statistic.column,
                "must hold numbers or dates for a cdf",
                "use histogram for categories",
            )
    else:
        # A flag is 0 or 1 to a sum, so that its mean is a share; it has no quantiles to speak of.
        numbers = (Integers, Reals) if statistic.kind in QUANTILES else (Integers, Reals, Flags)
        for place, name in enumerate(statistic.columns):
            if statistic.kind == "linear_regression" and place and isinstance(schema[name], Categories):
                continue  # a feature: a flag for each category but the first
            if not isinstance(schema[name], numbers):
                raise InvalidValue(
                    "column", name, f"must hold numbers for a {statistic.kind}", "count or histogram takes any column"
                )
        if groups:
            refuse_too_many(statistic.name, groups)
    return replace(statistic, where=where)


def _refuse_endless(statistic: Statistic, schema: Schema) -> None:
    """Refuse different values of a column that has no list of them, or too many."""
    if isinstance(schema[statistic.column], Reals):
        way_out = f"cut it into bins first: dataset.bin({statistic.column}=10)"
        raise InvalidValue("column", statistic.column, "must have a finite list of values to be counted", way_out)
    aggregate_queries({statistic.name: DistinctCount(statistic.column, by=statistic.by)}, schema)


def _within_bounds(statistic: Statistic, domain: Domain) -> tuple[tuple[Any, Any], ...]:
    """The listed ranges, none of which ends after the column does."""
    assert not isinstance(domain, Categories | Flags)
    ranges = tuple(within_bound(pair, domain) for pair in statistic.ranges)
    for pair, given in zip(ranges, statistic.ranges, strict=True):
        try:
            good = domain.lower <= pair[0] < pair[1] <= domain.upper
        except TypeError:
            raise InvalidValue(
                "ranges", given, f"must have ends of the kind of column {statistic.column!r}", PAIRS
            ) from None
        if not good:
            raise InvalidValue(
                "ranges",
                given,
                f"must lie within the bounds of {statistic.column!r}, {domain.lower} to {domain.upper}",
                PAIRS,
            )
    if len(set(ranges)) != len(ranges):
        raise InvalidValue("ranges", statistic.ranges, "must not hold the same range twice", PAIRS)
    return ranges


def checked_all(
    statistics: Sequence[Statistic], schema: Schema, dataset: Dataset | None = None
) -> tuple[Statistic, ...]:
    """Statistics of one plan: each checked, no two of one name."""
    if not statistics:
        raise InvalidValue("statistics", [], "must be one or more", 'for example count() or mean("income")')

    def is_open(each: Statistic) -> bool:
        return dataset is not None and isinstance(each, Statistic) and counts_all_values(each, dataset)

    asked = tuple(checked(each, schema, is_open=is_open(each)) for each in statistics)
    seen: set[str] = set()
    for statistic in asked:
        if statistic.name in seen:
            raise InvalidValue(
                "name",
                statistic.name,
                "must not stand for two statistics of one plan",
                "give one of them name=",
            )
        seen.add(statistic.name)
    return asked


def nearest(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is not known: the nearest ones, or all of them."""
    names = list(known)
    near = difflib.get_close_matches(str(name), names, 3, 0.5)
    if near:
        return f"did you mean {' or '.join(near)}"
    return f"there are: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}"


def _refuse_unknown(name: str, schema: Schema, argument: str) -> None:
    if name in schema.unknown:
        raise not_found_yet(name, argument)
    if name not in schema:
        raise InvalidValue(argument, name, "must be a column of the schema", nearest(name, schema))


Parts = tuple[Sequence[Slot], Sequence[Output], Mapping[str, Any], Sequence[Assumption]]
Family = Callable[[Sequence[Statistic], Facts], Parts]


@dataclass(frozen=True, eq=False)
class Design:
    """Slots to be measured and the outputs that read them. Made from public facts alone, by `design_of`.

    Args:
        slots: What is measured.
        outputs: The statistics, each with the slots it reads and its predicted error.
        derived: The columns that are computed before anything is added up.
        assumptions: In words, what the predicted errors assume about the table.
        assumed_rows: The number of rows that errors are for where it is not public, expected or counted; None where no
            error depends on it.
        rows_public: Whether the number of rows is public.
        counted: A private count of the rows that is used.
        expected: What the steward expects, by name.

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
    assumptions: tuple[Assumption, ...]
    assumed_rows: int | None = None
    rows_public: bool = False
    counted: Counted | None = None
    expected: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def sized(self) -> tuple[Output, ...]:
        """The outputs whose errors depend on how many rows the table has; those of people depend on theirs."""
        return tuple(output for output in self.outputs if _sized_by_rows(output))

    def output(self, name: str) -> Output:
        """The output of a statistic by its name.

        Args:
            name: What the statistic is called.

        Returns:
            Its cells, the slots it reads and its predicted error.

        Raises:
            InvalidValue: If there is no such statistic.
        """
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
        """What is charged and run, once noises are chosen.

        Args:
            noises: The noise of every slot, by the slot's name.

        Returns:
            The slots with their noises, for a curator.
        """
        return Measurements(self.derived, self.slots, dict(noises))


def design_of(
    statistics: Sequence[Statistic],
    dataset: Dataset,
    expected: Mapping[str, Any] | None = None,
    pure: bool = False,
    counted: Counted | None = None,
) -> Design:
    """The design for statistics of one dataset. No row is read.

    Args:
        statistics: What is asked.
        dataset: The table with its public facts.
        expected: What is known in public: "rows", columns and statistics by name (see `Facts`).
        pure: Whether delta is 0.
        counted: A private count of the rows.

    Returns:
        What is measured, and the outputs that read it.

    Raises:
        InvalidValue: If a statistic does not fit the schema.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.statistics import count
    >>> people = dataset(pyarrow.table({"sex": ["F"]}), schema={"sex": ["F", "M"]})
    >>> design_of([count(by="sex")], people, expected={"rows": 5_000}).output("count by sex").reference
    array([2500., 2500.])
    """
    asked = checked_all(statistics, dataset.schema, dataset)
    facts = Facts(dataset, _checked_expected(expected, asked, dataset), pure, len(asked), counted)
    _check_values(facts)
    slots: list[Slot] = []
    outputs: dict[str, Output] = {}
    derived: dict[str, Any] = {}
    assumptions: list[Assumption] = []
    shared = [statistic for statistic in asked if statistic.bound is None]
    has_cdf = any(statistic.kind == "cdf" for statistic in shared)
    by_strategy = ranging.cdfs_by_strategy(shared, facts) if has_cdf else frozenset()
    for kinds, family in _families():
        own = [statistic for statistic in shared if statistic.kind in kinds]
        if family is counting.outputs_of:
            own = [statistic for statistic in own if statistic.name not in by_strategy]
        elif family is ranging.outputs_of:
            own += [statistic for statistic in shared if statistic.name in by_strategy]
        if not own:
            continue
        parts = family(own, facts)
        slots.extend(parts[0])
        outputs.update((output.name, output) for output in parts[1])
        derived.update(parts[2])
        assumptions.extend(parts[3])
    for parts in _bounded(asked, facts):
        slots.extend(parts[0])
        outputs.update((output.name, output) for output in parts[1])
        derived.update(parts[2])
        assumptions.extend(parts[3])
    outputs = linked_outputs(outputs, _of_the_same_rows(slots, dataset, derived), dataset.schema)
    ordered = tuple(outputs[statistic.name] for statistic in asked)
    return Design(
        tuple(slots),
        ordered,
        tuple(derived.items()),
        tuple(dict.fromkeys(assumptions)),
        facts.assumed_rows if slots and any(_sized_by_rows(output) for output in ordered) else None,
        rows_public="rows" not in facts.expected and facts.rows_known,
        counted=None if facts.rows_known else counted,
        expected=facts.expected,
    )


def _bounded(asked: Sequence[Statistic], facts: Facts) -> Iterator[Parts]:
    """Statistics with a bound of their own, each measured by itself: no two look at the same rows of a unit."""
    for place, statistic in enumerate((each for each in asked if each.bound is not None), start=1):
        if not facts.dataset.unit:
            given: tuple[str, Any] = "max_rows", str(statistic.bound)
            if statistic.counts_people or statistic.kind in DISTINCT:
                given = ("of", statistic.of) if statistic.counts_people else ("max_cells", statistic.max_cells)
            name, value = given
            rule = "needs a unit: where the unit is one row, rows are people, and each counts once"
            raise InvalidValue(name, value, rule, f"leave {name} out, or declare the column that names a person")
        own = replace(facts, asked=1, bound=statistic.bound, people=statistic.counts_people, place=place)
        family: Family = next(family for kinds, family in _families() if statistic.kind in kinds)
        if statistic.kind == "cdf" and ranging.cdfs_by_strategy([statistic], own):
            family = ranging.outputs_of
        yield family([statistic], own)


def _of_the_same_rows(slots: Sequence[Slot], dataset: Dataset, derived: Mapping[str, Any]) -> list[Slot]:
    """The slots whose counts are of exactly the same rows; of several such sets, the one that counts most often."""
    counting_slots = [slot for slot in slots if slot.row_counts]
    if len(counting_slots) < 2:
        return []
    prepared = dataset.derive(**derived) if derived else dataset
    sets = prepared.read_together({name: part for slot in slots for name, part in slot.aggregates.items()})
    return max(([slot for slot in counting_slots if own.issuperset(slot.aggregates)] for own in sets), key=len)


def _sized_by_rows(output: Output) -> bool:
    return output.sized and not output.statistic.counts_people


def _families() -> tuple[tuple[tuple[str, ...], Family], ...]:
    return (
        (COUNT_FAMILY, counting.outputs_of),
        (MOMENTS, moments.outputs_of),
        (QUANTILES, quantile_outputs.outputs_of),
        (RANGES, ranging.outputs_of),
        (MARGINALS, marginal_outputs.outputs_of),
        (("linear_regression",), regression_outputs.outputs_of),
        (DISTINCT, distinct_outputs.outputs_of),
    )


def _checked_expected(
    expected: Mapping[str, Any] | None, statistics: Sequence[Statistic], dataset: Dataset
) -> dict[str, Any]:
    if expected is None:
        return {}
    if not isinstance(expected, Mapping):
        raise InvalidValue("expected", expected, "must be a mapping", "for example {'rows': 100_000}")
    known = ["rows", "people", *(statistic.name for statistic in statistics), *dataset.schema]
    named = {str(name): value for name, value in expected.items()}
    for name in named:
        # A count that is not asked for may still be known: "count by sex" tells how large the groups are.
        if name not in known and not name.startswith("count"):
            raise InvalidValue(
                "expected",
                name,
                "must be rows, people, a column or a statistic of the plan",
                nearest(name, known),
            )
        if name in dataset.schema and isinstance(dataset.schema[name], Dates):
            raise InvalidValue(
                f"expected[{name!r}]",
                named[name],
                "must be left out for a column of dates, which are assumed uniform between their bounds",
                "of groups by date, the counts can be expected",
            )
    return named


def _check_values(facts: Facts) -> None:
    """Refuse what cannot be expected, also of columns that no statistic asks about: somebody meant something by it."""
    _ = facts.rows
    for name, given in facts.expected.items():
        declared = name in facts.schema
        domain = facts.schema[name] if declared else None
        if isinstance(domain, Categories | Flags):
            category_shares(facts, name, domain.values if isinstance(domain, Categories) else (False, True))
        elif isinstance(domain, Integers | Reals):
            facts.column(name)
        elif name.startswith("count") and not declared:
            checked_expectation(name, given, np.size(given) if isinstance(given, list | tuple | np.ndarray) else 1)
        if declared:
            facts.present(name)
