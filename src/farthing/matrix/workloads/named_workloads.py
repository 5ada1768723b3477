"""Products: every query of one workload together with every query of another, over other axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import Floats
from farthing.matrix.workloads.interval_queries import AllRanges, Identity, Prefix, SomeRanges, Total
from farthing.matrix.workloads.workload import Workload, checked_columns, default_columns, whole_size


@dataclass(frozen=True, eq=False)
class Union(Workload):
    """The queries of all parts, one part after the other.

    Answers and variances are always those of the queries as they were asked, whatever the weights.

    Args:
        parts: Workloads over the same cells.
        weights: How much each part matters when a strategy is chosen: they scale its rows in `gram`, `gram_times` and
            `trace`, and nothing else.

    >>> from farthing.matrix.workloads import prefix, total
    >>> workload = union(prefix(3), total(3), weights=(1.0, 2.0))
    >>> workload.answers([1, 2, 4])
    array([1., 3., 7., 7.])
    >>> workload.gram()[0]
    array([7., 6., 5.])
    """

    parts: tuple[Workload, ...]
    weights: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape that all parts share."""
        return self.parts[0].shape

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The axes that all parts share."""
        return self.parts[0].columns

    @property
    def queries(self) -> int:
        """The queries of all parts."""
        return sum(part.queries for part in self.parts)

    @property
    def trace(self) -> float:
        """The traces of the parts, weighted."""
        return sum(w * w * part.trace for w, part in zip(self.weights, self.parts, strict=True))

    def times(self, vectors: Floats) -> Floats:
        """The parts' answers, one after the other."""
        return np.concatenate([part.times(vectors) for part in self.parts])

    def transposed_times(self, values: Floats) -> Floats:
        """The sum over the parts."""
        sums = np.zeros((self.cells, values.shape[1]))
        stops = list(accumulate(part.queries for part in self.parts))
        for part, stop in zip(self.parts, stops, strict=True):
            sums += part.transposed_times(values[stop - part.queries : stop])
        return sums

    def diagonals(self, covariances: Floats) -> Floats:
        """The parts' variances, one after the other."""
        return np.concatenate([part.diagonals(covariances) for part in self.parts])

    def _gram_times(self, vectors: Floats) -> Floats:
        sums = np.zeros_like(vectors)
        for weight, part in zip(self.weights, self.parts, strict=True):
            sums += weight * weight * part._gram_times(vectors)
        return sums

    def _gram(self) -> Floats:
        matrix = np.zeros((self.cells, self.cells))
        for weight, part in zip(self.weights, self.parts, strict=True):
            matrix += weight * weight * part._gram()
        return matrix

    def label(self, i: int) -> str:
        """The label of the query in its part."""
        place = self._check_query(i)
        for part in self.parts[:-1]:
            if place < part.queries:
                return part.label(place)
            place -= part.queries
        return self.parts[-1].label(place)

    def renamed(self, columns: tuple[str, ...]) -> Union:
        """The same union over axes of other names."""
        return Union(tuple(part.renamed(columns) for part in self.parts), self.weights)

    def _digest_parts(self) -> tuple[object, ...]:
        return ("union", *(part.digest for part in self.parts), *map(float.hex, self.weights))


