"""Charges worked out ahead: what is written is what the long way would write, and nothing stale is ever charged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from farthing.ledger import Ledger, open_ledger
from farthing.ledger.account import Account
from farthing.ledger.account_state import Holding
from farthing.ledger.charge_quotes import Request, quoted, written
from farthing.ledger.tamper_evidence import canonical
from farthing.privacy import ApproxDP, Composed, Event, GaussianNoise

ASKED = Request("people", "", ApproxDP(0.1), "r-1", "planned", None, "", None)


@pytest.mark.parametrize("event", [ApproxDP(0.1, 1e-9), GaussianNoise(4.0), Composed(((ApproxDP(0.1), 3),))])
@pytest.mark.parametrize("own", [None, Holding(Account.of(0.5, 1e-7))])
def test_a_body_is_the_canonical_json_of_its_parts(event: Event, own: Holding | None) -> None:
    request = replace(ASKED, event=event, digest='a "quoted" é', reserve="x", world="adaptive")
    quote = quoted(request, Holding(Account.of(1.0, 1e-6)), own)
    parts = {
        "event": event.to_dict(), "world": "adaptive", "digest": 'a "quoted" é', "reserve": "x",
        "price": quote.price.to_dict(), "nano": written(quote.price), "units": quote.price.delta_units,
    }  # fmt: skip
    if own is not None:
        assert quote.own_price is not None
        parts |= {"own_price": quote.own_price.to_dict(), "own_nano": written(quote.own_price)}
    assert quote.body == canonical(parts)


def test_a_quote_holds_for_the_budget_it_was_made_for_and_for_no_other() -> None:
    whole, own = Holding(Account.of(1.0, 1e-6)), Holding(Account.of(0.5, 1e-6))
    quote = quoted(ASKED, whole, own)
    assert quote.holds(whole, own)
    for other in (whole.with_budget(2.0, 1e-6), whole.with_budget(1.0, 1e-7), whole.charged(quote.price)):
        assert not quote.holds(other, own)
    for other_own in (None, own.with_budget(0.4, 1e-6)):
        assert not quote.holds(whole, other_own)


def test_a_quote_holds_until_the_clock_has_fallen_to_another_level() -> None:
    small = replace(ASKED, event=ApproxDP(0.001))
    holding = Holding(Account.of(1.0, 1e-6))
    holding = holding.charged(quoted(small, holding, None).price)
    quote = quoted(small, holding, None)
    lasted = 0
    while quote.holds(holding, None):
        holding, lasted = holding.charged(quote.price), lasted + 1
    assert 100 < lasted < 3000
    assert quoted(small, holding, None).price != quote.price


def test_a_budget_that_another_process_changed_meanwhile_prices_the_charge(tmp_path: Path) -> None:
    """An event whose price depends on the budget, quoted from what this process saw last."""

    def prices(ledger: Ledger) -> list[int]:
        return [entry.body["units"] for entry in ledger.entries() if entry.kind == "charge"]

    with open_ledger(tmp_path / "a.db") as ledger, open_ledger(tmp_path / "a.db") as other:
        ledger.register("people", 1.0, 1e-6)
        ledger.charge("people", GaussianNoise(40.0), request_id="r-1")
        other.set_budget("people", 1.0, 1e-8)
        ledger.charge("people", GaussianNoise(40.0), request_id="r-2")
        other.charge("people", GaussianNoise(40.0), request_id="r-3")
        one, two, three = prices(ledger)
        assert one > two == three
        assert ledger.verify().ok
