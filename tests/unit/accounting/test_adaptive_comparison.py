"""The optimum beside every filter: what each line says is what the filters and `compose` say themselves."""

from __future__ import annotations

import math
from functools import partial

import pytest

from farthing import compose
from farthing.accounting.comparison import adaptive_comparison_of, charges_of_pairs
from farthing.accounting.filters import BasicFilter, ClockFilter, Filter, FullyAdaptiveFilter, RenyiFilter
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, Event, GaussianNoise, LaplaceNoise, Sampled

MIXED: list[tuple[Event, int]] = [(ApproxDP(0.05), 30), (LaplaceNoise(15.0), 20), (GaussianNoise(25.0), 40)]


def most_one_by_one(budget: Filter, pairs: list[tuple[Event, int]]) -> int:
    """The slow twin: charge after charge, until one is refused."""
    taken = 0
    for event, count in pairs:
        for _ in range(count):
            if not budget.admits(event):
                return taken
            budget = budget.charge(event)
            taken += 1
    return taken


@pytest.mark.slow
def test_counts_are_those_of_filters_charged_one_by_one() -> None:
    result = adaptive_comparison_of(charges_of_pairs(MIXED), 1e-6, epsilon=1.5)
    lines = {line.name: line for line in result.lines}
    clock = lines["clock"].fits
    assert clock is not None and 30 < clock < 90  # it ends inside the list, and not in its first part
    for name, budget in {
        "clock": ClockFilter(1.5, 1e-6, leak=0, equal_charges=False),
        "fully adaptive": FullyAdaptiveFilter(1.5, 1e-6, leak=0),
        "Renyi": RenyiFilter(1.5, 1e-6, leak=0),
    }.items():
        assert lines[name].fits == most_one_by_one(budget, MIXED), name
    assert lines["plain sums"].fits == 30  # 0.05 x 30 is 1.5, and nothing else fits


@pytest.mark.slow
def test_fixed_charges_end_where_compose_does() -> None:
    result = adaptive_comparison_of(charges_of_pairs(MIXED), 1e-6, epsilon=1.5)
    events = [event for event, count in MIXED for _ in range(count)]
    fits = result.lines[0].fits
    assert fits is not None
    assert compose(events[:fits]).delta_at(1.5).upper <= 1e-6
    assert compose(events[: fits + 1]).delta_at(1.5).lower > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [MIXED, [(ApproxDP(0.1), 100)], [(ApproxDP(0.1, 1e-9), 50), (GaussianNoise(9.0), 4)]])
def test_the_least_epsilon_admits_everything_and_a_little_less_does_not(pairs: list[tuple[Event, int]]) -> None:
    result = adaptive_comparison_of(charges_of_pairs(pairs), 1e-6)
    optimum = compose([event for event, _ in pairs], counts=[count for _, count in pairs]).epsilon_at(1e-6)
    assert result.lines[0].epsilon == optimum.upper
    makers = {
        "clock": partial(ClockFilter, equal_charges=False),
        "fully adaptive": FullyAdaptiveFilter,
        "Renyi": RenyiFilter,
    }
    total = sum(count for _, count in pairs)
    for line in result.lines[1:4]:
        assert line.epsilon is not None and line.epsilon >= optimum.lower
        assert line.cost_percent == pytest.approx(100 * (line.epsilon / optimum.upper - 1))
        assert most_one_by_one(makers[line.name](line.epsilon, 1e-6, leak=result.leak), pairs) == total
        assert most_one_by_one(makers[line.name](line.epsilon * 0.999, 1e-6, leak=result.leak), pairs) < total


def test_plain_sums_are_exact() -> None:
    lines = adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.1), 3), (ApproxDP(0.2), 1)]), 1e-9).lines
    assert lines[-1].epsilon == 0.5 and BasicFilter(0.5).admits(0.5)


@pytest.mark.slow
def test_sentences_say_what_the_lines_say() -> None:
    few = adaptive_comparison_of(charges_of_pairs([(ApproxDP(1.0), 2)]), 1e-6)
    assert few.sentence == "Deciding as you go costs nothing here: epsilon 2 either way."
    fitting = adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.1), 5)]), 1e-6, epsilon=1.0)
    assert fitting.sentence == "Deciding as you go costs nothing here: all these charges fit either way."
    nothing = adaptive_comparison_of(charges_of_pairs([]), 1e-6)
    assert nothing.sentence == "Nothing is charged, so nothing is lost."
    leaky = adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.1, 1e-6), 3)]), 1e-6)
    assert leaky.sentence == "No epsilon is large enough at this delta if you decide as you go."
    assert all(math.isinf(line.epsilon or 0.0) for line in leaky.lines)
    many = adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.1), 100)]), 1e-6)
    assert many.cost_percent == many.lines[1].cost_percent and many.cost_percent is not None
    assert 0 < many.cost_percent < 5 and f"{many.cost_percent:.2g}% more" in many.sentence


def test_own_deltas_may_use_half_of_delta_in_filters_and_all_of_it_in_plain_sums() -> None:
    lines = adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.1, 1e-7), 8)]), 1e-6).lines
    assert [line.epsilon for line in lines[1:]] == [math.inf, math.inf, math.inf, pytest.approx(0.8)]
    assert "more than half of delta" in lines[1].note


@pytest.mark.slow
def test_sampled_noise_is_refused_by_the_filter_that_cannot_price_it() -> None:
    lines = adaptive_comparison_of(charges_of_pairs([(Sampled(GaussianNoise(1.0), 0.01), 20)]), 1e-6, epsilon=2.0).lines
    assert [line.name for line in lines if not line.applies] == ["fully adaptive", "plain sums"]


@pytest.mark.slow
def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InvalidValue, match="delta"):
        adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.1), 1)]), 0.0)
    with pytest.raises(InvalidValue, match="at most 200 kinds"):
        adaptive_comparison_of(charges_of_pairs([(ApproxDP(0.001 * n), 1) for n in range(1, 300)]), 1e-6)
    alternating = [(ApproxDP(0.01 * (1 + n % 2)), 1) for n in range(400)]
    assert adaptive_comparison_of(charges_of_pairs(alternating), 1e-6, epsilon=0.5).k == 400  # two kinds, many turns
