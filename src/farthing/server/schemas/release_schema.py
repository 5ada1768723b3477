"""Releases and counts of rows: what is sent to ask for them, and what is answered."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.budget_schema import View
from farthing.server.schemas.plan_schema import Draft
from farthing.study.study_account import SHARE

Format = Literal["csv", "json", "html", "python", "receipt"]


class Charged(View):
    """What was charged for a release."""

    epsilon: float | None = Field(description="null: unbounded")
    delta: float


class CellView(View):
    """One number with its 95% interval; what is not finite is null."""

    label: str
    group: str = Field(default="", description="the part of the label that names a group")
    rank: float | None = Field(default=None, description="of a quantile: the share of the rows below it")
    value: float | None
    raw: float | None = Field(description="unbiased, before answers are made consistent; counts may be negative")
    error: float | None = Field(description="the truth is within this of the value in 95 cases out of 100")
    lower: float | None
    upper: float | None
    lower_at_once: float | None = Field(
        default=None, description="of an interval that holds for all numbers of the release at once"
    )
    upper_at_once: float | None = None
    standard_error: float | None


class AnswerView(View):
    """The answer to one statistic; of very many cells, the first ones."""

    name: str
    cells: list[CellView]
    total: int = Field(description="how many cells there are; downloads have all of them")
    note: str | None
    counts: str = Field(default="rows", description="what its numbers count: rows or people, and how much of each unit")


class ReleaseView(View):
    """A release: its state, its cost and its answers."""

    request_id: str = Field(description="the full one, as the ledger has it: owner:request_id")
    state: Literal["queued", "running", "released", "forfeited", "refused", "failed"]
    progress: float
    error: ErrorBody | None
    dataset: str
    owner: str
    created: str = Field(description="UTC, ISO 8601")
    charged: Charged | None
    answers: list[AnswerView] | None
    about: str | None = Field(description="which rows the numbers are about, where that is not every row")
    warnings: list[str] = Field(default_factory=list, description="why it gives little protection, if so")
    numbers: int | None = Field(
        default=None,
        description="how many numbers lie in their `at_once` intervals together, 95 times in 100",
    )
    receipt: str | None = Field(
        description="the text of the receipt, to be kept as it is: it holds numbers too long for a double"
    )
    sentence: str


class ReleaseList(View):
    """The newest releases; their answers are at their own address."""

    releases: list[ReleaseView]


RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")]


class TableView(BaseModel):
    """Whether a table has other rows than when a release of it was charged; null where that is not known."""

    model_config = ConfigDict(extra="forbid")
    request_id: str
    changed: bool | None
    sentence: str = Field(description="what a curator should know, with both options; empty if the table is unchanged")


class ReleaseRequest(BaseModel):
    """What to release: a saved plan, a draft or an approved request, under a name that is charged once."""

    model_config = ConfigDict(extra="forbid", strict=True)
    plan: Annotated[str, Field(max_length=100)] | None = Field(default=None, description="the id of a saved plan")
    draft: Draft | None = None
    request: Annotated[int, Field(ge=1, le=2**62)] | None = Field(
        default=None, description="the number of a request of yours: its plan, as it was approved"
    )
    request_id: RequestId = Field(description="chosen by the client, once for each request: a retry repeats it")
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = Field(
        default=2.0, description="seconds to wait for the answer before 202 is given"
    )
    confirmed_epsilon: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None,
        description="what the plan was seen to cost (cost.upper); if it costs more by now, it is refused",
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> ReleaseRequest:
        if [self.plan, self.draft, self.request].count(None) != 2:
            raise ValueError("one of plan, draft and request must be given, and not two")
        return self


class RowCountRequest(BaseModel):
    """A count of the rows, under a name that makes sure it is charged once."""

    model_config = ConfigDict(extra="forbid", strict=True)
    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each request: a retry repeats it"
    )
    share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = Field(
        default=SHARE, description="of the whole budget, or of your whole grant, that it may cost"
    )
    fresh: bool = Field(default=False, description="count and pay again, even if the rows were counted before")
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = Field(
        default=2.0, description="seconds to wait for the answer before 202 is given"
    )
    confirmed_epsilon: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="what it was seen to cost; if it costs more by now, it is refused"
    )


class RowCountView(BaseModel):
    """How many rows were counted, with the ends of the 95% interval; null until they are."""

    model_config = ConfigDict(extra="forbid")
    dataset: str
    state: str = Field(description="queued, running or released")
    progress: float
    rows: float | None = None
    lower: float | None = None
    upper: float | None = None
    confidence: float = 0.95
    counts: str = Field(default="rows", description="what was counted: rows, or some rows of each unit")
    scale: float | None = Field(default=None, description="of its discrete Laplace noise")
    epsilon: float | None = Field(default=None, description="what the count has cost, once")
    request_id: str | None = Field(default=None, description="the name of its charge in the ledger")
