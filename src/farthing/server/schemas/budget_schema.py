"""Budgets as people see them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class View(BaseModel):
    """The base of what is answered: no field that is not declared."""

    model_config = ConfigDict(extra="forbid")


class Amount(View):
    """An epsilon and a delta."""

    epsilon: float
    delta: float


class Spent(View):
    """What was spent; null where the charges have no finite epsilon together."""

    epsilon: float | None


class BudgetView(View):
    """The state of a budget: a dataset's own, or an analyst's grant in it."""

    dataset: str
    analyst: str | None
    total: Amount
    spent: Spent
    waiting: float = Field(description="the part of what is spent whose answer has not been given yet")
    withheld: dict[str, Amount] = Field(description="set aside by reserves, by name")
    remaining: Amount = Field(description="the largest charge that would be admitted now")
    room: Amount = Field(
        description="the most that one plan may cost: what remains, or more where the clock pays for Gaussian noise"
    )
    limited_by: str | None = Field(
        default=None, description="another budget of the same table that has less left, where one has"
    )
    charges: int
    exhausted: bool
    sentence: str
    lifetime: str = Field(
        default="", description="of an account that renews: what somebody in all periods of a year is protected by"
    )


class Fitting(View):
    """How many charges of one size would fit."""

    epsilon: float
    count: int


class BudgetDetails(BudgetView):
    """The state of a budget with what takes longer to work out."""

    would_fit: list[Fitting] = Field(description="how many more charges of each size, decided one by one")
    would_fit_sentence: str = Field(description="the same in words; empty where it is what remains and no more")
    odometer: float | None = Field(
        description="an epsilon, at the total's delta, for all that was answered so far, whenever and for whatever "
        "reason you stop; null where there is none, or where it was not asked for"
    )
    odometer_sentence: str = Field(description="the same in words; empty where it was not asked for")
