"""Running series: planned, opened as a job that charges once, and continued period by period."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import RequestRefused
from farthing.numerics.bounds import number_text, rounded_up_text
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.series_schema import (
    PeriodErrors,
    SeriesAsked,
    SeriesCell,
    SeriesLine,
    SeriesList,
    SeriesOpening,
    SeriesPlanView,
    SeriesStepView,
    SeriesView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import as_the_ledger_has_it, submitted, visible_job
from farthing.server.services.release_status import refuse_unreleased
from farthing.server.store.job_rows import RELEASED, SERIES, Job, listed

if TYPE_CHECKING:
    from farthing.ledger import PlanRequest
    from farthing.study.sessions.series_sessions import RunningSeries, RunningSeriesPlan, SeriesOptions, SeriesStep

MOST_LISTED = 50


def priced(state: State, who: Caller, asked: SeriesAsked) -> SeriesPlanView:
    """What a series would cost, and the error of each of its periods; nothing is spent and no row is read."""
    from farthing.study.sessions.series_sessions import series_plan

    study = study_of(state, who, asked.dataset)
    study = study.on_request() if asked.on_request else study
    with state.sessions.price_turn():
        return plan_view(asked.dataset, series_plan(study, series_options(asked.plain())))


def opening(state: State, who: Caller, body: SeriesOpening) -> Job:
    """The job that opens a series."""
    study_of(state, who, body.dataset)  # a dataset that is not theirs is not there
    return submitted(
        state,
        who,
        kind=SERIES,
        request_id=body.request_id,
        dataset=body.dataset,
        asked=body.plain(),
        limits={"confirmed_epsilon": body.confirmed_epsilon},
    )


def submitted_series(state: State, who: Caller, asked: SeriesAsked, purpose: str, title: str) -> PlanRequest:
    """Ask a curator to allow a series; nothing is spent and no row is read."""
    from farthing.study.sessions.series_sessions import submit_series

    study, body = study_of(state, who, asked.dataset), asked.plain()
    with state.sessions.price_turn():
        return submit_series(study, series_options(body), purpose, title, body)


def series_list(state: State, who: Caller, dataset: str | None) -> SeriesList:
    """The newest series: an analyst's own, to others everybody's."""
    owner = who.name if who.role == "analyst" else None
    jobs = [as_the_ledger_has_it(state, job) for job in listed(state.store, SERIES, owner, dataset, limit=MOST_LISTED)]
    return SeriesList(series=[SeriesLine(**_line(job), sentence=_words(job)) for job in jobs])


def visible_series(state: State, who: Caller, series_id: str) -> Job:
    """The job of a series, if the caller may see it."""
    return as_the_ledger_has_it(state, visible_job(state, who, SERIES, series_id))


def series_view(state: State, job: Job) -> SeriesView:
    """A series with everything that was released of it."""
    if job.state != RELEASED:
        error = None if job.error is None else ErrorBody.model_validate(job.error)
        return _view(job, error=error)
    owner = Caller(job.owner, job.role, frozenset(), "series")  # it is their grant that has paid
    return _released_view(job, opened(state, owner, job))


def release_next(state: State, who: Caller, job: Job, until: str | None) -> SeriesView:
    """Release the periods that are over; what was released stays as it is, and nothing is charged for it."""
    if who.role != job.role or (who.role != "curator" and who.name != job.owner):
        raise RequestRefused(
            "not_allowed", f"this series was opened by {job.owner} as {job.role}, who continues it.", {"role": who.role}
        )
    refuse_unreleased(job)
    if job.state != RELEASED:
        raise RequestRefused("conflict", "the series is not open yet; wait until it is.")
    series = opened(state, who, job)  # as whoever continues it: a curator's step is an entry with their name
    series.update(until=until)
    return _released_view(job, series)


def opened(state: State, caller: Caller, job: Job) -> RunningSeries:
    """The series of a job that was charged, as the ledger has it."""
    from farthing.study.sessions.series_sessions import open_series

    return open_series(study_of(state, caller, job.dataset), series_options(job.asked), job.id)


def series_options(asked: Mapping[str, Any]) -> SeriesOptions:
    """The wish of a request as a value."""
    from farthing.study.sessions.series_sessions import SeriesOptions

    return SeriesOptions(
        asked.get("where"),
        asked["date"],
        asked["every"],
        asked["steps"],
        asked.get("first"),
        asked.get("by"),
        asked.get("epsilon"),
        asked["append_only"],
        asked["confidence"],
    )


def plan_view(dataset: str, plan: RunningSeriesPlan) -> SeriesPlanView:
    """A plan with the error of every period."""
    columns = zip(plan.periods.names, plan.count_errors, plan.total_errors, plan.repeated_errors, strict=True)
    return SeriesPlanView(
        dataset=dataset,
        series=[one.name for one in plan.series],
        every=plan.periods.every,
        epsilon=plan.epsilon,
        delta=plan.delta,
        noise=plan.kind,
        strategy=plan.strategy,
        append_only=plan.append_only,
        confidence=plan.confidence,
        errors=[
            PeriodErrors(period=period, count=float(count), total=float(total), separate=float(separate))
            for period, count, total, separate in columns
        ],
        sentences=_sentences(plan),
        warnings=list(plan.warnings),
    )


def _sentences(plan: RunningSeriesPlan) -> list[str]:
    """Price, errors and what they rest on."""
    at = f" at delta {number_text(plan.delta)}" if plan.delta else ""
    last, often = plan.periods.names[-1], f"{number_text(100 * plan.confidence)} times in 100"
    total, separate = (rounded_up_text(float(each[-1]), 3) for each in (plan.total_errors, plan.repeated_errors))
    rows = "1 row" if plan.rows == 1 else f"{plan.rows:,} rows"
    rests = (
        "Rows must keep their unit and date, too. A row that comes after its period was released counts in part."
        if plan.append_only
        else "Rows may be added, changed and removed between periods. Where they are only added, errors can be smaller."
    )
    return [
        f"All {plan.periods.count:,} periods together cost epsilon {rounded_up_text(plan.epsilon, 3)}{at}, charged "
        "once, when the series is opened.",
        f"{often}, the total of {last} is off by at most {total}; as separate releases at this price, by {separate}.",
        f"One unit counts with at most {rows}, the earliest.",
        *(f"{words[0].upper()}{words[1:]}." for words in plan.notes),
        rests,
    ]


def _released_view(job: Job, series: RunningSeries) -> SeriesView:
    plan, steps = series.plan, series.steps
    periods = plan.periods
    over = list(periods.names[len(steps) : periods.over_by(datetime.now(UTC).date())])
    following = periods.names[len(steps)] if len(steps) < periods.count else None
    return _view(
        job,
        plan=plan_view(job.dataset, plan),
        steps=[_step(plan, place, step) for place, step in enumerate(steps)],
        next=following,
        over=over,
        sentence=_released_words(len(steps), periods.count, following, over),
    )


def _view(job: Job, **known: Any) -> SeriesView:
    unknown: dict[str, Any] = {"error": None, "plan": None, "steps": [], "next": None, "over": []}
    return SeriesView(**{**_line(job), "progress": job.progress, "sentence": _words(job), **unknown, **known})


def _line(job: Job) -> dict[str, Any]:
    created = datetime.fromtimestamp(job.created / 1e9, UTC).isoformat(timespec="milliseconds")
    return {"id": job.id, "dataset": job.dataset, "owner": job.owner, "created": created, "state": job.state}


def _step(plan: RunningSeriesPlan, place: int, step: SeriesStep) -> SeriesStepView:
    counts, totals = np.atleast_1d(step.count.values), np.atleast_1d(step.total.values)
    labels = [str(label) for label in step.count.labels] or ["all"]
    errors = {"count_error": float(plan.count_errors[place]), "total_error": float(plan.total_errors[place])}
    return SeriesStepView(
        period=step.period,
        cells=[
            SeriesCell(label=label, count=float(count), total=float(total), **errors)
            for label, count, total in zip(labels, counts, totals, strict=True)
        ],
    )


def _released_words(done: int, many: int, following: str | None, over: list[str]) -> str:
    """How far a series is, in words.

    >>> _released_words(2, 12, "2026-03", [])
    '2 of 12 periods are released; 2026-03 can be when it is over.'
    >>> _released_words(0, 12, "2026-01", ["2026-01", "2026-02"])
    '0 of 12 periods are released; 2026-01 to 2026-02 are over and can be.'
    """
    if following is None:
        return f"All {many:,} periods are released."
    if not over:
        waits = f"{following} can be when it is over"
    elif len(over) == 1:
        waits = f"{following} is over and can be"
    else:
        waits = f"{over[0]} to {over[-1]} are over and can be"
    return f"{done:,} of {many:,} periods are released; {waits}."


def _words(job: Job) -> str:
    return {
        "queued": "Waiting to be opened; nothing is charged yet.",
        "running": "It is being opened.",
        "released": "It is open: all its periods are paid for.",
        "forfeited": "It was charged and lost while it was being opened; what was paid stays spent.",
    }.get(job.state, "It was not opened, and nothing was charged for it.")
