"""Noisy tables over a few columns, and where their cells lie in a junction tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.consistent_marginals import Subset
from farthing.inference.graphical.elimination import onto, placed
from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.noise_terms import Floats

Labels = NDArray[np.int64]
Key = tuple[Subset, tuple[bytes | None, ...]]


@dataclass(frozen=True)
class Measured:
    """A table over the columns `subset` with noise of one standard deviation in every cell.

    Args:
        subset: Which columns, by number.
        values: The noisy counts, one axis for each column. They may be negative, and need not agree with any other
            table.
        standard_deviation: That of the noise in each cell, > 0.
        groups: Merges values of a column before they are measured: for each column an array that gives each of its
            values a group from 0 on, or None to keep them apart.

    Raises:
        InvalidValue: If the columns repeat, the array does not fit them, or the standard deviation is not > 0.

    >>> Measured((0, 2), [[4.0, -1.0], [2.0, 5.0]], 2.0).values.shape
    (2, 2)
    >>> Measured((0,), [3.0, 7.5], 2.0, groups=([0, 0, 1, 1],)).groups
    (array([0, 0, 1, 1]),)
    """

    subset: Subset
    values: Floats
    standard_deviation: float
    groups: tuple[Labels | None, ...] = field(default=())

    def __init__(
        self,
        subset: Sequence[int],
        values: ArrayLike,
        standard_deviation: float,
        groups: Sequence[ArrayLike | None] | None = None,
    ) -> None:
        columns = tuple(int(column) for column in subset)
        table = np.array(values, dtype=float)
        if len(set(columns)) != len(columns):
            raise InvalidValue("subset", columns, "must be different columns")
        if table.ndim != len(columns) or not np.all(np.isfinite(table)):
            raise InvalidValue("values", "an array", "must be finite, with one axis for each column of the subset")
        if not 0 < standard_deviation < math.inf:
            raise InvalidValue("standard_deviation", standard_deviation, "must be finite and > 0")
        merged = (None,) * len(columns) if groups is None else tuple(groups)
        if len(merged) != len(columns):
            raise InvalidValue("groups", f"{len(merged)} entries", "must have one for each column of the subset")
        labels = tuple(
            None if axis is None else _checked_labels(axis, length)
            for axis, length in zip(merged, table.shape, strict=True)
        )
        object.__setattr__(self, "subset", columns)
        object.__setattr__(self, "values", table)
        object.__setattr__(self, "standard_deviation", float(standard_deviation))
        object.__setattr__(self, "groups", labels)

    @property
    def key(self) -> Key:
        """What was measured: the same for repeated measurements of the same sums."""
        return self.subset, tuple(None if axis is None else axis.tobytes() for axis in self.groups)


def _checked_labels(labels: ArrayLike, length: int) -> Labels:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iu" or set(array.tolist()) != set(range(length)):
        raise InvalidValue("groups", "an array", f"must use every group from 0 to {length - 1} of the table's axis")
    return array.astype(np.int64)


def combined(measured: Sequence[Measured]) -> list[Measured]:
    """Repeated measurements of the same sums as one: the mean weighted by precision, which loses nothing.

    >>> two = [Measured((0,), [1.0, 5.0], 1.0), Measured((0,), [3.0, 3.0], 1.0)]
    >>> combined(two)[0].values, round(combined(two)[0].standard_deviation, 4)
    (array([2., 4.]), 0.7071)
    """
    together: dict[Key, list[Measured]] = {}
    for one in measured:
        together.setdefault(one.key, []).append(one)
    tables = []
    for same in together.values():
        if len({one.values.shape for one in same}) > 1:
            raise InvalidValue("values", "tables", f"must have one shape for the columns {same[0].subset}")
        precisions = np.array([one.standard_deviation**-2.0 for one in same])
        mean = sum(one.values * p for one, p in zip(same, precisions / precisions.sum(), strict=True))
        tables.append(Measured(same[0].subset, mean, float(precisions.sum()) ** -0.5, same[0].groups))
    return tables


def groups_of(key: Key) -> tuple[Subset, tuple[Labels | None, ...]]:
    """The columns and their groups, from a key."""
    subset, groups = key
    return subset, tuple(None if axis is None else np.frombuffer(axis, dtype=np.int64) for axis in groups)


class _Term(NamedTuple):
    clique: int
    subset: Subset
    shape: tuple[int, ...]  # of the measured table
    labels: Labels | None  # for each cell of the table before merging, the cell it is merged into
    where: slice  # in the vector of all measured cells


class Cells:
    """The cells of several measured tables, one after another in one vector, as sums over cliques.

    >>> from farthing.inference.graphical.junction_tree import junction_tree
    >>> tree = junction_tree((2, 3), [(0, 1)])
    >>> cells = Cells(tree, [((0, 1), (None, None)), ((1,), (np.array([0, 0, 1]),))])
    >>> cells.sums([np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])])
    array([ 1.,  2.,  3.,  4.,  5.,  6., 12.,  9.])
    >>> cells.potentials(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 1.0, 2.0]))
    [array([[1., 1., 2.],
           [1., 1., 7.]])]
    """

    def __init__(self, tree: JunctionTree, measured: Sequence[tuple[Subset, Sequence[Labels | None]]]) -> None:
        self.tree = tree
        self._terms: list[_Term] = []
        end = 0
        for subset, groups in measured:
            clique = tree.smallest_clique(subset)
            assert clique is not None  # the tree was made for these subsets
            sizes = tuple(tree.sizes[column] for column in subset)
            shape, labels = _merged_cells(sizes, groups)
            self._terms.append(_Term(clique, subset, shape, labels, slice(end, end + math.prod(shape))))
            end += math.prod(shape)
        self.count = end

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the measured tables, after merging."""
        return [term.shape for term in self._terms]

    def sums(self, marginals: Sequence[Floats]) -> Floats:
        """What the measured cells hold, given the tables of the cliques."""
        sums = np.empty(self.count)
        for clique, subset, shape, labels, where in self._terms:
            table = onto(marginals[clique], self.tree.cliques[clique].columns, subset).reshape(-1)
            sums[where] = table if labels is None else np.bincount(labels, table, math.prod(shape))
        return sums

    def potentials(self, weights: Floats) -> list[Floats]:
        """On each clique, the sum of the weights of the measured cells that each of its cells is part of."""
        potentials = [np.zeros(self.tree.shape(place)) for place in range(len(self.tree.cliques))]
        for clique, subset, _, labels, where in self._terms:
            part = weights[where] if labels is None else weights[where][labels]
            table = part.reshape([self.tree.sizes[column] for column in subset])
            potentials[clique] += placed(table, subset, self.tree.cliques[clique].columns)
        return potentials


def _merged_cells(sizes: tuple[int, ...], groups: Sequence[Labels | None]) -> tuple[tuple[int, ...], Labels | None]:
    """The shape of a table after merging, and the merged cell of each cell; None where every cell is its own."""
    for size, axis in zip(sizes, groups, strict=True):
        if axis is not None and len(axis) != size:
            raise InvalidValue("groups", f"{len(axis)} values", f"must be one for each of the column's {size}")
    if all(axis is None for axis in groups):
        return sizes, None
    axes = [np.arange(size) if axis is None else axis for size, axis in zip(sizes, groups, strict=True)]
    shape = tuple(int(axis.max()) + 1 for axis in axes)
    return shape, np.ravel_multi_index(np.ix_(*axes), shape).reshape(-1)
