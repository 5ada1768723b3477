"""`--forks=8`: collect once, then run the tests in so many forked processes.

Twelve thousand tests and all they import take 15 seconds of processor time to collect. Workers that collect again, as
those of pytest-xdist do, must be few, and on a machine with other work the share of the processor goes by the head.
Here a worker is a copy of the process that has collected: it costs nothing, and there may be many.

The first process hands out tests in batches of one file, those with slow tests first, and reports what comes back.
Tests marked `together("spark")` need something that is costly to meet: only `_MOST_TOGETHER` workers run those of one
name, and before anything else. A worker asks for its next batch before it runs the last test of the present one, so
that pytest knows which fixtures are still needed. If a worker dies, the test that it ran has failed, the rest of its
batch is handed out again, and another worker takes its place. What a module holds open when it is imported (a
connection, a thread) does not survive a fork: tests open such things in fixtures.

Each worker has a session of its own, because Linux divides the processor among sessions before it divides it among
their processes: ten workers of one session have no more of a busy machine than one loop beside them. A run that is
ended (Ctrl-C, SIGTERM) ends its workers with all that they started.
"""

from __future__ import annotations

import atexit
import gc
import os
import random
import signal
import sys
import uuid
import weakref
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import FrameType
from typing import NoReturn

import pytest

Batch = list[int]
"""The numbers of tests, in the order of their collection."""

_MOST_TOGETHER = 2  # workers: one waits while the other's query runs
_MANY_TESTS = 1000  # with so many, most workers come to what is prepared for all of them
_MOST_TESTS, _MOST_SLOW_TESTS = 32, 12  # of a batch: what the tests of a file share is made anew in each of its batches


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, help="run the tests in so many forked processes")


RUN_ID = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def run_id(pytestconfig: pytest.Config) -> str:
    """A name that all workers of this run know, and no other run."""
    return pytestconfig.stash[RUN_ID]


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RUN_ID] = uuid.uuid4().hex
    config.addinivalue_line("markers", "together(name): few processes run the tests of one name; see tests/forks.py")
    if config.getoption("--forks") and not config.getoption("--collect-only"):
        config.pluginmanager.register(Forks(config.getoption("--forks")), "forked-workers")


@dataclass
class _Worker:
    """A forked process as the first one sees it: what it was given, and has not ended."""

    number: int
    process: int
    line: Connection
    given: deque[int]
    runs: int | None = None
    met: set[str] = field(default_factory=set)


class Forks:
    """The plugin in the first process."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._started = 0
        self._workers: list[_Worker] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of one test after the other."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        waiting = deque(batches(session.items))
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all
        if len(session.items) > _MANY_TESTS:
            _prepare()
        before = signal.signal(signal.SIGTERM, _ended)
        try:
            for _ in range(min(self._count, len(waiting))):
                self._fork(session)
            while self._workers:
                for line in wait([worker.line for worker in self._workers]):
                    worker = next(one for one in self._workers if one.line is line)
                    self._hear(session, worker, waiting)
                    _stop_if_told(session)
        finally:
            for worker in self._workers:
                _kill(worker.process)
                os.waitpid(worker.process, 0)
            signal.signal(signal.SIGTERM, before)
        return True

    def _fork(self, session: pytest.Session) -> None:
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._started += 1
        process = os.fork()
        if not process:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for line in [ours, *(worker.line for worker in self._workers)]:
                line.close()
            _work(session, theirs, self._started)
        theirs.close()
        self._workers.append(_Worker(self._started, process, ours, deque()))

    def _hear(self, session: pytest.Session, worker: _Worker, waiting: deque[Batch]) -> None:
        hook = session.config.hook
        try:
            kind, content = worker.line.recv()
        except (EOFError, ConnectionError):
            self._bury(session, worker, waiting)
            return
        if kind == "more":
            batch = self._next(session.items, worker, waiting)
            worker.given.extend(batch)
            worker.line.send(batch)
        elif kind == "runs":
            worker.runs = content
            worker.given.remove(content)
        elif kind == "report":
            report = hook.pytest_report_from_serializable(config=session.config, data=content)
            hook.pytest_runtest_logreport(report=report)
        elif kind == "ran":
            item = session.items[content]
            worker.runs = None
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _next(self, items: list[pytest.Item], worker: _Worker, waiting: deque[Batch]) -> Batch:
        """What is best run by this worker: of what it has met, or the first of what it may meet."""
        names = [together(items[batch[0]]) for batch in waiting]
        full = {name for name in names if sum(name in one.met for one in self._workers) >= _MOST_TOGETHER} - worker.met
        fit = [place for place, name in enumerate(names) if name not in full]
        if not fit:
            return []
        place = next((place for place in fit if names[place] in worker.met), fit[0])
        if name := names[place]:
            worker.met.add(name)
        batch = waiting[place]
        del waiting[place]
        return batch

    def _bury(self, session: pytest.Session, worker: _Worker, waiting: deque[Batch]) -> None:
        """A worker has ended: because there is no more to do, or because a test took it down."""
        self._workers.remove(worker)
        worker.line.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
        if worker.runs is not None:
            item = session.items[worker.runs]
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with {code}"
            report = pytest.TestReport(
                item.nodeid, item.location, {}, "failed", f"the process that ran {item.nodeid} ended {how}", "call"
            )
            session.config.hook.pytest_runtest_logreport(report=report)
        elif code:
            raise session.Failed(f"worker {worker.number} ended with {code} and ran no test")
        if worker.given:
            waiting.appendleft(list(worker.given))
        if code and waiting:
            self._fork(session)


def _ended(number: int, _: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(signal.Signals(number).name)


def _kill(process: int) -> None:
    """A worker and what it started; the worker alone where it has no session yet."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(process, signal.SIGKILL)


