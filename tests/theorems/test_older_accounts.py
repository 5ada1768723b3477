"""Accounts of older versions: Renyi divergences until now and a clock from now on, against every adaptive strategy."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

from account_game import Spending
from adaptive_adversary import Adversary
from farthing.accounting.event_price import (
    DELTA_UNITS,
    EXCESSES,
    NANO,
    NOTHING,
    ORDERS,
    PARTS,
    as_event,
    divergences_of,
    renyi_divergence_upper,
)
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.ledger import open_ledger
from farthing.ledger.account import Account
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.older_accounts import Order, clock_after, conversion_in_nano, order_of
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

ROUNDING = 1 + 1e-12
STORED = Path(__file__).parents[1] / "fixtures" / "before_clock"


def older(epsilon: float, delta: float) -> Account:
    """An empty account as an older version began it."""
    return replace(Account.of(epsilon, delta), divergences=NOTHING)


def older_price(charge: float | tuple[float, float]) -> ChargePrice:
    """What an older version charged for an (epsilon, delta) pair."""
    event = as_event(charge)
    assert isinstance(event, ApproxDP)
    nano, units = math.ceil(Fraction(str(event.epsilon)) * NANO), math.ceil(Fraction(str(event.delta)) * DELTA_UNITS)
    return ChargePrice(nano, units, units, 0, divergences=divergences_of(event))


@dataclass(frozen=True)
class Upgraded(Spending):
    """The first `until` charges of a path are made by an older version, and the rest by this one."""

    until: int = 2

    def admits(self, charge: tuple[float, float]) -> bool:
        if self.account.count < self.until:
            return self.account.after(older_price(charge))._fits()
        return super().admits(charge)

    def charge(self, charge: tuple[float, float]) -> Upgraded:
        if self.account.count < self.until:
            return replace(self, account=self.account.after(older_price(charge)))
        after = self.account.after(self.account.priced(charge))
        return replace(self, account=after if after._clock_fits() else replace(after, clock_units=None))


@pytest.mark.parametrize("until", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("epsilon", "delta", "menu"),
    [
        (2.0, 0.2, ((2, 0.0), (20, 0.0))),
        (2.0, 0.02, ((0, 0.005), (4, 0.0), (9, 0.0))),
        (2.0, 0.2, ((5, 0.02), (8, 0.0), (20, 0.05))),
    ],
)
def test_no_strategy_gains_by_the_upgrade(
    epsilon: float, delta: float, menu: tuple[tuple[int, float], ...], until: int
) -> None:
    reached = Adversary(menu, epsilon).delta(Upgraded(older(epsilon, delta), until))
    assert delta / 100 < reached <= delta * ROUNDING


class FreshClock(Upgraded):
    """A planted fault: after the upgrade the clock of the whole budget runs, beside what was charged before."""

    def charge(self, charge: tuple[float, float]) -> Upgraded:
        after = super().charge(charge)
        return replace(after, account=replace(after.account, divergences=NOTHING))


def test_a_clock_that_forgets_what_was_charged_before_is_caught() -> None:
    adversary = Adversary(((3, 0.0), (5, 0.0), (10, 0.0)), 1.0)
    assert adversary.delta(FreshClock(older(1.0, 0.1), 3)) > 1.1 * 0.1


def test_the_clock_that_is_left_lies_below_the_potential_of_the_divergences() -> None:
    """V(x, s) (1 + 1e-6) <= c exp((alpha - 1)(x + R)) at 60 digits, for every x."""
    chance = random.Random(5)
    for _ in range(40):
        nano, slack = int(10 ** chance.uniform(8, 9.7)), int(10 ** chance.uniform(24, 38))
        count = chance.randrange(0, 60)
        sums = tuple(None if d is None else count * d for d in divergences_of(ApproxDP(0.02)))
        clock, order = clock_after(sums, nano, slack), order_of(nano, slack)
        left = order.left(sums)
        if clock <= 0:
            assert left is None or left < 3000
            continue
        assert left is not None
        with mpmath.workdps(60):
            rest, s = mpmath.mpf(order.excess) / PARTS, mpmath.mpf(clock) / CLOCK_UNITS
            log_c = rest * mpmath.log(rest) - (1 + rest) * mpmath.log(1 + rest)
            for x in [0, -nano / NANO, *(chance.uniform(-2, 2) for _ in range(8))]:
                root = mpmath.sqrt(s)
                curve = mpmath.ncdf((x + s / 2) / root) - mpmath.exp(-x) * mpmath.ncdf((x - s / 2) / root)
                bound = mpmath.exp(log_c + rest * (x + mpmath.mpf(left.numerator) / left.denominator / NANO))
                assert curve * (1 + mpmath.mpf(10) ** -6) <= bound


def test_a_larger_budget_leaves_a_longer_clock() -> None:
    sums = tuple(None if d is None else 40 * d for d in divergences_of(ApproxDP(0.02)))
    for nano, more in itertools.pairwise(int(1.3**n * 10**8) for n in range(20)):
        for slack in (10**26, 10**31, 10**36):
            assert clock_after(sums, nano, slack) <= clock_after(sums, more, slack)
            assert clock_after(sums, nano, slack) <= clock_after(sums, nano, 3 * slack)


@pytest.mark.slow
def test_a_stored_ledger_of_the_version_before_is_verified_and_goes_on(tmp_path: Path) -> None:
    place = tmp_path / "stored"
    shutil.copytree(STORED, place)
    for secret in place.glob("*.db*"):  # git keeps no private modes
        secret.chmod(0o600)
    written = json.loads((STORED / "accounts.json").read_text(encoding="utf-8"))
    with open_ledger(place / "study.db") as ledger:
        assert ledger.opening.ok and ledger.opening.entries == written["entries"]
        before = ledger.last()
        for name, was in written["accounts"].items():
            dataset, _, analyst = name.partition("/")
            budget = ledger.budget(dataset, analyst or None)
            assert [budget.total.epsilon, budget.total.delta] == was["total"] and budget.count == was["count"]
            assert budget.spent_upper == was["spent"]
            assert budget.remaining.epsilon <= was["remaining"][0]
        assert ledger.last() == before  # reading writes nothing
        ledger.release(ledger.charge("many", 0.0, request_id="nothing"), "x")
        more = 0
        while ledger.admits("many", 0.01):
            ledger.charge("many", 0.01, request_id=f"more {more}", analyst="bob" if more % 8 == 0 else None)
            more += 1
        assert 150 <= more <= 160  # the older version would have admitted 160
        for name in ("kinds", "large", "sums", "untouched"):
            ledger.release(ledger.charge(name, 0.05, request_id=f"after {name}"), "answer")
        assert not ledger.admits("whole", 1e-9) and ledger.admits("whole", 0.0)
        ledger.set_budget("whole", 3.0)
        ledger.charge("whole", GaussianNoise(50.0), request_id="after whole")
        ledger.reserve("kinds", 0.1, name="other")
        assert ledger.verify().ok
        budgets = [ledger.budget(name) for name in ledger.datasets()]
    with open_ledger(place / "study.db") as ledger:
        assert ledger.verify().ok
        again = [ledger.budget(name) for name in ledger.datasets()]
        assert [b.remaining for b in again] == [b.remaining for b in budgets]


def test_a_price_with_divergences_is_refused_once_the_clock_runs() -> None:
    account = older(1.0, 1e-9).after(older_price(0.1))
    account = account.after(account.priced(0.1))
    for state in (account, Account.of(1.0, 1e-9).after(Account.of(1.0, 1e-9).priced(0.1))):
        with pytest.raises(ValueError, match="cannot be added"):
            state.after(older_price(0.1))


def _conversion(excess: float, slack: float) -> float:
    """(ln(1/slack) + ln c) / (alpha - 1), as RenyiFilter states it."""
    log_c = excess * math.log(excess) - (1 + excess) * math.log1p(excess)
    return (math.log(1 / slack) + log_c) / excess


@pytest.mark.parametrize("excess", [EXCESSES[0], 129, 9546, EXCESSES[-1]])
def test_conversions_are_rounded_up(excess: int) -> None:
    for units in (1, 25 * 10**29, DELTA_UNITS // 4):
        with mpmath.workdps(80):
            rest = mpmath.mpf(excess) / PARTS
            log_c = rest * mpmath.log(rest) - (1 + rest) * mpmath.log(1 + rest)
            truth = NANO * (mpmath.log(DELTA_UNITS) - mpmath.log(units) + log_c) / rest
            assert truth <= conversion_in_nano(excess, units) < truth + 1


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.5, 1.0, 4.0, 30.0, 500.0])
@pytest.mark.parametrize("slack", [1e-30, 2.5e-10, 1e-6, 0.1])
def test_the_order_of_a_budget_leaves_room_for_its_conversion(epsilon: float, slack: float) -> None:
    order = order_of(int(epsilon * NANO), int(slack * DELTA_UNITS))
    need = _conversion(order.alpha - 1, slack) + order.limit / NANO
    assert need <= epsilon + 2e-9  # sound: a limit no larger than the conversion leaves
    inside = EXCESSES[0] < order.excess < EXCESSES[-1]
    # Tight: the next smaller order would not do. (At a slack of 0.1 one step of the order is worth more than 0.001.)
    assert not inside or slack > 0.01 or need > 0.98 * epsilon


@pytest.mark.slow
def test_a_larger_budget_has_a_larger_limit_at_a_smaller_order() -> None:
    epsilons = [int(1.07**n * 10**6) for n in range(200)]
    slacks = [10**n for n in range(40)]
    for one, two in itertools.pairwise(epsilons):
        for slack in slacks[::6]:
            assert _grows(order_of(one, slack), order_of(two, slack))
    for one, two in itertools.pairwise(slacks):
        for epsilon in epsilons[::20]:
            assert _grows(order_of(epsilon, one), order_of(epsilon, two))


def _grows(one: Order, two: Order) -> bool:
    return two.excess <= one.excess and two.limit >= one.limit


EVENTS: tuple[Event, ...] = (
    ApproxDP(0.1, 1e-9),
    RandomizedResponse(2.0),
    LaplaceNoise(3.0),
    GaussianNoise(4.0),
    DiscreteLaplaceNoise(7.0, 250_000),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.tag)
def test_the_chord_holds_only_where_the_divergence_itself_does(event: Event) -> None:
    """Sound between the orders that are kept, and loose by less than 2% where common budgets are."""
    sums = divergences_of(event)
    for excess in (129, 200, 257, 700, 1100, 2500, 9546, 40_000, 100_000, 131_073, 500_000):
        truth = renyi_divergence_upper(event, 1 + excess / PARTS)
        assert not Order(excess, math.floor(truth * NANO) - 1).holds(sums)
        if 4 * PARTS <= excess <= 512 * PARTS:
            assert Order(excess, math.ceil(truth * NANO * Fraction(51, 50)) + 2).holds(sums)


def test_divergences_that_were_kept_are_exact_and_rise_with_the_order() -> None:
    for event in (*EVENTS, BoundedRange(0.8), Sampled(GaussianNoise(1.0), 0.01)):
        amounts = divergences_of(event)
        assert [a for a in amounts if a is not None] == sorted(a for a in amounts if a is not None)
        for alpha, amount in zip(ORDERS[::5], amounts[::5], strict=True):
            assert amount is not None
            assert 0 <= amount - renyi_divergence_upper(event, alpha) * NANO < 2


def test_an_infinite_sum_never_holds_unless_it_is_not_looked_at() -> None:
    sums = (*NOTHING[:-1], None)
    assert Order(EXCESSES[-2], 0).holds(sums)
    assert not Order(EXCESSES[-2] + 1, 10**18).holds(sums)
    assert not Order(EXCESSES[-1], 10**18).holds(sums)
