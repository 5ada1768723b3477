"""What differs between engines, in one place: how to run text, stop it, hash it and name a row.

| engine   | a query runs on        | stop           | progress           | SHA-256              | fresh token       |
|----------|------------------------|----------------|--------------------|----------------------|-------------------|
| duckdb   | one connection, a lock | interrupt()    | query_progress()   | sha256()             | uuid()            |
| postgres | a read-only cursor     | cancel on side | none               | sha256() of bytes    | gen_random_uuid() |
| pyspark  | a tagged operation     | interruptTag() | tasks of stages    | sha2(text, 256)      | two rand()        |

Everything else is one Ibis expression for all of them. An engine that is not in the table is refused: whether its
integers agree with the others has not been tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from farthing.errors import InvalidValue

KNOWN = ("duckdb", "postgres", "pyspark")
PART = 2**16
"""How many rows are handed over at a time."""


class Engine(Protocol):
    """Runs SQL text made from Ibis expressions; the only thing in farthing.data that talks to a database."""

    name: str

    def sql(self, expression: Any) -> str:
        """The text that this engine would run for an Ibis expression."""
        ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run `sql` and return its rows as Python values (exact integers stay exact)."""
        ...

    def each(self, sql: str, take: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """Run `sql` and hand its rows to `take` in parts, for answers that are too long to hold as Python values."""
        ...

    def cancel(self) -> None:
        """Stop the query that `rows` or `each` is running, from another thread."""
        ...

    def progress(self) -> float | None:
        """How much of the running query is done, between 0 and 1; None where the engine does not say."""
        ...

    def digest(self, text: Any) -> Any:
        """SHA-256 of an Ibis text value, as 64 lower-case hexadecimal digits."""
        ...

    def token(self) -> Any:
        """An Ibis text value that differs from row to row; it need not be secret."""
        ...


def engine_of(backend: Any) -> Engine:
    """The engine behind an Ibis backend."""
    name = getattr(backend, "name", type(backend).__name__)
    if name == "duckdb":
        from farthing.data.engines.duckdb import DuckDBEngine

        return DuckDBEngine.around(backend)
    if name == "postgres":
        from farthing.data.engines.postgres import PostgresEngine

        return PostgresEngine.around(backend)
    if name == "pyspark":
        from farthing.data.engines.spark import SparkEngine

        return SparkEngine.around(backend)
    raise InvalidValue("source", name, f"must be an Ibis table of {', '.join(KNOWN)}", "export it to Parquet")
