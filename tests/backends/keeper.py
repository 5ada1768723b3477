"""One server for all the processes of a test run, stopped when the last of them has gone, however it went.

Every worker of a run is a process of its own, and any of them may be killed. So nobody who runs tests owns
a server. A keeper process does: it starts the server, writes its facts to a file, and stops it once nobody holds the
shared lock on `users` any more. The kernel gives a lock back when its process dies, so nothing stays behind even then.

    users        every user of the server holds it shared; the keeper waits to hold it alone
    starting     made by whoever starts the keeper, so that there is one
    state.json   the facts of the server (ports, passwords, process ids), or why it did not start
    wish         a line that a test writes to ask the keeper for something, such as a worker in place of a dead one
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

PATIENCE = 1800.0  # seconds for a server to start on a busy machine, an installation by apt included


class Server(Protocol):
    """What a keeper keeps."""

    def start(self) -> dict[str, Any]:
        """Start and return the facts that a test needs; raise `CannotStart` with the reason otherwise."""

    def grant(self, wish: str) -> dict[str, Any]:
        """Do what a test wished for and return the facts as they are now."""

    def stop(self) -> None:
        """Stop everything that was started, also after a failed start."""


class CannotStart(Exception):
    """The server cannot be had on this machine; the text is the reason that a skip shows."""


@contextmanager
def kept(module: str, directory: Path) -> Iterator[dict[str, Any]]:
    """The facts of the server that `module.server(directory)` makes, shared by all who name the same directory."""
    lock = _shared_lock(directory)
    try:
        with suppress(FileExistsError):
            os.close(os.open(directory / "starting", os.O_CREAT | os.O_EXCL))
            _start_keeper(module, directory)
        yield _facts(directory)
    finally:
        lock.close()


def wish(directory: Path, text: str) -> dict[str, Any]:
    """Ask the keeper of `directory` for something; the facts afterwards."""
    (directory / "wish.new").write_text(text, encoding="utf-8")
    os.rename(directory / "wish.new", directory / "wish")
    until = time.monotonic() + PATIENCE
    while (directory / "wish").exists():
        if time.monotonic() > until:
            raise TimeoutError(f"the keeper did not {text}")
        time.sleep(0.05)
    return _facts(directory)


def _shared_lock(directory: Path) -> IO[str]:
    """The lock on `users`, held shared; tried again if a keeper that was just stopping removed the file."""
    while True:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            file = (directory / "users").open("a")
        except FileNotFoundError:
            continue
        fcntl.flock(file, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == (directory / "users").stat().st_ino:
                return file
        file.close()


def _start_keeper(module: str, directory: Path) -> None:
    with (directory / "keeper.log").open("w") as log:
        subprocess.run(
            [sys.executable, "-m", "backends.keeper", module, str(directory)],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True,
        )  # fmt: skip


def _facts(directory: Path) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while not (directory / "state.json").exists():
        if time.monotonic() > until:
            raise CannotStart(f"no answer from its keeper within {PATIENCE:.0f} seconds")
        time.sleep(0.05)
    facts: dict[str, Any] = json.loads((directory / "state.json").read_text(encoding="utf-8"))
    if "failure" in facts:
        raise CannotStart(facts["failure"])
    return facts


def keep(server: Server, directory: Path) -> None:
    """Start `server`, serve wishes, and stop it when nobody uses it."""
    with (directory / "users").open("a") as users:
        try:
            try:
                _write(directory, server.start())
            except Exception as problem:
                _write(directory, {"failure": f"{type(problem).__name__}: {problem}"})
            while not _alone(users):
                if (directory / "wish").exists():
                    _write(directory, server.grant((directory / "wish").read_text(encoding="utf-8")))
                    (directory / "wish").unlink()
                time.sleep(0.1)
        finally:
            server.stop()
            shutil.rmtree(directory, ignore_errors=True)


def _alone(users: IO[str]) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(directory: Path, facts: dict[str, Any]) -> None:
    (directory / "state.new").write_text(json.dumps(facts), encoding="utf-8")
    os.rename(directory / "state.new", directory / "state.json")


class _Missing:
    """Stands for a server whose module cannot be imported, so that its users hear of it."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def start(self) -> dict[str, Any]:
        raise CannotStart(self._reason)

    def grant(self, wish: str) -> dict[str, Any]:
        return {"failure": self._reason}

    def stop(self) -> None:
        return


def _named(module: str, directory: Path) -> Server:
    try:
        server: Server = importlib.import_module(module).server(directory)
    except ImportError as problem:
        return _Missing(str(problem))
    return server


if __name__ == "__main__":
    # Nobody's child, in a session of its own: Ctrl-C at the terminal reaches the tests and not the keeper, which has to
    # clean up after them.
    if os.fork():
        os._exit(0)
    os.setsid()
    place = Path(sys.argv[2])
    keep(_named(sys.argv[1], place), place)
