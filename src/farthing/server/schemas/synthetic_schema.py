"""Synthetic tables: what is sent to price and make one, and what is answered."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.budget_schema import View
from farthing.server.schemas.plan_schema import ColumnName, DatasetName, Words

_ReleaseId = Annotated[str, Field(pattern=r"^([a-z0-9][a-z0-9._-]{0,63}:)?[A-Za-z0-9._-]{1,100}$", max_length=170)]
_Edge = Annotated[FiniteFloat, Field(ge=-1e18, le=1e18)] | Annotated[str, Field(max_length=10)]
_Cut = Annotated[int, Field(strict=True, ge=1, le=10_000)] | Annotated[list[_Edge], Field(max_length=10_001)]


class SyntheticAsked(Words):
    """A synthetic table to be priced; only the dataset is required."""

    dataset: DatasetName
    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=100)] | None = Field(
        None, description="all of the schema if left out"
    )
    bins: Annotated[dict[ColumnName, _Cut], Field(max_length=100)] | None = Field(
        None, description="into how many cells, or at which edges, columns are cut"
    )
    missing: Annotated[bool, Field(strict=True)] | Annotated[list[ColumnName], Field(max_length=100)] = Field(
        True, description="which columns may lack values: all, none, or these"
    )
    known: Annotated[list[_ReleaseId], Field(max_length=20)] | None = Field(
        None, description="request ids of earlier releases, whose answers are used free of charge"
    )
    epsilon: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        None, description="what the table may cost; all that is left if left out"
    )
    on_request: Annotated[bool, Field(strict=True)] = Field(
        False, description="price it with the dataset's own budget, for a request, and not with your grant"
    )

    def plain(self) -> dict[str, Any]:
        """The request as plain data, without the dataset."""
        names = ("columns", "bins", "missing", "known", "epsilon")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class SyntheticMaking(SyntheticAsked):
    """A synthetic table to be made and paid for."""

    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each table: a retry repeats it"
    )
    wait: Annotated[FiniteFloat, Field(ge=0, le=30)] = Field(
        default=2.0, description="seconds to wait for the table before 202 is given"
    )
    confirmed_epsilon: Annotated[FiniteFloat, Field(ge=0, le=1e9)] | None = Field(
        default=None, description="the price that was seen; if it costs more by now, it is refused"
    )


class SyntheticColumn(View):
    """A column of a synthetic table, and into how many cells it is cut."""

    name: str
    cells: int
    binned: bool = Field(description="whether a cell holds several values, drawn uniformly within it")
    missing: bool


class SyntheticPlanView(View):
    """What a synthetic table costs, and how it is measured."""

    dataset: str
    epsilon: float
    delta: float
    columns: list[SyntheticColumn]
    sentences: list[str] = Field(description="the plan in words")
    warnings: list[str]
    request_id: str = Field(description="a digest of what is asked; a table is made and charged under it once")
    made: bool = Field(description="whether you have made this table already: then it costs nothing")


class SyntheticQuality(View):
    """How far off one column or one pair of columns is, as a share of the rows."""

    columns: list[str]
    error: float
    at_most: float = Field(description="with the noise of the check allowed for")
    verdict: Literal["good", "rough", "not vouched for"]
    measured: bool


class SyntheticView(View):
    """A synthetic table: its state, its price and how good it is; the rows are downloaded."""

    id: str
    state: Literal["queued", "running", "released", "forfeited", "refused", "failed"]
    progress: float
    error: ErrorBody | None
    dataset: str
    owner: str
    created: str
    epsilon: float | None
    delta: float | None
    rows: int | None = Field(description="how many rows were measured, which a download has unless it says otherwise")
    columns: list[str]
    quality: list[SyntheticQuality] = Field(description="columns, then pairs of columns; empty until it is made")
    warnings: list[str]
    receipt: str | None
    sentence: str


class SyntheticLine(View):
    """A synthetic table in a list."""

    id: str
    dataset: str
    owner: str
    created: str
    state: str
    sentence: str


class SyntheticList(View):
    """Synthetic tables, the newest first."""

    tables: list[SyntheticLine]
