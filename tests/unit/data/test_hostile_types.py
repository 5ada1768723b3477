"""Types, grids and points that would fail in the middle of a query, or be left out in silence."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.curator import Curator, unit_of
from farthing.data import Categories, Count, OrderCounts, Reals, Sum, check, connection
from farthing.data.aggregates import Aggregate
from farthing.data.engines.duckdb import quiet
from farthing.data.key_counts import each_key
from farthing.errors import InvalidValue
from farthing.ledger import open_ledger
from farthing.mechanisms import DiscreteLaplace


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


@cache
def the_people() -> ft.Dataset:
    return ft.dataset(pyarrow.table({"x": [1.0], "sex": ["F"]}), schema={"x": (0.0, 2.0**53), "sex": ["F", "M"]})


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
        the_people().sensitivity(aggregate)


@pytest.mark.slow
def test_a_text_of_any_length_is_gone_before_rows_are_sorted() -> None:
    """One person with 300 MB of text in a category column, or in a list, ended every query: out of memory."""
    backend = connection(memory_limit="64MiB", threads=1)
    cells = [*["F"] * 30, "F" * 2**25, "M" * 2**25]
    backend.con.register("people", pyarrow.table({"id": range(32), "x": cells, "l": [[cell, "M"] for cell in cells]}))
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
    table = pyarrow.table({"x": ["F", "F" * 20_000], "l": [["F"], ["F" * 20_000]], "n": [1, 2], "s": ["F", "M"]})
    pyarrow.parquet.write_table(table, file)
    for name in ("x", "l"):
        with pytest.raises(InvalidValue, match=rf"more than 0 MiB in column '{name}'; write it with fewer rows"):
            ft.dataset(file, schema={name: ["F", "M"]})
    with pytest.raises(InvalidValue, match="in column 'x'"):
        ft.dataset(file, unit="x", max_rows=1, schema={"s": ["F", "M"]})
    people = ft.dataset(file, schema={"s": ["F", "M"], "n": (0, 3)})
    assert people.exact({"n": Count(by="s")})["n"].tolist() == [1, 1]


@pytest.mark.slow
def test_a_table_of_duckdb_with_cells_that_could_fill_the_memory_is_refused_before_anybody_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One person's 300 MB in a column of categories, or of units, made every query fail, with the charge lost."""
    monkeypatch.setattr("farthing.data.large_cells.LARGEST_BLOCK", 10_000)
    monkeypatch.setattr("farthing.data.parquet_files.LARGEST_BLOCK", 10_000)
    backend = connection()
    backend.con.execute("CREATE TABLE t (x VARCHAR, l VARCHAR[], n BIGINT, s VARCHAR)")
    backend.con.execute("INSERT INTO t SELECT 'F', ['F'], 1, 'F' FROM range(5000)")
    backend.con.execute("CREATE VIEW v AS SELECT x AS y, n FROM t")
    pyarrow.parquet.write_table(pyarrow.table({"x": ["F", "F" * 20_000]}), tmp_path / "p.parquet")
    backend.con.execute(f"CREATE VIEW p AS FROM read_parquet('{tmp_path}/p.parquet')")
    with quiet():
        table, view, stored = (backend.table(name) for name in ("t", "v", "p"))
    people = ft.dataset(table, schema={"x": ["F"], "n": (0, 3)})
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("t", 1.0, unit=unit_of(people))
        backend.con.execute("INSERT INTO t SELECT repeat('F', 20000), [repeat('F', 20000)], 2, 'M'")
        with pytest.raises(InvalidValue, match="has cells in column 'x' of which 2,048 may have more than"):
            Curator(ledger).answer(people, "n", Count(), DiscreteLaplace(0.5), ledger_name="t")
        assert ledger.budget("t").remaining.epsilon == 1.0
    for source, schema, unit in (
        (table, {"x": ["F"]}, None), (table, {"l": ["F"]}, None), (table, {"n": (0, 3)}, "x"),
        (view, {"y": ["F"]}, None), (stored, {"x": ["F"]}, None),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match="more than"):
            ft.dataset(source, unit=unit, max_rows=1 if unit else None, schema=schema)
    ordinary = ft.dataset(table, unit="s", max_rows=2, schema={"n": (0, 3)})
    assert ordinary.exact({"n": Count()})["n"] == 3


def test_a_parquet_file_that_is_replaced_by_one_with_a_larger_block_is_refused_before_anybody_pays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.data.parquet_files.LARGEST_BLOCK", 10_000)
    file = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"x": ["F", "M"], "y": ["F", "M"]}), file)
    people, narrow = (ft.dataset(file, schema={name: ["F", "M"]}) for name in ("x", "y"))
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0, unit=unit_of(people))
        pyarrow.parquet.write_table(pyarrow.table({"x": ["F", "M" * 20_000], "y": ["F", "M"]}), file)
        with pytest.raises(InvalidValue, match=r"source='people\.parquet': has a row group") as refusal:
            Curator(ledger).answer(people, "n", Count(), DiscreteLaplace(0.5), ledger_name="people")
        assert str(tmp_path) not in str(refusal.value)  # an analyst may see it
        assert ledger.budget("people").remaining.epsilon == 1.0
    assert narrow.exact({"n": Count(by="y")})["n"].tolist() == [1, 1]


def no_text(*cells: bytes) -> Any:
    """Arrow does not look at the bytes of its texts, so that a table may hold some that are none."""
    ends = np.cumsum([0, *map(len, cells)]).astype(np.int32)
    buffers = [None, pyarrow.py_buffer(ends.tobytes()), pyarrow.py_buffer(b"".join(cells))]
    return pyarrow.Array.from_buffers(pyarrow.utf8(), len(cells), buffers)


@pytest.mark.parametrize(
    "odd", [b"\xff", b"\xc3", b"\xed\xa0\x80", b" F\x80"], ids=["no byte", "cut", "surrogate", "end"]
)
def test_bytes_that_are_no_text_are_missing_however_a_cell_is_read(odd: bytes) -> None:
    """One such row stopped every query of a column that was trimmed, searched or read as a date, after the charge."""
    cells = {
        "trimmed": ([b" F ", b"M"], Categories(["F", "M"], trim=True)),
        "folded": ([b"f", b"M"], Categories(["f", "m"], lower=True)),
        "flag": ([b"yes", b"0"], bool),
        "number": ([b"1,5", b"2"], Reals(0.0, 4.0, decimal=",")),
        "day": ([b"2000-01-02", b"2000-01-03"], (date(2000, 1, 1), date(2000, 1, 3))),
    }
    table = pyarrow.table({name: no_text(*good, odd) for name, (good, _) in cells.items()})
    rows = ft.dataset(table, schema={name: domain for name, (_, domain) in cells.items()})
    found = rows.exact({name: Count(name) for name in cells})
    assert {name: int(count) for name, count in found.items()} == dict.fromkeys(cells, 2)
    for rules in ({}, {"trim": True, "lower": True}):
        keys: list[str] = []
        each_key(rows, "folded", (1,), lambda some, _, keys=keys: keys.extend(some), **rules)
        assert sorted(keys) == (["f", "m"] if rules else ["M", "f"])
    report = check(rows)
    assert [column.unread for column in report.columns] == [1] * len(cells)
    assert "bytes that are not UTF-8" in str(report)
