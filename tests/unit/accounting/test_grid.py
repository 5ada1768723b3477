"""The grid engine's edges: empty, infeasible, free, hopeless, negative, refused; and its one-sided search."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.algorithms.dominating_pairs import loss_pair
from farthing.accounting.algorithms.grid_algorithm import GridComposition, compose_on_grid
from farthing.accounting.algorithms.grid_composition import fast_size, first_below, last_above
from farthing.accounting.algorithms.grid_saddle import common_lattice
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

FREE = [RandomizedResponse(0.0), ApproxDP(0.0), Sampled(GaussianNoise(1.0), 0.0), Sampled(ApproxDP(0.0), 0.5)]
INFINITE = Bounds(math.inf, math.inf)


def quick(*items: tuple[Event, int]) -> GridComposition:
    return compose_on_grid(items, tolerance=1e-3, most_cells=1 << 13)


def test_nothing_costs_nothing() -> None:
    for composition in (
        compose_on_grid([]),
        quick((GaussianNoise(1.0), 0)),
        quick(*((event, 3) for event in FREE)),
    ):
        assert composition.items == ()
        assert composition.epsilon_bounds(1e-9) == composition.epsilon_bounds(0.0) == Bounds(0.0, 0.0)
        assert composition.delta_bounds(0.0) == Bounds(0.0, 0.0)
        assert composition.delta_bounds(-1.0).upper == pytest.approx(-math.expm1(-1.0))


def test_sampling_with_probability_one_is_the_event_itself() -> None:
    assert compose_on_grid([(Sampled(LaplaceNoise(2.0), 1.0), 3)]) == compose_on_grid([(LaplaceNoise(2.0), 3)])
    assert compose_on_grid([(ApproxDP(0.5), 1), (RandomizedResponse(0.5), 2)]).items == ((RandomizedResponse(0.5), 3),)


def test_one_direction_is_enough_without_sampling() -> None:
    assert quick((LaplaceNoise(1.0), 2)).directions == ("remove",)
    assert quick((LaplaceNoise(1.0), 2), (Sampled(LaplaceNoise(1.0), 0.5), 1)).directions == ("remove", "add")


def test_a_delta_below_the_leak_is_infeasible() -> None:
    leaky = quick((ApproxDP(0.1, 1e-4), 3), (Sampled(GaussianNoise(1.0), 0.1), 5))
    assert leaky.epsilon_bounds(1e-4) == INFINITE
    assert leaky.epsilon_bounds(4e-4).upper < 3.0
    sampled = quick((Sampled(ApproxDP(0.1, 1e-4), 0.5), 3), (RandomizedResponse(0.2), 1))
    assert sampled.epsilon_bounds(1.4e-4) == INFINITE
    assert sampled.epsilon_bounds(1.6e-4).upper < 1.0


def test_delta_zero_asks_for_the_largest_loss() -> None:
    bounds = quick((LaplaceNoise(4.0), 3), (RandomizedResponse(0.5), 1)).epsilon_bounds(0.0)
    assert bounds.lower <= 1.25 <= bounds.upper and bounds.width < 1e-12
    largest = math.log1p(0.1 * math.expm1(2.0))
    assert quick((Sampled(RandomizedResponse(2.0), 0.1), 2)).epsilon_bounds(0.0).estimate == pytest.approx(2 * largest)
    for endless in (
        GaussianNoise(3.0),
        Sampled(DiscreteGaussianNoise(1.0), 0.1),
        ApproxDP(1.0, 1e-9),
        Sampled(GaussianNoise(1e9), 1e-60),
    ):
        assert quick((endless, 2)).epsilon_bounds(0.0) == INFINITE


@pytest.mark.parametrize("probability", [1.0, 1e-3, 1 - 1e-3])
@pytest.mark.parametrize("epsilon", [2.0, 1e3, 1e9, 1e300])
def test_the_largest_loss_is_right_however_large(epsilon: float, probability: float) -> None:
    """log(1 - q + q e^epsilon) and -log(1 - q + q e^-epsilon), of which the first is the larger."""
    with mp.workdps(400):
        q = mp.mpf(probability)
        truth = mp.mpf(epsilon) + mp.log(q + (1 - q) * mp.exp(-min(epsilon, 1e4)))
        bounds = quick((Sampled(RandomizedResponse(epsilon), probability), 3)).epsilon_bounds(0.0)
        assert bounds.lower <= 3 * truth <= bounds.upper
        assert bounds.width <= 1e-12 * bounds.upper


def test_a_generous_delta_costs_nothing() -> None:
    assert quick((Sampled(GaussianNoise(2.0), 0.01), 5)).epsilon_bounds(0.1) == Bounds(0.0, 0.0)


def test_epsilon_beyond_the_largest_loss_leaves_only_the_leak() -> None:
    bounds = quick((ApproxDP(0.1, 1e-3), 2), (RandomizedResponse(0.3), 1)).delta_bounds(5.0)
    assert bounds.lower <= 1 - (1 - 1e-3) ** 2 <= bounds.upper and bounds.width < 1e-14
    assert quick((RandomizedResponse(0.3), 2)).delta_bounds(math.inf) == Bounds(0.0, 0.0)


@pytest.mark.slow
@given(st.floats(-3.0, 3.0))
@settings(max_examples=10)
def test_negative_epsilons_are_the_mirror_image(epsilon: float) -> None:
    composition = quick((Sampled(RandomizedResponse(1.0), 0.4), 3))
    here, there = composition.delta_bounds(epsilon), composition.delta_bounds(-epsilon)
    mirrored = -math.expm1(epsilon) + math.exp(epsilon) * there.estimate
    assert here.lower - 1e-9 <= mirrored <= here.upper + 1e-9


def test_tiny_deltas_keep_their_digits() -> None:
    composition = compose_on_grid([(Sampled(RandomizedResponse(1.0), 0.3), 1500)])
    for delta in (1e-9, 2.0**-100, 1e-300):
        bounds = composition.epsilon_bounds(delta)
        assert bounds.width < 1e-8
        back = composition.delta_bounds(bounds.estimate)
        assert back.lower <= delta * (1 + 1e-6) and delta * (1 - 1e-6) <= back.upper
        assert back.width < 1e-6 * delta


EXTREME = [
    RandomizedResponse(1e-300),
    RandomizedResponse(1e-20),
    RandomizedResponse(3e3),
    RandomizedResponse(1e300),
    ApproxDP(1e-300, 1e-5),
    LaplaceNoise(1e-4),
    LaplaceNoise(1e9),
    GaussianNoise(1e-4),
    DiscreteGaussianNoise(1e-4),
    DiscreteGaussianNoise(0.02),
    DiscreteGaussianNoise(1e9),
    DiscreteGaussianNoise(1.0, 10**9),
    DiscreteLaplaceNoise(1e-4, 3),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "event", [*EXTREME[:4], *(pytest.param(event, marks=pytest.mark.slow) for event in EXTREME[4:])], ids=repr
)
def test_extreme_parameters_are_priced_without_a_crash(event: Event) -> None:
    for probability in (1.0, 1e-3):
        composition = quick((Sampled(event, probability), 3), (RandomizedResponse(0.1), 2))
        for delta in (0.3, 1e-300):
            bounds = composition.epsilon_bounds(delta)
            assert bounds.proven and 0 <= bounds.lower <= bounds.upper
        assert composition.delta_bounds(0.05).upper <= 1.0


def test_events_of_next_to_no_loss_are_set_aside_on_the_safe_side() -> None:
    alone, beside = (
        quick((LaplaceNoise(3.0), 4)),
        quick((LaplaceNoise(3.0), 4), (RandomizedResponse(1e-60), 1000)),
    )
    assert beside.items == alone.items and 1e-57 <= beside.aside < 1.1e-57
    assert alone.epsilon_bounds(1e-6).upper < beside.epsilon_bounds(1e-6).upper
    assert quick((RandomizedResponse(1e-60), 2)).epsilon_bounds(0.0).upper >= 2e-60


@pytest.mark.slow
def test_a_count_of_ten_millions_is_only_wider() -> None:
    bounds = compose_on_grid([(Sampled(GaussianNoise(1e3), 0.1), 10**7)], most_cells=1 << 17).epsilon_bounds(1e-6)
    # Nearly Gaussian with mu = 0.1 * 1e-3 * sqrt(1e7).
    limit = compose_on_grid([(GaussianNoise(1 / 0.1 / 1e-3 / 1e7**0.5), 1)]).epsilon_bounds(1e-6).estimate
    assert limit - 0.05 < bounds.lower < bounds.upper < limit + 0.1


@pytest.mark.slow
def test_gaussians_too_many_for_one_event_stay_apart() -> None:
    composition = compose_on_grid([(GaussianNoise(1.0), 10**9)], most_cells=1 << 13, tolerance=1.0)
    assert composition.items == ((GaussianNoise(1.0), 10**9),)
    bounds = composition.epsilon_bounds(1e-6)
    assert bounds.lower < 10**9 / 2 + 5 * 10**4.5 and bounds.upper > 10**9 / 2


@pytest.mark.parametrize("count", [-1, 1.5, True, "3"])
def test_bad_counts_are_refused(count: object) -> None:
    with pytest.raises(InvalidValue, match="must be a whole number >= 0"):
        compose_on_grid([(GaussianNoise(1.0), count)])  # type: ignore[list-item]


@pytest.mark.parametrize("value", [math.nan, -0.1, 1.0, "x", True])
def test_bad_targets_are_refused(value: object) -> None:
    composition = quick((RandomizedResponse(0.1), 2))
    with pytest.raises(InvalidValue):
        composition.epsilon_bounds(value)  # type: ignore[arg-type]
    if not isinstance(value, float) or math.isnan(value):
        with pytest.raises(InvalidValue):
            composition.delta_bounds(value)  # type: ignore[arg-type]


def test_memory_is_bounded_by_the_cells_allowed() -> None:
    rough = compose_on_grid([(Sampled(GaussianNoise(1.0), 0.01), 1000)], most_cells=1 << 13).epsilon_bounds(1e-6)
    finer = compose_on_grid([(Sampled(GaussianNoise(1.0), 0.01), 1000)], most_cells=1 << 16).epsilon_bounds(1e-6)
    assert rough.lower <= finer.lower + 1e-9 and finer.upper <= rough.upper + 1e-9
    assert finer.width < rough.width / 4


@pytest.mark.slow
@given(st.floats(0.1, 50.0), st.floats(-30.0, -0.1), st.floats(0.0, 40.0))
def test_the_search_returns_points_it_has_seen(steepness: float, target: float, guess: float) -> None:
    seen: dict[float, float] = {}

    def curve(x: float) -> float:
        seen[x] = -steepness * x * x / (1 + x)
        return seen[x]

    high = first_below(curve, target, guess, steepness, 1e-9)
    low = last_above(curve, target, guess, steepness, 1e-9)
    assert seen[high] <= target < seen[low]
    assert high - low < 1e-6 * (1 + high)


def test_the_search_says_when_there_is_no_crossing() -> None:
    assert last_above(lambda x: -5.0, -1.0, 3.0, 1.0, 1e-9) == -math.inf
    assert first_below(lambda x: -5.0, -1.0, 3.0, 1.0, 1e-9) == 0.0
    assert first_below(lambda x: 0.0, -1.0, 3.0, 1.0, 1e-9) == math.inf


def test_lattices_are_recognised_with_an_offset_for_each_event() -> None:
    events = [Sampled(RandomizedResponse(0.7), 0.2), DiscreteGaussianNoise(2.0, 3)]
    for event in events:
        assert common_lattice([loss_pair(event, "remove", 50.0)]) is not None
    assert common_lattice([loss_pair(event, "remove", 50.0) for event in events]) is None
    assert common_lattice([loss_pair(LaplaceNoise(1.0), "remove", 50.0)]) is None


@given(st.integers(1, 10**7))
def test_sizes_are_fast_and_large_enough(cells: int) -> None:
    size = fast_size(cells)
    assert cells <= size <= max(8, 4 * cells // 3 + 8)
    while size % 2 == 0:
        size //= 2
    assert size in (1, 3, 5)


def test_a_grid_that_no_longer_gains_is_not_made_finer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of the width is not the grid's fault here: seven grids, up to 1.5 million cells, gained nothing."""
    from farthing.accounting.algorithms import grid_algorithm

    cells: list[int] = []

    def counted(*words: Any) -> Any:
        curves = made(*words)
        cells.append(curves.cells)
        return curves

    made = grid_algorithm.composed_curves
    monkeypatch.setattr(grid_algorithm, "composed_curves", counted)
    events: list[Event] = [
        DiscreteLaplaceNoise(3.75, 1), DiscreteLaplaceNoise(6.07, 1), DiscreteLaplaceNoise(9.5, 1),
        GaussianNoise(11.5), DiscreteGaussianNoise(27.5, 1), BoundedRange(0.0623), LaplaceNoise(6.56),
    ]  # fmt: skip
    bounds = compose_on_grid([(event, 1) for event in events]).epsilon_bounds(1e-6)
    assert bounds.proven and bounds.width < 5e-6
    assert len(cells) <= 3 and max(cells) < 200_000
