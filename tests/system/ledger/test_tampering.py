"""Every edit of the stored ledger that changes what it says is found, and so is an older ledger in its place."""

from __future__ import annotations

import copy
import random
import sqlite3
from pathlib import Path

import pytest

from farthing.errors import LedgerTampered
from farthing.ledger import Verification
from farthing.ledger.ledger_replay import Replay
from system.ledger.flips import EDITS, Archive, spoilt, verdict
from system.ledger.history import copied, rows_of, write_rows


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    return Archive(tmp_path_factory.mktemp("archive"))


@pytest.mark.slow
def test_a_copy_without_an_edit_opens_and_finds_everything(archive: Archive) -> None:
    """Otherwise the other tests would find edits by refusing everything."""
    place = archive.fresh()
    write_rows(place, archive.rows)
    assert rows_of(place) == archive.rows
    assert verdict(place, archive.history, same=True) == "works"


@pytest.mark.slow
def test_random_edits_and_bit_flips_that_change_meaning_are_found(archive: Archive) -> None:
    found = list(spoilt(archive, 160, random.Random(7)))
    wrong = [case for case in found if case[2] != "refused" and case[1] != "flip that changes nothing"]
    assert wrong == []
    assert [case for case in found if case[2] not in ("refused", "works")] == []
    assert sum(kind == "edit" for _, kind, _ in found) == 80


def test_a_schema_that_is_not_text_is_a_clean_refusal(archive: Archive) -> None:
    """SQLite quotes what it cannot parse, and Python cannot decode the quotation: still an error of ours."""
    place = archive.fresh()
    path = Path(place.url)
    data = bytearray(path.read_bytes())
    data[data.index(b"CREATE TABLE farthing_entries")] ^= 0x80
    path.write_bytes(data)
    with pytest.raises(LedgerTampered) as refusal:
        place.open()
    assert refusal.value.__cause__ is None and "CREATE" not in str(refusal.value)


def test_each_kind_of_edit_is_found(archive: Archive) -> None:
    chance = random.Random(3)
    for edit in EDITS:
        while True:
            rows = copy.deepcopy(archive.rows)
            told = edit(rows, archive.older_rows, chance)
            place = archive.fresh()
            try:
                write_rows(place, rows)
            except sqlite3.DatabaseError:
                continue
            if rows_of(place) != archive.rows:
                break
        assert verdict(place, archive.history, same=False) == "refused", told


@pytest.mark.slow
def test_the_same_edits_pass_where_nothing_is_verified(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power of the edits: with the verification taken out, they go unnoticed."""

    def nothing(*_: object) -> tuple[Verification, Replay]:
        return Verification(True, 0, ""), Replay()

    monkeypatch.setattr("farthing.ledger.ledger_access.verify_store", nothing)
    seen = [found for _, kind, found in spoilt(archive, 20, random.Random(7)) if kind == "edit"]
    assert seen.count("NOT DETECTED") >= len(seen) // 2


def test_an_older_ledger_is_refused_where_a_newer_one_was_seen(archive: Archive, tmp_path: Path) -> None:
    """A backup put back: every mark in it is right, only the witness knows that there was more."""
    place = archive.fresh(witness=True)
    Path(place.url).write_bytes(Path(archive.older.url).read_bytes())
    with pytest.raises(LedgerTampered):
        place.open()


def test_a_receipt_finds_the_cut_tail_where_even_the_witness_was_put_back(archive: Archive, tmp_path: Path) -> None:
    place = copied(archive.older, tmp_path / "restored")
    with place.open(role="auditor") as ledger:
        assert ledger.verify().ok
        for n, receipt in enumerate(archive.history.receipts):
            assert ledger.verify(receipt=receipt).ok is (n < archive.older_receipts)
