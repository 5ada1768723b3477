"""Monitors of a study: series from its schema, a price from its budget, rounds in its ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from farthing.adaptive.holdout import Holdout, HoldoutPlan
from farthing.adaptive.holdout.holdout_sums import rows_of
from farthing.adaptive.monitor import Monitor, MonitorPlan, Watched, plan_monitor, thresholds_of, watched
from farthing.curator.payers import unit_of
from farthing.curator.questions import run_apart
from farthing.curator.same_people import warn_caller
from farthing.curator.session_records import LedgerJournal, Session, opened_once, stored_session
from farthing.data import Dataset
from farthing.data.aggregates.aggregate import Aggregate
from farthing.errors import EngineError, FarthingError, InvalidValue, TableChanged
from farthing.privacy.events import checked_count, checked_real
from farthing.study.attacker_odds import budget_cautions
from farthing.study.release import warn_if_changed
from farthing.study.release_request import own_name
from farthing.study.study_account import StudyAccount, refuse_sample, register_to_spend

_HOLDOUTS_PRICE = ("epsilon", "delta")


def open_holdout(
    study: StudyAccount,
    training: Dataset,
    *,
    queries: int,
    corrections: int,
    threshold: float | None,
    epsilon: float | None,
    confidence: float,
    request_id: str | None,
) -> Holdout:
    """Charge for all corrections, once; a session that was opened before is resumed at the price it has paid."""
    refuse_sample(study, "a holdout")
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a holdout makes many",
            "study the table without sampling_rate=, from the first release on",
        )
    if not isinstance(training, Dataset):
        raise InvalidValue(
            "training", type(training).__name__, "must be a dataset", "make one with farthing.dataset(...)"
        )
    of_training, of_holdout = rows_of(training, study.dataset)
    options: dict[str, Any] = {"queries": queries, "corrections": corrections, "confidence": confidence}
    facts = [study.name, study.payer, of_training.rows, options, threshold, epsilon]
    name = request_id or own_name(study, f"holdout-{_holdouts_hashed(facts)[:24]}")
    price = _price(study, name, epsilon)
    plan = HoldoutPlan(of_holdout.rows, of_training.rows, **price, stated_threshold=threshold, **options)

    def check(dataset: Dataset) -> None:
        rows_of(training, dataset)

    register_to_spend(study)
    session = Session(plan.event, _holdouts_hashed(["holdout", asdict(plan)]), plan.corrections, check, price)
    journal = LedgerJournal(
        study.curator, study.dataset, session, ledger_name=study.name, request_id=name, delta=plan.delta
    )
    opened = study.ledger.receipt(name)
    holdout = Holdout(training, study.dataset, **price, threshold=threshold, journal=journal, **options)
    if opened is not None:
        warn_if_changed(study, opened, "holdout(request_id=...) with a new id")
    return holdout


def _price(study: StudyAccount, name: str, epsilon: float | None) -> dict[str, Any]:
    """What the session has paid; for a new one, what the budget has for it."""
    stored = stored_session(study.curator, name)
    if stored is None:
        allowance = study.allowance(epsilon)
        return {"epsilon": allowance.epsilon, "delta": allowance.delta}
    if set(stored) != set(_HOLDOUTS_PRICE):
        raise InvalidValue("request_id", name, "is that of a session of another kind", "choose another")
    if epsilon not in (None, stored["epsilon"]):
        rule = f"must be {stored['epsilon']!r}, for which this session was opened"
        raise InvalidValue("epsilon", epsilon, rule, "leave it out, or choose another request id")
    return {fact: stored[fact] for fact in _HOLDOUTS_PRICE}


def _holdouts_hashed(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


_PRICE = ("epsilon", "delta", "round_epsilon")


@dataclass(frozen=True)
class MonitorOptions:
    """What was asked for, before a budget has set its price."""

    series: Sequence[Any]
    threshold: Any
    alerts: int
    steps: int
    by: str | Sequence[str] | None = None
    epsilon: float | None = None
    mute: bool = True
    confidence: float = 0.95

    def plan(self, study: StudyAccount, watch: Watched, price: Mapping[str, Any] | None = None) -> MonitorPlan:
        """The plan at the study's budget as it is now, or at a price that was set when it was opened."""
        if price is None:
            allowance = study.allowance(self.epsilon)
            epsilon, delta = allowance.epsilon, allowance.delta
        else:
            epsilon, delta = price["epsilon"], price["delta"]
            if self.epsilon not in (None, epsilon):
                rule = f"must be {epsilon!r}, for which this monitor was opened"
                raise InvalidValue("epsilon", self.epsilon, rule, "leave it out, or choose another request id")
        plan = plan_monitor(
            watch.series,
            thresholds_of(self.threshold, watch.series),
            alerts=self.alerts,
            steps=self.steps,
            epsilon=epsilon,
            delta=delta,
            l1_sensitivity=watch.l1_sensitivity,
            monotone=watch.monotone,
            mute=self.mute,
            confidence=self.confidence,
        )
        return plan if price is None else replace(plan, **{name: price[name] for name in _PRICE})

    def request_id(self, study: StudyAccount, watch: Watched) -> str:
        """The same arguments name the same monitor: a second call resumes it."""
        facts = [
            study.name,
            study.payer,
            thresholds_of(self.threshold, watch.series),
            checked_count(self.alerts, "alerts"),
            checked_count(self.steps, "steps"),
            None if self.epsilon is None else checked_real(self.epsilon, "epsilon"),
            checked_real(self.confidence, "confidence"),
            bool(self.mute),
        ]
        of_old = f"monitor-{_hashed(*facts, *_defined(watch))[:24]}"  # earlier versions did not look at the rows
        if study.dataset.is_untransformed and study.ledger.stored(of_old) is not None:
            return own_name(study, of_old)
        definition = json.dumps(study.dataset.definition, default=str)
        return own_name(study, f"monitor-{_hashed(*facts, *_defined(watch), definition)[:24]}")


