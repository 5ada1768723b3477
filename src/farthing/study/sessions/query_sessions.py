"""Online answers of a study: a domain from its schema, a price from its budget, rounds in its ledger."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from farthing.adaptive.prior_releases import known_tables
from farthing.adaptive.query_session import (
    QuerySession,
    QuerySessionPlan,
    plan_guaranteed_session,
    plan_query_session,
)
from farthing.adaptive.query_session.session_plan import GUARANTEED, MOST_CELLS
from farthing.curator.private_counts import PrivateCells
from farthing.curator.session_records import LedgerJournal, RoundId, Session, opened_once, stored_session
from farthing.data import Dataset, Dates, Integers, Reals
from farthing.data.aggregates.aggregate import MOST_CELLS as MOST_VALUES
from farthing.data.aggregates.aggregate import domain_of, names_of
from farthing.data.coded_rows import CodedAxis, coded_axes, sensitivity_of_coded_rows
from farthing.errors import Infeasible, InvalidValue
from farthing.ledger import PlanRequest, Receipt
from farthing.ledger.entries import checked_name
from farthing.privacy.events import checked_epsilon
from farthing.statistics.cells.cell_axes import Axis
from farthing.statistics.cells.statistic_cells import size_of
from farthing.statistics.public_facts import ASSUMED_ROWS
from farthing.study.attacker_odds import budget_cautions
from farthing.study.plan_submission import as_approved, submitted_offer
from farthing.study.release import Release, stored_release
from farthing.study.release_request import definition_asked, own_name
from farthing.study.study_account import (
    Allowance,
    StudyAccount,
    count_rows,
    refuse_sample,
    register_to_spend,
    stored_count,
)

_STATED = ("alpha", "queries", "confidence", "updates", "rows")
_COUNTING = 0.01  # of epsilon, for the number of rows where nobody knows it
_ROUNDING = 1e-8  # of epsilon: the ledger counts in billionths, rounded up
_MANY = 2**40  # rows: more than there are
_MOST_ROUNDS = 65_536

Alpha = float | Literal["guaranteed"]
"""The error as a fraction of the rows; "guaranteed" is the smallest at which no questions can end a session early."""

Known = Release | str | Sequence[Release | str]
"""Earlier releases of a study, or their request ids."""


@dataclass(frozen=True)
class QuerySessionOptions:
    """What was asked for, before a budget has set its price."""

    alpha: Alpha
    queries: int
    columns: Sequence[str] | str | None = None
    bins: Mapping[str, int | Sequence[Any]] | None = None
    updates: int | None = None
    rows: int | None = None
    epsilon: float | None = None
    start: str = "auto"
    known: tuple[str, ...] = ()
    confidence: float = 0.95

    def axes(self, dataset: Dataset) -> tuple[CodedAxis, ...]:
        """The cells of its columns, from the schema alone."""
        schema = dataset.schema
        names = tuple(schema) if self.columns is None else names_of(self.columns, "columns")
        if not isinstance(self.bins, Mapping | None):
            raise InvalidValue("bins", self.bins, "must say which column is cut", "such as bins={'income': 20}")
        bins = dict(self.bins or {})
        for name in names:
            domain = domain_of(name, schema, "columns")
            if name in bins or not isinstance(domain, Integers | Reals | Dates):
                continue
            values = size_of(domain)
            if values is None or values > MOST_VALUES:
                raise InvalidValue(
                    "columns",
                    name,
                    f"must have a list of at most {MOST_VALUES:,} values, or cells",
                    f"cut it into cells, bins={{{name!r}: 20}}, or leave it out: columns=[...]",
                )
            bins[name] = values  # every value a cell of its own
        axes = coded_axes(schema, names, bins=bins, missing=False)
        _refuse_too_many(axes)
        return axes

    def name(self, study: StudyAccount) -> str:
        """The same arguments name the same session: a second call resumes it.

        What was known at its start is no part of the name: a session remembers it.
        """
        names = None if self.columns is None else list(names_of(self.columns, "columns"))
        bins = {key: list(cut) if isinstance(cut, Sequence) else cut for key, cut in (self.bins or {}).items()}
        facts = [
            study.name,
            study.payer,
            self.alpha,
            self.queries,
            names,
            bins,
            self.updates,
            self.rows,
            self.epsilon,
        ]
        of_old = _named([*facts, self.start, self.confidence])  # earlier versions did not look at the rows
        if study.dataset.is_untransformed and study.ledger.stored(of_old) is not None:
            return own_name(study, of_old)
        return own_name(study, _named([*facts, self.start, self.confidence, definition_asked(study.dataset)]))


def _named(facts: Sequence[Any]) -> str:
    return f"answers-{hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()[:24]}"


def plan_session(study: StudyAccount, asked: QuerySessionOptions, request_id: str | None = None) -> QuerySessionPlan:
    """What it would cost and promise; nothing is spent and no row is read."""
    _refuse_sampled(study)
    axes = asked.axes(study.dataset)
    name = request_id or asked.name(study)
    running = study.ledger.stored(name)
    # To wait for it would be to give it up in the end.
    if running is not None and running.state == "reserved":
        raise InvalidValue("request_id", name, "is being run by another process just now", "try again later")
    stored = stored_session(study.curator, name)
    if stored is not None:
        return _warned(_resumed_plan(stored, asked, axes, name))
    for one in asked.known:
        _release(study, one)  # refuses what is none
    rows = _rows(study, asked)
    if rows.number is None:
        raise InvalidValue(
            "rows",
            None,
            "must be given for a plan: the number of rows is not public",
            "pass rows=... if you have a good estimate, or pay for a count: study.count_rows(); without either, "
            "opening the session counts them first, for a hundredth of epsilon",
        )
    return _warned(_plan(study, asked, axes, rows))


def _warned(plan: QuerySessionPlan) -> QuerySessionPlan:
    """With the reasons why its price protects little, if it does."""
    return replace(plan, warnings=tuple(budget_cautions(plan.epsilon, plan.delta, plan.rows)))


def plan_for_assumed_rows(study: StudyAccount, asked: QuerySessionOptions) -> QuerySessionPlan:
    """The plan for a round number of rows, to look at where nobody knows theirs; what counting costs is taken off."""
    whole = study.allowance(asked.epsilon)
    left = replace(whole, epsilon=(1 - _COUNTING) * whole.epsilon)
    plan = _priced(study, asked, asked.axes(study.dataset), left, ASSUMED_ROWS)
    return replace(plan, warnings=tuple(budget_cautions(plan.epsilon, plan.delta)))


def open_session(
    study: StudyAccount,
    asked: QuerySessionOptions,
    request_id: str | None = None,
    timeout: float | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    prepare: bool = True,
    resumed: Callable[[Receipt], None] | None = None,
) -> QuerySession:
    """Charge for the whole session, once; one that was opened before is resumed at the price it has paid.

    Without `prepare` the first guess, which takes its time where there are many cells, waits for the first question.
    `resumed` is called with the receipt of a session that was opened before.
    """
    _refuse_sampled(study)
    axes = asked.axes(study.dataset)
    study = as_approved(study, asked.name(study))
    name = checked_name(request_id or asked.name(study), "request_id")
    checked_name(str(RoundId(name, _MOST_ROUNDS, 16 * "-")), "request_id")

    def opened() -> QuerySession:
        query_session = _opened(study, asked, axes, name, timeout, progress)
        if prepare:
            query_session.prepare()
        return query_session

    earlier = study.ledger.receipt(name)
    query_session = opened_once(study.curator, name, opened)
    if earlier is not None and resumed is not None:
        resumed(earlier)
    return query_session


def _opened(
    study: StudyAccount,
    asked: QuerySessionOptions,
    axes: Sequence[CodedAxis],
    name: str,
    timeout: float | None,
    progress: Callable[[float], None] | None,
) -> QuerySession:
    stored = stored_session(study.curator, name)
    earlier = asked.known if stored is None else tuple(stored.get("known", ()))
    releases = [_release(study, one) for one in earlier]  # before anything is charged
    if stored is None:
        register_to_spend(study)
        plan = _fresh(study, asked, axes)
    else:
        plan = _resumed_plan(stored, asked, axes, name)
    query_axes = [_query_axis(axis) for axis in axes]
    known = [table for release in releases for table in known_tables(release, query_axes, plan.rows)]
    cells = PrivateCells(study.dataset, axes, timeout, progress)
    journal = _journal(study, asked, plan, axes, name, earlier, cells, timeout, progress)
    return QuerySession(plan, query_axes, cells, journal, known)


def submit_session(
    study: StudyAccount,
    asked: QuerySessionOptions,
    purpose: str,
    title: str = "",
    body: Mapping[str, Any] | None = None,
) -> PlanRequest:
    """Ask a curator to allow a session; the same arguments open it then. Nothing is spent and no row is read."""
    axes = asked.axes(study.dataset)  # which refuses wrong words before they become a name
    study, name = study.on_request(), asked.name(study)
    plan = replace(plan_session(study, asked, name), warnings=())  # which are no part of what is charged
    if study.ledger.stored(name) is not None:
        raise InvalidValue("request_id", name, "was opened before", "the same call resumes it, free of charge")
    cells = PrivateCells(study.dataset, axes, None, None)
    journal = _journal(study, asked, plan, axes, name, asked.known, cells, None, None)
    return submitted_offer(
        study,
        journal.terms,
        name=name,
        delta=plan.delta,
        cost=plan.epsilon,
        offer=plan.as_dict(),
        words=str(plan),
        kind="a session of questions",
        purpose=purpose,
        title=title,
        body=body,
    )


def _journal(
    study: StudyAccount,
    asked: QuerySessionOptions,
    plan: QuerySessionPlan,
    axes: Sequence[CodedAxis],
    name: str,
    earlier: Sequence[str],
    cells: PrivateCells,
    timeout: float | None,
    progress: Callable[[float], None] | None,
) -> LedgerJournal:
    """The journal of a session, which is not opened yet."""

    def check(dataset: Dataset) -> None:
        sensitivity = sensitivity_of_coded_rows(dataset, axes).l1
        if not plan.sensitivity >= sensitivity:
            raise InvalidValue("l1_sensitivity", plan.sensitivity, f"must be at least {sensitivity} for these rows")

    facts = _facts(plan, asked, axes)
    session = Session(plan.event, _digest(plan, axes, earlier), plan.updates, check, facts, cells.listen)
    return LedgerJournal(
        study.curator,
        study.dataset,
        session,
        ledger_name=study.name,
        request_id=name,
        delta=plan.delta,
        timeout=timeout,
        progress=progress,
    )


def _fresh(study: StudyAccount, asked: QuerySessionOptions, axes: Sequence[CodedAxis]) -> QuerySessionPlan:
    rows = _rows(study, asked)
    if rows.number is None:
        whole = study.allowance(asked.epsilon).epsilon
        # Words that no number of rows makes sense of are refused before rows are counted.
        few = asked.updates if asked.updates is not None or asked.alpha == GUARANTEED else 1
        _plan_asked(
            axes, whole, 0.0, asked.alpha, asked.queries, _MANY, 1, few, asked.start, asked.confidence, asked.known
        )
        count_rows(study, _COUNTING * whole)
        rows = _rows(study, asked)
    return _plan(study, asked, axes, rows)


def _plan(study: StudyAccount, asked: QuerySessionOptions, axes: Sequence[CodedAxis], rows: _Rows) -> QuerySessionPlan:
    return _priced(study, asked, axes, study.allowance(_left_to_open(asked, rows.cost)), rows.number)


def _left_to_open(asked: QuerySessionOptions, counting: float) -> float | None:
    """What is said to be spent on a session is spent on counting for it, too.

    A count that took more than its share of this session was made for another one, which has paid for it.
    """
    if asked.epsilon is None:
        return None
    whole = checked_epsilon(asked.epsilon)
    return whole - counting if counting <= _COUNTING * whole + _ROUNDING else whole


def _priced(
    study: StudyAccount,
    asked: QuerySessionOptions,
    axes: Sequence[CodedAxis],
    allowance: Allowance,
    rows: int | None,
) -> QuerySessionPlan:
    sensitivity = sensitivity_of_coded_rows(study.dataset, axes).l1
    facts: Any = (
        tuple(axes),
        allowance.epsilon,
        allowance.delta,
        asked.alpha,
        asked.queries,
        rows,
        sensitivity,
        asked.updates,
        asked.start,
        asked.confidence,
        asked.known,
    )
    try:
        return _remembered_plan(*facts)
    except Infeasible as refusal:
        if refusal.closest is None or refusal.closest < 1:
            raise
        raise Infeasible(
            f"no alpha below 1 can be kept with epsilon={allowance.epsilon:.3g} and about {rows:,} rows: "
            "answers could be off by the whole table; raise epsilon, or ask for fewer queries or updates.",
            blocking=refusal.blocking,
            closest=None,
            epsilon=refusal.epsilon,
        ) from None
    except TypeError:  # something that cannot even be looked up: the planner says what is wrong with it
        return _plan_asked(*facts)


def _plan_asked(
    axes: Sequence[CodedAxis],
    epsilon: float,
    delta: float,
    alpha: Alpha,
    queries: int,
    rows: int,
    sensitivity: int,
    updates: int | None,
    start: str,
    confidence: float,
    known: Sequence[str],
) -> QuerySessionPlan:
    """A plan of what is asked for; of a guaranteed session the proof chooses the updates and the start."""
    if not isinstance(alpha, str) or alpha != GUARANTEED:
        return plan_query_session(axes, epsilon, delta, alpha, queries, rows, sensitivity, updates, start, confidence)
    for name, value, allowed in (("updates", updates, (None,)), ("start", start, ("auto", "none"))):
        if value not in allowed:
            rule = 'cannot be chosen with alpha="guaranteed", which follows from it'
            raise InvalidValue(name, value, rule, "leave it out, or give alpha as a number")
    if known:
        rule = 'cannot be used with alpha="guaranteed": the proof begins with all cells equal'
        raise InvalidValue("known", list(known), rule, "leave it out, or give alpha as a number")
    return plan_guaranteed_session(axes, epsilon, delta, queries, rows, sensitivity, confidence)


_remembered_plan = lru_cache(maxsize=16, typed=True)(_plan_asked)
"""A plan takes seconds, and people look at it before they open a session."""


def _facts(plan: QuerySessionPlan, asked: QuerySessionOptions, axes: Sequence[CodedAxis]) -> dict[str, Any]:
    """What is recorded with a session, for those who resume it later."""
    return {
        "plan": plan.as_dict(),
        "columns": [axis.column for axis in axes],
        "bins": [repr(axis.edges) for axis in axes],
        "epsilon": asked.epsilon,
        "start": asked.start,
        "known": list(asked.known),
    }


def _resumed_plan(
    facts: Mapping[str, Any], asked: QuerySessionOptions, axes: Sequence[CodedAxis], name: str
) -> QuerySessionPlan:
    """The plan that a session was opened with, if it is the one that is asked for."""
    try:
        plan = QuerySessionPlan(**facts["plan"])
        opened = {**facts["plan"], **facts}
    except (TypeError, KeyError):
        raise InvalidValue(
            "request_id",
            name,
            "is that of another kind of session, or of another version of farthing",
            "use a new one; what was charged stays",
        ) from None
    arguments = {
        **vars(asked),
        "alpha": opened["alpha"] if asked.alpha == GUARANTEED and plan.guaranteed else asked.alpha,
        "known": list(asked.known),
        "columns": [axis.column for axis in axes],
        "bins": [repr(axis.edges) for axis in axes],
    }
    for what in (*_STATED, "columns", "bins", "epsilon", "start", "known"):
        if arguments[what] not in (None, "auto", [], opened[what]):
            raise InvalidValue(
                what,
                arguments[what],
                f"must be {opened[what]!r}, with which the session {name!r} was opened",
                "another session needs its own request_id, and is charged separately",
            )
    return plan


@dataclass(frozen=True)
class _Rows:
    """How many rows there are; None where they must be counted. `cost` is what the count took."""

    number: int | None
    cost: float = 0.0


def _rows(study: StudyAccount, asked: QuerySessionOptions) -> _Rows:
    """The number of rows where it is given, public, or was counted before, by whatever asked for it."""
    if asked.rows is not None:
        return _Rows(asked.rows)
    if study.dataset.rows is not None:
        return _Rows(study.dataset.rows)
    count = stored_count(study)
    return _Rows(None if count.counted is None else count.counted.rows, count.epsilon)


def request_ids(known: Known) -> tuple[str, ...]:
    """The request ids of earlier releases; the ledger has what they say."""
    listed = tuple(known) if isinstance(known, list | tuple) else (known,)
    for one in listed:
        if not isinstance(one, Release | str):
            raise InvalidValue("known", one, "must be releases, or their request ids", "see study.releases()")
    return tuple(one.request_id if isinstance(one, Release) else one for one in listed)


def _release(study: StudyAccount, request_id: str) -> Release:
    """An earlier release of the same rows."""
    try:
        release = stored_release(study.ledger, request_id)
    except InvalidValue as refusal:
        raise InvalidValue("known", request_id, refusal.rule, refusal.way_out) from None
    if release.receipt.dataset != study.name:
        raise InvalidValue("known", request_id, f"must be a release of {study.name!r}")
    return release


def _digest(plan: QuerySessionPlan, axes: Sequence[CodedAxis], known: Sequence[str]) -> str:
    text = json.dumps([plan.as_dict(), [repr(axis) for axis in axes], list(known)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _query_axis(axis: CodedAxis) -> Axis:
    return Axis(axis.column, axis.labels, axis.edges, axis.domain)


def _refuse_too_many(axes: Sequence[CodedAxis]) -> None:
    cells = math.prod(len(axis) for axis in axes)
    if cells > MOST_CELLS:
        largest = sorted(axes, key=len, reverse=True)[:3]
        sizes = ", ".join(f"{axis.column} has {len(axis):,}" for axis in largest)
        raise InvalidValue(
            "columns",
            f"{cells:,} cells" if cells < 10**15 else f"{float(cells):.1e} cells",
            f"must have at most {MOST_CELLS:,} together ({sizes})",
            "name fewer with columns=[...], cut some into wider cells with bins={column: number}, or make a synthetic "
            "table, which has no such limit",
        )


def _refuse_sampled(study: StudyAccount) -> None:
    refuse_sample(study, "a query session")
    if study.sampling_rate is not None:
        raise InvalidValue(
            "sampling_rate",
            study.sampling_rate,
            "holds for one release, and a query session makes many",
            "study the table without sampling_rate=, from the first release on",
        )
