"""An orthonormal basis in which the coarse shape of a table is a few numbers: Haar's, on every axis.

On a column with two values the basis is their sum and difference, so that on many such columns a number of the basis
is the interaction of some of them. On an ordered column it is the difference of neighbouring blocks of all sizes.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_WIDEST = 256  # matrices up to this size are multiplied out; a longer axis goes block by block


class Wavelets:
    """The transform of tables of one shape, forward and back, and the kinds of its numbers.

    >>> basis = Wavelets((2, 3))
    >>> table = np.arange(6.0).reshape(2, 3)
    >>> coefficients = basis.forward(table)
    >>> bool(np.isclose(coefficients.flat[0] * math.sqrt(6), table.sum()))
    True
    >>> bool(np.allclose(basis.back(coefficients), table))
    True
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._groups = _grouped(shape)
        self._matrices = [_matrix_of(sizes) if math.prod(sizes) <= _WIDEST else None for sizes in self._groups]

    def forward(self, table: Floats) -> Floats:
        """The numbers of a table in the basis; the first is its total over the root of the number of cells."""
        return self._applied(table, back=False)

    def back(self, numbers: Floats) -> Floats:
        """The table of some numbers."""
        return self._applied(numbers, back=True)

    def _applied(self, values: Floats, back: bool) -> Floats:
        before, after = 1, values.size
        transformed = values
        for sizes, matrix in zip(self._groups, self._matrices, strict=True):
            size = math.prod(sizes)
            after //= size
            cube = transformed.reshape(before, size, after)
            if matrix is not None and after == 1:  # one product instead of many small ones
                transformed = transformed.reshape(before, size) @ (matrix if back else matrix.T)
            elif matrix is not None:
                transformed = np.matmul(matrix.T if back else matrix, cube)
            else:
                rows = np.ascontiguousarray(np.moveaxis(cube, 1, -1))
                transformed = np.ascontiguousarray(np.moveaxis((_rebuilt if back else _split)(rows), -1, 1))
            before *= size
        return transformed.reshape(self.shape)

    @cached_property
    def kinds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The kind of every number, flat, and how many there are of each.

        Numbers are of one kind if they have the same levels, on whichever axes: the same number of columns interact,
        and blocks have the same sizes.
        """
        codes = np.zeros(self.shape, dtype=np.int64)
        # A multiset of levels as a sum: distinct powers cannot be confused while an axis has fewer than 2^6 levels
        # and sums wrap around alike; two kinds that meet would only be shrunk together.
        weights = np.array([0, *(pow(1_000_003, level, 2**61 - 1) for level in range(1, 64))], dtype=np.int64)
        for axis, size in enumerate(self.shape):
            spread = [1] * len(self.shape)
            spread[axis] = size
            codes += weights[_levels(size)].reshape(spread)
        _, kinds, sizes = np.unique(codes.reshape(-1), return_inverse=True, return_counts=True)
        return kinds.reshape(-1), sizes


def _grouped(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Neighbouring axes together, as long as their matrix is small."""
    groups: list[tuple[int, ...]] = []
    for size in shape:
        if groups and math.prod(groups[-1]) * size <= _WIDEST:
            groups[-1] = (*groups[-1], size)
        else:
            groups.append((size,))
    return groups


def _matrix_of(sizes: tuple[int, ...]) -> Floats:
    matrix: Floats = np.ones((1, 1))
    for size in sizes:
        matrix = np.kron(matrix, _split(np.eye(size)).T).astype(np.float64)
    return np.ascontiguousarray(matrix)


def _steps(size: int) -> list[tuple[Floats, Floats, int]]:
    """From the finest to the coarsest: how two neighbouring blocks are weighed, and how many blocks there are.

    A last block without a neighbour waits for the next step, so that sizes need not be powers of two.
    """
    steps, widths = [], np.ones(size)
    while len(widths) > 1:
        pairs = len(widths) // 2
        first, second = widths[0 : 2 * pairs : 2], widths[1 : 2 * pairs : 2]
        steps.append((np.sqrt(first / (first + second)), np.sqrt(second / (first + second)), len(widths)))
        widths = np.concatenate([first + second, widths[2 * pairs :]])
    return steps


def _levels(size: int) -> NDArray[np.int64]:
    """The step that each number of an axis comes from; 0 for the sum of all."""
    levels, end = np.zeros(size, dtype=np.int64), size
    for level, (*_, blocks) in enumerate(_steps(size), start=1):
        levels[end - blocks // 2 : end] = level
        end -= blocks // 2
    return levels


def _split(values: Floats) -> Floats:
    """The transform along the last axis."""
    coefficients, sums, end = np.empty(values.shape), values, values.shape[-1]
    for left, right, blocks in _steps(end):
        pairs = blocks // 2
        first, second = sums[..., 0 : 2 * pairs : 2], sums[..., 1 : 2 * pairs : 2]
        coefficients[..., end - pairs : end] = right * first - left * second
        sums = np.concatenate([left * first + right * second, sums[..., 2 * pairs :]], axis=-1)
        end -= pairs
    coefficients[..., :1] = sums
    return coefficients


def _rebuilt(values: Floats) -> Floats:
    """The way back along the last axis."""
    sums, end = values[..., :1], 1
    for left, right, blocks in reversed(_steps(values.shape[-1])):
        pairs = blocks // 2
        difference, sum_ = values[..., end : end + pairs], sums[..., :pairs]
        finer = np.empty((*values.shape[:-1], blocks))
        finer[..., 0 : 2 * pairs : 2] = left * sum_ + right * difference
        finer[..., 1 : 2 * pairs : 2] = right * sum_ - left * difference
        finer[..., 2 * pairs :] = sums[..., pairs:]
        sums, end = finer, end + pairs
    return sums
