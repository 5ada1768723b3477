"""The stores that the contract of ledgers is tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from system.ledger.conftest import postgres_server
from system.ledger.places import Place, postgres_place, sqlite_place

__all__ = ["place", "postgres_server"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a new ledger will be: a file, or a database of its own on a server."""
    if request.param == "sqlite":
        return sqlite_place(tmp_path)
    return postgres_place(request.getfixturevalue("postgres_server"), tmp_path)
