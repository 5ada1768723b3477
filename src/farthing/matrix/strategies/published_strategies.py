"""Strategies as published, to reproduce the tables of papers; the other strategies have smaller errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.errors import InvalidValue
from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.strategy import Floats, Norm
from farthing.matrix.strategies.tree_strategies import TreeStrategy, hierarchical
from farthing.matrix.strategies.wavelet import WaveletStrategy
from farthing.matrix.workloads.workload import Workload


@dataclass(frozen=True)
class EqualShareTree(TreeStrategy):
    """A hierarchy in which every level has the same share of the budget, whatever the workload, as published.

    Statement: as `TreeStrategy`, with epsilon / L for each of the L levels (mu squared / L for Gaussian noise).
    Source: Hay, Rastogi, Miklau & Suciu, arXiv:0904.0942v5, section 4 (with their least-squares consistency);
        Qardaji, Yang & Li, VLDB 2013, for other branchings.
    Assumes: what `TreeStrategy` assumes.
    Direction: equality, up to rounding.
    Checked by: tests/theorems/test_published_strategies.py

    >>> tree = equal_hierarchical(8, 2)
    >>> tree.name, tree.sizes, tree.shares(None, "l1").tolist()
    ('equal-hierarchical-2', (8, 4, 2, 1), [0.25, 0.25, 0.25, 0.25])
    """

    def shares(self, workload: Workload | None, norm: Norm) -> Floats:
        """The same for every level."""
        return np.full(len(self.sizes), 1 / len(self.sizes))


def equal_hierarchical(cells: int, branching: int) -> EqualShareTree:
    """The published hierarchy with this branching.

    >>> equal_hierarchical(1000, 10).sizes
    (1000, 100, 10, 1)
    """
    tree = hierarchical(cells, branching)
    return EqualShareTree(f"equal-{tree.name}", tree.size, tree.sizes)


@dataclass(frozen=True)
class Privelet(WaveletStrategy):
    """The Haar wavelet with the weights of the paper.

    Statement:
        The paper adds Laplace noise of scale (1 + log2 n) / (epsilon W(c)) to every Haar coefficient c, where c is half
        of the difference between the means of two halves of a block of s cells, and W(c) = s; the mean of all n cells
        has W = n. Our coefficients are differences of sums, s c, so their noise has the one scale
        (1 + log2 n) / epsilon: the same share of epsilon for each of the 1 + log2 n levels.
    Source: Xiao, Wang & Gehrke, arXiv:0909.5530v1, section IV (W_Haar).
    Assumes: what `WaveletStrategy` assumes; cells padded to a power of two.
    Direction: equality, up to rounding.
    Checked by: tests/theorems/test_published_strategies.py

    >>> Privelet(4).shares(None, "l1").round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    name: str = "privelet"

    def shares(self, workload: Workload | None, norm: Norm) -> Floats:
        """The same for every level."""
        return np.full(len(self.sizes), 1 / len(self.sizes))


def queries_themselves(workload: Workload) -> MatrixStrategy:
    """Every query measured with noise of its own: what a strategy is compared with.

    Statement: B = W: the sensitivity is the largest column norm of the workload, and every query has noise for all.
    Source: the Laplace mechanism on the queries (Dwork, McSherry, Nissim & Smith, TCC 2006), "Strategy 1" of lectures.
    Assumes: queries of whole coefficients, at most 2^24 entries.
    Direction: equality. Unlike in lectures, answers are made consistent by least squares.
    Checked by: tests/theorems/test_published_strategies.py

    >>> from farthing.matrix.workloads import prefix
    >>> queries_themselves(prefix(3)).levels
    (Level(name='queries', size=3, l1=3, l2_squared=3),)
    """
    matrix = workload.matrix()
    whole = np.rint(matrix)
    if not np.array_equal(matrix, whole):
        raise InvalidValue("strategy", "queries", "must have whole coefficients in every query", "use another strategy")
    return MatrixStrategy("queries", whole.astype(np.int64), workload.shape)
