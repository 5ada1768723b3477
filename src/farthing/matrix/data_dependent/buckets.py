"""Buckets of neighbouring cells: what several partitions measured, put together by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference.isotonic import nearest_increasing
from farthing.matrix.data_dependent.step_budget import Spending
from farthing.matrix.strategies.strategy import Estimator, Floats, Integers, Level, check_dense
from farthing.matrix.strategies.strategy_noise import LevelNoise
from farthing.matrix.strategies.workload_energies import best_shares, error
from farthing.matrix.workloads.interval_queries import AllRanges, Identity, Intervals, Prefix, Total
from farthing.matrix.workloads.nonnegative_histograms import nearest_in_answers
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms.mechanism import SATURATION
from farthing.mechanisms.randomness import Source

MOST_IN_ORDER = 2**17
"""Cells up to which cumulative sums are put in order."""
_MOST_SEARCHED = 4096
_SETTLING_FAINT = 1e-6


def nonnegative_histogram(workload: Workload, cells: Floats, others: Sequence[Floats] = ()) -> Floats:
    """Cells >= 0 whose answers are near those of `cells`; `others` are cells >= 0 to be weighed as well.

    Where the nearest ones have a closed form, they are taken (see `nearest_in_answers` for what that promises). For
    other intervals the cumulative sums are put in order, each as heavy as the queries that begin or end there are
    many, and for other workloads a search is run if cells are few; whichever candidate moves the answers least wins.

    >>> from farthing.matrix.workloads import identity, prefix
    >>> cells = np.array([2.0, -4.0, 1.0])
    >>> nonnegative_histogram(prefix(3), cells), nonnegative_histogram(identity(3), cells)
    (array([0., 0., 0.]), array([2., 0., 1.]))
    """
    if isinstance(workload, Prefix | AllRanges | Identity | Total) and workload.cells <= MOST_IN_ORDER:
        return nearest_in_answers(cells, workload)
    tried = [np.maximum(cells, 0.0), *others]
    if isinstance(workload, Intervals):
        if workload.cells <= MOST_IN_ORDER:
            tried.append(_in_order(workload, cells))
    elif workload.cells <= _MOST_SEARCHED:
        tried.append(nearest_in_answers(cells, workload))
    moved = np.stack(tried, axis=1) - cells[:, None]
    distances = np.sum(moved * workload.gram_times(moved), axis=0)
    return tried[int(np.argmin(distances))]


def puts_in_order(workload: Workload) -> bool:
    """Whether `nonnegative_histogram` finds good cells by itself; otherwise others should be proposed.

    >>> from farthing.matrix.workloads import marginals, prefix
    >>> puts_in_order(prefix(1024)), puts_in_order(prefix(2**20)), puts_in_order(marginals((2,) * 16, way=2))
    (True, False, False)
    """
    most = MOST_IN_ORDER if isinstance(workload, Intervals) else _MOST_SEARCHED
    return workload.cells <= most


def _in_order(workload: Intervals, cells: Floats) -> Floats:
    """Differences of increasing cumulative sums."""
    starts, stops = workload.edges
    edges = workload.cells + 1
    ends = np.bincount(starts, minlength=edges) + np.bincount(stops, minlength=edges)
    heavy = np.maximum(ends, _SETTLING_FAINT * float(ends.max()))
    return np.diff(nearest_increasing(np.concatenate([[0.0], np.cumsum(cells)]), 1.0 / heavy))


_CONCENTRATION = 2.0
"""How unevenly the rows of a bucket may lie in it: its cells are taken to have shares of a Dirichlet distribution whose
parameters add up to this. At 0 all rows may be in one cell, at infinity they are spread evenly."""
_FAINT = 1e-10  # of the precision of one count: keeps a bucket that nothing measured from being arbitrary


@dataclass(frozen=True, eq=False)
class Counted:
    """One measurement: noisy counts between neighbouring `edges`, all with noise of one distribution."""

    edges: Integers
    values: Floats
    noise: LevelNoise

    @property
    def variance(self) -> float:
        """The variance of each noisy count."""
        return self.noise.variance


def counted(cells: Integers, edges: Integers, noise: LevelNoise, source: Source) -> Counted:
    """The private step: the rows between neighbouring edges, with noise. One row moves one bucket, by 1."""
    # Clamped so that no sum overflows, which moves no two neighbours further apart.
    most = SATURATION // (len(cells) * noise.finer)
    exact = sums_between(np.clip(cells, -most, most), edges) * noise.finer
    noisy = np.asarray(noise.mechanism._answer(exact, source), dtype=float) / noise.finer
    return Counted(edges, np.atleast_1d(noisy), noise)


def level_of(edges: Integers, name: str = "buckets") -> Level:
    """The counts of disjoint buckets as a level of a strategy."""
    return Level(name, len(edges) - 1, 1, 1)


def sums_between(cells: NDArray[np.generic], edges: Integers) -> NDArray[np.generic]:
    """The sums of the cells between neighbouring edges.

    >>> sums_between(np.array([1, 2, 3, 4]), np.array([0, 1, 4]))
    array([1, 9])
    """
    return np.asarray(np.add.reduceat(cells, edges[:-1]))


def spread(values: Floats, edges: Integers) -> Floats:
    """Every bucket's rows, evenly over its cells.

    >>> spread(np.array([1.0, 9.0]), np.array([0, 1, 4]))
    array([1., 3., 3., 3.])
    """
    widths = np.diff(edges)
    return np.repeat(values / widths, widths)


def reduced_gram(workload: Workload, edges: Integers) -> Floats:
    """W'W as it is for buckets whose rows lie evenly: what a row of one bucket and one of another have in common."""
    owner = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    evenly = (owner[:, None] == np.arange(len(edges) - 1)) / np.diff(edges)
    return np.asarray(evenly.T @ workload.gram_times(evenly))