def union(*parts: Workload, weights: Sequence[float] | None = None) -> Union:
    """The queries of all parts together.

    Args:
        parts: Workloads over the same cells.
        weights: How much each part matters when a strategy is chosen; all the same by default.

    Returns:
        The workload.

    Raises:
        InvalidValue: If the parts have different shapes or columns, or a weight is not > 0.

    >>> from farthing.matrix.workloads import identity, prefix
    >>> workload = union(prefix(100, column="age"), identity(100))
    >>> workload.queries, workload.label(150)
    (200, 'age = 50')
    """
    if not parts or not all(isinstance(part, Workload) for part in parts):
        raise InvalidValue("parts", parts, "must be workloads", "for example union(prefix(64), identity(64))")
    shapes = [part.shape for part in parts]
    if len(set(shapes)) != 1:
        raise InvalidValue(
            "parts", shapes, "must all be over the same shape", "use product with total for axes left out"
        )
    factors = (1.0,) * len(parts) if weights is None else tuple(float(weight) for weight in weights)
    if len(factors) != len(parts) or not all(1e-50 <= weight <= 1e50 for weight in factors):
        rule = f"must be {len(parts)} numbers from 1e-50 to 1e50, one for each part"
        raise InvalidValue("weights", weights, rule)
    plain = default_columns(len(shapes[0]))
    named = {part.columns for part in parts if part.columns != plain}
    if len(named) > 1:
        raise InvalidValue("parts", sorted(named), "must all be over the same columns", "use renamed")
    columns = named.pop() if named else plain
    flat: list[Workload] = []
    scales: list[float] = []
    for part, weight in zip(parts, factors, strict=True):
        inner = zip(part.parts, part.weights, strict=True) if isinstance(part, Union) else ((part, 1.0),)
        for own, own_weight in inner:
            flat.append(own if own.columns == columns else own.renamed(columns))
            scales.append(weight * own_weight)
    return Union(tuple(flat), tuple(scales))


