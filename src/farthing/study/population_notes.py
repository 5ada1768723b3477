"""What the numbers of a release are about, where that is not every row of the table, and what errors rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farthing.data import Dataset
from farthing.statistics import Statistic
from farthing.statistics.design import design_of
from farthing.statistics.public_facts import Counted

_ERRORS_OF_NOISE_ALONE = ("count", "histogram", "contingency", "sum")


def about_rows(dataset: Dataset) -> str | None:
    """Which rows are counted at all; None where it is every row. No margin of error speaks of the others.

    >>> import pyarrow, farthing as ft
    >>> visits = pyarrow.table({"person": [1, 1, 2], "age": [30, 31, 45]})
    >>> print(about_rows(ft.dataset(visits, unit="person", max_rows=2, schema={"age": (0, 110)})))
    numbers are about at most 2 rows of each person, chosen at random, and about no row without person: what further
    rows would add is neither in them nor in their margins of error
    >>> about_rows(ft.dataset(visits, schema={"age": (0, 110)}))
    """
    if not dataset.unit:
        return None
    unit, most = " and ".join(dataset.unit), dataset.rows_per_unit
    rows = "1 row" if most == 1 else f"{most:,} rows"
    return (
        f"numbers are about at most {rows} of each {unit}, chosen at random, and about no row without {unit}: what "
        "further rows would add is neither in them nor in their margins of error"
    )


def rows_known(dataset: Dataset, expected: Mapping[str, Any]) -> int | None:
    """The number of rows where it is public or somebody expects one; None where nothing is known.

    >>> import pyarrow, farthing as ft
    >>> table = pyarrow.table({"age": [30, 31, 45]})
    >>> [rows_known(ft.dataset(table, schema={"age": (0, 110)}), said) for said in ({}, {"rows": 3})]
    [None, 3]
    """
    rows = dataset.rows if dataset.rows is not None else expected.get("rows")
    number = isinstance(rows, int | float) and not isinstance(rows, bool) and 1 <= rows < 2**63
    return int(rows) if number else None  # type: ignore[arg-type]


def errors_rest_on(
    asked: Sequence[Statistic],
    names: Sequence[str],
    dataset: Dataset,
    expected: Mapping[str, Any],
    counted: Counted | None = None,
) -> tuple[str, ...]:
    """What the errors of the named statistics assume; those of counts and sums rest on the noise alone.

    >>> import pyarrow, farthing as ft
    >>> people = ft.dataset(pyarrow.table({"age": [30], "sex": ["F"]}), schema={"age": (0, 110), "sex": ["F", "M"]})
    >>> asked = ft.count(by="sex"), ft.median("age")
    >>> errors_rest_on(asked, ["count by sex"], people, {"rows": 400})
    ()
    >>> print(errors_rest_on(asked, ["median of age"], people, {"rows": 400})[0])
    age is assumed to be spread evenly...
    """
    own = [
        each
        for each in asked
        if each.name in names and (each.for_population or each.kind not in _ERRORS_OF_NOISE_ALONE)
    ]
    if not own:
        return ()
    others = {each.name for each in asked} - {each.name for each in own} - {*dataset.schema}
    # A count that is expected says how large groups are, also to the others.
    told = {name: value for name, value in expected.items() if name not in others or name.startswith("count")}
    return design_of(own, dataset, told, counted=counted).assumptions
