"""A curator's open ledger lent to others: their name and role count, and it stays the lender's to close."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import InvalidValue, NotAllowed
from farthing.ledger import Ledger, open_ledger


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db", actor="server") as ledger:
        ledger.register("people", 1.0)
        ledger.grant("people", "bob", 0.5)
        yield ledger


def test_entries_carry_the_name_and_role_of_who_acts(root: Ledger) -> None:
    root.acting("ada", "curator").set_budget("people", 2.0)
    root.acting("bob", "analyst").charge("people", 0.25, request_id="bob:1")
    last = list(root.entries())[-2:]
    assert [(entry.actor, entry.role, entry.analyst) for entry in last] == [
        ("ada", "curator", ""),
        ("bob", "analyst", "bob"),
    ]
    assert root.verify().ok


def test_all_see_the_same_ledger_at_once(root: Ledger) -> None:
    bob, eve = root.acting("bob", "analyst"), root.acting("eve", "auditor")
    bob.charge("people", 0.25, request_id="bob:1")
    assert eve.budget("people", "bob").remaining.epsilon == 0.25
    assert root.stored("bob:1") is not None


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_only_a_curators_ledger_can_be_lent(root: Ledger, role: str) -> None:
    with pytest.raises(NotAllowed, match="may not let somebody else act"):
        root.acting("bob", role).acting("ada", "curator")


def test_who_borrows_may_do_what_their_role_may(root: Ledger) -> None:
    with pytest.raises(NotAllowed):
        root.acting("bob", "analyst").set_budget("people", 9.0)
    with pytest.raises(NotAllowed):
        root.acting("eve", "auditor").charge("people", 0.1, request_id="eve:1")
    with pytest.raises(NotAllowed):
        root.acting("eve", "analyst").budget("people", "bob")


@pytest.mark.parametrize(("actor", "role"), [("", "curator"), ("a\nb", "curator"), ("ada", "owner"), (3, "curator")])
def test_a_name_or_role_that_is_none_is_refused(root: Ledger, actor: str, role: str) -> None:
    with pytest.raises(InvalidValue):
        root.acting(actor, role)


def test_closing_what_was_lent_closes_nothing(root: Ledger) -> None:
    with root.acting("bob", "analyst") as bob:
        bob.close()
    assert root.datasets() == ["people"]
    assert bob.datasets() == ["people"]


def test_a_charge_while_accounts_are_listed_is_no_older_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of a server share one memory: what one has just written must not make what another read look old."""
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0)
        ledger.sources()
        reading = ledger._store.reading

        @contextmanager
        def overtaken() -> Iterator[Any]:
            with reading() as link:
                yield link
            monkeypatch.undo()
            ledger.charge("people", 0.5, request_id="of another thread")

        monkeypatch.setattr(ledger._store, "reading", overtaken)
        assert list(ledger.sources()) == ["people"]
        assert ledger.budget("people").count == 1
