"""The server's side of its workers: start them beside it, wake them, replace those that died, let them finish."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from farthing.errors import LedgerError
from farthing.server.store.jobs import declare_dead
from farthing.server.work.worker import PATIENCE, fresh_name

if TYPE_CHECKING:
    from farthing.server.state import State

LOOK = 0.25  # seconds between two looks whether the workers live
SHORT_LIFE = 10.0  # seconds: whoever dies sooner is replaced after a pause
LONGEST_PAUSE = 30.0

_log = logging.getLogger("farthing.server.work")


@dataclass
class _Process:
    name: str
    process: subprocess.Popen[str]
    since: float


class Workers:
    """`settings.workers` worker processes of one server.

    They are in sessions of their own, so that neither Ctrl-C nor the death of the server ends a release half way.
    """

    def __init__(self, state: State, *, patience: float = PATIENCE) -> None:
        self._state, self._patience = state, patience
        self._living: list[_Process] = []
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    def start(self) -> None:
        """Start the workers in the background; jobs wait until they are there."""
        if self._watcher is None and self._state.settings.workers:
            self._watcher = threading.Thread(target=self._watch, name="farthing-workers", daemon=True)
            self._watcher.start()

    def wake(self) -> None:
        """Tell the workers that there is work; without it they would look a moment later."""
        with self._changing:
            for each in self._living:
                with suppress(OSError, ValueError):  # gone, or it has been woken many times and not looked up
                    os.write(_input(each).fileno(), b"\n")

    def stop(self, patience: float = 20.0) -> None:
        """Let the workers finish what they have. Who takes longer goes on alone, and ends by itself."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join()
        for each in self._living:
            each.process.terminate()
            with suppress(OSError):
                _input(each).close()
        deadline = time.monotonic() + patience
        for each in self._living:
            with suppress(subprocess.TimeoutExpired):
                each.process.wait(max(0.0, deadline - time.monotonic()))

    @property
    def process_ids(self) -> list[int]:
        """The workers that live now."""
        with self._changing:
            return [each.process.pid for each in self._living if each.process.poll() is None]

    def _watch(self) -> None:
        pause = 0.0
        while True:
            missing = self._state.settings.workers - len(self._living)
            for _ in range(missing):
                self._begin()
            if self._stopping.wait(LOOK):
                return
            for each in [each for each in self._living if each.process.poll() is not None]:
                self._bury(each)
                lived = time.monotonic() - each.since
                pause = min(LONGEST_PAUSE, 2 * pause + 0.5) if lived < SHORT_LIFE else 0.0
            if pause and len(self._living) < self._state.settings.workers and self._stopping.wait(pause):
                return

    def _begin(self) -> None:
        settings = self._state.settings
        name = fresh_name()
        told = {
            "name": name,
            "ledger": settings.ledger,
            "data": str(settings.data),
            "ledger_key": None if settings.ledger_key is None else str(settings.ledger_key),
            "patience": self._patience,
        }
        # -P: a file in the current directory that is named like a module must not be imported.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "farthing.server.work.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        each = _Process(name, process, time.monotonic())
        with self._changing:
            self._living.append(each)
            with suppress(OSError):  # it died at once, which the next look finds
                _input(each).write(json.dumps(told) + "\n")
                _input(each).flush()
                os.set_blocking(_input(each).fileno(), False)

    def _bury(self, dead: _Process) -> None:
        """Its jobs are taken over at once: that it is dead is certain here."""
        _log.warning("worker %s ended with %s and is replaced", dead.name, dead.process.returncode)
        with self._changing:
            self._living.remove(dead)
            with suppress(OSError):
                _input(dead).close()
        with suppress(LedgerError):  # otherwise its heartbeat, which stands still, tells
            declare_dead(self._state.store, dead.name)


def _input(each: _Process) -> IO[str]:
    found = each.process.stdin
    assert found is not None
    return found
