"""Sessions of questions as the page and scripts see them: price, promise, what is left, what was answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from farthing.numerics.digits import shown_up
from farthing.server.http.error_envelope import ErrorBody
from farthing.server.store.session_answers import Asked

if TYPE_CHECKING:
    from farthing.study.sessions.session_defaults import Column, Offer

MOST_CATEGORIES = 1_000  # that are shown of one column
DatasetName = Annotated[
    str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
]
_Edge = Annotated[FiniteFloat, Field(ge=-1e18, le=1e18)] | Annotated[str, Field(max_length=10)]
_Cut = Annotated[int, Field(ge=1, le=10_000)] | Annotated[list[_Edge], Field(max_length=10_001)]
_Name = Annotated[str, Field(min_length=1, max_length=255)]


class _View(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SessionAsked(BaseModel):
    """The session that somebody wants; only the dataset must be named."""

    model_config = ConfigDict(extra="forbid", strict=True)
    dataset: DatasetName
    alpha: Annotated[FiniteFloat, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="the error as a part of the rows; 0.05 if left out, or the least that can be kept",
    )
    queries: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=1_000, description="for how many questions together it is promised"
    )
    columns: Annotated[list[_Name], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="what questions may be about; as many as are comfortable if left out"
    )
    bins: Annotated[dict[_Name, _Cut], Field(max_length=100)] | None = Field(
        default=None, description="into how many cells, or at which edges, columns are cut"
    )
    rows: Annotated[int, Field(ge=1, le=2**53)] | None = Field(
        default=None,
        description="about how many rows there are; counted for a hundredth of epsilon if unknown",
    )
    epsilon: Annotated[FiniteFloat, Field(gt=0, le=1e6)] | None = Field(
        default=None, description="what the session may cost; all that is left if left out"
    )
    updates: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="how many answers to pay for; as many as fit if left out"
    )
    confidence: Annotated[FiniteFloat, Field(gt=0, lt=1)] = 0.95

    def words(self) -> dict[str, Any]:
        """What was wished for, without the dataset."""
        names = ("alpha", "queries", "columns", "bins", "rows", "epsilon", "updates", "confidence")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class SessionOpening(SessionAsked):
    """The same, to be paid for."""

    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each wish: a retry repeats it"
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
    question: Annotated[str, Field(min_length=1, max_length=20_000)] = Field(
        examples=["sex = 'M' and age < 30"]
    )


class ColumnView(_View):
    """A column that may be asked about. Where it is cut, questions keep to the edges."""

    name: str
    kind: Literal["integers", "reals", "categories", "flags", "dates"]
    lower: float | int | str | None
    upper: float | int | str | None
    categories: list[str | int | bool] | None
    edges: list[float | int | str] | None
    cells: int


class SessionPlanView(_View):
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
    caution: str | None


class QuoteView(SessionPlanView):
    """A price, before anything is paid."""

    rows_are_a_guess: bool
    columns: list[ColumnView]
    left_out: list[str] = Field(description="columns that were left out because nobody named them")
    notes: list[str]
    sentence: str


class AskedView(_View):
    """A question that was answered."""

    number: int
    question: str
    value: int
    error: int | None
    paid: bool
    sentence: str


class AnswerView(_View):
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


class SessionView(_View):
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


class SessionList(_View):
    """One's own sessions, the newest first."""

    sessions: list[SessionView]


def plan_view(plan: Any) -> dict[str, Any]:
    """The fields of a plan."""
    names = (
        "alpha",
        "queries",
        "updates",
        "epsilon",
        "delta",
        "error",
        "paid_error",
        "rows",
        "cells",
        "confidence",
    )
    return {
        **{name: getattr(plan, name) for name in names},
        "promise": _promise(plan),
        "caution": plan.caution,
    }


def quote_view(offer: Offer) -> QuoteView:
    """An offer in words and numbers."""
    notes = []
    if offer.guessed:
        notes.append(
            f"{offer.plan.rows:,} rows are a guess: how many there are is not public, and a hundredth of epsilon goes "
            "into counting them first. Say rows if you know about how many there are."
        )
    if offer.left_out:
        notes.append(
            f"Left out, because all columns together have too many combinations: {', '.join(offer.left_out)}. "
            "Name the columns you want instead."
        )
    updates = offer.plan.updates
    several = "1 answer" if updates == 1 else f"{updates:,} answers"
    return QuoteView(
        **plan_view(offer.plan),
        rows_are_a_guess=offer.guessed,
        columns=columns_view(offer.columns),
        left_out=list(offer.left_out),
        notes=notes,
        sentence=(
            f"Opening it costs epsilon {shown_up(offer.plan.epsilon, 3)}, once. {several} may be a surprise; "
            "all others are free."
        ),
    )


def columns_view(columns: Sequence[Column]) -> list[ColumnView]:
    """What may be asked about, from the schema alone."""
    return [_column(column) for column in columns]


def asked_view(one: Asked) -> AskedView:
    """A line of the history."""
    return AskedView(
        number=one.number,
        question=one.question,
        value=one.value,
        error=one.error,
        paid=one.paid,
        sentence=answer_sentence(one),
    )


def answer_sentence(one: Asked, repeated: bool = False) -> str:
    """An answer in words; what it took when it was first given is not taken again.

    >>> answer_sentence(Asked(1, "age < 30", "ab", 1200, 300, False, 0))
    'About 1,200 rows, give or take 300: this answer was free.'
    >>> answer_sentence(Asked(1, "age < 30", "ab", 1200, 300, True, 0), repeated=True)
    'About 1,200 rows, give or take 300: you asked this before, and the same answer is free.'
    """
    rows = "1 row" if one.value == 1 else f"{one.value:,} rows"
    cost = "it was a surprise and used up one update" if one.paid else "this answer was free"
    if repeated:
        cost = "you asked this before, and the same answer is free"
    return f"About {rows}, give or take {one.error or 0:,}: {cost}."


def state_sentence(state: str, left: int | None) -> str:
    """How a session stands, in words."""
    if state == "released":
        if left == 0:
            return "Its updates are used up: what was answered can be asked again, nothing else."
        return "It is open: ask."
    return {
        "queued": "It waits to be opened; nothing is charged yet.",
        "running": "It is being opened.",
        "forfeited": "It was charged and lost while it was being opened; what was paid stays spent.",
    }.get(state, "It was not opened, and nothing was charged for it.")


def _promise(plan: Any) -> str:
    return (
        f"Every answer is within {plan.error:,} of the true number of rows ({100 * plan.alpha:.3g}% of about "
        f"{plan.rows:,}), for {plan.queries:,} questions together, with confidence {plan.confidence:.4g}."
    )


def _column(column: Column) -> ColumnView:
    domain: Any = column.domain
    kind: Any = type(domain).__name__.lower()
    values = getattr(domain, "values", None)
    edges: Sequence[Any] | None = column.edges
    return ColumnView(
        name=column.column,
        kind=kind,
        lower=_plain(getattr(domain, "lower", None)),
        upper=_plain(getattr(domain, "upper", None)),
        categories=None if values is None else list(values[:MOST_CATEGORIES]),
        edges=None if edges is None else [_plain(edge) for edge in edges],
        cells=len(column),
    )


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def facts_plan(facts: Mapping[str, Any]) -> SessionPlanView:
    """The plan that a session was opened with, from what was recorded then."""
    from farthing.study.sessions.session_defaults import plan_of

    return SessionPlanView(**plan_view(plan_of(facts)))
