"""Products: every query of one workload together with every query of another, over other axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats
from farthing.release.workloads.base import Workload, checked_columns, default_columns


@dataclass(frozen=True, eq=False)
class Product(Workload):
    """The Kronecker product of its factors: W = W1 x W2 x ..., each over axes of its own.

    >>> from farthing.release.workloads import identity, prefix
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
        order = sorted(
            range(len(self.factors)), key=lambda f: self.factors[f].queries / self.factors[f].cells
        )
        return self._along(vectors, [f.cells for f in self.factors], [f.times for f in self.factors], order)

    def transposed_times(self, values: Floats) -> Floats:
        """Factor by factor, those that shrink the numbers first."""
        order = sorted(
            range(len(self.factors)), key=lambda f: self.factors[f].cells / self.factors[f].queries
        )
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
        found: Floats = np.ones((1, 1))
        for factor in self.factors:
            found = np.asarray(np.kron(found, factor._gram()), dtype=float)
        return found

    def diagonals(self, covariances: Floats) -> Floats:
        """Factor by factor: the pair of axes of a factor becomes one axis of its queries, at the end."""
        sizes = [factor.cells for factor in self.factors]
        block = covariances.reshape(*sizes, *sizes, covariances.shape[2])
        for done, factor in enumerate(self.factors):
            left = len(sizes) - done
            front = np.moveaxis(block, left, 1)
            found = factor.diagonals(np.ascontiguousarray(front).reshape(*front.shape[:2], -1))
            block = np.moveaxis(found.reshape(-1, *front.shape[2:]), 0, -1)
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
        return Product(
            tuple(f.renamed(names[a:b]) for f, a, b in zip(self.factors, starts, stops, strict=True))
        )

    def _essence(self) -> tuple[object, ...]:
        return ("product", *(factor.digest for factor in self.factors))


def joined_text(texts: Iterable[str]) -> str:
    """Conditions joined by `and`; conditions on nothing are left out.

    >>> joined_text(["age < 3", "all rows", "sex = 1"]), joined_text(["all rows", "all rows"])
    ('age < 3 and sex = 1', 'all rows')
    """
    return " and ".join(text for text in texts if text != "all rows") or "all rows"


def product(*factors: Workload, columns: Sequence[str] | None = None) -> Product:
    """Every combination of one query from each factor, over the axes of all of them.

    >>> from farthing.release.workloads import prefix, total
    >>> product(prefix(64), prefix(10)).columns
    ('x0', 'x1')
    >>> product(prefix(64), total(10), columns=("age", "sex")).label(17)
    'age < 18'
    """
    if not factors or not all(isinstance(factor, Workload) for factor in factors):
        raise InvalidValue(
            "factors", factors, "must be workloads", "for example product(prefix(64), identity(2))"
        )
    flat = tuple(
        inner
        for factor in factors
        for inner in (factor.factors if isinstance(factor, Product) else (factor,))
    )
    found = Product(flat)
    axes = len(found.shape)
    if columns is not None:
        return found.renamed(tuple(columns))
    if len(set(found.columns)) == axes:
        return found
    plain = set(default_columns(1)) | set(default_columns(axes))
    if set(found.columns) <= plain:  # nobody named anything
        return found.renamed(default_columns(axes))
    raise InvalidValue("columns", found.columns, "must all be different", "give them as columns=(...)")
