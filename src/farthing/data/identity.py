"""What makes a table the same table, however it is spelled: by these texts a ledger knows it again.

A file is known by its real path, which no symbolic link and no `..` changes; by its device and file number while it
has several names (hard links); and by that number with its size and time when it was moved. A copy of a file, and a
frame in memory, are known by the name that they are given and by nothing else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from farthing.data.sources import Source


class Piece(NamedTuple):
    """One file, or one table of an engine.

    `shown` is what people call it. It is the same as another one that kept one of the texts in `known_by`; `kept` are
    those that it leaves behind.
    """

    shown: str
    known_by: tuple[str, ...]
    kept: tuple[str, ...]


def pieces_of(source: Source) -> list[Piece]:
    """What a source consists of; nothing for a frame, which cannot be known again.

    >>> import tempfile
    >>> from farthing.data.sources import opened
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/people.csv", "w") as file:
    ...         _ = file.write("age")
    ...     os.symlink(f"{folder}/people.csv", f"{folder}/link.csv")
    ...     pieces_of(opened(f"{folder}/link.csv")) == pieces_of(opened(f"{folder}/people.csv"))
    True
    """
    if source.files:
        return [_file(path) for path in source.files]
    if not hasattr(source.table, "op"):
        return []
    if source.engine.name == "postgres":
        return _postgres(source)
    if source.engine.name == "duckdb":
        return _duckdb(source)
    return _spark(source)


def _file(path: str, inside: str = "") -> Piece:
    real = os.path.realpath(path)
    by_path = f"file {real}{inside}"
    try:
        facts = os.stat(real)
    except OSError:  # it was taken away, and whoever reads it next will say so
        return Piece(os.path.basename(real), (by_path,), (by_path,))
    number = f"file number {facts.st_dev} {facts.st_ino}{inside}"
    moved = f"file number {facts.st_dev} {facts.st_ino} {facts.st_size} {facts.st_mtime_ns}{inside}"
    # A file number is given anew when its file is gone, so that by itself it says something only of a linked file.
    known_by = (by_path, moved, number) if facts.st_nlink > 1 else (by_path, moved)
    return Piece(os.path.basename(real), known_by, (by_path, moved, number))


def _namespace(source: Source) -> tuple[str | None, str | None]:
    place = getattr(source.table.op(), "namespace", None)
    return getattr(place, "catalog", None), getattr(place, "database", None)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _duckdb(source: Source) -> list[Piece]:
    """A table of a database file; one in memory goes with its process."""
    catalog, schema = _namespace(source)
    named: Any = source.table.op().name
    files = dict(
        source.engine.rows("SELECT database_name, path FROM duckdb_databases() WHERE path IS NOT NULL")
    )
    if catalog is None:
        ((catalog,),) = source.engine.rows("SELECT current_database()")
    if catalog not in files:
        return []
    # DuckDB finds a table whatever the case of its name.
    return [
        _file(str(files[catalog]), f" {(schema or 'main').lower()} {named.lower()}")._replace(shown=named)
    ]


_POSTGRES_TABLE = """
WITH RECURSIVE part(oid) AS (
    SELECT c.oid FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass({name})
    UNION SELECT i.inhrelid FROM part JOIN pg_catalog.pg_inherits i ON i.inhparent = part.oid
)
SELECT d.oid::text, c.oid::text, n.nspname::text, c.relname::text
FROM part JOIN pg_catalog.pg_class c USING (oid) JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
ORDER BY c.oid = pg_catalog.to_regclass({name}) DESC, c.oid
"""


def _postgres(source: Source) -> list[Piece]:
    """A table by its number and by its whole name, and the parts of a partitioned one."""
    _, schema = _namespace(source)
    named: Any = source.table.op().name
    spelled = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, named) if part)
    ((server,),) = source.engine.rows("SELECT system_identifier::text FROM pg_catalog.pg_control_system()")
    found = source.engine.rows(_POSTGRES_TABLE.format(name=_quoted(spelled)))
    pieces = []
    for database, number, space, table in found:
        names = (
            f"postgres {server} {database} number {number}",
            f"postgres {server} {database} name {space} {table}",
        )
        pieces.append(Piece(table, names, names))
    return pieces


def _spark(source: Source) -> list[Piece]:
    """A table by its whole name, whatever its case."""
    catalog, schema = _namespace(source)
    named: Any = source.table.op().name
    if catalog is None or schema is None:
        ((own_catalog, own_schema),) = source.engine.rows("SELECT current_catalog(), current_database()")
        catalog, schema = catalog or own_catalog, schema or own_schema
    names = (f"spark {catalog} {schema} {named}".lower(),)
    return [Piece(named, names, names)]