def monitor_plan(study: StudyAccount, asked: MonitorOptions) -> MonitorPlan:
    """What it would cost and how far off it may be; nothing is spent and no row is read.

    For a monitor that was opened with the same arguments, it is what was paid for.
    """
    watch = _seen(study, asked)
    name = asked.request_id(study, watch)
    stored = study.ledger.stored(name)
    opened = stored is not None and stored.state == "released"  # one that is being opened is not waited for
    plan = asked.plan(study, watch, _price_of(study, name) if opened else None)
    return replace(plan, warnings=tuple(budget_cautions(plan.epsilon, plan.delta, study.dataset.rows)))


def session_name(study: StudyAccount, asked: MonitorOptions) -> str:
    """The request id of a monitor that was given none."""
    return asked.request_id(study, _seen(study, asked))


def open_monitor(
    study: StudyAccount,
    asked: MonitorOptions,
    request_id: str | None = None,
    timeout: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Monitor:
    """Charge for all rounds, once; a monitor that was opened before is resumed at the price it has paid."""
    watch = _seen(study, asked)
    name = request_id or asked.request_id(study, watch)
    return opened_once(study.curator, name, lambda: _opened(study, asked, watch, name, timeout, progress))


def _opened(
    study: StudyAccount,
    asked: MonitorOptions,
    watch: Watched,
    name: str,
    timeout: float | None,
    progress: Callable[[float], None] | None,
) -> Monitor:
    plan = asked.plan(study, watch, _price_of(study, name))

    def check(dataset: Dataset) -> None:
        _refuse_further(watched(asked.series, dataset, asked.by), plan)

    register_to_spend(study)
    session = Session(
        plan.event,
        _hashed(plan.digest, *_defined(watch)),
        plan.alerts,
        check,
        {one: getattr(plan, one) for one in _PRICE},
    )
    journal = LedgerJournal(
        study.curator, study.dataset, session, ledger_name=study.name, request_id=name, delta=plan.delta
    )

    def read(table: Dataset | None = None, where: Any = None) -> list[int]:
        rows = study.dataset if table is None else refuse_unlike(table, study.dataset, "monitor")
        journal.refuse_unpaid(rows)  # also of the same table: a link or a folder may lead to other rows by now
        rows = rows if where is None else rows.where(where)
        check(rows)
        return watch.values(private_counts(rows, watch.counts, timeout, progress))

    def words(table: Dataset | None = None, where: Any = None) -> str:
        rows = study.dataset if table is None else refuse_unlike(table, study.dataset, "monitor")
        definition = json.dumps((rows if where is None else rows.where(where)).definition, default=str)
        return _hashed(definition)[:24]

    def notice(table: Dataset | None) -> None:
        opened = journal.receipt
        if table is None and opened is not None and study.table_changed(name):
            warn_caller(
                f"the table has changed since the monitor was opened, {opened.when:%Y-%m-%d}, and the looks that were "
                "made before are repeated as they were. look(fresh=True) looks at the table as it is now.",
                TableChanged,
            )

    return Monitor(plan, read, journal, words, notice)


def _price_of(study: StudyAccount, name: str) -> Mapping[str, Any] | None:
    """What a monitor of this name has paid; None if there is none yet."""
    facts = stored_session(study.curator, name)
    if facts is not None and not set(_PRICE) <= set(facts):
        raise InvalidValue("request_id", name, "is that of a session of another kind", "choose another")
    return facts


def _defined(watch: Watched) -> list[str]:
    """What every series counts, whatever it is called."""
    return [repr(one) for one in watch.counts.values()]


def _hashed(*facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _seen(study: StudyAccount, asked: MonitorOptions) -> Watched:
    refuse_sample(study, "a monitor")
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a monitor looks again and again",
            "study the table without sampling_rate=, from the first release on",
        )
    return watched(asked.series, study.dataset, asked.by)


def private_counts(
    rows: Dataset,
    aggregates: Mapping[str, Aggregate],
    timeout: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Mapping[str, Any]:
    """The private counts; of what goes wrong only words that hold nothing of a row come out."""
    counts: list[Mapping[str, Any]] = []

    def work(tell: Callable[[float], None]) -> str:
        counts.append(rows.exact(aggregates, tell))
        return ""

    try:
        rows.prepare()
    except InvalidValue as problem:  # a file that is being replaced may be whole at the next look
        raise EngineError("duckdb", f"{problem.value} {problem.rule}", problem.way_out) from None
    outcome = run_apart(work, timeout, progress)
    if outcome.text is None:
        raise outcome.error or FarthingError(f"the look failed and used nothing up: {outcome.reason}.")
    return counts[0]


def _refuse_further(watch: Watched, plan: MonitorPlan) -> None:
    """The noise was made for neighbours that move a count so far, and in one direction or in both."""
    if watch.l1_sensitivity > plan.l1_sensitivity or plan.monotone > watch.monotone:
        raise InvalidValue(
            "l1_sensitivity",
            plan.l1_sensitivity,
            f"must be at least {watch.l1_sensitivity} for these rows",
            "make the monitor for the dataset that it looks at",
        )


def refuse_unlike(table: Any, dataset: Dataset, what: str) -> Dataset:
    """Later rows of the same table: the same people are protected, and its columns mean the same."""
    if not isinstance(table, Dataset):
        raise InvalidValue("table", type(table).__name__, "must be a dataset", "make one with farthing.dataset(...)")
    if table.schema != dataset.schema:
        raise InvalidValue(
            "table", list(table.schema), f"must have the columns and domains that the {what} was opened with"
        )
    if unit_of(table) != unit_of(dataset) or table.probability != dataset.probability:
        raise InvalidValue("table", str(unit_of(table)), f"must protect {str(unit_of(dataset))!r}, as the {what} does")
    return table
