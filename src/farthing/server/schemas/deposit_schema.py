"""Deposits: what a curator asks for, how far it is, and where this server may deposit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.budget_schema import View
from farthing.server.schemas.publication_schema import FormFieldView, PublicationForm

_Number = Annotated[int, Field(ge=1, le=2**53)]


class DepositForm(BaseModel):
    """A publication, and where it goes."""

    model_config = ConfigDict(extra="forbid")

    publication: PublicationForm
    dataverse: str = Field(max_length=500, description="the address of a Dataverse that the server may deposit in")
    collection: str = Field(max_length=100, description="the alias of the collection")
    token: SecretStr = Field(
        default=SecretStr(""),
        max_length=200,
        description="your API token there, for this request only; if empty, the server's own, if it has one",
    )
    dataset: str = Field(
        default="", max_length=200, description="a dataset that gets a new version; empty makes a new dataset"
    )
    original: _Number | None = Field(default=None, description="a restricted file beside which the release is attached")
    ingest: bool = Field(default=False, description="whether Dataverse reads the CSV tables")
    publish: Literal["", "minor", "major"] = Field(default="", description="empty leaves a draft")

    def plan(self) -> dict[str, Any]:
        """Where it goes and how, as plain data without the token."""
        return self.model_dump(include={"collection", "dataset", "original", "ingest", "publish"})


class DepositView(View):
    """How far a deposit is, and what was asked: the same request continues it."""

    dataverse: str
    state: Literal["running", "done", "published", "failed", "interrupted"]
    steps: list[str] = Field(description="what this attempt has done, in words")
    persistent_id: str | None = Field(description="the dataset, once there is one")
    url: str | None = Field(description="its page")
    error: ErrorBody | None
    publication: PublicationForm
    collection: str
    dataset: str
    original: int | None
    ingest: bool
    publish: str


class AllowedDataverse(View):
    """A Dataverse that the server may deposit in."""

    url: str
    has_token: bool = Field(description="whether the server has a token of its own")


class PublishingView(View):
    """What the form of a publication asks, and where this server may deposit."""

    fields: list[FormFieldView]
    dataverses: list[AllowedDataverse]
