"""Account: a clock beside plain sums, against every adaptive strategy over a menu of leaky randomized responses."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import pytest

from account_game import Menu, Spending, admitted
from adaptive_adversary import Adversary, NaturalFilter, Strategy, hockey_stick
from farthing import compose
from farthing.accounting.event_price import DELTA_UNITS, NANO
from farthing.accounting.filters.clock_costs import CLOCK_UNITS
from farthing.accounting.filters.clock_payment import MOST_EXCESS, clock_payment, whole_clock
from farthing.accounting.gaussian_curves import gaussian_curve
from farthing.ledger.account import Account
from farthing.numerics.bounds import ball, precise_balls
from farthing.privacy import (
    ApproxDP,
    Composed,
    DiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
)

ROUNDING = 1 + 1e-12

# The order of charges matters to a clock, so that states do not meet: few questions, or a budget for few of them.
CASES: list[tuple[float, float, Menu]] = [
    (0.5, 0.3414, ((4, 0.0), (7, 0.0), (10, 0.0))),
    (1.0, 0.1, ((3, 0.0), (5, 0.0), (10, 0.0))),
    (1.5, 0.01, ((3, 0.0), (6, 0.0), (15, 0.0))),
    (2.0, 0.004, ((4, 0.0), (7, 0.0), (15, 0.0))),
    (1.0, 1e-12, ((1, 0.0), (5, 0.0))),
    (2.0, 0.2, ((5, 0.006), (8, 0.0), (20, 0.0125))),
    (1.0, 0.5, ((3, 0.015), (7, 0.0), (10, 0.03))),
    (0.5, 0.01, ((0, 0.000625), (1, 0.0), (20, 0.0))),
    (2.0, 0.0, ((1, 0.0), (5, 0.0), (10, 0.0))),
    (1.0, 0.1, ((3, 0.06), (2, 0.02), (5, 0.0), (10, 0.0))),
]


@pytest.mark.parametrize(("epsilon", "delta", "menu"), CASES)
def test_no_adaptive_strategy_exceeds_delta(epsilon: float, delta: float, menu: Menu) -> None:
    assert Adversary(menu, epsilon).delta(Spending.of(epsilon, delta)) <= delta * ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("delta", [0.001, 0.02, 0.1, 0.3])
def test_no_deep_adaptive_strategy_exceeds_delta(epsilon: float, delta: float) -> None:
    for menu in (
        ((0, delta / 32), (4, 0.0), (9, 0.0)),
        ((0, delta / 16), (5, 0.0), (7, delta / 64), (10, 0.0)),
        ((3, 0.0), (6, delta / 40), (12, 0.0), (20, delta)),
    ):
        assert Adversary(menu, epsilon).delta(Spending.of(epsilon, delta)) <= delta * ROUNDING


def _trees(menu: Menu, depth: int) -> Iterator[Strategy | None]:
    """Every strategy of at most `depth` questions; after a leak there is nothing left to learn."""
    yield None
    if depth:
        for question in menu:
            for after in itertools.product(list(_trees(menu, depth - 1)), repeat=2):
                yield Strategy(question, *after)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "menu"),
    [
        (0.5, 0.3414, ((7, 0.0), (10, 0.0), (2, 0.01))),
        (1.0, 0.2, ((0, 0.0), (10, 0.2))),  # nothing is admitted by a spent account, and tells nothing
        pytest.param(1.0, 0.2, ((6, 0.006), (5, 0.0), (10, 0.2)), marks=pytest.mark.slow),
        pytest.param(0.4, 0.05, ((2, 0.0015), (1, 0.0), (4, 0.003)), marks=pytest.mark.slow),
    ],
)
def test_every_small_tree_that_is_admitted_keeps_the_budget(epsilon: float, delta: float, menu: Menu) -> None:
    """The slowest twin: all trees of three questions (7,204 over a menu of three), each summed leaf by leaf."""
    start, kept, refused = Spending.of(epsilon, delta), 0, 0
    for tree in _trees(menu, 3):
        if tree is None:
            continue
        if admitted(tree, start):
            kept += 1
            assert hockey_stick(list(tree.transcripts()), epsilon) <= delta * ROUNDING
        else:
            refused += 1
    assert kept and refused


LEAKING = Adversary(((0, 0.05), (3, 0.0), (7, 0.0)), 1.0)


class WholeDeltaEach(Spending):
    """A planted fault: plain sums and the clock are both given the whole delta."""

    def admits(self, charge: tuple[float, float]) -> bool:
        after = self.account.after(self.account.priced(charge))
        assert after.sum_nano is not None
        sums = after.sum_nano <= after.epsilon_nano and after.sum_units <= after.delta_units
        clock = whole_clock(after.epsilon_nano, after.delta_units)
        return sums or (not after.leak_units and after.clock_units is not None and after.clock_units <= clock)

    def charge(self, charge: tuple[float, float]) -> Spending:
        return replace(self, account=self.account.after(self.account.priced(charge)))


def test_giving_the_whole_delta_to_each_filter_is_caught() -> None:
    """The unlucky paths leak by plain sums, the lucky ones go on by the clock: together more than either may."""
    assert LEAKING.delta(WholeDeltaEach.of(1.0, 0.1)) > 1.2 * 0.1
    assert LEAKING.delta(Spending.of(1.0, 0.1)) <= 0.1 * ROUNDING


class SharesOfThePath(Spending):
    """A planted fault: what a path's leaks leave of delta is its clock's slack."""

    def admits(self, charge: tuple[float, float]) -> bool:
        after = self.account.after(self.account.priced(charge))
        rest = after.delta_units - after.leak_units
        return rest > 0 and after.clock_units is not None and after.clock_units <= whole_clock(after.epsilon_nano, rest)

    def charge(self, charge: tuple[float, float]) -> Spending:
        return replace(self, account=self.account.after(self.account.priced(charge)))


def test_shares_of_delta_that_are_decided_path_by_path_are_caught() -> None:
    assert LEAKING.delta(SharesOfThePath.of(1.0, 0.1)) > 1.06 * 0.1


class StaleClock(Spending):
    """A planted fault: a charge that only plain sums admit leaves the clock as it was."""

    def charge(self, charge: tuple[float, float]) -> Spending:
        after = self.account.after(self.account.priced(charge))
        return replace(
            self, account=after if after._clock_fits() else replace(after, clock_units=self.account.clock_units)
        )


def test_a_clock_that_does_not_see_what_plain_sums_admit_is_caught() -> None:
    adversary = Adversary(((4, 0.0), (15, 0.0)), 2.0)
    assert adversary.delta(StaleClock.of(2.0, 0.004)) > 2 * 0.004
    assert adversary.delta(Spending.of(2.0, 0.004)) <= 0.004 * ROUNDING


class PlainSquares(Spending):
    """A planted fault: a charge takes the square of its epsilon, whatever is left of the clock."""

    def admits(self, charge: tuple[float, float]) -> bool:
        return self.charge(charge).account._fits()

    def charge(self, charge: tuple[float, float]) -> Spending:
        price = replace(self.account.priced(charge), clock_units=round(charge[0] ** 2 * CLOCK_UNITS))
        return replace(self, account=self.account.after(price))


def test_a_clock_without_what_smoothing_adds_is_caught() -> None:
    clock = whole_clock(NANO // 10, Account.of(0.1, 0.3)._slack_units) / CLOCK_UNITS
    adversary = Adversary(((int(10 * clock**0.5), 0.0),), 0.1)
    assert adversary.delta(PlainSquares.of(0.1, 0.3)) > 0.3
    assert adversary.delta(Spending.of(0.1, 0.3)) <= 0.3


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
        after = self.account.after(self.account.priced(charge))
        return after._fits() or replace(after, only_sums=1)._fits()

    def charge(self, charge: tuple[float, float]) -> Spending:
        return replace(self, account=self.account.after(self.account.priced(charge)))


def test_turning_to_plain_sums_after_an_answer_is_caught() -> None:
    assert LEAKING.delta(SumsLater.of(1.0, 0.1)) > 1.15 * 0.1


def test_the_account_refuses_the_strategy_that_breaks_the_natural_rule() -> None:
    adversary = Adversary(((7, 0.0), (10, 0.0)), 0.5)
    broken = adversary.strategy(NaturalFilter(0.5, 0.3414))
    assert broken is not None
    assert hockey_stick(list(broken.transcripts()), 0.5) > 0.3414
    assert not admitted(broken, Spending.of(0.5, 0.3414))


@dataclass(frozen=True)
class Raised(Spending):
    """The budget becomes (2, 0.2) with a question of 0.3, and (0.6, 0.05) with one of 0.4: on the paths that ask."""

    def charge(self, charge: tuple[float, float]) -> Raised:
        after = self.account.after(self.account.priced(charge))
        if charge[0] == 0.3:
            after = after.with_budget(2.0, 0.2)
        return Raised(after.with_budget(0.6, 0.05) if charge[0] == 0.4 else after)


@pytest.mark.slow
def test_budgets_that_depend_on_answers_keep_the_largest() -> None:
    adversary = Adversary(((3, 0.0), (4, 0.0), (10, 0.004), (13, 0.0)), 2.0)
    reached = adversary.delta(Raised(Account.of(1.0, 0.1)))
    assert adversary.delta(Spending.of(1.0, 0.1)) < reached <= 0.2 * ROUNDING


@pytest.mark.parametrize("units", [0, 1, 3, 4, 7, 31, 32, 33, 10**31, DELTA_UNITS - 1])
def test_shares_of_delta_sum_to_at_most_delta_and_grow_with_it(units: int) -> None:
    account, more = Account(NANO, units), Account(NANO, units + 1)
    shares = account._plain_units, account._own_units, account._slack_units
    assert units - 3 <= sum(shares) <= units
    assert all(
        one <= two for one, two in zip(shares, (more._plain_units, more._own_units, more._slack_units), strict=True)
    )


EVENTS: tuple[Event, ...] = (
    RandomizedResponse(0.05),
    LaplaceNoise(8.0),
    GaussianNoise(12.0),
    DiscreteGaussianNoise(9.0, 4),
    Composed(((ApproxDP(0.03), 3), (GaussianNoise(25.0), 2))),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.tag)
def test_a_payment_is_no_smaller_than_under_any_larger_clock(event: Event) -> None:
    """Beyond the end of a clock too: what is paid there may count under a budget that is raised."""
    for left in (-1, 0, 10**36, 10**38, 3 * 10**38, 10**39):
        paid = clock_payment(event, left)
        assert paid is not None and paid.excess < MOST_EXCESS
        for more in (1, 10**37, 10**39, 10**41):
            larger = clock_payment(event, max(left, paid.clock) + more)
            assert larger is not None and larger.clock <= paid.clock


@pytest.mark.slow
def test_a_payment_keeps_the_inequality_of_the_theorem() -> None:
    """E[V(x + l, s')] <= V(x, s) at 60 digits, for randomized response, wherever the clock ends up."""
    chance = random.Random(21)
    for _ in range(60):
        epsilon, left = round(chance.uniform(0.001, 0.4), 4), int(10 ** chance.uniform(34, 40.3))
        paid = clock_payment(ApproxDP(epsilon), left)
        assert paid is not None
        before = Fraction(max(left, paid.clock) + chance.choice([0, 0, 10**38]), CLOCK_UNITS)
        after = before - Fraction(paid.clock, CLOCK_UNITS)
        for x in [0.0, *(chance.uniform(-2, 2) for _ in range(6))]:
            with mpmath.workdps(60):
                truth = 1 / (1 + mpmath.exp(-mpmath.mpf(str(epsilon))))
                at = [_curve(x + sign * mpmath.mpf(str(epsilon)), after) for sign in (1, -1)]
                assert truth * at[0] + (1 - truth) * at[1] <= _curve(mpmath.mpf(x), before) + mpmath.mpf(10) ** -45


def _curve(x: mpmath.mpf, s: Fraction) -> mpmath.mpf:
    """V(x, s) by mpmath alone."""
    if not s:
        return max(mpmath.mpf(0), 1 - mpmath.exp(-x))
    s = mpmath.mpf(s.numerator) / s.denominator
    root = mpmath.sqrt(s)
    return mpmath.ncdf((x + s / 2) / root) - mpmath.exp(-x) * mpmath.ncdf((x - s / 2) / root)


def test_the_clock_of_a_budget_leaves_nothing_of_its_slack() -> None:
    for epsilon, delta in ((0.5, 1e-6), (1.0, 1e-9), (3.0, 0.01)):
        account = Account.of(epsilon, delta)
        clock = Fraction(account._clock_left, CLOCK_UNITS)
        with precise_balls():
            reached = float(gaussian_curve(-ball(Fraction(epsilon)), ball(clock)).upper())
        assert 0.999998 * 29 / 32 * delta < reached < 29 / 32 * delta


def _fitting(stream: list[float | Event], epsilon: float, delta: float) -> int:
    account = Account.of(epsilon, delta)
    for charge in stream:
        price = account.priced(charge)
        if not account.admits(price):
            break
        account = account.after(price)
    return account.count


@pytest.mark.parametrize(
    ("epsilon", "delta", "charge", "least"),
    [
        (1.0, 1e-9, 0.01, 325),
        (1.0, 1e-6, 0.01, 552),
        (1.0, 1e-9, GaussianNoise(100.0), 325),
        (3.0, 1e-6, LaplaceNoise(20.0), 165),
        (0.3, 1e-7, 0.005, 140),
    ],
)
def test_equal_charges_nearly_reach_the_optimum_and_never_exceed_it(
    epsilon: float, delta: float, charge: float | Event, least: int
) -> None:
    count = _fitting([charge] * 5000, epsilon, delta)
    assert count >= least
    assert compose([charge], counts=[count]).epsilon_at(delta).upper <= epsilon


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (1.0, 1e-6), (3.0, 1e-6)])
@pytest.mark.parametrize("gaussian", [0.0, 0.5])
def test_mixed_charges_nearly_reach_the_optimum_and_never_exceed_it(
    epsilon: float, delta: float, gaussian: float
) -> None:
    chance = random.Random(9)
    sizes = [round(chance.uniform(0.001, 0.05), 6) for _ in range(3000)]
    stream: list[float | Event] = [GaussianNoise(round(1 / x, 3)) if chance.random() < gaussian else x for x in sizes]
    count = _fitting(stream, epsilon, delta)
    assert compose(stream[:count]).epsilon_at(delta).upper <= epsilon
    if epsilon >= 3:  # beside a budget of 1 these charges are large, and a clock is at its worst
        assert not compose(stream[: int(1.05 * count) + 1]).epsilon_at(delta).lower <= epsilon


def test_degenerate_budgets_admit_what_costs_nothing() -> None:
    nothing = Spending.of(0.0, 0.0)
    assert nothing.admits((0.0, 0.0)) and not nothing.admits((1e-12, 0.0)) and not nothing.admits((0.0, 1e-50))
    assert Adversary(((0, 0.05),), 0.0).delta(Spending.of(0.0, 0.8)) <= 0.8
