"""Running a query: in a thread of its own, so that progress can be told and Ctrl-C stops the engine, not only Python.

Whatever an engine says when it fails stays in here. Engines quote cells in their errors, so only the class of the error
and the name of the engine go on, in an exception that does not even remember the original one.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from farthing.data.engines import Engine
from farthing.errors import EngineError

PATIENCE = 0.05  # seconds between two looks at the progress

Progress = Callable[[float], None]
T = TypeVar("T")


_turns: weakref.WeakKeyDictionary[Engine, threading.Lock] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def rows_of(engine: Engine, sql: str, progress: Progress | None = None) -> list[tuple[Any, ...]]:
    """The rows of a query; see `run`."""
    return run(engine, lambda: engine.rows(sql), progress)


def run(engine: Engine, query: Callable[[], T], progress: Progress | None = None) -> T:
    """What a query comes to; `progress` hears a share between 0 and 1 now and then, the last one where nothing is new.

    An interruption of this thread stops the query in the engine before it goes on, and so does a `progress` that
    raises. Queries on one engine take turns, and the turn is waited for here, so that whoever is interrupted while
    waiting does not stop the query of another.
    """
    with _making:
        turn = _turns.setdefault(engine, threading.Lock())
    while not turn.acquire(timeout=-1 if progress is None else PATIENCE):
        if progress is not None:
            progress(0.0)
    try:
        return _run_in_turn(engine, query, progress)
    finally:
        turn.release()


def _run_in_turn(engine: Engine, query: Callable[[], T], progress: Progress | None) -> T:
    answer: list[T] = []
    failure: list[EngineError] = []
    done = threading.Event()

    def work() -> None:
        try:
            answer.append(query())
        except EngineError as problem:  # an engine that knows its own failures has made a safe one already
            failure.append(EngineError(problem.engine, problem.kind, problem.way_out))
        except BaseException as problem:  # whatever it is, its text must not leave this function
            kind = type(problem).__name__
            failure.append(EngineError(engine.name, kind, way_out_of(kind)))
        finally:
            done.set()

    worker = threading.Thread(target=work, name="farthing-query", daemon=True)
    worker.start()
    try:
        heard = 0.0
        while not done.wait(PATIENCE):
            if progress is None:
                continue
            share = engine.progress()
            heard = heard if share is None else min(1.0, max(0.0, share))
            progress(heard)  # also when the engine says nothing: whoever listens may want to stop
    except BaseException:
        engine.cancel()
        while not done.wait(PATIENCE):  # a query that was not running yet did not hear the first call
            engine.cancel()
        raise
    worker.join()
    if failure:
        raise failure[0]
    if progress is not None:
        progress(1.0)
    return answer[0]


def way_out_of(kind: str) -> str:
    """What to do about a class of engine errors."""
    if "OutOfMemory" in kind:
        return "raise the memory limit, or give the temporary directory more room"
    if "IO" in kind or "HTTP" in kind:
        return "check that the source and the temporary directory can be read and written"
    if "Connection" in kind or "Operational" in kind or "Interface" in kind:
        return "check that the database is up and that the role may read the table"
    return "check that the table still has the columns and types it was registered with"
