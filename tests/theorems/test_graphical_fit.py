"""fit_graphical: least squares over all distributions, greatest entropy among them; twin: the dense table."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls

from farthing.inference import nearest_nonnegative
from farthing.inference.graphical import GraphicalModel, Measured, fit_graphical

Floats = NDArray[np.float64]
SIZES = (2, 3, 2, 4)
TOTAL = 1000.0
DESIGNS: dict[str, list[tuple[tuple[int, ...], tuple[list[int] | None, ...] | None]]] = {
    "a chain": [((0, 1), None), ((1, 2), None), ((2, 3), None)],
    "a circle": [((0, 1), None), ((1, 2), None), ((3, 2), None), ((0, 3), None)],
    "merged values": [((0, 3), (None, [0, 1, 1, 0])), ((3, 1), ([0, 0, 1, 1], [1, 0, 0])), ((3,), None)],
    "a column left out": [((0,), None), ((1, 2), None), ((1,), None)],
    "one triple": [((0, 1, 2), None), ((2, 3), None), ((0,), None)],
}


def matrix(subset: tuple[int, ...], groups: tuple[list[int] | None, ...] | None) -> Floats:
    """The sums that a table measures, as rows over all cells of the domain, cell by cell."""
    merged = groups or (None,) * len(subset)
    axes = [np.arange(SIZES[c]) if g is None else np.array(g) for c, g in zip(subset, merged, strict=True)]
    shape = [int(axis.max()) + 1 for axis in axes]
    found = np.zeros((math.prod(shape), math.prod(SIZES)))
    for place, cell in enumerate(np.ndindex(*SIZES)):
        at = tuple(int(axis[cell[column]]) for axis, column in zip(axes, subset, strict=True))
        found[np.ravel_multi_index(at, shape), place] = 1.0
    return found


def drawn(design: str, seed: int, noise: float) -> tuple[list[Measured], list[Floats]]:
    draw = np.random.default_rng(seed)
    truth = draw.dirichlet(np.full(math.prod(SIZES), 2.0)) * TOTAL
    measured, matrices = [], []
    for place, (subset, groups) in enumerate(DESIGNS[design]):
        rows = matrix(subset, groups)
        deviation = noise * (1.0 + place)
        lengths = [
            SIZES[c] if groups is None or groups[i] is None else max(groups[i] or [0]) + 1 for i, c in enumerate(subset)
        ]
        values = (rows @ truth + draw.normal(0, deviation, len(rows))).reshape(lengths)
        measured.append(Measured(subset, values, deviation, groups))
        matrices.append(rows)
    return measured, matrices


def dense_least_loss(measured: list[Measured], matrices: list[Floats]) -> tuple[Floats, float]:
    """Non-negative least squares over the whole table, its total held by a heavy row."""
    heavy = 1e4
    rows = np.vstack(
        [m / one.standard_deviation for one, m in zip(measured, matrices, strict=True)] + [np.full((1, 48), heavy)]
    )
    right = [one.values.reshape(-1) / one.standard_deviation for one in measured]
    found, _ = nnls(rows, np.concatenate([*right, [heavy * TOTAL]]), maxiter=10_000)
    loss = sum(
        float(np.sum((m @ found - one.values.reshape(-1)) ** 2)) / one.standard_deviation**2 / 2
        for one, m in zip(measured, matrices, strict=True)
    )
    return found, loss


def dense_even_table(sums: list[Floats], matrices: list[Floats]) -> Floats:
    """The table of greatest entropy with these sums: fitted to one of them after another, from the even table."""
    table = np.full(48, TOTAL / 48)
    for _ in range(1_000):
        for rows, wanted in zip(matrices, sums, strict=True):
            table = table * (rows.T @ (wanted / np.maximum(rows @ table, 1e-300)))
    return table


def whole(model: GraphicalModel) -> Floats:
    return model.marginal(range(len(SIZES))).reshape(-1)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_agrees_with_the_dense_table_of_greatest_entropy(design: str) -> None:
    measured, matrices = drawn(design, seed=3, noise=2.0)
    model = fit_graphical(SIZES, measured, TOTAL, tolerance=1e-14, rounds=20_000)
    best, loss = dense_least_loss(measured, matrices)
    even = dense_even_table([rows @ best for rows in matrices], matrices)
    assert model.loss == pytest.approx(loss, rel=1e-6, abs=1e-6)
    assert whole(model) / TOTAL == pytest.approx(even / TOTAL, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_loss_and_gap_enclose_the_least_loss_however_early_the_end(design: str) -> None:
    """Much noise, so that many cells are zero in the best table."""
    measured, matrices = drawn(design, seed=5, noise=40.0)
    _, least = dense_least_loss(measured, matrices)
    losses = []
    for rounds in (1, 10, 40, 1_000):
        model = fit_graphical(SIZES, measured, TOTAL, rounds=rounds, tolerance=1e-9)
        assert model.loss - model.gap - 1e-6 <= least <= model.loss + 1e-6
        losses.append(model.loss)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(least, rel=1e-4)


def test_many_small_cells_are_fitted_to_the_end() -> None:
    """All cells are small beside the total, so that a first step pulled back too hard would gain next to nothing."""
    noisy = 1.0 + np.random.default_rng(7).normal(0, 5, 50_000)
    tables = [Measured((0,), noisy, 5.0), Measured((1,), [25_000.0, 25_000.0], 5.0)]
    model = fit_graphical((50_000, 2), tables, 50_000)
    best = nearest_nonnegative(noisy, 50_000.0)
    assert model.loss == pytest.approx(float(np.sum((best - noisy) ** 2)) / 50, rel=0.005)
