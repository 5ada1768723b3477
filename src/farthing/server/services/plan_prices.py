"""Plans as the page and scripts see them: errors, prices, the budget's bar and the risk. Nothing is spent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from farthing.errors import BudgetExceeded, FarthingError, Infeasible, InvalidValue
from farthing.server.auth.permissions import Caller
from farthing.server.http.error_envelope import ErrorBody, error_of
from farthing.server.schemas.plan_schema import Draft, PlanView
from farthing.server.services.app_state import State
from farthing.server.services.dataset_service import canonical, study_budget_view, study_of
from farthing.server.services.discovery_service import refuse_undiscovered
from farthing.server.services.job_queue import full_id
from farthing.server.store.job_rows import RELEASE, last_fresh, listed
from farthing.study import Plan, Study
from farthing.study.documents.study_document import (
    CONTROLS,
    PlanDescription,
    client_code,
    dated,
    expected_values,
    local_code,
    plan_description,
    plan_of,
    request_of,
    statistic_of,
    study_toml,
)
from farthing.study.key_count_plan import KeyCountPlan
from farthing.study.release_request import earlier_or_raise, earlier_release
from farthing.study.reports.plan_summary import Outlook
from farthing.study.staged_plan import in_use


def study_of_draft(state: State, who: Caller, dataset: str, draft: Draft | Mapping[str, Any]) -> Study:
    """The study that a draft is planned with: for a request, beside the caller's grant."""
    study = study_of(state, who, dataset)
    facts = draft.plain() if isinstance(draft, Draft) else draft
    return study.on_request() if facts.get("on_request") else study


def asked_of_draft(study: Study, draft: Draft | Mapping[str, Any], *, previews: bool = False) -> PlanDescription:
    """What a draft asks of a study; the refusal of something unknown has a preview if that is wanted."""
    facts = draft.plain() if isinstance(draft, Draft) else draft
    asked = plan_description(facts["statistics"], _read)
    described = replace(
        asked,
        statistics=tuple(dated(statistic, study.dataset) for statistic in asked.statistics),
        expected=expected_values(facts.get("expected") or {}, study.dataset),
        epsilon=facts.get("epsilon") or _most_to_ask(study),
        reserve=facts.get("reserve"),
        fit=facts.get("fit", False),
    )
    refuse_undiscovered(study, described, previews=previews)
    return described


def _most_to_ask(study: Study) -> float | None:
    """What is left of the dataset's own budget, where a curator is asked; None where the grant says what is left."""
    return study.ledger.budget(study.name).remaining.epsilon if study.by_request else None


def _read(entry: Mapping[str, Any], where: str) -> tuple[Any, dict[str, Any]]:
    """A statistic is read once, however often its weight changes."""
    control = {key: entry[key] for key in CONTROLS if key in entry}
    if entry.get("strategy") == "optimised":
        rule = "is not planned by a server: it can take minutes"
        raise InvalidValue(f"{where}.strategy", "optimised", rule, "leave it out, or plan beside the data")
    if "confidence" in control and "within" not in control:
        return statistic_of(entry, where)  # which refuses it
    return _statistic(canonical(_unweighted(entry)), where), control


@lru_cache(maxsize=4096)
def _statistic(entry: str, where: str) -> Any:
    return statistic_of(json.loads(entry), where)[0]


def plan_of_draft(study: Study, draft: Draft | Mapping[str, Any]) -> Plan:
    """The plan that a draft asks for, thoroughly: what is to be released."""
    return plan_of(study, asked_of_draft(study, draft))


def priced(state: State, who: Caller, draft: Draft, *, proof: bool, again: bool = False) -> dict[str, Any]:
    """The view of a draft that is not saved; raises where it cannot be planned.

    With `again`, a request that was released before is the plan that it was, whatever is left by now: a script that
    runs again finds it.
    """
    study = study_of_draft(state, who, draft.dataset, draft)
    asked = asked_of_draft(study, draft, previews=True)
    study = in_use(study, asked.statistics, asked.expected)
    earlier, request = None, request_of(study, asked)
    if again:
        name = full_id(who, request.name)
        for released in filter(None, (last_fresh(state.store, name), name)):
            earlier = earlier or earlier_release(study, request, released)
    if earlier is None:
        try:
            plan = _planned(state, who, study, draft, asked, proof=proof)
        except (BudgetExceeded, Infeasible, InvalidValue) as refusal:
            if not again:
                raise
            earlier = earlier_or_raise(study, request, refusal)
    if earlier is not None:
        plan = Plan.again(study, asked.statistics, asked.expected, asked.epsilon, request, earlier)
    return _view(state, who, study, draft, asked, plan, proof)


def saved_view(
    state: State, who: Caller, draft: Draft, *, proof: bool, id: str, version: int, owner: str
) -> dict[str, Any]:
    """The view of a saved draft: with the reason, where there is nothing left to plan with."""
    saved = {"id": id, "version": version, "owner": owner}
    study = study_of_draft(state, who, draft.dataset, draft)
    try:
        asked = asked_of_draft(study, draft)
        study = in_use(study, asked.statistics, asked.expected)
        plan = _planned(state, who, study, draft, asked, proof=proof)
        return {**_view(state, who, study, draft, asked, plan, proof), **saved}
    except FarthingError as problem:
        view = PlanView(
            dataset=draft.dataset,
            epsilon=draft.epsilon,
            delta=None,
            draft=draft.plain(),
            cost=None,
            price=None,
            statistics=[],
            budget=study_budget_view(study),
            bar=None,
            risk=None,
            assumptions=[],
            notes=[],
            code="",
            toml="",
            error=ErrorBody(**error_of(problem)),
        )
        return {**view.model_dump(), **saved}


