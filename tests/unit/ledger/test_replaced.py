"""A ledger whose file is moved, copied or cut short under the hands of a process that has it open."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.errors import BudgetExceeded, LedgerTampered, LedgerUnavailable
from farthing.ledger import Ledger, open_ledger
from farthing.ledger.ledger_change import Memory
from farthing.ledger.ledger_store import Run
from farthing.ledger.verification import Known, verify_store

pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]  # holds whatever the processes draw


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as made:
        made.register("people", 1.0)
        made.charge("people", 0.1, request_id="r-1")
        yield made


def _copied(tmp_path: Path) -> Path:
    other = sqlite3.connect(tmp_path / "study.db")
    other.execute("VACUUM INTO ?", (str(tmp_path / "copy"),))
    other.close()
    return tmp_path / "copy"


def test_nothing_is_charged_to_a_file_that_was_moved_away(ledger: Ledger, tmp_path: Path) -> None:
    copy = _copied(tmp_path)
    os.rename(tmp_path / "study.db", tmp_path / "away.db")
    with pytest.raises(LedgerUnavailable, match="gone"):
        ledger.charge("people", 0.9, request_id="r-2")
    os.rename(copy, tmp_path / "study.db")
    with pytest.raises(LedgerUnavailable, match="another file was put in its place"):
        ledger.charge("people", 0.9, request_id="r-2")
    with pytest.raises(LedgerUnavailable, match="another file was put in its place"):
        ledger.budget("people")
    os.rename(tmp_path / "away.db", tmp_path / "study.db")
    assert not ledger.charge("people", 0.9, request_id="r-2").repeated


def test_a_file_with_two_names_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """SQLite would keep a write-ahead log for each name."""
    os.link(tmp_path / "study.db", tmp_path / "alias.db")
    with pytest.raises(LedgerUnavailable, match="hard link"):
        open_ledger(tmp_path / "alias.db", key=tmp_path / "study.db.key")
    with pytest.raises(LedgerUnavailable, match="hard link"):
        ledger.charge("people", 0.1, request_id="r-2")
    (tmp_path / "alias.db").unlink()
    assert not ledger.charge("people", 0.1, request_id="r-2").repeated


def test_a_process_that_read_the_file_by_itself_still_charges_where_others_look(ledger: Ledger, tmp_path: Path) -> None:
    """Closing the file takes SQLite's locks away, and the next one to close the ledger would remove the log."""
    (tmp_path / "study.db").read_bytes()
    code = f"from farthing.ledger import open_ledger as o; o({str(tmp_path / 'study.db')!r}).close()"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "study.db-wal").exists()
    ledger.charge("people", 0.2, request_id="r-2")
    subprocess.run([sys.executable, "-c", code], check=True)
    assert ledger.budget("people").count == 2 and ledger.verify().ok


def test_a_charge_written_to_a_log_that_was_removed_meanwhile_is_not_confirmed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = ledger._store.commit

    def removed(run: Run) -> None:
        commit(run)
        (tmp_path / "study.db-wal").unlink()

    with monkeypatch.context() as patch, pytest.raises(LedgerUnavailable, match="may be lost"):
        patch.setattr(ledger._store, "commit", removed)
        ledger.charge("people", 0.2, request_id="r-2")
    assert ledger.charge("people", 0.2, request_id="r-2").request_id == "r-2"
    assert ledger.budget("people").count == 2 and ledger.verify().ok


def test_two_processes_that_do_not_see_each_other_do_not_spend_the_same_budget(ledger: Ledger, tmp_path: Path) -> None:
    """Whose log was removed, goes on with the new one, and does not remove it in turn."""
    other = sqlite3.connect(tmp_path / "study.db")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    for ending in ("-wal", "-shm"):
        (tmp_path / f"study.db{ending}").unlink()
    code = f"from farthing.ledger import open_ledger as o; o({str(tmp_path / 'study.db')!r}).charge"
    subprocess.run([sys.executable, "-c", f"{code}('people', 0.9, request_id='r-2')"], check=True)
    with pytest.raises(BudgetExceeded):
        ledger.charge("people", 0.9, request_id="r-3")
    ledger.close()
    with open_ledger(tmp_path / "study.db") as again:
        assert [entry.request_id for entry in again.entries(since=2)] == ["r-1", "r-2", "r-3"]


def test_a_ledger_that_ends_before_what_the_witness_has_seen_is_charged_nothing(ledger: Ledger) -> None:
    ledger._witness.note((4, "ab" * 32, ledger._chain.head(4, "ab" * 32)))
    with pytest.raises(LedgerTampered, match=r"witness .* has seen entry 4"):
        ledger.charge("people", 0.1, request_id="r-2")
    assert ledger.budget("people").count == 1


def test_a_verification_finds_what_this_process_has_seen(ledger: Ledger) -> None:
    """A copy put back and used until it is longer than what was seen has another entry in that place."""
    for seen, found in ((ledger._memory.copy(), True), (Memory(2, "ab" * 32), False)):
        checked, _ = verify_store(ledger._store, ledger._chain, Known(memory=seen))
        assert checked.ok is found
    assert "this process has seen entry 2" in checked.problems[0]
