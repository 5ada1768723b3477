"""What an attacker can still do: regions of error rates, and epsilon on the way to k mechanisms."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat


class RegionsAsked(BaseModel):
    """k mechanisms of (epsilon, delta)-DP; `at_delta` is the delta of the whole at which epsilon is told."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"k": 30, "epsilon": 0.1, "delta": 0.001, "at_delta": 0.1}]},
    )
    k: Annotated[int, Field(ge=1, le=1_000)]
    epsilon: Annotated[FiniteFloat, Field(ge=0, le=50)]
    delta: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    at_delta: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 1e-6


class RegionView(BaseModel):
    """The lower boundary that a theorem proves: pairs of false-alarm and missed-detection rates."""

    theorem: Literal["basic", "advanced", "kov", "optimal"]
    points: list[tuple[float, float]]


class EpsilonsView(BaseModel):
    """Epsilon of k mechanisms under each theorem; null where it has no finite answer."""

    k: int
    basic: float | None
    advanced: float | None
    kov: float | None
    optimal: float | None


class RegionsView(BaseModel):
    """Boundaries for all k, and epsilons for some numbers from 1 to k."""

    regions: list[RegionView]
    epsilon_of: list[EpsilonsView]