@dataclass(frozen=True, eq=False)
class Product(Workload):
    """The Kronecker product of its factors: W = W1 x W2 x ..., each over axes of its own.

    Args:
        factors: Workloads over different columns.

    >>> from farthing.matrix.workloads import identity, prefix
    >>> workload = product(prefix(3, column="age"), identity(2, column="sex"))
    >>> workload.shape, workload.queries
    ((3, 2), 6)
    >>> workload.answers([[1, 2], [0, 3], [5, 0]])
    array([1., 2., 1., 5., 6., 5.])
    >>> workload.label(3)
    'age < 2 and sex = 1'
    """

    factors: tuple[Workload, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shapes of the factors, one after the other."""
        return tuple(size for factor in self.factors for size in factor.shape)

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The axes of the factors, one after the other."""
        return tuple(name for factor in self.factors for name in factor.columns)

    @property
    def queries(self) -> int:
        """The product of the factors' numbers of queries."""
        return math.prod(factor.queries for factor in self.factors)

    @property
    def trace(self) -> float:
        """The product of the factors' traces."""
        return math.prod(factor.trace for factor in self.factors)

    def times(self, vectors: Floats) -> Floats:
        """Factor by factor, those that shrink the numbers first."""
        order = sorted(range(len(self.factors)), key=lambda f: self.factors[f].queries / self.factors[f].cells)
        return self._along(vectors, [f.cells for f in self.factors], [f.times for f in self.factors], order)

    def transposed_times(self, values: Floats) -> Floats:
        """Factor by factor, those that shrink the numbers first."""
        order = sorted(range(len(self.factors)), key=lambda f: self.factors[f].cells / self.factors[f].queries)
        sizes, steps = [f.queries for f in self.factors], [f.transposed_times for f in self.factors]
        return self._along(values, sizes, steps, order)

    def _gram_times(self, vectors: Floats) -> Floats:
        sizes, steps = [f.cells for f in self.factors], [f._gram_times for f in self.factors]
        return self._along(vectors, sizes, steps, range(len(self.factors)))

    @staticmethod
    def _along(
        vectors: Floats,
        sizes: Sequence[int],
        steps: Sequence[Callable[[Floats], Floats]],
        order: Sequence[int],
    ) -> Floats:
        """Each step applied along its own axis of the numbers."""
        block = vectors.reshape(*sizes, vectors.shape[1])
        for axis in order:
            front = np.moveaxis(block, axis, 0)
            done = steps[axis](np.ascontiguousarray(front).reshape(front.shape[0], -1))
            block = np.moveaxis(done.reshape(-1, *front.shape[1:]), 0, axis)
        return np.ascontiguousarray(block).reshape(-1, vectors.shape[1])

    def _gram(self) -> Floats:
        matrix: Floats = np.ones((1, 1))
        for factor in self.factors:
            matrix = np.asarray(np.kron(matrix, factor._gram()), dtype=float)
        return matrix

    def diagonals(self, covariances: Floats) -> Floats:
        """Factor by factor: the pair of axes of a factor becomes one axis of its queries, at the end."""
        sizes = [factor.cells for factor in self.factors]
        block = covariances.reshape(*sizes, *sizes, covariances.shape[2])
        for done, factor in enumerate(self.factors):
            left = len(sizes) - done
            front = np.moveaxis(block, left, 1)
            variances = factor.diagonals(np.ascontiguousarray(front).reshape(*front.shape[:2], -1))
            block = np.moveaxis(variances.reshape(-1, *front.shape[2:]), 0, -1)
        return np.asarray(block.reshape(covariances.shape[2], -1).T)

    def label(self, i: int) -> str:
        """The labels of the factors' queries, joined."""
        rest, texts = self._check_query(i), []
        for factor in reversed(self.factors):
            rest, own = divmod(rest, factor.queries)
            texts.append(factor.label(own))
        return joined_text(reversed(texts))

    def renamed(self, columns: tuple[str, ...]) -> Product:
        """The same product over axes of other names."""
        names = checked_columns(columns, len(self.shape))
        stops = list(accumulate(len(factor.shape) for factor in self.factors))
        starts = [0, *stops[:-1]]
        return Product(tuple(f.renamed(names[a:b]) for f, a, b in zip(self.factors, starts, stops, strict=True)))

    def _digest_parts(self) -> tuple[object, ...]:
        return ("product", *(factor.digest for factor in self.factors))


def joined_text(texts: Iterable[str]) -> str:
    """Conditions joined by `and`; conditions on nothing are left out.

    >>> joined_text(["age < 3", "all rows", "sex = 1"]), joined_text(["all rows", "all rows"])
    ('age < 3 and sex = 1', 'all rows')
    """
    return " and ".join(text for text in texts if text != "all rows") or "all rows"


def product(*factors: Workload, columns: Sequence[str] | None = None) -> Product:
    """Every combination of one query from each factor, over the axes of all of them.

    Args:
        factors: Workloads over different columns.
        columns: New names for all axes.

    Returns:
        The workload.

    Raises:
        InvalidValue: If a factor is not a workload, or two axes have the same name.

    >>> from farthing.matrix.workloads import prefix, total
    >>> product(prefix(64), prefix(10)).columns
    ('x0', 'x1')
    >>> product(prefix(64), total(10), columns=("age", "sex")).label(17)
    'age < 18'
    """
    if not factors or not all(isinstance(factor, Workload) for factor in factors):
        raise InvalidValue("factors", factors, "must be workloads", "for example product(prefix(64), identity(2))")
    flat = tuple(
        inner for factor in factors for inner in (factor.factors if isinstance(factor, Product) else (factor,))
    )
    workload = Product(flat)
    axes = len(workload.shape)
    if columns is not None:
        return workload.renamed(tuple(columns))
    if len(set(workload.columns)) == axes:
        return workload
    plain = set(default_columns(1)) | set(default_columns(axes))
    if set(workload.columns) <= plain:  # nobody named anything
        return workload.renamed(default_columns(axes))
    raise InvalidValue("columns", workload.columns, "must all be different", "give them as columns=(...)")


def prefix(n: int, column: str = "x") -> Prefix:
    """All prefixes of n cells: the cumulative histogram, `x < 1` to `x < n`.

    Args:
        n: How many cells there are.
        column: The name of the axis.

    Returns:
        The workload.

    Raises:
        InvalidValue: If `n` is not a whole number >= 1.

    >>> prefix(4).answers([5, 0, 2, 1])
    array([5., 5., 7., 8.])
    """
    return Prefix(whole_size("n", n), column)


def all_ranges(n: int, column: str = "x") -> AllRanges:
    """All n (n + 1) / 2 ranges of neighbouring cells.

    Args:
        n: How many cells there are.
        column: The name of the axis.

    Returns:
        The workload.

    Raises:
        InvalidValue: If `n` is not a whole number >= 1.

    >>> workload = all_ranges(1024)
    >>> workload.queries, workload.label(0), workload.label(1023), workload.label(524_799)
    (524800, 'x = 0', 'x < 1024', 'x = 1023')
    """
    return AllRanges(whole_size("n", n), column)


def ranges(n: int, pairs: ArrayLike | Iterable[tuple[int, int]] | None = None, column: str = "x") -> SomeRanges:
    """The ranges lo <= cell < hi for pairs (lo, hi), half-open like Python's slices.

    Args:
        n: How many cells there are.
        pairs: The ranges, each (lo, hi) with 0 <= lo < hi <= n.
        column: The name of the axis.

    Returns:
        The workload.

    Raises:
        InvalidValue: If a pair is not of this form.

    >>> workload = ranges(100, [(0, 18), (18, 65), (65, 100)], column="age")
    >>> [workload.label(i) for i in range(3)]
    ['age < 18', '18 <= age < 65', '65 <= age < 100']
    >>> ranges(100, [(90, 101)])
    Traceback (most recent call last):
    farthing.errors.InvalidValue: pairs=(90, 101): must have 0 <= lo < hi <= 100; pairs are half-open, (lo, hi)
        holds the cells lo to hi - 1.
    """
    example = "write ranges(n, pairs), for example ranges(100, [(10, 25)])"
    size = whole_size("n", n, example)
    if pairs is None:
        raise InvalidValue("pairs", None, "must be (lo, hi) pairs", example)
    listed = np.asarray(pairs if isinstance(pairs, np.ndarray) else list(pairs))  # type: ignore[arg-type]
    if listed.ndim != 2 or listed.shape[1] != 2 or not len(listed):
        raise InvalidValue("pairs", pairs, "must be one or more (lo, hi) pairs", example)
    if listed.dtype.kind not in "iu":
        raise InvalidValue("pairs", listed.dtype, "must be whole numbers", "number the cells 0 to n - 1")
    wrong = ~((listed[:, 0] >= 0) & (listed[:, 0] < listed[:, 1]) & (listed[:, 1] <= size))
    if np.any(wrong):
        raise InvalidValue(
            "pairs",
            tuple(int(edge) for edge in listed[np.argmax(wrong)]),
            f"must have 0 <= lo < hi <= {size}",
            "pairs are half-open, (lo, hi) holds the cells lo to hi - 1",
        )
    lows, highs = (np.array(listed[:, side], dtype=np.int64) for side in (0, 1))
    return SomeRanges(size, column, lows, highs)


def identity(*sizes: int, column: str = "x", columns: Sequence[str] | None = None) -> Workload:
    """Every cell by itself: the histogram, or the whole table of several columns.

    Args:
        sizes: How many cells each axis has.
        column: The name of a single axis.
        columns: The names of several axes.

    Returns:
        The workload.

    Raises:
        InvalidValue: If a size is not a whole number >= 1, or the names do not fit.

    >>> identity(3).answers([5, 0, 2])
    array([5., 0., 2.])
    >>> identity(4, 5, columns=("sex", "age")).label(7)
    'sex = 1 and age = 2'
    """
    return _over_axes(Identity, sizes, column, columns)


def total(*sizes: int, column: str = "x", columns: Sequence[str] | None = None) -> Workload:
    """All cells together, one query.

    Args:
        sizes: How many cells each axis has.
        column: The name of a single axis.
        columns: The names of several axes.

    Returns:
        The workload.

    Raises:
        InvalidValue: If a size is not a whole number >= 1, or the names do not fit.

    >>> total(3).answers([5, 0, 2])
    array([7.])
    >>> total(4, 5).shape
    (4, 5)
    """
    return _over_axes(Total, sizes, column, columns)


def _over_axes(
    kind: type[Identity] | type[Total], given: Sequence[object], column: str, columns: Sequence[str] | None
) -> Workload:
    """One factor for each axis; sizes may also come as one tuple."""
    listed = given[0] if len(given) == 1 and isinstance(given[0], tuple | list) else given
    sizes = [whole_size("n", size) for size in listed]
    if not sizes:
        raise InvalidValue("n", given, "must be a number of cells for each axis", "for example identity(64)")
    names = checked_columns(tuple(columns), len(sizes)) if columns is not None else None
    if len(sizes) == 1:
        return kind(sizes[0], names[0] if names else column)
    factors = (kind(size, name) for size, name in zip(sizes, names or default_columns(len(sizes)), strict=True))
    return product(*factors)
