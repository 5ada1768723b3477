"""A distribution over the rows of a table, held as the tables of a junction tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import Subset
from farthing.inference.graphical.elimination import Calibrated, Marginals
from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.graphical.noisy_tables import Key
from farthing.inference.noise_terms import Floats

Codes = NDArray[np.int64]

_MOST_EVEN = 2**25  # coordinates, a quarter of a gibibyte


def sampled_rows(tree: JunctionTree, distribution: Calibrated, count: int, generator: np.random.Generator) -> Codes:
    """`count` rows of codes, in random order.

    From the root down: of the rows that share a value of the separator, each combination of the other columns gets
    its expected number, rounded up or down so that each is right on average. Which of those rows get which is settled
    by points that fill the cube more evenly than random ones, so that tables across cliques are nearly right as well.
    """
    rows = np.zeros((count, len(tree.sizes)), dtype=np.int64)
    points = _even_points(count, len(tree.cliques), generator)
    for place, clique in enumerate(tree.cliques):
        lengths = tree.shape(place)
        shared, own = lengths[: len(clique.separator)], lengths[len(clique.separator) :]
        codes = _codes(rows, clique.separator, shared)
        sizes = np.bincount(codes, minlength=math.prod(shared))
        counts = spread(distribution.conditionals[place].reshape(len(sizes), -1), sizes, generator)
        order = np.lexsort((points[:, place], codes))
        cells = np.repeat(np.tile(np.arange(counts.shape[1]), len(sizes)), counts.reshape(-1))
        rows[order[:, None], list(clique.residual)] = np.stack(np.unravel_index(cells, own), axis=1)
    return rows[generator.permutation(count)]


def _even_points(count: int, dimensions: int, generator: np.random.Generator) -> Floats:
    """Sobol's points, shifted at random; independent ones where there are so many that they are even enough."""
    if count < 2 or count * dimensions > _MOST_EVEN:
        return generator.random((count, dimensions))
    from scipy.stats.qmc import Sobol

    points = Sobol(dimensions, scramble=False).random_base2((count - 1).bit_length())[:count]
    return np.asarray((points + generator.random(dimensions)) % 1.0)


