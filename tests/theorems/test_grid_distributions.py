"""On the grid `upper_distribution` is above and `lower_distribution` below the exact curve, to second order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.algorithms.dominating_pairs import loss_pair
from farthing.accounting.algorithms.grid_cells import (
    Bulk,
    LowerDistribution,
    UpperDistribution,
    lower_distribution,
    panels,
    upper_distribution,
)
from farthing.accounting.algorithms.grid_pairs import Density, Direction
from farthing.accounting.algorithms.grid_saddle import bulk_of, nodes_of
from farthing.accounting.hockey_stick import hockey_stick_divergence
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

EVENTS = [
    RandomizedResponse(0.7),
    ApproxDP(0.3, 0.01),
    LaplaceNoise(0.9),
    GaussianNoise(1.2),
    DiscreteLaplaceNoise(1.1, 3),
    DiscreteGaussianNoise(1.3, 2),
]
# On and off the grid of any step below, far out on both sides, and where losses of sampled events end.
EPSILONS = sorted([-9.0, -3.0, *np.linspace(-1.3, 1.3, 53).tolist(), math.log(0.8), 3.0, 9.0])


def upper_curve(distribution: UpperDistribution, step: float, offset: float, epsilon: float) -> float:
    loss = offset + distribution.index * step + distribution.shift
    gain = np.exp(distribution.log_mass) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    return float(np.sum(gain)) + math.exp(distribution.log_infinite)


def lower_curve(distribution: LowerDistribution, epsilon: float) -> float:
    """The best set of names at all, not only of the form {name > j}: still a lower bound."""
    gain = np.exp(distribution.log_p) - math.exp(epsilon) * np.exp(distribution.log_q)
    return float(np.sum(np.maximum(gain, 0.0))) + math.exp(distribution.log_infinite)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("probability", [1.0, 0.2])
@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_laws_enclose_the_curve_at_every_epsilon(event: Event, probability: float, direction: Direction) -> None:
    event = event if probability == 1.0 else Sampled(event, probability)
    pair = loss_pair(event, direction, 60.0)
    for step, offset in ((0.07, 0.0), (0.013, -0.0041)):
        above, below = upper_distribution(pair, step, offset), lower_distribution(pair, step, offset)
        for epsilon in EPSILONS:
            truth = hockey_stick_divergence(event, epsilon, direction)
            assert truth.lower <= upper_curve(above, step, offset, epsilon) * (1 + 1e-13)
            assert lower_curve(below, epsilon) * (1 - 1e-13) <= truth.upper


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("event", [LaplaceNoise(0.9), GaussianNoise(1.2)], ids=repr)
def test_sparser_tails_keep_both_bounds(event: Event, direction: Direction) -> None:
    event = Sampled(event, 0.2)
    pair = loss_pair(event, direction, 60.0)
    bulk = bulk_of(nodes_of(pair, 1), 3.0)
    full, sparse = upper_distribution(pair, 1e-3, 0.0), upper_distribution(pair, 1e-3, 0.0, bulk)
    assert len(sparse.index) <= len(full.index)
    below = lower_distribution(pair, 1e-3, 0.0, bulk)
    for epsilon in EPSILONS:
        truth = hockey_stick_divergence(event, epsilon, direction)
        assert truth.lower <= upper_curve(sparse, 1e-3, 0.0, epsilon) * (1 + 1e-13)
        assert lower_curve(below, epsilon) * (1 - 1e-13) <= truth.upper


@pytest.mark.parametrize("event", [GaussianNoise(1.2), LaplaceNoise(0.9), Sampled(GaussianNoise(0.8), 0.3)], ids=repr)
def test_both_errors_are_of_second_order(event: Event) -> None:
    pair, epsilon = loss_pair(event, "remove", 60.0), 0.317
    truth = hockey_stick_divergence(event, epsilon).estimate
    gaps = []
    for step in (0.04, 0.02, 0.01):
        # Averaged over where the grid lies, because the error at one epsilon depends on it.
        offsets = [step * i / 7 for i in range(7)]
        over = np.mean([upper_curve(upper_distribution(pair, step, o), step, o, epsilon) - truth for o in offsets])
        under = np.mean([truth - lower_curve(lower_distribution(pair, step, o), epsilon) for o in offsets])
        gaps.append((over, under))
    for coarse, fine in itertools.pairwise(gaps):
        assert coarse[0] / fine[0] == pytest.approx(4, rel=0.15)
        assert coarse[1] / fine[1] == pytest.approx(4, rel=0.15)


def test_atoms_on_the_grid_are_exact() -> None:
    epsilon = 0.1
    pair = loss_pair(RandomizedResponse(epsilon), "remove", 50.0)
    distribution = upper_distribution(pair, 2 * epsilon, -epsilon)
    assert distribution.index.tolist() == [0, 1]
    assert np.exp(distribution.log_mass) == pytest.approx(
        [1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))], rel=1e-13
    )
    assert distribution.shift < 2e-15


@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_a_tenth_more_or_less_noise_leaves_the_bounds(wrong: float) -> None:
    pair = loss_pair(Sampled(GaussianNoise(1.0), 0.2), "remove", 60.0)
    other = hockey_stick_divergence(Sampled(GaussianNoise(wrong), 0.2), 0.3)
    if wrong < 1:
        assert upper_curve(upper_distribution(pair, 0.01, 0.0), 0.01, 0.0, 0.3) < other.lower
    else:
        assert lower_curve(lower_distribution(pair, 0.01, 0.0), 0.3) > other.upper


@pytest.mark.slow
@given(
    st.sampled_from(EVENTS),
    st.floats(0.001, 1.0),
    st.sampled_from(["remove", "add"]),
    st.floats(1e-3, 0.5),
    st.floats(-2.0, 2.0),
    st.floats(-1.0, 1.0),
)
@settings(max_examples=60)
def test_no_step_offset_or_epsilon_breaks_the_enclosure(
    event: Event, probability: float, direction: Direction, step: float, epsilon: float, offset: float
) -> None:
    sampled = Sampled(event, probability)
    pair = loss_pair(sampled, direction, 50.0)
    truth = hockey_stick_divergence(sampled, epsilon, direction)
    assert truth.lower <= upper_curve(upper_distribution(pair, step, offset), step, offset, epsilon) * (1 + 1e-13)
    assert lower_curve(lower_distribution(pair, step, offset), epsilon) * (1 - 1e-13) <= truth.upper


def test_panels_integrate_densities_to_their_last_digits() -> None:
    for density in (Density("gaussian", 1.0, -9.0, 10.0), Density("laplace", 2.0, -2.0, 2.0)):
        edges = np.linspace(density.low, density.high, 4)
        y, cell, log_weight = panels(density, edges)
        log_p, log_q = density.log_p_and_q(y)
        for log, mean, sign in ((log_p, 1.0, 1), (log_q, 0.0, -1)):
            for j in range(3):
                found = float(np.sum(np.exp((log + log_weight)[cell == j])))
                low, high = edges[j], edges[j + 1]
                if density.kind == "gaussian":
                    truth = (math.erfc((low - mean) / 2**0.5) - math.erfc((high - mean) / 2**0.5)) / 2
                    if truth < 1e-5:
                        truth = (math.erfc((mean - high) / 2**0.5) - math.erfc((mean - low) / 2**0.5)) / 2
                else:
                    truth = abs(math.exp((sign * high - 2) / 2) - math.exp((sign * low - 2) / 2)) / 2
                assert found == pytest.approx(truth, rel=3e-14)


def test_a_grid_with_levels_covers_the_density() -> None:
    pair = loss_pair(GaussianNoise(1.0), "remove", 60.0)
    bulk = Bulk([-1.0, -2.0, -3.0, -4.0], [2.0, 3.0, 4.0, 5.0], 0.5, -math.inf)
    distribution = upper_distribution(pair, 0.01, 0.0, bulk)
    assert np.exp(distribution.log_mass).sum() == pytest.approx(1.0, abs=1e-9)
    assert np.max(np.diff(distribution.index)) * 0.01 <= 0.5
    floored = upper_distribution(pair, 0.01, 0.0, bulk._replace(floor=-2.5))
    assert np.exp(floored.log_mass).sum() == pytest.approx(1.0, abs=1e-9)
    assert len(floored.index) < len(distribution.index) and -250 in floored.index and -300 not in floored.index
