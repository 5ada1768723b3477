"""The whole examination: every mechanism of farthing must pass, every planted bug must be caught."""

from __future__ import annotations

import multiprocessing
import os
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Literal

from farthing.auditing.audit import LEAST_SAMPLES, AuditReport, audit
from farthing.auditing.mechanism_targets import adaptive_sessions, built_in_mechanisms
from farthing.auditing.output_samples import WorkerLost
from farthing.auditing.planted_bugs import planted_bugs

Progress = Callable[[int, int], None]

LEAST_ERROR = 1e-5  # of one check: bounds surer than this may take more samples than a planted bug names as enough


@dataclass(frozen=True)
class Check:
    """One line of the examination: what is audited, and what should come out.

    >>> {check.kind for check in all_checks()} == {"mechanism", "planted bug"}
    True
    """

    name: str
    kind: Literal["mechanism", "planted bug"]
    story: str
    mechanism: Any
    claim: Any
    neighbours: Any
    samples: int
    batch: Callable[[Any, int], Any] | None


@dataclass(frozen=True)
class Outcome:
    """A check with its report."""

    check: Check
    report: AuditReport

    @property
    def shortfall(self) -> str:
        """What a planted bug that was not caught would have needed to be seen; empty if it had all it needs."""
        if self.check.kind == "mechanism" or self.report.violation:
            return ""
        if self.report.samples < self.check.samples:
            return f"needs {self.check.samples:,} samples"
        return "" if 1 - self.report.confidence >= LEAST_ERROR else "needs less confidence"

    @property
    def good(self) -> bool:
        """A mechanism was not contradicted; a planted bug was caught, or could not have been seen (`shortfall`)."""
        return bool(self.shortfall) or self.report.violation == (self.check.kind == "planted bug")

    @property
    def verdict(self) -> str:
        """In a word or three."""
        if self.check.kind == "planted bug":
            return self.shortfall or ("caught" if self.report.violation else "MISSED")
        return "CONTRADICTED" if self.report.violation else "stands"


def all_checks() -> list[Check]:
    """Mechanisms first, then planted bugs."""
    ours = [
        Check(b.name, "mechanism", "", b.mechanism, b.mechanism.event, b.neighbours, b.samples, b.batch)
        for b in [*built_in_mechanisms(), *adaptive_sessions()]
    ]
    planted = [
        Check(b.name, "planted bug", b.story, b.batch, b.claim, b.neighbours, b.samples, b.batch)
        for b in planted_bugs()
    ]
    return ours + planted


def examine(
    checks: Sequence[Check],
    *,
    confidence: float = 0.999,
    samples: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the checks; all bounds of the run hold together with `confidence`.

    `samples` caps the samples of each check; a planted bug that is not caught with fewer than it needs is not counted
    as missed. `progress(done, total)` is called after each.

    >>> [outcome.verdict for outcome in examine(all_checks()[:1], samples=2_000)]
    ['stands']
    """
    each = 1 - (1 - confidence) / max(1, len(checks))
    # What is drawn one by one takes longest, whatever its number of samples: it goes first.
    places = sorted(range(len(checks)), key=lambda at: (checks[at].batch is not None, -checks[at].samples))
    reports: dict[int, AuditReport] = {}

    def note(place: int, report: AuditReport) -> None:
        reports[place] = report
        if progress is not None:
            progress(len(reports), len(checks))

    team = min(workers or os.cpu_count() or 1, len(checks))
    possible = "fork" in multiprocessing.get_all_start_methods()
    if team > 1 and possible and not multiprocessing.current_process().daemon:
        _run_in_processes(checks, places, team, lambda place: _audited(checks[place], each, samples), note)
    else:
        for place in places:
            note(place, _audited(checks[place], each, samples))
    return [Outcome(check, reports[place]) for place, check in enumerate(checks)]


def _audited(check: Check, confidence: float, samples: int | None) -> AuditReport:
    count = check.samples if samples is None else max(LEAST_SAMPLES, min(samples, check.samples))
    return audit(
        check.mechanism,
        check.claim,
        check.neighbours,
        samples=count,
        confidence=confidence,
        batch=check.batch,
        workers=1,
        progress=False,
    )


def _run_in_processes(
    checks: Sequence[Check],
    places: list[int],
    team: int,
    run: Callable[[int], AuditReport],
    note: Callable[[int, AuditReport], None],
) -> None:
    """Each process takes the next check when it is done with one."""
    context = multiprocessing.get_context("fork")
    left = iter(places)
    processes, waiting = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads; see `sampling`
        for _ in range(team):
            mine, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, run), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            waiting[mine] = next(left)
            mine.send(waiting[mine])
    try:
        while waiting:
            for ready in wait(list(waiting)):
                assert isinstance(ready, Connection)
                place = waiting.pop(ready)
                note(place, _received(ready, checks[place].name))
                following = next(left, None)
                if following is not None:
                    waiting[ready] = following
                    ready.send(following)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _received(connection: Connection, name: str) -> AuditReport:
    try:
        answer = connection.recv()
    except (EOFError, OSError):
        raise WorkerLost(f"{name}: the auditing process ended without an answer") from None
    if isinstance(answer, str):
        raise WorkerLost(f"{name}: {answer}")
    assert isinstance(answer, AuditReport)
    return answer


def _work(connection: Connection, run: Callable[[int], AuditReport]) -> None:
    try:
        while True:
            place = connection.recv()
            try:
                connection.send(run(place))
            except Exception as problem:  # told in the other process, with the name of the check
                where = traceback.extract_tb(problem.__traceback__)[-1]
                connection.send(f"{type(problem).__name__}: {problem} ({Path(where.filename).name}:{where.lineno})")
    except (EOFError, OSError, KeyboardInterrupt):
        return
