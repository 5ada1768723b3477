"""Where rows come from: a path or glob, a frame, an Ibis table. Names and types of columns are looked at, never rows.

Types of a CSV file would have to be guessed from its rows, and then one odd cell could change the type of a column, or
the refusal of a dataset. So its cells are text, read by the schema; only the header line is looked at here.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import itertools
import os
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing.data.engines import Engine, engine_of
from farthing.data.engines.duckdb import default_engine
from farthing.data.schema import folded
from farthing.errors import InvalidData, InvalidValue

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
LONGEST_HEADER = 2**20
_names = itertools.count(1)


@dataclass(frozen=True, eq=False)
class Source:
    """A table in its engine."""

    name: str
    table: Any
    engine: Engine
    text_file: bool = False
    left_out: tuple[str, ...] = ()  # columns of a frame that nobody declared

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all its columns, declared or not."""
        return (*self.table.columns, *self.left_out)


def opened(source: Any, names: Sequence[str] = ()) -> Source:
    """The table that `source` names or holds; of a frame, the columns `names` are enough."""
    if isinstance(source, Source):
        return source
    if isinstance(source, str | os.PathLike) or _is_list_of_paths(source):
        return _files(source)
    if hasattr(source, "op") and hasattr(source, "schema"):
        return _ibis_table(source)
    cut = _cut(source, list(names))
    return _frame(cut, tuple(str(name) for name in _columns(source) if name not in _columns(cut)))


def header(path: str) -> tuple[list[str], str]:
    """The names of the columns of a CSV file and what separates them, from its first line and nothing else."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    refusal: InvalidValue | None = None
    try:
        with opener(path, "rb") as file:
            # Bytes: a text reader would decode, and refuse, rows beyond the first line.
            first = file.readline(LONGEST_HEADER + 1)
        line = first.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as problem:
        refusal = _unreadable(path, problem)
    if refusal is not None:  # raised here, where no context holds the bytes that could not be decoded
        raise refusal
    separator = delimiter(line)
    names: list[str] = []
    if len(first) <= LONGEST_HEADER:  # longer, it is a file whose lines end otherwise, rows and all
        with contextlib.suppress(csv.Error):
            names = next(csv.reader([line.strip("\r\n")], delimiter=separator), [])
    if not names or not all(names) or len(set(map(folded, names))) != len(names):
        raise InvalidValue(
            "source", path, "must start with a line of column names, each once", "add a header line"
        )
    return names, separator


def delimiter(line: str) -> str:
    """What separates the names in a header line: the most frequent of comma, semicolon, tab and bar."""
    return max(",;\t|", key=line.count)


def paths_of(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that a path, a glob or a list of paths stands for, in order."""
    parts = [source] if isinstance(source, str | os.PathLike) else list(source)
    found: list[str] = []
    for part in (os.fspath(given) for given in parts):
        if "://" in part:
            # An address may hold a password, so it is not shown whole.
            scheme = part.partition("://")[0]
            opener = {"postgresql": "postgres_table", "postgres": "postgres_table", "sc": "spark_table"}.get(
                scheme
            )
            way_out = f"open it with farthing.data.{opener}(...)" if opener else "download it first"
            raise InvalidValue("source", f"{scheme}://...", "must be a file on this machine", way_out)
        matches = [part] if os.path.exists(part) else sorted(glob.glob(part, recursive=True))
        if not matches:
            raise InvalidValue("source", part, "does not exist", "check the path or the pattern")
        found.extend(matches)
    for path in found:
        if os.path.isdir(path):
            raise InvalidValue("source", path, "is a directory", f"write {path}/*.parquet")
        if not path.lower().endswith(CSV + PARQUET):
            endings = ", ".join(CSV + PARQUET)
            raise InvalidValue(
                "source", path, f"must end in one of {endings}", "or pass a frame or Ibis table"
            )
        if not os.access(path, os.R_OK):
            raise InvalidValue("source", path, "cannot be read", "check its permissions")
    seen: set[str] = set()
    for path, real in ((path, os.path.realpath(path)) for path in found):
        if real in seen:  # every row in it would be there twice, and be taken for two
            raise InvalidValue("source", path, "must not be given twice", "correct the list or the patterns")
        seen.add(real)
    return found


