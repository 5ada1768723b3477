"""Buckets of neighbouring cells: what several partitions measured, put together by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.base import SATURATION
from farthing.mechanisms.randomness import Source
from farthing.release.strategies.base import Estimator, Floats, Integers, Level, check_dense
from farthing.release.strategies.pricing import LevelNoise
from farthing.release.workloads.base import Workload

_CONCENTRATION = 2.0
"""How unevenly the rows of a bucket may lie in it: its cells are taken to have shares of a Dirichlet law whose
parameters add up to this. At 0 all rows may be in one cell, at infinity they are spread evenly."""
_FAINT = 1e-10  # of the precision of one count: keeps a bucket that nothing measured from being arbitrary


@dataclass(frozen=True, eq=False)
class Counted:
    """One measurement: noisy counts between neighbouring `edges`, all with noise of one law."""

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
    """Least squares over the buckets that all measurements together tell apart; evenly spread within each.

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
        found = between - np.where(same, (self._uneven[owner] / each**2)[:, None], 0.0)
        found[np.diag_indices(self.cells)] += self._uneven[owner] / each
        return np.asarray(found)

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
