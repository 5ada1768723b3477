"""The statistics a study may ask for. Each is a frozen value; nothing is read or spent when it is made.

All of them take `where=` (rows for which a predicate is true), `by=` (a column or several, whose public values cut the
rows into groups), `name=` (what it is called in plans and releases), `for_population=` (the interval also accounts for
the rows being a sample) and `rounded=` (whole numbers, where the statistic is one of whole numbers).

Counts take `of="people"`, which counts each unit once in every cell where it has a row. Every statistic may bound what
one unit adds to it: `rows_per_cell=` in at most `max_cells=` cells, or `max_rows=` in all. It then looks at all rows of
a unit, and the dataset's `max_rows` does not matter to it. The cells of sums, means, variances, quantiles and
regressions are the groups of `by=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from farthing.data.aggregates.aggregate import names_of
from farthing.errors import InvalidValue
from farthing.statistics.statistic import (
    COUNT_FAMILY,
    MARGINALS,
    MOMENTS,
    QUANTILES,
    RANGES,
    Kind,
    Statistic,
    statistic,
)

__all__ = [
    "CONSTRUCTORS",
    "COUNT_FAMILY",
    "MARGINALS",
    "MOMENTS",
    "QUANTILES",
    "RANGES",
    "Kind",
    "Statistic",
    "cdf",
    "contingency",
    "count",
    "count_distinct",
    "histogram",
    "linear_regression",
    "marginals",
    "mean",
    "median",
    "quantile",
    "quantiles",
    "ranges",
    "std",
    "sum",
    "top",
    "variance",
]

Groups = str | Sequence[str] | None


def count(
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    of: str = "rows",
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The number of rows, or of people.

    Args:
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        of: What to count: "rows", or "people", which counts each unit once in every cell where it has a row.
        max_cells: In how many cells one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a cell; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> count(where="bmi<25", by="sex").name
    'count where bmi < 25 by sex'
    >>> count(by="ward", of="people", max_cells=2).name
    'count of people by ward'
    """
    kept = _bounds(max_cells, rows_per_cell, max_rows)
    return statistic(
        "count", where=where, by=by, name=name, for_population=for_population, rounded=rounded, of=of, **kept
    )


