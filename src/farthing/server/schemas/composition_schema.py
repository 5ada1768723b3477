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


class FixedAsked(BaseModel):
    """Parameters that are fixed before the first answer: `count` times the same epsilon."""

    model_config = _STRICT
    epsilon: Annotated[FiniteFloat, Field(ge=0.01, le=5)]
    count: Annotated[int, Field(ge=1, le=50)]


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
    fixed: FixedAsked | None = None


class RivalsAsked(BaseModel):
    """The budget under which strategies play many games."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"epsilon": 1.0}]})
    epsilon: Annotated[FiniteFloat, Field(ge=0.05, le=10)] = 1.0
    delta: Annotated[FiniteFloat, Field(ge=1e-15, le=0.5)] = 0.01
    fixed: FixedAsked | None = None


class RivalView(BaseModel):
    """One strategy: its share of right guesses, and the part of delta that its games used, with a standard error."""

    name: str
    right: float
    delta_reached: float
    standard_error: float


class RivalsView(BaseModel):
    """Strategies beside what bounds all of them on average."""

    games: int
    right_at_most: float
    delta: float
    rivals: list[RivalView]


_Share = Annotated[
    str, Field(max_length=40, pattern=r"^([0-9]{1,30}/[0-9]{1,9}|[0-9]{0,20}\.?[0-9]{1,20}([eE]-[0-9]{1,2})?)$")
]
_Shares = Annotated[list[_Share], Field(min_length=1, max_length=50)]


class PairAsked(BaseModel):
    """The distributions of a mechanism's answer for two neighbouring tables: decimals or fractions, as text."""

    model_config = _STRICT
    P: _Shares
    Q: _Shares


class ResponsePairAsked(BaseModel):
    """Randomized response that reveals its bit outright with probability delta."""

    model_config = _STRICT
    epsilon: Annotated[FiniteFloat, Field(ge=0, le=50)]
    delta: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0


class ComparedAsked(BaseModel):
    """Two mechanisms, by their distributions for two neighbouring tables."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={
            "examples": [{"first": {"epsilon": 1.0}, "second": {"P": ["0.6", "0.4"], "Q": ["0.4", "0.6"]}}]
        },
    )
    first: PairAsked | ResponsePairAsked
    second: PairAsked | ResponsePairAsked


class SharesView(BaseModel):
    """A row of a stochastic matrix, in fractions or decimals."""

    shares: list[str]


class SimulationView(BaseModel):
    """How one is made from the other: a row for each outcome; without rows, the sentence has a test that forbids it."""

    rows: list[SharesView]
    sentence: str


class ComparedView(BaseModel):
    """The lower boundaries of both regions, which lies inside which, and the processing both ways."""

    relation: Literal["equal", "second inside first", "first inside second", "neither"]
    regions: list[list[tuple[float, float]]]
    second_from_first: SimulationView
    first_from_second: SimulationView


class PartitionsAsked(BaseModel):
    """Whole numbers to be split into two parts of equal product."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"integers": [2, 3, 6]}]})
    integers: Annotated[list[Annotated[int, Field(ge=1, le=99)]], Field(min_length=1, max_length=10)]


class PartitionsView(BaseModel):
    """How many splits there are, and what the accountant was asked to find out."""

    partitions: int
    oracle_calls: int
    bits: int
    subsets: int
    epsilons: list[float]


class RoundView(BaseModel):
    """One charge: the answer (null if refused), its loss, all losses so far, what would still fit, what is spent."""

    answer: float | None
    loss: float
    total: float
    remaining: float
    spent: float


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
