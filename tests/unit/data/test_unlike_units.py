"""Two datasets whose units are stored in different types."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path
from typing import Any

import ibis
import pyarrow
import pytest

import farthing as ft
from farthing.curator import Curator, unit_of
from farthing.data import Count, Dataset, Sum
from farthing.data.engines.duckdb import quiet
from farthing.errors import EngineError, InvalidValue
from farthing.ledger import open_ledger
from farthing.mechanisms import DiscreteLaplace


def people(ids: Any, column: str) -> Dataset:
    table = pyarrow.table({"id": ids, column: [1, 2]})
    return ft.dataset(table, unit="id", max_rows=1, schema={column: (0, 10)})


@cache
def numbered() -> Dataset:
    return people([1, 2], "a")


@pytest.mark.parametrize("ids", [["1", "x"], [datetime.date(2000, 1, 1)] * 2, [True, False]])
def test_units_of_another_type_are_refused_before_a_row_is_read(ids: Any) -> None:
    """An engine would cast one type to the other, and might fail at the first row that does not spell it."""
    with pytest.raises(InvalidValue, match="in both datasets"):
        numbered().join(people(ids, "b"))
    with pytest.raises(InvalidValue, match="in both datasets"):
        numbered().union(people(ids, "a"))


def test_text_is_not_taken_for_a_uuid() -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table named (id uuid, a integer)")
    backend.raw_sql("create table spelt (id varchar, b integer)")
    with quiet():
        left, right = backend.table("named"), backend.table("spelt")
    named = ft.dataset(left, unit="id", max_rows=1, schema={"a": (0, 10)})
    spelt = ft.dataset(right, unit="id", max_rows=1, schema={"b": (0, 10)})
    with pytest.raises(InvalidValue, match="must be uuid in both datasets, not string"):
        named.join(spelt)


@pytest.mark.slow
def test_width_and_not_null_do_not_keep_tables_apart() -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table strict (id bigint not null, a integer not null, f boolean not null)")
    backend.raw_sql("create table loose (id smallint, a bigint, f boolean)")
    for name in ("strict", "loose"):
        backend.raw_sql(f"insert into {name} values (1, 2, true)")
    schema = {"a": (0, 10), "f": bool}
    with quiet():
        tables = backend.table("strict"), backend.table("loose")
    strict, loose = (ft.dataset(table, unit="id", max_rows=1, schema=schema) for table in tables)
    for both in (strict.union(loose), loose.union(strict)):
        found = both.exact({"sum": Sum("a"), "flags": Count(by="f")})
        assert found["sum"] == 4
        assert found["flags"].tolist() == [0, 2]


@pytest.mark.slow
def test_spellings_that_compare_as_equal_are_refused(tmp_path: Path) -> None:
    """NOCASE bounds "a" and "A" as one unit and samples them as two, which makes a sample larger than is priced."""
    backend = ibis.duckdb.connect()
    backend.raw_sql("create table named (id varchar, a integer)")
    with quiet():
        people = ft.dataset(backend.table("named"), unit="id", max_rows=1, schema={"a": (0, 10)})
    backend.raw_sql("set default_collation = 'NOCASE'")
    with pytest.raises(EngineError, match="RESET default_collation"):
        people.exact({"rows": Count()})
    with open_ledger(tmp_path / "study.db") as ledger:  # refused before anybody pays
        ledger.register("named", 1.0, unit=unit_of(people))
        with pytest.raises(EngineError, match="RESET default_collation"):
            Curator(ledger).answer(people, "n", Count(), DiscreteLaplace(0.5), ledger_name="named")
        assert ledger.budget("named").remaining.epsilon == 1.0
    backend.raw_sql("reset default_collation")
    assert people.exact({"rows": Count()})["rows"] == 0
