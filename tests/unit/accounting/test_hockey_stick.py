"""Closed-form curves of single events against integration, enumeration, duality and their own limits."""

from __future__ import annotations

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.hockey_stick import hockey_stick_divergence
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)
from theorems.grid_twin import divergence, integrated, outcomes

DISCRETE = [
    RandomizedResponse(0.7),
    ApproxDP(0.3, 0.01),
    ApproxDP(0.0, 1e-9),
    DiscreteLaplaceNoise(1.5),
    DiscreteLaplaceNoise(0.8, 5),
    DiscreteGaussianNoise(1.3),
    DiscreteGaussianNoise(0.6, 4),
]
CONTINUOUS = [LaplaceNoise(1.7), GaussianNoise(0.9)]
EPSILONS = [-3.0, -0.7, -0.1, 0.0, 0.05, 0.4, 0.7, 1.3, 3.0]


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("probability", [1.0, 0.3])
@pytest.mark.parametrize("event", DISCRETE, ids=repr)
def test_discrete_curves_hold_the_enumeration(event: Event, probability: float, direction: str) -> None:
    event = event if probability == 1.0 else Sampled(event, probability)
    pairs = outcomes(event, direction)
    for epsilon in EPSILONS:
        bounds = hockey_stick_divergence(event, epsilon, direction)  # type: ignore[arg-type]
        truth = divergence(pairs, epsilon)
        assert bounds.lower <= truth + mp.mpf(10) ** -35 and truth <= bounds.upper
        assert bounds.width <= 1e-11 * bounds.upper


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("probability", [1.0, 0.2])
@pytest.mark.parametrize("event", CONTINUOUS, ids=repr)
def test_continuous_curves_agree_with_integration(event: Event, probability: float, direction: str) -> None:
    event = event if probability == 1.0 else Sampled(event, probability)
    for epsilon in [-1.5, 0.0, 0.15, 2.0]:
        bounds = hockey_stick_divergence(event, epsilon, direction)  # type: ignore[arg-type]
        truth = float(integrated(event, epsilon, direction))
        assert truth == pytest.approx(bounds.estimate, rel=1e-9, abs=1e-15)
        assert bounds.width <= 1e-12 * bounds.upper


@pytest.mark.parametrize("wrong", [0.9, 1.1])
@pytest.mark.parametrize("event", [*CONTINUOUS, DiscreteGaussianNoise(1.3), DiscreteLaplaceNoise(1.5)], ids=repr)
def test_a_tenth_more_or_less_noise_is_told_apart(event: Event, wrong: float) -> None:
    other = type(event)(event.noise_multiplier * wrong)  # type: ignore[attr-defined,call-arg]
    for sampled in (event, Sampled(event, 0.3)):
        unlike = other if sampled is event else Sampled(other, 0.3)
        this, that = hockey_stick_divergence(sampled, 0.1), hockey_stick_divergence(unlike, 0.1)
        assert this.upper < that.lower if wrong < 1 else that.upper < this.lower


@pytest.mark.slow
@given(st.sampled_from([*DISCRETE, *CONTINUOUS]), st.floats(0.01, 1.0), st.floats(-4.0, 4.0))
@settings(max_examples=60)
def test_directions_are_each_others_dual(event: Event, probability: float, epsilon: float) -> None:
    sampled = Sampled(event, probability)
    remove = hockey_stick_divergence(sampled, epsilon, "remove")
    add = hockey_stick_divergence(sampled, -epsilon, "add")
    mirrored = [-math.expm1(epsilon) + math.exp(epsilon) * value for value in (add.lower, add.upper)]
    slack = 1e-13 * (1 + math.exp(epsilon))
    assert remove.lower <= mirrored[1] + slack and mirrored[0] <= remove.upper + slack


