"""Where rows come from: a path or glob, a frame, an Ibis table. Names and types of columns are looked at, never rows.

Types of a CSV file would have to be guessed from its rows, and then one odd cell could change the type of a column, or
the refusal of a dataset. So its cells are text, read by the schema; only the header line is looked at here.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from farthing.data.csv_files import (
    LONGEST_ROW,
    Layout,
    Stamp,
    header,
    layout,
    refuse_broken,
    rewrite,
    stamp,
)
from farthing.data.engines import Engine, engine_of
from farthing.data.engines.duckdb import FATAL, DuckDBEngine, default_engine, engine_apart, private_folder
from farthing.data.engines.duckdb_views import files_of_view, local_path
from farthing.data.engines.engine import rows_of, run
from farthing.data.file_paths import Pattern, absolute, declared_name, paths_of, patterns_of
from farthing.data.large_cells import refuse_large_cells
from farthing.data.parquet_files import PARQUET, parquet_schema, refuse_large_blocks, refuse_other_footer
from farthing.errors import EngineError, InvalidData, InvalidValue

_names = itertools.count(1)
_layouts: dict[tuple[str, Stamp], Layout] = {}
_MOST_LAYOUTS = 1000
_copies: dict[int, str] = {}
_looking = threading.Lock()


class Table(NamedTuple):
    """An Ibis table and the engine that has it."""

    table: Any
    engine: Engine


@dataclass(frozen=True, eq=False)
class Source:
    """A table in its engine; that of a text file is opened when a query is made, since a plan needs only its header."""

    name: str
    place: Table | CsvFiles
    left_out: tuple[str, ...] = ()  # columns of a frame that nobody declared
    files: tuple[str, ...] = ()
    earlier_names: tuple[str, ...] = ()  # what older versions may have called it, in a ledger
    frame: Any = None  # rows in this process, as they were given
    rows: Any = None  # the same as an Arrow table
    is_named: bool = False  # by the person who opened it
    footer: tuple[Any, ...] = ()  # names and types of the columns of its Parquet files
    declared: str = ""  # what was opened: a path or pattern, a kind of frame, a table of an engine
    used: tuple[str, ...] = ()  # columns that are declared; all of a file where none are
    patterns: tuple[Pattern, ...] = ()  # folders and globs among what was declared: files yet to come belong to them

    @property
    def table(self) -> Any:
        """What queries are made of, from Ibis; a text file is opened for it."""
        return self.place.table

    @property
    def engine(self) -> Engine:
        """The engine that has it."""
        return self.place.engine

    @property
    def csv(self) -> CsvFiles | None:
        """The text files that it consists of, if it does."""
        return self.place if isinstance(self.place, CsvFiles) else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.columns) if self.csv is None else self.csv.names

    @property
    def text_file(self) -> bool:
        """Whether its cells are text that the schema reads."""
        return self.csv is not None

    def prepare(self) -> None:
        """Refuse files that cannot be read row by row, before a query reads them and before it is paid for."""
        if isinstance(self.engine, DuckDBEngine):
            self.engine.refuse_broken()
        if self.csv is not None:
            self.csv.prepare()
        for path in self.files if self.csv is None else ():
            refuse_other_footer(path, self.footer)
            refuse_large_blocks(path, self.used, title=Path(path).name)
        if self.used and not self.files and self.engine.name == "duckdb":
            refuse_large_cells(self.engine, self.table, self.used)

    def confirm(self) -> None:
        """Refuse what was read from a text file that is not the one that was prepared."""
        if self.csv is not None:
            self.csv.confirm()


class CsvFiles:
    """The CSV files of a source as a view of DuckDB; they are read to the end once whenever they have changed.

    DuckDB reads them from the beginning to the end: its parallel scan cuts a file every few megabytes, and a cut inside
    a quoted cell makes rows of the lines in it. Where it would find other rows than `farthing.data.csv_files` says (a
    row longer than its buffer, a carriage return in a bare cell) or cannot unpack a file, it reads a copy.
    """

    def __init__(self, paths: list[str], engine: DuckDBEngine | None = None) -> None:
        headers = {path: _header(path) for path in paths}
        _refuse_different(headers)
        self.names, self._separator = headers[paths[0]]
        self.paths = list(map(absolute, paths))
        self._name = _fresh_name()
        self._turn = threading.RLock()
        self._seen: dict[str, Stamp] = {}
        self._read = dict(zip(self.paths, self.paths, strict=True))
        self._table: Any = None
        self._engine = engine

    @cached_property
    def engine(self) -> DuckDBEngine:
        """The DuckDB of this process, unless another was given."""
        return self._engine or default_engine()

    @property
    def table(self) -> Any:
        """The view, made when it is first asked for."""
        with self._turn:
            if self._table is None:
                self._table = self._opened()
            return self._table

    def layouts(self) -> dict[str, Layout]:
        """How rows lie in each file. PRIVATE, for the steward."""
        return {path: _layout_of(path)[1] for path in self.paths}

    def prepare(self) -> None:
        """See `Source.prepare`; a refusal names the file and not where it lies, since an analyst may see it."""
        try:
            self._prepare()
        except InvalidValue as problem:
            name = Path(str(problem.value)).name
            raise InvalidValue(problem.name, name, problem.rule, problem.way_out) from None

    def _prepare(self) -> None:
        with self._turn:
            before = dict(self._read)
            for path in self.paths:
                if self._seen.get(path) == stamp(path):
                    continue
                if _header(path) != (self.names, self._separator):
                    raise InvalidValue("source", path, "has other columns now", "make the dataset again")
                now, scan = _layout_of(path)
                refuse_broken(path, scan)
                plain = scan.is_plain and self._can_unpack(path)
                self._read[path] = path if plain else self._copy(path)
                self._seen[path] = now
            if self._read != before:
                self._table = self._opened()
                for old in set(before.values()) - set(self._read.values()) - set(self.paths):
                    _unlink(old)

    def confirm(self) -> None:
        """See `Source.confirm`: in a file that was not looked at, one row could be those of others."""
        with self._turn:
            changed = any(stamp(path) != self._seen.get(path) for path in self.paths)
        if changed:
            raise EngineError(self.engine.name, "a file changed while it was read", "ask again when it is complete")

    def _can_unpack(self, path: str) -> bool:
        """Whether DuckDB can, which knows fewer kinds of gzip than Python: none with a comment, or zeros at the end."""
        if not path.lower().endswith(".gz"):
            return True
        quoted = glob.escape(path).replace("'", "''")
        lines = (
            f"SELECT count(*) FROM read_csv('{quoted}', columns = {{'line': 'VARCHAR'}}, auto_detect = false, "
            "header = false, compression = 'gzip', ignore_errors = true, strict_mode = false, parallel = false, "
            f"max_line_size = {LONGEST_ROW}, buffer_size = {16 * LONGEST_ROW})"
        )
        with contextlib.suppress(EngineError):
            return bool(rows_of(self.engine, lines))
        return False

    def _copy(self, path: str) -> str:
        target = os.path.join(_folder_of_copies(), f"{_fresh_name()}.csv")
        rewrite(path, target)
        weakref.finalize(self, _unlink, target)
        return target

    def _opened(self) -> Any:
        # Nothing is sniffed, and a malformed line is dropped instead of raising an error that quotes it. Short lines
        # are not padded: with that, DuckDB fails at the first line break inside a quoted cell.
        return self.engine.open(
            lambda backend: backend.read_csv(
                list(map(glob.escape, self._read.values())),
                table_name=self._name,
                columns=dict.fromkeys(self.names, "VARCHAR"),
                auto_detect=False,
                header=True,
                delim=self._separator,
                quote='"',
                escape='"',
                ignore_errors=True,
                strict_mode=False,
                hive_partitioning=False,
                parallel=False,
                max_line_size=LONGEST_ROW,
                buffer_size=16 * LONGEST_ROW,
            )
        )


def open_source(source: Any, names: Sequence[str] = (), name: str | None = None) -> Source:
    """The table that `source` names or holds, called `name`; of a frame, the columns `names` are enough."""
    if isinstance(source, Source):
        return source if name is None else replace(source, name=name, is_named=True)
    if isinstance(source, str | os.PathLike) or _is_list_of_paths(source):
        return open_source(_files(source, names), name=name)
    if _is_in_memory(source):
        return _frame(source, (), source, name)
    if hasattr(source, "op") and hasattr(source, "schema"):
        return open_source(_ibis_table(source, tuple(names)), name=name)
    cut = _cut(source, list(names))
    left_out = tuple(str(name) for name in _columns(source) if name not in _columns(cut))
    return _frame(cut, left_out, source, name)


def _files(source: Any, names: Sequence[str]) -> Source:
    paths = paths_of(source)
    endings = {path.lower().endswith(PARQUET) for path in paths}
    if len(endings) > 1:
        raise InvalidValue("source", source, "must be all CSV or all Parquet", "make two datasets and union them")
    real = [os.path.realpath(path) for path in paths]
    place = CsvFiles(paths) if endings == {False} else _parquet(paths, names)
    name = declared_name(source)
    return Source(
        name,
        place,
        # With their links as they are: where one leads by the time that it is read, that file's people pay.
        files=tuple(map(absolute, paths)),
        earlier_names=tuple(dict.fromkeys(Path(path).name for path in (*paths, *real))),
        footer=tuple(parquet_schema(paths[0])) if isinstance(place, Table) else (),
        declared=name,
        used=tuple(names),
        patterns=patterns_of(source),
    )


def _parquet(paths: list[str], names: Sequence[str]) -> Table:
    for path in paths:
        refuse_large_blocks(path, names)
    _refuse_different({path: tuple(parquet_schema(path)) for path in paths})
    return _parquet_in(default_engine(), paths)


def _parquet_in(engine: DuckDBEngine, paths: Sequence[str]) -> Table:
    escaped = [glob.escape(absolute(path)) for path in paths]
    table = engine.open(
        lambda backend: backend.read_parquet(escaped, table_name=_fresh_name(), hive_partitioning=False)
    )
    return Table(table, engine)


def _header(path: str) -> tuple[tuple[str, ...], str]:
    names, separator = header(path)
    return tuple(names), separator


def _layout_of(path: str) -> tuple[Stamp, Layout]:
    """The layout of a file as it is now, from memory if it has not changed since."""
    now = stamp(path)
    with _looking:
        known = _layouts.get((path, now))
    if known is None:
        known = layout(path)
        if stamp(path) != now:
            raise InvalidValue("source", path, "changed while it was read", "wait until it is complete")
        with _looking:
            _layouts[path, now] = known
            while len(_layouts) > _MOST_LAYOUTS:
                del _layouts[next(iter(_layouts))]
    return now, known


def _folder_of_copies() -> str:
    """A directory that only this user can read, removed at the end of the process that made it."""
    with _looking:
        if os.getpid() not in _copies:
            _copies[os.getpid()] = private_folder()
        return _copies[os.getpid()]


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _frame(source: Any, left_out: tuple[str, ...], original: Any, called: str | None) -> Source:
    """pandas, polars or Arrow, handed to DuckDB as Arrow without a copy where that is possible."""
    import pyarrow

    failed = False
    table: Any = None
    kind = f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"
    try:
        if isinstance(source, pyarrow.Table):
            table = source
        elif kind.startswith("pandas."):
            table = pyarrow.Table.from_pandas(source, preserve_index=False)
        elif kind == "polars.DataFrame" or _is_in_memory(source):
            table = source.to_arrow() if kind == "polars.DataFrame" else source.to_pyarrow()
    except Exception:  # whatever its class
        failed = True  # raised below: Arrow's own words quote a cell, and would hang on as the context
    if failed:
        raise InvalidData(
            "source",
            "a column holds values of several types, or of one that Arrow has not",
            "give each column one type",
        )
    if table is None:
        raise InvalidValue(
            "source",
            type(source),
            "must be a path, a pandas, polars or Arrow table, or an Ibis table",
            "for a lazy frame, collect() it",
        )
    engine, name = default_engine(), _fresh_name()
    opened_table = _registered(engine, name, table)
    if opened_table is None:
        raise InvalidValue(
            "source", kind, "has a column of a type that DuckDB cannot hold", "leave it out, or convert it"
        )
    opened_frame = Source(
        called or kind,
        Table(opened_table, engine),
        left_out=left_out,
        frame=original,
        rows=table,
        is_named=called is not None,
        declared=kind,
    )
    weakref.finalize(opened_frame, engine.forget, name)  # DuckDB would keep the rows for as long as it runs
    return opened_frame


def _registered(engine: DuckDBEngine, name: str, rows: Any) -> Any:
    def registered(backend: Any) -> Any:
        try:
            backend.con.register(name, rows)
            return backend.table(name)
        except Exception as problem:  # a type that DuckDB does not have; its words stay here
            if type(problem).__name__ in FATAL:
                raise
            return None

    return engine.open(registered)


@contextmanager
def apart(source: Source) -> Iterator[Source]:
    """The same files or rows in a DuckDB of their own; a table of a database as it is."""
    if not source.files and source.rows is None:
        yield source
        return
    with engine_apart() as engine:
        if source.csv is not None:
            yield replace(source, place=CsvFiles(source.csv.paths, engine))
        elif source.files:
            yield replace(source, place=run(engine, lambda: _parquet_in(engine, source.files)))
        else:
            yield replace(source, place=Table(_registered(engine, _fresh_name(), source.rows), engine))


def _ibis_table(table: Any, names: tuple[str, ...]) -> Source:
    import ibis
    import ibis.expr.operations as ops

    operation = table.op()
    if not isinstance(operation, ops.DatabaseTable):
        # A limit, a window or an aggregate in there could let one person's rows decide about another's.
        raise InvalidValue(
            "source",
            type(operation).__name__,
            "must be a table or a view of the engine, not a computation on one",
            "pass the table, and use where, derive and join of the dataset",
        )
    engine = engine_of(ibis.get_backend(table))
    plan = _plan_of(table, engine)
    _refuse_text_scan(table, engine, plan)
    place = (operation.namespace.catalog, operation.namespace.database, operation.name)
    spelled = files_of_view(engine, operation.name).spelled if engine.name == "duckdb" else ()
    source = Source(
        operation.name,
        Table(table, engine),
        declared=".".join(filter(None, place)),
        used=names,
        patterns=patterns_of(list(map(local_path, spelled))),
        # Rows of this process that DuckDB was handed under a name: what they are, and of which file, nobody can tell.
        frame=table if re.search(_FRAME_SCAN, plan) else None,
    )
    source.prepare()
    return source


def _plan_of(table: Any, engine: Engine) -> str:
    """What the engine would do to read a table, in its words; nothing where these do not matter."""
    explain, _ = _TEXT_SCANS.get(engine.name, ("", ""))
    rows = rows_of(engine, f"{explain} {engine.sql(table)}") if explain else []
    return "\n".join(str(cell) for row in rows for cell in row)


def _refuse_text_scan(table: Any, engine: Engine, plan: str) -> None:
    """Refuse a table that the engine reads from text again for every query, cut and guessed in its own way.

    DuckDB's parallel scan makes rows of the lines in a quoted cell, Spark does so everywhere and takes a backslash
    before a quote for an escape; both may guess types from rows. The plan of a query names what it reads.
    """
    _, scan = _TEXT_SCANS.get(engine.name, ("", ""))
    if scan and re.search(scan, plan):
        raise InvalidValue(
            "source",
            table.get_name(),
            "must not be a view of a text file, in which one row can change how others are read",
            "pass the path of a CSV file itself, or store it as a table or as Parquet",
        )


_TEXT_SCANS = {
    "duckdb": ("EXPLAIN (FORMAT json)", r'"name": "READ_(CSV|JSON|NDJSON)'),
    "pyspark": ("EXPLAIN", r"(File|Batch)Scan csv\b"),
}
_FRAME_SCAN = r'"name": "(\w+_)?(ARROW|PANDAS|POLARS)_SCAN'


def _cut(frame: Any, names: list[str]) -> Any:
    """The columns of a frame that are used: what stands in the others must not decide whether it is refused."""
    columns = _columns(frame)
    if not names or not all(name in columns for name in names):
        return frame
    return frame.select(names) if hasattr(frame, "select") else frame[names]


def _columns(frame: Any) -> list[Any]:
    return list(getattr(frame, "column_names", getattr(frame, "columns", ())))


def _is_in_memory(source: Any) -> bool:
    """Whether this is a frame in the clothes of an Ibis table."""
    import ibis.expr.operations as ops

    return hasattr(source, "op") and isinstance(source.op(), ops.InMemoryTable)


def _refuse_different(facts: dict[str, tuple[Any, ...]]) -> None:
    first = next(iter(facts))
    for path, fact in facts.items():
        if fact != facts[first]:
            raise InvalidValue(
                "source",
                path,
                f"has other columns than {Path(first).name}",
                "make two datasets and union them",
            )


def _is_list_of_paths(source: Any) -> bool:
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(isinstance(part, str | os.PathLike) for part in source)
    )


def _fresh_name() -> str:
    return f"farthing_{next(_names)}"
