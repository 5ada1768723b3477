"""Requests and policies for the page and scripts: who sees them, who decides, and whom that is told."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from farthing.errors import InvalidValue, RequestRefused
from farthing.ledger import PlanRequest, Policy
from farthing.server.auth.api_tokens import SCOPES_OF_ROLE
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.request_schema import (
    Approval,
    AskedStatistic,
    ChangedRequest,
    HistoryView,
    NewRequest,
    PoliciesView,
    PolicyView,
    PolicyWords,
    RequestKind,
    RequestLine,
    RequestsView,
    RequestView,
    StepView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import (
    account_of,
    budget_view,
    not_there,
    requested_dataset,
    study_of,
)
from farthing.server.services.plan_prices import plan_of_draft
from farthing.server.services.series_service import submitted_series
from farthing.server.services.session_service import submitted_session
from farthing.server.services.synthetic_service import submitted_table
from farthing.study.plan_submission import changed, plain_assumptions

MOST_LISTED = 500
_KINDS: dict[str, RequestKind] = {
    "a session of questions": "session",
    "a running series": "series",
    "a synthetic table": "table",
}


def request_list(state: State, who: Caller, dataset: str | None, wanted: str | None) -> RequestsView:
    """The newest requests: an analyst's own, to others everybody's."""
    account = None if dataset is None else account_of(state.store, dataset)
    requests = state.ledger(who).requests.all(account, wanted)
    return RequestsView(requests=[RequestLine(**_line(state, each)) for each in reversed(requests[-MOST_LISTED:])])


def request_view(state: State, who: Caller, number: int) -> RequestView:
    """A request with what a decision needs."""
    return _view(state, who, _request(state, who, number))


def submit(state: State, who: Caller, body: NewRequest) -> RequestView:
    """Ask for the plan of a draft, a query session, a running series or a synthetic table; nothing is spent."""
    title = body.title or ""
    if body.draft is not None:
        study = study_of(state, who, body.draft.dataset).on_request()
        request = plan_of_draft(study, body.draft).submit(body.purpose, title or body.draft.title or "")
    elif body.session is not None:
        request = submitted_session(state, who, body.session, body.purpose, title)
    elif body.series is not None:
        request = submitted_series(state, who, body.series, body.purpose, title)
    else:
        assert body.table is not None
        request = submitted_table(state, who, body.table, body.purpose, title)
    return _notified(state, who, "request.submitted", request)


def approve(state: State, who: Caller, number: int, body: Approval) -> RequestView:
    """Allow the version that the curator has looked at."""
    request = _request(state, who, number)
    if request.version != body.version:
        raise RequestRefused(
            "conflict",
            f"request {number} has version {request.version} by now, and version {body.version} was looked at; look at "
            "it again.",
            {"version": request.version},
        )
    with _as_conflict():
        request = state.ledger(who).requests.approve(number, expires=body.expires)
    return _notified(state, who, "request.approved", request)


def change(state: State, who: Caller, number: int, body: ChangedRequest) -> RequestView:
    """Allow another plan in its place."""
    before = _request(state, who, number)
    about = requested_dataset(state.store, before)
    if "offer" in before.document:
        way_out = "decline it with a reason, and the analyst asks for another"
        raise RequestRefused("conflict", f"request {number} is {before.document['kind']}, and no plan; {way_out}.")
    if body.draft.dataset != about:
        raise RequestRefused("conflict", f"request {number} is about {about!r}, and the draft is not.")
    asking = Caller(before.analyst, "analyst", SCOPES_OF_ROLE["analyst"], "request")
    plan = plan_of_draft(study_of(state, asking, about).on_request(), body.draft)
    with _as_conflict():
        request = changed(plan, plan.asked, number, body.reason, body.expires, state.ledger(who).requests)
    return _notified(state, who, "request.changed", request)


def decline(state: State, who: Caller, number: int, reason: str) -> RequestView:
    """Turn a request down, or take an approval back."""
    _request(state, who, number)
    with _as_conflict():
        request = state.ledger(who).requests.decline(number, reason)
    return _notified(state, who, "request.declined", request)


def withdraw(state: State, who: Caller, number: int) -> RequestView:
    """Take a request of the caller's own back."""
    _request(state, who, number)
    with _as_conflict():
        request = state.ledger(who).requests.withdraw(number)
    return _notified(state, who, "request.withdrawn", request)


