"""DuckDB in the process: a memory limit, spilling to a private directory, progress and interruption."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from farthing.data.engines.engine import PART, Bits, BytesAsKeys, function
from farthing.data.schema import LONGEST_CATEGORY
from farthing.errors import EngineError

T = TypeVar("T")

_LONGEST_TEXT = 4 * LONGEST_CATEGORY  # bytes of a text that can be a category
MEMORY_LIMIT = "512MiB"  # with what Python and Arrow need beside it, a process stays below 1 GiB

# By identity, because Ibis calls two connections equal when they were opened with equal arguments. An engine holds its
# backend, so an entry lives exactly as long as its key is taken.
_engines: weakref.WeakValueDictionary[int, DuckDBEngine] = weakref.WeakValueDictionary()
_default: list[DuckDBEngine] = []
FATAL = ("FatalException", "InternalException")  # DuckDB takes its database for invalid from then on
_making = threading.Lock()


class DuckDBEngine(BytesAsKeys):
    """One DuckDB connection; queries take turns on it."""

    name = "duckdb"

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self._turn = threading.Lock()
        self._forgotten: list[str] = []
        self._is_broken = False
        self._process = os.getpid()
        connection = backend.con
        # The progress must be counted to be asked for, and must not be printed by the engine itself.
        connection.execute("SET enable_progress_bar = true")
        connection.execute("SET enable_progress_bar_print = false")

    @staticmethod
    def around(backend: Any) -> DuckDBEngine:
        """The engine of a backend, always the same one."""
        with _making:
            engine = _engines.get(id(backend))
            if engine is None:
                _engines[id(backend)] = engine = DuckDBEngine(backend)
            return engine

    def sql(self, expression: Any, *, pretty: bool = False) -> str:
        """The text that DuckDB runs."""
        return str(self.backend.compile(expression, pretty=pretty))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run and fetch; a HUGEINT comes back as a Python integer."""
        return self._in_turn(lambda: list(self.backend.con.execute(sql).fetchall()))

    def columns(self, sql: str, bits: Bits) -> list[Sequence[Any]]:
        """Run and fetch as arrays: a third of the time that rows of Python values take.

        A HUGEINT would become a float there, so that it is made what it fits, or text.
        """
        parts = [
            f'"{name}"' if size is None else f'CAST("{name}" AS {"BIGINT" if size <= 64 else "VARCHAR"}) AS "{name}"'
            for name, size in bits.items()
        ]
        query = f"SELECT {', '.join(parts)} FROM ({sql}) AS sums"
        arrays = self._in_turn(lambda: self.backend.con.execute(query).fetchnumpy())
        return [_listed(arrays[name], size) for name, size in bits.items()]

    def each(self, sql: str, take: Callable[[list[tuple[Any, ...]]], None]) -> None:
        """Run and fetch in parts."""

        def hand_over() -> None:
            result = self.backend.con.execute(sql)
            while part := result.fetchmany(PART):
                take(part)

        self._in_turn(hand_over)

    def open(self, opening: Callable[[Any], T]) -> T:
        """What `opening` makes of the backend, between two queries."""

        def opened() -> T:
            with quiet():
                while self._forgotten:
                    self.backend.con.unregister(self._forgotten.pop())
                return opening(self.backend)

        return self._in_turn(opened, compares=False)

    def forget(self, name: str) -> None:
        """Let go of a registered frame, at the next opening: who calls this may be in the middle of a query."""
        self._forgotten.append(name)

    def is_here(self) -> bool:
        """Whether this is the process that opened the connection."""
        return os.getpid() == self._process

    @property
    def is_usable(self) -> bool:
        """Whether queries can run: in this process, and after no error that DuckDB does not get over."""
        return self.is_here() and not self._is_broken

    def refuse_broken(self) -> None:
        """Refuse a query that can only fail, before anybody pays for it."""
        if self._is_broken:
            raise EngineError(self.name, "closed by a fatal error", "make the connection and the dataset again")

    def _in_turn(self, work: Callable[[], T], *, compares: bool = True) -> T:
        """What `work` comes to, alone on the connection; after a fatal error, DuckDB refuses every query."""
        self._refuse_elsewhere()
        self.refuse_broken()
        with self._turn:
            try:
                if compares:
                    self._refuse_collation()
                return work()
            except Exception as problem:
                if type(problem).__name__ not in FATAL:
                    raise
                self._is_broken = True
        self.refuse_broken()  # out here, where the error and the cell that it quotes are gone
        raise AssertionError

    def _refuse_elsewhere(self) -> None:
        # The threads of DuckDB did not come along, and a query would wait for them forever.
        if not self.is_here():
            raise EngineError(self.name, "connection of another process", "make the dataset after the fork")

    def _refuse_collation(self) -> None:
        """Units that compare as equal must be one: two spellings of one are drawn into a sample twice."""
        (collation,) = self.backend.con.execute("SELECT current_setting('default_collation')").fetchone()
        if collation.lower() not in ("", "binary"):
            raise EngineError(self.name, "default_collation is set", "RESET default_collation on the connection")

    def cancel(self) -> None:
        """Interrupt the running query; DuckDB reacts within about 10 ms."""
        self.backend.con.interrupt()

    def progress(self) -> float | None:
        """DuckDB says a percentage, or -1 before it knows."""
        percentage = float(self.backend.con.query_progress())
        return percentage / 100 if percentage >= 0 else None

    def padded(self, table: Any) -> frozenset[str]:
        """None: a CHAR(n) is a VARCHAR here."""
        return frozenset()

    def plain(self, column: Any, *, padded: bool = False) -> Any:
        """Timestamps of seconds and milliseconds reach further than all others, to which casts would raise.

        The smallest and the largest number that a Parquet file states leave out NaN, and DuckDB 2.0 concludes from them
        that no cell is NaN: `isnan` is false for all of a file as soon as it has two different numbers, so one row
        would decide how the cells of others are read. What is neither finite nor infinite is NaN all the same.
        """
        import ibis

        kind = column.type()
        if kind.is_floating():
            is_finite, is_infinite = (function(name, ("float64",), "boolean") for name in ("isfinite", "isinf"))
            return ibis.cases((is_finite(column) | is_infinite(column), column), else_=ibis.null(kind))
        return column.try_cast("timestamp(6)") if kind.is_timestamp() and kind.scale in (0, 3) else column

    def octets(self, text: Any) -> Any:
        return function("strlen", ("string",), "int64")(text)

    def bytes_of(self, text: Any) -> Any:
        return function("encode", ("string",), "binary")(text)

    def sha256(self, data: Any) -> Any:
        digits = function("sha256", ("binary",), "string")(data)
        return function("unhex", ("string",), "binary")(digits)

    def text_of_key(self, key: Any) -> Any:
        """decode(), which knows of no collation; an Arrow table may hold bytes that are no text: these are missing."""
        return function("try", ("string",), "string")(function("decode", ("binary",), "string")(key))

    def first(self, column: Any, limit: int) -> Any:
        """list_slice(); of text, elements longer than any category are missing from here on, and weigh nothing."""
        import ibis

        cut = column[:limit]
        if not cut.type().value_type.is_string():
            return cut
        return cut.map(lambda text: ibis.cases((self.octets(text) <= _LONGEST_TEXT, text)))

    def token(self) -> Any:
        import ibis

        return ibis.uuid().cast("string")


