"""Receipts: round trips, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from farthing.errors import InvalidValue
from farthing.ledger import Ledger, Receipt, open_ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = open_ledger(tmp_path / "study.db")
    made.register("people", 1.0)
    return made


def test_a_receipt_goes_through_a_file(ledger: Ledger, tmp_path: Path) -> None:
    receipt = ledger.release(ledger.charge("people", 0.1, request_id="r-1"), "x")
    assert Receipt.load(receipt.save(tmp_path / "receipt.json")) == receipt
    assert ledger.receipt("r-1") == receipt and ledger.receipt("r-2") is None
    assert receipt.mac == list(ledger.entries())[-1].mac


def test_every_changed_field_is_found(ledger: Ledger) -> None:
    receipt = ledger.release(ledger.charge("people", 0.1, request_id="r-1"), "x")
    ledger.charge("people", 0.1, request_id="r-2")
    assert ledger.verify(receipt).ok
    for name in Receipt.__slots__:
        value = getattr(receipt, name)
        other = (*value, "x") if isinstance(value, tuple) else value + "x" if isinstance(value, str) else value + 1
        wrong = replace(receipt, **{name: other})
        assert not ledger.verify(wrong).ok, name
    for sequence in (0, -1, 1, 10**9):
        assert not ledger.verify(replace(receipt, sequence=sequence)).ok


def test_one_receipt_names_every_account_that_paid(ledger: Ledger, tmp_path: Path) -> None:
    for name in ("crews", "planes"):
        ledger.register(name, 1.0)
    receipt = ledger.release(ledger.charge("people", 0.1, request_id="r-1", others=["planes", "crews"]), "x")
    assert receipt.accounts == ("people", "crews", "planes")
    assert Receipt.load(receipt.save(tmp_path / "receipt.json")) == receipt and ledger.verify(receipt).ok
    assert ledger.verify(replace(receipt, others=())).ok  # as older versions wrote it
    assert not ledger.verify(replace(receipt, others=("crews",))).ok


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '"x"', "\0", "[" * 100_000])
def test_what_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        Receipt.from_json(text)


def test_types_are_checked_and_infinity_is_null(ledger: Ledger) -> None:
    ledger.charge("people", 0.1, request_id="r-1")
    receipt = ledger.receipt("r-1")
    assert receipt is not None and receipt.state == "reserved"
    unbounded = replace(receipt, epsilon=math.inf)
    assert '"epsilon": null' in unbounded.to_json() and Receipt.from_json(unbounded.to_json()) == unbounded
    data = json.loads(receipt.to_json())
    for name, wrong in (
        ("sequence", "3"),
        ("sequence", True),
        ("mac", 5),
        ("epsilon", "x"),
        ("delta", None),
        ("epsilon", 10**400),
        ("epsilon", math.nan),
    ):
        with pytest.raises(InvalidValue):
            Receipt.from_json(json.dumps({**data, name: wrong}))


def test_a_receipt_replaces_a_receipt_and_nothing_else(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
        receipt = ledger.release(ledger.charge("people", 0.1, request_id="r-1"), "x")
        path = receipt.save(tmp_path / "receipt.json")
        assert receipt.save(path) == path and Receipt.load(path) == receipt
        (tmp_path / "notes.txt").write_text("do not lose")
        for other in ("study.db", "study.db.key", "study.db.witness", "notes.txt"):
            before = (tmp_path / other).read_bytes()
            with pytest.raises(InvalidValue, match="is a file of something else"):
                receipt.save(tmp_path / other)
            assert (tmp_path / other).read_bytes() == before
