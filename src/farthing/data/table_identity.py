"""What makes a table the same table, however it is spelled: by these texts a ledger knows it again.

A file is known by its real path, which no symbolic link, no `..` and, where the disk ignores it, no case changes; by
its device and file number while it has several names (hard links); and by that number with its size and time when it
was moved. Files of a folder or a glob are known by it too, those included that it has not yet. A view is known by its
own name and by the tables and files that it reads. A frame in memory is known by the name that it was given and by
nothing else, and a copy of a file is another file.

Whether its rows are still the same is found by `fingerprint_of`. PRIVATE: two fingerprints are the same only if the
rows are, so it is kept under the ledger's key and shown to nobody.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from farthing.data.engines.duckdb_views import files_of_view
from farthing.data.file_paths import absolute
from farthing.errors import InvalidValue
from farthing.privacy.units import alike

if TYPE_CHECKING:
    from farthing.data.dataset import Dataset
    from farthing.data.sources import Source


MOST_BYTES = 2**30  # of the files of a table that are read whole; of larger ones size, time and both ends
_END = 2**20
_BLOCK = 2**20


def fingerprint_of(dataset: Dataset) -> str | None:
    """A text that differs when the rows do; None where only reading a server's table could show that.

    Where a file lies, what it is called and when it was written do not matter, nor does the order of a list of files.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> def of(*ages):
    ...     return fingerprint_of(dataset(pyarrow.table({"age": list(ages)}), schema={"age": (0, 110)}))
    >>> of(30, 41) == of(30, 41), of(30) == of(31)
    (True, False)
    """
    parts = [_part(source) for source in dataset.sources()]
    if any(part is None for part in parts):
        return None
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def _part(source: Source) -> str | None:
    if source.rows is not None:
        return _arrow(source.rows)
    if not source.files:
        return None
    try:
        whole = sum(os.stat(path).st_size for path in source.files) <= MOST_BYTES
        return " ".join(sorted(_digest(path, whole) for path in source.files))
    except OSError:  # the next reader will say so
        return None


def _digest(path: str, whole: bool) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        facts = os.fstat(file.fileno())
        if whole:
            while block := file.read(_BLOCK):
                digest.update(block)
        else:
            digest.update(f"{facts.st_size} {facts.st_mtime_ns}".encode())
            digest.update(file.read(_END))
            file.seek(max(0, facts.st_size - _END))
            digest.update(file.read(_END))
    return digest.hexdigest()


class _Sink:
    """Takes what would be written to a file into a digest."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: no byte is held back."""


def _arrow(table: Any) -> str:
    """Of the columns as Arrow would send them, in one piece however they were cut before."""
    import pyarrow

    sink = _Sink()
    for name in sorted(table.column_names):
        column = table.select([name]).combine_chunks().replace_schema_metadata()
        with pyarrow.ipc.new_stream(pyarrow.PythonFile(sink, "w"), column.schema) as stream:
            stream.write_table(column)
    return sink.digest.hexdigest()


class Piece(NamedTuple):
    """One file, or one table of an engine.

    `title` is what people call it. It is the same as another one that kept one of the texts in `known_by`; `kept` are
    those that it leaves behind.
    """

    title: str
    known_by: tuple[str, ...]
    kept: tuple[str | tuple[str, str], ...]  # a pair for a pattern: the folder, and the steps below it
    path: str = ""  # of a file


