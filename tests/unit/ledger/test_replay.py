"""Totals: a ledger whose marks are all genuine, and whose sums are not, does not verify either."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farthing.errors import LedgerTampered
from farthing.ledger import Entry, open_ledger
from farthing.ledger.replay import Replay
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
    account = replay.accounts["people", ""][1].account
    assert account.count == 16 + 16 + 1 + 1 + 26
    assert replay.accounts["people", "bob"][1].waiting == 8


@pytest.mark.parametrize("field", ["count", "sum_nano", "sum_units", "leak_units"])
def test_wrong_sums_are_found_where_they_stand(history: list[Entry], field: str) -> None:
    place = next(i for i, entry in enumerate(history) if entry.request_id == "b-3")
    wrong = history[place]
    after = {"": {**wrong.body["after"][""], field: wrong.body["after"][""][field] + 1}}
    altered = [*history[:place], replace(wrong, body={**wrong.body, "after": after}), *history[place + 1 :]]
    with pytest.raises(LedgerTampered, match="are not the sum") as found:
        _follow(altered)
    assert found.value.sequence == wrong.sequence


def test_a_wrong_price_is_found_at_once_or_with_the_next_whole_state(history: list[Entry]) -> None:
    place = next(i for i, entry in enumerate(history) if entry.request_id == "a-0")
    wrong = history[place]
    for name, value in (("epsilon_nano", 1), ("divergences", [0] * len(wrong.body["price"]["divergences"]))):
        price = {**wrong.body["price"], name: value}
        altered = [
            *history[:place], replace(wrong, body={**wrong.body, "price": price}), *history[place + 1 :],
        ]  # fmt: skip
        with pytest.raises(LedgerTampered, match="are not the sum"):
            _follow(altered)


def test_a_change_of_policy_changes_nothing_else(history: list[Entry]) -> None:
    for place in (
        i for i, entry in enumerate(history) if entry.kind in ("budget", "grant", "reserve", "dataset")
    ):
        wrong = history[place]
        account = wrong.body["state"]["account"]
        for name in ("count", "sum_nano", "sum_units", "leak_units"):
            state = {**wrong.body["state"], "account": {**account, name: account[name] + 1}}
            who = wrong.analyst if wrong.kind == "grant" else ""
            after = {who: {**wrong.body["after"][who], name: account[name] + 1}}
            body = {**wrong.body, "state": state, "after": after}
            with pytest.raises(LedgerTampered, match="are not the sum"):
                _follow([*history[:place], replace(wrong, body=body)])


def test_gaps_swaps_and_repeats_are_found(history: list[Entry]) -> None:
    for altered in (
        history[1:],
        [*history[:5], *history[6:]],
        [*history[:5], history[6], history[5], *history[7:]],
        [*history[:6], history[5], *history[6:]],
    ):
        with pytest.raises(LedgerTampered, match="is missing"):
            _follow(altered)


@pytest.mark.parametrize("body", [{}, {"after": {}}, {"price": {}, "reserve": "", "after": {"": {}}}])
def test_a_body_that_cannot_be_read_is_found(history: list[Entry], body: dict[str, object]) -> None:
    place = next(i for i, entry in enumerate(history) if entry.request_id == "b-3")
    altered = [*history[:place], replace(history[place], body=body)]
    with pytest.raises(LedgerTampered, match=r"cannot be read|are not the sum"):
        _follow(altered)


def test_an_entry_of_another_branch_is_found(history: list[Entry]) -> None:
    """Its number fits and its mark is genuine, but it was written after another entry."""
    with pytest.raises(LedgerTampered, match="is missing"):
        _follow([*history[:5], replace(history[5], previous="ab" * 32)])
