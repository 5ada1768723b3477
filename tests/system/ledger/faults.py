"""Ways in which a disk, a file or a clock lets a ledger down, each undone when its block is left."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from farthing.ledger.sqlite_store import FileConnection, FileEngine

TEN_YEARS = 10 * 365 * 86_400
NOBODY = 65_534


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[tuple[Path, AbstractContextManager[None]]]:
    """A directory on a disk of its own, and a block after which there is room; root only, because it mounts."""
    mounted = folder / "small disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", mounted], check=True)
    try:
        yield mounted, _then_larger(mounted, 100 * kilobytes)
    finally:
        subprocess.run(["umount", mounted], check=True)


@contextmanager
def _then_larger(mounted: Path, kilobytes: int) -> Iterator[None]:
    yield
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", mounted], check=True)


@contextmanager
def files_stay_small(kilobytes: int) -> Iterator[None]:
    """No file of this process grows beyond so much: what a disk quota does, and what anybody may ask for."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def pages_capped(pages: int) -> Iterator[None]:
    """Every SQLite connection that is opened in the block may hold so many pages."""
    connect = FileEngine.connect

    def capped(engine: FileEngine) -> FileConnection:
        connection = connect(engine)
        connection.dbapi_connection.execute(f"PRAGMA max_page_count = {pages}").close()
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileEngine, "connect", capped)
        yield


@contextmanager
def clock_off_by(seconds: int, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The wall clock of this process shows another time."""
    now, now_ns = time.time, time.time_ns
    with patch.context() as patched:
        patched.setattr(time, "time", lambda: now() + seconds)
        patched.setattr(time, "time_ns", lambda: now_ns() + seconds * 10**9)
        yield


@contextmanager
def folder_for_all() -> Iterator[Path]:
    """A directory that everybody may enter; pytest's own are for its user alone."""
    folder = Path(tempfile.mkdtemp(prefix="farthing-ledger-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def as_nobody(act: Callable[[], str]) -> str:
    """What `act` returns in a process without privileges, to whom a read-only file is one."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writing, act().encode())
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        text = told.read().decode()
    os.waitpid(child, 0)
    return text


def give_to_nobody(paths: list[Path]) -> None:
    """The files belong to the process that `as_nobody` makes."""
    if os.geteuid() == 0:
        for path in paths:
            os.chown(path, NOBODY, NOBODY)