class BucketEstimator(Estimator):
    """Least squares over the buckets that all measurements together distinguish; evenly spread within each.

    The variance of an answer has two parts: that of the noise, exactly, and what is not known about where the rows of
    a bucket lie. The second is a guess from the bucket's estimated rows, `_CONCENTRATION` and the widths; at most
    `uneven` rows of a bucket are taken to lie unevenly.
    """

    def __init__(self, cells: int, measured: Sequence[Counted], uneven: float = math.inf) -> None:
        self.cells = cells
        self.uneven = uneven
        self.measured = tuple(measured)
        self.edges: Integers = np.unique(np.concatenate([one.edges for one in measured]))
        rows = np.vstack([members(one.edges, self.edges) / np.sqrt(one.variance) for one in measured])
        values = np.concatenate([one.values / np.sqrt(one.variance) for one in measured])
        widths = np.diff(self.edges).astype(float)
        # Where measurements leave a choice, rows lie as evenly as they can: least squares of x / sqrt(width).
        scaled = rows * np.sqrt(widths)
        precision = scaled.T @ scaled + _FAINT * np.eye(len(widths)) / max(one.variance for one in measured)
        inverse = np.linalg.inv(precision)
        self.buckets: Floats = np.sqrt(widths) * (inverse @ (scaled.T @ values))
        self._noise = np.sqrt(widths)[:, None] * inverse * np.sqrt(widths)

    @property
    def centre(self) -> Floats:
        """The estimated cells, before anything is known about their sign."""
        return spread(self.buckets, self.edges)

    def estimate(self, measured: Sequence[NDArray[np.generic]]) -> Floats:
        """The same cells; the measurements are those it was made of."""
        return self.centre

    @cached_property
    def _uneven(self) -> Floats:
        """For every bucket, the variance of its rows' places: rows squared over (concentration + 1)."""
        rows = np.clip(self.buckets, 0.0, self.uneven)
        return np.asarray(rows**2 / (_CONCENTRATION + 1.0))

    def covariance(self) -> Floats:
        """Noise and unevenness together, over all cells."""
        check_dense(self.cells)
        widths = np.diff(self.edges)
        owner = np.repeat(np.arange(len(widths)), widths)
        each = widths[owner].astype(float)
        between = (self._noise / widths / widths[:, None])[np.ix_(owner, owner)]
        same = owner[:, None] == owner
        matrix = between - np.where(same, (self._uneven[owner] / each**2)[:, None], 0.0)
        matrix[np.diag_indices(self.cells)] += self._uneven[owner] / each
        return np.asarray(matrix)

    def total_variance(self, workload: Workload) -> float:
        """The sum over the queries, each as heavy as the workload says."""
        return float(np.sum(workload.gram() * self.covariance()))

    def query_variances(self, workload: Workload) -> Floats:
        """The variance of every answer."""
        return np.maximum(workload.query_variances(self.covariance()), 0.0)

    def variance(self, query: Floats) -> float:
        """The variance of one more question."""
        vector = np.asarray(query, dtype=float).ravel()
        widths = np.diff(self.edges)
        means = sums_between(vector, self.edges) / widths
        squares = sums_between(vector**2, self.edges) / widths
        apart = np.maximum(squares - means**2, 0.0)
        return float(means @ self._noise @ means + apart @ self._uneven)