def _prepare() -> None:
    """Once, before there are many processes, what tests import or fill when they first need it."""
    with suppress(ImportError):
        import altair  # noqa: F401
        import ibis
        import opendp.prelude  # noqa: F401

        table = ibis.table({"a": "int64", "b": "string"}, name="t")
        ibis.to_sql(table.group_by("b").aggregate(n=table.a.sum()), dialect="duckdb")
    gc.freeze()


def together(item: pytest.Item) -> str:
    """The name of the costly thing that a test needs, or nothing."""
    mark = item.get_closest_marker("together")
    return mark.args[0] if mark is not None else ""


def batches(items: list[pytest.Item]) -> list[Batch]:
    """Tests that stand one after the other in one file, and are marked `together` alike.

    Files with slow tests come first, for they must not be the last, and in an order that mixes folders: tests of one
    server are neighbours, and would all wait for it. Batches of one file keep its order: a worker that takes two of
    them may keep what their tests share, such as a budget, and no test meets what later ones left of it. What is marked
    `together` comes before all others.
    """
    made: list[Batch] = []
    slow: list[int] = []
    for number, item in enumerate(items):
        last = items[made[-1][0]] if made else item
        fits = made and last.path == item.path and together(last) == together(item) and len(made[-1]) < _MOST_TESTS
        if not fits or slow[-1] >= _MOST_SLOW_TESTS:
            made.append([])
            slow.append(0)
        made[-1].append(number)
        slow[-1] += item.get_closest_marker("slow") is not None
    with_slow = {items[batch[0]].path for batch, many in zip(made, slow, strict=True) if many}
    first = [batch for batch in made if items[batch[0]].path in with_slow]
    files = [items[batch[0]].path for batch in first]
    random.Random(0).shuffle(files)
    of_file = {path: iter([batch for batch in first if items[batch[0]].path == path]) for path in with_slow}
    order = [next(of_file[path]) for path in files] + [batch for batch in made if items[batch[0]].path not in with_slow]
    return sorted(order, key=lambda batch: not together(items[batch[0]]))


def _stop_if_told(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _work(session: pytest.Session, line: Connection, number: int) -> None:
    """All that a forked process does, to its end."""
    code = 1
    try:
        _settle(session.config, number)
        session.config.pluginmanager.register(_Voice(session.config, line))
        todo = _tests(line)
        present = next(todo, None)
        while present is not None:
            following = next(todo, None)
            line.send(("runs", present))
            item, nextitem = session.items[present], None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            line.send(("ran", present))
            present = following
        atexit._run_exitfuncs()
        code = 0
    except BaseException as error:  # nobody above may go on: this is a copy of the first process
        if isinstance(error, EOFError | ConnectionError):  # the first process was killed: nobody else ends what is here
            os.killpg(0, signal.SIGKILL)
        print(f"worker {number}: {type(error).__name__}: {error}", file=sys.__stderr__, flush=True)
    finally:
        os._exit(code)


def _settle(config: pytest.Config, number: int) -> None:
    """Part with what belongs to the first process: what it captured, its folder, what it cleans up, its terminal."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.unregister(name="forked-workers")
    atexit.unregister(weakref.finalize._exitfunc)  # type: ignore[attr-defined]
    folder = config._tmp_path_factory.getbasetemp() / f"worker-{number}"  # type: ignore[attr-defined]
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]


def _tests(line: Connection) -> Iterator[int]:
    """The tests of batch after batch, until there are none."""
    while True:
        line.send(("more", None))
        batch = line.recv()
        if not batch:
            return
        yield from batch


class _Voice:
    """The plugin in a worker: what it finds goes to the first process."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config, self._line = config, line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        yield
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(("report", data))
