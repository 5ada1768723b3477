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

A query runs in a thread of its own (`run`), so that progress is reported and Ctrl-C stops the engine, not only Python.

Whatever an engine says when it fails stays in here. Engines quote cells in their errors, so only the class of the error
and the name of the engine go on, in an exception that does not even remember the original one.
"""

from __future__ import annotations

import inspect
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from farthing.errors import EngineError, InvalidValue


def split_address(url: str) -> tuple[SplitResult, int | None]:
    """The parts of an address and its port.

    >>> split_address("postgresql://reader@db.example:5432/registry")[1]
    5432
    >>> split_address("postgresql://reader:half/a-password@db.example/registry")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: url='postgresql://...': must be scheme://user:password@host:port/name; write ...
    """
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        pass  # its text quotes what stands where a port should be: perhaps the rest of a password
    scheme = url.partition(":")[0]
    raise InvalidValue(
        "url",
        f"{scheme}://...",
        "must be scheme://user:password@host:port/name",
        "write / : @ ? # in a password as %2F %3A %40 %3F %23",
    )


def exact_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Tuples in which a whole `Decimal` has become an `int`; nothing passes through a float.

    >>> from decimal import Decimal
    >>> exact_rows([(Decimal("9223372036854775822"), "F", None)])
    [(9223372036854775822, 'F', None)]
    """
    return [tuple(map(_exact, row)) for row in rows]


Bits = Mapping[str, int | None]
"""The columns of a query, and how many bits the whole numbers of a sum take at most; None for what is no sum."""


def columns_of_rows(rows: Sequence[Sequence[Any]], bits: Bits) -> list[Sequence[Any]]:
    """What `Engine.columns` returns, from rows.

    >>> columns_of_rows([("F", 3), ("M", None)], {"sex": None, "number": 64})
    [('F', 'M'), [3, 0]]
    """
    columns = zip(*rows, strict=True) if rows else [()] * len(bits)
    return [
        column if size is None else [int(value or 0) for value in column]
        for column, size in zip(columns, bits.values(), strict=True)
    ]


