"""A folder of tables that a server may open: files below it, and tables of engines that its `sources.toml` names.

[registry]                             # what curators call it; what stands below is never shown
url = "postgresql://reader@db/registry"    # or sc://host:15002 for Spark
table = "public.people"

A pattern (visits/*.csv) or a folder is one table, of all files that it holds at the time. A path never leads out of the
folder, whatever it is spelled like or linked to.
"""

from __future__ import annotations

import glob
import os
import re
import threading
import tomllib
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from farthing.data import postgres_table, spark_table
from farthing.data.csv_files import CSV
from farthing.data.declaration_file import ZONED, columns_of
from farthing.data.engines.engine import Engine, rows_of
from farthing.data.file_paths import paths_of
from farthing.data.parquet_files import PARQUET
from farthing.data.sources import Source, open_source
from farthing.errors import EngineError, FarthingError, InvalidValue

ENGINES = "sources.toml"
MOST_FILES = 200
LONGEST_NAME = 500
_DEEPEST = 4
_MOST_OPEN = 64
_NUMBERS = re.compile(r"[0-9]+(?:[-_.][0-9]+)*")
_SCHEMES = {"postgresql": "postgres", "postgres": "postgres", "sc": "spark"}


@dataclass(frozen=True)
class FolderTable:
    """A table that could be registered: its columns with what their types say, or why they are not known."""

    name: str
    engine: str
    columns: tuple[tuple[str, str | None], ...] = ()
    problem: str = ""


class DataFolder:
    """The tables of one folder. No row is read here: only names and types of columns.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "people.csv").write_text("age,sex")
    >>> tables = DataFolder(folder.name)
    >>> [(each.name, each.columns) for each in tables.listed()]
    [('people.csv', (('age', None), ('sex', None)))]
    >>> tables.opened("../people.csv")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: source='../people.csv': must name a table of the data folder; ...
    >>> folder.cleanup()
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(os.path.realpath(root))
        self._open: OrderedDict[tuple[Any, ...], Source] = OrderedDict()
        self._turn = threading.Lock()
        self._opening = threading.Lock()  # of engines: the tables of one address share a connection

    @property
    def display_name(self) -> str:
        """What the folder is called: its last name, not where it is."""
        return self._root.name or "/"

    def listed(self, only: str | None = None) -> list[FolderTable]:
        """Every table that could be registered; the columns of engines' tables only where one is asked for."""
        if only is not None:
            return [self._described(only)]
        names = self._files()
        patterns = [each for each in _patterns(names) if self._matches(each, self._root / each)]
        tables = [self._described(name) for name in (*patterns, *names)]
        return tables + [FolderTable(name, kind) for name, (kind, _, _) in self._engines().items()]

    def opened(self, name: str) -> Source:
        """The table of that name, opened; the same as long as the file is the same."""
        engines = self._engines()
        if name in engines:
            return self._engine_table(name, *engines[name])
        path, files = self._path(name)
        facts = [(each, each.stat()) for each in files]
        key = (str(path), *((str(each), fact.st_mtime_ns, fact.st_size, fact.st_ino) for each, fact in facts))
        with self._turn:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        try:
            source = open_source(str(path))
        except InvalidValue as problem:
            words = (self._without_root(problem.rule), self._without_root(problem.way_out))
            raise InvalidValue("source", name, *words) from None
        if not all(self._is_below(Path(each)) for each in source.files):  # a link was put there in the meantime
            raise _no_table(name)
        return self._remembered(key, source)

    def answering(self, name: str) -> Source:
        """The table of that name on an engine that answers now; a connection that was lost is opened again."""
        source = self.opened(name)
        if name not in self._engines():
            return source
        for again in (True, False):
            try:
                rows_of(source.engine, "SELECT 1")
                return source
            except EngineError:
                self._let_go(source.engine)
            if again:
                source = self.opened(name)
        raise EngineError(source.engine.name, "its server does not answer", "try again when it does")

    def _remembered(self, key: tuple[Any, ...], source: Source) -> Source:
        with self._turn:
            source = self._open.setdefault(key, source)
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
            return source

    def _described(self, name: str) -> FolderTable:
        engines = self._engines()
        if name in engines:
            table = self.opened(name).table
            return FolderTable(name, engines[name][0], tuple((c, _holds(k)) for c, k in table.schema().items()))
        path, _ = self._path(name)
        try:
            return FolderTable(name, "duckdb", tuple(columns_of(str(path))))
        except InvalidValue as problem:  # its text has the whole path
            said = f"{problem.rule}; {problem.way_out}".removesuffix("; ")
            return FolderTable(name, "duckdb", problem=self._without_root(said))

    def _files(self) -> list[str]:
        names: list[str] = []
        for here, folders, files in os.walk(self._root):
            depth = len(Path(here).relative_to(self._root).parts)
            folders[:] = sorted(each for each in folders if not each.startswith(".") and depth + 1 < _DEEPEST)
            for each in sorted(files):
                name = (Path(here) / each).relative_to(self._root).as_posix()
                if each.startswith(".") or not each.lower().endswith(CSV + PARQUET) or len(name) > LONGEST_NAME:
                    continue
                if self._inside(name) is not None:
                    names.append(name)
                if len(names) >= MOST_FILES:
                    return names
        return names

    def _path(self, name: str) -> tuple[Path, list[Path]]:
        """What is to be opened, and the files that it stands for; a pattern or a folder as it is spelled."""
        path = self._inside(name) if 0 < len(name) <= LONGEST_NAME else None
        if path is not None and name.lower().endswith(CSV + PARQUET):
            return path, [path]
        whole = self._root / name
        files = self._matches(name, whole) if path is None and 0 < len(name) <= LONGEST_NAME else []
        if not files:
            raise _no_table(name)
        return whole, files

    def _inside(self, name: str) -> Path | None:
        """The file, if it is one and lies below the folder when all links are followed."""
        real = Path(os.path.realpath(self._root / name)) if _is_plain(name) else None
        try:
            return real if real is not None and self._is_below(real) and real.is_file() else None
        except (OSError, ValueError):
            return None

    def _matches(self, name: str, whole: Path) -> list[Path]:
        """The files of a pattern or folder; none at all if one of them lies elsewhere, or is no table."""
        # If the name of the folder itself were a pattern, this would be another one.
        hidden = any(step.startswith(".") for step in name.split("/"))
        if not _is_plain(name) or hidden or glob.has_magic(str(self._root)):
            return []
        try:
            if not glob.has_magic(name) and not (whole.is_dir() and self._is_below(whole)):
                return []
            files = [Path(each) for each in paths_of(str(whole))]
            return files if all(map(self._is_below, files)) else []
        except (InvalidValue, OSError, ValueError):
            return []

    def _is_below(self, path: Path) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self._root)

    def _without_root(self, words: str) -> str:
        return words.replace(f"{self._root}{os.sep}", "")

    # Tables of engines

    def _engines(self) -> dict[str, tuple[str, str, str]]:
        """What `sources.toml` names: engine, address and table."""
        file = self._root / ENGINES
        try:
            facts = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            raise InvalidValue("file", ENGINES, "cannot be read", "correct it in the data folder") from None
        engines = {}
        for name, entry in facts.items():
            known = isinstance(entry, dict) and set(entry) == {"url", "table"}
            texts = known and all(isinstance(value, str) and value for value in entry.values())
            kind = _SCHEMES.get(entry["url"].partition("://")[0].partition("+")[0]) if texts else None
            if kind is None or not name.isprintable() or name.lower().endswith(CSV + PARQUET):
                # What stands there may be a password, so that it is not shown.
                raise InvalidValue(f"{ENGINES}: {name[:64]}", "...", "must have a url of Postgres or Spark and a table")
            engines[name] = (kind, entry["url"], entry["table"])
        return engines

    def _engine_table(self, name: str, kind: str, url: str, table: str) -> Source:
        key = (name, kind, url, table)
        with self._turn:
            if key in self._open:
                return self._open[key]
        try:
            with self._opening:
                # Spark has one session for an address by itself.
                opened = spark_table(url, table) if kind == "spark" else self._postgres_table(url, table)
                return self._remembered(key, open_source(opened))
        except EngineError as problem:
            failed = EngineError(kind, "its server or table cannot be reached", problem.way_out)
        except FarthingError:
            failed = EngineError(kind, "its table cannot be opened", f"correct {name!r} in {ENGINES}")
        raise failed  # outside of the handlers: what was caught may name the server

    def _postgres_table(self, url: str, table: str) -> Any:
        """A table in the connection of the others at its address, without which they could not be linked."""
        with self._turn:
            same = [kept for key, kept in self._open.items() if key[1:3] == ("postgres", url)]
        if same:
            try:
                return postgres_table(url, table, beside=same[0].table)
            except EngineError:  # a connection that was lost: all of them are opened again
                self._let_go(same[0].engine)
        return postgres_table(url, table)

    def _let_go(self, engine: Engine) -> None:
        """Forget a connection that was lost, with all tables that share it."""
        with self._turn:
            for key in [key for key, kept in self._open.items() if kept.engine is engine]:
                del self._open[key]


