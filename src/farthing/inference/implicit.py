"""Least squares when the design is known only by its products with vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats

Product = Callable[[Floats], Floats]


def implicit_least_squares(
    times: Product,
    transposed: Product,
    measured: ArrayLike,
    variances: ArrayLike = 1.0,
    *,
    start: ArrayLike | None = None,
    most_steps: int | None = None,
) -> Floats:
    """The cells x that minimise sum_i (measured_i - (A x)_i)^2 / variance_i, the shortest ones where several do.

    `times(x)` is A x and `transposed(y)` is A' y. `start` is a first guess; from one that is not zero, cells that
    nothing determines stay where they began.

    Statement:
        The minimiser is the estimate of `LeastSquares`: the best linear unbiased one.
    Source: Fong & Saunders, arXiv:1006.0758v2 (LSMR); its residual in the normal equations only falls.
    Assumes: independent noises of the stated variances; `transposed` is the transpose of `times`.
    Direction: equality, to about 1e-10 of the size of the answer; refused when that is not reached.
    Checked by: tests/theorems/test_implicit_least_squares.py

    >>> design = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> cells = implicit_least_squares(
    ...     lambda x: design @ x, lambda y: design.T @ y, [100.0, 60.0, 49.0], [1.0, 4.0, 4.0])
    >>> cells.round(9)
    array([56., 45.])
    """
    from scipy.sparse.linalg import LinearOperator, lsmr

    numbers = np.asarray(measured, dtype=float).reshape(-1)
    spread = np.broadcast_to(np.asarray(variances, dtype=float), numbers.shape)
    if not np.all(np.isfinite(numbers)):
        raise InvalidValue("measured", "an array", "must be finite")
    if not (np.all(spread > 0) and np.all(np.isfinite(spread))):
        raise InvalidValue("variances", "an array", "must be finite numbers > 0")
    root = 1.0 / np.sqrt(spread)
    first = np.asarray(transposed(np.zeros_like(numbers)) if start is None else start, dtype=float).reshape(
        -1
    )
    cells = len(first)
    design = LinearOperator(
        (len(numbers), cells),
        matvec=lambda x: root * times(np.asarray(x).reshape(-1)),
        rmatvec=lambda y: transposed(root * np.asarray(y).reshape(-1)),
        dtype=float,
    )
    steps = most_steps or 10 * cells + 1_000
    target = numbers * root
    found = first
    # Solved again for what is left: rounding in a long run is taken out, and a start near the answer is a short run.
    for _ in range(3):
        left = target - design.matvec(found)
        more, reason, taken = lsmr(design, left, atol=1e-13, btol=1e-13, conlim=0.0, maxiter=steps)[:3]
        found = found + more
        steps -= taken
        if reason == 7 or steps <= 0:
            raise InvalidValue(
                "most_steps",
                most_steps or 10 * cells + 1_000,
                "is not enough for these measurements",
                "allow more",
            )
        if np.linalg.norm(more) <= 1e-12 * np.linalg.norm(found):
            break
    return np.asarray(found)
