"""Plans as the page and scripts see them: errors, prices, the budget's bar and the risk. Nothing is spent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import Field

from farthing.errors import BudgetExceeded, FarthingError, Infeasible, InvalidValue
from farthing.server.http.error_envelope import ErrorBody, error_of
from farthing.server.jobs.job_queue import full_id
from farthing.server.schemas.budget_schema import BudgetView, View, study_budget_view
from farthing.server.schemas.draft_schema import Draft
from farthing.server.services.dataset_declarations import canonical
from farthing.server.services.plan_cache import planning_of
from farthing.study import Plan, Study
from farthing.study.documents.document_writer import client_code, local_code, study_toml
from farthing.study.documents.study_document import (
    CONTROLS,
    Asked,
    asked_of,
    dated,
    meant,
    plan_of,
    request_of,
    statistic_of,
)
from farthing.study.plan_summary import Outlook
from farthing.study.request import asked_or_raise, released_before

if TYPE_CHECKING:
    from farthing.server.app_state import State
    from farthing.server.auth.permissions import Caller


class CostView(View):
    """The epsilon of the whole plan: an interval that is proven, or an estimate."""

    lower: float
    upper: float
    proven: bool


class TheoremView(View):
    """What one composition theorem says the same noises cost."""

    theorem: str
    epsilon: float | None
    remark: str


class PriceView(View):
    """The same noises under each theorem; `own` is what is charged."""

    basic: float | None
    advanced: float | None
    kov: float | None
    optimal: float | None
    own: float | None
    sentence: str
    gain: bool = Field(description="whether composing costs less than adding up, by a percent or more")
    rows: list[TheoremView]


class StatisticView(View):
    """What is predicted of one statistic; null where nothing can be predicted."""

    name: str
    kind: str
    mechanism: str
    epsilon: float | None = Field(description="what it would cost alone")
    cells: int
    unit_of_error: str
    standard_error: float | None
    error: float | None = Field(description="within this of the truth in 95 cases out of 100")
    shown_error: str = Field(
        description="the error as a table shows it: never rounded down, with what it rests on"
    )
    error_at_best: float | None = Field(description="the same in the best case of what is not expected")
    depends_on: str = Field(
        description="what the error depends on and is not expected; then `error` is for the worst case"
    )
    error_at_once: float | None = Field(
        description="all of its cells are within this together in at least 95 cases out of 100; null for an estimate"
    )
    worst_error: float | None = Field(
        description="the error of the worst cell as it is released, to which `within` applies; null for an estimate"
    )
    error_percent: float | None = Field(
        description="of what `percent_of` says; null where nobody said what to expect"
    )
    percent_of: str | None = Field(
        default=None, description="what `error_percent` is a share of: what is expected, or the value assumed"
    )
    reference: float | None = Field(description="what somebody said is expected of it")
    whisker: list[float] | None
    sentence: str
    weight: float
    within: float | None
    confidence: float
    required: str | None = Field(
        default=None, description="what `within` says, how often a release keeps it and what that rests on"
    )
    rests_on: list[str] = Field(
        default_factory=list,
        description="what a required error rests on; empty where it holds whatever the data",
    )
    note: str | None
    labels: list[str] = Field(description="the first 50 cells")
    errors: list[float | None] = Field(description="of the first 50 cells")


class AtOnceView(View):
    """The errors within which all numbers of the plan are together."""

    confidence: float
    numbers: int
    level: float = Field(description="the confidence of each number by itself")
    exact: bool = Field(description="whether the noises are independent; else the errors are an upper bound")
    errors: dict[str, float | None]
    conditions: dict[str, str] = Field(default={}, description="what the errors of some statistics rest on")
    sentence: str


class BarView(View):
    """The budget in parts that add up to it, in epsilon."""

    total: float
    spent: float
    waiting: float
    withheld: float
    plan: float
    free: float


class BeliefView(View):
    """How sure somebody can be afterwards that a person is in the table."""

    prior: float
    posterior_upper: float


class RiskView(View):
    """What the plan can do to beliefs about one person."""

    odds_sentence: str
    factor: float | None
    table: list[BeliefView]


class CountedView(View):
    """A private count of the rows; errors are predicted for `lower`, the low end of its 95% interval."""

    rows: int
    lower: int
    upper: int


class PlanView(View):
    """A plan; `error` says why there are no numbers, where a saved draft cannot be planned any more."""

    id: str | None = None
    version: int | None = None
    owner: str | None = None
    dataset: str
    epsilon: float | None
    delta: float | None
    draft: dict[str, Any]
    cost: CostView | None
    price: PriceView | None
    statistics: list[StatisticView]
    at_once: AtOnceView | None = None
    budget: BudgetView
    bar: BarView | None
    risk: RiskView | None
    assumed_rows: int | None = Field(
        default=None,
        description="the number of rows that errors are for, where nobody said how many there are",
    )
    sized: list[str] = Field(
        default_factory=list, description="the statistics whose errors depend on the number of rows"
    )
    counting: float | None = Field(
        default=None,
        description="the epsilon for which the rows can be counted first, where their number is assumed",
    )
    counted: CountedView | None = Field(default=None, description="the private count that the errors are for")
    opening: str | None = Field(default=None, description="the same in words: what a plan says first")
    assumptions: list[str]
    notes: list[str]
    warnings: list[str] = Field(default_factory=list, description="why the budget protects little")
    about: str | None = Field(
        default=None, description="which rows the numbers are about, where that is not every row"
    )
    request_id: str | None = Field(
        default=None,
        description="a digest of what is asked; releases of the same request under it are charged once",
    )
    released: str | None = Field(
        default=None, description="the full request id of an earlier release of the same request"
    )
    released_with_more: str | None = Field(
        default=None,
        description="the same with further controls; a plan that no longer fits the budget is shown as it was",
    )
    code: str
    toml: str
    error: ErrorBody | None = None


class PlanLine(View):
    """A saved draft in the list."""

    id: str
    version: int
    owner: str
    dataset: str
    study: str | None
    title: str | None
    statistics: int
    created: int
    changed: int


class PlansView(View):
    """Drafts that were saved."""

    plans: list[PlanLine]


def asked_of_draft(study: Study, draft: Draft | Mapping[str, Any]) -> Asked:
    """What a draft asks of a study."""
    words = draft.words() if isinstance(draft, Draft) else draft
    read = asked_of(words["statistics"], _read)
    return replace(
        read,
        statistics=tuple(dated(statistic, study.dataset) for statistic in read.statistics),
        expected=meant(words.get("expected") or {}, study.dataset),
        epsilon=words.get("epsilon"),
        reserve=words.get("reserve"),
        fit=words.get("fit", False),
    )


def _read(entry: Mapping[str, Any], where: str) -> tuple[Any, dict[str, Any]]:
    """A statistic is read once, however often its weight changes."""
    control = {key: entry[key] for key in CONTROLS if key in entry}
    if entry.get("strategy") == "optimised":
        rule = "is not planned by a server: it may think for minutes"
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

    With `again`, what was released in the same words is the plan that it was, whatever is left by now: a script that
    runs again finds it.
    """
    study = state.study(who, draft.dataset)
    asked = asked_of_draft(study, draft)
    earlier, request = None, request_of(study, asked)
    if again:
        earlier = released_before(study, request, full_id(who, request.name))
    if earlier is None:
        try:
            plan = _planned(state, who, study, draft, asked, proof=proof)
        except (BudgetExceeded, Infeasible, InvalidValue) as refusal:
            if not again:
                raise
            earlier = asked_or_raise(study, request, refusal)
    if earlier is not None:
        plan = Plan.again(study, asked.statistics, asked.expected, asked.epsilon, request, earlier)
    return _view(state, who, study, draft, asked, plan, proof)


