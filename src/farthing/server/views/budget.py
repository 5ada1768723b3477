"""Budgets as people see them."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict, Field

from farthing.ledger import Budget
from farthing.study.allowance import left_of
from farthing.study.words import shown

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
    charges: int
    exhausted: bool
    sentence: str


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