def sum(
    column: str,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The sum of a numeric column; missing values add nothing.

    Args:
        column: A column of numbers.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many cells one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a cell; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> sum("income").name
    'sum of income'
    """
    kept = _bounds(max_cells, rows_per_cell, max_rows)
    return statistic(
        "sum", _column(column), where=where, by=by, name=name, for_population=for_population, rounded=rounded, **kept
    )


def mean(
    column: str,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The mean of a numeric column over the rows that have it.

    Args:
        column: A column of numbers, or of true and false.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many cells one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a cell; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> mean("income", by=["sex", "smoker"]).name
    'mean of income by sex and smoker'
    """
    kept = _bounds(max_cells, rows_per_cell, max_rows)
    return statistic(
        "mean", _column(column), where=where, by=by, name=name, for_population=for_population, rounded=rounded, **kept
    )


def variance(
    column: str,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The variance of a numeric column: the mean squared distance from the mean.

    Args:
        column: A column of numbers.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many groups of `by` one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a group; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> variance("bmi").name
    'variance of bmi'
    """
    kept = _bounds(max_cells, rows_per_cell, max_rows)
    return statistic(
        "variance",
        _column(column),
        where=where,
        by=by,
        name=name,
        for_population=for_population,
        rounded=rounded,
        **kept,
    )


def std(
    column: str,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The standard deviation of a numeric column: the root of its variance.

    Args:
        column: A column of numbers.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many groups of `by` one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a group; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> std("bmi").name
    'std of bmi'
    """
    kept = _bounds(max_cells, rows_per_cell, max_rows)
    return statistic(
        "std", _column(column), where=where, by=by, name=name, for_population=for_population, rounded=rounded, **kept
    )


def histogram(
    column: str,
    bins: int | Sequence[Any] | None = None,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    of: str = "rows",
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The number of rows in every cell of a column.

    `bins` is a number of equal parts between the bounds or a list of edges; it is left out for categories, and for
    whole numbers or days that are few enough to be their own cells. A cell holds its lower edge; the last also its
    upper one.

    Args:
        column: The column.
        bins: A number of equal parts between the bounds, or a list of edges.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        of: What to count: "rows", or "people", which counts each unit once in every cell where it has a row.
        max_cells: In how many cells one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a cell; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> histogram("age", bins=[0, 18, 65, 110])
    histogram('age', bins=[0, 18, 65, 110])
    """
    return statistic(
        "histogram",
        _column(column),
        where=where,
        by=by,
        name=name,
        bins=bins,
        for_population=for_population,
        rounded=rounded,
        of=of,
        max_cells=max_cells,
        rows_per_cell=rows_per_cell,
        max_rows=max_rows,
    )


def top(
    column: str,
    most: int = 10,
    *,
    where: Any = None,
    name: str | None = None,
    rounded: bool = False,
    of: str = "rows",
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The most frequent values of a column, in order, each with its number of rows or people.

    All values are counted with noise, and those with the largest noisy counts are shown. Their intervals hold for all
    values together, so that they hold for those that came out on top.

    Args:
        column: A column of categories, flags, or few whole numbers or days; or of text whose values nobody listed.
        most: How many values are shown.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        name: What it is called in plans and releases; by default a description such as 'top 10 of diagnosis'.
        rounded: Whether answers are rounded to whole numbers.
        of: What to count: "rows", or "people", which counts each unit once for every value that it has.
        max_cells: For how many values one unit may count; if it has more, some are left out at random.
        rows_per_cell: How many rows of one unit count for a value; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> top("diagnosis", 5, where="age >= 18", of="people", max_cells=3)
    top('diagnosis', 5, where='age >= 18', of='people', max_cells=3)
    >>> top("diagnosis").name
    'top 10 of diagnosis'
    """
    return statistic(
        "top",
        _column(column),
        where=where,
        name=name,
        rounded=rounded,
        most=most,
        of=of,
        max_cells=max_cells,
        rows_per_cell=rows_per_cell,
        max_rows=max_rows,
    )


def cdf(
    column: str,
    bins: int | Sequence[Any] | None = None,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    strategy: str = "auto",
    of: str = "rows",
    max_cells: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The share of rows below each edge of `bins`, among rows that have the column; the last is 1.

    Without `bins`, for whole numbers or days: the share at or below each of them. Where there are many cells, sums of
    neighbouring cells are measured instead of cells; `strategy` says which (see `ranges`).

    Args:
        column: A column of numbers or dates.
        bins: A number of equal parts between the bounds, or a list of edges.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        strategy: What is measured: "auto" takes the best that needs no time, "optimised" may search for a while.
        of: What to count: "rows", or "people", which counts each unit once, by one of its rows, chosen at random.
        max_cells: 1, or left out: a unit in two cells would count twice in their sum.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> cdf("age", bins=22).name
    'cdf of age'
    """
    return statistic(
        "cdf",
        _column(column),
        where=where,
        by=by,
        name=name,
        bins=bins,
        for_population=for_population,
        rounded=rounded,
        strategy=strategy,
        of=of,
        max_cells=max_cells,
        max_rows=max_rows,
    )


def contingency(
    columns: Sequence[str],
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    of: str = "rows",
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The number of rows in every cell of a table of two columns or more.

    `bins` says how numeric columns are cut: `{"age": 10}` or `{"age": [0, 18, 65, 110]}`.

    Args:
        columns: The columns.
        bins: How numeric columns are cut: a number of equal parts, or a list of edges, by column.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        of: What to count: "rows", or "people", which counts each unit once in every cell where it has a row.
        max_cells: In how many cells one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a cell; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> contingency(["sex", "age"], bins={"age": 10}).name
    'contingency of sex and age'
    """
    named = names_of(columns, "columns")
    if not named:
        raise InvalidValue("columns", columns, "must name at least one column", "count() counts all rows")
    return statistic(
        "contingency",
        named,
        where=where,
        by=by,
        name=name,
        bins=bins,
        for_population=for_population,
        rounded=rounded,
        of=of,
        max_cells=max_cells,
        rows_per_cell=rows_per_cell,
        max_rows=max_rows,
    )


def ranges(
    column: str,
    bins: int | Sequence[Any] | None = None,
    ranges: Sequence[tuple[Any, Any]] | None = None,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    strategy: str = "auto",
    of: str = "rows",
    max_cells: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The number of rows in every range of a column: cells from which any range can be added up with little noise.

    The answer holds the cells (`bins` as in a histogram), and `answer.query("10 <= age < 25")` the number of rows in
    any range, with its error, as often as anybody asks. `ranges`, instead of `bins`, limits it to the pairs (lower,
    upper) that are listed: they are then the cells of the answer. `strategy` names what is measured; "auto" takes the
    best that needs no time, "optimised" may think for a while the first time.

    Args:
        column: The column.
        bins: A number of equal parts between the bounds, or a list of edges.
        ranges: Pairs (lower, upper) to which it is limited, instead of `bins`.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        strategy: What is measured: "auto" takes the best that needs no time, "optimised" may search for a while.
        of: What to count: "rows", or "people", which counts each unit once, by one of its rows, chosen at random.
        max_cells: 1, or left out: a unit in two cells would count twice in their sum.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> ranges("age", bins=[0, 18, 65, 110]).name
    'ranges of age'
    >>> ranges("income", ranges=[(0, 20_000), (20_000, 50_000)])
    ranges('income', ranges=[(0, 20000), (20000, 50000)])
    """
    return statistic(
        "ranges",
        _column(column),
        where=where,
        by=by,
        name=name,
        bins=bins,
        for_population=for_population,
        rounded=rounded,
        ranges=ranges,
        strategy=strategy,
        of=of,
        max_cells=max_cells,
        max_rows=max_rows,
    )


def marginals(
    columns: Sequence[str],
    way: int = 2,
    bins: Mapping[str, int | Sequence[Any]] | None = None,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    nonnegative: bool = False,
    of: str = "rows",
    max_cells: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """All tables of `way` of the columns, consistent with each other, over the rows that have all of the columns.

    The product of all columns is never formed, so there may be many of them. `answer.query("sex = 'M' and age < 30")`
    counts any condition on columns that stand in one of the tables. Counts may be a little below zero, which keeps
    every sum of them right on average; `nonnegative` moves them to the nearest tables that are not and still agree,
    nearer to the truth above all where many cells are empty. `rounded` tables are whole and not negative.

    Args:
        columns: The columns.
        way: How many columns each table has.
        bins: How numeric columns are cut: a number of equal parts, or a list of edges, by column.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        nonnegative: Whether tables are moved to the nearest ones without negative counts that still agree.
        of: What to count: "rows", or "people", which counts each unit once, by one of its rows, chosen at random.
        max_cells: 1, or left out: a unit in two cells would count twice in their sum.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> marginals(["sex", "region", "smoker"], way=2).name
    '2-way marginals of sex, region and smoker'
    """
    return statistic(
        "marginals",
        _columns_of_marginals(columns, way),
        where=where,
        by=by,
        name=name,
        bins=bins,
        for_population=for_population,
        rounded=rounded,
        nonnegative=nonnegative,
        way=way,
        of=of,
        max_cells=max_cells,
        max_rows=max_rows,
    )


def _columns_of_marginals(columns: Sequence[str], way: int) -> tuple[str, ...]:
    names = names_of(columns, "columns")
    if not names:
        raise InvalidValue("columns", columns, "must name at least one column", "count() counts all rows")
    if len(names) == 1 and way == 2:
        raise InvalidValue(
            "columns",
            columns,
            "must be two or more, from which tables of way=2 are made",
            f"way=1 or histogram({names[0]!r}) counts one column",
        )
    return names


def quantile(
    column: str,
    probability: float,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The value that a share `probability` of the rows does not exceed.

    Args:
        column: A column of numbers.
        probability: The share of rows, between 0 and 1.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many groups of `by` one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a group; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> quantile("income", 0.9).name
    '0.9-quantile of income'
    """
    return statistic(
        "quantile",
        _column(column),
        where=where,
        by=by,
        name=name,
        probabilities=(probability,),
        for_population=for_population,
        rounded=rounded,
        max_cells=max_cells,
        rows_per_cell=rows_per_cell,
        max_rows=max_rows,
    )


def quantiles(
    column: str,
    probabilities: Sequence[float],
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """Several quantiles of one column, which rise together.

    Args:
        column: A column of numbers.
        probabilities: Rising shares of rows, between 0 and 1.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many groups of `by` one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a group; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> quantiles("income", [0.1, 0.5, 0.9]).probabilities
    (0.1, 0.5, 0.9)
    """
    listed = tuple(probabilities) if isinstance(probabilities, Sequence) else ()
    if not listed or any(not a < b for a, b in pairwise(listed)):
        raise InvalidValue(
            "probabilities", probabilities, "must be an increasing list", "for example [0.25, 0.5, 0.75]"
        )
    return statistic(
        "quantiles",
        _column(column),
        where=where,
        by=by,
        name=name,
        probabilities=listed,
        for_population=for_population,
        rounded=rounded,
        max_cells=max_cells,
        rows_per_cell=rows_per_cell,
        max_rows=max_rows,
    )


def median(
    column: str,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The 0.5-quantile: half of the rows lie on either side.

    Args:
        column: A column of numbers.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many groups of `by` one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a group; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> median("bmi", by="sex").name
    'median of bmi by sex'
    """
    kept = _bounds(max_cells, rows_per_cell, max_rows)
    return quantile(column, 0.5, where=where, by=by, name=name, for_population=for_population, rounded=rounded, **kept)


def linear_regression(
    target: str,
    features: str | Sequence[str],
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    for_population: bool = False,
    rounded: bool = False,
    max_cells: int | None = None,
    rows_per_cell: int | None = None,
    max_rows: int | None = None,
) -> Statistic:
    """The intercept and the coefficients of the least-squares line that explains `target` by `features`.

    A feature of categories has a coefficient for each but the first, with which they are compared: "sex = M".

    Args:
        target: The column that is explained.
        features: The column, or columns, that explain it.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        for_population: Whether the interval also accounts for the rows being a sample of a population.
        rounded: Whether answers are rounded to whole numbers, where the statistic is one.
        max_cells: In how many groups of `by` one unit may count; if it is in more, some are left out at random.
        rows_per_cell: How many rows of one unit count in a group; goes with `max_cells`.
        max_rows: How many rows of one unit count in all, in place of the dataset's `max_rows`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> linear_regression("income", ["age", "years_at_school"]).name
    'regression of income on age and years_at_school'
    """
    named = names_of(features, "features")
    if not named or target in named:
        raise InvalidValue("features", features, "must name one column or more, without the target")
    return statistic(
        "linear_regression",
        (_column(target), *named),
        where=where,
        by=by,
        name=name,
        for_population=for_population,
        rounded=rounded,
        max_cells=max_cells,
        rows_per_cell=rows_per_cell,
        max_rows=max_rows,
    )


def count_distinct(
    column: str | None = None,
    *,
    where: Any = None,
    by: Groups = None,
    name: str | None = None,
    max_cells: int | None = None,
    of: str | None = None,
) -> Statistic:
    """How many different values of a column there are.

    It looks at all rows of each unit, and keeps so many different values of them (in all groups together): a unit
    changes it by at most as many, and by at most all listed values in one group. So it is good where values are many
    and a unit has few of them. For the different values that each person has, see `Dataset.per_unit`.

    Nobody need list the values of a column that is declared as `unknown("text")`, of text or whole numbers: all of them
    are counted, in a table as it was declared. In groups, under a condition, or after steps, they must be found first.

    Args:
        column: A column with a finite list of values: categories, flags, whole numbers or dates; or of unknown text.
        where: A condition on rows, as text or an Ibis expression; all rows by default.
        by: A column, or several, whose public values cut the rows into groups.
        name: What it is called in plans and releases; by default a description such as 'mean of income'.
        max_cells: How many different values one unit may bring, in all groups together; of further ones, some are left
            out at random. By default as many as the dataset's `max_rows`.
        of: Must be left out: values are counted. People are counted by `count(of="people")`.

    Returns:
        A frozen statistic for `Study.plan`; nothing is read or spent.

    Raises:
        InvalidValue: If an argument has the wrong form; columns are checked against the schema by a plan.

    >>> count_distinct("drug", where="age >= 65").name
    'number of different values of drug where age >= 65'
    >>> count_distinct("drug", max_cells=5)
    count_distinct('drug', max_cells=5)
    >>> count_distinct(of="people")
    Traceback (most recent call last):
    farthing.errors.InvalidValue: of='people': must be left out, for values are counted; to count people say count(...
    """
    if of is not None:
        rule, way_out = "must be left out, for values are counted", 'to count people say count(of="people")'
        raise InvalidValue("of", of, rule, way_out)
    return statistic("count_distinct", _column(column), where=where, by=by, name=name, max_cells=max_cells)


CONSTRUCTORS: Mapping[str, Callable[..., Statistic]] = {
    "count": count,
    "sum": sum,
    "mean": mean,
    "variance": variance,
    "std": std,
    "histogram": histogram,
    "top": top,
    "quantile": quantile,
    "quantiles": quantiles,
    "median": median,
    "cdf": cdf,
    "contingency": contingency,
    "ranges": ranges,
    "marginals": marginals,
    "linear_regression": linear_regression,
    "count_distinct": count_distinct,
}
"""Every statistic by its name."""


def _column(column: object) -> str:
    if not isinstance(column, str) or not column:
        raise InvalidValue("column", column, "must be the name of one column")
    return str(column)


def _bounds(max_cells: int | None, rows_per_cell: int | None, max_rows: int | None) -> dict[str, Any]:
    return {"max_cells": max_cells, "rows_per_cell": rows_per_cell, "max_rows": max_rows}
