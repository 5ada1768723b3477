"""Trees and the wavelet against dense least squares, and the figures that others publish for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.matrix.strategies import MatrixStrategy, Norm, Strategy, TreeStrategy, WaveletStrategy
from farthing.matrix.strategies.strategy_registry import cells_alone
from farthing.matrix.strategies.tree_strategies import best_hierarchical, hierarchical, weighted_tree
from farthing.matrix.strategies.workload_energies import energy, query_energies
from farthing.matrix.workloads import Workload, all_ranges, identity, prefix, ranges, total, union

SIZES = (5, 8, 13)


def workloads_of(n: int) -> list[Workload]:
    few = ranges(n, [(0, 2), (1, 4), (2, 5), (0, n), (3, 4)])
    return [
        prefix(n),
        all_ranges(n),
        few,
        identity(n),
        total(n),
        union(prefix(n), total(n), weights=(1.0, 2.0)),
    ]


def strategies_of(n: int) -> list[Strategy]:
    return [
        cells_alone((n,)),
        TreeStrategy("tree", n, (6, 3, 1)),
        hierarchical(n, 2),
        hierarchical(n, 3),
        WaveletStrategy(n),
    ]


def dense(strategy: Strategy) -> list[NDArray[np.int64]]:
    """The matrices of all levels over the padded cells, column by column."""
    padded = sum(level.size for level in strategy.levels[-1:])
    if isinstance(strategy, WaveletStrategy):
        whole: Strategy = WaveletStrategy(strategy.sizes[0])
    elif isinstance(strategy, TreeStrategy):
        whole = TreeStrategy("whole", padded, strategy.sizes)
    else:
        raise AssertionError
    columns = [whole.exact(unit) for unit in np.eye(whole.cells, dtype=np.int64)]
    return [np.stack([column[level] for column in columns], axis=1) for level in range(len(strategy.levels))]


@pytest.mark.parametrize("n", SIZES)
def test_energies_are_those_of_the_dense_projection(n: int) -> None:
    for workload in workloads_of(n):
        for size in (1, 2, 3, 4, 6, 8, 16):
            owner = np.arange(n) // size
            averaging = (owner[:, None] == owner) / size
            assert energy(workload, size) == pytest.approx(np.trace(workload.gram() @ averaging))
            matrix = workload.matrix()
            assert np.allclose(query_energies(workload, size), np.diag(matrix @ averaging @ matrix.T))


@pytest.mark.parametrize("n", SIZES)
def test_estimates_and_variances_equal_dense_least_squares(n: int) -> None:
    random = np.random.default_rng(n)
    for strategy in strategies_of(n):
        levels = dense(strategy)
        variances = random.uniform(0.5, 2.0, len(levels))
        rows = np.vstack([level / np.sqrt(v) for level, v in zip(levels, variances, strict=True)])
        covariance = np.linalg.inv(rows.T @ rows)
        measured = [random.normal(size=len(level)) for level in levels]
        scaled = np.concatenate([m / np.sqrt(v) for m, v in zip(measured, variances, strict=True)])
        estimator = strategy.fit(variances)
        estimate = (covariance @ rows.T @ scaled)[:n]
        own = covariance[:n, :n]
        assert np.allclose(estimator.estimate(measured), estimate, atol=1e-9)
        assert np.allclose(estimator.covariance(), own, atol=1e-9)
        query = random.normal(size=n)
        assert estimator.variance(query) == pytest.approx(query @ own @ query)
        coefficients = estimator.coefficients(query)
        assert coefficients is not None
        counted = sum(float(c @ m) for c, m in zip(coefficients, measured, strict=True))
        assert counted == pytest.approx(query @ estimate)
        for workload in workloads_of(n):
            matrix = workload.matrix()
            expected = np.diag(matrix @ own @ matrix.T)
            assert np.allclose(estimator.query_variances(workload), expected)
            assert estimator.total_variance(workload) == pytest.approx(np.trace(own @ workload.gram()))


@pytest.mark.parametrize("n", SIZES)
def test_one_row_moves_one_number_of_each_level_by_one(n: int) -> None:
    random = np.random.default_rng(1)
    cells = random.integers(0, 50, n)
    for strategy in strategies_of(n):
        before = strategy.exact(cells)
        for cell in range(n):
            changed = cells.copy()
            changed[cell] += 1
            for level, old, new in zip(strategy.levels, before, strategy.exact(changed), strict=True):
                moved = np.abs(new - old)
                assert (moved.sum(), (moved**2).sum()) == (level.l1, level.l2_squared) == (1, 1)
                assert len(new) == level.size


def rmse(strategy: Strategy, workload: Workload, *, equal: bool = False) -> float:
    """A query's root mean squared error at epsilon = 0.1 (continuous Laplace noise)."""
    if not equal:
        return 10 * (strategy.unit_error(workload, "l1") / workload.queries) ** 0.5
    count = len(strategy.levels)
    variance = strategy.fit(np.full(count, 2.0 * count**2)).total_variance(workload)
    return 10 * (variance / workload.queries) ** 0.5


