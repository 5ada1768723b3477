"""Draw outputs of a mechanism, in this process or in one process per side.

Clopper-Pearson bounds need independent outputs on each side, and nothing of the two sides together. That is why each
side gets a process of its own that lives through the whole audit: even a mechanism that carries its own random
generator, which a fork copies, draws one continuing stream per side, and its holdout never repeats its training. With
more processes a side the copies could repeat each other; they are compared, and sent home if they do.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from farthing.auditing.output_cells import Outputs, Raised, outputs_of
from farthing.errors import FarthingError, InvalidValue

PILOT = 64  # calls by which the time of the whole is guessed, or more until they take so long
_PILOT_SECONDS = 0.02
_PATIENCE = 2.0  # guessed seconds from which on processes are worth starting
_CHUNK_SECONDS = 0.3
_LARGEST_CHUNK = 100_000

Batch = Callable[[Any, int], Any]


class WorkerLost(FarthingError):
    """A sampling process ended without an answer.

    >>> raise WorkerLost("a sampling process ended early")
    Traceback (most recent call last):
        ...
    farthing.auditing.output_samples.WorkerLost: a sampling process ended early
    """


def batch_of(mechanism: Any, batch: Batch | None = None) -> Batch:
    """How to draw many outputs at once: `batch`, the mechanism's own `release_many`, or one call after the other."""
    if batch is not None:
        if not callable(batch):
            raise InvalidValue("batch", batch, "must be callable as batch(value, count)")
        return batch
    many = getattr(mechanism, "release_many", None)
    if callable(many) and _takes_a_count(many):
        return many  # type: ignore[no-any-return]
    one = getattr(mechanism, "release", mechanism)
    if not callable(one):
        way_out = "pass a function value -> output, or an object with release(value)"
        raise InvalidValue("mechanism", mechanism, "must be callable", way_out)

    def one_by_one(value: Any, count: int) -> list[Any]:
        return [_called(one, value) for _ in range(count)]

    return one_by_one


def _takes_a_count(many: Callable[..., Any]) -> bool:
    """Whether it is release_many(value, count): another's may release many values instead."""
    try:
        return "count" in inspect.signature(many).parameters
    except (TypeError, ValueError):
        return False


def _called(one: Callable[[Any], Any], value: Any) -> Any:
    try:
        return one(value)
    except Exception as problem:  # what the analyst sees is an output, whatever it is
        return Raised(type(problem).__name__, str(problem))


def drawn(batch: Batch, value: Any, count: int) -> Outputs:
    """`count` outputs as columns; a batch that fails as a whole is `count` exceptions."""
    try:
        answers = batch(value, count)
    except Exception as problem:
        answers = [Raised(type(problem).__name__, str(problem))] * count
    if not hasattr(answers, "__len__") or len(answers) != count:
        raise InvalidValue("batch", batch, "must return one output for each of `count` releases")
    return outputs_of(answers)


