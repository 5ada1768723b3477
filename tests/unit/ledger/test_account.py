"""Account: whole numbers in, yes or no out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing import compose
from farthing.accounting.event_price import DELTA_UNITS, NANO, NOTHING, ORDERS, Divergences
from farthing.accounting.filters.clock_payment import MOST_EXCESS
from farthing.errors import InvalidValue
from farthing.ledger.account import Account
from farthing.ledger.charge_prices import ChargePrice
from farthing.ledger.tamper_evidence import canonical
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
from strategies import epsilons, leaks

# It fits (1, 1e-9) by its own curve, and neither the clock nor plain sums could pay for it.
PLAN = Composed(((ApproxDP(0.01), 336),))


def _charged(account: Account, *charges: float | tuple[float, float] | Event) -> Account:
    for charge in charges:
        price = account.priced(charge)
        assert account.admits(price)
        account = account.after(price)
    return account


def _times(price: ChargePrice, count: int) -> ChargePrice:
    """The price of `count` equal charges, as sums have it."""
    assert price.epsilon_nano is not None
    assert price.clock_units is not None
    amounts = price.epsilon_nano, price.delta_units, price.leak_units, price.clock_units, price.excess_units
    return ChargePrice(*(count * amount for amount in amounts))


class TestDecimals:
    @pytest.mark.parametrize("delta", [0.0, 1e-9])
    def test_ten_tenths_fill_one(self, delta: float) -> None:
        account = _charged(Account.of(1.0, delta), *[0.1] * 10)
        assert account.spent_upper == 1.0
        assert account.remaining.epsilon == 0.0
        assert not account.admits(account.priced(1e-9))

    def test_three_tenths_fill_their_sum_as_written_and_not_as_doubles_add(self) -> None:
        assert not _charged(Account.of(0.3), 0.1, 0.1, 0.1).admits(Account.of(0.3).priced(1e-12))
        assert not Account.of(0.3).admits(Account.of(0.3).priced(0.1 + 0.2))

    def test_a_million_tiny_charges_are_not_free(self) -> None:
        account = Account.of(1.0, 1e-9)
        price = account.priced(1e-12)
        assert price.epsilon_nano == 1
        assert price.clock_units is not None and price.clock_units >= 10**16
        million = account.after(_times(price, 10**6))
        assert million.sum_nano == 10**6
        assert million.clock_units == 10**6 * price.clock_units >= 10**22

    def test_every_currency_of_a_tiny_delta_costs_a_unit(self) -> None:
        price = Account.of(1.0, 1e-9).priced((0.0, 1e-300))
        assert (price.epsilon_nano, price.delta_units, price.leak_units) == (0, 1, 1)

    def test_budgets_round_down_and_charges_up(self) -> None:
        third = Account.of(1 / 3)
        assert third.epsilon_nano == 333_333_333
        assert third.priced(1 / 3).epsilon_nano == 333_333_334
        assert third.priced(LaplaceNoise(3.0)).epsilon_nano == 333_333_334

    def test_nothing_costs_nothing(self) -> None:
        account = Account.of(0.0)
        price = account.priced(Composed(()))
        assert account.admits(price) and account.after(price).spent_upper == 0.0


class TestRefusedNumbers:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, 1e308, 1e7, True, "0.1", None])
    def test_what_is_no_charge_is_refused(self, bad: object) -> None:
        with pytest.raises(InvalidValue):
            Account.of(1.0).priced(bad)  # type: ignore[arg-type]

    @pytest.mark.parametrize("bad", [math.nan, -1.0, 1e308, 1e-10, True, "1"])
    def test_what_is_no_budget_is_refused(self, bad: object) -> None:
        with pytest.raises(InvalidValue):
            Account.of(bad)  # type: ignore[arg-type]

    @pytest.mark.parametrize("bad", [math.nan, -1e-9, 1.0, 1e-41, True, "1e-9"])
    def test_what_is_no_delta_is_refused(self, bad: object) -> None:
        with pytest.raises(InvalidValue):
            Account.of(1.0, bad)  # type: ignore[arg-type]

    @pytest.mark.parametrize("event", [LaplaceNoise(1e-7), GaussianNoise(1e-7)])
    def test_noise_that_hides_nothing_is_refused(self, event: Event) -> None:
        with pytest.raises(InvalidValue):
            Account.of(1.0, 1e-9).priced(event)

    def test_a_delta_at_which_no_epsilon_exists_is_refused(self) -> None:
        with pytest.raises(InvalidValue, match="no epsilon exists"):
            Account.of(1.0, 1e-6).priced((0.1, 1e-8), delta=1e-9)


class TestFirstCharge:
    def test_a_charge_of_the_whole_budget_fits_and_is_all(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), (1.0, 1e-9))
        assert account.spent_upper == 1.0
        assert account.remaining == ApproxDP(0.0, 0.0)
        assert not account.admits(account.priced(1e-9))

    def test_a_large_delta_leaves_plain_sums_with_all_of_delta(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), (0.1, 6e-10))
        assert account.only_sums and not account.is_whole
        assert account.remaining == ApproxDP(0.9, 4e-10)
        account = _charged(account, 0.4, (0.5, 4e-10))
        assert account.spent_upper == 1.0 and account.remaining == ApproxDP(0.0, 0.0)

    def test_plain_sums_once_chosen_stay_when_the_budget_is_raised(self) -> None:
        """They have all of delta, so nothing is left for the other filter."""
        account = Account.of(1.0, 1e-9)
        account = account.after(account.priced((0.9, 9.5e-10)))
        assert account.only_sums
        raised = account.with_budget(3.0, 1e-9)
        assert raised._plain_fits() and not raised._clock_fits()

    def test_a_reserve_chooses_no_rule(self) -> None:
        withheld = 100_000_000, 6 * 10**30  # more than either filter's share of delta
        account = Account.of(1.0, 1e-9)
        assert not account.admits(account.priced((0.1, 1e-11)), withheld)
        later = _charged(account, (0.1, 1e-11))
        assert later.remaining_beside(withheld) == ApproxDP(0.0, 0.0)

    def test_the_first_charge_chooses_a_rule_that_keeps_a_reserve(self) -> None:
        withheld = 100_000_000, 6 * 10**30
        account = Account.of(1.0, 1e-9)
        left = account.remaining_beside(withheld)
        assert left == ApproxDP(0.9, 4e-10)
        for charge in (left, (0.1, 1e-11), 0.2):
            price = account.priced(charge, withheld=withheld)
            assert price.only_sums and account.admits(price, withheld)
            assert account.after(price).admits(account.after(price).priced((0.1, 6e-10)))

    def test_plain_sums_are_not_chosen_later(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), (0.1, 1e-11))
        assert not account.only_sums
        assert not account.admits(account.priced((0.1, 6e-10)))

    def test_a_plan_may_use_its_own_curve_at_the_whole_delta(self) -> None:
        plan = Composed(((ApproxDP(0.02), 140),))
        fits = compose([plan]).epsilon_at(1e-6).upper
        account = Account.of(math.ceil(fits * NANO) / NANO, 1e-6)
        assert not account.after(account.priced(plan))._fits()  # the filters alone would have refused it
        account = _charged(account, plan)
        assert account.is_whole and fits <= account.spent_upper < fits + 2e-9
        small = Account.of(math.floor(fits * NANO) / NANO, 1e-6)
        assert not small.admits(small.priced(plan))

    def test_it_is_for_the_first_charge_only(self) -> None:
        empty, plan = Account.of(1.0, 1e-9), PLAN
        account = _charged(empty, 1e-9)
        assert not account.admits(account.priced((0.5, 1e-9)))
        assert empty.admits(empty.priced(plan)) and not account.admits(account.priced(plan))
        assert not account.admits(empty.priced(plan))  # a price that was asked before the first charge

    def test_it_leaves_nothing_to_a_reserve_and_so_refuses(self) -> None:
        account, plan = Account.of(1.0, 1e-9), PLAN
        assert account.admits(account.priced(plan))
        assert not account.admits(account.priced(plan), withheld=(1, 0))

    def test_a_price_asked_at_another_delta_does_not_count(self) -> None:
        wide, narrow = Account.of(1.0, 1e-3), Account.of(1.0, 1e-9)
        price = wide.priced(Composed(((ApproxDP(0.1), 15),)))
        assert price.alone_nano is not None
        assert wide.admits(price) and not narrow.admits(price)

    def test_raising_the_budget_gives_a_whole_account_room_again(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), PLAN)
        assert account.is_whole and not account.admits(account.priced(1e-9))
        raised = account.with_budget(2.0, 1e-9)
        assert not raised.is_whole and raised.admits(raised.priced(0.2))


class TestNothing:
    """A charge that is (0, 0)-DP tells nothing, so that it always fits and changes nothing."""

    FULL = (
        ("whole", Account.of(1.0, 1e-9), PLAN),
        ("exhausted", Account.of(1.0, 0.0), 1.0),
        ("sums only", Account.of(1.0, 1e-9), (1.0, 1e-9)),
    )

    @pytest.mark.parametrize(("empty", "event"), [(a, e) for _, a, e in FULL], ids=[n for n, _, _ in FULL])
    def test_it_is_admitted_where_nothing_else_is_and_changes_no_amount(self, empty: Account, event: Any) -> None:
        account = _charged(empty, event)
        assert not account.admits(account.priced(1e-9))
        later = _charged(account, 0.0, ApproxDP(0.0), Composed(((ApproxDP(0.0), 7),)))
        assert later == replace(account, count=account.count + 3)
        assert later == account.after_many(account.priced(0.0), 3)
        assert later.spent_upper == account.spent_upper and later.remaining == account.remaining
        assert not later.admits(later.priced(1e-9))

    def test_it_is_admitted_beside_a_reserve_and_under_a_lowered_budget(self) -> None:
        account = _charged(Account.of(1.0), 1.0).with_budget(0.5)
        assert account.admits(account.priced(0.0)) and account.admits(account.priced(0.0), withheld=(10**8, 0))

    @pytest.mark.parametrize("event", [1e-12, (0.0, 1e-30), GaussianNoise(1e9)])
    def test_next_to_nothing_is_not_nothing(self, event: Any) -> None:
        account = _charged(Account.of(1.0), 1.0)
        assert not account.priced(event).is_nothing and not account.admits(account.priced(event))

    def test_before_any_other_charge_all_of_the_budget_still_fits_and_is_said_to(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), 0.0, Composed(()))
        assert account.remaining == Account.of(1.0, 1e-9).remaining == ApproxDP(1.0, 1e-9)
        assert account.admits(account.priced((1.0, 1e-9)))

    def test_nothing_at_a_delta_is_not_nothing(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), (1.0, 1e-9))
        assert not account.admits(account.priced(0.0, delta=1e-10))

    def test_the_first_real_charge_after_it_still_chooses_the_rule(self) -> None:
        empty, plan = Account.of(1.0, 1e-9), PLAN
        begun = _charged(empty, 0.0)
        assert begun.admits(begun.priced(plan)) and empty.admits(empty.priced(plan))
        assert replace(_charged(begun, plan), count=1) == _charged(empty, plan)
        touched = _charged(begun, (0.0, 1e-20))
        assert not touched.admits(touched.priced(plan))


class TestRaising:
    def test_a_raised_budget_admits_more_and_forgets_nothing(self) -> None:
        account = _charged(Account.of(0.5, 1e-9), *[0.1] * 5)
        assert not account.admits(account.priced(0.1))
        raised = account.with_budget(0.6, 1e-9)
        assert raised.admits(raised.priced(0.1)) and not raised.admits(raised.priced(0.1000001))
        assert raised.with_budget(0.5, 1e-9) == account

    def test_a_lowered_budget_admits_nothing_more(self) -> None:
        account = _charged(Account.of(1.0), 0.5).with_budget(0.4)
        assert account.remaining == ApproxDP(0.0, 0.0)
        assert account.spent_upper == 0.5
        assert not account.admits(account.priced(1e-9))

    @pytest.mark.slow
    @given(
        st.lists(st.tuples(epsilons(0.001, 0.2), leaks()), min_size=1, max_size=5),
        st.integers(1, 400),
        st.tuples(epsilons(0.1, 3.0), st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 1e-3])),
        st.tuples(st.floats(0, 2.0), st.floats(1, 1e4)),
    )
    def test_admits_is_monotone_in_the_budget(
        self,
        charges: list[tuple[float, float]],
        repeats: int,
        budget: tuple[float, float],
        more: tuple[float, float],
    ) -> None:
        account = Account.of(*budget)
        for charge in charges:
            account = account.after(_times(account.priced(charge), repeats))
        larger = account.with_budget(budget[0] + more[0], min(0.5, budget[1] * more[1]))
        assert larger._plain_fits() or not account._plain_fits()
        assert larger._clock_fits() or not account._clock_fits()
        assert larger.spent_upper <= account.spent_upper


class TestReading:
    STATES = (
        (Account.of(1.0, 1e-9), [0.3, (0.2, 1e-11)]),
        (Account.of(1.0, 1e-9), [0.01] * 150),
        (Account.of(3.0, 1e-6), [GaussianNoise(20.0)] * 60),
        (Account.of(0.5), [0.1, LaplaceNoise(10.0)]),
        (Account.of(2.0, 1e-6), [Composed(((GaussianNoise(30.0), 20), (ApproxDP(0.02), 10)))]),
        (Account.of(1.0, 1e-9), []),
    )

    @pytest.mark.parametrize("place", range(len(STATES)))
    @pytest.mark.parametrize("withheld", [(0, 0), (50_000_000, 10**28)])
    def test_remaining_fits_and_a_little_more_does_not(self, place: int, withheld: tuple[int, int]) -> None:
        account = _charged(self.STATES[place][0], *self.STATES[place][1])
        if not account.delta_units:
            withheld = withheld[0], 0
        left = account.remaining_beside(withheld)
        assert left.epsilon > 0
        assert account.admits(account.priced(left), withheld)
        assert not account.admits(account.priced((left.epsilon + 2e-9, left.delta)), withheld)
        if left.delta:
            assert not account.admits(account.priced((left.epsilon, left.delta * 1.001)), withheld)

    @pytest.mark.parametrize("place", range(len(STATES)))
    def test_spent_upper_is_the_least_budget_that_holds_the_charges(self, place: int) -> None:
        account = _charged(self.STATES[place][0], *self.STATES[place][1])
        nano = math.ceil(account.spent_upper * NANO)
        assert replace(account, epsilon_nano=nano)._fits()
        assert nano == 0 or not replace(account, epsilon_nano=nano - 2)._fits()

    def test_the_reading_of_the_clock_is_above_the_optimum_and_below_the_sum(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), *[0.01] * 250)
        optimum = compose([0.01], counts=[250]).epsilon_at(1e-9).lower
        assert optimum < account.spent_upper < 1.0 < 2.5

    def test_a_sum_without_any_reading_is_infinite(self) -> None:
        account = Account.of(1.0, 1e-9)
        assert account.after(account.priced((0.1, 1e-3))).spent_upper == math.inf

    @pytest.mark.parametrize("place", range(len(STATES)))
    @pytest.mark.parametrize("charge", [0.02, (0.03, 1e-12), GaussianNoise(60.0), Composed(((ApproxDP(0.01), 5),))])
    def test_as_many_fit_as_are_said_to(self, place: int, charge: Any) -> None:
        account = _charged(self.STATES[place][0], *self.STATES[place][1])
        if account.untouched:  # a first charge may choose its rule
            account = _charged(account, 0.001)
        said, fitted = account.fitting(charge), 0
        while account.admits(price := account.priced(charge)):
            account, fitted = account.after(price), fitted + 1
        assert said <= fitted <= 1.03 * said + 1

    def test_what_is_set_aside_leaves_room_for_fewer(self) -> None:
        account, reserve = _charged(Account.of(1.0, 1e-9), *[0.01] * 120), (50_000_000, 0)
        said = account.fitting(0.01, reserve)
        assert 0 < said < account.fitting(0.01)
        for _ in range(said):
            price = account.priced(0.01)
            assert account.admits(price, reserve)
            account = account.after(price)

    def test_withheld_is_kept_for_a_charge_of_that_size(self) -> None:
        account, reserve = _charged(Account.of(1.0, 1e-9), *[0.01] * 100), (60_000_000, 10**29)
        while account.admits(account.priced(0.01), reserve):
            account = account.after(account.priced(0.01))
        assert account.admits(account.priced((0.06, 1e-11)))
        assert account.sum_nano is not None and account.sum_nano > NANO  # the clock kept it


class TestPrices:
    def test_a_pure_event_enters_the_sums_without_delta(self) -> None:
        account = Account.of(1.0, 1e-9)
        for event in (
            RandomizedResponse(0.1),
            LaplaceNoise(10.0),
            DiscreteLaplaceNoise(10.0, 5),
            BoundedRange(0.1),
        ):
            price = account.priced(event)
            assert (price.epsilon_nano, price.delta_units) == (10**8, 0)

    @pytest.mark.parametrize(
        "event", [GaussianNoise(30.0), DiscreteGaussianNoise(30.0), Sampled(GaussianNoise(2.0), 0.1)]
    )
    def test_an_event_without_a_pure_epsilon_takes_even_shares(self, event: Event) -> None:
        account = Account.of(2.0, 1e-6)
        price = account.priced(event)
        assert price.epsilon_nano is not None and (price.leak_units > 0) == isinstance(event, Sampled)
        shares = price.epsilon_nano / (2 * NANO), price.delta_units / (DELTA_UNITS * 1e-6 / 16)
        assert 0.3 < shares[0] / shares[1] < 3
        truth = compose([event]).epsilon_at(price.delta_units / DELTA_UNITS).upper
        assert price.epsilon_nano == pytest.approx(truth * NANO, rel=1e-6)

    def test_the_delta_of_a_charge_can_be_told(self) -> None:
        price = Account.of(2.0, 1e-6).priced(GaussianNoise(30.0), delta=1e-8)
        assert price.delta_units == 10**32
        assert price.epsilon_nano == math.ceil(compose([GaussianNoise(30.0)]).epsilon_at(1e-8).upper * NANO)

    def test_a_large_plan_is_composed_and_a_small_one_is_summed(self) -> None:
        account = Account.of(3.0, 1e-6)
        small = account.priced(Composed(((ApproxDP(0.1), 5),)))
        assert (small.epsilon_nano, small.delta_units) == (5 * 10**8, 0)
        large = account.priced(Composed(((ApproxDP(0.01), 1000),)))
        assert large.epsilon_nano is not None and large.epsilon_nano < 3 * NANO < 10 * NANO
        assert large.delta_units > 0

    def test_plans_are_rounded_once(self) -> None:
        account = Account.of(1.0, 1e-9)
        tiny = account.priced(Composed(((ApproxDP(1e-12), 10**6),)))
        assert tiny.epsilon_nano is not None and 1 <= tiny.epsilon_nano <= 1000
        four = account.priced(Composed(((GaussianNoise(50.0), 4),))).clock_units
        assert four == account.priced(GaussianNoise(25.0)).clock_units == DELTA_UNITS // 625

    def test_own_deltas_are_leaks_in_every_currency(self) -> None:
        price = Account.of(1.0, 1e-6).priced(Composed(((ApproxDP(0.1, 1e-9), 3), (GaussianNoise(50.0), 1))))
        assert price.leak_units == 3 * 10**31 < price.delta_units
        most = Account.of(1.0, 1e-6).priced(Composed(((ApproxDP(0.1, 6e-8), 1), (GaussianNoise(50.0), 1))))
        assert most.epsilon_nano is not None and most.delta_units > most.leak_units

    def test_what_the_clock_cannot_pay_counts_when_the_budget_is_raised(self) -> None:
        """Beyond its end nothing is kept; discrete Gaussian noise, which needs that, pays for it as well."""
        account = _charged(Account.of(1.0, 1e-9), 0.5)
        assert account._clock_left == -1
        for event in (ApproxDP(0.05), GaussianNoise(40.0), DiscreteGaussianNoise(40.0, 3), LaplaceNoise(30.0)):
            price = account.priced(event)
            assert price.clock_units is not None and price.clock_units > 0
            assert price.clock_units >= (Account.of(5.0, 1e-9).priced(event).clock_units or 0)
            account = account.after(price)
        assert account.excess_units < MOST_EXCESS and not account._clock_fits()
        raised = account.with_budget(5.0, 1e-9)
        assert raised._clock_fits() and raised.admits(raised.priced(0.1))

    def test_what_no_clock_could_pay_stays_infinite(self) -> None:
        account = Account.of(900.0, 1e-9)
        account = account.after(account.priced(400.0))
        assert account.clock_units is None and account._plain_fits() and not account._clock_fits()
        assert Account.from_dict(json.loads(account.text())) == account
        assert account.spent_upper == 400.0 and account.remaining.epsilon == 500.0

    def test_delta_zero_keeps_plain_sums_only(self) -> None:
        account = Account.of(1.0)
        assert account._clock_left == -1
        assert not account.admits(account.priced(GaussianNoise(100.0)))
        assert not account.admits(account.priced((0.1, 1e-30)))


class TestStoring:
    @pytest.mark.slow
    @given(st.lists(st.tuples(epsilons(), leaks()), max_size=4))
    def test_state_survives_json(self, charges: list[tuple[float, float]]) -> None:
        account = Account.of(2.0, 1e-6)
        for charge in charges:
            price = account.priced(charge)
            assert ChargePrice.from_dict(json.loads(json.dumps(price.to_dict()))) == price
            account = account.after(price)
        assert Account.from_dict(json.loads(json.dumps(account.to_dict()))) == account
        assert account.text() == canonical(account.to_dict())

    @pytest.mark.slow
    @given(epsilons(), leaks(), st.integers(1, 5))
    def test_many_charges_at_once_are_as_many_charges(self, epsilon: float, leak: float, times: int) -> None:
        start = Account.of(2.0, 1e-6)
        for event in ((epsilon, leak), Sampled(GaussianNoise(1.0), 0.01)):
            price = start.priced(event)
            account = start.after(price)
            many = account.after_many(price, times)
            for _ in range(times):
                account = account.after(price)
            assert many == account

    @pytest.mark.parametrize("name", ["sum_nano", "whole_nano", "clock_units"])
    @pytest.mark.parametrize("older", [(), (None, *NOTHING[1:])])
    def test_what_is_infinite_survives_json(self, name: str, older: Divergences) -> None:
        for amount in (None, 7):
            account = replace(Account.of(1.0), **{name: amount}, divergences=older)
            assert account.text() == canonical(account.to_dict())
            assert Account.from_dict(json.loads(account.text())) == account

    def test_state_is_whole_numbers(self) -> None:
        account = _charged(Account.of(1.0, 1e-9), 0.1, GaussianNoise(50.0))
        data = account.to_dict()
        assert all(type(value) is int for value in data.values())
        assert "divergences" not in data and data["clock_units"] > DELTA_UNITS // 2500

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("count", -1),
            ("count", True),
            ("sum_nano", 0.5),
            ("sum_units", -1),
            ("whole_nano", -1.0),
            ("divergences", [0]),
            ("divergences", [-2] * len(ORDERS)),
            ("divergences", [True] * len(ORDERS)),
            ("more", 1),
        ],
    )
    def test_anything_else_is_refused(self, key: str, value: object) -> None:
        with pytest.raises(InvalidValue):
            Account.from_dict({**Account.of(1.0, 1e-9).to_dict(), key: value})

    @pytest.mark.slow
    @given(
        st.permutations(
            [
                0.1,
                0.25,
                (0.1, 1e-10),
                LaplaceNoise(20.0),
                GaussianNoise(50.0),
                BoundedRange(0.2),
                (0.3, 2e-11),
            ]
        )
    )
    def test_order_of_charges_does_not_matter(self, charges: list[Event | float | tuple[float, float]]) -> None:
        account = Account.of(5.0, 1e-6)
        prices = [account.priced(charge) for charge in charges]
        for price in prices:
            account = account.after(price)
        assert account.count == 7
        assert account.sum_nano == sum(price.epsilon_nano or 0 for price in prices)
        assert account.sum_units == sum(price.delta_units for price in prices)
        assert account.clock_units == sum(price.clock_units or 0 for price in prices)
