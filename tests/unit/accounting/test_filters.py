"""Filters one by one: decimals as people type them, prices of events, what each filter cannot price."""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.accounting.event_price import price_of
from farthing.accounting.filters import BasicFilter, FullyAdaptiveFilter, RenyiFilter
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.numerics.bounds import bounded, exact, float_down, float_up
from farthing.privacy import (
    ApproxDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)


def test_a_budget_of_three_tenths_admits_exactly_three_charges_of_a_tenth() -> None:
    budget = BasicFilter(0.3)
    for _ in range(3):
        budget = budget.charge(0.1)
    assert budget.spent == ApproxDP(0.3)
    assert budget.remaining == ApproxDP(0.0)
    assert not budget.admits(1e-300)


@pytest.mark.parametrize(
    ("budget", "charge", "count"),
    [(0.3, 0.1, 3), (1.0, 0.1, 10), (0.7, 0.1, 7), (1.1, 0.11, 10), (2.3, 0.023, 100), (1e-3, 1e-6, 1000)],
)
def test_decimal_budgets_divide_as_decimals(budget: float, charge: float, count: int) -> None:
    assert BasicFilter(budget).admits(charge, count)
    assert not BasicFilter(budget).admits(charge, count + 1)
    assert BasicFilter(1.0, budget).admits((0.0, charge), count) if budget < 1 else True


def test_no_overage_of_a_rounding_error_blocks_and_none_slips_through() -> None:
    budget = BasicFilter(0.3).charge(0.1).charge(0.2)  # 0.1 + 0.2 > 0.3 in floats
    assert budget.remaining.epsilon == 0.0
    assert not BasicFilter(0.3).admits(0.1 + 0.2)  # but whoever asks for more than 0.3 is told so
    assert not BasicFilter(0.3).admits(math.nextafter(0.3, 1.0))


@pytest.mark.slow
@given(st.floats(0.01, 10.0), st.integers(1, 1000))
def test_an_even_share_always_fits(epsilon: float, count: int) -> None:
    budget = BasicFilter(epsilon)
    assert budget.admits(budget.share(count), count)
    assert not budget.admits(budget.share(count) * (1 + 2.0**-50), count)


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_share_needs_a_count(count: object) -> None:
    with pytest.raises(InvalidValue, match="count="):
        BasicFilter(1.0).share(count)  # type: ignore[arg-type]


def test_a_decimal_is_read_as_typed_and_a_result_as_it_is() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-9) == Fraction(1, 10**9)
    assert exact(123456.789012) == Fraction("123456.789012")
    assert exact(123456.7890123) == Fraction(123456.7890123)
    third = 1 / 3
    assert exact(third) == Fraction(third) != Fraction(1, 3)
    assert exact(5e-324) > 0


@pytest.mark.slow
@given(st.fractions(0, 1000))
def test_rounded_amounts_stay_on_their_side(amount: Fraction) -> None:
    assert exact(float_down(amount)) <= amount <= exact(float_up(amount))
    assert float_up(amount) <= math.nextafter(math.nextafter(float_down(amount), math.inf), math.inf)
    if Fraction(str(float(amount))) != amount:  # not a decimal that a double names: right by either reading
        assert Fraction(float_down(amount)) <= amount <= Fraction(float_up(amount))


def test_rounding_past_the_largest_double() -> None:
    huge = Fraction(10) ** 400
    assert float_up(huge) == math.inf
    assert float_down(huge) == math.nextafter(math.inf, 0)


def test_sums_of_odd_fractions_stay_bounded_and_only_grow() -> None:
    total = sum((Fraction(1, n) for n in range(1, 9000)), Fraction(0))
    assert total.denominator.bit_length() > 8192
    assert total < bounded(total) < total + Fraction(1, 2**8000)
    assert bounded(Fraction(1, 3)) == Fraction(1, 3)


def test_prices_of_events() -> None:
    assert price_of(LaplaceNoise(3.0)).epsilon == Fraction(1, 3)
    assert price_of(DiscreteLaplaceNoise(4.0, 7)).epsilon == Fraction(1, 4)
    assert price_of(RandomizedResponse(0.2)).twice_rho == Fraction(1, 25)
    assert price_of(GaussianNoise(2.0)).epsilon is None
    assert price_of(GaussianNoise(2.0)).twice_rho == Fraction(1, 4)
    assert price_of(DiscreteGaussianNoise(2.0, 3)).twice_rho == Fraction(1, 4)
    assert price_of(ApproxDP(0.5, 1e-9)).leak == Fraction(1, 10**9)
    sampled = price_of(Sampled(ApproxDP(0.5, 1e-9), 0.1))
    assert sampled.leak == Fraction(1, 10**10)
    assert float(sampled.epsilon or 0) == pytest.approx(math.log1p(0.1 * math.expm1(0.5)), rel=1e-15)
    assert price_of(Sampled(LaplaceNoise(3.0), 1.0)) == price_of(LaplaceNoise(3.0))
    assert price_of(Sampled(GaussianNoise(3.0), 0.5)).twice_rho is None


