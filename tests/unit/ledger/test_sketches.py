"""Sketches of people in a ledger: kept for curators, and useless to who lacks the key."""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path

import pytest

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger import Ledger, open_ledger
from farthing.ledger.tamper_evidence import Chain


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = open_ledger(tmp_path / "study.db")
    ledger.register("patients", 1.0)
    return ledger


def test_the_last_sketch_of_each_table_is_kept_and_the_ledger_verifies(ledger: Ledger, tmp_path: Path) -> None:
    assert ledger.people.keep("patients", "visits.csv", b"one") is not None
    assert ledger.people.keep("patients", "visits.csv", b"one") is None
    ledger.people.keep("patients", "drugs.csv", b"two")
    ledger.people.keep("patients", "visits.csv", b"three")
    assert sorted(ledger.people.all()["patients"].values()) == [b"three", b"two"]
    assert ledger.verify().ok and ledger.budget("patients").untouched
    ledger.close()
    with open_ledger(tmp_path / "study.db") as again:
        assert len(again.people.all()["patients"]) == 2 and again.verify().ok
    with pytest.raises(InvalidValue), open_ledger(tmp_path / "study.db") as again:
        again.people.keep("nobody", "visits.csv", b"one")


def test_only_curators_keep_and_see_sketches(ledger: Ledger) -> None:
    ledger.people.keep("patients", "visits.csv", b"one")
    for role in ("analyst", "auditor"):
        other = ledger.acting("bob", role)
        with pytest.raises(NotAllowed):
            other.people.all()
        with pytest.raises(NotAllowed):
            other.people.keep("patients", "visits.csv", b"two")
    assert not list(ledger.acting("bob", "analyst").entries())


def test_without_the_key_a_sketch_says_nothing(ledger: Ledger) -> None:
    """Whoever has the entries, knows the exact sketch that was kept, and tries other keys, learns nothing."""
    sketch = bytes(range(256)) * 256
    ledger.people.keep("patients", "visits.csv", sketch)
    ledger.people.keep("patients", "drugs.csv", sketch)
    ledger.people.keep("patients", "other.csv", secrets.token_bytes(len(sketch)))
    texts = [entry.body["sketch"] for entry in ledger.entries() if entry.kind == "people"]
    sealed = [base64.b64decode(text)[16:] for text in texts]
    assert len(set(map(len, texts))) == 1  # the same length, whatever is in it

    def agreement(a: bytes, b: bytes) -> float:
        """The share of equal bits: a half for strangers; 10 standard deviations are 0.7 points."""
        return 1 - (int.from_bytes(a) ^ int.from_bytes(b)).bit_count() / (8 * len(a))

    for a, b in [(sealed[0], sealed[1]), (sealed[0], sketch), (sealed[1], sketch), (sealed[0], sealed[2])]:
        assert abs(agreement(a, b) - 0.5) < 0.007
    for key in (bytes(32), secrets.token_bytes(32), ledger.id.encode().ljust(32)):
        assert abs(agreement(Chain(key, ledger.id).opened(texts[0]), sketch) - 0.5) < 0.007
    assert agreement(ledger._chain.opened(texts[0]), sketch) == 1.0
    assert "visits" not in json.dumps([entry.to_dict() for entry in ledger.entries()])
