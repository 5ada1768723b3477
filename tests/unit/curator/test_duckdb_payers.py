"""Tables, views and frames of DuckDB are paid for by the accounts of what they read, or refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import ibis
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from farthing import Study, count, open_ledger
from farthing.data.engines.duckdb import quiet
from farthing.data.sources import open_source
from farthing.data.table_identity import pieces_of
from farthing.errors import InvalidValue
from farthing.ledger import Ledger
from payer_tables import left, rows, spend, write


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    monkeypatch.chdir(made)
    for name in ("people.csv", "planes.csv", "visits-1.csv", "visits-2.csv"):
        write(name)
    return made


@pytest.mark.slow
def test_a_table_of_a_database_file_is_known_by_the_file(ledger: Ledger, folder: Path) -> None:
    with duckdb.connect("registry.db") as connection:
        connection.execute("CREATE TABLE People AS SELECT 1 AS person, 30 AS age")
    os.symlink("registry.db", "link.db")
    names = []
    for place, table in (("registry.db", "People"), ("link.db", "people")):
        backend = ibis.duckdb.connect(place, read_only=True)
        with quiet():
            made = rows(backend.table(table))
        names.append(spend(ledger, made).name)
        backend.disconnect()
    assert names == ["People", "People"]


@pytest.mark.slow
def test_a_view_is_paid_for_by_the_tables_and_files_that_it_reads(ledger: Ledger, folder: Path) -> None:
    """Each of these was a second budget for the same people."""
    pq.write_table(pa.table({"person": [1, 2], "age": [30, 41]}), "people.parquet")
    with duckdb.connect("clinic.db") as made:
        made.execute("CREATE TABLE people AS SELECT 1 AS person, 30 AS age")
        made.execute("CREATE VIEW adults AS SELECT * FROM people WHERE age >= 18")
        made.execute('CREATE VIEW "AS old" (person, age) AS SELECT * FROM ADULTS')
        made.execute(f"CREATE VIEW stored AS SELECT * FROM read_parquet('{folder}/*.parquet')")
        made.execute("CREATE VIEW again AS FROM stored")
    with quiet():
        clinic = ibis.duckdb.connect("clinic.db", read_only=True)
        spend(ledger, rows(clinic.table("people")), 0.125)
        spend(ledger, rows("people.parquet"), 0.125)
        for view in ("adults", "AS old", "stored", "again"):
            spend(ledger, rows(clinic.table(view)), 0.125)
        spend(ledger, rows(ibis.duckdb.connect().read_parquet("people.parquet", table_name="other")), 0.125)
    assert left(ledger, "people", "people.parquet") == [0.625, 0.5]
    assert ledger.datasets() == ["people", "people.parquet"]


@pytest.mark.parametrize(
    ("sql", "account"),
    [
        ("FROM read_parquet('file://{folder}/people.parquet')", "people.parquet"),
        ("FROM read_parquet(['people.parquet'], union_by_name = true) WHERE age > 1000", "people.parquet"),
        ("FROM named()", "must be 'by person'"),  # its people are found; whose its rows are is not
        ("SELECT person, oldest(3) AS age FROM range(3) r(person)", "must be 'by person'"),
        ("FROM '[p]eople*.parquet'", "people.parquet"),
        ("FROM read_parquet(concat('people', '.parquet'))", "by a path that is not written out"),
        ("FROM given('people.parquet')", "by a path that is not written out"),
        ("FROM query('FROM ''people.parquet''')", r"with query\(\)"),
        ("SELECT size AS person, 3 AS age FROM read_blob('people.parquet')", r"with read_blob\(\)"),
        ("FROM read_parquet('{folder}')", "by the name of their folder alone"),
    ],
)
def test_a_view_finds_its_files_or_is_refused(ledger: Ledger, folder: Path, sql: str, account: str) -> None:
    """A view whose files were not found opened a second budget for the people in them."""
    for each in folder.iterdir():
        each.unlink()
    pq.write_table(pa.table({"person": [1, 2], "age": [30, 41]}), "people.parquet")
    tables = ibis.duckdb.connect()
    tables.raw_sql("CREATE MACRO named() AS TABLE FROM 'people.parquet'")
    tables.raw_sql("CREATE MACRO given(path) AS TABLE FROM read_parquet(path)")
    tables.raw_sql("CREATE MACRO oldest(x) AS (SELECT max(age) FROM 'people.parquet' WHERE age > x)")
    tables.raw_sql(f'CREATE VIEW inner_ ("a b", age) AS {sql.format(folder=folder)}')
    tables.raw_sql('CREATE VIEW "a ""view" AS SELECT "a b" AS person, age FROM inner_')
    with quiet():
        view = tables.table('a "view')
    Study(rows("people.parquet"), epsilon=1.0, ledger=ledger).register()
    if account != "people.parquet":
        with pytest.raises(InvalidValue, match=account):
            Study(rows(view), epsilon=1.0, ledger=ledger)
        return
    assert Study(rows(view), epsilon=1.0, ledger=ledger).accounts == ("people.parquet",)


@pytest.mark.slow
def test_a_pattern_in_a_view_keeps_the_files_that_come_later(ledger: Ledger, folder: Path) -> None:
    pq.write_table(pa.table({"person": [1, 2], "age": [30, 41]}), "march.parquet")
    tables = ibis.duckdb.connect()
    tables.raw_sql(f"CREATE VIEW months AS FROM 'file://{folder}/*.parquet'")
    with quiet():
        Study(rows(tables.table("months")), epsilon=1.0, ledger=ledger, account="patients").register()
    pq.write_table(pa.table({"person": [1, 2], "age": [30, 41]}), "april.parquet")
    assert Study(rows("april.parquet"), epsilon=1.0, ledger=ledger).accounts == ("patients",)


@pytest.mark.slow
def test_a_frame_that_duckdb_was_handed_needs_a_name_and_pays_with_its_tables(ledger: Ledger, folder: Path) -> None:
    """A pyarrow dataset of a registered file was known by the name that DuckDB had for it: a second budget."""
    pq.write_table(pa.table({"person": [1, 2], "age": [30, 41]}), "people.parquet")
    Study(rows("people.parquet"), epsilon=1.0, ledger=ledger, account="patients").register()
    tables = ibis.duckdb.connect()
    tables.con.register("handed", pyarrow.dataset.dataset("people.parquet"))
    tables.con.register("older", pa.table({"person": [1, 2], "age": [30, 41]}).to_pandas())
    tables.raw_sql("CREATE VIEW mixed AS FROM handed UNION ALL FROM 'people.parquet'")
    with quiet():
        for name in ("handed", "older", "mixed"):
            assert Study(rows(tables.table(name)), epsilon=1.0, ledger=ledger).plan(count(), epsilon=0.25).epsilon
        for name in ("handed", "older"):
            with pytest.raises(InvalidValue, match="must be given for a frame that nobody named"):
                spend(ledger, rows(tables.table(name)))
        spend(ledger, rows(tables.table("handed"), name="handed"))
        assert "patients" in Study(rows(tables.table("mixed"), name="b"), epsilon=1.0, ledger=ledger).accounts
    assert ledger.datasets() == ["handed", "patients"]


def test_a_table_of_duckdb_is_the_one_of_the_schema_in_use(folder: Path) -> None:
    tables = ibis.duckdb.connect("registry.db")
    tables.raw_sql("CREATE SCHEMA other")
    for name in ("main.people", "other.people"):
        tables.raw_sql(f"CREATE TABLE {name} AS SELECT 1 AS person, 30 AS age")
    with quiet():
        there = pieces_of(open_source(tables.table("people", database="other")))
        assert pieces_of(open_source(tables.table("people"))) != there
        tables.raw_sql("USE other")
        assert pieces_of(open_source(tables.table("people"))) == there
    tables.disconnect()


def test_a_server_that_duckdb_has_attached_is_opened_by_its_own_engine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = ibis.duckdb.connect()
    tables.raw_sql("CREATE TABLE people AS SELECT 30 AS age")
    with quiet():
        source = open_source(tables.table("people"))
    monkeypatch.setattr(type(source.engine), "rows", lambda *_: [("registry", "host=db", "postgres")])
    with pytest.raises(InvalidValue, match="open a table of Postgres with farthing"):
        pieces_of(source)
