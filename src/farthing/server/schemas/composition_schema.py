"""What is composed, and what it costs: the optimum beside every theorem."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat


class RegionsAsked(BaseModel):
    """k mechanisms of (epsilon, delta)-DP; `at_delta` is the delta of the whole at which epsilon is given."""

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


MOST_CHARGES = 1_000
_STRICT = ConfigDict(extra="forbid", strict=True)

Count = Annotated[int, Field(ge=1, le=1_000_000, description="How many times.")]


class GuaranteeAsked(BaseModel):
    """Mechanisms of which only (epsilon, delta) is known."""

    model_config = _STRICT
    epsilon: Annotated[FiniteFloat, Field(ge=0, le=1e6)]
    delta: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    count: Count = 1


class NoiseAsked(BaseModel):
    """Noise of a known distribution; the multiplier is its scale divided by the sensitivity."""

    model_config = _STRICT
    noise: Literal["laplace", "gaussian"]
    multiplier: Annotated[FiniteFloat, Field(ge=1e-6, le=1e9)]
    count: Count = 1


class CompositionAsked(BaseModel):
    """Charges whose parameters are fixed in advance, and the delta of the whole."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"charges": [{"epsilon": 0.1, "count": 100}], "delta": 1e-6}]},
    )
    charges: Annotated[list[GuaranteeAsked | NoiseAsked], Field(min_length=1, max_length=MOST_CHARGES)]
    delta: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 1e-6


class OptimumView(BaseModel):
    """A proven interval; null where no finite epsilon exists."""

    lower: float | None
    upper: float | None


class TheoremView(BaseModel):
    """One theorem's epsilon (null if it has no answer here) and how much more that is than the optimum."""

    name: str
    epsilon: float | None
    waste_percent: float | None
    source: str
    remark: str


class CompositionView(BaseModel):
    """What charges cost together: the optimum, and every theorem beside it."""

    k: int
    delta: float
    optimal: OptimumView
    theorems: list[TheoremView]
    engine: str
    sentence: str
    notes: list[str]


class ResponseAsked(BaseModel):
    """A randomized response about the secret bit."""

    model_config = _STRICT
    epsilon: Annotated[FiniteFloat, Field(gt=0, le=50)]


class NoisyBitAsked(BaseModel):
    """The secret bit with noise added to it."""

    model_config = _STRICT
    noise: Literal["laplace", "gaussian"]
    multiplier: Annotated[FiniteFloat, Field(ge=0.01, le=1e6)]


class PlayAsked(BaseModel):
    """A game: its budget, the charges in the order they were chosen, and the seed of the made-up secret."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"charges": [{"epsilon": 0.2}, {"noise": "gaussian", "multiplier": 4.0}]}]},
    )
    epsilon: Annotated[FiniteFloat, Field(gt=0, le=50)] = 1.0
    delta: Annotated[FiniteFloat, Field(ge=1e-15, le=0.5)] = 0.01
    charges: Annotated[list[ResponseAsked | NoisyBitAsked], Field(max_length=200)] = Field(default_factory=list)
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    finished: bool = False


class RoundView(BaseModel):
    """One charge: the answer (null if the filter refused), its loss, the losses so far, and what would still fit."""

    answer: float | None
    loss: float
    total: float
    remaining: float


class OutcomeView(BaseModel):
    """The end: the secret, the better guess, and what the answers gave away."""

    secret: int
    guess: int
    right: bool
    loss: float
    right_at_most: float
    sentence: str


class PlayView(BaseModel):
    """The game so far; `outcome` is null until it is finished."""

    seed: int
    epsilon: float
    delta: float
    rounds: list[RoundView]
    total: float
    remaining: float
    outcome: OutcomeView | None
