"""A ledger with a budget for the small table, and its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import Rows, the_people
from farthing.curator import Curator
from farthing.ledger import Ledger, open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as made:
        Curator(made).register(the_people(), "survey", epsilon=1.0)
        yield made


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    return Rows(monkeypatch)
