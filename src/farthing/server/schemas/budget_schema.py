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
    limited_by: str | None = Field(
        default=None, description="another budget of the same table that has less left, where one has"
    )
    charges: int
    exhausted: bool
    sentence: str
