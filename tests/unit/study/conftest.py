"""Studies of a small made-up table, with ledgers of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from study_people import SCHEMA, table


@pytest.fixture(scope="session")
def people() -> Any:
    return ft.dataset(table(), schema=SCHEMA)


@pytest.fixture
def make_study(people: Any, tmp_path: Path) -> Callable[..., ft.Study]:
    """A study of the people; the ledger is the same file each time."""

    def made(epsilon: float = 1.0, delta: float = 0.0, **options: Any) -> ft.Study:
        return ft.Study(people, epsilon, delta, ledger=tmp_path / "study.db", account="people", **options)

    return made
