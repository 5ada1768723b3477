"""A statement of SQL, what it asks for in the words of a draft, and its rows where it was released."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from farthing.server.schemas.budget_schema import View
from farthing.server.schemas.plan_schema import DatasetName, UnitLimit, Words
from farthing.study.sql.statements import LONGEST_STATEMENT


class StatementWords(Words):
    """A statement about a dataset; sending it spends nothing."""

    dataset: DatasetName
    sql: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=LONGEST_STATEMENT)]
    max_cells: UnitLimit | None = Field(None, description="in how many groups one person counts; by default in all")
    request_id: Annotated[str, StringConstraints(strict=True, min_length=1, max_length=200)] | None = Field(
        None, description="a release of the statement whose rows you want"
    )


class ResultView(View):
    """The rows of one statement; beside every released number x stand x_error, x_lower and x_upper."""

    columns: list[str]
    rows: list[dict[str, Any]]
    measured: list[bool] = Field(description="which columns of the statement are released numbers")
    confidence: float
    notes: list[str]


class StatementView(View):
    """What a statement asks for."""

    statistics: list[dict[str, Any]] = Field(description="for a draft: what /plans/price and /releases take")
    explain: bool = Field(description="whether it begins with EXPLAIN")
    tables: list[ResultView] | None = Field(None, description="the rows of each statement, of the release")