def saved_view(
    state: State, who: Caller, draft: Draft, *, proof: bool, id: str, version: int, owner: str
) -> dict[str, Any]:
    """The view of a saved draft: with the reason, where there is nothing left to plan with."""
    marks = {"id": id, "version": version, "owner": owner}
    study = state.study(who, draft.dataset)
    try:
        asked = asked_of_draft(study, draft)
        plan = _planned(state, who, study, draft, asked, proof=proof)
        return {**_view(state, who, study, draft, asked, plan, proof), **marks}
    except FarthingError as problem:
        view = PlanView(
            dataset=draft.dataset,
            epsilon=draft.epsilon,
            delta=None,
            draft=draft.words(),
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
        return {**view.model_dump(), **marks}


def _planned(state: State, who: Caller, study: Study, draft: Draft, asked: Asked, *, proof: bool) -> Plan:
    """The plan, from what is kept of earlier ones; thorough with `proof`, near the last one without."""
    planning = planning_of(state)
    words = {key: value for key, value in draft.words().items() if key not in ("title", "study")}
    about = canonical(
        {"statistics": [_unweighted(each) for each in words["statistics"]], "expected": words["expected"]}
    )
    kind = (who.name, draft.dataset, about)
    latest = planning.latest.known(kind)
    if not proof:
        return planning.latest.keep(kind, plan_of(study, asked, latest, quick=True))
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
    key = (who.name, who.role, id(study.dataset), canonical(words), standing)
    plan = planning.proven.known(key)
    if plan is None:
        plan = planning.proven.keep(key, plan_of(study, asked, latest))
        planning.latest.keep(kind, plan)
    return plan


def _unweighted(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in CONTROLS}


def _view(
    state: State, who: Caller, study: Study, draft: Draft, asked: Asked, plan: Plan, proof: bool
) -> dict[str, Any]:
    outlook = Outlook(plan, proof)
    cost, budget = outlook.cost, study.budget
    about = {"epsilon": study.epsilon, "delta": study.delta}
    local = local_code(asked, study.dataset, study.name, about)
    return {
        "id": None,
        "version": None,
        "owner": None,
        "dataset": draft.dataset,
        "epsilon": plan.problem.epsilon,
        "delta": plan.delta,
        "draft": draft.words(),
        "cost": {"lower": cost.lower, "upper": cost.upper, "proven": cost.proven},
        "price": outlook.price,
        "statistics": outlook.statistics(),
        "at_once": outlook.at_once,
        "budget": study_budget_view(study).model_dump(),
        "bar": outlook.bar(budget),
        "risk": outlook.risk,
        "assumed_rows": plan.assumed_rows,
        "sized": [output.name for output in plan.design.sized],
        "counting": plan.counting,
        "counted": None if plan.design.counted is None else asdict(plan.design.counted),
        "opening": plan.opening,
        "assumptions": list(plan.assumptions),
        "notes": list(plan.notes),
        "warnings": list(plan.warnings),
        "about": plan.about,
        "request_id": plan.request.name,
        "released": plan.earlier.request_id if plan.earlier is not None and plan.earlier.exact else None,
        "released_with_more": plan.earlier.request_id
        if plan.earlier is not None and not plan.earlier.exact
        else None,
        "code": f"{client_code(asked, study.name, state.settings.origin)}\n\n\n# The same beside the data:\n{local}\n",
        "toml": study_toml(asked, study.dataset, about, "your-file.csv", "study.db"),
        "error": None,
    }
