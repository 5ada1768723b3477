"""Releases as the page and scripts see them: how far a job is, and what the ledger has of it."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.ledger import Receipt, Stored
from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.release_schema import (
    AnswerView,
    CellView,
    Charged,
    Format,
    ReleaseList,
    ReleaseView,
)
from farthing.server.services.app_state import State
from farthing.server.services.job_queue import as_the_ledger_has_it
from farthing.server.store.job_rows import FAILED, FORFEITED, QUEUED, REFUSED, RELEASED, RUNNING, Job
from farthing.study.documents.study_document import PlanDescription, released_code
from farthing.study.release import Release, reopened

MOST_CELLS = 2_000  # of one statistic in a view; downloads have all of them

_FORMULA = re.compile(r"[=+\-@\t\r]")  # what a spreadsheet takes for the beginning of one
_FIGURES = re.compile(r"[-+][\d.,:e+\- ]*( to [\d.,:e+\- ]*)?")  # such as -50 to -21: nothing is called in it

_TYPES: dict[str, tuple[str, str]] = {
    "csv": ("text/csv; charset=utf-8", "csv"),
    "json": ("application/json", "json"),
    "html": ("text/html; charset=utf-8", "html"),
    "python": ("text/x-python; charset=utf-8", "py"),
    "receipt": ("application/json", "receipt.json"),
}


def release_view(state: State, job: Job, *, with_answers: bool = True) -> ReleaseView:
    """What may be told of a release to whoever may see it."""
    job = as_the_ledger_has_it(state, job)
    # Whoever may see the job may see the whole of it, so the root looks it up: roles may have changed since.
    paid = job.state in (RELEASED, FORFEITED, RUNNING)
    release = reopened(state.root, job.id) if job.state == RELEASED and with_answers else None
    receipt = release.receipt if release is not None else state.root.receipt(job.id) if paid else None
    return ReleaseView(
        request_id=job.id,
        state=job.state,  # type: ignore[arg-type]
        progress=job.progress,
        error=None if job.error is None else ErrorBody.model_validate(job.error),
        dataset=job.dataset,
        owner=job.owner,
        created=_moment(job.created),
        charged=None if receipt is None else _charged(receipt),
        answers=None if release is None else _answers(release),
        about=None if release is None else release.about,
        warnings=[] if release is None else list(release.warnings),
        numbers=None if release is None or "at_once" not in release.plan else len(release.records()),
        receipt=release.receipt.to_json() if release is not None else None,
        sentence=_sentence(job, receipt),
    )


def is_release_of(state: State, stored: Stored, asked: PlanDescription) -> bool:
    """Whether what the ledger has of a request is the release of these statistics, or no answer at all."""
    if stored.answer is None:
        return True
    try:
        release = reopened(state.root, stored.charge.request_id)
    except InvalidValue:  # the opening of a session
        return False
    return list(release) == [statistic.name for statistic in asked.statistics]


def refuse_unreleased(job: Job) -> None:
    """Raise what a job ended with, if it ended without an answer."""
    if job.error is not None and job.state in (FORFEITED, REFUSED, FAILED):
        error = job.error
        raise RequestRefused(error["code"], error["message"], dict(error["fields"]))


def download(state: State, job: Job, wanted: Format) -> tuple[str, str, str]:
    """A released job as a file: its text, its type and its name."""
    job = as_the_ledger_has_it(state, job)
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "it is not released yet; wait until it is, and download it then.")
    kind, ending = _TYPES[wanted]
    name = f"{job.dataset}-{job.id.partition(':')[2]}".replace(" ", "-")
    release = reopened(state.root, job.id)
    if wanted == "python":
        asked = str(release.plan.get("code", ""))
        code = released_code(job.dataset, job.id, state.settings.origin, asked)
        return f"{code}\n", kind, f"{name}.{ending}"
    return _text(release, wanted), kind, f"{name}.{ending}"


def _text(release: Release, wanted: Format) -> str:
    if wanted == "csv":
        return _table(release.records())
    if wanted == "json":
        return release.to_json()
    if wanted == "receipt":
        return release.receipt.to_json()
    from farthing.study.reports.release_report import report_page

    return report_page(release)


def _table(records: list[dict[str, Any]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for one in records for key in one)))
    writer.writeheader()
    writer.writerows({key: _as_text(value) for key, value in one.items()} for one in records)
    return file.getvalue()


def _as_text(value: Any) -> Any:
    """The same, but for a text that a spreadsheet would run: names are whatever an analyst wrote, others open the file.

    >>> [_as_text(each) for each in ("=SUM(A1)", "-50 to -21", "-2+cmd|x!A0", -3.5)]
    ["'=SUM(A1)", '-50 to -21', "'-2+cmd|x!A0", -3.5]
    """
    runs = isinstance(value, str) and _FORMULA.match(value) and not _FIGURES.fullmatch(value)
    return f"'{value}" if runs else value


def _answers(release: Release) -> list[AnswerView]:
    """The statistics in their order, each with its cells."""
    records: dict[str, list[dict[str, Any]]] = {}
    for record in release.records():
        records.setdefault(record["statistic"], []).append(record)
    views = []
    for answer in release.answers.values():
        rows = records[answer.name]
        cells = [_cell(row) for row in rows[:MOST_CELLS]]
        views.append(AnswerView(name=answer.name, cells=cells, total=len(rows), note=answer.note or None))
    return views


def _cell(row: dict[str, Any]) -> CellView:
    value, lower, upper = row["value"], row["lower"], row["upper"]
    return CellView(
        label=row["cell"],
        value=_finite(value),
        raw=_finite(row["raw"]),
        error=_finite(max(upper - value, value - lower)),
        lower=_finite(lower),
        upper=_finite(upper),
        lower_at_once=_finite(row.get("lower_at_once", math.inf)),
        upper_at_once=_finite(row.get("upper_at_once", math.inf)),
        standard_error=_finite(row["standard_error"]),
    )


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _charged(receipt: Receipt) -> Charged:
    return Charged(epsilon=_finite(receipt.epsilon), delta=receipt.delta)


def _moment(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds")


def _sentence(job: Job, receipt: Receipt | None) -> str:
    spent = "" if receipt is None else f"epsilon {receipt.epsilon:.4g}"
    if job.state == QUEUED:
        return "Waiting for a worker; nothing is charged yet."
    if job.state == RUNNING:
        return f"Running; {spent} is charged." if spent else "Being planned; nothing is charged yet."
    if job.state == RELEASED:
        return f"Released; {spent or 'its price'} was charged, once. Reading it again costs nothing."
    if job.state == FORFEITED:
        return (
            f"It was charged {spent or 'its price'} and has no answer: what was paid stays spent, and nothing is drawn "
            "twice. To try again, use a new request id, which is charged again."
        )
    return "It was not released, and nothing was charged. Asking again with the same request id tries again."


def listed_views(state: State, jobs: Iterable[Job]) -> ReleaseList:
    """Many releases, without their answers."""
    return ReleaseList(releases=[release_view(state, job, with_answers=False) for job in jobs])
