"""Synthetic tables of a server: the same words as `study.synthesise` of a local study."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from farthing.client.http_connection import Connection, awaited, part, refusal_of
from farthing.client.remote_plan import request_from
from farthing.errors import InvalidValue
from farthing.ledger import PlanRequest, Receipt
from farthing.study.synthesis.synthetic_quality import MarginalQuality

Progress = Callable[[float], None]

_PATH = "/synthetic-tables"


class RemoteSynthetic:
    """A synthetic table of a server: its rows, its price, and how good it is."""

    def __init__(self, connection: Connection, view: Mapping[str, Any], rows: int | None = None) -> None:
        self._connection, self._view, self._rows = connection, dict(view), rows

    @property
    def request_id(self) -> str:
        """The name of its request; `study.synthetic(request_id)` finds it again."""
        return str(self._view["id"])

    @property
    def cost(self) -> float:
        """The epsilon that it cost."""
        return float(self._view["epsilon"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(map(str, self._view["columns"]))

    @property
    def quality(self) -> tuple[MarginalQuality, ...]:
        """How far off each column and each pair of columns is, with a verdict."""
        return tuple(
            MarginalQuality(tuple(one["columns"]), float(one["error"]), float(one["at_most"]), bool(one["measured"]))
            for one in self._view["quality"]
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What nobody should overlook: a table that is noise more than anything else."""
        return tuple(map(str, self._view["warnings"]))

    @property
    def receipt(self) -> Receipt:
        """The receipt that proves the charge."""
        return Receipt.from_json(str(self._view["receipt"]))

    @cached_property
    def _table(self) -> Any:
        from pyarrow import parquet

        return parquet.read_table(io.BytesIO(self._file("parquet")))

    def table(self) -> Any:
        """The rows as an Arrow table, with the types of the schema."""
        return self._table

    def to_frame(self) -> Any:
        """The rows as a pandas table."""
        return self._table.to_pandas()

    def save(self, path: str) -> Path:
        """Write the rows to a file: CSV if its name ends in .csv, else Parquet."""
        target = Path(path)
        if target.suffix.lower() not in ("", ".parquet", ".pq", ".csv"):
            raise InvalidValue("path", str(path), "must end in .parquet or .csv", "other kinds are not written")
        return _written(target, self._file("csv" if target.suffix.lower() == ".csv" else "parquet"))

    def report(self, path: str) -> Path:
        """Write verdicts, errors and what was spent as a self-contained HTML page."""
        return _written(Path(path), self._file("html"))

    def _file(self, form: str) -> bytes:
        wanted = {} if self._rows is None else {"rows": self._rows}
        return self._connection.bytes(f"{_PATH}/{part(self.request_id)}/download", format=form, **wanted)

    def __str__(self) -> str:
        return "\n".join([str(self._view["sentence"]), *(f"warning: {words}" for words in self.warnings)])

    def __repr__(self) -> str:
        return f"RemoteSynthetic({self.request_id!r})"


class RemoteSynthesisPlan:
    """What a synthetic table would cost; printed before anything is spent, then `release()` or `submit(purpose)`."""

    def __init__(self, connection: Connection, asked: Mapping[str, Any], view: Mapping[str, Any]) -> None:
        self._connection, self._asked, self._view = connection, dict(asked), dict(view)

    @property
    def cost(self) -> float:
        """The epsilon that it costs."""
        return float(self._view["epsilon"])

    @property
    def delta(self) -> float:
        """The delta at which it is charged."""
        return float(self._view["delta"])

    @property
    def made_before(self) -> bool:
        """Whether you have made this table already: then releasing it spends nothing."""
        return bool(self._view["made"])

    @property
    def request_id(self) -> str:
        """The name of its request: the same arguments have the same."""
        return str(self._view["request_id"])

    def release(
        self, request_id: str | None = None, rows: int | None = None, progress: Progress | None = None
    ) -> RemoteSynthetic:
        """Charge once and make the table; the same arguments give the same table again and spend nothing.

        Never more than `cost` is charged: what has become dearer is refused.
        """
        name = request_id or self.request_id
        body = {**self._asked, "request_id": name, "confirmed_epsilon": self.cost}
        view = awaited(self._connection, _PATH, body, progress, f"find it again as {name}")
        if view["error"]:
            raise refusal_of(view["error"])
        return RemoteSynthetic(self._connection, view, rows)

    def submit(self, purpose: str, title: str = "") -> PlanRequest:
        """Ask a curator to allow this table; nothing is spent. Once approved, `synthesise` makes it."""
        words = {"table": self._asked, "purpose": purpose, **({"title": title} if title else {})}
        return request_from(self._connection.post("/requests", words))

    def __str__(self) -> str:
        cost = f"cost: epsilon {self.cost:.6g} at delta {self.delta:g}; nothing is spent yet"
        if self.made_before:
            cost = f"cost: nothing. It was made before, as {self.request_id}"
        warnings = [f"warning: {words}" for words in self._view["warnings"]]
        return "\n".join([*self._view["sentences"], cost, *warnings])

    def __repr__(self) -> str:
        return f"RemoteSynthesisPlan(epsilon {self.cost:.6g}, nothing spent)"


def synthesis_plan_at(connection: Connection, asked: Mapping[str, Any], *, by_request: bool) -> RemoteSynthesisPlan:
    """The plan of a table as a server prices it."""
    view = connection.post(f"{_PATH}/price", {**asked, "on_request": True} if by_request else asked)
    return RemoteSynthesisPlan(connection, asked, view)


def synthetic_at(connection: Connection, request_id: str, rows: int | None) -> RemoteSynthetic:
    """An earlier table of the server."""
    view = connection.get(f"{_PATH}/{part(request_id)}")
    if view["error"]:
        raise refusal_of(view["error"])
    return RemoteSynthetic(connection, view, rows)


def synthesis_words(
    dataset: str,
    epsilon: float | None,
    columns: Sequence[str] | str | None,
    bins: Mapping[str, int | Sequence[Any]] | None,
    missing: bool | Sequence[str],
    known: Sequence[Any] | Any,
) -> dict[str, Any]:
    """A synthetic table in the server's words; what is left open stays out."""
    releases = list(known) if isinstance(known, list | tuple) else [known]
    words: dict[str, Any] = {
        "dataset": dataset,
        "epsilon": epsilon,
        "columns": [columns] if isinstance(columns, str) else None if columns is None else list(columns),
        "bins": None if not bins else {name: cut if isinstance(cut, int) else list(cut) for name, cut in bins.items()},
        "missing": missing if isinstance(missing, bool) else list(missing),
        "known": [str(getattr(each, "request_id", each)) for each in releases] or None,
    }
    return {key: value for key, value in words.items() if value is not None}


def _written(target: Path, content: bytes) -> Path:
    try:
        target.write_bytes(content)
    except OSError as problem:
        raise InvalidValue("path", str(target), "cannot be written", str(problem.strerror)) from None
    return target
