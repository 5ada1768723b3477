"""What the numbers of a statistic count: rows or people, and which of them are left out before any noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from farthing.data import Dataset
from farthing.data.aggregates.aggregate import axis_of
from farthing.data.aggregates.unit_bounds import UnitBound
from farthing.data.unit_rows import MOST_ROWS_A_UNIT
from farthing.statistics.statistic import ADDED_CELLS, COUNT_FAMILY, DISTINCT, Statistic


def bound_in(statistic: Statistic, dataset: Dataset) -> UnitBound | None:
    """What a statistic keeps of each unit of a dataset; None where the dataset's own bound on rows holds.

    Different values need no choice of rows where all can be seen: the dataset's `max_rows` then bounds the values that
    a unit brings. One unit changes as much either way, and fewer values are lost.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> from farthing.statistics import count, count_distinct
    >>> flights = dataset(pyarrow.table({"plane": [1], "origin": ["EWR"]}), unit="plane", max_rows=20,
    ...     schema={"origin": ["EWR", "JFK", "LGA"]})
    >>> print(bound_in(count(), flights), bound_in(count_distinct("origin"), flights), sep=", ")
    None, 1 row in each of at most 20 cells
    """
    own = statistic.bound
    if counts_all_values(statistic, dataset):
        return UnitBound(rows_per_cell=1, max_cells=values_kept(statistic, dataset)) if dataset.unit else None
    if own is not None or statistic.kind not in DISTINCT or not (dataset.bounds_rows and dataset.shows_all_rows):
        return own
    return UnitBound(rows_per_cell=1, max_cells=min(dataset.rows_per_unit, MOST_ROWS_A_UNIT))


def counts_all_values(statistic: Statistic, dataset: Dataset) -> bool:
    """Whether a statistic counts all different values of a column, though nobody listed them.

    In groups and under conditions, and where rows were changed or left out first, it counts those of a list.
    """
    if statistic.kind not in DISTINCT or statistic.by or statistic.where is not None:
        return False
    column = statistic.column
    return dataset.schema.open_text(column) is not None and dataset.has_all_values(column)


def values_kept(statistic: Statistic, dataset: Dataset) -> int:
    """How many different values of a unit count, of a column whose values nobody listed: by default as its rows."""
    if not dataset.unit:
        return 1
    return statistic.max_cells or min(dataset.rows_per_unit, MOST_ROWS_A_UNIT)


@dataclass(frozen=True)
class Coverage:
    """What a statistic counts, in words.

    Args:
        text: What is counted, with what is kept of each unit where something may be left out.
        value: What an error is a distance from, after "the" or "its": a true value only where nothing is left out.
        left_out: What a bound of the statistic's own leaves out, after "in count by ward, "; nothing where it is empty.

    >>> Coverage().value
    'true value'
    """

    text: str = "rows"
    value: str = "true value"
    left_out: str = ""

    @classmethod
    def of(cls, statistic: Statistic, dataset: Dataset, cells: int) -> Coverage:
        """What a statistic of so many cells counts.

        Args:
            statistic: What is asked.
            dataset: The table with its public facts.
            cells: How many numbers it has.

        Returns:
            The words.

        >>> import pyarrow
        >>> from farthing.data import dataset
        >>> from farthing.statistics import count, count_distinct
        >>> flights = dataset(pyarrow.table({"plane": [1], "origin": ["EWR"]}), unit="plane", max_rows=20,
        ...     schema={"origin": ["EWR", "JFK", "LGA"]})
        >>> print(Coverage.of(count(by="origin"), flights, 3).text)
        rows (at most 20 of each plane)
        >>> print(Coverage.of(count(by="origin"), flights, 3).value)
        value over at most 20 rows of each plane
        >>> print(Coverage.of(count(by="origin", of="people", max_cells=3), flights, 3).text)
        people (one per plane)
        >>> print(Coverage.of(count(by="origin", of="people", max_cells=2), flights, 3).text)
        people (one per plane, in at most 2 cells)
        >>> print(Coverage.of(count_distinct("origin"), flights, 1).text)
        different values
        >>> print(Coverage.of(count_distinct("origin", max_cells=2), flights, 1).text)
        different values (at most 2 of each plane)
        >>> print(Coverage.of(count(by="origin", of="people", max_cells=2), flights, 3).left_out)
        people in more than 2 cells count in 2 of them, chosen at random, and are missing from the others and from the
        margins of error
        >>> print(Coverage.of(count(max_rows=5), flights, 1).left_out)
        at most 5 rows of each plane count, chosen at random; other rows are left out, and margins of error do not
        account for them
        >>> print(Coverage.of(count(), flights.sample(0.1), 1).text)
        rows (at most 20 of each plane, of the sample)
        """
        if statistic.kind in DISTINCT:
            return cls._of_values(statistic, dataset, cells)
        coverage = cls._of_rows(statistic, dataset, cells)
        return coverage if dataset.probability == 1 else coverage._of_sample()

    def _of_sample(self) -> Coverage:
        """The same of a sample that is drawn for one release: no margin of error includes the draw."""
        text = f"{self.text[:-1]}, of the sample)" if self.text.endswith(")") else f"{self.text} (of the sample)"
        return replace(self, text=text, value=f"{self.value} in the sample")

    @classmethod
    def _of_rows(cls, statistic: Statistic, dataset: Dataset, cells: int) -> Coverage:
        if not dataset.unit:
            return cls()
        unit = " and ".join(dataset.unit)
        if statistic.counts_people:
            return cls._of_people(statistic, dataset, unit, cells)
        made_of, bound = dataset.rows_made_into_one, statistic.bound
        if made_of is not None and bound is None and dataset.rows_per_unit == 1:
            return cls(
                f"people (one per {unit}, by {_at_most(made_of)})", f"value over {_at_most(made_of)} of each {unit}"
            )
        most, where = dataset.rows_per_unit if bound is None else bound.most_in_cell, ""
        if bound is not None and bound.max_cells is not None:
            if statistic.kind not in COUNT_FAMILY:  # of quantiles and coefficients there are several in a group
                cells = math.prod(len(axis_of(name, dataset.schema)) for name in statistic.by)
            few = bound.max_cells < cells
            where = f" in each of at most {_many(bound.max_cells, 'cell')}" if few else " in each cell" * (cells > 1)
        kept = f"{_at_most(most)} of each {unit} count{where}, chosen at random"
        return cls(
            f"rows (at most {most:,} of each {unit}{where})",
            f"value over {_at_most(most)} of each {unit}{where}",
            "" if bound is None else f"{kept}; other rows are left out, {_NO_MARGIN}{_whose(dataset, bound.rows_kept)}",
        )

    @classmethod
    def _of_people(cls, statistic: Statistic, dataset: Dataset, unit: str, cells: int) -> Coverage:
        limits, left_out, most = [], "", statistic.max_cells or 1
        if not dataset.shows_all_rows:
            limits.append(f"by {_at_most(dataset.rows_made_into_one or dataset.rows_per_unit)}")
        if statistic.kind in ADDED_CELLS:
            limits.append("in one cell, chosen by one of its rows")
            left_out = f"each {unit} counts by one of its rows, chosen at random; other rows are left out, {_NO_MARGIN}"
        elif min(cells, _reach(dataset)) > most:
            limits.append(f"in at most {_many(most, 'cell')}")
            left_out = (
                f"people in more than {_many(most, 'cell')} count in {most:,} of them, chosen at random, and are "
                f"missing from the others and from the margins of error{_whose(dataset, most)}"
            )
        text = f"people ({', '.join([f'one per {unit}', *limits])})"
        number = "value over" if statistic.kind in ADDED_CELLS else "number of"
        return cls(text, f"{number} {text}" if limits else f"true {number} {text}", left_out)

    @classmethod
    def _of_values(cls, statistic: Statistic, dataset: Dataset, groups: int) -> Coverage:
        """All values of a table whose unit is one row; else those that a unit may bring, of rows that may be few.

        Where some of them were found, the number is not that of the found ones, and may be larger.
        """
        bound, unit = bound_in(statistic, dataset), " and ".join(dataset.unit)
        limits: list[str] = []
        left_out = ""
        is_open = counts_all_values(statistic, dataset)
        pairs = math.inf if is_open else groups * len(axis_of(statistic.column, dataset.schema))
        if bound is not None and bound.max_cells is not None and bound.max_cells < pairs:
            limits.append(f"at most {bound.max_cells:,} of each {unit}")
            kept = f"at most {_many(bound.max_cells, 'value')} of each {unit} count, chosen at random"
            left_out = f"{kept}; other values are left out, {_NO_MARGIN}{_whose(dataset, bound.max_cells)}"
        if dataset.unit and not dataset.shows_all_rows and not is_open:
            made_of = dataset.rows_made_into_one or dataset.rows_per_unit
            limits.append(f"in {_at_most(made_of)} of each {unit}")
        if dataset.probability < 1:  # the whole table may have any number of further ones
            limits.append("of the sample")
        said = ["found or not", *limits] if is_open and statistic.column in dataset.schema else limits
        text = f"different values ({', '.join(said)})" if said else "different values"
        return cls(text, f"number of {text}" if limits else f"true number of {text}", left_out)


_NO_MARGIN = "and margins of error do not account for them"


def _reach(dataset: Dataset) -> float:
    """In how many cells one unit may be at most, for want of more rows."""
    return math.inf if dataset.shows_all_rows else dataset.rows_per_unit


def _whose(dataset: Dataset, most: int) -> str:
    """How many units may have more than a bound keeps: only those with more rows than that; nothing if nobody knows.

    It holds for every condition and every column: neither makes rows.
    """
    known = dataset.units_above(most) if dataset.shows_all_rows else None
    if known is None:
        return ""
    about, highest, seen = known
    unit = " and ".join(dataset.unit)
    named = f"each {unit} with at most {_many(most, 'row')} counts whole, and "
    if about is None:
        return f"; {named}at most {highest:,} can have more"
    beyond = "" if seen is None else f", not counting those with more than {seen:,} rows, too few to be seen"
    return f"; {named}about {about:,} have more (at most {highest:,}, 95% sure{beyond})"


def limited(counts: str) -> str:
    """What is counted, where the words bound what is kept of a unit; empty where every row or value counts.

    >>> limited("rows"), limited("rows (at most 5 of each person)")
    ('', 'rows (at most 5 of each person)')
    """
    return counts if counts.endswith(")") else ""


def _at_most(rows: int) -> str:
    return f"at most {_many(rows, 'row')}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


ALL_ROWS = Coverage()
"""Of a table whose unit is one row, every row counts."""
