"""Releases as the page and scripts see them: how far a job is, and what the ledger has of it."""

from __future__ import annotations

import csv
import io
import math
import re
from datetime import UTC, datetime
from typing import Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.ledger import PlanRequest, Receipt, Stored
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.release_schema import (
    AnswerView,
    CellView,
    Charged,
    Format,
    ReleaseList,
    ReleaseRequest,
    ReleaseView,
    RowCountRequest,
    RowCountView,
    TableView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import requested_dataset, study_of
from farthing.server.services.job_queue import as_the_ledger_has_it, full_id, submitted, visible_job
from farthing.server.services.plan_prices import asked_of_draft, study_of_draft
from farthing.server.store.draft_rows import draft as saved_draft
from farthing.server.store.job_rows import (
    FAILED,
    FORFEITED,
    QUEUED,
    REFUSED,
    RELEASE,
    RELEASED,
    ROW_COUNT,
    RUNNING,
    Job,
    job_of,
    listed,
)
from farthing.study.documents.study_document import PlanDescription, released_code
from farthing.study.release import Release, changed_note, quantile_ranks, stored_release
from farthing.study.study_account import stored_count

MOST_LISTED = 100  # releases
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
    """The view of a release, for somebody who may see it."""
    job = as_the_ledger_has_it(state, job)
    # A person who may see the job may see the whole of it, so the root looks it up: roles may have changed since.
    paid = job.state in (RELEASED, FORFEITED, RUNNING)
    release = stored_release(state.root, job.charged) if job.state == RELEASED and with_answers else None
    receipt = release.receipt if release is not None else state.root.receipt(job.charged) if paid else None
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
        release = stored_release(state.root, stored.charge.request_id)
    except InvalidValue:  # the opening of a session
        return False
    return list(release) == [statistic.name for statistic in asked.statistics]


def refuse_unreleased(job: Job) -> None:
    """Raise what a job ended with, if it ended without an answer."""
    if job.error is not None and job.state in (FORFEITED, REFUSED, FAILED):
        error = job.error
        raise RequestRefused(error["code"], error["message"], dict(error["fields"]))


def download(state: State, job: Job, form: Format) -> tuple[str, str, str]:
    """A released job as a file: its text, its type and its name."""
    job = as_the_ledger_has_it(state, job)
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "it is not released yet; wait until it is, and download it then.")
    kind, ending = _TYPES[form]
    name = f"{job.dataset}-{job.id.partition(':')[2]}".replace(" ", "-")
    release = stored_release(state.root, job.charged)
    if form == "python":
        asked = str(release.plan.get("code", ""))
        code = released_code(job.dataset, job.id, state.settings.origin, asked)
        return f"{code}\n", kind, f"{name}.{ending}"
    return _text(release, form), kind, f"{name}.{ending}"


def _text(release: Release, form: Format) -> str:
    if form == "csv":
        return _table(release.records())
    if form == "json":
        return release.to_json()
    if form == "receipt":
        return release.receipt.to_json()
    from farthing.study.reports.release_report import report_page

    return report_page(release)