def spread(distributions: Floats, totals: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """Each row's total, divided into whole numbers by its distribution: each is its expectation, rounded up or down.

    >>> spread(np.array([[0.5, 0.25, 0.25]]), np.array([8]), np.random.default_rng(1))
    array([[4, 2, 2]])
    """
    reached = np.cumsum(distributions, axis=1)
    reached *= totals[:, None] / np.maximum(reached[:, -1:], np.finfo(float).tiny)
    reached[:, -1] = totals
    # One offset for each distribution: a cell is rounded up with the probability of its fraction.
    whole = np.floor(np.minimum(reached, totals[:, None]) + generator.random((len(totals), 1))).astype(np.int64)
    whole = np.minimum(whole, totals[:, None])
    return np.diff(whole, axis=1, prepend=0)


def _codes(rows: Codes, columns: tuple[int, ...], lengths: tuple[int, ...]) -> Codes:
    if not columns:
        return np.zeros(len(rows), dtype=np.int64)
    return np.ravel_multi_index(tuple(rows[:, column] for column in columns), lengths)


_MOST_VALUES = 2**28  # rows times columns: two gibibytes, several times over


@dataclass(frozen=True, eq=False, repr=False)
class GraphicalModel:
    """What `fit_graphical` returns: tables of any columns, counts of any conjunction, synthetic rows.

    Attributes:
        tree: The junction tree of the measured sets of columns.
        total: How many rows the model has.
        distribution: The share of the rows in every cell of every clique.
        weights: The weight of each measured table, from which another fit may start.
        loss: Half the sum of squared errors at the measured cells, in units of their noise.
        gap: No distribution has a loss below `loss - gap`.

    >>> from farthing.inference.graphical import Measured, fit_graphical
    >>> model = fit_graphical((2, 3), [Measured((1,), [10.0, 30.0, 60.0], 1.0)], 100)
    >>> model
    GraphicalModel(2 columns, 5 cells in 2 cliques, total 100)
    """

    tree: JunctionTree
    total: float
    distribution: Calibrated
    weights: Mapping[Key, Floats]  # logarithms of what each measured cell multiplies its rows by
    loss: float
    gap: float

    def __repr__(self) -> str:
        where = f"{self.tree.cells} cells in {len(self.tree.cliques)} cliques"
        return f"GraphicalModel({len(self.sizes)} columns, {where}, total {self.total:g})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return self.tree.sizes

    @cached_property
    def _marginals(self) -> Marginals:
        return Marginals(self.tree, self.distribution)

    def marginal(self, subset: Sequence[int]) -> Floats:
        """The expected counts of all combinations of values of these columns, axes in the order of `subset`.

        Args:
            subset: Different columns, by number.

        Returns:
            An array with one axis for each column.

        Raises:
            InvalidValue: If the columns are not different columns of the model.

        >>> from farthing.inference.graphical import Measured, fit_graphical
        >>> model = fit_graphical((2, 2), [Measured((1,), [25.0, 75.0], 1.0)], 100)
        >>> model.marginal((1, 0)).round(1)
        array([[12.5, 12.5],
               [37.5, 37.5]])
        """
        columns = tuple(int(column) for column in subset)
        if len(set(columns)) != len(columns) or not set(columns) <= set(range(len(self.sizes))):
            raise InvalidValue("subset", columns, f"must be different columns from 0 to {len(self.sizes) - 1}")
        return self.total * self._marginals.table(columns)

    def marginals(self, subsets: Iterable[Sequence[int]]) -> dict[Subset, Floats]:
        """The tables of many sets of columns; what they have in common is worked out once.

        Args:
            subsets: Sets of columns, by number.

        Returns:
            For each set its array of expected counts.

        Raises:
            InvalidValue: If a set is not of different columns of the model.
        """
        return {tuple(subset): self.marginal(subset) for subset in subsets}

    def query(self, masks: Mapping[int, ArrayLike]) -> float:
        """The expected number of rows in a conjunction: for each column, which of its values count.

        Args:
            masks: For a column an array of truth values, one for each of its values, or of numbers to multiply by.

        Returns:
            The expected number of rows.

        Raises:
            InvalidValue: If a column or the size of a mask is not the model's.

        >>> from farthing.inference.graphical import Measured, fit_graphical
        >>> model = fit_graphical((2, 3), [Measured((0,), [25.0, 75.0], 1.0)], 100)
        >>> round(model.query({0: [False, True], 1: [True, True, False]}), 6)
        50.0
        """
        factors = {int(column): np.asarray(mask, dtype=float) for column, mask in masks.items()}
        for column, factor in factors.items():
            if not 0 <= column < len(self.sizes):
                raise InvalidValue("column", column, f"must be from 0 to {len(self.sizes) - 1}")
            if factor.shape != (self.sizes[column],):
                raise InvalidValue("mask", factor.shape, f"must have {self.sizes[column]} values for column {column}")
        return self.total * self._marginals.expectation(factors)

    def rows(self, count: int | None = None, generator: np.random.Generator | None = None) -> NDArray[np.int64]:
        """Synthetic rows, one code for each column.

        The rows are post-processing: their randomness need not be secret, and is taken from the system by default.

        Args:
            count: How many rows; as many as the total says by default.
            generator: Where the randomness comes from.

        Returns:
            An array with one row for each row.

        Raises:
            InvalidValue: If `count` is not a whole number >= 0, or so large that the rows would not fit.

        >>> from farthing.inference.graphical import Measured, fit_graphical
        >>> model = fit_graphical((2, 3), [Measured((1,), [10.0, 30.0, 60.0], 1.0)], 100)
        >>> np.bincount(model.rows()[:, 1])
        array([10, 30, 60])
        """
        wanted = round(self.total) if count is None else int(count)
        if not wanted >= 0:
            raise InvalidValue("count", count, "must be a whole number >= 0")
        if not wanted * max(len(self.sizes), 1) <= _MOST_VALUES:
            raise InvalidValue(
                "count",
                wanted,
                f"must be at most {_MOST_VALUES // max(len(self.sizes), 1):,} of these columns",
            )
        return sampled_rows(self.tree, self.distribution, wanted, generator or np.random.default_rng())
