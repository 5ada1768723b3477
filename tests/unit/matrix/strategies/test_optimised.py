"""What the optimiser reaches, and that nothing it does can hurt more than accuracy."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.matrix.strategies import Norm, Strategy
from farthing.matrix.strategies.optimisation import workload_optimum
from farthing.matrix.strategies.optimisation.gaussian_optimum import widened
from farthing.matrix.strategies.optimisation.laplace_optimum import Weighted
from farthing.matrix.strategies.optimisation.p_identity_error import Windows, inverse_of, times
from farthing.matrix.strategies.optimisation.p_identity_strategy import CellsAndSums
from farthing.matrix.strategies.optimisation.workload_optimum import optimised
from farthing.matrix.strategies.tree_strategies import TreeStrategy, weighted_tree
from farthing.matrix.workloads import Workload, all_ranges, identity, prefix, product, ranges, total, union


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path))
    monkeypatch.setattr(workload_optimum, "_MEMORY", {})
    yield


def rmse(strategy: Strategy, workload: Workload, norm: Norm = "l1") -> float:
    """A query's root mean squared error at epsilon = 0.1, or at mu = 1."""
    error = float(np.sqrt(strategy.unit_error(workload, norm) / workload.queries))
    return 10 * error if norm == "l1" else error


@pytest.mark.parametrize(
    ("workload", "most"),
    [(prefix(16), 36.4), (prefix(64), 53.3), (all_ranges(64), 55.6), (all_ranges(100), 62.9)],
)
def test_small_domains_reach_their_known_errors(workload: Workload, most: float) -> None:
    assert rmse(optimised(workload, "l1"), workload) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("make", "most"), [(prefix, 97), (all_ranges, 111)])
def test_1024_cells_reach_the_published_errors(make: type, most: float) -> None:
    assert rmse(optimised(make(1024), "l1"), make(1024)) <= most


@pytest.mark.slow
def test_4096_cells_reach_the_errors_asked_for_within_a_short_time() -> None:
    """Of `all_ranges` 1,024 cells are looked at above: it is the same search."""
    assert rmse(optimised(prefix(4096), "l1", seconds=2.0), prefix(4096)) <= 133


@pytest.mark.slow
def test_gaussian_strategies_over_tents_lose_little() -> None:
    workload = prefix(400)
    exact = optimised(workload, "l2").unit_error(workload, "l2")
    wide = widened(workload, 100, bits=16).unit_error(workload, "l2")
    assert exact <= wide <= 1.035 * exact


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_any_number_of_cells_will_do(n: int, norm: Norm) -> None:
    for workload in (prefix(n), total(n), union(identity(n), total(n))):
        strategy = optimised(workload, norm)
        assert strategy.unit_error(workload, norm) <= (2.0 if norm == "l1" else 1.0) * workload.trace * 1.0002
        exact = np.concatenate([level.ravel() for level in strategy.exact(np.ones(n, dtype=np.int64))])
        assert exact.dtype == np.int64


def test_cells_that_are_asked_for_together_are_measured_together() -> None:
    workload = ranges(120, [(0, 18), (18, 65), (65, 120)])
    found = optimised(workload, "l1")
    # Three disjoint sums cost what three cells cost; a 32nd of the weight stays with the cells for other questions.
    assert rmse(found, workload) <= 1.04 * np.sqrt(200)
    cut = np.zeros(120)
    cut[:10] = 1.0
    assert np.isfinite(found.fit(found.unit_variances(workload, "l1")).variance(cut))