def members(coarse: Integers, fine: Integers) -> Floats:
    """Which fine buckets lie in which coarse ones, as a matrix of 0 and 1; all coarse edges are fine ones too."""
    owner = np.searchsorted(coarse, fine[:-1], side="right") - 1
    return np.asarray(owner == np.arange(len(coarse) - 1)[:, None], dtype=float)


Plan = list[tuple[Integers, Fraction]]

_GROUPS = (4, 6, 8, 12, 16, 24, 32)
_PARTS = (Fraction(1, 4), Fraction(2, 5), Fraction(11, 20), Fraction(7, 10))  # of the budget, for the groups
_FEW = 96  # buckets up to which plans are weighed exactly
_LEAST_SHARE = 0.02


def best_plan(
    workload: Workload, edges: Integers, before: Sequence[Counted], spending: Spending, part: Fraction
) -> Plan:
    """Which partitions to count, each with its part of the budget: the least expected error among some dozens.

    What was measured `before` is taken into account where buckets are few. Only public parameters and noisy counts
    are looked at.
    """
    gram = reduced_gram(workload, edges)
    if len(gram) > _FEW:
        return _tree_plan(gram, edges, spending, part)
    plans: list[Plan] = [[(edges, part)]]
    groups = [size for size in _GROUPS if 2 * size <= len(gram)]
    # Where rows lie close together most queries hold all of them, or none: then the total itself is worth a look.
    for size in sorted({*groups, -(-len(gram) // 2), len(gram)}):
        if size > 1:
            plans += [[(_grouped(edges, size), part * own), (edges, part * (1 - own))] for own in _PARTS]
    known = np.zeros_like(gram)
    for one in before:
        shared = np.intersect1d(one.edges, edges)
        # A group of buckets that were counted one by one is known by the sum of their counts.
        summed = members(shared, one.edges).sum(axis=1)
        rows = members(shared, edges) / np.sqrt(summed * one.variance)[:, None]
        known += rows.T @ rows
    errors = [_error(gram, known, plan, edges, spending) for plan in plans]
    return plans[int(np.argmin(errors))]


def measured(cells: Integers, plan: Plan, spending: Spending, source: Source, name: str = "buckets") -> list[Counted]:
    """The private step: every partition of the plan counted with its noise."""
    return [counted(cells, edges, spending.noise(level_of(edges, name), own), source) for edges, own in plan]


def _tree_plan(gram: Floats, edges: Integers, spending: Spending, part: Fraction) -> Plan:
    """Trees of one branching over the buckets, weighed as if all groups were full."""
    trees = [(size, 1) for size in _GROUPS] + [(size**2, size, 1) for size in _GROUPS]
    usable = [tree for tree in trees if 2 * tree[0] <= len(gram)]
    candidates = []
    for tree in usable:
        sizes = np.array(tree, dtype=float)
        details = np.maximum(np.diff([_energy(gram, size) for size in tree], prepend=0.0), 0.0)
        shares = best_shares(sizes[None], details[None], spending.norm)[0]
        candidates.append((float(error(sizes, details, shares, spending.norm)), tree, shares))
    _, tree, shares = min(candidates, key=lambda one: one[0])
    levels = [(size, Fraction(float(share))) for size, share in zip(tree, shares, strict=True) if share >= _LEAST_SHARE]
    whole = sum(share for _, share in levels)
    return [(_grouped(edges, size), part * share / whole) for size, share in levels]


def _energy(gram: Floats, size: int) -> float:
    firsts = np.arange(0, len(gram), size)
    blocks = np.add.reduceat(np.add.reduceat(gram, firsts, axis=0), firsts, axis=1)
    return float(np.trace(blocks)) / size


def _grouped(edges: Integers, size: int) -> Integers:
    return np.append(edges[:-1:size], edges[-1])


def _error(gram: Floats, known: Floats, plan: Plan, edges: Integers, spending: Spending) -> float:
    precision = known.copy()
    for partition, own in plan:
        rows = members(partition, edges)
        precision += rows.T @ rows / spending.deviation(own) ** 2
    return float(np.sum(gram * np.linalg.inv(precision)))
