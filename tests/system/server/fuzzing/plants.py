"""Faults planted in a server, to show that a run finds each of them; none is reachable in a server that is used."""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from farthing.errors import RequestRefused
from farthing.server.auth import permissions
from farthing.server.auth.permissions import ALL, Rule
from farthing.server.routes import plan_routes
from farthing.server.services import ledger_pages
from farthing.server.store import draft_rows
from farthing.study.documents.data_folder import DataFolder


def a_cell(data: Path) -> str:
    """The name of a person of the table."""
    with (data / "people.csv").open(encoding="utf-8", newline="") as lines:
        return next(csv.DictReader(lines))["person"]


def plant(what: str, data: Path) -> None:
    """Put one fault into this process."""
    PLANTS[what](data)


def _fails(_: Path) -> None:
    def broken(*_arguments: Any) -> Any:
        raise KeyError("what nobody foresaw")

    ledger_pages.summary = broken


def _echoes(data: Path) -> None:
    def not_there(*_arguments: Any) -> Any:
        raise RequestRefused("not_found", f"there is no study of this id, but there is {a_cell(data)}.")

    draft_rows.study = not_there


def _logs(data: Path) -> None:
    listed = DataFolder.listed

    def talkative(self: DataFolder, only: str | None = None) -> Any:
        logging.getLogger("farthing.study").debug("the first row is %r", a_cell(data))
        return listed(self, only)

    DataFolder.listed = talkative  # type: ignore[method-assign]


def _lets_in(_: Path) -> None:
    permissions.PERMISSIONS["GET", "/api/v1/users"] = Rule(ALL, "read")


def _misdescribes(_: Path) -> None:
    priced = plan_routes.priced

    def without_its_cost(*arguments: Any, **options: Any) -> Any:
        return {name: value for name, value in priced(*arguments, **options).items() if name != "cost"}

    plan_routes.priced = without_its_cost


PLANTS: dict[str, Callable[[Path], None]] = {
    "fails": _fails,
    "echoes": _echoes,
    "logs": _logs,
    "lets in": _lets_in,
    "misdescribes": _misdescribes,
    "workers": lambda _: None,  # by the environment: they are other processes
}
