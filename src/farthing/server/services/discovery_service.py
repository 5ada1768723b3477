"""Finding what nobody knows about a table: priced for nothing, paid for as a job, and shown with what it has cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from farthing.errors import FarthingError, RequestRefused
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.budget_schema import Amount
from farthing.server.schemas.discovery_schema import (
    DiscoveryAsked,
    DiscoveryPlanView,
    DiscoveryRequest,
    DiscoveryView,
    FindingView,
    SearchView,
    UnknownView,
)
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import study_of
from farthing.server.services.job_queue import submitted
from farthing.server.store.job_rows import DISCOVERY, RELEASED, Job
from farthing.study.discovery_plan import DiscoveryPlan, discovery_plan
from farthing.study.documents.study_document import request_of
from farthing.study.findings import ROWS, PaidFinding, paid_finding
from farthing.study.one_step_count import one_step_count
from farthing.study.staged_plan import staged_plan, unknown_columns

if TYPE_CHECKING:
    from farthing.study import Study
    from farthing.study.documents.study_document import PlanDescription


def planned_discovery(study: Study, asked: Mapping[str, Any], since: int | None = None) -> DiscoveryPlan:
    """The searches that a request asks for; `since` is when their job was made, which may have paid for some."""
    options = {name: value for name, value in asked.items() if name != "columns"}
    return discovery_plan(study, tuple(asked.get("columns", ())), **options, since=since)


def priced(state: State, who: Caller, name: str, asked: DiscoveryAsked) -> DiscoveryPlanView:
    """What would be searched, at which price; nothing is spent and no row is read."""
    plan = planned_discovery(study_of(state, who, name), asked.plain())
    searches = []
    for search in plan.searches:
        is_open = search in plan.open
        searches.append(
            SearchView(
                name=search.name,
                epsilon=search.epsilon if is_open else 0.0,
                delta=search.delta if is_open else 0.0,
                prediction=search.prediction,
                finding=None if is_open else finding_view(plan.paid[search.name]),
            )
        )
    return DiscoveryPlanView(dataset=name, searches=searches, epsilon=plan.cost, delta=plan.delta, sentence=str(plan))


def submitted_discovery(state: State, who: Caller, name: str, body: DiscoveryRequest) -> Job:
    """The job that searches: a new one, or the one that the request id has."""
    planned_discovery(study_of(state, who, name), body.plain())  # a dataset that is not theirs is not there
    return submitted(
        state,
        who,
        kind=DISCOVERY,
        request_id=body.request_id,
        dataset=name,
        asked=body.plain(),
        limits={"confirmed_epsilon": body.confirmed_epsilon},
    )


def discovery_view(state: State, who: Caller, job: Job) -> DiscoveryView:
    """How far a job of searches is, and what it has found."""
    findings = []
    if job.state == RELEASED:
        study = study_of(state, who, job.dataset)
        for search in planned_discovery(study, job.asked).searches:
            paid = paid_finding(study, search.name)
            findings += [] if paid is None else [finding_view(paid)]
    return DiscoveryView(dataset=job.dataset, state=job.state, progress=job.progress, findings=findings)


def unknown_views(study: Study) -> list[UnknownView]:
    """All that a table's declaration leaves open, with what this caller has found or may use of it."""
    declared = study.declared
    kinds = {name: unknown.kind for name, unknown in declared.unknown.items()}
    if declared.is_auto or (declared.unit and paid_finding(study, ROWS) is not None):
        kinds[ROWS] = "rows"
    views = []
    for name, kind in kinds.items():
        paid = paid_finding(study, name)
        views.append(UnknownView(name=name, kind=kind, finding=None if paid is None else finding_view(paid)))
    return views


def finding_view(paid: PaidFinding) -> FindingView:
    """A finding with what was paid for it."""
    finding, receipt = paid.finding, paid.receipt
    return FindingView(
        name=finding.name,
        kind=finding.kind,
        is_usable=finding.is_usable,
        sentence=finding.sentence,
        facts=dict(finding.facts),
        paid=Amount(epsilon=receipt.epsilon, delta=receipt.delta),
        request_id=receipt.request_id,
    )


def refuse_undiscovered(study: Study, asked: PlanDescription, *, previews: bool = False) -> None:
    """Refuse a plan that needs something nobody knows yet: the refusal names it, and the way to find it.

    With `previews` it also says what finding it costs, and how large errors would be for narrow and for wide ranges.
    """
    dataset = study.dataset
    if not dataset.unknown and not dataset.is_auto:
        return
    needed = [*unknown_columns(dataset, asked.statistics, asked.expected), *([ROWS] if dataset.is_auto else [])]
    if not needed or _is_countable(study, asked, needed):
        return
    names, way_out = ", ".join(needed), "find it first, for a small part of the budget, then plan again"
    raise RequestRefused(
        "undiscovered",
        f"columns={names!r}: is declared as unknown, and was not found yet; {way_out}.",
        {
            "columns": needed,
            "rule": "is declared as unknown, and was not found yet",
            "way_out": way_out,
            **({"stages": _stages(study, asked)} if previews else {}),
        },
    )


def _is_countable(study: Study, asked: PlanDescription, needed: list[str]) -> bool:
    """Whether a count by an unknown column may find its values by itself: nobody searched, or asks too much of it."""
    one = one_step_count(study, asked.statistics, asked.expected)
    if one is None or needed != [one.column] or not one.takes(request_of(study, asked).controls):
        return False
    return paid_finding(study, one.column) is None


def _stages(study: Study, asked: PlanDescription) -> dict[str, Any] | None:
    """The price of the first stage and the errors of the second in each case; None where that cannot be planned."""
    try:
        plan = staged_plan(study, asked.statistics, asked.expected, asked.epsilon)
    except (FarthingError, ValueError, ArithmeticError):  # said when the plan itself is made, with what was found
        return None
    if plan is None or plan.stage is None:
        return None
    cases = [
        {"found": words, "errors": [{"name": each.name, "error": each.error()} for each in case.statistics]}
        for words, case in plan.cases
    ]
    return {"epsilon": plan.stage.cost, "rest": plan.allocation.problem.epsilon, "confidence": 0.95, "cases": cases}
