"""A worker: takes jobs that wait, does a few at a time, shows that it lives, and looks after the jobs of the dead.

As a process of its own (its `main`) it reads from its standard input what it needs: a
line of JSON first, so that no address with a password stands in a list of processes, then a line whenever there is
work. When the input ends its server is gone: it takes no new job, finishes what it has, and exits. SIGTERM does the
same.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from farthing.errors import FarthingError, LedgerError
from farthing.server.jobs.job_runner import KINDS, Kind, perform, take_over
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import all_declarations, dataset_of
from farthing.server.settings import Settings
from farthing.server.store import Store
from farthing.server.store import job_rows as rows
from farthing.server.store.job_rows import DEAD, Job, declare_dead

SLOTS = 4  # jobs at a time: a long query of one dataset does not hold up the others
LOOK = 0.25  # seconds between two looks for work; a server that gets some wakes its own workers at once
BEAT = 1.0  # seconds between two signs of life
MOST_WARM = 8  # tables that are opened before anybody asks
PATIENCE = 15.0  # seconds without a sign of life until a worker counts as dead

_log = logging.getLogger("farthing.server.jobs")


def fresh_name() -> str:
    """A name for a worker that nobody had before."""
    return f"{socket.gethostname()[:60]}-{os.getpid()}-{secrets.token_hex(4)}"


class Worker:
    """Takes jobs from the store of `state` until `drain` is called; `run` returns when the last one has ended."""

    def __init__(
        self,
        state: State,
        name: str | None = None,
        *,
        slots: int = SLOTS,
        patience: float = PATIENCE,
        look: float = LOOK,
        kinds: Mapping[str, Kind] = KINDS,
    ) -> None:
        self.state = state
        self.name = name or fresh_name()
        self._slots, self._patience, self._look, self._kinds = slots, patience, look, kinds
        self._woken, self._draining = threading.Event(), threading.Event()
        self._running: dict[str, threading.Thread] = {}
        self._changing = threading.Lock()
        self._seen: dict[str, tuple[str | None, int | None, float]] = {}
        self._looked = 0.0

    def wake(self) -> None:
        """Look for work now, without waiting for the next turn."""
        self._woken.set()

    def drain(self) -> None:
        """Take no new job, finish those that run, then return from `run`."""
        self._draining.set()
        self._woken.set()

    def run(self) -> None:
        """Take one job after another until the worker is drained."""
        ended = threading.Event()
        beating = threading.Thread(target=self._beat, args=(ended,), name="farthing-heartbeat", daemon=True)
        beating.start()
        try:
            self._work()
        finally:
            ended.set()
            beating.join()

    def _beat(self, ended: threading.Event) -> None:
        """Show that this worker lives, in a thread of its own: whatever holds up the others does not hold up this."""
        while not ended.wait(BEAT):
            if self._busy():
                with suppress(LedgerError):  # a store that is away: nobody else can look either
                    rows.beat(self.state.store, self.name)

    def _work(self) -> None:
        while not self._draining.is_set() or self._busy():
            self._woken.wait(self._look)
            self._woken.clear()
            try:
                self._take_work()
            except LedgerError as problem:
                # The store or the ledger is away: what runs goes on, and they come back.
                _log.warning("worker %s: %s", self.name, type(problem).__name__)
                time.sleep(LOOK)

    def _take_work(self) -> None:
        while not self._draining.is_set() and self._busy() < self._slots:
            job = rows.take(self.state.store, self.name, self._kinds)
            if job is None:
                break
            self._begin(job)
        if not self._draining.is_set() and time.monotonic() >= self._looked + BEAT:
            self._look_after_the_dead()

    def _busy(self) -> int:
        with self._changing:
            return len(self._running)

    def _begin(self, job: Job) -> None:
        thread = threading.Thread(target=self._perform, args=(job,), name=f"farthing-job-{job.id}", daemon=True)
        with self._changing:
            self._running[job.id] = thread
        thread.start()

    def _perform(self, job: Job) -> None:
        try:
            perform(job, self.state, self.name, self._kinds)
        except Exception as problem:
            # Nobody does this job any more, which the next look finds.
            _log.error("job %s was left as it is (%s)", job.id, type(problem).__name__)
        finally:
            with self._changing:
                del self._running[job.id]
            self._woken.set()

    def _look_after_the_dead(self) -> None:
        """Take over jobs whose worker has not moved for a while.

        Whether a heartbeat moves is watched here, by this machine's own clock: clocks of two machines may differ.
        """
        moment, seen = time.monotonic(), {}
        if moment - self._looked > max(self._patience / 2, 2 * BEAT):
            self._seen = {}  # the store was away, or this worker was: what it saw before says nothing about others
        self._looked = moment
        for job in rows.running(self.state.store):
            with self._changing:
                if job.id in self._running:
                    continue
            worker, heartbeat, since = self._seen.get(job.id, (None, None, moment))
            if (worker, heartbeat) != (job.worker, job.heartbeat):
                since = moment
            lives = job.heartbeat != DEAD and job.worker != self.name  # of its own it knows which ones it runs
            if lives and moment - since < self._patience:
                seen[job.id] = (job.worker, job.heartbeat, since)
            elif rows.take_over(self.state.store, job, self.name):
                _log.warning("job %s: its worker %s is gone", job.id, job.worker)
                take_over(job, self.state, self.name)
                self._woken.set()
        self._seen = seen


def warm_up(state: State) -> None:
    """Open what the first job would have to wait for, beside the work: tables that are declared, and their engines."""
    import farthing.study.reports.release_report  # noqa: F401

    with suppress(Exception):  # whatever stands in the way is said when a job needs it
        for declaration in all_declarations(state.store)[:MOST_WARM]:
            with suppress(FarthingError):
                dataset_of(state, declaration)


def main() -> None:
    """Be a worker process: settings from the first line of the input, then work until it ends."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    facts = json.loads(sys.stdin.readline())
    key = facts["ledger_key"]
    settings = Settings(
        ledger=facts["ledger"],
        data=Path(facts["data"]),
        ledger_key=None if key is None else Path(key),
        workers=0,
    )
    state = State.open(settings, WorkerProcesses)
    worker = Worker(state, facts["name"], patience=facts.get("patience", PATIENCE))
    signal.signal(signal.SIGTERM, lambda *_: worker.drain())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which stops its workers
    threading.Thread(target=_listen, args=(worker,), name="farthing-listen", daemon=True).start()
    threading.Thread(target=warm_up, args=(state,), name="farthing-warm-up", daemon=True).start()
    worker.run()
    state.close()


