"""The note beside a ledger: a lower bound, and never a false alarm."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from farthing.errors import LedgerTampered
from farthing.ledger import open_ledger
from farthing.ledger.tamper_evidence import Chain, Witness

CHAIN = Chain(bytes(32), "l")


def _head(sequence: int, mac: str) -> tuple[int, str, str]:
    return sequence, mac, CHAIN.head(sequence, mac)


def test_what_was_noted_last_is_read(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "w")
    assert witness.read(CHAIN) is None and not witness.exists
    witness.note(_head(12345, "ab" * 32))
    witness.note(_head(7, "cd" * 32))
    assert witness.read(CHAIN) == (7, "cd" * 32) and witness.exists
    assert witness.read(CHAIN, known=_head(7, "cd" * 32)) is None
    assert witness.read(CHAIN, known=_head(7, "ab" * 32)) == (7, "cd" * 32)
    assert Witness(tmp_path / "w").read(Chain(bytes(32), "m")) is None
    witness.close()
    witness.close()


@pytest.mark.parametrize("content", [b"", b"\0" * 151, b"x" * 500, b"00000000000000000007 " + b"a" * 64 + b" "])
def test_a_note_that_a_power_cut_spoilt_is_no_note(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w").write_bytes(content)
    assert Witness(tmp_path / "w").read(CHAIN) is None


def test_a_note_stays_readable_whatever_follows_it(tmp_path: Path) -> None:
    """A line break from an editor must not switch the note off forever."""
    (tmp_path / "w").write_bytes(b"x" * 500)
    witness = Witness(tmp_path / "w")
    witness.note(_head(7, "cd" * 32))
    assert witness.read(CHAIN) == (7, "cd" * 32)
    witness.close()


def test_a_note_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    Witness(tmp_path / "nowhere" / "w").note(_head(1, "ab" * 32))
    Witness(None).note(_head(1, "ab" * 32))
    assert Witness(None).read(CHAIN) is None


def test_an_older_copy_of_the_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_ledger(path) as ledger:
        ledger.register("people", 1.0)
    shutil.copy(path, tmp_path / "backup")
    with open_ledger(path) as ledger:
        receipt = ledger.release(ledger.charge("people", 1.0, request_id="r-1"), "all of it")
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(LedgerTampered, match="older copy") as refusal:
        open_ledger(path)
    assert refusal.value.sequence == 3
    # Without the note only a receipt tells.
    (tmp_path / "study.db.witness").unlink()
    with open_ledger(path) as ledger:
        assert ledger.verify().ok
        found = ledger.verify(receipt)
    assert not found.ok and "older copy" in found.problems[0] and found.first_bad == 3


def test_a_ledger_that_branched_off_is_refused(tmp_path: Path) -> None:
    """An old copy that was used elsewhere until it was as long: the same length, another history."""
    path, other = tmp_path / "study.db", tmp_path / "other.db"
    with open_ledger(path) as ledger:
        ledger.register("people", 1.0)
    for ending in ("", ".key"):
        shutil.copy(f"{path}{ending}", f"{other}{ending}")
    for place, request in ((path, "r-1"), (other, "r-2")):
        with open_ledger(place) as ledger:
            ledger.charge("people", 0.5, request_id=request)
    shutil.copy(other, path)
    with pytest.raises(LedgerTampered, match="is not the one that the witness"):
        open_ledger(path)


def test_a_ledger_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with open_ledger(path) as ledger:
        ledger.register("people", 1.0)
    path.unlink()
    with pytest.raises(LedgerTampered, match="begin another ledger at another path"):
        open_ledger(path)
    path.write_bytes(b"")
    with pytest.raises(LedgerTampered, match="restore it from its newest copy"):
        open_ledger(path)
