"""Read a bundle that a stranger sent: a zip file or a folder, with every size, name and number checked first.

A bundle is hostile until it is verified. Nothing is unpacked to the disk and no link is followed; no name leads
elsewhere; no more is read than is allowed, whatever a header says; JSON has no NaN, no number beyond a double, no key
twice and no depth without end; XML, HTML and pictures are compared as bytes and never parsed.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

MOST_FILES = 20_000
MOST_BYTES = 1_000_000_000
_MOST_ENTRY = 400_000_000
_CHUNK = 1 << 20
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
        with zipfile.ZipFile(place) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES:
                raise Unreadable(f"there are more than {MOST_FILES:,} files")
            for entry in entries:
                if entry.is_dir():
                    continue
                name = _checked(entry.filename, held)
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG) or entry.flag_bits & 0x1:
                    raise Unreadable(f"{name} is a link or encrypted")
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise Unreadable(f"{name} is packed in an unusual way")
                if name in _ADDED:
                    continue
                held[name] = _content(archive, entry, min(room, _MOST_ENTRY))
                room = _rest(room, name, held[name])
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as problem:
        if isinstance(problem, Unreadable):
            raise
        raise Unreadable("it is not a zip file, or it is damaged") from None
    return held


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
        return json.loads(content.decode("utf-8"), parse_constant=_refused, parse_float=_float, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


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