def folders_of(path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The folders that a file lies in, each as a ledger knows it, and the steps from there to the file.

    >>> list(folders_of("/data/2024/visits.csv"))[:2]
    [('folder /data/2024', ('visits.csv',)), ('folder /data', ('2024', 'visits.csv'))]
    """
    # A link in a folder is one of its files or folders, and so is what it leads to.
    for place in dict.fromkeys((path, os.path.realpath(path))):
        steps = place.split(os.sep)
        for first in range(len(steps) - 1, 0, -1):
            yield folder_text(os.path.realpath(os.sep.join(steps[:first]) or os.sep)), tuple(steps[first:])


def folder_text(folder: str) -> str:
    """What a ledger knows a folder by."""
    return f"folder {folder}"


def pieces_of(source: Source) -> list[Piece]:
    """What a source consists of; nothing for a frame without a name, which cannot be known again.

    >>> import tempfile
    >>> from farthing.data.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/people.csv", "w") as file:
    ...         _ = file.write("age")
    ...     os.symlink(f"{folder}/people.csv", f"{folder}/link.csv")
    ...     [pieces_of(open_source(f"{folder}/{name}"))[0].title for name in ("people.csv", "link.csv")]
    ['people.csv', 'people.csv']
    """
    if source.files:
        return [_file(path) for path in source.files]
    named_frame = (f"frame {alike(source.name)}",)
    frames = [Piece(source.name, named_frame, named_frame)] if source.frame is not None and source.is_named else []
    if source.rows is not None or not hasattr(source.table, "op"):
        return frames
    if source.engine.name == "postgres":
        return _postgres(source)
    if source.engine.name == "duckdb":
        return frames + _duckdb(source)  # a view may read a frame beside its tables
    return _spark(source)


def source_name(source: Source) -> str:
    """One text for a source, the same whatever a folder or a pattern holds today."""
    patterns = [f"{pattern.folder} {pattern.steps}" for pattern in source.patterns]
    first = patterns or sorted(piece.known_by[0] for piece in pieces_of(source))
    return " ".join(first) or f"frame {source.name}"


def _file(path: str, inside: str = "") -> Piece:
    real = _as_listed(os.path.realpath(path))
    by_path = f"file {real}{inside}"
    own = "" if inside else absolute(path)
    try:
        facts = os.stat(real)
    except OSError:  # it was removed, and the next reader will say so
        return Piece(os.path.basename(real), (by_path,), (by_path,), own)
    number = f"file number {facts.st_dev} {facts.st_ino}{inside}"
    moved = f"file number {facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns}{inside}"
    # A file number is reused when its file is gone, so that by itself it says something only of a linked file.
    known_by = (by_path, moved, number) if facts.st_nlink > 1 else (by_path, moved)
    return Piece(os.path.basename(real), known_by, (by_path, moved, number), own)


def _as_listed(path: str) -> str:
    """A path as its folders spell it, where the disk ignores case."""
    folder, name = os.path.split(path)
    if not name or not os.path.exists(os.path.join(folder, name.swapcase())):
        return path
    folder = _as_listed(folder)
    try:
        names = os.listdir(folder)
        if name not in names:
            alikes = (each for each in names if each.casefold() == name.casefold())
            name = next((each for each in alikes if os.path.samefile(os.path.join(folder, each), path)), name)
    except OSError:  # it may be read and not listed
        pass
    return os.path.join(folder, name)


def _namespace(source: Source) -> tuple[str | None, str | None]:
    place = getattr(source.table.op(), "namespace", None)
    return getattr(place, "catalog", None), getattr(place, "database", None)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb(source: Source) -> list[Piece]:
    """A table of a database file; one in memory goes with its process. Of a view, also what it reads."""
    catalog, schema = _namespace(source)
    named: Any = source.table.op().name
    files = _duckdb_files(source, named)
    if catalog is None or schema is None:
        ((own_catalog, own_schema),) = source.engine.rows("SELECT current_database(), current_schema()")
        catalog, schema = catalog or own_catalog, schema or own_schema
    pieces = []
    if catalog in files:
        # DuckDB finds a table whatever the case of its name.
        inside = f" {schema.lower()} {named.lower()}"
        pieces.append(_file(str(files[catalog]), inside)._replace(title=named))
    pieces += _duckdb_tables(source, files)
    pieces += [_file(path) for path in files_of_view(source.engine, named).files]
    return _each_once(pieces)


def _duckdb_files(source: Source, named: str) -> dict[str, str]:
    """The database files that are attached. A server's tables have an identity there, which DuckDB does not tell."""
    attached = source.engine.rows("SELECT database_name, path, type FROM duckdb_databases() WHERE path IS NOT NULL")
    for catalog, _, kind in attached:
        if kind not in ("duckdb", "sqlite"):
            raise InvalidValue(
                "source",
                named,
                f"must not be read beside {catalog!r}, a database of the kind {kind} that DuckDB has attached: whose "
                "rows its tables hold could not be known",
                "DETACH it, and open a table of Postgres with farthing.data.postgres_table",
            )
    return {catalog: path for catalog, path, _ in attached}


def _duckdb_tables(source: Source, files: dict[str, str]) -> Iterator[Piece]:
    """The tables that are scanned: for a view, those that it reads."""
    ((_, plan),) = source.engine.rows(f"EXPLAIN (FORMAT json) {source.engine.sql(source.table)}")
    waiting = list(json.loads(plan))
    while waiting:
        step = waiting.pop()
        waiting += step.get("children", ())
        scanned = step.get("extra_info", {}).get("Table")
        for catalog, path in files.items():
            if isinstance(scanned, str) and scanned.startswith(f"{catalog}."):
                schema, _, table = scanned.removeprefix(f"{catalog}.").partition(".")
                yield _file(str(path), f" {schema.lower()} {table.lower()}")._replace(title=table)


def _each_once(pieces: list[Piece]) -> list[Piece]:
    return list({piece.known_by: piece for piece in reversed(pieces)}.values())[::-1]


_POSTGRES_TABLE = """
WITH RECURSIVE part(oid) AS (
    SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass({name})
    UNION SELECT other.oid FROM part CROSS JOIN LATERAL (
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = part.oid
        UNION ALL SELECT d.refobjid FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d
            ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
            AND d.refclassid = 'pg_catalog.pg_class'::regclass
        WHERE r.ev_class = part.oid
    ) other(oid)
), belongs(part, oid) AS (
    SELECT oid, oid FROM part
    UNION SELECT b.part, i.inhparent FROM belongs b JOIN pg_catalog.pg_inherits i ON i.inhrelid = b.oid
)
SELECT d.oid::text, b.part::text, c.oid::text, n.nspname::text, c.relname::text
FROM belongs b JOIN pg_catalog.pg_class c ON c.oid = b.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
ORDER BY b.part = pg_catalog.to_regclass({name}) DESC, b.part, c.oid = b.part DESC, c.oid
"""
_POSTGRES_FUNCTIONS = """
SELECT p.proname::text FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d
    ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
LEFT JOIN pg_catalog.pg_operator o ON d.refclassid = 'pg_catalog.pg_operator'::regclass AND o.oid = d.refobjid
JOIN pg_catalog.pg_proc p
    ON p.oid = CASE WHEN d.refclassid = 'pg_catalog.pg_proc'::regclass THEN d.refobjid ELSE o.oprcode END
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE (p.provolatile <> 'i' OR p.prokind IN ('a', 'w') OR l.lanname NOT IN ('internal', 'c'))
    AND r.ev_class IN ({numbers})
UNION ALL SELECT 'query_to_xml' FROM pg_catalog.pg_class c
WHERE c.oid IN ({numbers}) AND c.relkind IN ('v', 'm')
    AND pg_catalog.pg_get_viewdef(c.oid) ~* '\\m(query|table|cursor|schema|database)_to_xml'
"""
_POSTGRES_FOREIGN = """
SELECT c.relname::text FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_class c ON c.oid = f.ftrelid
JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver
JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw
WHERE w.fdwname = 'postgres_fdw' AND f.ftrelid IN ({numbers})
"""


def _postgres(source: Source) -> list[Piece]:
    """A table by its number and by its whole name, with the parts of a partitioned one and what a view reads.

    A partition belongs to the table that it is a part of, as a file does to its folder: also one that came later.
    """
    _, schema = _namespace(source)
    named: Any = source.table.op().name
    spelled = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, named) if part)
    ((server,),) = source.engine.rows("SELECT system_identifier::text FROM pg_catalog.pg_control_system()")
    pieces: dict[str, Piece] = {}
    for database, part, number, space, table in source.engine.rows(_POSTGRES_TABLE.format(name=_quoted(spelled))):
        names = (
            f"postgres {server} {database} number {number}",
            f"postgres {server} {database} name {space} {table}",
        )
        own = pieces.setdefault(part, Piece(table, (), names))
        pieces[part] = own._replace(known_by=own.known_by + names)
    if pieces:
        _refuse_hidden_tables(source, named, ", ".join(pieces))
    return list(pieces.values())


