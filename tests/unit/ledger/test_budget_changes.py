"""A budget, a grant or a reserve is changed: what is not said stays, and what was spent stays covered."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.errors import InvalidValue
from farthing.ledger import Ledger, open_ledger
from farthing.ledger.account import Account
from farthing.privacy import ApproxDP, GaussianNoise


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db", actor="ada") as opened:
        opened.register("people", 2.0, 1e-6)
        opened.grant("people", "bob", 1.5, 1e-7)
        opened.charge("people", GaussianNoise(5.0), request_id="r-1", analyst="bob")
        yield opened


@pytest.mark.slow
def test_a_delta_that_is_left_out_stays_as_it_is(ledger: Ledger) -> None:
    spent = ledger.budget("people").spent_upper
    ledger.set_budget("people", 4.0)
    ledger.grant("people", "bob", 3.0)
    ledger.reserve("people", 0.5, 1e-9)
    ledger.reserve("people", 0.25)
    budget, grant = ledger.budget("people"), ledger.budget("people", "bob")
    assert (budget.total, grant.total) == (ApproxDP(4.0, 1e-6), ApproxDP(3.0, 1e-7))
    assert budget.spent_upper == spent < math.inf and grant.spent_upper < math.inf
    assert budget.withheld == {"reserve": ApproxDP(0.25, 1e-9)}
    ledger.reserve("people", 0.0)
    assert ledger.budget("people").withheld == {}
    assert ledger.grant("people", "eve", 0.5).body["delta"] == 0.0
    assert ledger.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [4.0, 1.0, 0.0])
def test_no_change_leaves_what_was_spent_without_any_epsilon(ledger: Ledger, epsilon: float) -> None:
    for change in (
        lambda: ledger.set_budget("people", epsilon, 0.0),
        lambda: ledger.grant("people", "bob", epsilon, 0.0),
    ):
        with pytest.raises(InvalidValue, match=r"too small for what was spent.*say a delta of \S+ or more"):
            change()
    assert ledger.budget("people").total == ApproxDP(2.0, 1e-6)


def test_lowering_below_what_was_spent_is_still_possible(ledger: Ledger) -> None:
    ledger.set_budget("people", 0.1)
    ledger.grant("people", "bob", 0.0)
    budget = ledger.budget("people")
    assert budget.total.epsilon < budget.spent_upper < math.inf and budget.remaining.epsilon == 0


@pytest.mark.slow
def test_the_least_delta_covers_and_a_tenth_less_does_not() -> None:
    account = Account.of(2.0, 1e-6)
    for charge in (GaussianNoise(5.0), (0.25, 1e-8)):
        account = account.after(account.priced(charge))
    least = account.least_delta(2.0)
    assert account.with_budget(2.0, least).spent_upper <= 2.0
    assert not account.with_budget(2.0, 0.89 * least).spent_upper <= 2.0
    assert math.isfinite(account.with_budget(0.01, account.least_delta(0.01)).spent_upper)  # no delta fits this
