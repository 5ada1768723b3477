"""What a clock pays for samples when a leak pays for their far tails, against the definition at 60 digits."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from benchmarks.clock_prices import ROUNDING, Price, curve
from flint import arb

from farthing.accounting import compose
from farthing.accounting.filters import ClockFilter, sampled_cost
from farthing.accounting.filters.clock_costs import CLOCK_UNITS, MOST_EXCESS, clock_cost
from farthing.accounting.filters.clock_payment import clock_payment, payments_within
from farthing.accounting.filters.sampled_cost import Spare
from farthing.ledger.account import Account
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

mpf = mpmath.mpf
LEAK = CLOCK_UNITS // 2**46
NOISY = Sampled(GaussianNoise(5.0), 0.01)
EVENTS: tuple[tuple[Sampled, Fraction], ...] = (
    (NOISY, Fraction(1, 64)),
    (Sampled(GaussianNoise(1.5), 0.05), Fraction(1, 4)),
    (Sampled(DiscreteGaussianNoise(5.0), 0.01), Fraction(1, 64)),
    (Sampled(LaplaceNoise(1.0), 0.1), Fraction(1, 8)),
    (Sampled(RandomizedResponse(1.0), 0.01), Fraction(1, 256)),
    (Sampled(ApproxDP(2.0, 1e-9), 0.1), Fraction(1, 2)),
    (Sampled(DiscreteLaplaceNoise(0.5, 3), 0.02), Fraction(1, 64)),
    (Sampled(BoundedRange(1.0), 0.05), Fraction(1, 64)),
)


def points(event: Event, level: Fraction) -> list[mpmath.mpf]:
    """Out to where the curve of the clock is a leak, and beyond: there the leak must pay for all."""
    return [mpf(z) * mpmath.sqrt(mpf(level.numerator) / level.denominator) for z in (-9, -6, -3, 0, 6)]


@pytest.mark.slow
@pytest.mark.parametrize(("event", "level"), EVENTS, ids=repr)
def test_what_is_paid_is_enough_in_both_orders_and_a_tenth_less_is_not(event: Sampled, level: Fraction) -> None:
    cost, without = clock_cost(event, level, LEAK), clock_cost(event, level)
    assert cost is not None and without is not None
    assert cost.leak == LEAK and cost.clock < without.clock
    with mpmath.workdps(60):
        assert Price(event, level, *cost).worst(points(event, level)) <= ROUNDING
        less = Price(event, level, cost.clock * 9 // 10, cost.excess, cost.leak)
        # Where the whole of bounded range, or far tails, decide the price, these points do not show it.
        if event == NOISY or isinstance(event.event, RandomizedResponse | LaplaceNoise):
            assert less.worst([mpf(0), points(event, level)[2]]) > ROUNDING


@pytest.mark.parametrize(("event", "level"), EVENTS[:5], ids=repr)
def test_sums_of_moments_are_the_sums_over_losses(event: Sampled, level: Fraction) -> None:
    """Far out too, where little is left of V; and a term that is forgotten would be seen."""
    with sampled_cost.precision(160):
        pair = sampled_cost._pair_of(event, Fraction(LEAK, CLOCK_UNITS))
        assert pair is not None
        beside, s = sampled_cost._Beside.of(pair, level), arb(level.numerator) / level.denominator
        assert len(beside.far) < len(pair.atoms)
        for z in (-7, -3, 0, 2, 6):
            x = z * s.sqrt()
            slowly = sum((mass * sampled_cost.tilted_curve(x + loss, s) for loss, mass in pair.atoms), arb(0))
            slowly += (x / 2).exp() * pair.infinite - sampled_cost.tilted_curve(x, s)
            raised = beside.raised(x)
            assert raised.overlaps(slowly) and raised.rad() <= abs(slowly) * 1e-6
            first = beside.groups[0]
            wrong = first._replace(moments=(*first.moments[:3], arb(0), *first.moments[4:]))
            assert not beside._replace(groups=(wrong, *beside.groups[1:])).raised(x).overlaps(slowly)
        epsilon, beyond = float(2 * s.sqrt()), pair.beyond()
        far = [mass * (abs(loss) / 2).exp() for loss, mass in pair.atoms if abs(loss) > epsilon and mass > 0]
        assert beyond(epsilon) >= sum(far, pair.infinite) * (1 - 1e-12)


def test_one_order_alone_would_be_too_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the milder order's curve on both sides. The other order exceeds what it pays for."""
    event, level = Sampled(RandomizedResponse(2.0), 0.1), Fraction(1, 2)
    right = sampled_cost.sampled_cost(event, level, Fraction(LEAK, CLOCK_UNITS))
    assert right is not None
    whole = sampled_cost._pair_of(event, Fraction(LEAK, CLOCK_UNITS))
    assert whole is not None

    def mild(*_: object) -> sampled_cost._Pair:
        lower = [(loss, half) for loss, half in whole.atoms if loss < 0]
        mirrored = [(-loss, half) for loss, half in lower]
        with sampled_cost.precision(160):
            moved = sum((half * ((loss / 2).exp() + (-loss / 2).exp()) for loss, half in lower), sampled_cost.arb(0))
            return sampled_cost._Pair((*lower, *mirrored, (sampled_cost.arb(0), 1 - moved)), sampled_cost.arb(0))

    monkeypatch.setattr(sampled_cost, "_pair_of", mild)
    wrong = sampled_cost._checked_cost.__wrapped__(event, level, Fraction(LEAK, CLOCK_UNITS))
    assert wrong is not None and wrong < right
    with mpmath.workdps(60):
        xs = [mpf(z) * mpmath.sqrt(mpf(1) / 2) for z in (-6, -5, -4, -3, -2, 0)]
        cheap = Price(event, level, math.ceil(wrong * CLOCK_UNITS), 0, LEAK)
        assert cheap.worst(xs) > 1e-6


