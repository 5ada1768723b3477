"""A full disk, a read-only file, a locked database, another clock: a clean refusal or correct operation."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import LedgerError, LedgerUnavailable
from system.ledger.checks import problems
from system.ledger.conftest import NewPlace
from system.ledger.faults import (
    TEN_YEARS,
    as_nobody,
    clock_off_by,
    files_stay_small,
    folder_for_all,
    give_to_nobody,
    pages_capped,
    small_disk,
)
from system.ledger.history import files_of
from system.ledger.nursery import Nursery, refuse_failures
from system.ledger.places import DATASET, Place, sqlite_place

EPSILON = 0.001
FITS = 100_000


@contextmanager
def _shortage(kind: str, folder: Path) -> Iterator[tuple[Path, Any]]:
    """Where the ledger goes, and a context in which there is little room."""
    if kind == "small disk" and os.geteuid() == 0:
        with small_disk(folder, 400) as (place, until_then):
            yield place, until_then
    else:
        yield folder, pages_capped(40) if kind == "page cap" else files_stay_small(300)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["small disk", "file size", "page cap"])
def test_without_room_a_charge_is_refused_and_none_is_lost(kind: str, tmp_path: Path) -> None:
    """Every charge that was acknowledged is there, and with room again the same request goes through."""
    with _shortage(kind, tmp_path) as (folder, shortage):
        place = sqlite_place(folder)
        place.prepare(FITS * EPSILON)
        said: list[dict[str, Any]] = []
        with shortage:
            _charge_until_refused(place, said)
        refused = len(said)
        with place.open() as ledger:
            charge = ledger.charge(DATASET, EPSILON, request_id=f"request-{refused}")
            said.append({"charged": f"request-{refused}", "sequence": charge.sequence})
        assert problems(place, said, EPSILON, FITS) == []


def _charge_until_refused(place: Place, said: list[dict[str, Any]]) -> None:
    with place.open() as ledger:
        with pytest.raises(LedgerUnavailable):
            for n in range(5_000):
                charge = ledger.charge(DATASET, EPSILON, request_id=f"request-{n}")
                said.append({"charged": f"request-{n}", "sequence": charge.sequence})
        for _ in range(3):  # refused in the same way, or charged because SQLite could begin its log anew
            with suppress(LedgerUnavailable):
                charge = ledger.charge(DATASET, EPSILON, request_id=f"request-{len(said)}")
                said.append({"charged": charge.request_id, "sequence": charge.sequence})
        # What is there can still be read.
        assert ledger.budget(DATASET).count >= len(said) > 10


@pytest.mark.slow
@pytest.mark.parametrize("what", ["file", "directory", "everything"])
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_read_only_ledger_refuses_charges_cleanly(what: str) -> None:
    with folder_for_all() as folder:
        place = sqlite_place(folder)
        place.prepare(1.0)
        files = files_of(place)
        give_to_nobody([*files, folder])
        for path in files:
            if what == "everything" or (what == "file" and path == Path(place.url)):
                path.chmod(0o444 if path.suffix != ".key" else 0o400)
        if what != "file":
            folder.chmod(0o555)

        def charge() -> str:
            try:
                with place.open() as ledger:
                    ledger.charge(DATASET, EPSILON, request_id="one")
                return "charged"
            except LedgerError as refusal:
                return f"{type(refusal).__name__}: {refusal}"

        told = as_nobody(charge)
        folder.chmod(0o755)
        for path in files_of(place):
            path.chmod(0o600)
        with place.open() as ledger:
            count = ledger.budget(DATASET).count
        if told == "charged":  # the directory alone may be read-only while its files are not
            assert (what, count) == ("directory", 1)
        else:
            assert told.startswith("LedgerUnavailable") and count == 0, told


@pytest.mark.parametrize("how", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_database_locked_by_somebody_else_is_unavailable_and_then_available(how: str, tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    place.prepare(1.0)
    with place.open(timeout=0.2) as ledger:
        other = sqlite3.connect(place.url, isolation_level=None)
        other.execute(how)
        for _ in range(2):
            with pytest.raises(LedgerUnavailable):
                ledger.charge(DATASET, EPSILON, request_id="one")
        other.execute("ROLLBACK")
        other.close()
        assert not ledger.charge(DATASET, EPSILON, request_id="one").repeated
    assert problems(place, [], EPSILON, 1000) == []


@pytest.mark.slow
def test_a_clock_that_is_years_or_centuries_off_changes_nothing_but_the_times(
    new_place: NewPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = new_place()
    place.prepare(1.0)
    for n, off in enumerate((0, TEN_YEARS, -TEN_YEARS, -7 * TEN_YEARS, 30 * TEN_YEARS, -40 * TEN_YEARS, 0)):
        with clock_off_by(off, monkeypatch), place.open() as ledger:
            charge = ledger.charge(DATASET, EPSILON, request_id=str(n))
            ledger.release(charge, f"answer {n}")
            assert ledger.verify().ok
    with place.open() as ledger:
        charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
        assert [charge.request_id for charge in charges] == ["0", "1", "2", "3", "4", "5", "6"]
        assert charges[1].time_ns - charges[0].time_ns > 9 * TEN_YEARS // 10 * 10**9
        assert charges[2].when.year < charges[0].when.year - 9
        assert (charges[4].when.year, charges[5].when.year) == (
            2262,
            1677,
        )  # as far as a number of theirs goes
    assert problems(place, [], EPSILON, 1000) == []


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_control_c_during_charges_leaves_the_ledger_in_order(clients: Nursery, new_place: NewPlace) -> None:
    """The same handle goes on; what was interrupted is asked again under its own request id."""
    place = new_place()
    place.prepare(FITS * EPSILON)
    client = clients.start(place, "interrupted", 0, epsilon=EPSILON, attempts=60, interrupts=40)
    assert client.wait()
    said = clients.said(place, 1)
    refuse_failures(said)
    assert sum("charged" in line for line in said) == 60
    assert sum("interrupted" in line for line in said) > 20
    assert not any("reopened" in line for line in said)  # the handle itself goes on
    assert problems(place, said, EPSILON, FITS) == []


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(LedgerUnavailable) as refusal:
        Place("postgresql://owner:secret@127.0.0.1:1/nothing", str(tmp_path / "key")).open()
    assert "secret" not in str(refusal.value) and time.monotonic() - start < 60
