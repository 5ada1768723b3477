"""Requests and policies: what is sent to ask and to decide, and what is answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from farthing.server.schemas.budget_schema import BudgetView, View
from farthing.server.schemas.plan_schema import ColumnName, Draft, Kind, Sentence, Title, Words
from farthing.server.schemas.series_schema import SeriesAsked
from farthing.server.schemas.session_schema import SessionAsked
from farthing.server.schemas.synthetic_schema import SyntheticAsked

Day = Annotated[str, StringConstraints(strict=True, pattern=r"^\d{4}-\d{2}-\d{2}$")]
RequestKind = Literal["plan", "session", "series", "table"]
State = Literal["open", "approved", "declined", "withdrawn", "used", "expired"]


class NewRequest(Words):
    """What a curator is asked to allow: the plan of a draft, a query session, a running series or a synthetic table."""

    draft: Draft | None = None
    session: SessionAsked | None = Field(default=None, description="a query session, with its epsilon")
    series: SeriesAsked | None = Field(default=None, description="a running series, with its epsilon")
    table: SyntheticAsked | None = Field(default=None, description="a synthetic table, with its epsilon")
    title: Title | None = Field(default=None, description="a few words to call it by; a draft may have its own")
    purpose: Sentence = Field(description="what the answers are for; the curator reads it")

    @model_validator(mode="after")
    def _one_of_four(self) -> NewRequest:
        if [self.draft, self.session, self.series, self.table].count(None) != 3:
            raise ValueError("one of draft, session, series and table must be given, and not two")
        return self


class Approval(Words):
    """Yes, to the plan as it was asked for."""

    version: Annotated[int, Field(strict=True, ge=1)] = Field(default=1, description="the version that was looked at")
    expires: Day | None = Field(default=None, description="the last day, UTC; 90 days from now by default")


class Refusal(Words):
    """No, or no longer, and why."""

    reason: Sentence


class ChangedRequest(Words):
    """Another plan in its place, and why."""

    draft: Draft
    reason: Sentence
    expires: Day | None = Field(default=None, description="the last day, UTC; 90 days from now by default")


class PolicyWords(Words):
    """What an analyst may spend without asking."""

    epsilon: Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)] = Field(
        description="in every period, as the plain sum of what is charged; 0 ends the policy"
    )
    delta: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] = 0.0
    per: Literal["week", "month", "quarter", "year"] = "quarter"
    expires: Day | None = Field(default=None, description="the last day, UTC; a year from now by default")
    statistics: Annotated[list[Kind], Field(min_length=1, max_length=20)] | None = Field(
        default=None, description="the kinds that are allowed; all by default"
    )
    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=1_000)] | None = Field(
        default=None, description="the columns that may be read; all by default"
    )
    cell: Annotated[int, Field(strict=True, ge=0, le=10**12)] = Field(
        default=0, description="cells of fewer people, by the low end of a released count, are withheld"
    )


class StepView(View):
    """One step of a request."""

    sequence: int = Field(description="the number of its entry in the ledger")
    kind: str
    actor: str
    when: str = Field(description="UTC, ISO 8601")
    reason: str


class RequestLine(View):
    """A request in the list."""

    id: int
    dataset: str
    analyst: str
    title: str
    purpose: str
    state: State
    version: int
    epsilon: float = Field(description="what it may cost")
    delta: float
    created: str = Field(description="UTC, ISO 8601")
    expires: str | None = Field(description="until when an approval holds")
    reason: str = Field(description="why it was changed or declined")
    name: str = Field(description="the request id to release it under: that of its plan")
    request_id: str | None = Field(description="the full request id of its release, once it was charged")


class RequestsView(View):
    """The requests that the caller may see, the newest first."""

    requests: list[RequestLine]


class AskedStatistic(View):
    """One statistic of a request, with the error that was predicted when it was asked for."""

    name: str
    cells: int
    error: float | None
    shown_error: str
    sentence: str


class HistoryView(View):
    """What an analyst asked for and spent so far."""

    analyst: str
    requests: dict[str, int]
    charges: dict[str, int] = Field(description="by what covered them: grant, request or policy")
    epsilon: dict[str, float | None]
    refused: int
    sentence: str


class RequestView(RequestLine):
    """A request with everything that a decision needs."""

    statistics: list[AskedStatistic]
    odds: str = Field(description="what the release can do to somebody's belief that a person is in the table")
    assumptions: list[str]
    kind: RequestKind = Field(description="what is asked for")
    words: str = Field(description="a session, a series or a synthetic table in words; empty for a plan")
    draft: dict[str, Any] = Field(
        description="what asks for the same: a plan, to be changed and sent back, or what opens a session or a series"
    )
    budget: BudgetView | None = Field(description="the dataset's own budget now; not for analysts")
    history: HistoryView
    steps: list[StepView]


class PolicyView(View):
    """A policy, and what is left of it in this period."""

    dataset: str
    analyst: str
    epsilon: float
    delta: float
    per: str
    expires: str
    statistics: list[str] | None
    columns: list[str] | None
    cell: int
    left: float
    sentence: str


class PoliciesView(View):
    """The policies that the caller may see."""

    policies: list[PolicyView]
