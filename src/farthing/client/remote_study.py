"""A study on a server: plan, release and ask as with a local one; the server keeps the rows and the account."""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from farthing.adaptive.query_session import Answer
from farthing.client.http_connection import WAIT, Connection, awaited, part, refusal_of
from farthing.client.remote_discovery import RemoteDiscoveryPlan, discovery_plan_at
from farthing.client.remote_parts import RemoteDivision, divided_at, division_at
from farthing.client.remote_plan import RemotePlan, release_from, request_from
from farthing.client.remote_series import (
    RemoteSeries,
    RemoteSeriesPlan,
    opened_series,
    series_plan_from,
    series_words,
)
from farthing.client.remote_sql import RemoteSqlPlan, statement_at
from farthing.client.remote_synthesis import (
    RemoteSynthesisPlan,
    RemoteSynthetic,
    synthesis_plan_at,
    synthesis_words,
    synthetic_at,
)
from farthing.errors import InvalidValue, RequestRefused
from farthing.ledger import Budget, PlanRequest
from farthing.numerics.bounds import number_text
from farthing.privacy import ApproxDP
from farthing.statistics import Statistic
from farthing.study import Release
from farthing.study.documents.study_document import entry_of, statistic_of
from farthing.study.release_request import checked_statistics
from farthing.study.study_account import SHARE, RowAnswer, row_answer


@dataclass(frozen=True)
class RemoteQuerySessionPlan:
    """What a session costs and promises, under the names of a local plan; all fixed when it is opened."""

    alpha: float
    queries: int
    updates: int
    epsilon: float
    delta: float
    error: int
    paid_error: int
    rows: int
    cells: int
    confidence: float
    promise: str
    guarantee: str | None
    caution: str | None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready data."""
        return asdict(self)

    def __str__(self) -> str:
        several = "1 answer" if self.updates == 1 else f"{self.updates:,} answers"
        cost = f"It costs epsilon {number_text(self.epsilon)}, once; {several} may be a surprise, all others are free."
        return "\n".join([self.promise, cost, *filter(None, [self.guarantee, self.caution]), *self.notes])


class RemoteQuerySession:
    """Answers to a stream of counting questions, as a local query session gives them."""

    def __init__(self, connection: Connection, view: Mapping[str, Any]) -> None:
        self._connection = connection
        self._view = dict(view)

    def ask(self, question: str) -> Answer:
        """How many rows meet `question`; the same question has the same answer."""
        view = self._connection.post(f"/sessions/{part(self.request_id)}/ask", {"question": question})
        self._view["updates_left"], self._view["questions_left"] = (
            view["updates_left"],
            view["questions_left"],
        )
        error = None if view["error"] is None else round(view["error"])
        return Answer(round(view["value"]), error, bool(view["paid"]), self.rows)

    @property
    def request_id(self) -> str:
        """The session's own; `study.query_session(..., request_id=...)` resumes it."""
        return str(self._view["id"])

    @property
    def plan(self) -> RemoteQuerySessionPlan:
        """What was paid and promised."""
        return plan_from(self._view["plan"])

    @property
    def rows(self) -> int:
        """The number of rows that the plan speaks of."""
        return max(1, self.plan.rows)

    @property
    def updates_left(self) -> int:
        """How many answers may still be paid for out of what the session has cost."""
        return int(self._view["updates_left"])

    @property
    def questions_left(self) -> int:
        """How many questions the promise still covers."""
        return int(self._view["questions_left"])

    @property
    def history(self) -> list[dict[str, Any]]:
        """What was asked and answered, oldest first."""
        view = self._connection.get(f"/sessions/{part(self.request_id)}")
        return [dict(one) for one in view["history"]]

    def __repr__(self) -> str:
        return f"RemoteQuerySession({self.request_id!r}, {self.updates_left} updates left)"


def opened(
    connection: Connection,
    body: Mapping[str, Any],
    request_id: str | None,
    progress: Callable[[float], None] | None,
) -> RemoteQuerySession:
    """Open or resume a session, and wait until it can be asked."""
    name = request_id or name_of(body)
    asked = {**body, "request_id": name}
    view = awaited(connection, "/sessions", asked, progress, f"resume it as {name}")
    if view["error"]:
        raise refusal_of(view["error"])
    if progress is not None:
        progress(1.0)
    return RemoteQuerySession(connection, view)


def name_of(body: Mapping[str, Any], kind: str = "answers") -> str:
    """The name of a session that was given none: the same arguments resume the session.

    >>> name_of({"dataset": "people", "alpha": 0.05}) == name_of({"alpha": 0.05, "dataset": "people"})
    True
    """
    words = json.dumps(body, sort_keys=True, default=str)
    return f"{kind}-{hashlib.sha256(words.encode()).hexdigest()[:24]}"


