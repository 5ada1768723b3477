"""Totals: a ledger whose marks are all genuine, and whose sums are not, does not verify either."""

from __future__ import annotations

import json

import pytest

from farthing.errors import LedgerTampered
from farthing.ledger import Entry, open_ledger
from farthing.ledger.account import Account
from farthing.ledger.account_state import Holding
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.entries import totals_of
from farthing.ledger.ledger_replay import Replay, totals_agree
from farthing.ledger.tamper_evidence import canonical, fingerprint
from farthing.privacy import GaussianNoise


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> list[Entry]:
    """Every kind of entry, and so many that whole states are compared on the way."""
    with open_ledger(tmp_path_factory.mktemp("ledger") / "study.db") as ledger:
        ledger.register("people", 2.0, 1e-6)
        ledger.grant("people", "bob", 1.0, 1e-6)
        ledger.reserve("people", 0.25)
        for number in range(16):
            charge = ledger.charge("people", 0.01, request_id=f"a-{number}", analyst="bob")
            if number % 2:
                ledger.release(charge, "x")
            ledger.charge("people", GaussianNoise(500.0), request_id=f"b-{number}")
        ledger.forfeit(ledger.charge("people", 0.01, request_id="e"), "stays spent")
        ledger.charge("people", 0.1, request_id="c", use_reserve="reserve")
        ledger.set_budget("people", 3.0, 1e-6)
        for number in range(26):
            ledger.charge("people", 0.001, request_id=f"d-{number}")
        return list(ledger.entries())


def _follow(entries: list[Entry]) -> Replay:
    replay = Replay()
    for entry in entries:
        replay.follow(entry)
    return replay


def test_a_genuine_history_adds_up(history: list[Entry]) -> None:
    replay = _follow(history)
    assert replay.sequence == len(history) > 64
    account = replay.holding("people").account
    assert account.count == 16 + 16 + 1 + 1 + 26
    assert replay.holding("people", "bob").waiting == 8


@pytest.mark.parametrize("field", ["count", "sum_nano", "sum_units", "leak_units"])
def test_wrong_sums_are_found_where_they_stand(history: list[Entry], field: str) -> None:
    place = next(i for i, entry in enumerate(history) if entry.request_id == "b-3")
    wrong = history[place]
    totals = {"": {**wrong.totals[""], field: wrong.totals[""][field] + 1}}
    altered = [*history[:place], wrong._replace(totals_text=canonical(totals)), *history[place + 1 :]]
    with pytest.raises(LedgerTampered, match="are not the sum") as found:
        _follow(altered)
    assert found.value.sequence == wrong.sequence


def test_a_wrong_price_is_found_at_once_or_with_the_next_whole_state(history: list[Entry]) -> None:
    place = next(i for i, entry in enumerate(history) if entry.request_id == "a-0")
    wrong = history[place]
    for name, value in (("epsilon_nano", 1), ("clock_units", 1), ("excess_units", 1)):
        price = {**wrong.body["price"], name: value}
        body = canonical({**wrong.body, "price": price})
        altered = [*history[:place], wrong._replace(body_text=body), *history[place + 1 :]]
        with pytest.raises(LedgerTampered, match="are not the sum"):
            _follow(altered)


def test_a_change_of_policy_changes_nothing_else(history: list[Entry]) -> None:
    for place in (i for i, entry in enumerate(history) if entry.kind in ("budget", "grant", "reserve", "dataset")):
        wrong = history[place]
        account = wrong.body["state"]["account"]
        for name in ("count", "sum_nano", "sum_units", "leak_units"):
            state = {**wrong.body["state"], "account": {**account, name: account[name] + 1}}
            who = wrong.analyst if wrong.kind == "grant" else ""
            totals = canonical({who: {**wrong.totals[who], name: account[name] + 1}})
            body = canonical({**wrong.body, "state": state})
            with pytest.raises(LedgerTampered, match="are not the sum"):
                _follow([*history[:place], wrong._replace(body_text=body, totals_text=totals)])


