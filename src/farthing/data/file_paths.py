"""Files by their paths: what a path, a glob, a folder or a list of them stands for, and what people call it."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from farthing.data.csv_files import CSV
from farthing.data.parquet_files import PARQUET
from farthing.errors import InvalidValue

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A path, a glob, a folder, or a list of them."""


class Pattern(NamedTuple):
    """Files that a folder or a glob stands for, whatever it holds today: below `folder`, as `steps` say."""

    folder: str
    steps: str

    def holds(self, path: tuple[str, ...]) -> bool:
        """Whether a file below the folder, step by step, is one of them.

        >>> monthly = Pattern("/data", "20*/visits-*.csv")
        >>> monthly.holds(("2024", "visits-3.csv")), monthly.holds(("visits-3.csv",))
        (True, False)
        >>> Pattern("/data", "**/*.csv").holds(("a", "b", "c.csv"))
        True
        """
        return _fits(path, tuple(self.steps.split("/")))


def _fits(path: tuple[str, ...], steps: tuple[str, ...]) -> bool:
    if not steps or not path:
        return not path and not any(step != "**" for step in steps)
    if steps[0] == "**":
        return _fits(path, steps[1:]) or _fits(path[1:], steps)
    return fnmatchcase(path[0], steps[0]) and _fits(path[1:], steps[1:])


def paths_of(source: Paths) -> list[str]:
    """The files that a path, a glob, a folder or a list of them stands for, in order."""
    paths: list[str] = []
    for part in _parts_of(source):
        if os.path.isdir(part):
            matches = _files_in(part)
        else:
            matches = [part] if os.path.exists(part) else sorted(glob.glob(part, recursive=True))
        if not matches:
            raise InvalidValue("source", part, "does not exist", "check the path or the pattern")
        paths.extend(matches)
    for path in paths:
        if os.path.isdir(path):
            raise InvalidValue("source", path, "is a directory", f"write {path}/*.parquet")
        if not path.lower().endswith(CSV + PARQUET):
            endings = ", ".join(CSV + PARQUET)
            raise InvalidValue("source", path, f"must end in one of {endings}", "or pass a frame or Ibis table")
        if not os.access(path, os.R_OK):
            raise InvalidValue("source", path, "cannot be read", "check its permissions")
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        facts = os.stat(path)
        # By device and file number: every row in it would be there twice, and be taken for two people's.
        number = (facts.st_dev, facts.st_ino)
        if number in seen:
            same = "" if seen[number] == path else f": it is the same file as {seen[number]}"
            raise InvalidValue("source", path, f"must not be given twice{same}", "correct the list or the patterns")
        seen[number] = path
    return paths


def _parts_of(source: Paths) -> list[str]:
    """What was declared, part by part, with the addresses of local files as paths."""
    parts = [source] if isinstance(source, str | os.PathLike) else list(source)
    return [_local(os.fspath(part)) for part in parts]


def _local(part: str) -> str:
    """A path as it is; that of the address of a file on this machine; other addresses are refused."""
    scheme, colon, rest = part.partition(":")
    if colon and scheme.lower() == "file" and rest.startswith("/"):
        place = urlsplit(part)
        if place.netloc.lower() in ("", "localhost"):
            return unquote(place.path)
    if "://" not in part:
        return part
    # An address may hold a password, so it is not shown whole.
    scheme = part.partition("://")[0]
    opener = {"postgresql": "postgres_table", "postgres": "postgres_table", "sc": "spark_table"}.get(scheme)
    way_out = f"open it with farthing.data.{opener}(...)" if opener else "download it first"
    raise InvalidValue("source", f"{scheme}://...", "must be a file on this machine", way_out)


def _files_in(folder: str) -> list[str]:
    """The tables that lie in a folder, but for those whose names say that they are none."""
    names = [name for name in sorted(os.listdir(folder)) if name.lower().endswith(CSV + PARQUET)]
    files = [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
    if not files:
        endings = ", ".join(CSV + PARQUET)
        raise InvalidValue("source", folder, f"is a directory without files that end in {endings}", "name another")
    return files


def patterns_of(source: Paths) -> tuple[Pattern, ...]:
    """The folders and globs among what was declared, however they are spelled."""
    return tuple(filter(None, map(_pattern_of, _parts_of(source))))


def _pattern_of(part: str) -> Pattern | None:
    """The folder or glob that a part of a declaration is; None for a file."""
    if os.path.isdir(part):
        return Pattern(os.path.realpath(part), "*")
    if os.path.exists(part):
        return None
    given = Path(part).parts
    first = next(place for place, step in enumerate(given) if glob.has_magic(step))
    if ".." in given[first:]:
        raise InvalidValue("source", part, "must not go up (..) below a pattern", "write the folder out")
    return Pattern(os.path.realpath(os.path.join("", *given[:first])), "/".join(given[first:]))


def absolute(path: str) -> str:
    """A path that depends neither on the working folder nor on how somebody reads `..` after a link.

    Links stay as they are, but for those before a `..`, which leads up from where they lead.

    >>> absolute("/data/../people.csv")
    '/people.csv'
    """
    steps = Path(os.getcwd(), path).parts
    last = max((place for place, step in enumerate(steps) if step == ".."), default=-1) + 1
    return os.path.join(os.path.realpath(os.path.join(*steps[:last])), *steps[last:]) if last else os.path.join(*steps)


def declared_name(source: Paths) -> str:
    """What a path, a glob or a list of them is called: by what was declared, not by what is found there today.

    >>> declared_name("data/visits-*.csv"), declared_name(["b.csv", "/data/a.csv"]), declared_name("20*/visits.csv")
    ('visits-*.csv', 'a.csv and 1 more', '20*/visits.csv')
    """
    names = sorted(map(_part_name, _parts_of(source)))
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _part_name(part: str) -> str:
    if os.path.exists(part):
        return Path(part).name or Path(os.path.realpath(part)).name
    steps = Path(part).parts
    first = next((place for place, step in enumerate(steps) if glob.has_magic(step)), len(steps) - 1)
    return "/".join(steps[first:])


def beside(folder: Path, part: str) -> str:
    """A path of a file in `folder`, which says it relative to that; an address as it is.

    >>> beside(Path("studies"), "people.csv"), beside(Path("studies"), "file:///data/people.csv")
    ('studies/people.csv', 'file:///data/people.csv')
    """
    return part if "://" in part else str(folder / part)