def _listed(column: Any, bits: int | None) -> Sequence[Any]:
    """A column of `fetchnumpy`: whole numbers stay an array, masked where they are missing; else Python values."""
    if bits is not None and bits <= 64:
        numbers: Sequence[Any] = column.filled(0) if hasattr(column, "filled") else column
        return numbers
    if bits is not None:
        return [int(value or 0) for value in column.tolist()]
    if column.dtype.kind in "iu":
        whole: Sequence[Any] = column
        return whole
    days = column.dtype.kind == "M"
    listed: list[Any] = column.astype("datetime64[D]").tolist() if days else column.tolist()
    return listed


def connection(
    *, memory_limit: str = MEMORY_LIMIT, temporary_directory: str | None = None, threads: int | None = None
) -> Any:
    """An Ibis connection to a DuckDB of its own, with a memory limit and spilling.

    Extensions are neither fetched nor loaded, so no query reaches the network.

    Args:
        memory_limit: The most memory that DuckDB uses.
        temporary_directory: Where rows go that do not fit; by default a new folder that only this user can read, and
            that is removed at the end.
        threads: How many threads run a query; by default as many as there are cores.

    Returns:
        The connection, whose tables `farthing.dataset` takes.

    >>> tables = connection(memory_limit="2GiB")
    >>> tables.name
    'duckdb'
    """
    import ibis

    folder = temporary_directory or private_folder()
    return ibis.duckdb.connect(
        memory_limit=memory_limit,
        temp_directory=folder,
        autoinstall_known_extensions=False,
        autoload_known_extensions=False,
        preserve_insertion_order=False,
        **({} if threads is None else {"threads": threads}),
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Ibis 12 asks DuckDB 2 for column types by a name that DuckDB calls old; nobody here can do anything about it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
        yield


def default_engine() -> DuckDBEngine:
    """The DuckDB that opens paths and frames; shared, so that datasets made of two files can be joined."""
    here = [engine for engine in _default if engine.is_usable]
    if here:
        return here[0]
    engine = DuckDBEngine.around(connection())
    with _making:
        _default.append(engine)
    # Two threads may have made one each; the first is everybody's. After a fork, the parent's stays where it is.
    return next(engine for engine in _default if engine.is_usable)


@contextmanager
def engine_apart() -> Iterator[DuckDBEngine]:
    """A DuckDB for one piece of work that nobody asked for: whatever fails in it, queries of others go on."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="farthing-") as folder:  # mode 0700
        backend = connection(temporary_directory=folder)
        try:
            yield DuckDBEngine.around(backend)
        finally:
            backend.disconnect()


def private_folder() -> str:
    """A new directory that only this user can read, removed when the process ends."""
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="farthing-")  # mode 0700
    process = os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # a fork that ends first leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
