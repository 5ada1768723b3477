"""Running series of a study: cells from its schema, a price from its budget, steps in its ledger."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.adaptive.monitor import Watched, watched
from farthing.adaptive.running_series import RunningSeries, RunningSeriesPlan, SeriesStep, plan_running_series
from farthing.curator.session_records import LedgerJournal, Session, opened_once, stored_session
from farthing.data import Dataset, Dates, Histogram
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real
from farthing.privacy.periods import Periods
from farthing.statistics import Statistic
from farthing.study.attacker_odds import budget_cautions
from farthing.study.plan_submission import as_approved, submitted_offer
from farthing.study.release import answer_facts
from farthing.study.release_request import own_name
from farthing.study.sessions.monitor_sessions import private_counts, refuse_unlike
from farthing.study.study_account import StudyAccount, refuse_sample, register_to_spend

if TYPE_CHECKING:
    from farthing.ledger import PlanRequest

__all__ = [
    "RunningSeries",
    "RunningSeriesPlan",
    "SeriesOptions",
    "SeriesStep",
    "open_series",
    "series_name",
    "series_plan",
    "submit_series",
]

_PRICE = ("epsilon", "delta", "strategy", "kind", "parameter")
_KEPT = "series"
_COUNTED = "counted"  # the fingerprint of counts and periods, whatever they cost


@dataclass(frozen=True)
class SeriesOptions:
    """What was asked for, before a budget has set its price."""

    count: Statistic | str | None
    date: str
    every: str
    steps: int
    first: str | datetime.date | None = None
    by: str | Sequence[str] | None = None
    epsilon: float | None = None
    append_only: bool = False
    confidence: float = 0.95

    def periods(self, dataset: Dataset) -> Periods:
        """The periods, all within the declared bounds of the dates: beyond them, days are moved to the bounds."""
        if self.date not in dataset.schema or not isinstance(domain := dataset.schema[self.date], Dates):
            known = ", ".join(name for name in dataset.schema if isinstance(dataset.schema[name], Dates))
            raise InvalidValue("date", self.date, "must be a column of dates", f"there are: {known or 'none'}")
        first = self.first
        if first is None:
            whole = Periods.of(self.every, domain.lower, 2)
            first = whole.edges[0] if whole.edges[0] == domain.lower else whole.edges[1]
        periods = Periods.of(self.every, first, self.steps)
        if not (domain.lower <= periods.start and periods.edges[-1] - datetime.timedelta(days=1) <= domain.upper):
            raise InvalidValue(
                "steps",
                str(periods),
                f"must lie within the bounds of {self.date!r}, {domain.lower} to {domain.upper}",
                "declare wider bounds, begin later, or use fewer steps",
            )
        return periods

    def cells(self, dataset: Dataset) -> Watched:
        """The one count, and its cells."""
        seen = watched([] if self.count is None else [self.count], dataset, self.by)
        (counted,) = seen.counts.values()
        if self.date in counted.by:
            raise InvalidValue("by", self.date, "is the date column, which already makes the periods", "leave it out")
        return seen

    def plan(self, study: StudyAccount, price: Mapping[str, Any] | None = None) -> RunningSeriesPlan:
        """The plan at the study's budget as it is now, or at a price that was set when it was opened."""
        rows = study.dataset.stability()
        series, periods = self.cells(study.dataset).series, self.periods(study.dataset)
        if price is not None:
            if self.epsilon not in (None, price["epsilon"]):
                rule = f"must be {price['epsilon']!r}, for which this series was opened"
                raise InvalidValue("epsilon", self.epsilon, rule, "leave it out, or choose another request id")
            level = checked_real(self.confidence, "confidence")
            options: dict[str, Any] = {name: price[name] for name in _PRICE} | {"confidence": level}
            plan = RunningSeriesPlan(
                series, periods, rows=rows.rows, neighbours=rows.neighbours, append_only=self.append_only, **options
            )
            return replace(plan, notes=self.notes(study.dataset))
        allowance = study.allowance(self.epsilon)
        plan = plan_running_series(
            series,
            periods,
            epsilon=allowance.epsilon,
            delta=allowance.delta,
            rows=rows.rows,
            neighbours=rows.neighbours,
            append_only=self.append_only,
            confidence=self.confidence,
        )
        return replace(plan, notes=self.notes(study.dataset))

    def notes(self, dataset: Dataset) -> tuple[str, ...]:
        """What no margin of error says: later periods lack rows of units with many; what the protection rests on."""
        unchecked = "the protection rests on rows only being added since the series began; that is not checked"
        rests = (unchecked,) if self.append_only else ()
        if not dataset.unit:
            return rests
        each, most = " and ".join(dataset.unit), dataset.stability().links[0].rows  # as the source is read
        rows = "1 row counts" if most == 1 else f"{most:,} rows count"
        return (
            f"of each {each} only the earliest {rows} in the whole series, so later periods may show fewer than there "
            "were; a larger max_rows loses fewer",
            *rests,
        )

    def request_id(self, study: StudyAccount) -> str:
        """The same arguments name the same series: a second call resumes it."""
        facts = [
            study.name,
            study.payer,
            *self.defined(study.dataset),
            None if self.epsilon is None else checked_real(self.epsilon, "epsilon"),
            checked_real(self.confidence, "confidence"),
            json.dumps(study.dataset.definition, default=str),
        ]
        return own_name(study, f"{_KEPT}-{_hashed(facts)[:24]}")

    def defined(self, dataset: Dataset) -> list[Any]:
        """What is counted when, whatever it is called."""
        periods = self.periods(dataset)
        (counted,) = self.cells(dataset).counts.values()
        return [repr(counted), self.date, periods.every, periods.names[0], periods.count, bool(self.append_only)]

    def counted(self, dataset: Dataset) -> str:
        """A fingerprint of the numbers that are released: two series that share it differ in their errors alone."""
        return _hashed([*self.defined(dataset)[:-1], json.dumps(dataset.definition, default=str)])


