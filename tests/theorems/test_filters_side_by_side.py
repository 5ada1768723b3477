"""Account: filters side by side against every adaptive strategy over a menu of leaky randomized responses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import pytest

from adaptive_adversary import Adversary, NaturalFilter, Strategy, hockey_stick
from farthing.accounting.event_price import (
    DELTA_UNITS,
    EXCESSES,
    NANO,
    NOTHING,
    ORDERS,
    PARTS,
    divergences_of,
    renyi_divergence_upper,
)
from farthing.ledger.account import Account
from farthing.ledger.charge_prices import Order, conversion_in_nano, order_of
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

Menu = tuple[tuple[int, float], ...]
PURE: Menu = ((1, 0.0), (5, 0.0), (10, 0.0))
COARSE: Menu = ((3, 0.0), (7, 0.0), (10, 0.0), (20, 0.0))
LEAKY: Menu = ((3, 0.02), (7, 0.0), (10, 0.05))
ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Spending:
    """An account as the adversary meets it: asked with (epsilon, delta) pairs, and charged with them."""

    account: Account

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Spending:
        return cls(Account.of(epsilon, delta))

    def admits(self, charge: tuple[float, float]) -> bool:
        return self.account.admits(self.account.priced(charge))

    def charge(self, charge: tuple[float, float]) -> Spending:
        return replace(self, account=self.account.after(self.account.priced(charge)))


@pytest.mark.parametrize(
    ("epsilon", "delta", "menu"),
    [
        (1.0, 0.1, PURE),
        (1.5, 0.3, COARSE),
        (2.5, 0.05, COARSE),
        (0.3, 0.5, PURE),
        (2.0, 0.2, LEAKY),
        (1.0, 0.5, LEAKY),
        (0.5, 0.01, ((0, 0.0025), (1, 0.0), (20, 0.0))),
        (3.0, 0.001, ((1, 0.0), (4, 0.0), (12, 0.0))),
        (2.0, 0.0, PURE),
        (1.0, 0.1, ((3, 0.06), (2, 0.02), (5, 0.0), (10, 0.0))),
    ],
)
def test_no_adaptive_strategy_exceeds_delta(epsilon: float, delta: float, menu: Menu) -> None:
    assert Adversary(menu, epsilon).delta(Spending.of(epsilon, delta)) <= delta * ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("delta", [0.001, 0.02, 0.1, 0.3])
def test_no_deep_adaptive_strategy_exceeds_delta(epsilon: float, delta: float) -> None:
    for menu in (
        ((0, delta / 4), (2, 0.0), (5, 0.0)),
        ((0, delta / 2), (3, 0.0), (7, delta / 8), (10, 0.0)),
        ((1, 0.0), (4, delta / 5), (12, 0.0), (20, delta)),
    ):
        assert Adversary(menu, epsilon).delta(Spending.of(epsilon, delta)) <= delta * ROUNDING


def _trees(menu: Menu, depth: int) -> Iterator[Strategy | None]:
    """Every strategy of at most `depth` questions; after a leak there is nothing left to learn."""
    yield None
    if depth:
        for question in menu:
            for after in itertools.product(list(_trees(menu, depth - 1)), repeat=2):
                yield Strategy(question, *after)


def _admitted(tree: Strategy | None, spending: Spending) -> bool:
    if tree is None:
        return True
    asked = round(tree.question[0] * 0.1, 12), tree.question[1]
    if not spending.admits(asked):
        return False
    after = spending.charge(asked)
    return _admitted(tree.after_truth, after) and _admitted(tree.after_lie, after)


@pytest.mark.parametrize(
    ("epsilon", "delta", "menu"),
    [
        (0.5, 0.3414, ((7, 0.0), (10, 0.0), (2, 0.05))),
        (1.0, 0.2, ((0, 0.0), (10, 0.2))),  # nothing is admitted by a spent account, and tells nothing
        pytest.param(1.0, 0.2, ((6, 0.1), (5, 0.0), (10, 0.2)), marks=pytest.mark.slow),
        pytest.param(0.4, 0.05, ((2, 0.025), (1, 0.0), (4, 0.01)), marks=pytest.mark.slow),
    ],
)
def test_every_small_tree_that_is_admitted_keeps_the_budget(epsilon: float, delta: float, menu: Menu) -> None:
    """The slowest twin: all trees of three questions (7,204 over a menu of three), each summed leaf by leaf."""
    start, admitted, refused = Spending.of(epsilon, delta), 0, 0
    for tree in _trees(menu, 3):
        if tree is None:
            continue
        if _admitted(tree, start):
            admitted += 1
            assert hockey_stick(list(tree.transcripts()), epsilon) <= delta * ROUNDING
        else:
            refused += 1
    assert admitted and refused


class WholeDeltaEach(Spending):
    """A planted fault: both filters are given the whole delta (an account of twice the delta halves it again)."""

    @classmethod
    def of(cls, epsilon: float, delta: float) -> WholeDeltaEach:
        return cls(Account.of(epsilon, 2 * delta))

    def admits(self, charge: tuple[float, float]) -> bool:
        after = self.charge(charge).account
        return after._plain_fits() or after._renyi_fits()


def test_giving_the_whole_delta_to_each_filter_is_caught() -> None:
    """The unlucky paths leak by plain sums, the lucky ones go on by Renyi: together more than either may."""
    adversary = Adversary(((0, 0.005), (1, 0.0), (20, 0.0)), 0.5)
    assert adversary.delta(WholeDeltaEach.of(0.5, 0.01)) > 1.1 * 0.01
    assert adversary.delta(Spending.of(0.5, 0.01)) <= 0.01 * ROUNDING


class BestOrder(Spending):
    """A planted fault: whichever order suits the path best is used, each with the whole delta."""

    def admits(self, charge: tuple[float, float]) -> bool:
        after = self.charge(charge).account
        slack = after.delta_units / DELTA_UNITS
        return any(
            Order(excess, after.epsilon_nano - math.ceil(NANO * _conversion(excess / PARTS, slack))).holds(
                after.divergences
            )
            for excess in EXCESSES
        )


def test_choosing_the_order_after_the_fact_is_caught() -> None:
    adversary = Adversary(((1, 0.0), (4, 0.0), (12, 0.0)), 3.0)
    assert adversary.delta(BestOrder.of(3.0, 0.001)) > 1.4 * 0.001
    assert adversary.delta(Spending.of(3.0, 0.001)) <= 0.001


class SecondFirst(Spending):
    """A planted fault: the rule of the first charge is used for the second as well."""

    def admits(self, charge: tuple[float, float]) -> bool:
        empty = Account(self.account.epsilon_nano, self.account.delta_units)
        return super().admits(charge) or (self.account.count < 2 and empty.admits(empty.priced(charge)))


def test_using_the_first_charge_twice_is_caught() -> None:
    adversary = Adversary(((10, 0.1), (5, 0.0)), 1.0)
    assert adversary.delta(SecondFirst.of(1.0, 0.1)) > 1.5 * 0.1
    assert adversary.delta(Spending.of(1.0, 0.1)) == pytest.approx(0.1)  # tight: the first charge took it all


class SumsLater(Spending):
    """A planted fault: an account may turn to plain sums with all of delta after answers were given."""

    def admits(self, charge: tuple[float, float]) -> bool:
        after = self.charge(charge).account
        return after._fits() or replace(after, only_sums=1)._fits()


def test_turning_to_plain_sums_after_an_answer_is_caught() -> None:
    adversary = Adversary(((0, 0.0025), (1, 0.0), (3, 0.0), (30, 0.0)), 1.0)
    assert adversary.delta(SumsLater.of(1.0, 0.01)) > 1.04 * 0.01
    assert adversary.delta(Spending.of(1.0, 0.01)) <= 0.01 * ROUNDING


def test_the_account_refuses_the_strategy_that_breaks_the_natural_rule() -> None:
    adversary = Adversary(((7, 0.0), (10, 0.0)), 0.5)
    broken = adversary.strategy(NaturalFilter(0.5, 0.3414))
    assert broken is not None
    assert hockey_stick(list(broken.transcripts()), 0.5) > 0.3414
    assert not _admitted(broken, Spending.of(0.5, 0.3414))


@dataclass(frozen=True)
class Raised(Spending):
    """The budget is raised to (2, 0.2) after two charges, on the paths that get so far."""

    def charge(self, charge: tuple[float, float]) -> Raised:
        after = super().charge(charge).account
        return Raised(after.with_budget(2.0, 0.2) if after.count == 2 else after)


def test_raising_a_budget_on_some_paths_keeps_the_largest() -> None:
    adversary = Adversary(((5, 0.02), (10, 0.0), (3, 0.0)), 2.0)
    reached = adversary.delta(Raised(Account.of(1.0, 0.1)))
    assert adversary.delta(Spending.of(1.0, 0.1)) < reached <= 0.2 * ROUNDING


def _conversion(excess: float, slack: float) -> float:
    """(ln(1/slack) + ln c) / (alpha - 1), as RenyiFilter states it."""
    log_c = excess * math.log(excess) - (1 + excess) * math.log1p(excess)
    return (math.log(1 / slack) + log_c) / excess


@pytest.mark.parametrize("units", [0, 1, 3, 4, 7, 10**31, DELTA_UNITS - 1])
def test_shares_of_delta_sum_to_at_most_delta(units: int) -> None:
    """Plain sums have one share, and the Renyi filter two that are equal: slack and the charges' own deltas."""
    account = Account(NANO, units)
    assert account._plain_units + 2 * account._slack_units <= units
    assert account._plain_units + 2 * account._slack_units >= units - 3


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


def test_degenerate_budgets_admit_what_costs_nothing() -> None:
    nothing = Spending.of(0.0, 0.0)
    assert nothing.admits((0.0, 0.0)) and not nothing.admits((1e-12, 0.0)) and not nothing.admits((0.0, 1e-50))
    assert Adversary(((0, 0.05),), 0.0).delta(Spending.of(0.0, 0.2)) == pytest.approx(1 - 0.95**2)