def _listen(worker: Worker) -> None:
    """A line says that there is work; the end says that the server is gone."""
    for _ in sys.stdin:
        worker.wake()
    worker.drain()


SHORT_LIFE = 10.0  # seconds: a worker that dies sooner is replaced after a pause
LONGEST_PAUSE = 30.0


@dataclass
class _Process:
    name: str
    process: subprocess.Popen[str]
    since: float


class WorkerProcesses:
    """`settings.workers` worker processes of one server.

    They are in sessions of their own, so that neither Ctrl-C nor the death of the server ends a release half way.
    """

    def __init__(self, settings: Settings, store: Store, *, patience: float = PATIENCE) -> None:
        self._settings, self._store, self._patience = settings, store, patience
        self._living: list[_Process] = []
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    def start(self) -> None:
        """Start the workers in the background; jobs wait until they are there."""
        if self._watcher is None and self._settings.workers:
            self._watcher = threading.Thread(target=self._watch, name="farthing-workers", daemon=True)
            self._watcher.start()

    def wake(self) -> None:
        """Signal the workers that there is work; without it they would look a moment later."""
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
            missing = self._settings.workers - len(self._living)
            for _ in range(missing):
                self._begin()
            if self._stopping.wait(LOOK):
                return
            for each in [each for each in self._living if each.process.poll() is not None]:
                self._bury(each)
                lived = time.monotonic() - each.since
                pause = min(LONGEST_PAUSE, 2 * pause + 0.5) if lived < SHORT_LIFE else 0.0
            if pause and len(self._living) < self._settings.workers and self._stopping.wait(pause):
                return

    def _begin(self) -> None:
        settings = self._settings
        name = fresh_name()
        facts = {
            "name": name,
            "ledger": settings.ledger,
            "data": str(settings.data),
            "ledger_key": None if settings.ledger_key is None else str(settings.ledger_key),
            "patience": self._patience,
        }
        # -P: a file in the current directory that is named like a module must not be imported.
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from farthing.server.jobs.job_worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        each = _Process(name, process, time.monotonic())
        with self._changing:
            self._living.append(each)
            with suppress(OSError):  # it died at once, which the next look finds
                _input(each).write(json.dumps(facts) + "\n")
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
            declare_dead(self._store, dead.name)


def _input(each: _Process) -> IO[str]:
    pipe = each.process.stdin
    assert pipe is not None
    return pipe
