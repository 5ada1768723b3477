"""Deposits in a ledger: kept with their release, seen by every machine, and never with a secret."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger import Ledger, open_ledger
from farthing.ledger.deposit_records import PATIENCE, DepositRecord

ONE = DepositRecord("patients", "health", 1, 4, "https://d.example.org", "doi:10.5072/A", "ab" * 32, "done", "cd" * 8)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = open_ledger(tmp_path / "study.db")
    ledger.register("patients", 1.0)
    ledger.release(ledger.charge("patients", 0.25, request_id="bob:1"), "{}")
    return ledger


def test_a_deposit_costs_nothing_and_the_ledger_verifies(ledger: Ledger, tmp_path: Path) -> None:
    before = ledger.budget("patients")
    assert ledger.deposits.keep(ONE) is not None
    assert ledger.deposits.keep(ONE) is None
    ledger.deposits.keep(replace(ONE, state="published"))
    after = ledger.budget("patients")
    assert (after.spent_upper, after.count, after.remaining) == (before.spent_upper, before.count, before.remaining)
    assert ledger.verify().ok
    ledger.close()
    with open_ledger(tmp_path / "study.db") as again:
        assert [each.state for each in again.deposits.all()] == ["done", "published"] and again.verify().ok
        assert replace(again.deposits.all()[0], time_ns=0) == ONE
        with pytest.raises(InvalidValue):
            again.deposits.keep(replace(ONE, account="nobody"))


def test_the_receipt_of_a_release_is_found_by_its_number_and_names_nobody(ledger: Ledger) -> None:
    stored = ledger.stored("bob:1")
    assert stored is not None and ledger.deposits.receipt(stored.receipt.sequence) == stored.receipt.without_names()
    assert ledger.deposits.receipt(stored.receipt.sequence - 1) is None  # the charge
    assert ledger.deposits.receipt(99) is None


@pytest.mark.parametrize("server", ["https://ada:secret@d.example.org", "https://d.example.org?key=secret"])
def test_an_address_with_a_secret_is_refused_and_not_repeated(server: str, ledger: Ledger) -> None:
    with pytest.raises(InvalidValue) as refusal:
        ledger.deposits.keep(replace(ONE, server=server))
    assert "secret" not in str(refusal.value) and ledger.deposits.all() == []


def test_curators_write_auditors_read_and_analysts_see_nothing(ledger: Ledger) -> None:
    ledger.deposits.keep(ONE)
    assert len(ledger.acting("eve", "auditor").deposits.all()) == 1
    with pytest.raises(NotAllowed):
        ledger.acting("eve", "auditor").deposits.keep(replace(ONE, state="published"))
    with pytest.raises(NotAllowed):
        ledger.acting("bob", "analyst").deposits.all()
    assert "deposit" not in {entry.kind for entry in ledger.acting("bob", "analyst").entries()}


def test_nobody_writes_between_a_look_and_its_entry(tmp_path: Path, ledger: Ledger) -> None:
    """Eight connections take the one place at once, while charges are made: one gets it."""
    ledger.close()
    taken, refused = [], []

    def take(number: int) -> None:
        with open_ledger(tmp_path / "study.db") as own:
            own.charge("patients", 0.001, request_id=f"charge {number}")

            def alone(before: object) -> None:
                if before:
                    raise InvalidValue("deposit", number, "is not the first")

            try:
                own.deposits.keep(replace(ONE, attempt=f"{number}"), alone)
                taken.append(number)
            except InvalidValue:
                refused.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(taken) == 1 and len(refused) == 7
    with open_ledger(tmp_path / "study.db") as again:
        assert len(again.deposits.all()) == 1 and again.verify().ok


def test_one_that_says_nothing_is_left_after_a_while() -> None:
    running = replace(ONE, running=True, time_ns=10**18)
    assert running.is_under_way(10**18 + PATIENCE - 1) and not running.is_under_way(10**18 + PATIENCE)
    assert not running.is_under_way(10**18 - PATIENCE)  # a clock that was wrong holds nobody up for ever
    assert not replace(running, running=False).is_under_way(10**18)
