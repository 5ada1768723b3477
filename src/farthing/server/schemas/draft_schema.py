"""Drafts: what a plan is asked for, in the words of a study.toml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MOST_STATISTICS = 200
MOST_EDGES = 10_000

PLAIN = r"^[^\x00-\x1f\x7f]*$"  # a database refuses the first of these, and people cannot see the others

DatasetName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
Whole = Annotated[int, Field(strict=True, ge=-(2**62), le=2**62)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1_000)]
ColumnName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=255)]
Names = Annotated[list[ColumnName], Field(min_length=1, max_length=100)]
Parts = Annotated[int, Field(strict=True, ge=1, le=MOST_EDGES)]
Edge = Whole | Number | Annotated[str, StringConstraints(strict=True, max_length=40)]
Edges = Annotated[list[Edge], Field(min_length=1, max_length=MOST_EDGES)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]
Epsilon = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
Expected = (
    Whole
    | Number
    | Annotated[list[Whole | Number], Field(max_length=MOST_EDGES)]
    | Annotated[dict[ColumnName, Number], Field(max_length=MOST_EDGES)]
)
Kind = Literal[
    "count", "sum", "mean", "variance", "std", "histogram", "quantile", "quantiles", "median", "cdf", "contingency",
    "ranges", "marginals", "linear_regression",
]  # fmt: skip


class Words(BaseModel):
    """A model of what is sent: unknown keys are refused, and what is left out stays out."""

    model_config = ConfigDict(extra="forbid")


class StatisticWords(Words):
    """One statistic, as an entry of [[statistics]] in a study.toml."""

    kind: Kind
    column: ColumnName | None = None
    columns: Names | None = None
    target: ColumnName | None = None
    features: Names | None = None
    by: ColumnName | Names | None = None
    where: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=2_000)] | None = None
    name: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] | None = None
    bins: Parts | Edges | Annotated[dict[ColumnName, Parts | Edges], Field(max_length=100)] | None = None
    ranges: (
        Annotated[list[Annotated[list[Edge], Field(min_length=2, max_length=2)]], Field(max_length=1_000)]
        | None
    ) = None
    probability: Share | None = None
    probabilities: Annotated[list[Share], Field(min_length=1, max_length=100)] | None = None
    way: Annotated[int, Field(strict=True, ge=1, le=10)] | None = None
    strategy: Annotated[str, StringConstraints(strict=True, max_length=40)] | None = None
    for_population: Annotated[bool, Field(strict=True)] | None = None
    rounded: Annotated[bool, Field(strict=True)] | None = None
    nonnegative: Annotated[bool, Field(strict=True)] | None = None
    weight: Annotated[float, Field(strict=True, ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None
    within: Annotated[float, Field(strict=True, gt=0, le=1e300, allow_inf_nan=False)] | None = None
    confidence: Share | None = None


class Draft(Words):
    """What a plan is asked for; nothing is spent by saying it."""

    dataset: DatasetName
    title: Annotated[str, StringConstraints(strict=True, max_length=200, pattern=PLAIN)] | None = None
    study: Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = None
    statistics: Annotated[list[StatisticWords], Field(min_length=1, max_length=MOST_STATISTICS)]
    expected: Annotated[dict[Text, Expected], Field(max_length=500)] = Field(
        default_factory=dict,
        description="known from elsewhere: rows, columns ([mean, standard deviation]), statistics by name",
    )
    epsilon: Epsilon | None = Field(None, description="what the plan may use; by default all that is left")
    reserve: Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)] | None = Field(
        None, description="how much of that is left unspent"
    )
    fit: Annotated[bool, Field(strict=True)] = Field(
        False, description="the least epsilon at which every `within` is met"
    )

    def words(self) -> dict[str, Any]:
        """As plain data, without what was left out."""
        return self.model_dump(exclude_none=True, exclude_defaults=False)


class ChangedDraft(Draft):
    """A draft that takes the place of the one of this version."""

    version: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]

    def draft(self) -> Draft:
        """The draft by itself."""
        return Draft.model_construct(
            _fields_set=self.model_fields_set - {"version"},
            **{name: getattr(self, name) for name in Draft.model_fields},
        )