@pytest.mark.slow
@given(st.sampled_from([*DISCRETE, *CONTINUOUS]), st.floats(0.0, 1.0), st.floats(-3.0, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=60)
def test_curves_fall_with_epsilon_and_rise_with_the_probability(
    event: Event, probability: float, epsilon: float, more: float
) -> None:
    here = hockey_stick_divergence(Sampled(event, probability), epsilon)
    assert hockey_stick_divergence(Sampled(event, probability), epsilon + more).lower <= here.upper
    assert here.lower <= hockey_stick_divergence(Sampled(event, min(1.0, probability + more)), epsilon).upper


@pytest.mark.parametrize("event", [*DISCRETE, *CONTINUOUS], ids=repr)
def test_probability_one_is_the_event_and_zero_is_nothing(event: Event) -> None:
    for direction in ("remove", "add"):
        for epsilon in (-0.5, 0.0, 0.25):
            whole = hockey_stick_divergence(Sampled(event, 1.0), epsilon, direction)  # type: ignore[arg-type]
            plain = hockey_stick_divergence(event, epsilon)
            assert whole.lower <= plain.upper and plain.lower <= whole.upper
            none = hockey_stick_divergence(Sampled(event, 0.0), epsilon, direction)  # type: ignore[arg-type]
            assert none.upper == pytest.approx(max(0.0, -math.expm1(epsilon)))


def test_tiny_values_keep_their_digits() -> None:
    for epsilon, direction in ((600.0, "remove"), (35.0, "remove")):
        bounds = hockey_stick_divergence(GaussianNoise(1.0), epsilon, direction)  # type: ignore[arg-type]
        with mp.workdps(50):
            x = mp.mpf(epsilon)
            truth = mp.erfc((x - 0.5) / mp.sqrt(2)) / 2 - mp.exp(x) * mp.erfc((x + 0.5) / mp.sqrt(2)) / 2
        if epsilon == 600.0:
            assert bounds.lower == 0.0 < bounds.upper <= 1e-322  # what underflows is not zero
        else:
            assert bounds.lower <= truth <= bounds.upper and bounds.width <= 1e-12 * bounds.upper
    assert hockey_stick_divergence(Sampled(GaussianNoise(1.0), 1e-12), 20.0).upper < 1e-100


def test_kinks_are_met_exactly() -> None:
    assert hockey_stick_divergence(RandomizedResponse(0.5), 0.5).upper == 0.0
    assert hockey_stick_divergence(LaplaceNoise(2.0), 0.5).upper == 0.0
    assert hockey_stick_divergence(LaplaceNoise(3.0), 1 / 3).upper < 1e-16
    limit = -math.log1p(-0.25)  # the largest loss of any event sampled with probability 1/4, added
    assert hockey_stick_divergence(Sampled(GaussianNoise(0.01), 0.25), limit * (1 + 1e-15), "add").upper < 1e-15
    assert hockey_stick_divergence(Sampled(ApproxDP(1.0, 0.5), 0.25), math.log(0.75), "remove").upper <= 0.2500001


@pytest.mark.slow
@pytest.mark.parametrize("event", [DiscreteGaussianNoise(1.0, 10**6), DiscreteLaplaceNoise(1.0, 10**7)], ids=repr)
def test_millions_of_outcomes_are_enclosed_near_their_continuous_limit(event: Event) -> None:
    limit = GaussianNoise(1.0) if isinstance(event, DiscreteGaussianNoise) else LaplaceNoise(1.0)
    for epsilon in (0.0, 0.5):
        bounds, continuous = hockey_stick_divergence(event, epsilon), hockey_stick_divergence(limit, epsilon)
        assert bounds.width < 1e-6
        assert abs(bounds.estimate - continuous.estimate) < 2e-6


def test_bad_input_is_refused_with_its_rule() -> None:
    with pytest.raises(InvalidValue, match="epsilon=nan: must be a finite number"):
        hockey_stick_divergence(GaussianNoise(1.0), math.nan)
    with pytest.raises(InvalidValue, match="direction='both': must be 'remove' or 'add'"):
        hockey_stick_divergence(GaussianNoise(1.0), 0.0, "both")  # type: ignore[arg-type]