def _refuse_hidden_tables(source: Source, named: str, numbers: str) -> None:
    """Refuse what may read tables unseen: those of another Postgres, or in a function that somebody wrote.

    IMMUTABLE is what a function says of itself, and nothing checks it: one in SQL can be declared so and read a table.
    What is written in C belongs to an extension, whose authors mean it. Functions of Postgres itself are not listed.
    """
    for (foreign,) in source.engine.rows(_POSTGRES_FOREIGN.format(numbers=numbers)):
        raise InvalidValue(
            "source",
            named,
            f"must not read {foreign!r}, which is a table of another Postgres, where it has its own identity",
            "open it there with farthing.data.postgres_table",
        )
    called = source.engine.rows(_POSTGRES_FUNCTIONS.format(numbers=numbers))
    if called:
        raise InvalidValue(
            "source",
            named,
            f"must not be a view that calls {called[0][0]}(), which may read other tables: whose rows they hold could "
            "not be known",
            "pass the table itself, and use where and derive instead",
        )


def _spark(source: Source) -> list[Piece]:
    """A table by its whole name, whatever its case, and by where it lies; of a view, also the tables that it reads."""
    catalog, schema = _namespace(source)
    named: Any = source.table.op().name
    if catalog is None or schema is None:
        ((own_catalog, own_schema),) = source.engine.rows("SELECT current_catalog(), current_database()")
        catalog, schema = catalog or own_catalog, schema or own_schema
    ((plan,),) = source.engine.rows(f"EXPLAIN FORMATTED {source.engine.sql(source.table)}")
    names = [f"{catalog}.{schema}.{named}", *(name.replace("`", "") for name in _SPARK_TABLE.findall(plan))]
    pieces = [_spark_piece(name.replace(".", " ").lower(), name.rpartition(".")[2]) for name in names]
    return _each_once(pieces + _spark_files(source, named, plan))


