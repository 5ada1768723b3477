"""Launches from a Dataverse: what its link says, and which file it is about."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from farthing.server.schemas.budget_schema import View


class LaunchForm(BaseModel):
    """What the link of a Dataverse says."""

    model_config = ConfigDict(extra="forbid")

    callback: str = Field(max_length=6_000, description="the parameter `callback` of the link, as it is there")


class LaunchView(View):
    """The file on which farthing was launched."""

    dataverse: str
    dataset: str = Field(description="the persistent identifier of its dataset")
    url: str = Field(description="the page of the dataset")
    file: int = Field(description="the number of the file, beside which a release can be attached")
    name: str = Field(description="what the file is called; empty where the Dataverse does not say")
    restricted: bool | None
