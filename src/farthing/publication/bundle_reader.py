"""Read a bundle that a stranger sent: a zip file or a folder, with every size, name and number checked first.

A bundle is hostile until it is verified. Nothing is unpacked to the disk and no link is followed; no name leads
elsewhere; no more is read than is allowed, whatever a header says; JSON has no NaN, no number beyond a double, no key
twice and no depth without end; XML, HTML and pictures are compared as bytes and never parsed.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

MOST_FILES = 20_000
MOST_BYTES = 1_000_000_000
_MOST_ENTRY = 400_000_000
_CHUNK = 1 << 20
_MOST_READ = 8_000_000  # at once: the list of files of an archive, of which each costs hundreds of bytes of memory
_DEEPEST = 100
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,150}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,150}){0,3}")
_ADDED = frozenset({"MANIFEST.TXT"})  # by Dataverse, to what it packs for a download


class Unreadable(ValueError):
    """It is not a bundle, or one that nobody should open; the text says why."""


def read_bundle(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """The files of a bundle by their paths.

    Raises:
        Unreadable: If it is not a bundle, or one that nobody should open.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return _folder(place)
        if not place.is_file():
            raise Unreadable(f"there is no file or folder {place.name!r}")
        if place.stat().st_size > MOST_BYTES:
            raise Unreadable(f"the file is larger than {MOST_BYTES:,} bytes")
        return _archive(place)
    except OSError as problem:
        raise Unreadable(f"it cannot be read ({problem.strerror or type(problem).__name__})") from None


def _checked(name: str, held: dict[str, bytes]) -> str:
    if not _NAME.fullmatch(name):
        raise Unreadable(f"a file is called {name[:80]!r}, which no publication has")
    if name in held:
        raise Unreadable(f"the file {name} occurs twice")
    if len(held) >= MOST_FILES:
        raise Unreadable(f"there are more than {MOST_FILES:,} files")
    return name


def _folder(place: Path) -> dict[str, bytes]:
    held: dict[str, bytes] = {}
    room = MOST_BYTES
    for folder, folders, names in os.walk(place, followlinks=False):
        if any((Path(folder) / one).is_symlink() for one in folders):
            raise Unreadable("there is a link to another folder in it")
        for one in names:
            file = Path(folder) / one
            name = _checked(file.relative_to(place).as_posix(), held)
            if not stat.S_ISREG(file.lstat().st_mode):
                raise Unreadable(f"{name} is a link, or not a regular file")
            if name in _ADDED:
                continue
            with file.open("rb") as content:
                held[name] = content.read(min(room, _MOST_ENTRY) + 1)
            room = _rest(room, name, held[name])
    return held


def _rest(room: int, name: str, content: bytes) -> int:
    if len(content) > min(room, _MOST_ENTRY):
        raise Unreadable(f"the bundle is larger than a publication can be, from {name} on")
    return room - len(content)


def _archive(place: Path) -> dict[str, bytes]:
    held: dict[str, bytes] = {}
    room = MOST_BYTES
    try:
        with _Bounded(place) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES:
                raise Unreadable(f"there are more than {MOST_FILES:,} files")
            _apart(entries)
            for entry in entries:
                name = _checked(entry.filename.removesuffix("/"), held)
                if entry.is_dir():
                    continue
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG) or entry.flag_bits & 0x1:
                    raise Unreadable(f"{name} is a link or encrypted")
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise Unreadable(f"{name} is packed in an unusual way")
                if name in _ADDED:
                    continue
                held[name] = _content(archive, entry, min(room, _MOST_ENTRY))
                room = _rest(room, name, held[name])
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError) as problem:
        if isinstance(problem, Unreadable):
            raise
        raise Unreadable("it is not a zip file, or it is damaged") from None
    return held


class _Bounded(io.FileIO):
    """A file of which nobody reads much at once, whatever it says of itself."""

    def read(self, size: int | None = -1) -> bytes:
        most = _MOST_READ + 1 if size is None or size < 0 else min(size, _MOST_READ + 1)
        content = super().read(most)
        if len(content) > _MOST_READ:
            raise Unreadable(f"its list of files is longer than {MOST_FILES:,} files need")
        return content


def _apart(entries: Sequence[zipfile.ZipInfo]) -> None:
    """No two entries share bytes: a small file could hold the same content thousands of times."""
    placed = sorted(entries, key=lambda one: one.header_offset)
    for one, after in pairwise(placed):
        if one.header_offset + 30 + one.compress_size > after.header_offset:
            raise Unreadable(f"{after.filename[:80]!r} begins within another file")


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, room: int) -> bytes:
    """What an entry holds: read in pieces, and no more than there is room for."""
    pieces, length = [], 0
    with archive.open(entry) as packed:
        while piece := packed.read(_CHUNK):
            length += len(piece)
            if length > room:
                raise Unreadable(f"the bundle is larger than a publication can be, from {entry.filename} on")
            pieces.append(piece)
    return b"".join(pieces)


def json_in(content: bytes) -> Any:
    """JSON from a stranger.

    Raises:
        ValueError: If it is not JSON, or has a number or a key that JSON should not have.
    """
    try:
        data = json.loads(content.decode("utf-8"), parse_constant=_refused, parse_float=_float, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level, depth = [data], 0
    while level:
        level = [part for one in level if isinstance(one, dict | list) for part in _parts(one)]
        depth += 1
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
    return data


def _parts(one: dict[str, Any] | list[Any]) -> Any:
    return one.values() if isinstance(one, dict) else one


def _refused(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON allows")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a key occurs twice")
    return data