def plan_from(view: Mapping[str, Any]) -> RemoteQuerySessionPlan:
    """The plan that a server sends."""
    values = {name: view[name] for name in RemoteQuerySessionPlan.__dataclass_fields__ if name != "notes"}
    return RemoteQuerySessionPlan(**values, notes=tuple(view.get("notes", ())))


class RemoteStudy:
    """A dataset of a server with its budget: the whole of it for a curator, an analyst's own grant otherwise."""

    def __init__(self, connection: Connection, name: str, *, by_request: bool = False) -> None:
        self.connection = connection
        self.name = name
        self.by_request = by_request

    def on_request(self) -> RemoteStudy:
        """The same study for plans that a curator is to approve: they may cost more than your grant has."""
        return RemoteStudy(self.connection, self.name, by_request=True)

    def plan(
        self,
        *statistics: Statistic,
        epsilon: float | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> RemotePlan:
        """How accurate each statistic would be; nothing is spent and no row is read."""
        return self._plan(statistics, {}, epsilon, expected)

    def sql(
        self,
        text: str,
        *,
        epsilon: float | None = None,
        expected: Mapping[str, Any] | None = None,
        max_cells: int | None = None,
    ) -> RemoteSqlPlan:
        """The plan of a statement of SQL; nothing is spent. Its release has the rows of the statement in `table`."""
        words = {"dataset": self.name, "sql": text, **({} if max_cells is None else {"max_cells": max_cells})}
        view = statement_at(self.connection, words)
        plan = self._plan([statistic_of(entry)[0] for entry in view["statistics"]], {}, epsilon, expected)
        return RemoteSqlPlan(plan.study, plan.draft, plan.view, {**words, "explain": view["explain"]})

    def split_plan(self, by: str, epsilon: float, delta: float = 0.0) -> RemoteDivision:
        """What `split` with the same arguments would cost; nothing is charged (curators)."""
        return division_at(self.connection, self.name, by, epsilon, delta)

    def split(self, by: str, epsilon: float, delta: float = 0.0, *, fresh: bool = False) -> dict[Any, RemoteStudy]:
        """Divide the table into disjoint parts, once, each with a budget of its own (curators).

        All parts together cost what one of them may: that is charged now, and plans of the parts cost nothing more. The
        same call returns the same parts. If the table has changed since, `fresh=True` divides it again, which is
        charged again.
        """
        division = divided_at(self.connection, self.name, by, epsilon, delta, fresh)
        return {value: RemoteStudy(self.connection, name) for value, name in division.datasets.items()}

    def discover(
        self,
        *columns: str,
        epsilon: float | None = None,
        delta: float | None = None,
        share: float | None = None,
        rows_per_unit: bool = False,
        max_keys: int | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RemoteDiscoveryPlan:
        """What would be found about columns that are declared as unknown, and at which price; nothing is spent.

        `release()` of it charges, once for each thing; plans that are made afterwards use what was found.
        """
        options = {
            "epsilon": epsilon,
            "delta": delta,
            "share": share,
            "rows_per_unit": rows_per_unit,
            "max_keys": max_keys,
            "confidence": confidence,
            "fresh": fresh,
        }
        return discovery_plan_at(self.connection, self.name, columns, options)

    def count_rows(
        self,
        share: float = SHARE,
        *,
        fresh: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> RowAnswer:
        """How many rows there are, with noise: charged now, for a share of the whole budget, or of your grant.

        Plans that are made afterwards use the low end of its interval. The rows are counted once; asking again spends
        nothing, unless `fresh=True`.
        """
        path = f"/datasets/{part(self.name)}/rows"
        name = f"rows-{secrets.token_hex(12)}"
        body = {"request_id": name, "share": share, "fresh": fresh, "wait": WAIT}
        while True:  # the same request id is the same job, so that asking again only looks
            view = self.connection.post(path, body)
            if view["state"] not in ("queued", "running"):
                break
            if progress is not None:
                progress(float(view["progress"]))
        return row_answer(float(view["rows"]), float(view["scale"]), str(view.get("counts") or "rows"))

    def fit(
        self,
        *statistics: Statistic,
        require: Mapping[str, float],
        confidence: float = 0.95,
        expected: Mapping[str, Any] | None = None,
    ) -> RemotePlan:
        """The plan of the least total epsilon whose errors are all within what `require` says, by name."""
        if not isinstance(require, Mapping) or not require:
            raise InvalidValue(
                "require", require, "must map statistics to their errors", 'such as {"mean of income": 500}'
            )
        names = [statistic.name for statistic in checked_statistics(statistics)]
        for name in require:
            if name not in names:
                raise InvalidValue("require", name, "must be a statistic", f"there are: {', '.join(names)}")
        controls = {name: {"within": within, "confidence": confidence} for name, within in require.items()}
        return self._plan(statistics, controls, None, expected, fit=True)

    def query_session_plan(
        self,
        alpha: float | Literal["guaranteed"],
        queries: int,
        *,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        updates: int | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        confidence: float = 0.95,
    ) -> RemoteQuerySessionPlan:
        """What `query_session` with the same arguments would cost and promise; nothing is spent."""
        body = self._session(alpha, queries, columns, bins, updates, rows, epsilon, confidence)
        return plan_from(self.connection.post("/sessions/price", self._for_price(body)))

    def query_session(
        self,
        alpha: float | Literal["guaranteed"],
        queries: int,
        *,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        updates: int | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        confidence: float = 0.95,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RemoteQuerySession:
        """Charge once, then ask: `session.ask("sex = 'M' and age < 30")` is answered at once, within `alpha` of rows.

        The same arguments, or the same `request_id`, resume the session.
        """
        body = self._session(alpha, queries, columns, bins, updates, rows, epsilon, confidence)
        return opened(self.connection, body, request_id, progress)

    def submit_query_session(
        self,
        purpose: str,
        alpha: float | Literal["guaranteed"],
        queries: int,
        *,
        epsilon: float,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        updates: int | None = None,
        rows: int | None = None,
        confidence: float = 0.95,
        title: str = "",
    ) -> PlanRequest:
        """Ask a curator to allow a session; once approved, `query_session` with the same arguments opens it."""
        body = self._session(alpha, queries, columns, bins, updates, rows, epsilon, confidence)
        return self._submitted("session", body, purpose, title)

    def series_plan(
        self,
        count: Statistic | str | None = None,
        *,
        date: str,
        steps: int,
        every: str = "month",
        first: str | None = None,
        by: str | Sequence[str] | None = None,
        epsilon: float | None = None,
        append_only: bool = False,
        confidence: float = 0.95,
    ) -> RemoteSeriesPlan:
        """What `series` with the same arguments would cost, and the error of every period; nothing is spent."""
        body = series_words(self.name, count, date, steps, every, first, by, epsilon, append_only, confidence)
        return series_plan_from(self.connection.post("/series/price", self._for_price(body)))

    def series(
        self,
        count: Statistic | str | None = None,
        *,
        date: str,
        steps: int,
        every: str = "month",
        first: str | None = None,
        by: str | Sequence[str] | None = None,
        epsilon: float | None = None,
        append_only: bool = False,
        confidence: float = 0.95,
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RemoteSeries:
        """Charge once for counts and running totals of all periods; `series.update()` releases those that are over.

        The same arguments, or the same `request_id`, resume the series.
        """
        body = series_words(self.name, count, date, steps, every, first, by, epsilon, append_only, confidence)
        return opened_series(self.connection, body, request_id or name_of(body, "series"), progress)

    def submit_series(
        self,
        purpose: str,
        count: Statistic | str | None = None,
        *,
        date: str,
        steps: int,
        epsilon: float,
        every: str = "month",
        first: str | None = None,
        by: str | Sequence[str] | None = None,
        append_only: bool = False,
        confidence: float = 0.95,
        title: str = "",
    ) -> PlanRequest:
        """Ask a curator to allow a series; once approved, `series` with the same arguments opens it."""
        body = series_words(self.name, count, date, steps, every, first, by, epsilon, append_only, confidence)
        return self._submitted("series", body, purpose, title)

    def synthesis_plan(
        self,
        *,
        epsilon: float | None = None,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        missing: bool | Sequence[str] = True,
        known: Release | Sequence[Release] = (),
    ) -> RemoteSynthesisPlan:
        """What `synthesise` with the same arguments would do and cost; nothing is spent and no row is read."""
        words = synthesis_words(self.name, epsilon, columns, bins, missing, known)
        return synthesis_plan_at(self.connection, words, by_request=self.by_request)

    def synthesise(
        self,
        *,
        rows: int | None = None,
        epsilon: float | None = None,
        columns: Sequence[str] | str | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        missing: bool | Sequence[str] = True,
        known: Release | Sequence[Release] = (),
        request_id: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> RemoteSynthetic:
        """A synthetic table, with a verdict on its quality; the same arguments give the same table and spend nothing.

        Another number of `rows` costs nothing either.
        """
        plan = self.synthesis_plan(epsilon=epsilon, columns=columns, bins=bins, missing=missing, known=known)
        return plan.release(request_id, rows, progress)

    def synthetic(self, request_id: str, rows: int | None = None) -> RemoteSynthetic:
        """An earlier synthetic table; no row is read and nothing is spent."""
        return synthetic_at(self.connection, request_id, rows)

    # Their old names; deprecated, they go with 1.0.
    answerer_plan, answerer = query_session_plan, query_session

    @property
    def budget(self) -> Budget:
        """Total, spent, waiting and remaining, as the server's ledger has them now."""
        return budget_at(self.connection, self.name)

    def releases(self) -> list[str]:
        """The request ids of all releases under this name that may be seen, oldest first."""
        views = self.connection.get("/releases", dataset=self.name)["releases"]
        done = [one for one in views if one["state"] == "released"]
        return [str(one["request_id"]) for one in sorted(done, key=lambda one: str(one["created"]))]

    def was_released(self, request_id: str) -> bool:
        """Whether there is a release under this request id, whose answers cost nothing any more."""
        try:
            view = self.connection.get(f"/releases/{part(request_id)}")
        except RequestRefused as refused:
            if refused.code in ("not_found", "invalid_request"):
                return False
            raise
        return bool(view["state"] == "released")

    def released(self, request_id: str) -> Release:
        """An earlier release, from the server's ledger; no row is read and nothing is spent."""
        return release_from(self.connection.text(f"/releases/{part(request_id)}/download", format="json"))

    def table_changed(self, request_id: str) -> bool | None:
        """Whether the rows have changed since the release, for curators; None if that cannot be detected."""
        changed: bool | None = self.connection.get(f"/releases/{part(request_id)}/table")["changed"]
        return changed

    def _for_price(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {**body, "on_request": True} if self.by_request else dict(body)

    def _submitted(self, kind: str, body: Mapping[str, Any], purpose: str, title: str) -> PlanRequest:
        words = {kind: body, "purpose": purpose, **({"title": title} if title else {})}
        return request_from(self.connection.post("/requests", words))

    def _session(
        self,
        alpha: float | Literal["guaranteed"],
        queries: int,
        columns: Sequence[str] | str | None,
        bins: Mapping[str, int | Sequence[Any]] | None,
        updates: int | None,
        rows: int | None,
        epsilon: float | None,
        confidence: float,
    ) -> dict[str, Any]:
        """A session in the server's words; what is left open stays out."""
        named = [columns] if isinstance(columns, str) else columns
        words: dict[str, Any] = {
            "dataset": self.name,
            "alpha": alpha,
            "queries": queries,
            "columns": None if named is None else list(named),
            "bins": None if bins is None else dict(bins),
            "updates": updates,
            "rows": rows,
            "epsilon": epsilon,
            "confidence": confidence,
        }
        return {key: value for key, value in words.items() if value is not None}

    def _plan(
        self,
        statistics: Sequence[Statistic],
        controls: Mapping[str, Mapping[str, float]],
        epsilon: float | None,
        expected: Mapping[str, Any] | None,
        *,
        fit: bool = False,
    ) -> RemotePlan:
        asked = checked_statistics(statistics)
        draft: dict[str, Any] = {
            "dataset": self.name,
            "statistics": [entry_of(one, controls.get(one.name, {})) for one in asked],
        }
        if expected:
            draft["expected"] = dict(expected)
        if epsilon is not None:
            draft["epsilon"] = epsilon
        if fit:
            draft["fit"] = True
        if self.by_request:
            draft["on_request"] = True
        return RemotePlan(self, draft, self.connection.post("/plans/price", draft, again=True))

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r} at {self.connection.url})"


def budget_at(connection: Connection, dataset: str) -> Budget:
    """The budget of a dataset as the server's ledger has it now; the odometer is asked for when it is read."""
    path = f"/datasets/{part(dataset)}/budget"

    def odometer() -> float:
        reading = connection.get(path, odometer=True)["odometer"]
        return math.inf if reading is None else float(reading)

    return replace(budget_from(connection.get(path)), _odometer=odometer)


def budget_from(view: Mapping[str, Any]) -> Budget:
    """The budget that a server sends, as the local class has it."""
    counts = {float(one["epsilon"]): int(one["count"]) for one in view.get("would_fit", ())}
    room = float(view.get("room", view["remaining"])["epsilon"])
    rest = Budget("", "", _amount(view["total"]), 0.0, 0.0, {}, _amount(view["remaining"]), 0)
    return Budget(
        str(view["dataset"]),
        str(view["analyst"] or ""),
        _amount(view["total"]),
        float("inf") if view["spent"]["epsilon"] is None else float(view["spent"]["epsilon"]),
        float(view["waiting"]),
        {label: _amount(amount) for label, amount in view["withheld"].items()},
        _amount(view["remaining"]),
        int(view["charges"]),
        untouched=int(view["charges"]) == 0,
        _fitting=lambda charge: counts[charge] if charge in counts else rest.fitting(charge),
        _clock_room=lambda: room,
        _odometer=lambda: math.inf,  # nobody asked for it, so nothing is claimed
    )


def _amount(view: Mapping[str, Any]) -> ApproxDP:
    return ApproxDP(float(view["epsilon"]), float(view["delta"]))
