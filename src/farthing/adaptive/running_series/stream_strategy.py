"""What is measured, step by step, so that running totals need little noise: whole-number rows, each at its step.

A strategy is a matrix B of whole numbers >= 0, one column for each period. Row r is measured at step `at[r]` and looks
at no later period. From what was measured by step t, `totals[t]` makes the sum of the first t + 1 periods and
`counts[t]` the last of them: both are fixed weights, so that the error of every step is known before the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Norm = Literal["l1", "l2"]
_Number = TypeVar("_Number", np.int64, np.float64)

SQUARE_ROOT = "square root"
TOTALS = "totals"
_BITS = 20  # real weights become whole numbers up to 2^20: a millionth of the largest is rounded away


@dataclass(frozen=True, eq=False)
class StreamStrategy:
    """Rows of whole numbers, the step at which each is measured, and the weights that make totals and counts of them.

    Attributes:
        name: "square root", "totals", or "tree of b" for blocks of b blocks.
        matrix: One row for each measured number, one column for each period; entries >= 0.
        at: The step, from 0 on, at which each row is measured.
        totals: Weights, one row for each step: times what was measured, they are the running total.
        counts: Weights that make the count of the step's own period.

    >>> stream_strategy("tree of 2", 4).matrix.tolist()
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]]
    >>> stream_strategy("totals", 3).moved("l1", append_only=False)
    3
    """

    name: str
    matrix: Integers
    at: Integers
    totals: Floats
    counts: Floats

    def moved(self, norm: Norm, *, append_only: bool) -> int:
        """How far one row of a unit moves all that is measured: the l1 norm, or the square of the l2 norm.

        Args:
            norm: "l1" or "l2".
            append_only: Whether rows are only added to the table.

        Returns:
            The bound S.

        Statement:
            Step t reads the table D_t as it is then. Of every unit the earliest m rows by date are kept, and row r of
            the strategy, measured at step t = at[r], is sum_j B[r, j] x_j(D_t), where x_j counts the kept rows of
            period j <= t, in any number of disjoint cells. Let two streams of tables differ in the rows of one unit,
            at all steps. Then all measured numbers together differ by at most m S in l1 (m sqrt(S) in l2), where
            (a) whatever comes, goes or is changed between steps, S is the sum over rows r of max_j B[r, j]^p;
            (b) if rows are only added to the table (D_t is part of D_(t+1), a row keeps its unit and its date), S is
                the maximum, over a first step u and days that never get later, j(u) >= j(u + 1) >= ... with
                j(u) <= u, of sum over rows r with at[r] >= u of B[r, j(at[r])]^p; p = 1 for l1, 2 for l2.
        Source: own derivation. At step t the unit adds to row r the sum over k = 1, ..., m of B[r, j_k(t)], where
            j_k(t) is the period of its k-th earliest row in D_t (nothing, if there is none or it lies after t), each
            to one cell at most. (a) bounds each summand by the largest entry. (b) The k-th earliest day of a larger
            set is never later, so j_k never rises; before the first step u at which it is <= t it adds nothing, and
            afterwards it is a path as stated, so the k-th summands have a norm of at most S^(1/p). Either way the
            triangle inequality adds up m of them; which of the rows of one day are kept, in which cells they lie and
            which of them a condition lets pass can only make it less, because entries are >= 0. For the square-root
            strategy and for trees (b) is the largest column norm: coefficients fall with the distance, and blocks of
            one level do not overlap.
        Assumes: entries >= 0; the tables may depend on what was released before.
        Direction: exact maximum in whole numbers; attained by a unit with m rows on one day.
        Checked by: tests/theorems/test_running_series.py
        """
        powers = self.matrix if norm == "l1" else self.matrix**2
        if not append_only:
            return int(powers.max(axis=1).sum())
        steps = self.matrix.shape[1]
        later: Integers = np.zeros(steps, dtype=np.int64)  # the most that a path at period j adds from the next step on
        most = 0
        for step in reversed(range(steps)):
            here = powers[self.at == step].sum(axis=0) + np.maximum.accumulate(later)
            most, later = max(most, int(here[: step + 1].max())), here
        return most


@lru_cache(maxsize=32)
def stream_strategy(name: str, steps: int, *, fine: bool = False) -> StreamStrategy:
    """A strategy by its name; `fine` multiplies whole-number rows by 2^20, so that Gaussian noise has room.

    >>> stream_strategy("square root", 3, fine=True).matrix.tolist()
    [[1048576, 0, 0], [524288, 1048576, 0], [393216, 524288, 1048576]]
    """
    if name == SQUARE_ROOT:
        return _square_root(steps)
    unit = 2**_BITS if fine else 1
    if name == TOTALS:
        ones, own = np.tril(np.ones((steps, steps), dtype=np.int64)), np.eye(steps)
        return StreamStrategy(name, ones * unit, np.arange(steps), own / unit, (own - np.eye(steps, k=-1)) / unit)
    return _tree(steps, int(name.removeprefix("tree of ")), unit)


def _square_root(steps: int) -> StreamStrategy:
    """The square root of the matrix of running totals.

    Statement:
        Let A be the lower triangular matrix of ones and C the lower triangular Toeplitz matrix of the coefficients
        c_k = binom(2k, k) / 4^k. Then A = C C, so that noise of variance 1 on C x leaves running totals with the
        variance c_0^2 + ... + c_(t-1)^2 <= 1 + (ln(t) + 0.7) / pi at step t, and a column of C has at most that
        squared norm: the error of the last total grows with the logarithm of the number of steps.
    Source: Fichtenberger, Henzinger & Upadhyay, arXiv:2202.11205v2; Henzinger, Upadhyay & Upadhyay,
        arXiv:2211.05006v2 (optimal up to lower order terms). c_k is the coefficient of z^k in
        (1 - z)^(-1/2), whose square 1 / (1 - z) is A.
    Departs from source: c_k is rounded to a multiple of 2^-20. The rounded matrix B is the strategy, and the weights
        A B^-1 follow from it, so nothing rests on the rounding but a millionth of the error.
    Assumes: nothing.
    Direction: equality for B, to the precision of doubles.
    Checked by: tests/theorems/test_running_series.py

    >>> strategy = _square_root(60)
    >>> column = strategy.matrix[:, 0].astype(float)
    >>> round(float(np.sqrt(column @ column) * np.linalg.norm(strategy.totals[-1])), 2)  # sixty separate ones: 7.75
    2.37
    """
    exact, coefficients = Fraction(1), []
    for lag in range(steps):
        coefficients.append(round(exact * 2**_BITS))
        exact *= Fraction(2 * lag + 1, 2 * lag + 2)
    inverse = [1.0 / coefficients[0]]
    rising = np.array(coefficients, dtype=float)
    for lag in range(1, steps):
        inverse.append(-float(rising[1 : lag + 1] @ np.array(inverse[::-1])) / coefficients[0])
    matrix = _toeplitz(np.array(coefficients, dtype=np.int64))
    own = np.array(inverse)
    return StreamStrategy(SQUARE_ROOT, matrix, np.arange(steps), _toeplitz(np.cumsum(own)), _toeplitz(own))


def _toeplitz(column: NDArray[_Number]) -> NDArray[_Number]:
    """The lower triangular matrix whose columns are all this one, moved down."""
    size = len(column)
    places = np.subtract.outer(np.arange(size), np.arange(size))
    lower: NDArray[_Number] = np.where(places >= 0, column[np.maximum(places, 0)], column.dtype.type(0))
    return lower


def branching_of(steps: int) -> int:
    """The branching of the tree with the least error of its worst total under Laplace noise; `steps` + 1 for no tree.

    >>> branching_of(12), branching_of(60), branching_of(365)
    (13, 8, 20)
    """
    best, branching = float(steps), steps + 1  # each period by itself
    for candidate in range(2, min(steps, 4 * math.isqrt(steps) + 8) + 1):  # beyond, two levels are ever less alike
        sizes, variances = _levels(steps, candidate)
        rest, variance = np.arange(1, steps + 1), np.zeros(steps)
        for size, each in zip(reversed(sizes), reversed(variances), strict=True):
            variance, rest = variance + rest // size * each, rest % size
        error = len(sizes) ** 2 * float(variance.max())
        if error < best:
            best, branching = error, candidate
    return branching


def _levels(steps: int, branching: int) -> tuple[list[int], list[float]]:
    """The sizes of blocks, fine to coarse, and the variance of the least-squares total of a whole block of each."""
    sizes, variances = [1], [1.0]
    while sizes[-1] * branching <= steps:
        below = branching * variances[-1]  # of the sum of what the blocks inside say
        sizes.append(sizes[-1] * branching)
        variances.append(below / (1 + below))
    return sizes, variances


def _tree(steps: int, branching: int, unit: int) -> StreamStrategy:
    """Every block of b^l periods, measured when it is full; totals by least squares over the blocks that are.

    Statement:
        By step t the full blocks are whole trees beside each other, one for each digit of t in base b and unit of it,
        and no measured block spans two of them. So the least-squares total is the sum of theirs, and that of a whole
        tree is its own number (variance 1) and the sum of its b subtrees' totals (variance b v) in inverse proportion
        to their variances: b v / (1 + b v) of the one and 1 / (1 + b v) of the other, with variance b v / (1 + b v).
    Source: Honaker, Efficient use of differentially private binary trees (TPDP 2015), estimation from below; Chan, Shi
        & Song, TISSEC 14 (2011), for the tree over a stream.
    Assumes: independent noise of one variance.
    Direction: equality, to the precision of doubles.
    Checked by: tests/theorems/test_running_series.py

    >>> _tree(4, 2, 1).totals[3].round(3).tolist()
    [0.143, 0.143, 0.286, 0.143, 0.143, 0.286, 0.571]
    """
    if not branching >= 2:
        raise InvalidValue("branching", branching, "must be at least 2")
    sizes, variances = _levels(steps, branching)
    rows = [(end - 1, size) for end in range(1, steps + 1) for size in sizes if end % size == 0]
    place = {row: number for number, row in enumerate(rows)}
    matrix: Integers = np.zeros((len(rows), steps), dtype=np.int64)
    own: Floats = np.zeros((len(rows), len(rows)))  # weights of the least-squares total of each block
    for number, (last, size) in enumerate(rows):
        matrix[number, last - size + 1 : last + 1] = unit
        own[number, number] = 1.0
        if size > 1:
            inside = size // branching
            below = branching * variances[sizes.index(inside)]
            children = [place[last - part * inside, inside] for part in range(branching)]
            own[number] *= below / (1 + below)
            own[number] += own[children].sum(axis=0) / (1 + below)
    totals = np.array([own[_cover(step + 1, sizes, place)].sum(axis=0) for step in range(steps)])
    counts = np.eye(len(rows))[[place[step, 1] for step in range(steps)]]
    at = np.array([last for last, _ in rows])
    return StreamStrategy(f"tree of {branching}", matrix, at, totals / unit, counts / unit)


def _cover(many: int, sizes: Sequence[int], place: dict[tuple[int, int], int]) -> list[int]:
    """The numbers of the largest blocks that make up the first `many` periods."""
    blocks, begun = [], 0
    for size in reversed(sizes):
        while many - begun >= size:
            begun += size
            blocks.append(place[begun - 1, size])
    return blocks