@pytest.mark.slow
def test_without_a_leak_the_far_tail_of_sampled_noise_exceeds_every_smaller_price() -> None:
    level = Fraction(1, 64)
    cost = clock_cost(NOISY, level, LEAK)
    assert cost is not None
    with mpmath.workdps(60):
        free = Price(NOISY, level, cost.clock, 0, 0)
        assert free.worst([mpf(-8)]) > 0 >= Price(NOISY, level, *cost).worst([mpf(-8)])


@pytest.mark.slow
def test_a_leak_is_never_more_of_the_clock_than_none() -> None:
    for event in (
        NOISY,
        Sampled(GaussianNoise(0.5), 0.5),
        Sampled(LaplaceNoise(0.2), 0.9),
        Sampled(ApproxDP(9.0), 0.3),
    ):
        for level in (Fraction(0), Fraction(1, 2**30), Fraction(1, 100), Fraction(20)):
            cost, without = clock_cost(event, level, LEAK), clock_cost(event, level)
            assert cost is not None and without is not None and cost.clock <= without.clock
            assert cost.leak in (0, LEAK) and (cost.leak or cost == without)


@pytest.mark.slow
def test_charges_that_fit_before_and_now() -> None:
    """At (1, 1e-9): none by the price of the whole, 8,016 if fixed in advance."""
    assert not ClockFilter(1.0, 1e-9, leak=0).admits(NOISY)
    assert ClockFilter(1.0, 1e-9).admits(NOISY, 7450)
    assert ClockFilter(1.0, 1e-9, leak=3e-11).admits(NOISY, 7750)
    assert not ClockFilter(1.0, 1e-9, leak=3e-11).admits(NOISY, 8016)
    assert compose([NOISY], counts=[8016]).epsilon_at(1e-9).upper <= 1.0


@pytest.mark.slow
def test_an_account_charges_one_by_one_what_it_says_would_fit_and_keeps_half_of_own_deltas() -> None:
    event, account = Sampled(GaussianNoise(2.0), 0.05), Account.of(3.0, 1e-6)
    account = account.after(account.priced(0.001))
    fitting = account.fitting(event)
    while account.admits(price := account.priced(event)):
        assert account.takes(event, price)
        account = account.after(price)
    assert account.count == fitting + 1 > 300
    assert 0 < account.leak_units <= account._own_units // 2 + 1


