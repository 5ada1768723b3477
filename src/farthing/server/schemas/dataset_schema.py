"""Datasets as people declare and see them; of the table itself, never more than names and types of columns."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from farthing.server.schemas.budget_schema import Amount, BudgetView, View
from farthing.server.schemas.discovery_schema import UnknownView
from farthing.server.schemas.plan_schema import ColumnName, DatasetName, Epsilon, Number, Sentence, Whole, Words

MOST_COLUMNS = 500

PeriodName = Annotated[str, StringConstraints(strict=True, min_length=4, max_length=10, pattern=r"^[0-9A-Za-z-]+$")]

Bound = Whole | Number | Annotated[str, StringConstraints(strict=True, max_length=10)]
Category = Annotated[bool, Field(strict=True)] | Whole | Annotated[str, StringConstraints(max_length=1_000)]
MostRows = Annotated[int, Field(strict=True, ge=1, le=10**6)] | Literal["auto"]
SourceName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=500)]
TableName = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9_-]{1,64}$")]
TableColumn = Annotated[str, StringConstraints(strict=True, max_length=320, pattern=r"^[A-Za-z0-9_-]{1,64}\..+$")]


class ColumnWords(Words):
    """What a column may hold: a range, a list of categories, true and false, or something that is to be found."""

    range: Annotated[list[Bound], Field(min_length=2, max_length=2)] | None = Field(
        None, description="lowest and highest; dates as 2024-12-31"
    )
    real: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="numbers with fractions, where the source does not say"
    )
    categories: Annotated[list[Category], Field(min_length=1, max_length=10_000)] | None = None
    flags: Literal[True] | None = None
    unknown: Literal["number", "whole number", "date", "text"] | None = Field(
        None, description="nobody knows its range, or its values: they are found for a part of the budget"
    )
    decimal: Literal[",", "."] | None = Field(
        None, description="with a range, or an unknown number: the cells are text, and this is their decimal mark"
    )
    trim: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="with categories, or unknown text: ignore blanks around a cell"
    )
    lower: Annotated[bool, Field(strict=True)] | None = Field(
        None, description="with categories, or unknown text: read a cell in lower case"
    )


class RenewalWords(Words):
    """An account with a budget for each period, and the period whose rows the dataset is."""

    every: Literal["day", "week", "month", "quarter", "year"]
    date: ColumnName = Field(description="the column of dates that says in which period a row lies")
    period: PeriodName = Field(description="such as 2026-03")


class TableWords(Words):
    """One of several tables that keys link: where its rows are, and what its columns may hold."""

    source: SourceName
    columns: Annotated[dict[ColumnName, ColumnWords], Field(max_length=MOST_COLUMNS)] = Field(default_factory=dict)
    max_rows: Annotated[int, Field(strict=True, ge=1, le=10**6)] | None = Field(
        None,
        description="how many rows of each unit are kept; null: 1 in the unit's own table",
    )

    def plain(self) -> dict[str, Any]:
        """As plain data; only what was said."""
        columns = {name: each.model_dump(exclude_none=True) for name, each in self.columns.items()}
        return {**self.model_dump(exclude={"columns"}, exclude_none=True), "columns": columns}


class CheckedDeclaration(Words):
    """A declaration as far as it was filled in: of one table, or of one among several that keys link."""

    name: DatasetName = "dataset"
    source: SourceName | None = Field(None, description="the file or table; null where `tables` are linked")
    table: TableName | None = Field(None, description="of linked tables, the one that is asked about")
    tables: Annotated[dict[TableName, TableWords], Field(min_length=2, max_length=50)] | None = Field(
        None, description="linked tables by name; `columns`, `max_rows`, `rows` and `people` above are then left out"
    )
    keys: Annotated[dict[TableColumn, TableColumn], Field(max_length=50)] | None = Field(
        None, description='which column leads to which: {"visits.person_id": "persons.person_id"}'
    )
    account: DatasetName | None = Field(
        None, description="the account that protects its people; null: that of the table, or a new one of this name"
    )
    unit: ColumnName | Annotated[list[ColumnName], Field(max_length=10)] | None = Field(
        None,
        description="the column that names a person, of linked tables with its table: persons.person_id; null: every "
        "row is protected by itself",
    )
    max_rows: MostRows | None = Field(
        None,
        description='how many rows of each unit are kept; "auto": to be found for a part of the budget; null: every '
        "statistic has a bound of its own",
    )
    neighbours: Literal["add-remove", "replace"] = "add-remove"
    rows: Annotated[int, Field(strict=True, ge=0, le=2**53)] | None = Field(
        None, description="the number of rows, where it is public"
    )
    people: Annotated[int, Field(strict=True, ge=0, le=2**53)] | None = Field(
        None, description="the number of units, where it is public"
    )
    sample: Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)] | None = Field(
        None, description="the probability with which each unit is in the secret sample that every release draws afresh"
    )
    renews: RenewalWords | None = Field(
        None, description="the account has a budget for each period, and this dataset is the rows of one"
    )
    columns: Annotated[dict[ColumnName, ColumnWords], Field(max_length=MOST_COLUMNS)] = Field(default_factory=dict)
    steps: Annotated[list[dict[ColumnName, Any]], Field(min_length=1, max_length=50)] | None = Field(
        None,
        description="as [[steps]] of a study.toml: one of where, derive, clip, bin, select, explode, per_unit, join",
    )
    epsilon: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] | None = None
    delta: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] | None = None

    def plain(self) -> dict[str, Any]:
        """As plain data; of a column only what was said."""
        # What older versions did not know is left out, so that a declaration from then is the same text.
        newer = ("account", "sample", "renews", "steps", "table", "tables", "keys")
        left_out = {"columns", *(name for name in newer if getattr(self, name) is None)}
        columns = {name: each.model_dump(exclude_none=True) for name, each in self.columns.items()}
        if self.tables is None:
            return {**self.model_dump(exclude=left_out), "columns": columns}
        alone = {name for name in ("source", "max_rows", "rows", "people") if getattr(self, name) is None}
        facts = self.model_dump(exclude={*left_out, *alone, "tables"})
        linked = {"tables": {name: each.plain() for name, each in self.tables.items()}, "keys": self.keys or {}}
        return {**facts, **linked, **({"columns": columns} if columns else {})}

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.tables is None and self.source is None:
            raise ValueError("name a source, or linked tables")
        return self


class Declaration(CheckedDeclaration):
    """A dataset to be registered, with its budget."""

    name: DatasetName
    epsilon: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] | None = Field(
        None, description="of a new account; null: the budget of the account that is open"
    )
    delta: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] = 0.0


class CheckedCorrection(Words):
    """What was declared wrongly, as it should be; whom it protects and which table it reads are not corrected."""

    columns: Annotated[dict[ColumnName, ColumnWords], Field(max_length=MOST_COLUMNS)] = Field(
        default_factory=dict, description="those that change, and new ones"
    )
    max_rows: MostRows | None = Field(None, description="left out: as it is declared")
    rows: Annotated[int, Field(strict=True, ge=0, le=2**53)] | None = Field(
        None, description="left out: as it is declared; null: the number is not public"
    )


class Correction(CheckedCorrection):
    """A correction, with the reason for it: the ledger keeps both."""

    reason: Sentence


class NextPeriod(Words):
    """Another period of a dataset whose account renews, as a dataset of its own."""

    name: DatasetName
    period: PeriodName


class DivisionWords(Words):
    """Disjoint parts of a table, by a column: each may spend this much, and all of them together cost the maximum."""

    by: ColumnName = Field(description="a column of categories or flags; rows of one unit must be in one part")
    epsilon: Epsilon = Field(description="of each part")
    delta: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] = Field(
        0.0, description="of each part"
    )


class Division(DivisionWords):
    """A table to be divided. The same again finds the same parts, and costs nothing."""

    fresh: Annotated[bool, Field(strict=True)] = Field(
        False, description="divide, and pay, again if the table has changed since it was divided like this"
    )


class BudgetWords(Words):
    """An epsilon and a delta to be set; a delta that is left out stays as it is, and is 0 for what is new."""

    epsilon: Annotated[float, Field(strict=True, ge=0, le=1e6, allow_inf_nan=False)]
    delta: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] | None = None


class SourceColumn(View):
    """A column of a table; `holds` is null where the type does not say it."""

    name: str
    holds: str | None


class SourceView(View):
    """A table that could be registered."""

    name: str
    engine: str
    columns: list[SourceColumn]
    problem: str | None = Field(description="why its columns cannot be read")


class SourcesView(View):
    """The tables of the data folder."""

    folder_shown: str
    files: list[SourceView]


class ColumnCheck(View):
    """How the cells of a column are read."""

    name: str
    sentence: str


class Problem(View):
    """What is wrong, and where."""

    where: str
    message: str


class CheckView(View):
    """The result of checking a declaration; nothing was written."""

    ok: bool
    columns: list[ColumnCheck]
    unit_sentence: str
    budget_sentence: str
    problems: list[Problem]
    notes: list[str]
    account: str | None = Field(description="the account that would pay; null while the columns are not right")
    account_open: bool = Field(description="whether it is open: it keeps its budget, and none may be given")
    account_sentence: str = Field(description="what registering the dataset does in the ledger")


class ChangeView(View):
    """One declared fact, before and after."""

    what: str
    before: str
    after: str


class CorrectionView(View):
    """Before and after, and the consequences for later releases."""

    dataset: str
    account: str = Field(description="the account that pays, before and after")
    changes: list[ChangeView]
    later: list[str] = Field(description="what later releases notice of it")
    entry: int | None = Field(description="the entry of the ledger; null where it was only checked")


class DatasetLine(View):
    """A dataset in the list."""

    name: str
    account: str = Field(description="the account that pays")
    unit: str
    part: str | None = Field(default=None, description="which part of which dataset it is, in words")
    budget: BudgetView


class DatasetsView(View):
    """All datasets that the caller may plan with."""

    datasets: list[DatasetLine]


class ColumnView(View):
    """A declared column with its domain."""

    name: str
    kind: Literal["integers", "reals", "categories", "flags", "dates"]
    lower: int | float | str | None
    upper: int | float | str | None
    categories: list[bool | int | str] | None


class PartLine(View):
    """One part of a divided table: a dataset of its own, whose account has the budget of a part."""

    value: bool | int | str
    dataset: str
    account: str


class DivisionView(View):
    """How a column divides a table, and at what price."""

    dataset: str
    by: str
    budget: Amount = Field(description="of each part")
    cost: Amount = Field(description="of all parts together: the maximum, not the sum; 0 if it was paid before")
    paid: bool = Field(description="whether the table, as it is now, was divided like this before")
    changed: bool = Field(description="whether it was divided like this before it changed; `fresh` divides it again")
    request_id: str = Field(description="the name of its charge in the ledger")
    parts: list[PartLine]
    sentence: str


class PartView(View):
    """Which part of which dataset it is; all parts of that division are in `parts`."""

    of: str
    by: str
    value: bool | int | str
    parts: list[PartLine]


class LinkedTableView(View):
    """One of several linked tables, and where its key leads."""

    name: str
    source: str | None = Field(description="null for those who may not see it")
    is_asked_about: bool
    max_rows: int | None
    key: str | None = Field(
        description="the column that leads to another table; null for the table that names the units"
    )
    leads_to: str | None


class DatasetView(View):
    """A dataset; its source and its grants only for those who may see them."""

    name: str
    account: str = Field(description="the account that pays")
    source: str | None
    tables: list[LinkedTableView] | None = Field(description="the tables that keys link; null where there is one")
    unit: list[str]
    unit_sentence: str
    schema_: list[ColumnView] = Field(serialization_alias="schema")
    unknown: list[UnknownView] = Field(
        description="what was declared as unknown; `schema` has the columns among it that were found"
    )
    stability: str
    rows: int | None
    people: int | None = None
    renews: RenewalWords | None = Field(description="which period it is, where its account has a budget for each")
    part: PartView | None = Field(default=None, description="which part of a divided table it is")
    divided: list[list[PartLine]] = Field(
        default_factory=list, description="the parts of every division of it; for curators and auditors"
    )
    budget: BudgetView
    grants: list[BudgetView] | None