def _files(source: Any) -> Source:
    paths = paths_of(source)
    name = Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
    endings = {path.lower().endswith(PARQUET) for path in paths}
    if len(endings) > 1:
        raise InvalidValue(
            "source", source, "must be all CSV or all Parquet", "make two datasets and union them"
        )
    engine, parquet = default_engine(), endings == {True}
    opening = _parquet if parquet else _csv
    table = engine.open(lambda backend: opening(backend, paths))
    return Source(name, table, engine, text_file=not parquet)


def parquet_schema(path: str) -> list[tuple[str, Any]]:
    """Names and Arrow types of the columns of a Parquet file, from its footer."""
    import pyarrow.parquet

    refusal: InvalidValue | None = None
    try:
        schema = pyarrow.parquet.read_schema(path)
    except Exception as problem:  # Arrow's errors are of many classes
        refusal = _unreadable(path, problem)
    if refusal is not None:
        raise refusal
    return list(zip(schema.names, schema.types, strict=True))


def _parquet(backend: Any, paths: list[str]) -> Any:
    _refuse_different({path: tuple(parquet_schema(path)) for path in paths})
    return backend.read_parquet(
        list(map(glob.escape, paths)), table_name=_fresh_name(), hive_partitioning=False
    )


def _csv(backend: Any, paths: list[str]) -> Any:
    headers = {path: (tuple(names), separator) for path in paths for names, separator in [header(path)]}
    _refuse_different(headers)
    names, separator = headers[paths[0]]
    # Nothing is sniffed, and a malformed line is dropped instead of raising an error that quotes it. Short lines are
    # not padded: with that, DuckDB fails at the first line break inside a quoted cell.
    return backend.read_csv(
        list(map(glob.escape, paths)),
        table_name=_fresh_name(),
        columns=dict.fromkeys(names, "VARCHAR"),
        auto_detect=False, header=True, delim=separator, quote='"', escape='"',
        ignore_errors=True, strict_mode=False, hive_partitioning=False,
    )  # fmt: skip


def _frame(source: Any, left_out: tuple[str, ...] = ()) -> Source:
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
            "source", type(source), "must be a path, a pandas, polars or Arrow table, or an Ibis table",
            "for a lazy frame, collect() it",
        )  # fmt: skip
    engine, name = default_engine(), _fresh_name()

    def registered(backend: Any) -> Any:
        with contextlib.suppress(Exception):  # a type that DuckDB does not have; its words stay here
            backend.con.register(name, table)
            return backend.table(name)

    opened_table = engine.open(registered)
    if opened_table is None:
        raise InvalidValue(
            "source", kind, "has a column of a type that DuckDB cannot hold", "leave it out, or convert it"
        )
    opened_frame = Source(kind, opened_table, engine, left_out=left_out)
    weakref.finalize(opened_frame, engine.forget, name)  # DuckDB would keep the rows for as long as it runs
    return opened_frame


def _ibis_table(table: Any) -> Source:
    import ibis
    import ibis.expr.operations as ops

    operation = table.op()
    if _is_in_memory(table):
        return _frame(table)
    if not isinstance(operation, ops.DatabaseTable):
        # A limit, a window or an aggregate in there could let one person's rows decide about another's.
        raise InvalidValue(
            "source", type(operation).__name__, "must be a table or a view of the engine, not a computation on one",
            "pass the table, and use where, derive and join of the dataset",
        )  # fmt: skip
    backend = ibis.get_backend(table)
    return Source(operation.name, table, engine_of(backend))


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


def _unreadable(path: str, problem: Exception) -> InvalidValue:
    reason = getattr(problem, "strerror", None) or type(problem).__name__
    return InvalidValue("source", path, f"cannot be read ({reason})", "check the file")


def _is_list_of_paths(source: Any) -> bool:
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(isinstance(part, str | os.PathLike) for part in source)
    )


def _fresh_name() -> str:
    return f"farthing_{next(_names)}"
