"""Three engines with one face for the tests: load an Arrow table, get it back as farthing would be given it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from farthing.data.engines import Engine, engine_of
from farthing.data.engines.duckdb import connection, quiet


class EngineUnderTest(Protocol):
    """An engine, and a way to put tables into it that farthing itself does not have."""

    name: str

    def load(self, table: pa.Table) -> Any:
        """The Ibis table that holds these rows now."""

    @property
    def engine(self) -> Engine:
        """What farthing runs its queries with."""


class DuckDBUnderTest:
    """A DuckDB in the process, with the settings that farthing gives its own."""

    name = "duckdb"

    def __init__(self) -> None:
        self._backend = connection()

    def load(self, table: pa.Table) -> Any:
        name = _fresh_name()
        self._backend.con.register("incoming", table)
        self._backend.con.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        self._backend.con.unregister("incoming")
        with quiet():
            return self._backend.table(name)

    @property
    def engine(self) -> Engine:
        return engine_of(self._backend)


class PostgresUnderTest:
    """The owner copies rows in; the tables that come back belong to the reader's connection."""

    name = "postgres"

    def __init__(self, facts: dict[str, Any]) -> None:
        import psycopg

        from farthing.data.engines.postgres import postgres_table

        self._owner = psycopg.connect(**address(facts, "owner"), autocommit=True)
        # A name for each process: "IF NOT EXISTS" does not help two that create at the same moment.
        nothing = f"nothing_{os.getpid()}"
        self._owner.execute(f"CREATE TABLE IF NOT EXISTS {nothing} (x integer)")
        self._backend = postgres_table(url(facts, "reader"), nothing).get_backend()

    def load(self, table: pa.Table) -> Any:
        name = _fresh_name()
        columns = ", ".join(f'"{field.name}" {postgres_type(field.type)}' for field in table.schema)
        self._owner.execute(f"CREATE TABLE {name} ({columns})")
        with self._owner.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row([row[column] for column in table.column_names])
        return self._backend.table(name)

    @property
    def engine(self) -> Engine:
        return engine_of(self._backend)

    def close(self) -> None:
        self._owner.close()
        self._backend.disconnect()


class SparkUnderTest:
    """Tables are Parquet files that both workers can read, as views of the Connect session."""

    name = "spark"

    def __init__(self, facts: dict[str, Any]) -> None:
        from pyspark.sql import SparkSession

        from farthing.data.engines.spark import spark_table

        # A table of the catalog is seen by every session; farthing opens it as it opens a user's.
        self.opened = f"nothing_{os.getpid()}"
        maker = SparkSession.builder.remote(facts["url"]).create()
        maker.sql(f"CREATE TABLE {self.opened} USING parquet AS SELECT 1 AS x").collect()
        self._maker = maker  # kept: a session that is collected can stop another one's query forever
        self.facts = facts
        self._backend = spark_table(facts["url"], self.opened).get_backend()
        self._place = Path(facts["directory"]) / "tables"
        self._place.mkdir(exist_ok=True)

    def load(self, table: pa.Table) -> Any:
        name = _fresh_name()
        pq.write_table(table, self._place / f"{name}.parquet")
        session = self._backend._session
        session.read.parquet(str(self._place / f"{name}.parquet")).createOrReplaceTempView(name)
        return self._backend.table(name)

    @property
    def engine(self) -> Engine:
        return engine_of(self._backend)

    def close(self) -> None:
        self._backend.disconnect()


def address(facts: dict[str, Any], role: str) -> dict[str, Any]:
    """Where a role finds the test's PostgreSQL, in psycopg's words."""
    return {
        "host": facts["host"], "port": facts["port"], "dbname": facts["database"],
        "user": role, "password": facts["passwords"][role],
    }  # fmt: skip


def url(facts: dict[str, Any], role: str) -> str:
    """The same as an address."""
    password = facts["passwords"][role]
    return f"postgresql://{role}:{password}@{facts['host']}:{facts['port']}/{facts['database']}"


def postgres_type(kind: pa.DataType) -> str:
    """The column type that holds an Arrow type."""
    names = {
        pa.int8(): "smallint", pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint",
        pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text", pa.bool_(): "boolean",
        pa.date32(): "date", pa.timestamp("us"): "timestamp",
    }  # fmt: skip
    if pa.types.is_list(kind):
        return f"{postgres_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return names[kind]


def _fresh_name() -> str:
    return f"t{os.getpid()}_{uuid.uuid4().hex[:12]}"