@pytest.mark.slow
def test_rounding_to_whole_weights_costs_less_than_a_thousandth() -> None:
    from farthing.matrix.strategies.optimisation.initial_weights import gram_bands
    from farthing.matrix.strategies.optimisation.laplace_optimum import best_for_laplace

    workload = prefix(48)
    real = best_for_laplace(workload.gram_times, *gram_bands(workload))
    assert optimised(workload, "l1").unit_error(workload, "l1") <= 2 * real.error * 1.001


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1e9])
def test_weights_that_make_no_sense_give_the_tree(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows(40, np.array([0]), np.array([40]))
    monkeypatch.setattr(
        workload_optimum, "best_for_laplace", lambda *_, **__: Weighted(windows, np.full(40, weight), 1.0)
    )
    with np.errstate(all="ignore"):
        found = optimised(prefix(40), "l1")
    assert isinstance(found, TreeStrategy)
    assert found.unit_error(prefix(40), "l1") == weighted_tree(prefix(40), "l1").unit_error(prefix(40), "l1")


@pytest.mark.parametrize(("norm", "solver"), [("l1", "best_for_laplace"), ("l2", "best_for_gaussian")])
def test_an_optimiser_that_fails_gives_the_tree(norm: Norm, solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(workload_optimum, solver, failing)
    assert isinstance(optimised(prefix(40), norm), TreeStrategy)


def test_progress_rises_to_one() -> None:
    seen: list[float] = []
    optimised(prefix(40), "l1", progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1.0 and len(seen) > 5


def test_a_search_out_of_time_still_gives_a_good_strategy() -> None:
    workload = all_ranges(300)
    assert rmse(optimised(workload, "l1", seconds=0.0), workload) <= rmse(weighted_tree(workload, "l1"), workload)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(InvalidValue, match="at most 8,192 cells"):
        optimised(prefix(8193), "l1")
    with pytest.raises(InvalidValue, match="2,048 cells along each axis"):
        optimised(product(prefix(2049), identity(2)), "l1")


def test_what_cannot_be_a_strategy_is_refused() -> None:
    whole = Windows(3, np.array([0]), np.array([3]))
    with pytest.raises(InvalidValue, match="own"):
        CellsAndSums("x", np.array([1, 0, 1]), whole, np.ones(3, dtype=np.int64))
    with pytest.raises(InvalidValue, match="windows"):
        CellsAndSums(
            "x",
            np.ones(3, dtype=np.int64),
            Windows(3, np.array([2]), np.array([5])),
            np.ones(3, dtype=np.int64),
        )
    with pytest.raises(InvalidValue, match="weights"):
        CellsAndSums("x", np.ones(3, dtype=np.int64), whole, np.ones(2, dtype=np.int64))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_strategy_survives_pickling(norm: Norm) -> None:
    strategy = optimised(prefix(20), norm)
    again = pickle.loads(pickle.dumps(strategy))
    assert again.levels == strategy.levels
    assert again.unit_error(prefix(20), norm) == strategy.unit_error(prefix(20), norm)


def test_ranges_in_two_dimensions_are_measured_by_a_product() -> None:
    workload = product(all_ranges(24), all_ranges(24))
    strategy = optimised(workload, "l1")
    cells = 2.0 * workload.trace
    assert strategy.unit_error(workload, "l1") < 0.95 * cells
    numbers = np.arange(24 * 24).reshape(24, 24)
    (measured,) = strategy.exact(numbers)
    estimate = strategy.fit([1.0]).estimate([measured])
    assert np.allclose(estimate, numbers.ravel(), atol=1e-6)


@pytest.mark.parametrize("size", [1, 64, 65, 201])
def test_inverses_and_products_in_pieces_are_the_usual_ones(size: int) -> None:
    draw = np.random.default_rng(size)
    table = draw.standard_normal((size, size))
    definite = np.eye(size) + table @ table.T
    assert np.allclose(inverse_of(definite), np.linalg.inv(definite), rtol=1e-8, atol=1e-11)
    wide = draw.standard_normal((size, 300))
    assert np.allclose(times(table, wide), table @ wide, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_cells_above_zero_are_those_that_fit_the_measurements_best(norm: Norm) -> None:
    strategy = optimised(prefix(40), norm)
    (exact,) = strategy.exact(np.arange(40) // 30)
    noise = np.random.default_rng(3).normal(size=len(exact)) * 2.0**16
    table = strategy.matrix.astype(float)  # type: ignore[attr-defined]
    found = strategy.fit([1.0]).nonnegative([exact + noise])
    pull = table.T @ (table @ found - exact - noise)
    assert found.min() == 0.0 < found.max()
    assert np.all(pull >= -1e-6 * np.abs(pull).max())
    assert np.all(np.abs(pull[found > 0]) <= 1e-6 * np.abs(pull).max())