def test_where_no_delta_is_left_for_tails_a_sample_costs_what_it_does_without() -> None:
    account = Account.of(3.0, 1e-6)
    used = account.after(account.priced((0.01, 1e-6 / 32)))
    event = Sampled(GaussianNoise(2.0), 0.05)
    assert account.priced(event).leak_units > 0 == used.priced(event).leak_units
    assert used.priced(event).clock_units == CLOCK_UNITS // 4
    assert not used.takes(event, account.priced(event))
    spent = ClockFilter(3.0, 1e-6, leak=1e-8).charge((0.01, 1e-8))
    assert spent.charge(event)._clock == spent._clock - CLOCK_UNITS // 4


@pytest.mark.slow
def test_a_plan_pays_for_its_samples_as_they_would_one_by_one() -> None:
    event = Sampled(GaussianNoise(2.0), 0.05)
    left, spare = CLOCK_UNITS // 3, Spare(CLOCK_UNITS // 10**8, CLOCK_UNITS // 3, CLOCK_UNITS // 10**8)
    plan = clock_payment(Composed(((event, 40),)), left, spare)
    clock, leak = 0, 0
    for _ in range(40):
        cost = clock_payment(event, left - clock, spare.without(leak))
        assert cost is not None
        clock, leak = clock + cost.clock, leak + cost.leak
    assert plan == (clock, 0, leak) and leak > 0
    assert payments_within(event, left, spare) >= 40


def test_leaks_are_lowered_by_what_excesses_of_later_charges_could_multiply_them_with() -> None:
    """At most e^x, with x the most that excesses add up to."""
    cost = clock_cost(NOISY, Fraction(1, 64), LEAK)
    share = 1 - Fraction(MOST_EXCESS, CLOCK_UNITS)
    checked = sampled_cost.sampled_cost(NOISY, Fraction(1, 64), Fraction(LEAK, CLOCK_UNITS) * share)
    assert cost is not None and checked is not None and cost.clock == math.ceil(checked * CLOCK_UNITS)
    assert math.exp(1e-6) * float(share) <= 1


def test_degenerate_samples_and_shares() -> None:
    for event in (Sampled(GaussianNoise(1e-3), 0.1), Sampled(ApproxDP(900.0), 0.1), Sampled(GaussianNoise(1e4), 1e-9)):
        spare = Spare(10**30, 10**38, 10**30)
        assert 0 <= spare.leak(event) <= spare.own // 2
        cost, without = clock_cost(event, Fraction(1, 64), spare.leak(event)), clock_cost(event, Fraction(1, 64))
        assert cost is without or (cost is not None and without is not None and cost.clock <= without.clock)
    assert Spare(10**30, 10**38, 0).leak(NOISY) == Spare(10**30, 0, 10**30).leak(NOISY) == 0
    assert clock_cost(Sampled(GaussianNoise(5.0), 0.0), Fraction(1), LEAK) == (0, 0, 0)
    assert sampled_cost.sampled_cost(NOISY, Fraction(1), Fraction(0)) is None
    with mpmath.workdps(30):
        assert curve(mpf(0), mpf(0)) == 0


def test_a_bend_the_wrong_way_lowers_no_bound_of_the_far_tail() -> None:
    """Points of curves are rounded one by one: a chord may bend by the last digit, and have a mass below 0 there."""
    atoms = [(1.0, 0.1), (2.0, -1e-3), (-1.5, 0.05), (0.0, 0.85)]
    pair = sampled_cost._Pair(tuple((arb(loss), arb(mass)) for loss, mass in atoms), arb(0))
    assert float(pair.beyond()(1.2)) == pytest.approx(0.05 * math.exp(0.75))
    assert pair.beyond()(1.8) == 0
