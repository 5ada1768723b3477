"""What nobody knows about a table: what is sent to price and to run a search for it, and what was found."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from farthing.server.schemas.budget_schema import Amount, View
from farthing.server.schemas.plan_schema import ColumnName, Words

_Price = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
_Share = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]


class DiscoveryAsked(Words):
    """What is to be found; without anything, all that is declared as unknown."""

    columns: Annotated[list[ColumnName], Field(max_length=100)] = Field(
        default_factory=list, description="columns that are declared as unknown; empty: all of them"
    )
    epsilon: _Price | None = Field(
        None, description="what all of it may cost together; null: 5% of the budget, or of your grant, for each"
    )
    delta: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] | None = Field(
        None, description="of each search for values of text; null: the same share of delta"
    )
    share: _Share | None = Field(None, description="of the whole budget, for all of it together, in place of epsilon")
    rows_per_unit: Annotated[bool, Field(strict=True)] = Field(
        False, description="find how many rows units have, and so which share of the rows max_rows leaves out"
    )
    max_keys: Annotated[int, Field(strict=True, ge=1, le=10**6)] | None = Field(
        None, description="how many values of text one unit counts for; null: 4, or its rows where these are fewer"
    )
    confidence: _Share = Field(0.95, description="how often what is found keeps its word")
    fresh: Annotated[bool, Field(strict=True)] = Field(False, description="search and pay again for what was found")

    def plain(self) -> dict[str, Any]:
        """The request as plain data; what was left out stays out."""
        names = ("columns", "epsilon", "delta", "share", "rows_per_unit", "max_keys", "confidence", "fresh")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


class DiscoveryRequest(DiscoveryAsked):
    """Searches to be paid for, under a name that makes sure they are charged once."""

    request_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")] = Field(
        description="chosen by the client, once for each request: a retry repeats it"
    )
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = Field(
        2.0, description="seconds to wait for the answer before 202 is given"
    )
    confirmed_epsilon: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)] | None = Field(
        None, description="what it was seen to cost; if it costs more by now, it is refused"
    )


class FindingView(View):
    """What was found, and what was paid for it."""

    name: str = Field(description='the column, or "rows per unit"')
    kind: str = Field(description="number, whole number, date, text or rows")
    is_usable: bool = Field(description="false: nothing was found; that is paid for, too")
    sentence: str
    facts: dict[str, Any] = Field(description="all that was recorded: ends of a range, values, counts with noise")
    paid: Amount
    request_id: str = Field(description="the name of its charge in the ledger")


class UnknownView(View):
    """Something that is declared as unknown, and what was found of it."""

    name: str = Field(description='the column, or "rows per unit"')
    kind: str
    finding: FindingView | None = Field(description="null: not searched yet")


class SearchView(View):
    """One search with its price; what was found before costs nothing."""

    name: str
    epsilon: float
    delta: float
    prediction: str = Field(description="what will be known, in a sentence that holds whatever the rows are")
    finding: FindingView | None


class DiscoveryPlanView(View):
    """What would be searched, and what that costs; nothing is spent."""

    dataset: str
    searches: list[SearchView]
    epsilon: float
    delta: float
    sentence: str = Field(description="the plan as text")


class DiscoveryView(View):
    """How far the searches are, and what they have found."""

    dataset: str
    state: str = Field(description="queued, running or released")
    progress: float
    findings: list[FindingView]
