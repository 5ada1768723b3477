"""Query sessions as the page and scripts see them: price, promise, what is left, what was answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.budget_schema import View

DatasetName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
_Edge = Annotated[FiniteFloat, Field(ge=-1e18, le=1e18)] | Annotated[str, Field(max_length=10)]
_Cut = Annotated[int, Field(ge=1, le=10_000)] | Annotated[list[_Edge], Field(max_length=10_001)]
_Name = Annotated[str, Field(min_length=1, max_length=255)]


class SessionAsked(BaseModel):
    """A session to be priced; only the dataset is required."""

    model_config = ConfigDict(extra="forbid", strict=True)
    dataset: DatasetName
    alpha: Annotated[FiniteFloat, Field(gt=0, lt=1)] | Literal["guaranteed"] | None = Field(
        default=None,
        description=(
            "the error as a fraction of the rows; 0.05 if left out, or the least that can be kept. `guaranteed` is the "
            "least at which no questions can use up the updates early"
        ),
    )
    queries: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=1_000, description="for how many questions together it is promised"
    )
    columns: Annotated[list[_Name], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="what questions may be about; as many as can be planned quickly if left out"
    )
    bins: Annotated[dict[_Name, _Cut], Field(max_length=100)] | None = Field(
        default=None, description="into how many cells, or at which edges, columns are cut"
    )
    rows: Annotated[int, Field(ge=1, le=2**53)] | None = Field(
        default=None,
        description="roughly how many rows there are; counted for a hundredth of epsilon if unknown",
    )
    epsilon: Annotated[FiniteFloat, Field(gt=0, le=1e6)] | None = Field(
        default=None, description="what the session may cost; all that is left if left out"
    )
    updates: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="how many answers to pay for; as many as fit if left out"
    )
    confidence: Annotated[FiniteFloat, Field(gt=0, lt=1)] = 0.95
    on_request: bool = Field(
        False, description="price it with the dataset's own budget, for a request, and not with your grant"
    )

    def plain(self) -> dict[str, Any]:
        """The request as plain data, without the dataset."""
        names = ("alpha", "queries", "columns", "bins", "rows", "epsilon", "updates", "confidence")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class SessionOpening(SessionAsked):
    """A session to be opened and paid for."""

    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each request: a retry repeats it"
    )
    wait: Annotated[FiniteFloat, Field(ge=0, le=30)] = Field(
        default=2.0, description="seconds to wait for the opening before 202 is given"
    )
    confirmed_epsilon: Annotated[FiniteFloat, Field(ge=0, le=1e9)] | None = Field(
        default=None, description="the price that was seen; if it costs more by now, it is refused"
    )


class QuestionAsked(BaseModel):
    """A condition on a row: how many rows meet it?"""

    model_config = ConfigDict(extra="forbid", strict=True)
    question: Annotated[str, Field(min_length=1, max_length=20_000)] = Field(examples=["sex = 'M' and age < 30"])


class ColumnView(View):
    """A column that may be asked about. Where it is cut, questions keep to the edges."""

    name: str
    kind: Literal["integers", "reals", "categories", "flags", "dates"]
    lower: float | int | str | None
    upper: float | int | str | None
    categories: list[str | int | bool] | None
    edges: list[float | int | str] | None
    cells: int


class SessionPlanView(View):
    """What a session costs and promises; all fixed when it is opened."""

    alpha: float
    queries: int
    updates: int
    epsilon: float
    delta: float
    error: int
    paid_error: int
    rows: int
    cells: int
    confidence: float
    promise: str
    guarantee: str | None = Field(description="of a guaranteed session: what its updates suffice for")
    caution: str | None


class QuoteView(SessionPlanView):
    """A price, before anything is paid."""

    rows_are_a_guess: bool
    columns: list[ColumnView]
    left_out: list[str] = Field(description="columns that were left out because nobody named them")
    notes: list[str]
    sentence: str


class AskedView(View):
    """A question that was answered."""

    number: int
    question: str
    value: int
    error: int | None
    paid: bool
    sentence: str


class AnswerView(View):
    """How many rows meet the condition, within `error`; `paid` says that it used up an update."""

    question: str
    value: int
    error: int | None
    paid: bool
    sentence: str
    number: int
    repeated: bool
    updates_left: int
    questions_left: int


class SessionView(View):
    """A session: how far it is, what is left of it, what was answered."""

    id: str
    state: Literal["queued", "running", "released", "forfeited", "refused", "failed"] = Field(
        description="released: open for questions"
    )
    progress: float
    error: ErrorBody | None
    dataset: str
    created: str
    plan: SessionPlanView | None
    updates_left: int | None
    questions_left: int | None
    asked: int = Field(description="how many questions were answered")
    history: list[AskedView] = Field(description="the last ones, oldest first")
    columns: list[ColumnView]
    sentence: str


class SessionList(View):
    """Your own sessions, the newest first."""

    sessions: list[SessionView]
