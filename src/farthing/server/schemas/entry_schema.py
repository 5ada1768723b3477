"""Entries of the ledger, each with a sentence, as far as the caller may see them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from farthing.server.schemas.budget_schema import View


class EntryView(View):
    """One line of the ledger."""

    sequence: int
    kind: str
    dataset: str
    analyst: str | None
    actor: str
    when: str = Field(description="the writer's clock, UTC, ISO 8601")
    request_id: str | None
    epsilon: float | None = Field(description="what was charged, refused or set; null: nothing, or unbounded")
    delta: float | None
    state: str | None
    sentence: str


class EntriesView(View):
    """A page of entries; `next` is what to send as `since` for the next page, null at the end."""

    entries: list[EntryView]
    next: int | None


class TableVersion(View):
    """Which version of its table a release has read: 1 is the first that was charged for."""

    number: int
    source: str
    text: str


class ReleasedLine(View):
    """One release as the ledger has it."""

    request_id: str
    accounts: list[str] = Field(description="the accounts that paid")
    title: str
    statistics: list[str] = Field(description="their names; none of sessions and series")
    unit: str = Field(description="whom it protects")
    version: TableVersion | None = Field(description="null for analysts, and where nobody can tell")
    who: str
    when: str
    epsilon: float | None = Field(description="null: unbounded")
    delta: float
    kind: str | None = Field(
        description="release, series, session, synthetic table or rows; null where it was not made by this server"
    )
    dataset: str | None = Field(description="the dataset that it was made of, where this server made it")


class ReleasedView(View):
    """The last releases, the newest first."""

    releases: list[ReleasedLine]


class VerifiedView(View):
    """Whether the ledger was intact when it was last verified, and when that was."""

    ok: bool
    at: str


class LedgerView(View):
    """The ledger as a whole."""

    id: str
    entries: int
    verified: VerifiedView
    datasets: list[str]


class VerificationView(View):
    """The result of reading the whole ledger again."""

    ok: bool
    ledger_ok: bool = Field(description="whether the ledger is intact by itself, whatever the receipt says")
    entries: int
    problems: list[str]
    notes: list[str]
    at: str


class PointView(View):
    """How much was spent after an entry; null where that is unbounded."""

    sequence: int
    when: str
    spent: float | None
    total: float
    kind: str
    sentence: str


class BurnDownView(View):
    """How a budget or a grant was used, entry by entry."""

    dataset: str
    analyst: str | None
    total: float
    points: list[PointView]


class VerificationAsked(BaseModel):
    """A receipt that must be found in the ledger, if there is one."""

    model_config = ConfigDict(extra="forbid", strict=True)
    receipt: Annotated[str, Field(max_length=500_000)] | dict[str, Any] | None = Field(
        default=None,
        description="the text of a receipt's file; an object is accepted too, but programs that store numbers as "
        "doubles corrupt it",
    )