def _planned(state: State, who: Caller, study: Study, draft: Draft, asked: PlanDescription, *, proof: bool) -> Plan:
    """The plan, from what is kept of earlier ones; thorough with `proof`, near the last one without."""
    facts = {key: value for key, value in draft.plain().items() if key not in ("title", "study")}
    about = canonical(
        {"statistics": [_unweighted(each) for each in facts["statistics"]], "expected": facts["expected"]}
    )
    kind = (who.name, draft.dataset, about)
    latest = state.plans.latest.value(kind)
    if not proof:
        return state.plans.latest.keep(kind, plan_of(study, asked, latest, quick=True))
    budget = study.budget
    standing: tuple[Any, ...] = (
        budget.total,
        budget.spent_upper,
        budget.reserved,
        budget.remaining,
        budget.count,
        repr(budget.withheld),
    )
    if study.analyst is not None:
        whole = study.ledger.budget(study.name)
        standing += (whole.total, whole.remaining, whole.count, repr(whole.withheld))
    key = (who.name, who.role, id(study.dataset), canonical(facts), standing)
    plan = state.plans.proven.value(key)
    if plan is None:
        plan = state.plans.proven.keep(key, plan_of(study, asked, latest))
        state.plans.latest.keep(kind, plan)
    return plan


def _unweighted(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in CONTROLS}


def _view(
    state: State, who: Caller, study: Study, draft: Draft, asked: PlanDescription, plan: Plan, proof: bool
) -> dict[str, Any]:
    outlook = Outlook(plan, proof or isinstance(plan, KeyCountPlan))  # whose price is known at once
    # What a curator is to approve is a part of the dataset's own budget.
    cost, budget = outlook.cost, study.ledger.budget(study.name) if study.by_request else study.budget
    about, local = _as_words(study, asked)
    remote = client_code(asked, draft.dataset, state.settings.origin)
    standing = study_budget_view(study)
    reach = standing.room if plan.allocation.problem.on_clock else standing.remaining
    # An analyst may ask for all that is left, whatever there is of the grant.
    most = budget.remaining.epsilon if study.by_request else reach.epsilon
    return {
        "id": None,
        "version": None,
        "owner": None,
        "dataset": draft.dataset,
        "epsilon": plan.allocation.problem.epsilon,
        "delta": plan.delta,
        "draft": draft.plain(),
        "cost": {"lower": cost.lower, "upper": cost.upper, "proven": cost.proven},
        "price": outlook.price,
        "statistics": outlook.statistics(),
        "at_once": outlook.at_once,
        "budget": standing.model_dump(),
        "bar": {**outlook.bar(budget), "reach": most},
        "risk": outlook.risk,
        "assumed_rows": plan.assumed_rows,
        "sized": [output.name for output in plan.design.outputs if output.sized],
        "counting": plan.counting,
        "counted": None if plan.design.counted is None else asdict(plan.design.counted),
        "opening": plan.opening,
        "assumptions": list(plan.assumptions),
        "assumed": [assumption.fact for assumption in plan.design.assumptions] if plan.assumptions else [],
        "notes": list(plan.notes),
        "warnings": list(plan.warnings),
        "about": plan.about,
        "withheld": plan.withheld,
        "request_id": plan.request.name,
        "finds": plan.column if isinstance(plan, KeyCountPlan) else None,
        "released": _released_as(state, draft, plan) if plan.earlier is not None and plan.earlier.exact else None,
        "released_with_more": plan.earlier.request_id if plan.earlier is not None and not plan.earlier.exact else None,
        "by_request": study.by_request,
        "code": f"{remote}\n\n\n# The same beside the data:\n{local}\n",
        "toml": study_toml(asked, study.dataset, about, "your-file.csv", "study.db"),
        "error": None,
    }


def _released_as(state: State, draft: Draft, plan: Plan) -> str | None:
    """The id of the release that a plan has; None where it was released beside the data, under another name."""
    assert plan.earlier is not None
    charged = plan.earlier.request_id
    if not isinstance(plan, KeyCountPlan):
        return charged
    jobs = listed(state.store, RELEASE, dataset=draft.dataset)
    return next((job.id for job in jobs if job.is_released and job.charged == charged), None)


def _as_words(study: Study, asked: PlanDescription) -> tuple[dict[str, Any], str]:
    """What a study.toml says about the study of a plan, and the Python that asks for the plan beside the data."""
    about: dict[str, Any] = {"epsilon": study.epsilon, "delta": study.delta}
    part = study.ledger.parts().get(study.name)
    if part is None:
        return about, local_code(asked, study.dataset, study.name, about)
    total = study.ledger.budget(part.account).total
    whole = {"epsilon": total.epsilon, "delta": total.delta}
    split = {"by": part.by, **about, "part": part.value}
    options = ", ".join(f"{name}={value!r}" for name, value in split.items() if name in ("by", *about))
    line = f"study = study.split({options})[{part.value!r}]  # this spends, once for all parts"
    return {**whole, "split": split}, local_code(asked, study.dataset, part.account, whole, [line])
