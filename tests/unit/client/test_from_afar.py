"""What a client reads and asks at a server beyond plans and releases: grants, the ledger, sessions."""

from __future__ import annotations

import pytest

import farthing as ft
from farthing.errors import InvalidExpression, NotAllowed, RequestRefused
from unit.client.conftest import Connect
from unit.server.conftest import DATASET

SCOPES = ("read", "plan", "spend", "manage")


def test_an_analyst_spends_a_grant_and_may_not_do_more(connect: Connect) -> None:
    bob = connect("bob")
    study = bob.study(DATASET)
    assert study.budget.analyst == "bob" and study.budget.total.epsilon == 1.0
    release = study.plan(ft.count(), epsilon=0.05).release(request_id="first")
    assert release.request_id == "bob:first"
    assert study.budget.spent_upper == pytest.approx(0.05, abs=1e-6)
    with pytest.raises((NotAllowed, RequestRefused)):
        bob.register("other", "people.csv", schema={"age": (0, 110)}, epsilon=1.0)
    with pytest.raises((NotAllowed, RequestRefused)):
        connect("bob", "read").study(DATASET).plan(ft.count(), epsilon=0.05)
    assert {entry.analyst for entry in bob.ledger.entries(DATASET)} <= {"bob"}


def test_the_ledger_is_read_and_verified_from_afar(connect: Connect) -> None:
    ada = connect("ada", *SCOPES)
    release = ada.study(DATASET).plan(ft.count(), epsilon=0.05).release()
    assert ada.ledger.verify(release.receipt).ok
    entries = list(ada.ledger.entries(DATASET))
    assert [entry.sequence for entry in entries] == sorted(entry.sequence for entry in entries)
    assert any(entry.request_id == release.request_id and entry.kind == "charge" for entry in entries)
    assert ada.ledger.budget(DATASET).count >= 1 and ada.datasets() == ada.ledger.datasets() == [DATASET]


def test_questions_are_asked_from_afar(connect: Connect) -> None:
    study = connect("ada", *SCOPES).study(DATASET)
    answerer = study.answerer(0.95, 20, columns=["sex"], rows=60, epsilon=1.0, request_id="asked")
    first = answerer.ask("sex = 'F'")
    assert first.error is None or first.error > 0
    assert answerer.ask("sex = 'F'").value == first.value
    assert study.answerer(0.95, 20, columns=["sex"], rows=60, epsilon=1.0, request_id="asked").ask(
        "sex = 'F'"
    ).value == pytest.approx(first.value)
    with pytest.raises(InvalidExpression) as wrong:
        answerer.ask("sex =")
    assert wrong.value.position is not None
    assert [one["question"] for one in answerer.history][:1] == ["sex = 'F'"]
