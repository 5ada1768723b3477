"""Budgets as people see them."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict, Field

from farthing.ledger import Budget
from farthing.study import Study
from farthing.study.allowance import left_of
from farthing.study.plan_text import shown

_HARDLY = 1e-5  # a difference that comes from rounding


class View(BaseModel):
    """A model of what is shown."""

    model_config = ConfigDict(extra="forbid")


class Amount(View):
    """An epsilon and a delta."""

    epsilon: float
    delta: float


class Spent(View):
    """What was spent; null where the charges have no finite epsilon together."""

    epsilon: float | None


class BudgetView(View):
    """How a budget stands: a dataset's own, or an analyst's grant in it."""

    dataset: str
    analyst: str | None
    total: Amount
    spent: Spent
    waiting: float = Field(description="the part of what is spent whose answer has not been given yet")
    withheld: dict[str, Amount] = Field(description="set aside by reserves, by name")
    remaining: Amount = Field(description="the largest charge that would be admitted now")
    limited_by: str | None = Field(
        default=None, description="another budget of the same table that has less left, where one has"
    )
    charges: int
    exhausted: bool
    sentence: str


def study_budget_view(study: Study) -> BudgetView:
    """The view of what a study spends; where another budget of the same table has less left, that is what is left."""
    whole = None if study.analyst is None else study.ledger.budget(study.name)
    view = budget_view(study.budget, whole)
    others = {name: left_of(*study.budgets_of(name)) for name in study.accounts if name != study.name}
    if not others:
        return view
    name, (left, exhausted) = min(others.items(), key=lambda other: other[1][0].epsilon)
    if not left.epsilon < view.remaining.epsilon * (1 - _HARDLY):
        return view
    limit = "nothing" if exhausted else f"only epsilon {shown(left.epsilon)}"
    sentence = f"{view.sentence} The budget of {name} pays for this table too, and has {limit} left."
    remaining = Amount(epsilon=left.epsilon, delta=min(left.delta, view.remaining.delta))
    return view.model_copy(
        update={
            "remaining": remaining,
            "limited_by": name,
            "exhausted": view.exhausted or exhausted,
            "sentence": sentence,
        }
    )


def budget_view(budget: Budget, whole: Budget | None = None) -> BudgetView:
    """The view of a budget; `whole` is the dataset's own where it is a grant, which a charge must fit as well."""
    left, exhausted = left_of(budget, whole)
    spent = budget.spent_upper
    return BudgetView(
        dataset=budget.dataset,
        analyst=budget.analyst or None,
        total=Amount(epsilon=budget.total.epsilon, delta=budget.total.delta),
        spent=Spent(epsilon=spent if math.isfinite(spent) else None),
        waiting=budget.reserved,
        withheld={
            name: Amount(epsilon=amount.epsilon, delta=amount.delta)
            for name, amount in budget.withheld.items()
        },
        remaining=Amount(epsilon=left.epsilon, delta=left.delta),
        charges=budget.count,
        exhausted=exhausted,
        sentence=_sentence(budget, left.epsilon, exhausted),
    )


def _shared(budget: Budget, left: float) -> str:
    """Why less is left than the grant alone would give; nothing where that is not so."""
    if not left < budget.remaining.epsilon * (1 - _HARDLY):
        return ""
    return f" The budget of {budget.dataset}, which is shared, has no more left."


def _sentence(budget: Budget, left: float, exhausted: bool) -> str:
    total = f"epsilon {shown(budget.total.epsilon)}"
    what = "grant" if budget.analyst else "budget"
    if budget.analyst:
        total = f"the grant of {total}"
    if not budget.total.epsilon > 0:
        return f"There is no {what} yet; ask a curator for one."
    shared = _shared(budget, left)
    if exhausted and budget.spent_upper > budget.total.epsilon * (1 + _HARDLY):
        return (
            f"Epsilon {shown(budget.spent_upper)} is spent, more than the {shown(budget.total.epsilon)} that the "
            f"{what} was lowered to; nothing more can be released unless a curator gives more."
        )
    if exhausted and shared:
        return f"Nothing of {total} can be spent any more, unless a curator gives more.{shared}"
    if exhausted:
        return f"All of {total} is used up or set aside; nothing more can be released unless a curator gives more."
    if not budget.count:
        return (
            f"Nothing of {total} is spent yet."
            if left >= budget.total.epsilon
            else f"Nothing of {total} is spent yet, and {shown(left)} is free.{shared}"
        )
    charges = "1 charge" if budget.count == 1 else f"{budget.count:,} charges"
    return f"{charges} so far; about {shown(left)} of {total} is left.{shared}"
