"""What differs between engines, in one place: how to run text, stop it, see its bytes and name a row.

| engine   | a query runs on        | stop           | progress           | bytes of text | fresh token       |
|----------|------------------------|----------------|--------------------|---------------|-------------------|
| duckdb   | one connection, a lock | interrupt()    | query_progress()   | encode()      | uuid()            |
| postgres | a read-only cursor     | cancel on side | none               | convert_to()  | gen_random_uuid() |
| pyspark  | a tagged operation     | interruptTag() | tasks of stages    | CAST AS BINARY| two rand()        |

Text is never compared as the engine compares it: a column may ignore case, accents or blanks at the end. `key` is what
stands for a text in comparisons, equal for equal bytes and for nothing else.

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

UNKNOWN_TYPE = ("has a column of a type that farthing does not know", "make a view without that column")
"""What is said of a table that Ibis cannot describe."""


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

    def padded(self, table: Any) -> frozenset[str]:
        """The columns of an Ibis table whose text is filled up with blanks that are no part of it."""
        ...

    def plain(self, column: Any, *, padded: bool = False) -> Any:
        """A column, or an element of a list, in a type that means what its Ibis type says; NaN of a decimal is missing.

        The blanks that fill up a CHAR(n) are no part of its text.
        """
        ...

    def octets(self, text: Any) -> Any:
        """How many bytes an Ibis text value has, found without making any of them."""
        ...

    def bytes_of(self, text: Any) -> Any:
        """The bytes of an Ibis text value."""
        ...

    def sha256(self, data: Any) -> Any:
        """The 32 bytes of SHA-256, of Ibis bytes."""
        ...

    def constant_bytes(self, value: bytes) -> Any:
        """Constant bytes."""
        ...

    def hexadecimal(self, data: Any) -> Any:
        """Ibis bytes as text of lower-case hexadecimal digits."""
        ...

    def key(self, text: Any) -> Any:
        """An Ibis value that stands for a text: equal for equal bytes, and for nothing else."""
        ...

    def constant_key(self, value: str) -> Any:
        """The `key` of a constant."""
        ...

    def text_of_key(self, key: Any) -> Any:
        """The text that a `key` stands for, to be compared by its bytes from now on."""
        ...

    def first(self, column: Any, limit: int) -> Any:
        """A column of lists without what lies beyond the first `limit` elements, where the engine can cut it."""
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
