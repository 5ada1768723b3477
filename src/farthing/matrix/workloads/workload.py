"""What every workload can do: a matrix of queries over cells that is never written out unless somebody asks."""

from __future__ import annotations

import hashlib
import math
import operator
from abc import ABC, abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.noise_terms import Floats

Places = NDArray[np.int64]

MOST_DENSE_CELLS = 8_192
"""Above this, no matrix over pairs of cells is written out."""
MOST_ENTRIES = 2**24
"""Above this, the workload's own matrix is not written out."""
MOST_QUERIES = 2**26
"""Above this, the answers of all queries are not written out."""


class Workload(ABC):
    """Linear queries over the cells of a histogram: W, of which only products are ever computed.

    `shape` is the domain, `columns` names its axes; cells are numbered in C order. Workloads are frozen, equal when
    their `digest` is, hashable, and pickle small.

    >>> from farthing.matrix.workloads import prefix
    >>> workload = prefix(4)
    >>> workload.cells, workload.queries, workload.shape, workload.columns
    (4, 4, (4,), ('x',))
    >>> workload.answers([5, 0, 2, 1])
    array([5., 5., 7., 8.])
    >>> workload.label(1)
    'x < 2'
    """

    shape: tuple[int, ...]
    columns: tuple[str, ...]

    @property
    def cells(self) -> int:
        """How many cells the domain has.

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(20).cells
        20
        """
        return math.prod(self.shape)

    @property
    @abstractmethod
    def queries(self) -> int:
        """How many queries are asked.

        >>> from farthing.matrix.workloads import all_ranges
        >>> all_ranges(4).queries
        10
        """

    @property
    @abstractmethod
    def trace(self) -> float:
        """The sum of all squared entries, weighted as in `gram`: tr(W'W).

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(4).trace
        10.0
        """

    @abstractmethod
    def times(self, vectors: Floats) -> Floats:
        """W X for the columns of X. Nothing is checked: `answers` is for callers.

        Args:
            vectors: X, of shape (cells, m).

        Returns:
            W X, of shape (queries, m).
        """

    @abstractmethod
    def transposed_times(self, values: Floats) -> Floats:
        """W' Y for the columns of Y. Nothing is checked: `transposed` is for callers.

        Args:
            values: Y, of shape (queries, m).

        Returns:
            W' Y, of shape (cells, m).
        """

    @abstractmethod
    def diagonals(self, covariances: Floats) -> Floats:
        """diag(W C W') for m matrices at once. Nothing is checked: `query_variances` is for callers.

        Args:
            covariances: The matrices, of shape (cells, cells, m).

        Returns:
            One variance for each query and matrix, of shape (queries, m).
        """

    @abstractmethod
    def label(self, i: int) -> str:
        """Query i as a condition that `WorkloadAnswers.query` understands.

        Args:
            i: The number of the query, from 0 on.

        Returns:
            The condition.

        >>> from farthing.matrix.workloads import ranges
        >>> ranges(100, [(10, 25)], column="age").label(0)
        '10 <= age < 25'
        """

    @abstractmethod
    def renamed(self, columns: tuple[str, ...]) -> Workload:
        """The same queries over axes of other names.

        Args:
            columns: One name for each axis.

        Returns:
            The workload with these names.

        Raises:
            InvalidValue: If there is not one name for each axis, or two are the same.

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(4).renamed(("age",)).label(1)
        'age < 2'
        """

    def answers(self, histogram: ArrayLike) -> Floats:
        """W x: the answer of every query on a histogram, flat or shaped like the domain.

        Args:
            histogram: One number for each cell.

        Returns:
            One number for each query.

        Raises:
            InvalidValue: If there is not one number for each cell.

        >>> from farthing.matrix.workloads import all_ranges
        >>> all_ranges(3).answers([1, 2, 4])
        array([1., 3., 7., 2., 6., 4.])
        """
        self._check_queries()
        return self.times(self._column(histogram, self.cells, "histogram"))[:, 0]

    def transposed(self, values: ArrayLike) -> Floats:
        """W' y: for every cell, the sum of the values of the queries that hold it.

        Args:
            values: One number for each query.

        Returns:
            One number for each cell.

        Raises:
            InvalidValue: If there is not one number for each query.

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(3).transposed([1.0, 10.0, 100.0])
        array([111., 110., 100.])
        """
        self._check_queries()
        return self.transposed_times(self._column(values, self.queries, "values"))[:, 0]

    def gram_times(self, vectors: ArrayLike) -> Floats:
        """W'W X for one vector, (cells,), or for the columns of a matrix, (cells, m).

        Args:
            vectors: X, one vector or several as columns.

        Returns:
            W'W X, of the shape of X.

        Raises:
            InvalidValue: If the vectors do not have one number for each cell.

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(3).gram_times([1.0, 0.0, 0.0])
        array([3., 2., 1.])
        """
        columns = np.asarray(vectors, dtype=float)
        if columns.ndim not in {1, 2} or len(columns) != self.cells:
            raise InvalidValue("vectors", columns.shape, f"must be ({self.cells},) or ({self.cells}, m) numbers")
        return self._gram_times(columns.reshape(self.cells, -1)).reshape(columns.shape)

    def _gram_times(self, vectors: Floats) -> Floats:
        return self.transposed_times(self.times(vectors))

    def gram(self) -> Floats:
        """W'W as a matrix; with importance weights w, that of diag(w) W. Refused above 8,192 cells.

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(3).gram()
        array([[3., 2., 1.], [2., 2., 1.], [1., 1., 1.]])
        """
        self._check_dense()
        return self._gram()

    def _gram(self) -> Floats:
        return self._gram_times(np.eye(self.cells))

    def matrix(self) -> Floats:
        """W as a matrix, for small workloads. Refused above 2^24 entries.

        >>> from farthing.matrix.workloads import prefix
        >>> prefix(3).matrix()
        array([[1., 0., 0.], [1., 1., 0.], [1., 1., 1.]])
        """
        if not self.cells * self.queries <= MOST_ENTRIES:
            raise InvalidValue(
                "matrix",
                f"{self.queries:,} x {self.cells:,}",
                f"must have at most {MOST_ENTRIES:,} entries",
                "use answers, transposed or gram_times",
            )
        return self.times(np.eye(self.cells))

    def query_variances(self, covariance: ArrayLike) -> Floats:
        """The variance of every query when the cells have this covariance: diag(W C W').

        Args:
            covariance: The covariance C of the cells.

        Returns:
            One variance for each query.

        Raises:
            InvalidValue: If the matrix is not (cells, cells).

        >>> import numpy as np
        >>> from farthing.matrix.workloads import prefix
        >>> prefix(4).query_variances(np.eye(4))
        array([1., 2., 3., 4.])
        """
        self._check_dense()
        self._check_queries()
        matrix = np.asarray(covariance, dtype=float)
        if matrix.shape != (self.cells, self.cells):
            raise InvalidValue("covariance", matrix.shape, f"must be ({self.cells}, {self.cells}) numbers")
        return self.diagonals(matrix[:, :, None])[:, 0]

    @cached_property
    def digest(self) -> str:
        """A hash of what is asked, the same in every process and on every machine; names of columns do not matter.

        >>> from farthing.matrix.workloads import all_ranges, prefix, ranges
        >>> prefix(4).digest == prefix(4, column="age").digest, prefix(4).digest == prefix(5).digest
        (True, False)
        """
        digest = hashlib.sha256()
        for part in self._digest_parts():
            piece = part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode()
            digest.update(f"{len(piece)}:".encode() + piece)
        return digest.hexdigest()

    @abstractmethod
    def _digest_parts(self) -> tuple[object, ...]:
        """What the digest is taken of: plain values and arrays of a fixed type, never names of columns."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        return self.digest == other.digest and self.columns == other.columns

    def __hash__(self) -> int:
        return hash((self.digest, self.columns))

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on the way is left behind.
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _column(self, values: ArrayLike, length: int, name: str) -> Floats:
        array = np.asarray(values, dtype=float)
        if array.size != length or (array.ndim > 1 and array.shape != self.shape):
            raise InvalidValue(name, array.shape, f"must be {length:,} numbers")
        return array.reshape(length, 1)

    def _check_dense(self) -> None:
        if not self.cells <= MOST_DENSE_CELLS:
            raise InvalidValue("cells", self.cells, f"must be at most {MOST_DENSE_CELLS:,} here", "use gram_times")

    def _check_queries(self) -> None:
        if not self.queries <= MOST_QUERIES:
            raise InvalidValue(
                "queries",
                self.queries,
                f"must be at most {MOST_QUERIES:,} to be answered one by one",
                "ask for fewer, for example with ranges(n, pairs); after answer_workload, "
                f"found.query({'(lo, hi)' if len(self.shape) == 1 else '{column: value}'}) answers any one of them",
            )

    def _check_query(self, i: int) -> int:
        place = operator.index(i)
        if not 0 <= place < self.queries:
            raise InvalidValue("i", i, f"must be a query: 0 to {self.queries - 1:,}")
        return place


def whole_size(name: str, value: object, way_out: str = "") -> int:
    """A number of cells: whole, at least 1, and not a truth value."""
    try:
        size = -1 if isinstance(value, bool | np.bool_) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        size = -1
    if not size >= 1:
        raise InvalidValue(name, value, "must be a number of cells, whole and >= 1", way_out)
    return size


def checked_columns(columns: tuple[str, ...], axes: int) -> tuple[str, ...]:
    """Names of axes: one for each, all different, none empty."""
    names = tuple(columns)
    if len(names) != axes or len(set(names)) != axes or not all(isinstance(n, str) and n for n in names):
        raise InvalidValue("columns", columns, f"must be {axes} different names, one for each axis")
    return names


def default_columns(axes: int) -> tuple[str, ...]:
    """The names of axes that were given none.

    >>> default_columns(1), default_columns(2)
    (('x',), ('x0', 'x1'))
    """
    return ("x",) if axes == 1 else tuple(f"x{axis}" for axis in range(axes))
