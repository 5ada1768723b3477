"""Drafts of plans in the words of a study.toml, the plans they become, and the studies that are folders of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from farthing.server.http.error_envelope import ErrorBody
from farthing.server.schemas.budget_schema import BudgetView, View

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
Title = Annotated[str, StringConstraints(strict=True, max_length=200, pattern=PLAIN)]
Sentence = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=1_000, strip_whitespace=True, pattern=PLAIN)
]
Expected = (
    Whole
    | Number
    | Annotated[list[Whole | Number], Field(max_length=MOST_EDGES)]
    | Annotated[dict[ColumnName, Number], Field(max_length=MOST_EDGES)]
)
Kind = Literal[
    "count", "sum", "mean", "variance", "std", "histogram", "top", "quantile", "quantiles", "median", "cdf",
    "contingency", "ranges", "marginals", "linear_regression", "count_distinct",
]  # fmt: skip


UnitLimit = Annotated[int, Field(strict=True, ge=1, le=10**6)]


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
        Annotated[list[Annotated[list[Edge], Field(min_length=2, max_length=2)]], Field(max_length=1_000)] | None
    ) = None
    probability: Share | None = None
    probabilities: Annotated[list[Share], Field(min_length=1, max_length=100)] | None = None
    most: Annotated[int, Field(strict=True, ge=1, le=10_000)] | None = None
    way: Annotated[int, Field(strict=True, ge=1, le=10)] | None = None
    strategy: Annotated[str, StringConstraints(strict=True, max_length=40)] | None = None
    for_population: Annotated[bool, Field(strict=True)] | None = None
    rounded: Annotated[bool, Field(strict=True)] | None = None
    nonnegative: Annotated[bool, Field(strict=True)] | None = None
    of: Literal["rows", "people"] | None = Field(None, description="what is counted; people count once in a cell")
    max_cells: UnitLimit | None = Field(None, description="in how many cells one unit counts")
    rows_per_cell: UnitLimit | None = Field(None, description="how many rows of one unit count in a cell")
    max_rows: UnitLimit | None = Field(
        None, description="how many rows of one unit count in all, in place of the dataset's max_rows"
    )
    weight: Annotated[float, Field(strict=True, ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None
    within: Annotated[float, Field(strict=True, gt=0, le=1e300, allow_inf_nan=False)] | None = None
    confidence: Share | None = None


class Draft(Words):
    """The statistics and controls of a plan; sending it spends nothing."""

    dataset: DatasetName
    title: Title | None = None
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

    on_request: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="plan for a request: what a curator is to approve may cost more than your grant has"
    )

    def plain(self) -> dict[str, Any]:
        """As plain data, without what was left out."""
        return self.model_dump(exclude_none=True, exclude_defaults=False)


class ChangedDraft(Draft):
    """A draft that replaces the saved one, if that still has this version."""

    version: Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]

    def draft(self) -> Draft:
        """The draft without what belongs to saving it."""
        return Draft.model_construct(
            _fields_set=self.model_fields_set - {"version"},
            **{name: getattr(self, name) for name in Draft.model_fields},
        )


class CostView(View):
    """The epsilon of the whole plan: an interval that is proven, or an estimate."""

    lower: float
    upper: float
    proven: bool


class TheoremView(View):
    """What one composition theorem says the same noises cost."""

    key: Literal["basic", "advanced", "kov", "optimal", "own"]
    theorem: str
    epsilon: float | None
    remark: str


class PriceView(View):
    """The same noises under each theorem; `own` is what is charged."""

    basic: float | None
    advanced: float | None
    kov: float | None
    optimal: float | None
    own: float | None
    sentence: str
    adaptive: float | None = Field(
        default=None,
        description="what the same noises cost if each measurement is chosen after seeing the answers before it; "
        "null in an estimate, or where it takes too long",
    )
    adaptive_sentence: str = ""
    gain: bool = Field(description="whether composing costs less than adding up, by a percent or more")
    rows: list[TheoremView]


class TableErrorView(View):
    """The error against the whole table of a number that is computed from a sample of it."""

    standard_error: float | None = Field(description="noise and draw together")
    error: float | None = Field(description="within this of the table's value in about 95 cases out of 100")
    times: float | None = Field(description="what the released number is to be multiplied by; 1 for means and shares")
    rests_on: list[str]
    sentence: str


class StatisticView(View):
    """The predictions for one statistic; null where nothing can be predicted."""

    name: str
    kind: str
    mechanism: str
    epsilon: float | None = Field(description="what it would cost alone")
    cells: int
    counts: str = Field(default="rows", description="what its numbers count: rows or people, and how much of each unit")
    unit_of_error: str
    standard_error: float | None
    error: float | None = Field(description="within this of the truth in 95 cases out of 100")
    shown_error: str = Field(description="the error as a table shows it: never rounded down, with what it rests on")
    error_at_best: float | None = Field(description="the same in the best case of what is not expected")
    even_share: float | None = Field(
        default=None, description="the same error with an even share of the budget for every statistic by itself"
    )
    shown_even_share: str = Field(default="", description="the same as a table shows it")
    depends_on: str = Field(
        description="what the error depends on and is not expected; then `error` is for the worst case"
    )
    error_at_once: float | None = Field(
        description="all of its cells are within this together in at least 95 cases out of 100; null for an estimate"
    )
    worst_error: float | None = Field(
        description="the error of the worst cell as it is released, to which `within` applies; null for an estimate"
    )
    error_percent: float | None = Field(description="of what `percent_of` says; null where nobody said what to expect")
    percent_of: str | None = Field(
        default=None, description="what `error_percent` is a share of: the expected or the assumed value"
    )
    reference: float | None = Field(description="what somebody said is expected of it")
    whisker: list[float] | None
    sentence: str
    of_table: TableErrorView | None = Field(
        default=None, description="the error against the whole table, where a sample of it is read"
    )
    weight: float
    within: float | None
    confidence: float
    required: str | None = Field(
        default=None, description="what `within` says, how often a release keeps it and what that rests on"
    )
    rests_on: list[str] = Field(
        default_factory=list,
        description="what a required error rests on; empty where it holds whatever the data",
    )
    note: str | None
    labels: list[str] = Field(description="the first 50 cells")
    errors: list[float | None] = Field(description="of the first 50 cells")


class AtOnceView(View):
    """The errors that hold for all numbers of the plan at once."""

    confidence: float
    numbers: int
    level: float = Field(description="the confidence of each number by itself")
    exact: bool = Field(description="whether the noises are independent; else the errors are an upper bound")
    errors: dict[str, float | None]
    conditions: dict[str, str] = Field(default={}, description="what the errors of some statistics rest on")
    sentence: str


class BarView(View):
    """The budget in parts that add up to it, in epsilon."""

    total: float
    spent: float
    waiting: float
    withheld: float
    plan: float
    free: float
    reach: float = Field(description="what a plan of this kind of noise could use: of what remains, or of the room")


class BeliefView(View):
    """How sure somebody can be afterwards that a person is in the table."""

    prior: float
    posterior_upper: float


class RiskView(View):
    """What the plan can do to beliefs about one person."""

    odds_sentence: str
    factor: float | None
    table: list[BeliefView]


class CountedView(View):
    """A private count of the rows; errors are predicted for `lower`, the low end of its 95% interval."""

    rows: int
    lower: int
    upper: int


class PlanView(View):
    """A plan; `error` says why there are no numbers, where a saved draft cannot be planned any more."""

    id: str | None = None
    version: int | None = None
    owner: str | None = None
    dataset: str
    epsilon: float | None
    delta: float | None
    draft: dict[str, Any]
    cost: CostView | None
    price: PriceView | None
    statistics: list[StatisticView]
    at_once: AtOnceView | None = None
    budget: BudgetView
    bar: BarView | None
    risk: RiskView | None
    assumed_rows: int | None = Field(
        default=None,
        description="the number of rows that errors are for, where nobody said how many there are",
    )
    sized: list[str] = Field(
        default_factory=list, description="the statistics whose errors depend on the number of rows"
    )
    counting: float | None = Field(
        default=None,
        description="the epsilon for which the rows can be counted first, where their number is assumed",
    )
    counted: CountedView | None = Field(default=None, description="the private count that the errors are for")
    opening: str | None = Field(default=None, description="the same in words: what a plan says first")
    assumptions: list[str] = Field(description="what the errors rest on, with what to say in Python instead")
    assumed: list[str] = Field(default_factory=list, description="the same without what to say instead")
    notes: list[str]
    warnings: list[str] = Field(default_factory=list, description="why the budget gives little protection")
    about: str | None = Field(default=None, description="which rows the numbers are about, where that is not every row")
    withheld: str | None = Field(
        default=None, description="which numbers may be withheld, where a policy asks for so many people in a cell"
    )
    request_id: str | None = Field(
        default=None,
        description="a digest of what is asked; releases of the same request under it are charged once",
    )
    finds: str | None = Field(
        default=None, description="the unknown column whose values its release finds and counts at once, if it does"
    )
    released: str | None = Field(
        default=None, description="the full request id of an earlier release of the same request"
    )
    released_with_more: str | None = Field(
        default=None,
        description="the same with further controls; a plan that no longer fits the budget is shown as it was",
    )
    by_request: bool = Field(
        default=False, description="whether a curator has to approve it, unless a policy covers it"
    )
    code: str
    toml: str
    error: ErrorBody | None = None


class PlanLine(View):
    """A saved draft in the list."""

    id: str
    version: int
    owner: str
    dataset: str
    study: str | None
    title: str | None
    statistics: int
    created: int
    changed: int


class PlansView(View):
    """All saved drafts of plans."""

    plans: list[PlanLine]


class StudyWords(Words):
    """A study to be made."""

    dataset: DatasetName
    title: Annotated[
        str,
        StringConstraints(strict=True, min_length=1, max_length=200, strip_whitespace=True, pattern=PLAIN),
    ]


class StudyView(View):
    """A study, and the ids of its drafts."""

    id: str
    owner: str
    dataset: str
    title: str
    created: int
    plans: list[str]


class StudiesView(View):
    """All studies that the caller may see."""

    studies: list[StudyView]
