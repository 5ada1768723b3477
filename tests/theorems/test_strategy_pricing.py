"""What levels of noise cost together, and that the noise is what the error was predicted with."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from numpy.typing import NDArray

from farthing.accounting import compose
from farthing.errors import InvalidValue
from farthing.matrix.strategies import MatrixStrategy, Strategy, WaveletStrategy
from farthing.matrix.strategies.strategy_noise import LevelNoise, Priced, priced
from farthing.matrix.strategies.strategy_registry import cells_alone, find
from farthing.matrix.strategies.tree_strategies import hierarchical, weighted_tree
from farthing.matrix.workloads import Workload, all_ranges, identity, prefix, product, ranges
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from sources import TestSource

NAMES = ("identity", "hierarchical", "hierarchical-2", "wavelet", "tree")


def random_ranges(n: int, count: int = 200) -> Workload:
    ends = np.sort(np.random.default_rng(n).integers(0, n, (count, 2)), axis=1)
    return ranges(n, ends + np.array([0, 1]))


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(
    epsilon=some.floats(1e-4, 20.0),
    n=some.integers(1, 70),
    name=some.sampled_from(NAMES),
)
def test_the_epsilons_of_the_levels_never_add_up_to_more(epsilon: float, n: int, name: str) -> None:
    workload = prefix(n)
    found = priced(find(name, workload, "l1"), workload, epsilon)
    levels = [noise.mechanism for noise in found.noises if noise is not None]
    assert all(isinstance(mechanism, DiscreteLaplace) for mechanism in levels)
    total = sum(Fraction(mechanism.epsilon) for mechanism in levels)
    assert Fraction(epsilon) * (1 - Fraction(1, 2**40)) <= total <= Fraction(epsilon)
    assert found.cost.upper <= epsilon
    assert compose([found.event]).epsilon_at(0.0).upper <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1.0, 1e-6),
        pytest.param(0.1, 1e-9, marks=pytest.mark.slow),
        pytest.param(8.0, 1e-9, marks=pytest.mark.slow),
        pytest.param(1.0, 1e-2, marks=pytest.mark.slow),
    ],
)
def test_with_a_delta_the_event_of_all_levels_is_within_budget(epsilon: float, delta: float) -> None:
    workload = prefix(40)
    for strategy in (hierarchical(40, 4), WaveletStrategy(40)):
        for kind in ("laplace", "gaussian"):
            found = priced(strategy, workload, epsilon, delta, kind)
            assert found.kind == kind
            again = compose([found.event]).epsilon_at(delta)
            assert again.proven and again.upper <= epsilon
            assert again.lower > 0.999 * epsilon, "budget left unused"


@pytest.mark.slow
def test_the_smaller_error_decides_between_the_kinds_of_noise() -> None:
    workload = prefix(64)
    for epsilon, kind in ((1.0, "laplace"), (0.1, "gaussian")):
        both = [priced(WaveletStrategy(64), workload, epsilon, 1e-6, one) for one in ("laplace", "gaussian")]
        chosen = priced(WaveletStrategy(64), workload, epsilon, 1e-6)
        assert chosen.kind == kind
        assert chosen.total_variance(workload) == min(one.total_variance(workload) for one in both)


def test_composed_levels_need_less_noise_than_their_sum() -> None:
    workload = prefix(1024)
    wavelet = WaveletStrategy(1024)
    summed = priced(wavelet, workload, 0.1)
    composed = priced(wavelet, workload, 0.1, 1e-3, "laplace")
    assert composed.total_variance(workload) < 0.9 * summed.total_variance(workload)


@pytest.mark.parametrize(
    "strategy",
    [
        cells_alone((7,)),
        hierarchical(7, 2),
        WaveletStrategy(7),
        MatrixStrategy.on_grid("matrix", np.random.default_rng(3).normal(size=(9, 7)), bits=8),
        find("tree", product(prefix(5), identity(3)), "l1"),
    ],
    ids=lambda strategy: strategy.name,
)
def test_no_neighbour_moves_a_level_further_than_its_noise_is_made_for(strategy: Strategy) -> None:
    cells = np.random.default_rng(0).integers(0, 30, strategy.cells)
    before = strategy.exact(cells)
    far_l1 = [0] * len(strategy.levels)
    far_l2 = [0] * len(strategy.levels)
    for cell in range(strategy.cells):
        changed = cells.copy()
        changed[cell] += 1
        for place, (old, new) in enumerate(zip(before, strategy.exact(changed), strict=True)):
            far_l1[place] = max(far_l1[place], int(np.abs(new - old).sum()))
            far_l2[place] = max(far_l2[place], int(((new - old) ** 2).sum()))
    assert far_l1 == [level.l1 for level in strategy.levels]
    assert far_l2 == [level.l2_squared for level in strategy.levels]
    workload = prefix(7) if strategy.shape == (7,) else product(prefix(5), identity(3))
    for kind in ("laplace", "gaussian"):
        for noise in priced(strategy, workload, 1.0, 1e-6, kind).noises:
            if noise is None:
                continue
            if isinstance(noise.mechanism, DiscreteGaussian):
                assert noise.mechanism.l2_sensitivity**2 >= noise.level.l2_squared * noise.finer**2
            else:
                assert noise.mechanism.l1_sensitivity == noise.level.l1 * noise.finer
            assert noise.mechanism.cells == noise.level.size


def operator(one: Priced) -> list[NDArray[np.float64]]:
    """The estimate as matrices, one for each level: what every measured number adds to the cells."""
    sizes = [level.size for level in one.strategy.levels]
    found = []
    for place, noise in enumerate(one.noises):
        columns = []
        for unit in np.eye(sizes[place]) if noise is not None else ():
            measured = [unit if at == place else np.zeros(size) for at, size in enumerate(sizes)]
            columns.append(one.estimator.estimate(measured))
        found.append(np.array(columns).T)
    return found


def drawn(noise: LevelNoise, count: int, scale: float = 1.0) -> NDArray[np.float64]:
    """Noise of one level as its mechanism draws it, `scale` times as wide as it should be."""
    mechanism = replace(noise.mechanism, cells=count)
    if scale != 1 and isinstance(mechanism, DiscreteLaplace):
        mechanism = replace(mechanism, epsilon=mechanism.epsilon / scale)
    elif scale != 1 and isinstance(mechanism, DiscreteGaussian):
        mechanism = replace(mechanism, noise_multiplier=mechanism.noise_multiplier * scale)
    zeros = np.zeros(count, dtype=np.int64)
    return np.asarray(mechanism._answer(zeros, TestSource(noise.level.size))) / noise.finer


def measured_ratio(one: Priced, workload: Workload, draws: int, scale: float = 1.0) -> tuple[float, float]:
    """The measured total squared error over the predicted one, and its standard error.

    The noises of a level are independent, symmetric and of one distribution, so the mean over all their signs and
    orders is taken: what one squared noise adds, wherever it stands. The mean is that of the error, with far less
    scatter.
    """
    total, variance = 0.0, 0.0
    for noise, matrix in zip(one.noises, operator(one), strict=True):
        if noise is not None:
            counted = float(np.sum(workload.gram_times(matrix) * matrix))
            squares = drawn(noise, draws, scale) ** 2
            total += counted * float(np.mean(squares))
            variance += counted**2 * float(np.var(squares)) / draws
    predicted = one.total_variance(workload)
    return total / predicted, variance**0.5 / predicted


FAST = [("tree", 0.1, 0.0), ("wavelet", 1.0, 0.0), ("identity", 0.01, 0.0), ("tree", 1.0, 1e-6)]


@pytest.mark.parametrize(("name", "epsilon", "delta"), FAST)
def test_measured_error_is_the_predicted_one(name: str, epsilon: float, delta: float) -> None:
    """Within 3%, which is five standard errors or more (alpha below 1e-6); noise 10% off on either side is seen."""
    workload = all_ranges(40)
    kind, norm = ("gaussian", "l2") if delta else ("laplace", "l1")
    one = priced(find(name, workload, norm), workload, epsilon, delta, kind)
    ratio, error = measured_ratio(one, workload, 160_000 // len(one.noises))
    assert error < 0.03 / 5
    assert abs(ratio - 1) < 0.03
    for scale in (0.9, 1.1):
        assert abs(measured_ratio(one, workload, 10_000, scale)[0] - 1) > 0.1


@pytest.mark.slow
def test_noises_do_not_conspire() -> None:
    """The error itself, signs and all, within five standard errors: noise used twice would show."""
    workload = prefix(64)
    one = priced(find("hierarchical-4", workload, "l1"), workload, 0.1)
    source = TestSource(2)
    cells = np.arange(64)
    errors = np.array([one.estimator.estimate(one.measure(cells, source)) - cells for _ in range(1000)]).T
    ratios = np.sum(workload.gram_times(errors) * errors, axis=0) / one.total_variance(workload)
    error = float(np.std(ratios)) / 1000**0.5
    assert abs(np.mean(ratios) - 1) < 5 * error < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_measured_error_is_within_three_percent_of_the_predicted_one(name: str) -> None:
    for n, epsilons in ((64, (0.01, 0.1, 1.0)), (1024, (0.1,))):
        for workload in (prefix(n), all_ranges(n), random_ranges(n)):
            for epsilon in epsilons:
                one = priced(find(name, workload, "l1"), workload, epsilon)
                ratio, error = measured_ratio(one, workload, 160_000)
                assert error < 0.03 / 5
                assert abs(ratio - 1) < 0.03, (n, workload, epsilon)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 51.0, True, "1"])
def test_a_budget_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="epsilon"):
        priced(cells_alone((4,)), prefix(4), value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-1e-9, 1.0, math.nan, True, None])
def test_a_delta_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="delta"):
        priced(cells_alone((4,)), prefix(4), 1.0, value)  # type: ignore[arg-type]


def test_gaussian_noise_without_a_delta_is_refused() -> None:
    with pytest.raises(InvalidValue, match="needs a delta"):
        priced(cells_alone((4,)), prefix(4), 1.0, 0.0, "gaussian")


@pytest.mark.slow
def test_more_budget_never_means_more_error() -> None:
    workload = prefix(100)
    tree = weighted_tree(workload, "l1")
    epsilons = (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 50.0)
    errors = [priced(tree, workload, epsilon).total_variance(workload) for epsilon in epsilons]
    assert errors == sorted(errors, reverse=True)
    deltas = [priced(tree, workload, 0.5, delta).total_variance(workload) for delta in (0.0, 1e-9, 1e-4, 0.1)]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(deltas))


def test_counts_too_large_to_add_up_are_clamped_not_wrapped() -> None:
    one = priced(hierarchical(4, 2), prefix(4), 1.0)
    measured = one.measure(np.full(4, 2**62), TestSource(1))
    assert all(np.all(numbers > 0) for numbers in measured if len(numbers))
