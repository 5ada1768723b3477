"""Products and inverses of matrices of a few hundred rows in pieces, each too small to be handed to threads.

Threads of linear algebra wait for each other. Where the machine has anything else to do, a product that takes 1 ms
alone then takes 30: measured, two threads on two busy cores. An optimiser makes thousands of such products.
"""

from __future__ import annotations

import numpy as np

from farthing.release.strategies.base import Floats

SMALL_VECTOR = 9_000
"""A matrix of so many entries times a vector stays in one thread."""
_SMALL_PRODUCT = 250_000  # rows x inner x columns
_SMALL_INVERSE = 64


def times(left: Floats, right: Floats) -> Floats:
    """The product of two matrices, a few rows at a time.

    >>> times(np.arange(6.0).reshape(3, 2), np.eye(2))
    array([[0., 1.],
           [2., 3.],
           [4., 5.]])
    """
    rows = max(1, _SMALL_PRODUCT // max(1, right.size))
    if len(left) <= rows:
        return np.asarray(left @ right)
    whole = len(left) // rows * rows
    stacked = left[:whole].reshape(-1, rows, left.shape[1]) @ right
    rest = left[whole:] @ right
    return np.concatenate([stacked.reshape(whole, right.shape[1]), rest])


def inverse_of(matrix: Floats) -> Floats:
    """The inverse of a symmetric positive definite matrix, by halves.

    >>> inverse_of(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    if len(matrix) <= _SMALL_INVERSE:
        return np.asarray(np.linalg.inv(matrix))
    half = len(matrix) // 2
    beside = matrix[:half, half:]
    first = inverse_of(matrix[:half, :half])
    moved = times(first, beside)
    second = inverse_of(matrix[half:, half:] - times(beside.T, moved))
    corner = times(moved, second)
    return np.block([[first + times(corner, moved.T), -corner], [-corner.T, second]])