def _exact(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value


@cache
def function(name: str, kinds: tuple[str, ...], result: str) -> Callable[..., Any]:
    """The engine's function `name` for arguments of these Ibis types, as something that takes Ibis values.

    >>> import ibis
    >>> encode = function("encode", ("string",), "binary")
    >>> people = ibis.table({"name": "string"}, name="people")
    >>> "ENCODE" in ibis.to_sql(people.select(found=encode(people.name)), dialect="duckdb")
    True
    """
    import ibis

    def declared(*arguments: Any) -> None:
        """Never called: the engine has it."""

    named = [inspect.Parameter(f"a{place}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for place in range(len(kinds))]
    declared.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    builtin: Callable[..., Any] = ibis.udf.scalar.builtin(declared, name=name, signature=(kinds, result))
    return builtin


KNOWN = ("duckdb", "postgres", "pyspark")
PART = 2**16
"""How many rows are handed over at a time."""

UNKNOWN_TYPE = ("has a column of a type that farthing does not know", "make a view without that column")
"""What is said of a table that Ibis cannot describe."""


class Engine(Protocol):
    """Runs SQL text made from Ibis expressions; the only thing in farthing.data that talks to a database."""

    name: str

    def sql(self, expression: Any, *, pretty: bool = False) -> str:
        """The text that this engine would run for an Ibis expression; `pretty` breaks it into lines for people."""
        ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run `sql` and return its rows as Python values (exact integers stay exact)."""
        ...

    def columns(self, sql: str, bits: Bits) -> list[Sequence[Any]]:
        """Run `sql` and return its columns, whose names are those of `bits`; a sum of nothing is 0."""
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
        """An Ibis value of constant bytes."""
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
        """The text that a `key` stands for, to be compared by its bytes from now on; missing if it is not UTF-8."""
        ...

    def first(self, column: Any, limit: int) -> Any:
        """A column of lists without what lies beyond the first `limit` elements, where the engine can cut it."""
        ...

    def token(self) -> Any:
        """An Ibis text value that differs from row to row; it need not be secret."""
        ...


class BytesAsKeys(ABC):
    """What DuckDB and Spark share: the key of a text is its bytes, because a cast of text keeps its collation."""

    @abstractmethod
    def bytes_of(self, text: Any) -> Any:
        """The bytes of an Ibis text value."""

    def constant_bytes(self, value: bytes) -> Any:
        import ibis

        return ibis.literal(value, "binary")

    def hexadecimal(self, data: Any) -> Any:
        return function("hex", ("binary",), "string")(data).lower()

    def key(self, text: Any) -> Any:
        return self.bytes_of(text)

    def constant_key(self, value: str) -> Any:
        return self.constant_bytes(value.encode())


PATIENCE = 0.05  # seconds between two looks at the progress

Progress = Callable[[float], None]
T = TypeVar("T")


_turns: weakref.WeakKeyDictionary[Engine, threading.Lock] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def rows_of(engine: Engine, sql: str, progress: Progress | None = None) -> list[tuple[Any, ...]]:
    """The rows of a query; see `run`."""
    return run(engine, lambda: engine.rows(sql), progress)


def columns_of(engine: Engine, sql: str, bits: Bits, progress: Progress | None = None) -> list[Sequence[Any]]:
    """The columns of a query; see `run`."""
    return run(engine, lambda: engine.columns(sql, bits), progress)


def run(engine: Engine, query: Callable[[], T], progress: Progress | None = None) -> T:
    """What a query comes to; `progress` hears a share between 0 and 1 now and then, the last one where nothing is new.

    An interruption of this thread stops the query in the engine before it goes on, and so does a `progress` that
    raises. Queries on one engine take turns, and the turn is waited for here, so that a thread that is interrupted
    while waiting does not stop the query of another.
    """
    with _making:
        turn = _turns.setdefault(engine, threading.Lock())
    while not turn.acquire(timeout=-1 if progress is None else PATIENCE):
        if progress is not None:
            progress(0.0)
    try:
        return _run_in_turn(engine, query, progress)
    finally:
        turn.release()


def _run_in_turn(engine: Engine, query: Callable[[], T], progress: Progress | None) -> T:
    answer: list[T] = []
    failure: list[EngineError] = []
    done = threading.Event()

    def work() -> None:
        try:
            answer.append(query())
        except EngineError as problem:  # an engine that knows its own failures has made a safe one already
            failure.append(EngineError(problem.engine, problem.kind, problem.way_out))
        except BaseException as problem:  # whatever it is, its text must not leave this function
            kind = type(problem).__name__
            failure.append(EngineError(engine.name, kind, way_out_of(kind)))
        finally:
            done.set()

    worker = threading.Thread(target=work, name="farthing-query", daemon=True)
    worker.start()
    try:
        latest = 0.0
        while not done.wait(PATIENCE):
            if progress is None:
                continue
            share = engine.progress()
            latest = latest if share is None else min(1.0, max(0.0, share))
            progress(latest)  # also when the engine says nothing: the listener may want to stop
    except BaseException:
        engine.cancel()
        while not done.wait(PATIENCE):  # a query that was not running yet did not hear the first call
            engine.cancel()
        raise
    worker.join()
    if failure:
        raise failure[0]
    if progress is not None:
        progress(1.0)
    return answer[0]


def way_out_of(kind: str) -> str:
    """What to do about a class of engine errors."""
    if "OutOfMemory" in kind:
        return "raise the memory limit, or give the temporary directory more room"
    if "IO" in kind or "HTTP" in kind:
        return "check that the source and the temporary directory can be read and written"
    if "Connection" in kind or "Operational" in kind or "Interface" in kind:
        return "check that the database is up and that the role may read the table"
    return "check that the table still has the columns and types it was registered with"