def test_gaussian_noise_is_refused_by_plain_sums_with_a_way_out() -> None:
    with pytest.raises(InvalidValue, match=r"GaussianNoise\(noise_multiplier=2.0\): has no .* use RenyiFilter"):
        BasicFilter(1.0, 1e-6).admits(GaussianNoise(2.0))
    assert BasicFilter(1.0, 1e-6).admits(GaussianNoise(2.0), count=0)


def test_sampled_gaussian_noise_is_refused_by_zcdp_and_priced_by_renyi() -> None:
    step = Sampled(GaussianNoise(2.0), 0.01)
    with pytest.raises(InvalidValue, match="use RenyiFilter"):
        FullyAdaptiveFilter(1.0, 1e-6).charge(step)
    assert FullyAdaptiveFilter(1.0, 1e-6).admits(step, count=0)
    assert RenyiFilter(1.0, 1e-6).admits(step, count=100)


def test_mixed_charges_of_every_kind() -> None:
    budget = RenyiFilter(3.0, 1e-6)
    for charge in (
        0.1, (0.1, 1e-8), LaplaceNoise(10.0), DiscreteLaplaceNoise(10.0, 2), GaussianNoise(10.0),
        DiscreteGaussianNoise(10.0), Sampled(LaplaceNoise(1.0), 0.01), Sampled((ApproxDP(1.0, 1e-8)), 0.1),
    ):  # fmt: skip
        budget = budget.charge(charge)
    assert budget.count == 8
    assert budget.spent.delta == pytest.approx(5e-7 + 1e-8 + 1e-9, rel=1e-12)
    assert 0 < budget.spent.epsilon < 3


def test_refusal_states_value_rule_and_way_out() -> None:
    with pytest.raises(BudgetExceeded) as refusal:
        FullyAdaptiveFilter(1.0, 1e-6).charge(GaussianNoise(1.0), count=2)
    assert str(refusal.value).startswith("charge of GaussianNoise(noise_multiplier=1.0) x 2 exceeds what is left in")
    assert "lower the charge or ask the owner" in str(refusal.value)
    assert refusal.value.requested == GaussianNoise(1.0)
    assert isinstance(refusal.value.remaining, ApproxDP)


@pytest.mark.slow
def test_order_is_chosen_for_what_is_expected() -> None:
    step = Sampled(GaussianNoise(1.0), 0.01)
    blind, told = RenyiFilter(3.0, 1e-9, leak=0), RenyiFilter(3.0, 1e-9, leak=0, expecting=step)
    assert told.admits(step, count=500)
    assert not blind.admits(step, count=500)
    assert told.expecting == step
    # Where plain sums do better than any order, the order is chosen for small charges as if nothing was said.
    assert RenyiFilter(1.0, 1e-6, expecting=0.5).alpha == RenyiFilter(1.0, 1e-6).alpha


def test_chosen_order_admits_more_small_charges_than_its_neighbours() -> None:
    small = GaussianNoise(1e4)
    for epsilon, delta in [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-6)]:
        chosen = RenyiFilter(epsilon, delta, leak=0)
        assert chosen.alpha is not None
        for factor in (0.8, 1.25):
            other = RenyiFilter(epsilon, delta, leak=0, alpha=max(1.01, chosen.alpha * factor))
            count = 10_000
            while other.admits(small, count):
                count = count * 5 // 4
            assert chosen.admits(small, count * 4 // 5)


def test_expecting_what_is_free_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"expecting=.*must cost something"):
        RenyiFilter(1.0, 1e-6, expecting=0.0)


@pytest.mark.parametrize("alpha", [1.0, 0.5, math.nan, math.inf, -3.0, True, "2", 1e9])
def test_bad_orders_are_refused(alpha: object) -> None:
    with pytest.raises(InvalidValue, match="alpha="):
        RenyiFilter(1.0, 1e-6, alpha=alpha)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [FullyAdaptiveFilter, RenyiFilter])
@pytest.mark.parametrize("leak", [1e-6, 1e-3, -1e-9, math.nan, True, "0"])
def test_bad_leaks_are_refused(make: type, leak: object) -> None:
    with pytest.raises(InvalidValue, match="leak="):
        make(1.0, 1e-6, leak=leak)


@pytest.mark.parametrize("make", [FullyAdaptiveFilter, RenyiFilter])
def test_a_budget_without_delta_belongs_to_plain_sums(make: type) -> None:
    with pytest.raises(InvalidValue, match=r"delta=0.0: must be > 0 and < 1; with delta 0 use BasicFilter"):
        make(1.0, 0.0)


def test_leak_is_set_aside_from_the_start() -> None:
    budget = RenyiFilter(1.0, 1e-6, leak=2e-7)
    assert budget.spent == ApproxDP(0.0, 8e-7)
    assert budget.remaining.delta == 2e-7
    full = budget.charge((0.01, 1e-7), count=2)
    assert full.spent.delta == 1e-6
    assert not full.admits((0.0, 1e-300))


def test_filters_work_from_many_threads() -> None:
    faults: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(20):
                event = LaplaceNoise(10.0 + seed + i / 100)
                assert RenyiFilter(1.0, 1e-6).charge(event).spent.epsilon <= 1 / event.noise_multiplier * (1 + 1e-12)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
