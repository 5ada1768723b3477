"""Tables that were altered so that a charge could vanish."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from farthing.errors import LedgerTampered
from farthing.ledger import open_ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
    return tmp_path / "study.db"


def _alter(path: Path, script: str) -> None:
    other = sqlite3.connect(path)
    other.executescript(script)
    other.close()


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("CREATE TRIGGER forget AFTER UPDATE ON farthing_accounts BEGIN SELECT 1; END", "trigger forget"),
        ("CREATE TRIGGER forget AFTER INSERT ON farthing_entries BEGIN SELECT 1; END", "trigger forget"),
        ("DROP INDEX farthing_entries_charge", "index farthing_entries_charge"),
        ("DROP INDEX farthing_entries_charge; CREATE INDEX farthing_entries_charge ON farthing_entries(request_id)",
         "index farthing_entries_charge"),
        ("ALTER TABLE farthing_head ADD COLUMN more TEXT", "table farthing_head"),
        ("DROP TRIGGER farthing_entries_no_update; CREATE TRIGGER farthing_entries_no_update "
         "BEFORE INSERT ON farthing_entries BEGIN SELECT RAISE(IGNORE); END", "trigger farthing_entries_no_update"),
    ],
)  # fmt: skip
def test_what_is_new_or_altered_is_found(path: Path, script: str, what: str) -> None:
    _alter(path, script)
    with pytest.raises(LedgerTampered, match=f"the {what} is not as it was made"):
        open_ledger(path)


@pytest.mark.parametrize(
    "script", ["VACUUM", "ANALYZE", "CREATE VIEW report AS SELECT kind FROM farthing_entries", "REINDEX"]
)
def test_housekeeping_and_reports_do_no_harm(path: Path, script: str) -> None:
    _alter(path, script)
    with open_ledger(path) as ledger:
        ledger.charge("people", 0.1, request_id="r-1")
        assert ledger.verify().ok


def test_a_guard_that_is_gone_is_no_harm_by_itself_and_is_noted(path: Path) -> None:
    with open_ledger(path) as ledger:
        assert ledger.verify().notes == ()
    _alter(path, "DROP TRIGGER farthing_entries_no_update")
    with open_ledger(path) as ledger:
        found = ledger.verify()
    assert found.ok and len(found.notes) == 1
    assert "farthing_entries_no_update" in found.notes[0] and "was removed" in found.notes[0]
    _alter(path, "UPDATE farthing_entries SET actor = 'x'")
    with pytest.raises(LedgerTampered, match="entry 1 does not carry the signature"):
        open_ledger(path)
