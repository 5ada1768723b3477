"""Which rows or people the numbers of a plan are about, and whom its bounds leave out, in words. No row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from farthing.data import Dataset
from farthing.numerics.bounds import ceiling
from farthing.statistics.coverage import Coverage, bound_in
from farthing.statistics.measurements import Output
from farthing.statistics.statistic import ADDED_CELLS, Statistic


def about_rows(dataset: Dataset, outputs: Sequence[Output] = ()) -> str | None:
    """Which rows are counted at all; None where it is every row. No margin of error speaks of the others.

    Statistics with a bound of their own look at all rows of a unit, and each says what its bound leaves out.

    >>> import pyarrow, farthing as ft
    >>> visits = pyarrow.table({"person": [1, 1, 2], "age": [30, 31, 45]})
    >>> print(about_rows(ft.dataset(visits, unit="person", max_rows=2, schema={"age": (0, 110)})))
    numbers cover at most 2 rows of each person, chosen at random; other rows, and rows without person, are left out,
    and margins of error do not account for them
    >>> people = ft.dataset(visits, unit="person", max_rows=2, schema={"age": (0, 110)}).per_unit(visits="count()")
    >>> print(about_rows(people))
    numbers count each person once, by at most 2 rows, chosen at random; other rows, and rows without person, are left
    out, and margins of error do not account for them
    >>> about_rows(ft.dataset(visits, schema={"age": (0, 110)}))
    >>> from datetime import date
    >>> bounds = (date(2026, 1, 1), date(2026, 12, 31))
    >>> days = ft.dataset(pyarrow.table({"day": [date(2026, 2, 3)]}), schema={"day": bounds})
    >>> print(about_rows(days.during("day", "month", "2026-02")))
    numbers are about 2026-02, by day
    >>> print(about_rows(ft.dataset(visits, schema={"age": (0, 110)}).sample(0.25)))
    numbers and their margins of error are about a secret sample, drawn for this release: each row is in it with
    probability 0.25 (the rows that you expect are those of the table). For the table, divide counts, sums and their
    margins by 0.25; a count of n in the sample then has a further error of about 6.8 sqrt(n) from the draw (95%)
    """
    statistics = [output.statistic for output in outputs]
    own = [each for each in statistics if bound_in(each, dataset) is not None and dataset.shows_all_rows]
    only_own = bool(own) and len(own) == len(statistics)
    said = [_about_period(dataset), _about_sample(dataset, own), _about_units(dataset, own, only_own=only_own)]
    said += [_about_joins(dataset), None if only_own else _about_share(dataset), *_about_bounds(dataset, outputs)]
    return "; ".join(part for part in said if part) or None


def _about_period(dataset: Dataset) -> str | None:
    if dataset.period is None:
        return None
    column, periods = dataset.period
    return f"numbers are about {periods.names[0]}, by {column}"


def _about_sample(dataset: Dataset, own: Sequence[Statistic]) -> str | None:
    """What a sample stands for. A unit of at most m rows is kept or not: n has a variance of at most m n (1 - p)."""
    rate = dataset.probability
    if rate == 1:
        return None
    whose = " and ".join(dataset.unit) if dataset.unit else "row"
    most = max((each.bound.most_in_cell for each in own if each.bound is not None), default=1)
    most = max(most, dataset.rows_per_unit) if dataset.bounds_rows or not dataset.unit else most
    spread = 1.96 * math.sqrt(most * (1 - rate)) / rate
    return (
        f"numbers and their margins of error are about a secret sample, drawn for this release: each {whose} is in it "
        f"with probability {rate:.6g} (the rows that you expect are those of the table). For the table, divide counts, "
        "sums and their margins by "
        f"{rate:.6g}; a count of n in the sample then has a further error of about {ceiling(spread, 2)} sqrt(n) from "
        "the draw (95%)"
    )


def _about_joins(dataset: Dataset) -> str | None:
    """Whose rows an inner join leaves out; whether there are any is private."""
    words = 'are left out: the join is inner, and how = "left" keeps them'
    return f"rows without a row in {_listed(dataset.inner_joins)} {words}" if dataset.inner_joins else None


def _about_share(dataset: Dataset) -> str | None:
    """The share of rows that `max_rows` leaves out, where a study has found it, and whose rows are not in it."""
    part = dataset.left_out
    if part is None:
        return None
    return "; ".join(filter(None, (f"{part} ({part.confidence:.0%} sure)", part.unseen)))


def _about_bounds(dataset: Dataset, outputs: Sequence[Output]) -> list[str]:
    """What the bounds of single statistics leave out, each bound once."""
    names: dict[str, list[str]] = {}
    for output in outputs:
        left_out = coverage_of(output, dataset).left_out
        if left_out:
            names.setdefault(left_out, []).append(output.name)
    return [f"in {_listed(own)}, {left_out}" for left_out, own in names.items()]


def bounds_of_unknown_reach(dataset: Dataset, outputs: Sequence[Output]) -> list[str]:
    """That nobody knows how many people a `max_cells` leaves out, and how to find out; of each bound once.

    >>> import pyarrow, farthing as ft
    >>> from farthing.statistics.design import design_of
    >>> stays = pyarrow.table({"who": [1, 1], "ward": ["n", "s"]})
    >>> stays = ft.dataset(stays, unit="who", schema={"ward": ["n", "s", "w"]}, name="stays")
    >>> asked = ft.count(by="ward", of="people", max_cells=2)
    >>> print(*bounds_of_unknown_reach(stays, design_of([asked], stays).outputs))
    nobody knows how many people max_cells=2 leaves out of some cells of count of people by ward: max_cells=3 leaves
    nobody out, and discovering rows_per_unit finds a limit for a small part of the budget
    """
    names: dict[tuple[int, int], list[str]] = {}
    for output in outputs:
        statistic, cells = output.statistic, len(output.labels)
        most = statistic.max_cells or 1
        limited = statistic.counts_people and statistic.kind not in ADDED_CELLS and cells > most
        if limited and dataset.unit and dataset.shows_all_rows and dataset.units_above(most) is None:
            names.setdefault((most, cells), []).append(output.name)
    return [
        f"nobody knows how many people max_cells={most} leaves out of some cells of {_listed(own)}: max_cells={cells} "
        "leaves nobody out, and discovering rows_per_unit finds a limit for a small part of the budget"
        for (most, cells), own in names.items()
    ]


def _listed(names: Sequence[str]) -> str:
    few = list(names) if len(names) < 5 else [*names[:3], f"{len(names) - 3:,} more"]
    return f"{', '.join(few[:-1])} and {few[-1]}" if few[1:] else few[0]


def coverage_of(output: Output, dataset: Dataset) -> Coverage:
    """What the numbers of a statistic count."""
    return Coverage.of(output.statistic, dataset, max(1, len(output.labels)))


def _about_units(dataset: Dataset, own: Sequence[Statistic], *, only_own: bool) -> str | None:
    if not dataset.unit:
        return None
    unit, made_of = " and ".join(dataset.unit), dataset.rows_made_into_one
    if only_own:
        return f"numbers look at all rows of each {unit}; rows without {unit} are left out"
    if own:
        others = _about_units(dataset, (), only_own=False)
        return f"{others}; for {_listed([each.name for each in own])}, all rows of each {unit} are looked at instead"
    most = dataset.rows_per_unit if made_of is None else made_of
    rows = "1 row" if most == 1 else f"{most:,} rows"
    if made_of is not None and dataset.rows_per_unit == 1:
        return (
            f"numbers count each {unit} once, by at most {rows}, chosen at random; other rows, and rows without "
            f"{unit}, are left out, and margins of error do not account for them"
        )
    return (
        f"numbers cover at most {rows} of each {unit}, chosen at random; other rows, and rows without {unit}, are left "
        "out, and margins of error do not account for them"
    )
