"""Files that were cut, garbled, lost or exchanged: refused, or complete."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from farthing.errors import LedgerError, LedgerTampered
from system.ledger.checks import problems
from system.ledger.history import copied, files_of, made
from system.ledger.nursery import Nursery, lines_of
from system.ledger.places import DATASET, Place, sqlite_place

EPSILON = 0.001


def _garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def _cut(share: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(share * path.stat().st_size))


def _other_text(path: Path) -> None:
    path.write_text("this is not a database\n" * 500, encoding="utf-8")


def _fresh_database(path: Path) -> None:
    path.unlink()
    store = sqlite3.connect(path)
    store.execute("CREATE TABLE something (else_ INTEGER)")
    store.commit()
    store.close()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "garbage": _garbage,
    "half of it": _cut(0.5),
    "empty": _cut(0.0),
    "some other file": _other_text,
    "another database": _fresh_database,
    "gone": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_ruined_database_is_refused_and_not_begun_anew(damage: str, tmp_path: Path) -> None:
    """A ledger that was there once must not start again from nothing, with all of its budget unspent."""
    place = sqlite_place(tmp_path)
    made(place, 3)
    DAMAGES[damage](Path(place.url))
    for create in (False, True):
        with pytest.raises(LedgerError):
            place.open(create=create)


@pytest.mark.parametrize("damage", ["garbage", "half of it", "empty", "gone"])
@pytest.mark.parametrize("suffix", [".key", ".witness"])
def test_a_ruined_key_or_witness_is_refused_or_harmless(damage: str, suffix: str, tmp_path: Path) -> None:
    """Without its key a ledger does not open; a lost witness only loses what it knew."""
    place = sqlite_place(tmp_path)
    made(place, 3)
    before = sum(1 for path in files_of(place) if path.name.endswith(suffix))
    assert before == 1
    DAMAGES[damage](Path(place.url + suffix))
    try:
        with place.open() as ledger:
            opened = ledger.verify().ok and ledger.budget(DATASET).count == 3
    except LedgerError:
        opened = False
    assert not (suffix == ".key" and opened)


def test_a_ledger_that_went_on_from_a_copy_is_refused_in_its_old_place(tmp_path: Path) -> None:
    """Spending twice by copying: both copies verify, and neither is taken for the other."""
    place = sqlite_place(tmp_path)
    made(place, 3)
    clone = copied(place, tmp_path / "clone")
    with place.open() as ledger:
        ledger.charge(DATASET, EPSILON, request_id="here")
    with clone.open() as ledger:
        for n in range(5):
            ledger.charge(DATASET, EPSILON, request_id=f"there {n}")
    for suffix in ("", "-wal", "-shm"):
        if Path(clone.url + suffix).exists():
            shutil.copy2(clone.url + suffix, place.url + suffix)
    with pytest.raises(LedgerTampered):
        place.open()


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_log_that_was_cut_or_garbled_loses_no_charge_unnoticed(clients: Nursery, tmp_path: Path) -> None:
    """SQLite drops the end of a damaged log in silence. The witness knows that there was more."""
    place, said = _with_log(clients, tmp_path)
    log = Path(place.url + "-wal")
    whole, chance, outcomes = log.read_bytes(), random.Random(11), set()
    assert len(whole) > 10_000
    for n in range(40):
        spoilt = copied(place, tmp_path / f"spoilt-{n}")
        _spoil(Path(spoilt.url + "-wal"), chance, n)
        if n % 5 == 4:
            Path(spoilt.url + "-shm").write_bytes(bytes(32_768))
        found = problems(spoilt, said, EPSILON, 100_000)
        outcomes.add("refused" if any("does not open" in problem for problem in found) else "whole")
        assert found == [] or (len(found) == 1 and found[0].startswith("does not open")), found
        shutil.rmtree(tmp_path / f"spoilt-{n}")
    assert "refused" in outcomes
    assert problems(place, said, EPSILON, 100_000) == []


def _with_log(clients: Nursery, folder: Path) -> tuple[Place, list[dict[str, object]]]:
    """A ledger whose writer was killed, so that its last transactions are in the log only."""
    place = sqlite_place(folder)
    place.prepare(100.0)
    client = clients.start(place, "spend", 0, first=0, variant="charge first", epsilon=EPSILON)
    while len(lines_of(clients.file(place, 0))) < 60:
        client.wait(0.05)
    client.kill()
    assert client.wait()
    return place, clients.said(place, 1)


def _spoil(log: Path, chance: random.Random, n: int) -> None:
    data = bytearray(log.read_bytes())
    if n % 4 == 0:  # half-written: cut anywhere
        data = data[: chance.randrange(len(data))]
    elif n % 4 == 1:  # some of its blocks were never written
        start = 512 * chance.randrange(len(data) // 512)
        data[start : start + 512] = bytes(len(data[start : start + 512]))
    elif n % 4 == 2:  # one bit
        at = chance.randrange(8 * len(data))
        data[at // 8] ^= 1 << (at % 8)
    else:  # lost, or empty
        data = bytearray()
    log.write_bytes(data)


def _renamed(place: Place, backup: Place) -> None:
    os.replace(backup.url, place.url)


def _overwritten(place: Place, backup: Place) -> None:
    Path(place.url).write_bytes(Path(backup.url).read_bytes())


def _without_its_log(place: Place, _: Place) -> None:
    for suffix in ("-wal", "-shm"):
        Path(place.url + suffix).unlink(missing_ok=True)


@pytest.mark.parametrize("exchange", [_renamed, _overwritten, _without_its_log])
def test_files_exchanged_under_an_open_ledger_lose_no_charge_unnoticed(
    exchange: Callable[[Place, Place], None], tmp_path: Path
) -> None:
    """A backup put back while somebody charges: what was acknowledged is there afterwards, or nobody gets in."""
    place = sqlite_place(tmp_path)
    place.prepare(1.0)
    with place.open() as ledger:
        ledger.charge(DATASET, EPSILON, request_id="early")
    backup, said = copied(place, tmp_path / "backup"), []
    with place.open() as ledger:
        for n in range(5):
            ledger.charge(DATASET, EPSILON, request_id=f"before {n}")
            said.append({"charged": f"before {n}"})
        exchange(place, backup)
        with suppress(LedgerError):
            for n in range(5):
                ledger.charge(DATASET, EPSILON, request_id=f"after {n}")
                said.append({"charged": f"after {n}"})
    found = problems(place, said, EPSILON, 1000)
    assert found == [] or (len(found) == 1 and found[0].startswith("does not open")), found
