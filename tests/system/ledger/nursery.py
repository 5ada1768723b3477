"""The harness's side of `clients`: start them, wait for them, kill them, read what they said."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from system.ledger.places import Place

PATIENCE = 300.0  # seconds, for a busy machine; no test fails by the clock before that


class Client:
    """One process; a handle that cannot be confused with a later process of the same number."""

    def __init__(self, pid: int) -> None:
        try:
            self._handle: int | None = os.pidfd_open(pid)
        except ProcessLookupError:  # already over
            self._handle = None

    def kill(self) -> None:
        """`kill -9`, unless it is over."""
        if self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self, seconds: float = PATIENCE) -> bool:
        """Whether it is over, at the latest after `seconds`."""
        if self._handle is None:
            return True
        if not select.select([self._handle], [], [], seconds)[0]:
            return False
        os.close(self._handle)
        self._handle = None
        return True


class Forker:
    """The process that forks clients. It imports farthing, which takes longer than most tests: one serves many."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "system.ledger.clients"], env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def fork(self, task: dict[str, Any]) -> Client:
        """A fresh process that does the task."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        return Client(int(self._process.stdout.readline()))

    def close(self) -> None:
        """No more clients; those that live die with it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


class Nursery:
    """The clients of one test, and the folder where they write what they saw."""

    def __init__(self, folder: Path, forker: Forker) -> None:
        self._folder, self._forker = folder, forker
        self._clients: list[Client] = []

    def start(self, place: Place, role: str, lane: object, **task: Any) -> Client:
        """One more client; those of the same lane write to the same file."""
        task |= {"role": role, "place": asdict(place), "lane": lane, "file": str(self.file(place, lane))}
        client = self._forker.fork(task)
        self._clients.append(client)
        return client

    def file(self, place: Place, lane: object) -> Path:
        """What the clients of a lane said."""
        return self._folder / f"{place.url.rpartition('/')[2]}-{lane}.lines"

    def said(self, place: Place, lanes: int) -> list[dict[str, Any]]:
        """Everything that anybody saw at this place."""
        return [line for lane in range(lanes) for line in lines_of(self.file(place, lane))]

    def close(self) -> None:
        """Nobody outlives the test."""
        for client in self._clients:
            client.kill()
            client.wait()


@contextmanager
def forker() -> Iterator[Forker]:
    """A process that forks clients, closed afterwards."""
    found = Forker()
    try:
        yield found
    finally:
        found.close()


@contextmanager
def nursery(folder: Path, shared: Forker | None = None) -> Iterator[Nursery]:
    """A nursery that is empty afterwards; with a process of its own unless it is given one."""
    with forker() if shared is None else nullcontext(shared) as source:
        found = Nursery(folder, source)
        try:
            yield found
        finally:
            found.close()


@contextmanager
def shut_gate(folder: Path) -> Iterator[Path]:
    """A file on which clients wait until the block is left."""
    path = folder / "gate"
    with path.open("wb") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield path


def wait_until_said(nursery: Nursery, place: Place, lanes: int, word: str) -> None:
    """Until every lane said `word`; a client that failed is an error at once."""
    until = time.monotonic() + PATIENCE
    waiting = set(range(lanes))
    while waiting:
        for lane in list(waiting):
            lines = lines_of(nursery.file(place, lane))
            refuse_failures(lines)
            if any(word in line for line in lines):
                waiting.remove(lane)
        assert time.monotonic() < until, f"{len(waiting)} clients never said {word}"
        time.sleep(0.005)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file; the last may be cut where its writer was killed, and then nobody saw it."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def refuse_failures(lines: list[dict[str, Any]]) -> None:
    """A client that ended by an exception nobody expected ends the test, with its traceback."""
    for line in lines:
        assert "failure" not in line, line["failure"]
