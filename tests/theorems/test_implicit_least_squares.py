"""implicit_least_squares against a dense solver."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference import RegularTree, implicit_least_squares


@pytest.mark.parametrize("seed", range(12))
def test_the_implicit_solution_is_the_dense_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cells = int(draw.integers(1, 40))
    design = draw.integers(0, 2, (cells + 5, cells)).astype(float)
    if seed % 3:
        design = np.vstack([design, np.eye(cells)])
    if seed % 3 == 2:
        design[:, -1] = design[:, 0]  # two cells that nothing tells apart: the shortest solution
    variances = 10.0 ** draw.uniform(-1, 1, len(design))
    measured = draw.normal(0, 100, len(design))
    root = 1.0 / np.sqrt(variances)
    twin = np.linalg.lstsq(design * root[:, None], measured * root, rcond=None)[0]
    found = implicit_least_squares(lambda x: design @ x, lambda y: design.T @ y, measured, variances)
    assert found == pytest.approx(twin, abs=1e-9 * (1 + np.abs(twin).max()))


def test_many_cells_agree_with_the_passes_over_a_tree() -> None:
    tree = RegularTree(4_096, (4_096, 256, 16, 1), (1.0, 2.0, 3.0, 4.0))
    variances = np.repeat(tree.variances, [1, 16, 256, 4_096])
    stops = np.cumsum([1, 16, 256, 4_096])
    measured = np.random.default_rng(1).normal(0, 100, stops[-1])

    def times(x):  # type: ignore[no-untyped-def]
        return np.concatenate([x.reshape(-1, size).sum(axis=1) for size in tree.sizes])

    def transposed(y):  # type: ignore[no-untyped-def]
        parts = zip(tree.sizes, np.split(y, stops[:-1]), strict=True)
        return sum(np.repeat(part, size) for size, part in parts)

    twin = tree.least_squares(np.split(measured, stops[:-1]))
    assert implicit_least_squares(times, transposed, measured, variances) == pytest.approx(twin, abs=1e-8)
    assert implicit_least_squares(times, transposed, measured, variances, start=twin) == pytest.approx(twin, abs=1e-8)


def test_what_cannot_be_solved_is_refused() -> None:
    design = np.vander(np.linspace(0, 1, 30), 12)
    measured = np.ones(30)
    with pytest.raises(InvalidValue, match="not enough"):
        implicit_least_squares(lambda x: design @ x, lambda y: design.T @ y, measured + np.arange(30), most_steps=2)
    for numbers, variances in (([np.nan] * 30, 1.0), (measured, 0.0), (measured, np.inf)):
        with pytest.raises(InvalidValue):
            implicit_least_squares(lambda x: design @ x, lambda y: design.T @ y, numbers, variances)
