"""Types, grids and points that would fail in the middle of a query, or be left out in silence."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.data import Count, OrderCounts, Sum, connection
from farthing.data.aggregates import Aggregate
from farthing.data.engines.duckdb import quiet
from farthing.errors import InvalidValue


@pytest.mark.parametrize(
    ("scale", "domain"),
    [(37, (0, 110)), (37, (-10.0, 0.5)), (38, [0, 1]), (38, bool), (30, (0, 10**8)), (30, (0.0, 2.0**52))],
)
def test_bounds_that_a_decimal_cannot_hold_are_refused(scale: int, domain: Any) -> None:
    cells = pyarrow.array([Decimal("0.5")], pyarrow.decimal128(38, scale))
    with pytest.raises(InvalidValue, match=r"must be numbers that fit decimal\(38"):
        ft.dataset(pyarrow.table({"x": cells}), schema={"x": domain})


@pytest.mark.parametrize(
    ("scale", "domain"), [(37, (-9, 9)), (37, (0.0, 9.0)), (38, [0]), (30, (0, 10**8 - 1)), (0, (0, 2**53))]
)
def test_the_widest_bounds_that_a_decimal_can_hold_are_used(scale: int, domain: Any) -> None:
    cells = pyarrow.array([Decimal(0), Decimal(0)], pyarrow.decimal128(38, scale))
    people = ft.dataset(pyarrow.table({"x": cells}), schema={"x": domain})
    assert people.exact({"known": Count("x")})["known"] == 2


PEOPLE = ft.dataset(
    pyarrow.table({"x": [1.0], "sex": ["F"]}), schema={"x": (0.0, 2.0**53), "sex": ["F", "M"]}
)


@pytest.mark.parametrize(
    ("aggregate", "rule"),
    [
        (Sum("x", grid=2.0**-1000), "too fine"),
        (OrderCounts("sex", grid=[1]), "must hold numbers or dates"),
        (OrderCounts("x", grid=[float("nan")]), "must be a value of the kind"),
        (OrderCounts("x", grid=["1"]), "must be a value of the kind"),
    ],
)
def test_grids_that_make_no_sense_are_refused(aggregate: Aggregate, rule: str) -> None:
    with pytest.raises(InvalidValue, match=rule):
        PEOPLE.sensitivity(aggregate)


def test_a_text_of_any_length_is_gone_before_rows_are_sorted() -> None:
    """One person with 300 MB of text in a category column, or in a list, ended every query: out of memory."""
    backend = connection(memory_limit="64MiB", threads=1)
    cells = [*["F"] * 30, "F" * 2**25, "M" * 2**25]
    backend.con.register(
        "people", pyarrow.table({"id": range(32), "x": cells, "l": [[cell, "M"] for cell in cells]})
    )
    with quiet():
        people = backend.table("people")
    data = ft.dataset(people, unit="id", max_rows=1, schema={"x": ["F", "M"], "l": ["F", "M"]})
    assert data.exact({"n": Count(by="x")})["n"].tolist() == [30, 0]
    assert data.explode("l", limit=2).exact({"n": Count(by="l")})["n"].tolist() == [30, 32]
    named = ft.dataset(people, unit="x", max_rows=1, schema={"id": (0, 40)})
    assert named.exact({"n": Count()})["n"] == 3


def test_a_parquet_block_that_one_cell_could_fill_is_refused_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB unpacks it whole; a query that fails then has been paid for."""
    monkeypatch.setattr("farthing.data.parquet_files.LARGEST_BLOCK", 10_000)
    file = tmp_path / "people.parquet"
    table = pyarrow.table(
        {"x": ["F", "F" * 20_000], "l": [["F"], ["F" * 20_000]], "n": [1, 2], "s": ["F", "M"]}
    )
    pyarrow.parquet.write_table(table, file)
    for name in ("x", "l"):
        with pytest.raises(
            InvalidValue, match=rf"more than 0 MiB in column '{name}'; write it with fewer rows"
        ):
            ft.dataset(file, schema={name: ["F", "M"]})
    with pytest.raises(InvalidValue, match="in column 'x'"):
        ft.dataset(file, unit="x", max_rows=1, schema={"s": ["F", "M"]})
    people = ft.dataset(file, schema={"s": ["F", "M"], "n": (0, 3)})
    assert people.exact({"n": Count(by="s")})["n"].tolist() == [1, 1]
