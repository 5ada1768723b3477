"""Running series on a server: the same words as `study.series` of a local study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.client.http_connection import Connection, awaited, part, refusal_of


@dataclass(frozen=True)
class RemoteCount:
    """Released numbers, one for each label, and how far off each may be."""

    labels: tuple[str, ...]
    values: tuple[float, ...]
    error: float

    def __str__(self) -> str:
        return ", ".join(
            f"{label} {value:,.0f} ± {self.error:,.4g}" for label, value in zip(self.labels, self.values, strict=True)
        )


@dataclass(frozen=True)
class RemoteStep:
    """What one period released: its own count, and the total so far."""

    period: str
    count: RemoteCount
    total: RemoteCount


@dataclass(frozen=True)
class RemoteSeriesPlan:
    """What a running series costs, and the error of every period, in their order."""

    epsilon: float
    delta: float
    periods: tuple[str, ...]
    count_errors: tuple[float, ...]
    total_errors: tuple[float, ...]
    repeated_errors: tuple[float, ...]
    confidence: float
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*self.sentences, *(f"warning: {words}" for words in self.warnings)])


class RemoteSeries:
    """A running series of a server; `update()` releases every period that is over."""

    def __init__(self, connection: Connection, view: Mapping[str, Any]) -> None:
        self._connection = connection
        self._view = dict(view)

    @property
    def request_id(self) -> str:
        """The series' own; the same arguments, or this name, resume it."""
        return str(self._view["id"])

    @property
    def plan(self) -> RemoteSeriesPlan:
        """The price, and the errors that were known when it was opened."""
        return series_plan_from(self._view["plan"])

    @property
    def steps(self) -> tuple[RemoteStep, ...]:
        """Every period that was released, when it was last looked at, the first period first."""
        return tuple(map(_step, self._view["steps"]))

    @property
    def next(self) -> str | None:
        """The first period that was not released yet; None after the last."""
        following = self._view["next"]
        return None if following is None else str(following)

    def update(self, *, until: str | None = None) -> tuple[RemoteStep, ...]:
        """Release every period that is over and was not released yet, or those until one; returns the new ones.

        It costs nothing: all periods were paid for when the series was opened.
        """
        before = {step.period for step in self.steps}
        body = {} if until is None else {"until": until}
        self._view = dict(self._connection.post(f"/series/{part(self.request_id)}/release", body))
        return tuple(step for step in self.steps if step.period not in before)

    def __repr__(self) -> str:
        return f"RemoteSeries({self.request_id!r}, next {self.next})"


def series_words(
    dataset: str,
    count: Any,
    date: str,
    steps: int,
    every: str,
    first: str | None,
    by: str | Sequence[str] | None,
    epsilon: float | None,
    append_only: bool,
    confidence: float,
) -> dict[str, Any]:
    """A series in the server's words; what is left open stays out."""
    if count is not None and not isinstance(count, str):  # a statistic: ft.count(by=..., where=...)
        arguments = dict(count.arguments)
        by, count = arguments.get("by", by), arguments.get("where")
    words: dict[str, Any] = {
        "dataset": dataset,
        "where": count,
        "date": date,
        "steps": steps,
        "every": every,
        "first": first,
        "by": [by] if isinstance(by, str) else (list(by) if by else None),
        "epsilon": epsilon,
        "append_only": append_only,
        "confidence": confidence,
    }
    return {key: value for key, value in words.items() if value is not None}


def opened_series(
    connection: Connection, body: Mapping[str, Any], name: str, progress: Callable[[float], None] | None
) -> RemoteSeries:
    """Open or resume a series, and wait until it can be continued."""
    view = awaited(connection, "/series", {**body, "request_id": name}, progress, f"resume it as {name}")
    if view["error"]:
        raise refusal_of(view["error"])
    return RemoteSeries(connection, view)


def series_plan_from(view: Mapping[str, Any]) -> RemoteSeriesPlan:
    """The plan that a server sends."""
    errors = view["errors"]
    return RemoteSeriesPlan(
        float(view["epsilon"]),
        float(view["delta"]),
        tuple(str(one["period"]) for one in errors),
        tuple(float(one["count"]) for one in errors),
        tuple(float(one["total"]) for one in errors),
        tuple(float(one["separate"]) for one in errors),
        float(view["confidence"]),
        tuple(view["sentences"]),
        tuple(view["warnings"]),
    )


def _step(view: Mapping[str, Any]) -> RemoteStep:
    cells = view["cells"]
    labels = tuple(str(cell["label"]) for cell in cells)

    def numbers(kind: str) -> RemoteCount:
        values = tuple(float(cell[kind]) for cell in cells)
        return RemoteCount(labels, values, float(cells[0][f"{kind}_error"]))

    return RemoteStep(str(view["period"]), numbers("count"), numbers("total"))
