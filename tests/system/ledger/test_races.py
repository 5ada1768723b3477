"""Nobody overdraws a budget by being many: processes, threads, forks, and all of them with one request."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from farthing.errors import BudgetExceeded
from system.ledger.checks import problems
from system.ledger.conftest import NewPlace
from system.ledger.nursery import Nursery
from system.ledger.places import DATASET, OTHERS
from system.ledger.race import EPSILON, raced, tally
from system.ledger.toy import ToyPlace

FITS = 80


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_of_32_processes_exactly_as_many_charges_succeed_as_fit(
    clients: Nursery, new_place: NewPlace, tmp_path: Path
) -> None:
    place = new_place()
    place.prepare(FITS * EPSILON)
    said = raced(clients, place, tmp_path, processes=32, attempts=4)
    assert tally(said) == {"charged": FITS, "refused": 128 - FITS}
    assert problems(place, said, EPSILON, FITS) == []


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_two_who_join_exhausted_accounts_are_charged_nothing(
    clients: Nursery, new_place: NewPlace, tmp_path: Path
) -> None:
    place = new_place()
    place.prepare(FITS * EPSILON)
    with place.open() as ledger:
        for name in OTHERS:
            ledger.charge(name, FITS * EPSILON, request_id=f"all of {name}")
        before = {name: ledger.budget(name).count for name in (DATASET, *OTHERS)}
        said = raced(clients, place, tmp_path, processes=2, attempts=8, others=list(OTHERS), release=True)
        assert tally(said) == {"refused": 16}
        assert {name: ledger.budget(name).count for name in before} == before and ledger.verify().ok
        assert {entry.kind for entry in ledger.entries(DATASET)} == {"dataset", "refused"}


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_ledger_that_looks_before_it_writes_is_caught(clients: Nursery, tmp_path: Path) -> None:
    """The power of the race: 16 processes overdraw a ledger that reads outside of its transaction."""
    charged = []
    while max(charged, default=0) <= FITS and len(charged) < 40:  # a busy machine may let them in one by one
        place = ToyPlace(str(tmp_path / f"toy-{len(charged)}.db"))
        place.open().register(DATASET, FITS * EPSILON)
        said = raced(clients, place, tmp_path, processes=16, attempts=8, kind="system.ledger.toy:ToyPlace")  # type: ignore[arg-type]
        charged.append(tally(said)["charged"])
    assert max(charged) > FITS


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_one_request_of_many_processes_is_charged_and_answered_once(
    clients: Nursery, new_place: NewPlace, tmp_path: Path
) -> None:
    place = new_place()
    place.prepare(1.0)
    said = raced(clients, place, tmp_path, processes=8, attempts=3, request="the same", release=True)
    charged = [line for line in said if "charged" in line]
    assert len(charged) == 24 and len({line["sequence"] for line in charged}) == 1
    assert sum(not line["repeated"] for line in charged) == 1
    assert len({line["answer"] for line in said if "answer" in line}) == 1
    assert problems(place, said, EPSILON, 100) == []


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_many_who_make_the_same_new_ledger_make_one(clients: Nursery, new_place: NewPlace, tmp_path: Path) -> None:
    """The first processes of a study all find no ledger: there must be one, with one key, that holds all of them."""
    place = new_place()
    with pytest.raises(AssertionError, match="people"):  # nobody registered the dataset: each says so, at its charge
        raced(clients, place, tmp_path, processes=12, attempts=1)
    with place.open() as ledger:
        assert [entry.kind for entry in ledger.entries()].count("created") == 1
        assert ledger.verify().ok


def test_threads_of_one_ledger_do_not_overdraw(new_place: NewPlace) -> None:
    place = new_place()
    place.prepare(20 * EPSILON)
    outcomes: list[str] = []

    def charge(lane: int) -> None:
        for n in range(5):
            try:
                ledger.charge(DATASET, EPSILON, request_id=f"{lane}-{n}")
                outcomes.append("charged")
            except BudgetExceeded:
                outcomes.append("refused")

    with place.open() as ledger:
        threads = [threading.Thread(target=charge, args=(lane,)) for lane in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["charged"] * 20 + ["refused"] * 20
    assert problems(place, [], EPSILON, 20) == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_forked_process_may_go_on_with_its_parents_ledger(new_place: NewPlace) -> None:
    place = new_place()
    place.prepare(1.0)
    with place.open() as ledger:
        ledger.charge(DATASET, EPSILON, request_id="before")
        child = os.fork()
        if child == 0:
            try:
                for n in range(10):
                    ledger.charge(DATASET, EPSILON, request_id=f"child-{n}")
                os._exit(0)
            finally:
                os._exit(1)
        for n in range(10):
            ledger.charge(DATASET, EPSILON, request_id=f"parent-{n}")
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        ledger.charge(DATASET, EPSILON, request_id="after")
        assert ledger.budget(DATASET).count == 22
    assert problems(place, [], EPSILON, 100) == []
