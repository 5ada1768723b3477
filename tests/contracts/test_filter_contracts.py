"""The contract of filters: what every one of them owes its callers, a new one included (add it to FILTERS)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.filters import BasicFilter, ClockFilter, Filter, FullyAdaptiveFilter, RenyiFilter
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.privacy import ApproxDP, DiscreteLaplaceNoise, Event, LaplaceNoise, RandomizedResponse, Sampled
from strategies import epsilons, leaks

Make = Callable[[float, float], Filter]
ADDING: list[Make] = [BasicFilter, FullyAdaptiveFilter, RenyiFilter]
FILTERS: list[Make] = [*ADDING, ClockFilter]
filters_of_sums = pytest.mark.parametrize("make", ADDING, ids=lambda make: make.__name__)
every_filter = pytest.mark.parametrize("make", FILTERS, ids=lambda make: make.__name__)


def charges() -> st.SearchStrategy[Event]:
    """Events that every filter prices: those with an (epsilon, delta) of their own."""
    plain = st.one_of(
        st.builds(ApproxDP, epsilons(0.001, 1.0), leaks()),
        st.builds(RandomizedResponse, epsilons(0.001, 1.0)),
        st.builds(LaplaceNoise, st.floats(1.0, 1000.0)),
        st.builds(DiscreteLaplaceNoise, st.floats(1.0, 1000.0), st.integers(1, 5)),
    )
    return st.one_of(plain, st.builds(Sampled, plain, st.sampled_from([0.0, 0.01, 0.5, 1.0])))


budgets = st.tuples(st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([1e-9, 1e-3, 0.1]))
requests = st.lists(st.tuples(charges(), st.integers(0, 40)), max_size=8)


def spend(budget: Filter, asked: list[tuple[Event, int]]) -> Filter:
    """Charge what fits and pass over the rest, as a careful analyst would."""
    for event, count in asked:
        if budget.admits(event, count):
            budget = budget.charge(event, count)
    return budget


@pytest.mark.slow
@every_filter
@given(budgets, requests, charges(), st.integers(0, 10**6))
@settings(max_examples=30)
def test_admits_and_charge_agree_and_a_refusal_changes_nothing(
    make: Make, size: tuple[float, float], asked: list[tuple[Event, int]], event: Event, count: int
) -> None:
    budget = spend(make(*size), asked)
    facts = (budget.spent, budget.remaining, budget.count)
    if budget.admits(event, count):
        assert budget.charge(event, count).count == budget.count + count
    else:
        with pytest.raises(BudgetExceeded) as refusal:
            budget.charge(event, count)
        assert refusal.value.requested == event
        assert refusal.value.remaining == budget.remaining
    assert (budget.spent, budget.remaining, budget.count) == facts


@pytest.mark.slow
@every_filter
@given(budgets, charges(), st.integers(1, 12))
@settings(max_examples=30)
def test_k_at_once_equals_k_one_by_one(make: Make, size: tuple[float, float], event: Event, k: int) -> None:
    budget = make(*size)
    singly, fits = budget, True
    for _ in range(k):
        fits = fits and singly.admits(event)
        singly = singly.charge(event) if fits else singly
    assert budget.admits(event, k) == fits
    if fits:
        assert budget.charge(event, k) == singly


@pytest.mark.slow
@filters_of_sums  # a clock charges less while more of it is left, so there the order matters a little
@given(budgets, requests, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_order_of_charges_does_not_matter(
    make: Make, size: tuple[float, float], asked: list[tuple[Event, int]], random: object
) -> None:
    budget = make(*size)
    taken = []
    for event, count in asked:
        if budget.admits(event, count):
            budget = budget.charge(event, count)
            taken.append((event, count))
    random.shuffle(taken)  # type: ignore[attr-defined]
    again = make(*size)
    for event, count in taken:
        again = again.charge(event, count)  # sums only grow, so every prefix of what fits also fits
    assert again == budget


@pytest.mark.slow
@every_filter
@given(budgets, requests, charges())
@settings(max_examples=30)
def test_charging_never_lowers_spent_nor_raises_remaining(
    make: Make, size: tuple[float, float], asked: list[tuple[Event, int]], event: Event
) -> None:
    before = spend(make(*size), asked)
    if not before.admits(event):
        return
    after = before.charge(event)
    assert after.spent.epsilon >= before.spent.epsilon
    assert after.spent.delta >= before.spent.delta
    assert after.remaining.epsilon <= before.remaining.epsilon * (1 + 1e-9)
    assert after.remaining.delta <= before.remaining.delta


@pytest.mark.slow
@every_filter
@given(budgets, requests)
@settings(max_examples=30)
def test_what_remains_can_be_charged_and_little_more_cannot(
    make: Make, size: tuple[float, float], asked: list[tuple[Event, int]]
) -> None:
    budget = spend(make(*size), asked)
    left = budget.remaining
    assert budget.admits(left)
    assert budget.charge(left).spent.epsilon <= size[0]
    assert not budget.admits(left.epsilon * (1 + 1e-9) + 1e-9)
    assert not budget.admits((0.0, left.delta * (1 + 1e-15) + 1e-320))


@pytest.mark.slow
@every_filter
@given(budgets, requests)
@settings(max_examples=30)
def test_spent_is_within_the_budget_and_never_below_nothing(
    make: Make, size: tuple[float, float], asked: list[tuple[Event, int]]
) -> None:
    budget = spend(make(*size), asked)
    assert 0 <= budget.spent.epsilon <= size[0]
    assert 0 <= budget.spent.delta <= size[1]


@every_filter
def test_never_worse_than_plain_sums(make: Make) -> None:
    assert make(0.3, 1e-6).admits(0.1, count=3)
    assert make(1.0, 1e-6).admits(1.0)
    assert make(1.0, 1e-6).admits(LaplaceNoise(3.0), count=3)


@every_filter
def test_free_charges_are_always_admitted(make: Make) -> None:
    budget = make(1.0, 1e-6)
    full = budget.charge(budget.remaining)
    assert full.admits(0.0)
    assert full.admits(Sampled(RandomizedResponse(5.0), 0.0), count=10**6)
    assert full.admits(RandomizedResponse(5.0), count=0)
    assert full.charge(0.0, count=0) == full


@every_filter
@pytest.mark.parametrize(
    "charge",
    [
        math.nan,
        math.inf,
        -0.1,
        True,
        "0.1",
        None,
        (0.1, 1.0),
        (0.1, math.nan),
        (0.1, -1e-9),
        (0.1,),
        (0.1, 0.0, 0.0),
        [],
        {},
    ],
)
def test_bad_charges_are_refused_and_change_nothing(make: Make, charge: object) -> None:
    budget = make(1.0, 1e-6)
    for ask in (budget.admits, budget.charge):
        with pytest.raises(InvalidValue):
            ask(charge)  # type: ignore[arg-type]
    assert budget == make(1.0, 1e-6)


@every_filter
@pytest.mark.parametrize("count", [-1, 1.5, True, math.nan, "2", None])
def test_bad_counts_are_refused(make: Make, count: object) -> None:
    with pytest.raises(InvalidValue, match="count="):
        make(1.0, 1e-6).admits(0.1, count)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="count="):
        make(1.0, 1e-6).charge(0.1, count)  # type: ignore[arg-type]


@every_filter
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (math.nan, 1e-6),
        (math.inf, 1e-6),
        (-1.0, 1e-6),
        (True, 1e-6),
        ("1", 1e-6),
        (1.0, 1.0),
        (1.0, math.nan),
        (1.0, -0.1),
    ],
)
def test_bad_budgets_are_refused(make: Make, epsilon: object, delta: object) -> None:
    with pytest.raises(InvalidValue):
        make(epsilon, delta)  # type: ignore[arg-type]


@every_filter
def test_filters_are_frozen_values(make: Make) -> None:
    budget = make(1.0, 1e-6)
    for name in ("epsilon", "count", "_epsilon_sum"):
        with pytest.raises(AttributeError):
            setattr(budget, name, 0)
    assert budget == make(1.0, 1e-6)
    assert hash(budget) == hash(make(1.0, 1e-6))
    assert budget != budget.charge(0.1)
    assert repr(budget.charge(0.1, 3)).startswith(f"{make.__name__}(epsilon=1.0, delta=1e-06; 3 charged")  # type: ignore[attr-defined]
