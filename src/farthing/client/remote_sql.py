"""SQL over a server: the statement becomes a draft there, and the answers of its release become its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from farthing.client.http_connection import Connection
from farthing.client.remote_plan import RemotePlan
from farthing.errors import InvalidExpression, InvalidSQL, InvalidValue
from farthing.study import Release, ResultTable
from farthing.study.sql.result_table import Cell


def statement_at(connection: Connection, words: Mapping[str, Any]) -> dict[str, Any]:
    """What the server makes of a statement; a refusal shows its place, as a local one does."""
    try:
        return dict(connection.post("/sql", words))
    except InvalidExpression as refusal:
        if refusal.text != words["sql"]:
            raise
        raise InvalidSQL(refusal.text, refusal.position, refusal.rule, refusal.way_out) from None


@dataclass(frozen=True, eq=False)
class RemoteSqlPlan(RemotePlan):
    """The plan of a statement, over a server: a plan like any other, whose release has the statement's rows."""

    words: Mapping[str, Any]

    @property
    def statement(self) -> str:
        """What was asked, as it was written."""
        return str(self.words["sql"])

    def release(
        self,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        fresh: bool = False,
    ) -> RemoteSqlRelease:
        """Charge, run once on the server's engine, record, answer; `table` has the rows of the statement."""
        if self.words.get("explain"):
            raise InvalidValue("sql", "EXPLAIN", "spends nothing, so it has no release", "leave EXPLAIN out")
        release = super().release(request_id, progress, fresh=fresh)
        asked = {name: value for name, value in self.words.items() if name != "explain"}
        view = statement_at(self.study.connection, {**asked, "request_id": release.request_id})
        return RemoteSqlRelease(
            **{each.name: getattr(release, each.name) for each in fields(Release)},
            tables=tuple(map(table_from, view["tables"])),
        )


@dataclass(frozen=True, eq=False, repr=False)
class RemoteSqlRelease(Release):
    """A release of a statement: its answers by name, and the rows of each statement in `tables`."""

    tables: tuple[ResultTable, ...] = ()

    @property
    def table(self) -> ResultTable:
        """The rows of the statement, where it is one."""
        if len(self.tables) != 1:
            raise InvalidValue("table", len(self.tables), "is for one statement", "look at .tables")
        return self.tables[0]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))


def table_from(view: Mapping[str, Any]) -> ResultTable:
    """The rows that a server sends.

    >>> view = {"columns": ["sex", "n", "n_error", "n_lower", "n_upper"], "measured": [False, True], "notes": [],
    ...         "confidence": 0.95, "rows": [{"sex": "F", "n": 9.0, "n_error": 3.0, "n_lower": 6.0, "n_upper": 12.0}]}
    >>> print(table_from(view).rows)
    [('F', 9.0)]
    """
    measured, names, columns = tuple(view["measured"]), iter(view["columns"]), []
    for is_number in measured:
        columns.append(next(names))
        if is_number:  # its error and both ends follow
            _ = next(names), next(names), next(names)
    cells = tuple(
        tuple(Cell(row[name], row.get(f"{name}_lower"), row.get(f"{name}_upper")) for name in columns)
        for row in view["rows"]
    )
    return ResultTable(tuple(columns), cells, measured, float(view["confidence"]), tuple(view["notes"]))