def _table(records: list[dict[str, Any]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, fieldnames=list(dict.fromkeys(key for one in records for key in one)))
    writer.writeheader()
    writer.writerows({key: plain_text_cell(value) for key, value in one.items()} for one in records)
    return file.getvalue()


def plain_text_cell(value: Any) -> Any:
    """The same, but for a text that a spreadsheet would run: names are whatever an analyst wrote, others open the file.

    >>> [plain_text_cell(each) for each in ("=SUM(A1)", "-50 to -21", "-2+cmd|x!A0", -3.5)]
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
        ranks = quantile_ranks(release, answer.name) or [("", None)] * len(rows)
        cells = [_cell(row, *rank) for row, rank in zip(rows[:MOST_CELLS], ranks[:MOST_CELLS], strict=True)]
        said = {"note": answer.note or None, "counts": rows[0].get("counts", "rows")}
        views.append(AnswerView(name=answer.name, cells=cells, total=len(rows), **said))
    return views


def _cell(row: dict[str, Any], group: str, rank: float | None) -> CellView:
    value, lower, upper = row["value"], row["lower"], row["upper"]
    return CellView(
        label=row["cell"],
        group=group,
        rank=rank,
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


def visible_release(state: State, who: Caller, request_id: str) -> Job:
    """The job of a release, if the caller may see it."""
    return visible_job(state, who, RELEASE, request_id)


def release_list(state: State, who: Caller, dataset: str | None) -> ReleaseList:
    """The newest releases, without their answers: an analyst's own, to others everybody's."""
    owner = who.name if who.role == "analyst" else None
    jobs = listed(state.store, RELEASE, owner, dataset, limit=MOST_LISTED)
    return ReleaseList(releases=[release_view(state, job, with_answers=False) for job in jobs])


def table_view(state: State, who: Caller, request_id: str) -> TableView:
    """Whether a table has other rows now than when a release of it was charged."""
    job = visible_release(state, who, request_id)
    receipt = state.root.receipt(job.charged)
    if receipt is None:
        raise RequestRefused("not_found", "nothing was charged for this release; there is nothing to compare.")
    study = study_of(state, who, job.dataset)
    note = changed_note(study, receipt, "a new request id")
    return TableView(request_id=job.id, changed=study.table_changed(job.charged), sentence=note)


def submitted_release(state: State, who: Caller, body: ReleaseRequest) -> Job:
    """The job that releases a saved plan or a draft: a new one, or the one that the request id has."""
    if body.request is not None:
        return _submitted_request(state, who, body, body.request)
    if body.draft is not None:
        facts = body.draft.plain()
    else:
        assert body.plan is not None
        try:
            facts = dict(saved_draft(state.store, body.plan, None if who.role == "curator" else who.name).body)
        except RequestRefused:
            # The plan may be gone by now; what it was released as is not.
            job = job_of(state.store, full_id(who, body.request_id))
            if job is not None and job.kind == RELEASE and job.limits.get("plan") == body.plan:
                return job
            raise
    dataset = str(facts["dataset"])
    if job_of(state.store, full_id(who, body.request_id)) is None:
        study_of(state, who, dataset)  # refused at once where there is no such dataset, or no grant in it

    def is_answer_to(stored: Stored) -> bool:
        return is_release_of(state, stored, asked_of_draft(study_of_draft(state, who, dataset, facts), facts))

    # What it is called and where it is kept is no part of what is released.
    asked = {name: value for name, value in facts.items() if name not in ("dataset", "study", "title")}
    limits = {"confirmed_epsilon": body.confirmed_epsilon, "plan": body.plan, "title": facts.get("title")}
    return submitted(
        state,
        who,
        kind=RELEASE,
        request_id=body.request_id,
        dataset=dataset,
        asked=asked,
        limits=limits,
        is_answer_to=is_answer_to,
    )


def _submitted_request(state: State, who: Caller, body: ReleaseRequest, number: int) -> Job:
    """The job that releases the plan of an approved request of the caller's own."""
    request = own_request(state, who, number)
    done = job_of(state.store, request.request_id) if request.state == "used" else None
    if done is not None and done.kind == RELEASE:
        return done
    names = [statistic["name"] for statistic in request.document["plan"]["statistics"]]

    def is_answer_to(stored: Stored) -> bool:
        release = None if stored.answer is None else stored_release(state.root, stored.charge.request_id)
        return release is None or list(release) == names

    return submitted(
        state,
        who,
        kind=RELEASE,
        request_id=body.request_id,
        dataset=requested_dataset(state.store, request),
        asked={"request": number, "version": request.version},
        limits={"confirmed_epsilon": body.confirmed_epsilon, "plan": None},
        is_answer_to=is_answer_to,
    )


def own_request(state: State, who: Caller, number: int) -> PlanRequest:
    """A request that the caller made, with its plan."""
    try:
        request = state.ledger(who).requests.one(number)
    except InvalidValue:
        request = None
    if request is None or request.analyst != who.name or "plan" not in request.document:
        raise RequestRefused("not_found", f"there is no request {number} of yours; see the list of requests.")
    return request


def submitted_count(state: State, who: Caller, name: str, body: RowCountRequest) -> Job:
    """The job that counts the rows of a table: a new one, or the one that the request id has."""
    study = study_of(state, who, name)  # a dataset that is not theirs is not there
    if study.dataset.rows is not None:
        raise RequestRefused("conflict", f"the number of rows of {name!r} is public; no count is needed.")
    return submitted(
        state,
        who,
        kind=ROW_COUNT,
        request_id=body.request_id,
        dataset=name,
        asked={"share": body.share, "fresh": body.fresh},
        limits={"confirmed_epsilon": body.confirmed_epsilon},
    )


def count_view(state: State, who: Caller, job: Job) -> RowCountView:
    """How far a count of rows is, and what it came to."""
    view = RowCountView(dataset=job.dataset, state=job.state, progress=job.progress)
    if job.state != RELEASED:
        return view
    count = stored_count(study_of(state, who, job.dataset))
    if count.answer is None:
        return view
    answer = count.answer
    return view.model_copy(
        update={
            "rows": float(answer.values),
            "lower": float(answer.lower),
            "upper": float(answer.upper),
            "counts": count.counts,
            "scale": count.scale,
            "epsilon": count.epsilon,
            "request_id": count.request_id,
        }
    )
