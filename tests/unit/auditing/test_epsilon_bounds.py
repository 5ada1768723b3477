"""Clopper-Pearson bounds beside sums of the binomial, and what follows for epsilon."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from farthing.auditing.epsilon_bounds import detectable_epsilon, epsilon_from_rates, rate_bounds


@pytest.mark.parametrize("hits", [0, 1, 7, 500, 993, 1000])
@pytest.mark.parametrize("error", [0.025, 1e-4])
def test_rate_bounds_are_the_rates_at_which_the_count_is_just_too_unlikely(hits: int, error: float) -> None:
    """The slow twin: sums of the binomial mass, not quantiles of a beta."""
    low, high = rate_bounds(hits, 1000, error)
    if hits:
        assert stats.binom.sf(hits - 1, 1000, low) == pytest.approx(error, rel=1e-4)
    else:
        assert low == 0.0
    if hits < 1000:
        assert stats.binom.cdf(hits, 1000, high) == pytest.approx(error, rel=1e-4)
    else:
        assert high == 1.0


@pytest.mark.parametrize("rate", [1e-4, 0.03, 0.5, 0.97])
def test_rate_bounds_fail_at_most_as_often_as_they_say(rate: float) -> None:
    """Exact coverage: the chance of every count that would give a wrong bound, added up."""
    trials, error = 400, 0.05
    bounds = [rate_bounds(hits, trials, error) for hits in range(trials + 1)]
    chances = stats.binom.pmf(range(trials + 1), trials, rate)
    assert sum(c for c, (low, _) in zip(chances, bounds, strict=True) if low > rate) <= error
    assert sum(c for c, (_, high) in zip(chances, bounds, strict=True) if high < rate) <= error


def test_rate_bounds_grow_with_the_hits_and_close_in_with_the_trials() -> None:
    lows, highs = zip(*(rate_bounds(hits, 200, 0.01) for hits in range(201)), strict=True)
    assert list(lows) == sorted(lows) and list(highs) == sorted(highs)
    few, many = rate_bounds(30, 100, 0.01), rate_bounds(30_000, 100_000, 0.01)
    assert few[0] < many[0] < 0.3 < many[1] < few[1]


def test_epsilon_from_rates_is_the_log_ratio_after_delta() -> None:
    assert epsilon_from_rates(0.6, 0.2, 0.0) == pytest.approx(math.log(3))
    assert epsilon_from_rates(0.6, 0.2, 0.1) == pytest.approx(math.log(2.5))


@pytest.mark.parametrize(
    ("low", "high", "delta", "epsilon"),
    [(0.0, 0.5, 0.0, 0.0), (0.1, 0.5, 0.2, 0.0), (0.5, 0.0, 0.0, math.inf), (math.nan, 0.5, 0.0, 0.0)],
)
def test_epsilon_from_rates_at_the_ends(low: float, high: float, delta: float, epsilon: float) -> None:
    assert epsilon_from_rates(low, high, delta) == epsilon


def test_epsilon_from_rates_never_exceeds_what_a_mechanism_allows() -> None:
    """Sound: with the true rates of randomized response it is exactly its epsilon."""
    for epsilon in (0.1, 1.0, 5.0):
        truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert epsilon_from_rates(truth, 1 - truth, 0.0) == pytest.approx(epsilon)


def test_detectable_epsilon_comes_closer_with_samples_and_never_below_the_claim() -> None:
    found = [detectable_epsilon(0.5, trials, 0.001, 1.0, 0.0) for trials in (1_000, 10_000, 100_000, 1_000_000)]
    assert found == sorted(found, reverse=True)
    assert found[-1] > 1.0


@pytest.mark.slow
def test_detectable_epsilon_is_detected_19_times_in_20() -> None:
    """By summing over the counts of both sides: with independent counts, at least 0.95 and not much more."""
    trials, error, rate = 2_000, 0.005, 0.6
    epsilon = detectable_epsilon(rate, trials, error, 1.0, 0.0)
    other = rate * math.exp(-epsilon)
    power = 0.0
    lows = [rate_bounds(hits, trials, error)[0] for hits in range(trials + 1)]
    for misses in range(trials + 1):
        chance = stats.binom.pmf(misses, trials, other)
        if chance > 1e-9:
            high = rate_bounds(misses, trials, error)[1]
            least = next((h for h, low in enumerate(lows) if epsilon_from_rates(low, high, 0.0) > 1.0), trials + 1)
            power += chance * stats.binom.sf(least - 1, trials, rate)
    assert power >= 0.95


def test_what_is_too_rare_is_not_detectable() -> None:
    assert detectable_epsilon(1e-5, 1_000, 0.01, 1.0, 0.0) == math.inf
    assert detectable_epsilon(0.0, 1_000, 0.01, 1.0, 0.0) == math.inf
    assert detectable_epsilon(0.01, 100_000, 0.01, 1.0, 0.02) == math.inf
