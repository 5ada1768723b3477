"""Datasets of which something is unknown: what they become when it is found, and the rows that are searched for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from farthing.data.dataset import Dataset
from farthing.data.schema import Domain
from farthing.data.stability import LeftOut, Step, UnitSizes
from farthing.data.steps.stability_steps import Union
from farthing.data.unit_rows import MOST_ROWS_A_UNIT, widest_of
from farthing.errors import InvalidValue


def known(
    dataset: Dataset,
    domains: Mapping[str, Domain],
    max_rows: int | None = None,
    left_out: LeftOut | None = None,
    unit_sizes: UnitSizes | None = None,
) -> Dataset:
    """The same dataset where something that was unknown is known.

    Args:
        dataset: The dataset.
        domains: Those of unknown columns; what is no unknown column of the table is left aside.
        max_rows: How many rows of a unit are kept, where that was to be found.
        left_out: How many rows the bound leaves out.
        unit_sizes: How many rows units have.

    Returns:
        A dataset with the same steps. It claims nothing about rows: what lies outside is clipped, or missing. A column
        is known in a union if the second table has it too.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"income": [30.0]}), schema={"income": ft.unknown("number")})
    >>> list(people.schema), known(people, {"income": ft.data.Reals(0, 100)}).schema["income"]
    ([], Reals(lower=0.0, upper=100.0))
    """
    base = dataset._base
    steps = tuple(_known_there(step, dataset, domains) for step in dataset._steps)
    added = [step.other.schema.columns for step in steps if isinstance(step, Union)]
    domains = {name: each for name, each in domains.items() if all(other.get(name) == each for other in added)}
    base = replace(base.with_domains(domains), left_out=left_out or base.left_out)
    base = replace(base, unit_sizes=unit_sizes or base.unit_sizes)
    if max_rows is not None and base.is_auto:
        base = replace(base, max_rows=max_rows, is_auto=False)
    schema = base.schema
    for step in steps:
        schema = step.schema(schema)
    return replace(dataset, _base=base, _steps=steps, schema=schema)


def _known_there(step: Step, dataset: Dataset, domains: Mapping[str, Domain]) -> Step:
    """A union whose second table reads the same columns: what only the first one knows would fail after a charge."""
    if not (isinstance(step, Union) and isinstance(step.other, Dataset)):
        return step
    there = step.other.unknown
    alike = {name: each for name, each in domains.items() if name in there and there[name] == dataset.unknown.get(name)}
    return replace(step, other=known(step.other, alike))


def one_row_a_unit(dataset: Dataset, column: str) -> Dataset:
    """The table itself, of each unit one row at random that has a value in a column: to look for its range.

    Args:
        dataset: The dataset; its steps are left out.
        column: A column whose range nobody knows.

    Returns:
        A dataset without steps in which the column may hold all that its kind allows.

    Raises:
        InvalidValue: If there is no such unknown column, or it holds text.

    >>> import pyarrow, farthing as ft
    >>> visits = pyarrow.table({"who": [1, 1, 2], "cost": [30.0, None, 70.0]})
    >>> visits = ft.dataset(visits, unit="who", max_rows=9, schema={"cost": ft.unknown("number")})
    >>> one_row_a_unit(visits, "cost").exact({"n": ft.data.Count("cost")})["n"].tolist()
    2
    """
    if column not in dataset.unknown:
        there = ", ".join(dataset.unknown) or "none"
        raise InvalidValue("column", column, "must be declared as unknown", f"there are: {there}")
    source = dataset._base.source
    kind = None if source.text_file else source.table.schema()[column]
    wide = known(dataset, {column: widest_of(dataset.unknown[column], kind)})._base
    whole = replace(wide, max_rows=1, present=column, is_auto=False)
    return Dataset(whole, (), whole.schema, dataset._group)


def rows_a_unit(dataset: Dataset) -> Dataset:
    """One row for each unit, with how many rows of the table are its own: to look for a bound on them.

    Args:
        dataset: The dataset; its steps are left out.

    Returns:
        A dataset of one column, "rows".

    Raises:
        InvalidValue: If the unit is one row.

    >>> import pyarrow, farthing as ft
    >>> visits = ft.dataset(pyarrow.table({"who": [1, 1, 2]}), unit="who", max_rows=1, schema={"who": (0, 9)})
    >>> rows_a_unit(visits).schema["rows"]
    Integers(lower=1, upper=1000000)
    """
    whole = replace(dataset._base, max_rows=MOST_ROWS_A_UNIT, is_auto=False)
    return Dataset(whole, (), whole.schema, dataset._group).per_unit(rows="count()")


def table_itself(dataset: Dataset, column: str | None = None) -> Dataset:
    """The table that a dataset starts from, as it was declared, without anything that was done to its rows.

    Args:
        dataset: The dataset.
        column: A column; if it was brought along from a linked table, that table is meant.

    Returns:
        A dataset of the same units; those of other tables, which were joined or added, are not in it.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"age": [30, 12]}), schema={"age": (0, 110)})
    >>> table_itself(people.where("age >= 18")).is_untransformed
    True
    """
    base = dataset._base.table_of("" if column is None else column)
    return Dataset(base, (), base.schema, dataset._group)