def _spark_files(source: Source, named: str, plan: str) -> list[Piece]:
    """The folders and files that are read: by where they lie, and by the folders that they lie in.

    A plan names the first location of a scan and counts the others, so that Spark is asked for the files.
    """
    scans = _SPARK_LOCATION.findall(plan)
    if not scans:
        return []
    locations = {_location(first) for first, _ in scans}
    spark: Any = source.engine
    files = {_location(file) for file in spark.files(source.table)}
    hidden = sum(int(more) + 1 for _, more in scans if more)
    if hidden > len(files):  # Spark does not tell those of a table that it has cached
        raise InvalidValue(
            "source",
            named,
            "must not read files that Spark does not name: whose rows they hold could not be known",
            "UNCACHE the tables that it reads, or make a table of the catalog",
        )
    folders = {each for file in files for each in _above(file)}
    locations |= {file for file in files if hidden and not locations & {file, *_above(file)}}
    pieces = []
    for location in sorted(locations):
        path = location.removeprefix("file:")
        if path != location and os.path.isfile(path):
            pieces.append(_file(path))
            continue
        below = [each for each in (*files, *folders) if location in _above(each)]
        known_by = tuple(f"spark location {each}" for each in (location, *_above(location), *sorted(below)))
        kept: tuple[str | tuple[str, str], ...] = known_by[:1]
        if path != location and os.path.isdir(path):
            kept += ((folder_text(path), "**/*"),)
            pieces += [_file(each.removeprefix("file:")) for each in below if each in files]
        pieces.append(Piece(named, known_by, kept))
    return pieces


def _location(address: str) -> str:
    """One text for the address of a file or folder, whatever the links on this machine.

    >>> _location("file:///data/my%20visits/"), _location("s3://lake/visits/day=1")
    ('file:/data/my visits', 's3://lake/visits/day=1')
    """
    if address.lower().startswith("file:"):
        return f"file:{os.path.realpath(unquote(urlsplit(address).path))}"
    return unquote(address).rstrip("/")


def _above(location: str) -> list[str]:
    """The folders that something lies in.

    >>> _above("s3://lake/visits/day=1/a.parquet")
    ['s3://lake/visits/day=1', 's3://lake/visits', 's3://lake']
    """
    start = location.find("://") + 3 if "://" in location else location.find(":") + 2
    steps = location[start:].split("/")
    return [location[:start] + "/".join(steps[:end]) for end in range(len(steps) - 1, 0, -1)]


def _spark_piece(text: str, title: str) -> Piece:
    names = (f"spark {text}",)
    return Piece(title, names, names)


_SPARK_TABLE = re.compile(r"(?m)^\(\d+\) (?:Scan [^\s.]+|BatchScan) ([^\s.]+\.[^\s.]+\.\S+)")
_SPARK_LOCATION = re.compile(r"(?m)^Location: \w+ \[([^\]]+?)(?:, \.\.\. (\d+) entries)?\]$")