def test_gaps_swaps_and_repeats_are_found(history: list[Entry]) -> None:
    for altered in (
        history[1:],
        [*history[:5], *history[6:]],
        [*history[:5], history[6], history[5], *history[7:]],
        [*history[:6], history[5], *history[6:]],
    ):
        with pytest.raises(LedgerTampered, match="is missing"):
            _follow(altered)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("body_text", "{}"),
        ("body_text", '{"price":{},"reserve":""}'),
        ("body_text", "[1, 2"),
        ("body_text", "[" * 100_000),
        ("totals_text", ""),
        ("totals_text", "{}"),
        ("totals_text", '{"":{}}'),
    ],
)
def test_an_entry_that_cannot_be_read_is_found(history: list[Entry], field: str, text: str) -> None:
    place = next(i for i, entry in enumerate(history) if entry.request_id == "b-3")
    altered = [*history[:place], history[place]._replace(**{field: text})]
    with pytest.raises(LedgerTampered, match=r"cannot be read|are not the sum"):
        _follow(altered)


def test_totals_are_the_json_of_the_sums_and_the_fingerprints(history: list[Entry]) -> None:
    """They are written and compared as text; this is the twin that reads them."""
    replay = Replay()
    for entry in history:
        replay.follow(entry)
        who = [""] if entry.kind != "grant" else []
        if entry.analyst and entry.kind in ("grant", "charge", "released", "forfeited"):
            who.append(entry.analyst)
        states = {w: replay.holding(entry.dataset, w) for w in who} if entry.sequence > 1 else {}
        expected = {
            w: {
                "count": held.account.count,
                "leak_units": held.account.leak_units,
                "sum_nano": held.account.sum_nano,
                "sum_units": held.account.sum_units,
                "whole": fingerprint(held.text()),
            }
            for w, held in states.items()
        }
        assert entry.totals == expected
        assert entry.totals_text == (canonical(expected) if expected else "")
        for state in states.values():
            assert state.text() == canonical(json.loads(state.text())) and Holding.of_text(state.text()) == state


def test_the_accounts_are_those_of_adding_one_charge_after_the_other(history: list[Entry]) -> None:
    """The twin: no price is ever multiplied, and nothing waits to be added."""
    replay, states = Replay(), dict[str, Holding]()
    for n, entry in enumerate(history):
        replay.follow(entry)
        body = entry.body
        if entry.kind in ("dataset", "grant", "reserve", "budget"):
            states[entry.analyst] = Holding.of_text(canonical(body["state"]))
        for who in ("", entry.analyst) if entry.analyst else ("",):
            own = "own_" if who else ""
            if entry.kind == "charge":
                price = ChargePrice.from_dict(body[f"{own}price"])
                states[who] = states[who].charged(price, "" if who else body["reserve"])
            elif entry.kind in ("released", "forfeited"):
                states[who] = states[who].settled(body[f"{own}nano"])
        if n % 5 == 0 or n == len(history) - 1:  # asking in the middle must not change what comes after
            assert {who: held for (_, who), (_, held) in replay.accounts.items()} == states


def test_totals_of_other_accounts_are_not_those_of_these() -> None:
    bob, one = Holding(Account.of(1.0)), Holding(Account.of(2.0)).charged(Account.of(2.0).priced(0.5))
    claimed = totals_of({"": (one, one.text()), "bob": (bob, bob.text())})
    assert totals_agree(claimed, {"": one, "bob": bob}, whole=True)
    for other in ({"": one}, {"": one, "bib": bob}, {"": bob, "bob": bob}, {}, {"bob": bob}):
        assert not totals_agree(claimed, other, whole=False)
    assert totals_agree(claimed.replace(fingerprint(bob.text()), "0" * 32), {"": one, "bob": bob}, whole=False)
    assert not totals_agree(claimed.replace(fingerprint(bob.text()), "0" * 32), {"": one, "bob": bob}, whole=True)
    assert not totals_agree(claimed + " ", {"": one, "bob": bob}, whole=False)


def test_an_entry_of_another_branch_is_found(history: list[Entry]) -> None:
    """Its number fits and its mark is genuine, but it was written after another entry."""
    with pytest.raises(LedgerTampered, match="is missing"):
        _follow([*history[:5], history[5]._replace(previous="ab" * 32)])