def policy_list(state: State, who: Caller, dataset: str | None) -> PoliciesView:
    """The policies that somebody may see."""
    account = None if dataset is None else _known_account(state, dataset)
    return PoliciesView(policies=[_policy_view(each) for each in state.ledger(who).requests.policies(account)])


def grant_policy(state: State, who: Caller, dataset: str, analyst: str, body: PolicyWords) -> PolicyView:
    """Let an analyst spend so much in every period without asking."""
    account = _known_account(state, dataset)
    facts = body.model_dump()
    facts["statistics"] = _kinds(body.statistics)
    policy = state.ledger(who).requests.grant_policy(account, analyst, **facts)
    state.webhook.tell("policy.granted", dataset=dataset, analyst=analyst, actor=who.name)
    return _policy_view(policy)


def _known_account(state: State, name: str) -> str:
    """The account of a dataset, or the account of that name."""
    account = account_of(state.store, name)
    if account not in state.root.datasets():
        raise not_there(name)
    return account


def _kinds(named: list[Any] | None) -> list[str] | None:
    """The kinds that plans have: a median is a quantile."""
    return None if named is None else ["quantile" if kind == "median" else kind for kind in named]


@contextmanager
def _as_conflict() -> Iterator[None]:
    """A step that cannot follow any more is a conflict: somebody else was quicker."""
    try:
        yield
    except InvalidValue as problem:
        if problem.name != "request":
            raise
        raise RequestRefused("conflict", str(problem), {"name": "request"}) from None


def _request(state: State, who: Caller, number: int) -> PlanRequest:
    try:
        return state.ledger(who).requests.one(number)
    except InvalidValue:
        raise RequestRefused("not_found", f"there is no request {number} that you may see.") from None


def _notified(state: State, who: Caller, event: str, request: PlanRequest) -> RequestView:
    """The view of a request after a step, of which the operator's address is told: no plan and no purpose."""
    state.webhook.tell(
        event,
        request=request.id,
        title=request.title,
        dataset=requested_dataset(state.store, request),
        analyst=request.analyst,
        actor=who.name,
        state=request.state,
        version=request.version,
    )
    return _view(state, who, request)


def _view(state: State, who: Caller, request: PlanRequest) -> RequestView:
    plan, ledger = request.document.get("plan", {}), state.ledger(who)
    history = ledger.requests.history(request.analyst)
    line = _line(state, request)
    kind: RequestKind = _KINDS.get(str(request.document.get("kind")), "plan")
    title = {"title": request.title} if kind == "plan" else {}
    draft = {**title, **request.document.get("draft", {}), "dataset": line["dataset"]}
    return RequestView(
        **line,
        statistics=[_statistic(each) for each in plan.get("statistics", ())],
        odds=str(request.document.get("odds", "")),
        assumptions=plain_assumptions(request.document),
        kind=kind,
        words=str(request.document.get("words", "")),
        draft={name: value for name, value in draft.items() if value is not None},
        budget=None if who.role == "analyst" else budget_view(ledger.budget(request.dataset)),
        history=HistoryView(**history.to_dict()),
        steps=[StepView(**{**step._asdict(), "when": step.when.isoformat()}) for step in request.steps],
    )


def _line(state: State, request: PlanRequest) -> dict[str, Any]:
    names = ("id", "analyst", "title", "purpose", "state", "version", "epsilon", "delta", "reason", "name")
    return {
        **{name: getattr(request, name) for name in names},
        "dataset": requested_dataset(state.store, request),
        "created": request.steps[0].when.isoformat(),
        "expires": None if request.expires is None else request.expires.isoformat(),
        "request_id": request.request_id or None,
    }


def _statistic(planned: dict[str, Any]) -> AskedStatistic:
    error = planned["error"]
    return AskedStatistic(
        name=planned["name"],
        cells=planned["cells"],
        error=error if error is not None and math.isfinite(error) else None,
        shown_error=planned["shown_error"],
        sentence=planned["sentence"],
    )


def _policy_view(policy: Policy) -> PolicyView:
    rules = [f"epsilon {policy.epsilon:g} per {policy.per}"]
    rules += [] if policy.statistics is None else [f"only {', '.join(policy.statistics)}"]
    rules += [] if policy.columns is None else [f"only of {', '.join(policy.columns)}"]
    rules += [f"cells of fewer than {policy.cell} people, by released counts, are withheld"] if policy.cell else []
    sentence = f"{'; '.join(rules)}; {policy.left:.6g} is left of this {policy.per}, until {policy.last_day}."
    return PolicyView(**policy.to_dict(), sentence=sentence)
