"""MarginalLevel: exactly how far one row moves it, and how precisely it determines a residual."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from farthing.inference.consistent_marginals import closure, residual
from farthing.matrix.strategies.marginals import MarginalLevel

SHAPES = [(), (2,), (3,), (5,), (2, 2), (2, 3), (4, 3), (3, 2, 4)]
LEVELS = [
    MarginalLevel(tuple(range(len(shape))), shape, contrasts)
    for shape in SHAPES
    for length in range(len(shape) + 1)
    for contrasts in combinations(range(len(shape)), length)
]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: f"{level.sizes}-{level.contrasts}")
def test_every_row_moves_the_level_by_exactly_what_is_claimed(level: MarginalLevel) -> None:
    size = int(np.prod(level.sizes))
    for counts in (np.zeros(size, np.int64), np.arange(size) ** 2 % 7):
        before = level.exact(counts.reshape(level.sizes))
        for cell in range(size):
            more = counts.copy()
            more[cell] += 1
            moved = level.exact(more.reshape(level.sizes)) - before
            assert moved.shape == (level.plain.size,)
            assert np.abs(moved).sum() == level.plain.l1
            assert (moved**2).sum() == level.plain.l2_squared


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: f"{level.sizes}-{level.contrasts}")
def test_each_residual_is_unbiased_with_the_claimed_covariance(level: MarginalLevel) -> None:
    table = np.arange(np.prod(level.sizes), dtype=np.int64).reshape(level.sizes) ** 2 % 11
    units = np.eye(level.plain.size)
    for part in closure([level.subset]):
        gain = np.array([residual(level.residual(unit, part)).ravel() for unit in units]).T
        if not set(level.contrasts) <= set(part):
            assert level.precision(part) == 0
            continue
        away = tuple(axis for axis in level.subset if axis not in part)
        expected = residual(table.sum(axis=away)).ravel()
        assert gain @ level.exact(table) == pytest.approx(expected, abs=1e-9)
        shape = [level.sizes[axis] for axis in part]
        cells = int(np.prod(shape))
        projector = np.array([residual(unit.reshape(shape)).ravel() for unit in np.eye(cells)])
        assert gain @ gain.T == pytest.approx(projector / level.precision(part), abs=1e-12)


def test_numbers_beyond_int64_are_clamped_and_never_wrap() -> None:
    level = MarginalLevel((0, 1), (3, 5), (0, 1))
    table = np.zeros((3, 5), np.int64)
    table[0, 0] = 2**62
    found = level.exact(table).reshape(3, 5)
    assert found[0, 0] == 2**62  # 8 * 2^62, clamped
    assert found[1, 1] == 2**62  # the exact contrast is 1 * 2^62
    assert found[0, 1] == -(2**62)
    small = level.exact(np.where(table > 0, 2**50, 0)).reshape(3, 5)
    assert small[0, 0] == 8 * 2**50
    assert small[0, 1] == -2 * 2**50
    assert small[1, 0] == -4 * 2**50
