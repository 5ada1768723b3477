"""The workloads people ask for, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.release.workloads.base import Workload, checked_columns, default_columns, whole_size
from farthing.release.workloads.intervals import AllRanges, Identity, Prefix, SomeRanges, Total
from farthing.release.workloads.products import product


def prefix(n: int, column: str = "x") -> Prefix:
    """All prefixes of n cells: the cumulative histogram, `x < 1` to `x < n`.

    >>> prefix(4).answers([5, 0, 2, 1])
    array([5., 5., 7., 8.])
    """
    return Prefix(whole_size("n", n), column)


def all_ranges(n: int, column: str = "x") -> AllRanges:
    """All n (n + 1) / 2 ranges of neighbouring cells.

    >>> workload = all_ranges(1024)
    >>> workload.queries, workload.label(0), workload.label(1023), workload.label(524_799)
    (524800, 'x = 0', 'x < 1024', 'x = 1023')
    """
    return AllRanges(whole_size("n", n), column)


def ranges(
    n: int, pairs: ArrayLike | Iterable[tuple[int, int]] | None = None, column: str = "x"
) -> SomeRanges:
    """The ranges lo <= cell < hi for pairs (lo, hi), half-open like Python's slices.

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

    >>> identity(3).answers([5, 0, 2])
    array([5., 0., 2.])
    >>> identity(4, 5, columns=("sex", "age")).label(7)
    'sex = 1 and age = 2'
    """
    return _over_axes(Identity, sizes, column, columns)


def total(*sizes: int, column: str = "x", columns: Sequence[str] | None = None) -> Workload:
    """All cells together, one query.

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
    factors = (
        kind(size, name) for size, name in zip(sizes, names or default_columns(len(sizes)), strict=True)
    )
    return product(*factors)
