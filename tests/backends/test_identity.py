"""A table of a server is known again, however it is named; another one is another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backends.engine_under_test import EngineUnderTest, SparkUnderTest, address, url
from backends.tables import TABLES
from farthing import Study, dataset, open_ledger
from farthing.data import postgres_table
from farthing.data.sources import open_source
from farthing.data.table_identity import pieces_of
from farthing.errors import InvalidValue


def _known(table: Any) -> list[set[str]]:
    return [set(piece.known_by) for piece in pieces_of(open_source(table))]


def _refuse_a_second_account(facts: dict[str, Any], name: str, folder: Path) -> None:
    """The table of a schema is one source with the schema before it and without, under another search path."""
    reader = url(facts, "reader")
    with psycopg.connect(**address(facts, "postgres"), autocommit=True) as administrator:
        administrator.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{name}' IN ROLE reader")
        administrator.execute(f"ALTER ROLE {name} SET search_path = {name}")
    elsewhere = f"postgresql://{name}:{name}@{facts['host']}:{facts['port']}/{facts['database']}"
    spelled = [postgres_table(reader, f"{name}.{name}"), postgres_table(elsewhere, name)]
    assert _known(spelled[0]) == _known(spelled[1]) != _known(postgres_table(reader, name))
    with open_ledger(folder / "study.db") as ledger:
        one, other = (dataset(table, schema={"age": (0, 110)}) for table in spelled)
        Study(one, epsilon=1.0, ledger=ledger, account="patients").register()
        assert Study(other, epsilon=1.0, ledger=ledger).account == "patients"
        with pytest.raises(InvalidValue, match="must be 'patients'"):
            Study(other, epsilon=1.0, ledger=ledger, account="second").register()
        third = dataset(postgres_table(reader, name), schema={"age": (0, 110)})  # another table of the same name
        assert Study(third, epsilon=1.0, ledger=ledger).account != "patients"


@pytest.mark.slow
def test_a_postgres_table_is_known_by_number_and_name(postgres_server: dict[str, Any], tmp_path: Path) -> None:
    one, other = f"identity_{os.getpid()}", f"Identity {os.getpid()}"
    reader = url(postgres_server, "reader")
    with psycopg.connect(**address(postgres_server, "owner"), autocommit=True) as owner:
        owner.execute(f"CREATE SCHEMA {one}")
        owner.execute(f"GRANT USAGE ON SCHEMA {one} TO reader")
        owner.execute(f"CREATE TABLE {one} (age integer) PARTITION BY RANGE (age)")
        owner.execute(f"CREATE TABLE {one}_young PARTITION OF {one} FOR VALUES FROM (0) TO (30)")
        owner.execute(f"CREATE TABLE {one}.{one} (age integer)")
        owner.execute(f'CREATE TABLE "{other}" (age integer)')
        for table in (one, f"{one}_young", f"{one}.{one}", f'"{other}"'):
            owner.execute(f"GRANT SELECT ON {table} TO reader")
        whole, young = _known(postgres_table(reader, one))
        assert _known(postgres_table(reader, f"public.{one}")) == [whole, young]
        assert _known(postgres_table(reader, f"{one}_young")) == [young]
        owner.execute(f"CREATE VIEW {one}_view AS SELECT * FROM {one} WHERE age > 0")
        owner.execute(f"CREATE MATERIALIZED VIEW {one}_kept AS SELECT * FROM {one}_view")
        owner.execute(f"GRANT SELECT ON {one}_view, {one}_kept TO reader")
        for view in ("view", "kept"):  # a view is known by what it reads as well
            own, *read = _known(postgres_table(reader, f"{one}_{view}"))
            assert whole in read and young in read and own not in (whole, young)
        elsewhere, quoted = postgres_table(reader, f"{one}.{one}"), postgres_table(reader, other)
        (there,), (named,) = _known(elsewhere), _known(quoted)
        assert not (whole & there or whole & named or there & named)
        _refuse_a_second_account(postgres_server, one, tmp_path)
        owner.execute(f"ALTER TABLE {one}.{one} RENAME TO renamed")
        (renamed,) = _known(postgres_table(reader, f"{one}.renamed"))
        assert renamed & there


def test_a_partition_that_comes_later_belongs_to_its_table(postgres_server: dict[str, Any], tmp_path: Path) -> None:
    """The month that was added was a second budget for people of the table, also through a view of it."""
    name, reader = f"months_{os.getpid()}", url(postgres_server, "reader")
    with (
        psycopg.connect(**address(postgres_server, "owner"), autocommit=True) as owner,
        open_ledger(tmp_path / "study.db") as ledger,
    ):
        owner.execute(f"CREATE TABLE {name} (age integer) PARTITION BY RANGE (age)")
        whole = dataset(postgres_table(reader, name), schema={"age": (0, 110)})
        Study(whole, epsilon=1.0, ledger=ledger, account="patients").register()
        owner.execute(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (age)")
        owner.execute(f"CREATE TABLE {name}_2 PARTITION OF {name}_1 FOR VALUES FROM (0) TO (5)")
        owner.execute(f"CREATE VIEW {name}_view AS SELECT * FROM {name}_2")
        for later in ("1", "2", "view"):
            part = dataset(postgres_table(reader, f"{name}_{later}"), schema={"age": (0, 110)})
            assert Study(part, epsilon=1.0, ledger=ledger).account == "patients"


def test_a_postgres_view_that_may_read_unseen_tables_is_refused(postgres_server: dict[str, Any]) -> None:
    name, reader = f"unseen_{os.getpid()}", url(postgres_server, "reader")
    with psycopg.connect(**address(postgres_server, "postgres"), autocommit=True) as owner:
        owner.execute(f"CREATE TABLE {name} (age integer)")
        owner.execute(f"CREATE FUNCTION {name}(x int) RETURNS int LANGUAGE sql STABLE AS 'SELECT max(age) FROM {name}'")
        owner.execute(f"CREATE FUNCTION {name}_next(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x + 1'")
        peek = f"LANGUAGE sql IMMUTABLE AS 'SELECT age FROM {name}'"  # which is not true
        owner.execute(f"CREATE FUNCTION {name}_peek() RETURNS TABLE(age int) {peek}")
        owner.execute(f"CREATE FUNCTION {name}_2(x int, y int) RETURNS int LANGUAGE sql STABLE AS 'SELECT {name}(x)'")
        owner.execute(f"CREATE AGGREGATE {name}_sum(int) (SFUNC = {name}_2, STYPE = int)")
        owner.execute(f"CREATE OPERATOR public.<~~> (FUNCTION = {name}_2, LEFTARG = int, RIGHTARG = int)")
        owner.execute("CREATE EXTENSION IF NOT EXISTS postgres_fdw")
        owner.execute(f"CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw")
        owner.execute(f"CREATE FOREIGN TABLE {name}_far (age integer) SERVER {name}")
        for view, text in (
            ("called", f"SELECT {name}(3) AS age"),
            ("above", f"SELECT * FROM {name}_called"),
            ("aggregate", f"SELECT {name}_sum(3) AS age"),
            ("operator", "SELECT 3 <~~> 4 AS age"),
            ("xml", f"SELECT length(query_to_xml('FROM {name}', true, false, '')::text) AS age"),
            ("over", f"SELECT * FROM {name}_far"),
            ("next", f"SELECT {name}_next(age) AS age FROM {name}"),
            ("peek", f"SELECT age FROM {name}_peek()"),
            ("lower", f"SELECT abs(age) + length(lower('x')) AS age FROM {name}"),
        ):
            owner.execute(f"CREATE VIEW {name}_{view} AS {text}")
        owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    for view, words in (
        ("called", f"calls {name}"),
        ("above", "calls"),
        ("aggregate", f"calls {name}_sum"),
        ("operator", f"calls {name}_2"),
        ("xml", "calls query_to_xml"),
        ("next", f"calls {name}_next"),
        ("peek", f"calls {name}_peek"),
        ("far", "table of another Postgres"),
        ("over", "table of another Postgres"),
    ):
        with pytest.raises(InvalidValue, match=words):
            _known(postgres_table(reader, f"{name}_{view}"))
    assert _known(postgres_table(reader, f"{name}_lower"))[1:] == _known(postgres_table(reader, name))


@pytest.mark.slow
def test_a_spark_view_is_known_by_what_it_reads(spark_engine: SparkUnderTest) -> None:
    one, backend = f"identity_{os.getpid()}", spark_engine._backend
    for made in (
        f"CREATE TABLE {one} USING parquet AS SELECT 1 AS age",
        f"CREATE VIEW {one}_view AS SELECT * FROM {one}",
        f"CREATE TABLE {one}_same (age INT) USING parquet LOCATION '{spark_engine.facts['directory']}/warehouse/{one}'",
    ):
        backend._session.sql(made).collect()
    named, *place = _known(backend.table(one))
    assert _known(backend.table(one.upper())) == [named, *place]
    assert _known(backend.table(f"{one}_view"))[1:] == [named, *place]
    assert _known(backend.table(f"{one}_same"))[1:] == place


@pytest.mark.slow
def test_files_that_spark_reads_have_one_account_however_they_are_read(
    spark_engine: SparkUnderTest, tmp_path: Path
) -> None:
    """Each of these was a second budget: the second folder of a scan, a link, a file of a folder, the path itself."""
    base, backend = Path(spark_engine.facts["directory"]) / f"identity {os.getpid()}", spark_engine._backend
    for name in ("one", "two"):
        (base / name).mkdir(parents=True)
        pq.write_table(pa.table({"age": [30, 41]}), base / name / "a.parquet")
    (base / "link").symlink_to(base / "two")
    views = {"both": ("one", "two"), "second": ("two",), "linked": ("link",), "alone": ("two/a.parquet",)}
    for view, places in views.items():
        read = backend._session.read.parquet(*(str(base / place) for place in places))
        read.createOrReplaceTempView(f"{view}_{os.getpid()}")

    def of(source: Any) -> Any:
        return dataset(source, schema={"age": (0, 110)})

    for first in ("both", "second"):
        with open_ledger(tmp_path / f"{first}.db") as ledger:
            registered = of(backend.table(f"{first}_{os.getpid()}"))
            Study(registered, epsilon=1.0, ledger=ledger, account="patients").register()
            for view in views:
                again = of(backend.table(f"{view}_{os.getpid()}"))
                assert Study(again, epsilon=1.0, ledger=ledger).account == "patients", view
            assert Study(of(base / "two/a.parquet"), epsilon=1.0, ledger=ledger).account == "patients"
            if first == "second":
                pq.write_table(pa.table({"age": [30, 41]}), base / "two" / "later.parquet")
                assert Study(of(base / "two/later.parquet"), epsilon=1.0, ledger=ledger).account == "patients"


@pytest.mark.parametrize("engine", ["duckdb", "postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_two_tables_of_an_engine_are_two(engine: str, request: pytest.FixtureRequest) -> None:
    under_test: EngineUnderTest = request.getfixturevalue(f"{engine}_engine")
    one, other = under_test.load(TABLES["people"]), under_test.load(TABLES["people"])
    assert _known(one) == _known(one)
    if engine == "duckdb":
        assert _known(one) == []  # in memory: it goes with its process
    else:
        assert not _known(one)[0] & _known(other)[0]


@pytest.mark.parametrize("engine", ["postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_a_key_is_the_column_that_a_view_shows(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A row that was its sender's is not its receiver's for the next query, whatever a view calls the column."""
    name = f"pay_{engine}_{os.getpid()}"
    texts = {
        "same": f"SELECT sender, amount FROM {name} WHERE amount > 3",
        "nested": f"SELECT amount, sender FROM {name}_same",
        "renamed": f"SELECT receiver AS sender, amount FROM {name}",
        "computed": f"SELECT sender + 1 AS sender, amount FROM {name}",
        "both": f"SELECT sender, amount FROM {name} UNION ALL SELECT receiver, amount FROM {name}",
        "joined": f"SELECT b.receiver AS sender, a.amount FROM {name} a JOIN {name} b ON a.amount = b.sender",
    }
    made = [f"CREATE TABLE {name} (sender INTEGER, receiver INTEGER, amount INTEGER)"]
    made += [f"CREATE VIEW {name}_{view} AS {text}" for view, text in texts.items()]
    if engine == "postgres":
        facts = request.getfixturevalue("postgres_server")
        with psycopg.connect(**address(facts, "owner"), autocommit=True) as owner:
            for statement in (*made, *(f"GRANT SELECT ON {name}_{view} TO reader" for view in texts)):
                owner.execute(statement)
            owner.execute(f"GRANT SELECT ON {name} TO reader")
        tables = {view: postgres_table(url(facts, "reader"), f"{name}_{view}") for view in texts}
        whole = postgres_table(url(facts, "reader"), name)
    else:
        backend = request.getfixturevalue("spark_engine")._backend
        for statement in made:
            backend._session.sql(statement).collect()
        tables, whole = {view: backend.table(f"{name}_{view}") for view in texts}, backend.table(name)

    def of(source: Any, unit: str = "sender") -> Any:
        return dataset(source, unit=unit, max_rows=1, schema={"amount": (0, 9)})

    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("pay", 1.0)
        Study(of(whole), epsilon=1.0, ledger=ledger, account="pay").register()
        before = ledger.last()
        for view in ("same", "nested"):
            assert Study(of(tables[view]), epsilon=1.0, ledger=ledger).accounts == ("pay",)
        others = [of(tables[view]) for view in ("renamed", "computed", "both", "joined")]
        for rows in (*others, of(whole, "receiver")):
            with pytest.raises(InvalidValue, match="must be 'by sender'"):
                Study(rows, epsilon=1.0, ledger=ledger, account="pay").register()
        assert ledger.last() == before