def _is_plain(name: str) -> bool:
    """Whether a name is a relative path in one spelling, which goes up nowhere."""
    parts = PurePosixPath(name)
    plain = name.isprintable() and not parts.is_absolute() and "\\" not in name and "://" not in name
    return plain and ".." not in parts.parts and parts.as_posix() == name


def _no_table(name: str) -> InvalidValue:
    way_out = "choose one of the list, or write a pattern such as visits/*.csv, whose files are all in the data folder"
    return InvalidValue("source", name, "must name a table of the data folder", way_out)


def _patterns(names: Sequence[str]) -> list[str]:
    """The patterns that are offered: all files of a folder that has several of one kind; files told apart by a number.

    The second also where there is one such file so far: in January nobody has a second month.

    >>> _patterns(["people.csv", "visits/2024-01.csv", "visits/2024-02.csv", "visits/one.parquet"])
    ['visits/*.csv']
    >>> _patterns(["people.csv", "visits-2026-01.csv"])
    ['visits-*.csv']
    """
    paths = [PurePosixPath(name) for name in names]
    kinds = Counter((path.parent.as_posix(), path.suffix) for path in paths if len(path.parts) > 1)
    folders = [f"{folder}/*{kind}" for (folder, kind), several in kinds.items() if several > 1]
    numbered = [(path, _NUMBERS.sub("*", path.stem)) for path in paths if not glob.has_magic(str(path))]
    series = [
        path.with_name(f"{stem}{path.suffix}").as_posix() for path, stem in numbered if stem not in (path.stem, "*")
    ]
    return list(dict.fromkeys((*folders, *series)))


def _holds(kind: Any) -> str | None:
    """What an Ibis type says that a column holds."""
    if kind.is_array():
        return _holds(kind.value_type)
    for says, what in (
        (kind.is_boolean(), "flags"),
        (kind.is_integer(), "whole numbers"),
        (kind.is_floating() or kind.is_decimal(), "real numbers"),
        (kind.is_timestamp() and kind.timezone is not None, ZONED),
        (kind.is_date() or kind.is_timestamp(), "dates"),
        (kind.is_string(), "categories"),
    ):
        if says:
            return what
    return "other"