def series_plan(study: StudyAccount, asked: SeriesOptions) -> RunningSeriesPlan:
    """What it would cost and how far off every step may be; nothing is spent and no row is read.

    For a series that was opened with the same arguments, it is what was paid for. Another one of the same counts and
    periods is a warning.
    """
    _refuse_unfit(study, asked)
    name = asked.request_id(study)
    stored = study.ledger.stored(name)
    opened = stored is not None and stored.state == "released"  # one that is being opened is not waited for
    plan = asked.plan(study, _price_of(study, name) if opened else None)
    warnings = budget_cautions(plan.epsilon, plan.delta, study.dataset.rows)
    again = None if stored is not None else _opened_before(study, asked)
    return replace(plan, warnings=(*warnings, *([] if again is None else [str(again)])))


def series_name(study: StudyAccount, asked: SeriesOptions) -> str:
    """The request id of a series that was given none; a second series of the same numbers must be given one."""
    _refuse_unfit(study, asked)
    name = asked.request_id(study)
    if study.ledger.stored(name) is None and (again := _opened_before(study, asked)) is not None:
        raise again
    return name


def open_series(
    study: StudyAccount,
    asked: SeriesOptions,
    request_id: str | None = None,
    timeout: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> RunningSeries:
    """Charge for all steps, once; a series that was opened before is resumed at the price it has paid."""
    _refuse_unfit(study, asked)
    name = request_id or series_name(study, asked)
    study = as_approved(study, asked.request_id(study))  # whatever this series is called
    return opened_once(study.curator, name, lambda: _opened(study, asked, name, timeout, progress))


def submit_series(
    study: StudyAccount,
    asked: SeriesOptions,
    purpose: str,
    title: str = "",
    body: Mapping[str, Any] | None = None,
) -> PlanRequest:
    """Ask a curator to allow a series; the same arguments open it then. Nothing is spent and no row is read."""
    if asked.epsilon is None:
        raise InvalidValue("epsilon", None, "must say what all steps together may cost", "pass epsilon=")
    name = series_name(study, asked)
    study = study.on_request()
    if study.ledger.stored(name) is not None:
        raise InvalidValue("request_id", name, "was opened before", "the same call resumes it, free of charge")
    plan = asked.plan(study)
    return submitted_offer(
        study,
        _journal(study, asked, plan, name).terms,
        name=name,
        delta=plan.delta,
        cost=plan.epsilon,
        offer=plan.to_dict(),
        words=str(plan),
        kind="a running series",
        purpose=purpose,
        title=title,
        body=body,
    )


def _journal(study: StudyAccount, asked: SeriesOptions, plan: RunningSeriesPlan, name: str) -> LedgerJournal:
    """The journal of a series, which is not opened yet."""
    session = Session(
        plan.event,
        _hashed([plan.digest, *asked.defined(study.dataset)]),
        plan.periods.count,
        lambda dataset: _refuse_further(dataset, asked, plan),
        {_KEPT: True, _COUNTED: asked.counted(study.dataset), **{one: getattr(plan, one) for one in _PRICE}},
    )
    return LedgerJournal(
        study.curator, study.dataset, session, ledger_name=study.name, request_id=name, delta=plan.delta
    )


def _opened(
    study: StudyAccount,
    asked: SeriesOptions,
    name: str,
    timeout: float | None,
    progress: Callable[[float], None] | None,
) -> RunningSeries:
    plan = asked.plan(study, _price_of(study, name))
    register_to_spend(study)
    journal = _journal(study, asked, plan, name)

    def read(table: Dataset | None, periods: int) -> NDArray[np.int64]:
        rows = study.dataset if table is None else refuse_unlike(table, study.dataset, "series")
        if rows.steps_done != study.dataset.steps_done:  # of a unit, other rows would be the earliest at every step
            raise InvalidValue(
                "table",
                rows.name,
                "must have the same filters and steps as when the series was opened",
                "pass the whole table",
            )
        journal.refuse_unpaid(rows)  # also of the same table: a link or a folder may lead to other rows by now
        _refuse_further(rows, asked, plan)
        return _counts(rows, asked, plan.periods, periods, timeout, progress)

    return RunningSeries(plan, read, journal)


def _counts(
    dataset: Dataset,
    asked: SeriesOptions,
    periods: Periods,
    many: int,
    timeout: float | None,
    progress: Callable[[float], None] | None,
) -> NDArray[np.int64]:
    """The private counts of the first periods, one row for each cell: of each unit the earliest rows are counted."""
    (counted,) = asked.cells(dataset).counts.values()
    start, end = periods.edges[0], periods.edges[many]
    quoted = '"' + asked.date.replace('"', '""') + '"'
    rows = dataset.earliest(asked.date, start).where(f"{quoted} < date '{end.isoformat()}'")
    domain = dataset.schema[asked.date]
    assert isinstance(domain, Dates)
    edges = [edge for edge in periods.edges[: many + 1] if domain.lower <= edge <= domain.upper]
    histogram = Histogram(asked.date, cells=edges, by=counted.by, where=counted.where)
    begins = [label[0] for label in histogram.axes(dataset.schema)[-1].labels]
    values = private_counts(rows, {"counts": histogram}, timeout, progress)["counts"]
    table = np.asarray(values, dtype=np.int64).reshape(-1, len(begins))
    return table[:, [begins.index(edge) for edge in periods.edges[:many]]]


def _opened_before(study: StudyAccount, asked: SeriesOptions) -> InvalidValue | None:
    """The refusal to pay twice for the same numbers, as a call without its epsilon would; None for the first series."""
    counted = asked.counted(study.dataset)
    for entry in study.ledger.entries():
        mine = entry.is_about(study.name) and entry.analyst == (study.analyst or "")
        if not mine or entry.kind != "released" or entry.body["nano"] == 0:  # steps cost nothing
            continue
        facts = answer_facts(study.ledger, entry.request_id).get("session", {})
        if facts.get(_COUNTED) != counted:
            continue
        price, earlier = facts["epsilon"], entry.request_id
        if replace(asked, epsilon=price).request_id(study) == earlier:
            same = f"epsilon={price!r}"
        elif replace(asked, epsilon=None).request_id(study) == earlier:
            same = "no epsilon"
        else:
            same = f"the arguments that it was opened with, or those and request_id={earlier!r}"
        return InvalidValue(
            "series",
            str(asked.periods(study.dataset)),
            f"another series of the same counts and periods exists (epsilon {price:.6g})",
            f"resume it with {same}; for a second one, which is charged too, choose a new request_id",
        )
    return None


def _price_of(study: StudyAccount, name: str) -> Mapping[str, Any] | None:
    """What a series of this name has paid; None if there is none yet."""
    facts = stored_session(study.curator, name)
    if facts is not None and not {_KEPT, *_PRICE} <= set(facts):
        raise InvalidValue("request_id", name, "is that of a session of another kind", "choose another")
    return facts


def _refuse_unfit(study: StudyAccount, asked: SeriesOptions) -> None:
    refuse_sample(study, "a running series")
    if study.dataset.period is not None:
        raise InvalidValue(
            "dataset",
            study.dataset.name,
            "belongs to an account that renews; a running series needs one budget for all time",
            "release its periods one by one: farthing release --period, or Study(..., period=...)",
        )
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a running series makes many",
            "study the table without sampling_rate=, from the first release on",
        )
    periods = asked.periods(study.dataset)
    study.dataset.earliest(asked.date, periods.start)  # which refuses dates that a step has changed


def _refuse_further(dataset: Dataset, asked: SeriesOptions, plan: RunningSeriesPlan) -> None:
    """The noise was made for neighbours that are so many rows apart."""
    asked.cells(dataset)
    dataset.earliest(asked.date, plan.periods.start)
    rows = dataset.stability()
    if rows.rows > plan.rows or rows.neighbours != plan.neighbours:
        raise InvalidValue(
            "rows", plan.rows, f"must be at least {rows.rows} for these rows", "open the series for this dataset"
        )


def _hashed(facts: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(list(facts)).encode()).hexdigest()
