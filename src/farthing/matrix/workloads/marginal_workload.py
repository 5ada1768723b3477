"""Marginals: counts of every combination of values of some columns, for several sets of columns at once.

Only `answers` and the other products with vectors over all cells need the whole domain. Counting queries, labels and
`answers_from` work on domains of any size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import Floats
from farthing.matrix.workloads.condition_language import language
from farthing.matrix.workloads.interval_queries import Identity, Total
from farthing.matrix.workloads.named_workloads import Product, joined_text
from farthing.matrix.workloads.workload import Workload, checked_columns, default_columns, whole_size

Subset = tuple[int, ...]
_MOST_SUBSETS = 2**17


@dataclass(frozen=True, eq=False)
class Marginals(Workload):
    """One table for each subset of the axes, subset after subset, each flat in C order.

    Args:
        shape: How many values each column has.
        columns: The names of the columns.
        subsets: Which tables, each by the numbers of its columns.

    >>> workload = marginals({"sex": 2, "age": 3}, way=1)
    >>> workload.subsets, workload.queries
    (((0,), (1,)), 5)
    >>> workload.answers([[1, 2, 0], [0, 3, 1]])
    array([3., 4., 1., 5., 1.])
    >>> workload.label(4)
    'age = 2'
    """

    shape: tuple[int, ...]
    columns: tuple[str, ...]
    subsets: tuple[Subset, ...]

    @cached_property
    def slices(self) -> dict[Subset, slice]:
        """Where the answers of each subset stand.

        >>> marginals((2, 3), way=1).slices
        {(0,): slice(0, 2, None), (1,): slice(2, 5, None)}
        """
        places, at = {}, 0
        for subset in self.subsets:
            places[subset] = slice(at, at + self.table_size(subset))
            at = places[subset].stop
        return places

    def table_shape(self, subset: Subset) -> tuple[int, ...]:
        """The sizes of the axes of one table.

        Args:
            subset: The numbers of the table's columns.

        Returns:
            One size for each of them.
        """
        return tuple(self.shape[axis] for axis in subset)

    def table_size(self, subset: Subset) -> int:
        """The number of cells of one table.

        Args:
            subset: The numbers of the table's columns.

        Returns:
            The product of their sizes.
        """
        return math.prod(self.table_shape(subset))

    @property
    def queries(self) -> int:
        """The cells of all tables."""
        return sum(map(self.table_size, self.subsets))

    @property
    def trace(self) -> float:
        """Every table counts every cell of the domain once."""
        return float(len(self.subsets) * self.cells)

    @cached_property
    def parts(self) -> tuple[Product, ...]:
        """The tables as products: single values of the columns of a subset, totals of the others."""
        return tuple(
            Product(
                tuple(
                    (Identity if axis in subset else Total)(size, name)
                    for axis, (size, name) in enumerate(zip(self.shape, self.columns, strict=True))
                )
            )
            for subset in self.subsets
        )

    def tables(self, values: ArrayLike) -> dict[Subset, Floats]:
        """Values of all queries as one table for each subset.

        Args:
            values: One number for each query.

        Returns:
            For each subset an array with one axis for each column.

        Raises:
            InvalidValue: If there is not one number for each query.

        >>> marginals((2, 2), way=1).tables([3.0, 4.0, 1.0, 6.0])
        {(0,): array([3., 4.]), (1,): array([1., 6.])}
        """
        flat = np.asarray(values, dtype=float)
        if flat.shape != (self.queries,):
            raise InvalidValue("values", flat.shape, f"must be ({self.queries},) numbers")
        return {own: flat[place].reshape(self.table_shape(own)) for own, place in self.slices.items()}

    def answers_from(self, tables: Mapping[tuple[int, ...] | tuple[str, ...], ArrayLike]) -> Floats:
        """The answers of all queries from one table for each subset, by numbers of axes or names of columns.

        Args:
            tables: One array for each subset.

        Returns:
            One number for each query.

        Raises:
            InvalidValue: If a table is missing, is not the workload's, or has another shape.

        >>> workload = marginals({"sex": 2, "age": 3}, way=1)
        >>> workload.answers_from({("age",): [1, 5, 1], ("sex",): [3, 4]})
        array([3., 4., 1., 5., 1.])
        """
        numbers = {name: axis for axis, name in enumerate(self.columns)}
        answers = np.full(self.queries, np.nan)
        left = set(self.subsets)
        for key, table in tables.items():
            subset = tuple(numbers.get(axis, -1) if isinstance(axis, str) else axis for axis in key)
            array = np.asarray(table, dtype=float)
            if subset not in self.slices or array.size != self.table_size(subset):
                raise InvalidValue("tables", key, "must be tables of the workload's subsets, one number a cell")
            answers[self.slices[subset]] = array.reshape(-1)
            left.discard(subset)
        if left:
            raise InvalidValue("tables", sorted(left)[0], "is missing", "give one table for each subset")
        return answers

    # Axes of one cell hold no information and would only use up the number of axes that NumPy allows.

    @cached_property
    def _live(self) -> tuple[int, ...]:
        return tuple(axis for axis, size in enumerate(self.shape) if size > 1)

    @cached_property
    def _live_shape(self) -> tuple[int, ...]:
        return tuple(self.shape[axis] for axis in self._live)

    def _others(self, subset: Subset) -> tuple[int, ...]:
        return tuple(place for place, axis in enumerate(self._live) if axis not in subset)

    def times(self, vectors: Floats) -> Floats:
        """Sums over the other axes, table by table."""
        block = vectors.reshape(*self._live_shape, vectors.shape[1])
        tables = [block.sum(axis=self._others(own)).reshape(-1, vectors.shape[1]) for own in self.subsets]
        return np.concatenate(tables)

    def transposed_times(self, values: Floats) -> Floats:
        """Every table spread over the other axes."""
        product = np.zeros((*self._live_shape, values.shape[1]))
        for subset, place in self.slices.items():
            sizes = [size if self._live[p] in subset else 1 for p, size in enumerate(self._live_shape)]
            product += values[place].reshape(*sizes, values.shape[1])
        return product.reshape(-1, values.shape[1])

    def _gram_times(self, vectors: Floats) -> Floats:
        block = vectors.reshape(*self._live_shape, vectors.shape[1])
        product = np.zeros_like(block)
        for subset in self.subsets:
            product += block.sum(axis=self._others(subset), keepdims=True)
        return product.reshape(vectors.shape)

    def _gram(self) -> Floats:
        matrix = np.zeros((self.cells, self.cells))
        for part in self.parts:
            matrix += part._gram()
        return matrix

    def diagonals(self, covariances: Floats) -> Floats:
        """Sums over pairs of cells that agree on the subset."""
        axes, many = len(self._live), covariances.shape[2]
        block = covariances.reshape(*self._live_shape, *self._live_shape, many)
        variances = []
        for subset in self.subsets:
            inner = [place for place, axis in enumerate(self._live) if axis in subset]
            second = [place if place in inner else axes + place for place in range(axes)]
            places = [*range(axes), *second, 2 * axes]
            summed = np.einsum(block, places, [*inner, 2 * axes])  # type: ignore[arg-type]
            variances.append(np.asarray(summed, dtype=float).reshape(-1, many))
        return np.concatenate(variances)

    def label(self, i: int) -> str:
        """The values that the query asks for, one for each column of its subset."""
        place = self._check_query(i)
        for subset, own in self.slices.items():
            if place < own.stop:
                values = np.unravel_index(place - own.start, self.table_shape(subset)) if subset else ()
                names = (language().column_text(self.columns[axis]) for axis in subset)
                return joined_text([f"{name} = {value}" for name, value in zip(names, values, strict=True)])
        raise AssertionError("every query is in a table")

    def renamed(self, columns: tuple[str, ...]) -> Marginals:
        """The same tables over columns of other names."""
        return replace(self, columns=checked_columns(columns, len(self.shape)))

    def _digest_parts(self) -> tuple[object, ...]:
        return ("marginals", self.shape, self.subsets)


def marginals(
    domain: Mapping[str, int] | Sequence[int],
    way: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    up_to: bool = False,
    subsets: Iterable[Sequence[int] | Sequence[str]] | None = None,
) -> Marginals:
    """The tables of several columns, and all their cells as queries.

    Args:
        domain: How many values each column has: a mapping, or a shape with `columns` for the names.
        way: How many columns a table has.
        columns: The names of the columns, for a shape.
        up_to: Whether to add the tables of fewer columns.
        subsets: Which tables, by columns, instead of `way`.

    Returns:
        The workload.

    Raises:
        InvalidValue: If neither or both of `way` and `subsets` are given, or a column is not in the domain.

    >>> marginals({"sex": 2, "age": 74, "race": 5}, way=2).subsets
    ((0, 1), (0, 2), (1, 2))
    >>> marginals((2, 74, 5), way=1, up_to=True).subsets
    ((), (0,), (1,), (2,))
    >>> marginals({"sex": 2, "age": 74}, subsets=[("age",), ("sex", "age")]).queries
    222
    """
    if isinstance(domain, Mapping):
        if columns is not None:
            raise InvalidValue("columns", columns, "must not be given twice", "the mapping names them already")
        columns, sizes = tuple(domain), tuple(domain.values())
    elif isinstance(domain, str) or not isinstance(domain, Sequence | np.ndarray):
        raise InvalidValue("domain", domain, "must say how many values each column has", "give {'sex': 2, ...}")
    else:
        sizes = tuple(domain)
    shape = tuple(whole_size("domain", size, "give {'sex': 2, ...}") for size in sizes)
    names = default_columns(len(shape)) if columns is None else checked_columns(tuple(columns), len(shape))
    if not shape:
        raise InvalidValue("domain", domain, "must have one or more columns")
    if (way is None) == (subsets is None):
        raise InvalidValue("way", way, "must be given if subsets are not", "for example way=2")
    chosen = _of_way(way, len(shape), up_to) if subsets is None else _listed(subsets, names)
    return Marginals(shape, names, chosen)


def conjunctions(
    domain: Mapping[str, int] | Sequence[int],
    way: int,
    *,
    columns: Sequence[str] | None = None,
    up_to: bool = False,
) -> Marginals:
    """All conjunctions of `way` conditions `column = value` on different columns: the cells of the marginals.

    Args:
        domain: How many values each column has: a mapping, or a shape with `columns` for the names.
        way: How many columns a conjunction speaks of.
        columns: The names of the columns, for a shape.
        up_to: Whether to add the conjunctions of fewer columns.

    Returns:
        The workload.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> workload = conjunctions({"smokes": 2, "drinks": 2, "runs": 2}, 2)
    >>> workload.queries, workload.label(5)
    (12, 'smokes = 0 and runs = 1')
    """
    return marginals(domain, way, columns=columns, up_to=up_to)


def _of_way(way: int | None, axes: int, up_to: bool) -> tuple[Subset, ...]:
    if isinstance(way, bool) or not isinstance(way, int | np.integer) or not 1 <= way <= axes:
        rule = f"must be a whole number from 1 to {axes}, the number of columns"
        raise InvalidValue("way", way, rule, "subsets=[()] asks for the total alone" if way == 0 else "")
    ways = range(way + 1) if up_to else (way,)
    if sum(math.comb(axes, own) for own in ways) > _MOST_SUBSETS:
        raise InvalidValue("way", way, f"must give at most {_MOST_SUBSETS:,} tables", "list subsets instead")
    return tuple(subset for own in ways for subset in combinations(range(axes), own))


def _listed(subsets: Iterable[Sequence[int] | Sequence[str]], names: tuple[str, ...]) -> tuple[Subset, ...]:
    numbers: dict[object, int] = {name: axis for axis, name in enumerate(names)}
    numbers.update((axis, axis) for axis in range(len(names)))
    distinct: dict[Subset, None] = {}
    for subset in subsets:
        own = [subset] if isinstance(subset, str) else list(subset)
        if not all(axis in numbers for axis in own) or len(set(own)) != len(own):
            raise InvalidValue("subsets", subset, f"must be different columns among {', '.join(names)}")
        distinct[tuple(sorted(numbers[axis] for axis in own))] = None
    if not distinct or len(distinct) > _MOST_SUBSETS:
        raise InvalidValue("subsets", len(distinct), f"must be 1 to {_MOST_SUBSETS:,} sets of columns")
    return tuple(distinct)
