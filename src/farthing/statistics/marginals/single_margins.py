"""The margins of marginals by single columns: what they have in common with other counts of the same rows.

A table of several columns splits into residuals. Those of no column and of one column are its margins by single
columns, the others are independent of them. So whatever other counts say about a column changes the margins, and every
table follows by its share of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference.consistent_marginals import Subset, summed

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SingleMargins:
    """The margins by every column, one after the other; `sizes` are the columns' numbers of cells.

    Statement:
        Let m_a be the margins and t their total. The part of a cell (i_a: a in S) of the table of S that lies in the
        residuals of at most one column is sum over a in S of (n_a / N) m_a[i_a] - (|S| - 1) t / N, with N the product
        of the n_a. If the residual of no column has variance v, and those of one column v_a times the projector, then
        cov(m_a[p], m_b[q]) = v / (n_a n_b) + [a = b] v_a ([p = q] - 1 / n_a).
    Source: the residuals of `farthing.inference.consistent_marginals`, written out for at most one column.
    Assumes: tables that agree with each other.
    Direction: equality.
    Checked by: tests/theorems/test_single_margins.py

    >>> margins = SingleMargins((2, 3))
    >>> margins.of_sum((0, 1), np.array([[1.0, 0, 0], [0, 0, 0]])).round(3)
    array([ 0.167, -0.167,  0.5  ,  0.   ,  0.   ])
    """

    sizes: tuple[int, ...]

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the margin of each column begins, and the end."""
        return tuple(np.cumsum([0, *self.sizes]).tolist())

    def place(self, column: int) -> slice:
        """Where the margin of a column stands."""
        return slice(self.starts[column], self.starts[column + 1])

    def covariance(self, variances: Mapping[Subset, float]) -> Floats:
        """Of all margins, given the variances of the residuals of no column and of each."""
        share = np.concatenate([np.full(n, 1.0 / n) for n in self.sizes])
        matrix: Floats = variances[()] * np.outer(share, share)
        for column, n in enumerate(self.sizes):
            if n > 1:
                own = self.place(column)
                matrix[own, own] += variances[(column,)] * (np.eye(n) - 1.0 / n)
        return matrix

    def of_sum(self, subset: Subset, query: Floats) -> Floats:
        """The function of the margins that sum(query * table of subset) is, in the residuals of at most one column."""
        function: Floats = np.zeros(self.starts[-1])
        cells = math.prod(self.sizes[column] for column in subset)
        for column in subset:
            function[self.place(column)] += summed(query, subset, (column,)) * (self.sizes[column] / cells)
        function[self.place(subset[0])] -= (len(subset) - 1) / cells * float(np.sum(query))
        return function

    def over_cells(self, subset: Subset, columns: NDArray[Any]) -> Floats:
        """What every cell of a table is, in the residuals of at most one column, for margins in columns; flat cells."""
        shape = tuple(self.sizes[column] for column in subset)
        cells = math.prod(shape)
        whole = columns[self.place(subset[0])].sum(axis=0)
        table = np.broadcast_to(-(len(subset) - 1) / cells * whole, (*shape, columns.shape[1])).copy()
        for axis, column in enumerate(subset):
            margin = columns[self.place(column)] * (self.sizes[column] / cells)
            along = [len(margin) if n == axis else 1 for n in range(len(subset))]
            table += margin.reshape((*along, columns.shape[1]))
        return table.reshape(cells, columns.shape[1])
