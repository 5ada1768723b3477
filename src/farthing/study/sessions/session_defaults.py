"""Sessions of questions for people who say little: which columns, cut how, at what price, and resumed by a name.

What is left open is chosen from the schema alone, and always in the same way, so that a session that was opened from
few arguments is found again by the same arguments.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.adaptive.query_session import QuerySession as QuerySession
from farthing.adaptive.query_session import QuerySessionPlan
from farthing.curator.curator import stored_answer
from farthing.curator.session_records import rounds_begun
from farthing.data import Dataset, Dates, Integers, Reals
from farthing.data.coded_rows import FEW_VALUES, CodedAxis, coded_axes
from farthing.data.schema import Domain
from farthing.errors import Infeasible, InvalidValue
from farthing.ledger import PlanRequest
from farthing.numerics.bounds import ceiling
from farthing.study.plan_submission import as_approved
from farthing.study.sessions.query_sessions import (
    Alpha,
    QuerySessionOptions,
    open_session,
    plan_for_assumed_rows,
    plan_session,
    submit_session,
)
from farthing.study.study import Study

ALPHA, QUERIES = 0.05, 1_000
"""The error and the number of questions of those who do not say."""

ROUGHEST = 0.95
COMFORTABLE = 2**16  # cells that are chosen where nobody chooses
CELLS = 50  # into at most so many a column is cut where nobody says
_HAIR = 1e-9  # the ledger counts in billionths of epsilon, rounded up

Column = CodedAxis
"""A column that may be asked about, and its cells."""


@dataclass(frozen=True)
class SessionOptions:
    """What somebody says about the session they want; everything may be left out."""

    alpha: Alpha | None = None
    queries: int = QUERIES
    columns: tuple[str, ...] | None = None
    bins: Mapping[str, int | Sequence[Any]] = field(default_factory=dict)
    rows: int | None = None
    epsilon: float | None = None
    updates: int | None = None
    confidence: float = 0.95

    def asked(self, dataset: Dataset) -> QuerySessionOptions:
        """The same with everything chosen but alpha."""
        columns, bins = chosen(dataset, self.columns, self.bins)
        return QuerySessionOptions(
            ALPHA if self.alpha is None else self.alpha,
            self.queries,
            columns,
            bins,
            self.updates,
            self.rows,
            self.epsilon,
            confidence=self.confidence,
        )


@dataclass(frozen=True)
class Offer:
    """What a session would cost and promise, the columns it would be about, and what was assumed."""

    plan: QuerySessionPlan
    columns: tuple[Column, ...]
    left_out: tuple[str, ...]
    guessed: bool


def session_offer(study: Study, wish: SessionOptions) -> Offer:
    """The price and the promise; nothing is spent and no row is read.

    >>> import pyarrow, tempfile, farthing as ft
    >>> table = pyarrow.table({"sex": ["F", "M"], "income": [30_000.0, 41_000.0]})
    >>> people = ft.dataset(table, schema={"sex": ["F", "M"], "income": (0.0, 200_000.0)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> study = Study(people, epsilon=1.0, account="people", ledger=folder.name + "/study.db")
    >>> offer = session_offer(study, SessionOptions(rows=10_000))
    >>> offer.plan.alpha, offer.plan.error, offer.columns[1].edges[:3]
    (0.05, 500, (0.0, 5000.0, 10000.0))
    >>> folder.cleanup()
    """
    asked = wish.asked(study.dataset)
    plan, guessed = _planned(study, asked, rough=wish.alpha is None)
    columns = asked.axes(study.dataset)
    names = {axis.column for axis in columns}
    missing = tuple(name for name in study.dataset.schema if name not in names)
    return Offer(plan, columns, missing if wish.columns is None else (), guessed)


def open_wished_session(
    study: Study,
    wish: SessionOptions,
    request_id: str,
    *,
    confirmed: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> QuerySession:
    """Charge for a session and open it; at most `confirmed` if that is given."""
    asked = wish.asked(study.dataset)
    study = as_approved(study, asked.name(study))  # what a curator has approved may cost more than the grant has
    if confirmed is not None:
        allowed = study.allowance(asked.epsilon).epsilon
        if not allowed <= confirmed * (1 + _HAIR) + _HAIR:
            raise InvalidValue(
                "confirmed_epsilon",
                confirmed,
                f"must be at least {ceiling(allowed)}, which the session would cost now",
                "look at the price again; nothing was spent",
            )
        if asked.rows is not None or study.dataset.rows is not None:
            # No more even if more is there in a moment. Where rows are counted first, what that leaves is all there is.
            asked = replace(asked, epsilon=allowed)
    if wish.alpha is None:
        plan, _ = _planned(study, asked, rough=True)
        asked = replace(asked, alpha=plan.alpha)
    return open_session(study, asked, request_id, progress=progress)


def submit_wished_session(
    study: Study, wish: SessionOptions, purpose: str, title: str = "", body: Mapping[str, Any] | None = None
) -> PlanRequest:
    """Ask a curator to allow a session; the same wish, with the alpha that was found for it, opens it then."""
    if wish.epsilon is None:
        raise InvalidValue("epsilon", None, "must say what the session may cost", "pass epsilon=")
    asked, study = wish.asked(study.dataset), study.on_request()
    if wish.alpha is None:
        plan, _ = _planned(study, asked, rough=True)
        asked = replace(asked, alpha=plan.alpha)
    return submit_session(study, asked, purpose, title, None if body is None else {**body, "alpha": asked.alpha})


def resume_session(study: Study, wish: SessionOptions, request_id: str) -> QuerySession:
    """A session that was opened, here or elsewhere, as it is in the ledger; nothing is charged."""
    return open_session(study, _asked_again(study, wish, request_id), request_id)


def is_session_of(study: Study, wish: SessionOptions, request_id: str) -> bool:
    """Whether a session of that id was opened for the same columns, cuts and promises; no row is read.

    What it may have been opened with is not compared where the budget of that day had a say: alpha, rows, epsilon.
    """
    try:
        plan_session(study, _asked_again(study, wish, request_id), request_id)
    except InvalidValue:
        return False
    return True


def _asked_again(study: Study, wish: SessionOptions, request_id: str) -> QuerySessionOptions:
    facts = session_facts(study, request_id)
    plan = facts["plan"]
    known = tuple(facts.get("known", ()))
    asked = wish.asked(study.dataset)
    return replace(asked, alpha=plan["alpha"], rows=plan["rows"], epsilon=facts["epsilon"], known=known)


def session_facts(study: Study, request_id: str) -> Mapping[str, Any]:
    """What was recorded when a session was opened. One that is just being opened is not waited for, nor given up."""
    stored = study.ledger.stored(request_id)
    if stored is None or stored.state != "released":
        raise InvalidValue("request_id", request_id, "must be that of a session that was opened")
    facts = stored_answer(study.ledger, request_id).finished.get("session")
    if not isinstance(facts, Mapping) or "plan" not in facts:
        raise InvalidValue("request_id", request_id, "must be that of a session of questions")
    return facts


def plan_of(facts: Mapping[str, Any]) -> QuerySessionPlan:
    """The plan that a session was opened with."""
    return QuerySessionPlan(**facts["plan"])


def updates_begun(study: Study, request_id: str, updates: int) -> int:
    """How many of its updates were begun, by whomever; what is under way counts."""
    return rounds_begun(study.curator, request_id, updates)


def columns_of(dataset: Dataset, wish: SessionOptions) -> tuple[Column, ...]:
    """The columns that a session of this wish is about."""
    return wish.asked(dataset).axes(dataset)


def chosen(
    dataset: Dataset, columns: Sequence[str] | None, bins: Mapping[str, int | Sequence[Any]]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Columns and cuts: as many columns as are comfortable where none are named, in the order of the schema."""
    schema = dataset.schema
    names = tuple(schema) if columns is None else tuple(columns)
    cuts: dict[str, Any] = {}
    for name, cut in bins.items():
        domain = schema.columns.get(name)
        cuts[name] = cut if isinstance(cut, int) else [_edge(edge, domain) for edge in cut]
    for name in names:
        if name in schema and name not in cuts:
            edges = round_edges(schema[name], many=columns is not None)
            if edges is not None:
                cuts[name] = edges
    if columns is None:
        names = _comfortable(dataset, cuts)
        cuts = {name: cut for name, cut in cuts.items() if name in names or name in bins}
    return names, cuts


def round_edges(domain: Domain, *, many: bool = False) -> list[Any] | int | None:
    """Where to cut a column of many values, at round numbers; None if each value may be a cell of its own.

    >>> round_edges(Integers(0, 100_000))[:3], round_edges(Reals(0.0, 1.0))[:3], round_edges(Integers(0, 110))
    ([2000, 4000, 6000], [0.02, 0.04, 0.06], None)
    """
    if isinstance(domain, Dates):
        days = (domain.upper - domain.lower).days + 1
        return None if days <= (2**17 if many else FEW_VALUES) else CELLS
    if isinstance(domain, Integers):
        if domain.upper - domain.lower < (2**17 if many else FEW_VALUES):
            return None
    elif not isinstance(domain, Reals):
        return None
    elif domain.lower == domain.upper:
        return 1
    step = _round_step((domain.upper - domain.lower) / CELLS)
    first, last = math.floor(domain.lower / step) + 1, math.ceil(domain.upper / step) - 1
    if isinstance(domain, Integers):
        return [place * int(step) for place in range(first, last + 1)]
    edges = [float(f"{place * step:.12g}") for place in range(first, last + 1)]
    return [edge for edge in edges if domain.lower < edge < domain.upper]


def _round_step(least: float) -> float:
    """The least of 1, 2, 5, 10, 20, 50 ... and their parts that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-12))


def _edge(edge: Any, domain: Domain | None) -> Any:
    """An edge as it is written in JSON: a day is a text there."""
    if isinstance(domain, Dates) and isinstance(edge, str):
        try:
            return datetime.date.fromisoformat(edge)
        except ValueError:
            raise InvalidValue("bins", edge, "must be a day", "write it as 2026-01-31") from None
    if isinstance(domain, Integers) and isinstance(edge, float) and edge.is_integer():
        return int(edge)
    return edge


def _comfortable(dataset: Dataset, cuts: Mapping[str, Any]) -> tuple[str, ...]:
    names, cells = [], 1
    for name in dataset.schema:
        bins = {name: cuts[name]} if name in cuts else None
        (axis,) = coded_axes(dataset.schema, [name], bins=bins, missing=False)
        if cells * len(axis) <= COMFORTABLE:
            names.append(name)
            cells *= len(axis)
    return tuple(names) or tuple(dataset.schema)[:1]


def _planned(study: Study, asked: QuerySessionOptions, *, rough: bool) -> tuple[QuerySessionPlan, bool]:
    """The plan, and whether the number of rows in it is a guess; with `rough` the next alpha that can be kept."""
    try:
        return _plan(study, asked)
    except Infeasible as refusal:
        closest = refusal.closest
        if not rough or closest is None or not closest < ROUGHEST:
            raise
        power = 10.0 ** (math.floor(math.log10(closest)) - 1)
        return _plan(study, replace(asked, alpha=min(ROUGHEST, math.ceil(1.02 * closest / power) * power)))


def _plan(study: Study, asked: QuerySessionOptions) -> tuple[QuerySessionPlan, bool]:
    # A name that no session has: the price is that of a new one.
    fresh = f"{study.payer or study.ledger.actor} has not opened this"
    try:
        return plan_session(study, asked, fresh), False
    except InvalidValue as unknown:
        if (unknown.name, unknown.value) != ("rows", None):
            raise
    return plan_for_assumed_rows(study, asked), True