class Sampler:
    """Draws outputs of both sides of each pair; use as a context, so that its processes end with it."""

    def __init__(self, batch: Batch, pairs: Sequence[tuple[Any, Any]], workers: int | None) -> None:
        self._batch = batch
        self._pairs = pairs
        self._asked = workers
        self._teams: tuple[list[Connection], list[Connection]] = ([], [])
        self._processes: list[Any] = []
        self._chunk = PILOT

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_workers(0)

    def pilot(self, total: int) -> None:
        """Time some calls (whose outputs are thrown away), then decide about processes for `total` calls a side."""
        size, each = PILOT, 0.0
        while True:  # a batch may have a cost of its own, so the size grows until the time means something
            start = time.perf_counter()
            drawn(self._batch, self._pairs[0][0], size)
            seconds = time.perf_counter() - start
            each = seconds / size
            if seconds > _PILOT_SECONDS or size >= min(total, _LARGEST_CHUNK):
                break
            size = min(8 * size, total, _LARGEST_CHUNK)
        self._chunk = int(min(max(_CHUNK_SECONDS / max(each, 1e-7), PILOT), _LARGEST_CHUNK))
        processes = self._processes_for(2 * total * each)
        if processes > 1:
            self._start(max(1, processes // 2))

    def _processes_for(self, seconds: float) -> int:
        possible = "fork" in multiprocessing.get_all_start_methods() and not multiprocessing.current_process().daemon
        if not possible or self._asked == 1:
            return 1
        if self._asked is not None:
            return self._asked
        return 2 if seconds > _PATIENCE and (os.cpu_count() or 1) > 1 else 1

    def _start(self, per_side: int) -> None:
        # Only a fork can carry a closure. Newer Pythons warn of forks beside threads; the children run nothing but the
        # mechanism and touch no lock of ours.
        context = multiprocessing.get_context("fork")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for team in self._teams:
                for _ in range(per_side):
                    mine, theirs = context.Pipe()
                    process = context.Process(target=_work, args=(theirs, self._batch, self._pairs), daemon=True)
                    process.start()
                    theirs.close()
                    team.append(mine)
                    self._processes.append(process)

    def draw(self, pair: int, count: int, fields: Sequence[str] | None = None) -> Iterator[tuple[int, Outputs]]:
        """`count` outputs of either side of a pair, in pieces: (side, outputs), in no particular order."""
        if not self._processes:
            for side in (0, 1):
                for size in self._sizes(count):
                    yield side, _selected(drawn(self._batch, self._pairs[pair][side], size), fields)
            return
        waiting: dict[Connection, tuple[int, list[int]]] = {}
        for side, team in enumerate(self._teams):
            shares = [count // len(team) + (place < count % len(team)) for place in range(len(team))]
            for connection, share in zip(team, shares, strict=True):
                waiting[connection] = (side, list(self._sizes(share)))
        for connection, (side, sizes) in list(waiting.items()):
            _ask(connection, pair, side, sizes, fields, waiting)
        while waiting:
            for ready in wait(list(waiting)):
                assert isinstance(ready, Connection)
                side, sizes = waiting[ready]
                yield side, _received(ready)
                _ask(ready, pair, side, sizes, fields, waiting)

    def check_streams(self, pair: int) -> None:
        """Send the extra processes of each side home if they repeat one another."""
        if len(self._teams[0]) < 2:
            return
        for side, team in enumerate(self._teams):
            for connection in team:
                connection.send((pair, side, PILOT, None))
            first_words = [_received(connection) for connection in team]
            prints = {tuple((f, part.cells(f).tobytes()) for f in sorted(part.columns)) for part in first_words}
            if len(prints) < len(team):
                self._stop_workers(1)
                return

    def _stop_workers(self, kept: int) -> None:
        for team in self._teams:
            for connection in team[kept:]:
                connection.close()
            del team[kept:]
        if not kept:
            for process in self._processes:
                process.terminate()
                process.join()
            self._processes = []

    def _sizes(self, count: int) -> Iterator[int]:
        while count > 0:
            size = min(count, self._chunk)
            yield size
            count -= size


def _ask(
    connection: Connection,
    pair: int,
    side: int,
    sizes: list[int],
    fields: Sequence[str] | None,
    waiting: dict[Connection, tuple[int, list[int]]],
) -> None:
    if sizes:
        connection.send((pair, side, sizes.pop(), fields))
    else:
        del waiting[connection]


def _received(connection: Connection) -> Outputs:
    try:
        answer = connection.recv()
    except (EOFError, OSError):
        raise WorkerLost("a sampling process ended without an answer; run with workers=1 to see why") from None
    if isinstance(answer, FarthingError):
        raise answer
    assert isinstance(answer, Outputs)
    return answer


def _selected(outputs: Outputs, fields: Sequence[str] | None) -> Outputs:
    return outputs if fields is None else outputs.only(fields)


def _work(connection: Connection, batch: Batch, pairs: Sequence[tuple[Any, Any]]) -> None:
    """The life of a sampling process: its global generators are its own, and it answers until nobody asks."""
    np.random.seed(int.from_bytes(os.urandom(4), "little"))
    random.seed(os.urandom(32))
    try:
        while True:
            pair, side, count, fields = connection.recv()
            try:
                connection.send(_selected(drawn(batch, pairs[pair][side], count), fields))
            except InvalidValue as refusal:
                connection.send(WorkerLost(str(refusal)))
    except (EOFError, OSError, KeyboardInterrupt):
        return
