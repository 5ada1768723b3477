"""Optimised strategies kept on disk, so that they are found once.

A strategy follows from the public workload alone: nothing here was computed from a row. What is read back is only a
proposal of whole weights. Its sensitivity and its error are computed afresh from those weights, so a damaged or
planted file can waste time or accuracy, which is then shown, and never privacy.

The folder is `farthing/strategies` in the user's cache; FARTHING_CACHE names another one, or "off" for none.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tempfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[np.generic]]

_LARGEST_FILE = 2**28
_OFF = {"off", "none", "no", "0"}
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


def folder() -> Path | None:
    """Where strategies are kept, or None when keeping them is turned off.

    >>> import os
    >>> before = os.environ.get("FARTHING_CACHE")
    >>> os.environ["FARTHING_CACHE"] = "off"
    >>> print(folder())
    None
    >>> _ = os.environ.pop("FARTHING_CACHE") if before is None else os.environ.update(FARTHING_CACHE=before)
    """
    chosen = os.environ.get("FARTHING_CACHE", "").strip()
    if chosen.lower() in _OFF:
        return None
    if chosen:
        return Path(chosen).expanduser() / "strategies"
    return _users_cache() / "farthing" / "strategies"


def _users_cache() -> Path:
    setting = os.environ.get("XDG_CACHE_HOME", "")
    if setting and Path(setting).is_absolute():
        return Path(setting)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def key_of(*facts: object) -> str:
    """The name under which the outcome of these facts is kept.

    >>> key_of("prefix", "l1") == key_of("prefix", "l1"), key_of("prefix", "l1") == key_of("prefixl", "1")
    (True, False)
    """
    digest = hashlib.sha256()
    for fact in facts:
        piece = str(fact).encode()
        digest.update(f"{len(piece)}:".encode() + piece)
    return digest.hexdigest()


def load(key: str) -> Arrays | None:
    """The arrays kept under `key`; None when there are none, or nothing that can be read."""
    # Path.home() has no answer for a user without a home folder.
    with suppress(*_UNREADABLE):
        place = folder()
        if place is None:
            return None
        path = place / f"{key}.npz"
        if not path.is_file() or not path.stat().st_size <= _LARGEST_FILE:
            return None
        packed = io.BytesIO(path.read_bytes())  # NumPy leaves a file open when it cannot be read
        with zipfile.ZipFile(packed) as archive:  # a small file may unpack to a large one
            if not sum(item.file_size for item in archive.infolist()) <= _LARGEST_FILE:
                return None
        with np.load(packed, allow_pickle=False) as entries:
            if str(entries["key"]) != key:
                return None
            return {name: entries[name] for name in entries.files if name != "key"}
    return None


def store(key: str, arrays: Arrays) -> bool:
    """Keep arrays under `key`; whether that worked. A place that cannot be written is no reason to fail.

    The file appears whole or not at all, so that processes may read and write at the same time.
    """
    with suppress(OSError, RuntimeError):
        place = folder()
        if place is None:
            return False
        place.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place, prefix=".new-", suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, allow_pickle=False, key=np.array(key), **arrays)
            os.replace(name, place / f"{key}.npz")
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
        return True
    return False
