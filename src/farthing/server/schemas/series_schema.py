"""Running series: what is sent to plan, open and continue them, and what is answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, StringConstraints

from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.budget_schema import View
from farthing.server.schemas.dataset_schema import PeriodName
from farthing.server.schemas.plan_schema import ColumnName, DatasetName, Words

MOST_STEPS = 1_200  # a hundred years of months, three years of days


class SeriesAsked(Words):
    """A running series to be planned: what is counted, and in which periods."""

    dataset: DatasetName
    date: ColumnName = Field(description="the column of dates that says in which period a row lies")
    steps: Annotated[int, Field(strict=True, ge=1, le=MOST_STEPS)] = Field(description="how many periods to pay for")
    every: Literal["day", "week", "month", "quarter", "year"] = "month"
    first: PeriodName | None = Field(
        None, description="such as 2026-01; the first within the declared bounds if left out"
    )
    where: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=20_000)] | None = Field(
        None, description="count the rows that meet this condition; all if left out"
    )
    by: Annotated[list[ColumnName], Field(min_length=1, max_length=5)] | None = Field(
        None, description="one series for each value of a column, or of several"
    )
    epsilon: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        None, description="what all steps together may cost; all that is left if left out"
    )
    append_only: Annotated[bool, Field(strict=True)] = Field(
        False, description="states that rows are only added to the table; the guarantee rests on it"
    )
    confidence: Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)] = 0.95
    on_request: Annotated[bool, Field(strict=True)] = Field(
        False, description="price it with the dataset's own budget, for a request, and not with your grant"
    )

    def plain(self) -> dict[str, Any]:
        """The request as plain data, without the dataset."""
        names = ("date", "steps", "every", "first", "where", "by", "epsilon", "append_only", "confidence")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class SeriesOpening(SeriesAsked):
    """A running series to be opened and paid for."""

    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each request: a retry repeats it"
    )
    wait: Annotated[FiniteFloat, Field(ge=0, le=30)] = Field(
        default=2.0, description="seconds to wait for the opening before 202 is given"
    )
    confirmed_epsilon: Annotated[FiniteFloat, Field(ge=0, le=1e9)] | None = Field(
        default=None, description="the price that was seen; if it costs more by now, it is refused"
    )


class SeriesUpdate(Words):
    """Which periods to release: all that are over, or those until one of them."""

    until: PeriodName | None = None


class PeriodErrors(View):
    """How far off the numbers of one period may be, at the confidence of the plan."""

    period: str
    count: float = Field(description="of the count of the period itself")
    total: float = Field(description="of the running total")
    separate: float = Field(description="of the total, if each were a release of its own at the same price")


class SeriesPlanView(View):
    """What a running series costs, and the error of every period, known before the first."""

    dataset: str
    series: list[str] = Field(description="the counts, one for each cell")
    every: str
    epsilon: float
    delta: float
    noise: Literal["laplace", "gaussian"]
    strategy: str
    append_only: bool
    confidence: float
    errors: list[PeriodErrors]
    sentences: list[str] = Field(description="the plan in words: price, errors, and what it rests on")
    warnings: list[str]


class SeriesCell(View):
    """The count of a period and the total so far, of one series."""

    label: str
    count: float
    count_error: float
    total: float
    total_error: float


class SeriesStepView(View):
    """What was released for one period."""

    period: str
    cells: list[SeriesCell]


class SeriesView(View):
    """A running series: how it was planned, what was released, and what comes next."""

    id: str
    state: Literal["queued", "running", "released", "forfeited", "refused", "failed"]
    progress: float
    error: ErrorBody | None
    dataset: str
    owner: str
    created: str
    plan: SeriesPlanView | None
    steps: list[SeriesStepView]
    next: str | None = Field(description="the first period that was not released yet")
    over: list[str] = Field(description="periods that are over and were not released yet")
    sentence: str


class SeriesLine(View):
    """A running series in a list."""

    id: str
    dataset: str
    owner: str
    created: str
    state: str
    sentence: str


class SeriesList(View):
    """Running series, the newest first."""

    series: list[SeriesLine]