@pytest.mark.parametrize(
    ("n", "figures"),
    [
        (1024, {"identity": (320, 262), "binary": (173, 218), "HB": (139, 167), "Privelet": (172, 203)}),
        (4096, {"identity": (640, 523), "binary": (218, 279), "Privelet": (217, 262)}),
    ],
)
def test_equal_shares_give_the_published_figures(n: int, figures: dict[str, tuple[int, int]]) -> None:
    made: dict[str, Strategy] = {
        "identity": cells_alone((n,)),
        "binary": hierarchical(n, 2),
        "HB": hierarchical(n, 32),
        "Privelet": WaveletStrategy(n),
    }
    for name, published in figures.items():
        for workload, figure in zip((prefix(n), all_ranges(n)), published, strict=True):
            assert round(rmse(made[name], workload, equal=True)) == figure, name


@pytest.mark.slow
@pytest.mark.parametrize(("n", "most"), [(1024, (109, 124)), (4096, (139, 162)), (1000, (109, 124))])
def test_the_weighted_tree_is_better_than_all_of_them(n: int, most: tuple[int, int]) -> None:
    for workload, limit in zip((prefix(n), all_ranges(n)), most, strict=True):
        tree = weighted_tree(workload, "l1")
        assert rmse(tree, workload) <= limit
        assert rmse(tree, workload) <= rmse(best_hierarchical(workload, "l1"), workload) * 1.0001
        assert rmse(best_hierarchical(workload, "l1"), workload) <= rmse(hierarchical(n, 16), workload)


def test_best_shares_are_better_than_any_others_nearby() -> None:
    workload = all_ranges(200)
    random = np.random.default_rng(5)
    norms: tuple[Norm, ...] = ("l1", "l2")
    for strategy in (hierarchical(200, 6), WaveletStrategy(200)):
        for norm in norms:
            shares = strategy.shares(workload, norm)
            assert shares.sum() == pytest.approx(1.0)
            best = strategy.unit_error(workload, norm)
            for _ in range(20):
                other = shares * np.exp(random.normal(scale=0.1, size=len(shares)))
                other /= other.sum()
                with np.errstate(divide="ignore"):
                    variances = 2 / other**2 if norm == "l1" else 1 / other
                assert strategy.fit(variances).total_variance(workload) >= best * (1 - 1e-6)


def test_halving_blocks_and_the_wavelet_are_equally_good_with_gaussian_noise() -> None:
    for workload in (prefix(1024), all_ranges(1024)):
        tree, wavelet = weighted_tree(workload, "l2"), WaveletStrategy(1024)
        assert tree.unit_error(workload, "l2") == pytest.approx(wavelet.unit_error(workload, "l2"), rel=1e-4)


def test_a_query_about_cells_that_were_not_measured_has_no_finite_error() -> None:
    tree = hierarchical(16, 4)
    estimator = tree.fit([1.0, 1.0, np.inf])
    assert estimator.variance(np.repeat([1.0, 0.0], [4, 12])) < np.inf
    assert estimator.variance(np.repeat([1.0, 0.0], [3, 13])) == np.inf
    assert estimator.total_variance(prefix(16)) == np.inf
    assert np.isfinite(estimator.query_variances(prefix(16))).sum() == 4
    blocks = [np.array([20.0]), np.array([2.0, 4.0, 6.0, 8.0]), np.zeros(0)]
    assert np.allclose(estimator.estimate(blocks), np.repeat([0.5, 1.0, 1.5, 2.0], 4))


def test_one_cell_is_a_domain_too() -> None:
    for strategy in (
        cells_alone((1,)),
        hierarchical(1, 2),
        WaveletStrategy(1),
        weighted_tree(prefix(1), "l1"),
    ):
        assert strategy.unit_error(prefix(1), "l1") == pytest.approx(2.0)


def growth(strategy_of: Callable[[int], Strategy], ks: tuple[int, ...], logs: int) -> float:
    totals = []
    for k in ks:
        strategy = strategy_of(k)
        count = len(strategy.levels)
        totals.append(strategy.fit(np.full(count, 2.0 * count**2)).total_variance(all_ranges(k)))
    levels = np.log(totals) - logs * np.log(np.log2(ks))
    return float(np.polyfit(np.log(ks), levels, 1)[0])


def test_errors_grow_as_the_course_says() -> None:
    """Identity: k^3. A hierarchy of even shares: k^2 log^3 k, so its slope tends to 2 once the logs are taken out."""
    ks = (2**8, 2**10, 2**12, 2**14, 2**16, 2**18, 2**20)
    assert growth(lambda k: cells_alone((k,)), ks, 0) == pytest.approx(3.0, abs=0.01)
    assert growth(lambda k: hierarchical(k, 2), ks, 3) == pytest.approx(2.0, abs=0.05)
    assert growth(lambda k: hierarchical(k, 2), ks, 0) == pytest.approx(2.3, abs=0.1)


def test_a_matrix_is_the_same_tree() -> None:
    tree = TreeStrategy("tree", 6, (3, 1))
    rows = np.concatenate(dense(tree))
    matrix = MatrixStrategy("matrix", rows)
    workload = all_ranges(6)
    assert matrix.levels[0].l1 == 2
    assert matrix.fit([3.0]).total_variance(workload) == pytest.approx(tree.fit([3.0, 3.0]).total_variance(workload))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_levels_that_few_ranges_leave_unmeasured_are_divided_without_a_warning(norm: Norm) -> None:
    workload = ranges(34, [(16, 20), (8, 30)])
    assert float(best_hierarchical(workload, norm).shares(workload, norm).sum()) == pytest.approx(1.0)
