"""How much of a workload lies in blocks of neighbouring cells: all that the error of a tree depends on.

For blocks of s neighbouring cells, the first block starting at cell 0 (the last one may be cut short), let P_s average
every block. The energy of a workload W at s is tr(W P_s W'), the sum over blocks B of |W 1_B|^2 / s; that of one query
q is q' P_s q.
"""

from __future__ import annotations

import numpy as np

from farthing.errors import InvalidValue
from farthing.release.strategies.base import MOST_DENSE_CELLS, Floats, Integers
from farthing.release.workloads.base import Workload
from farthing.release.workloads.intervals import AllRanges, Identity, Intervals, Prefix, Total
from farthing.release.workloads.unions import Union

_MOST_SAMPLED = 4096
_MOST_NUMBERS = 2**22


def energy(workload: Workload, size: int) -> float:
    """The workload's energy in blocks of `size` cells, importance weights included.

    >>> from farthing.release.workloads import prefix
    >>> energy(prefix(4), 1), energy(prefix(4), 2), energy(prefix(4), 4)
    (10.0, 9.0, 7.5)
    """
    if size == 1:
        return workload.trace
    if isinstance(workload, Prefix):
        return _energy_of_prefixes(workload.size, size)
    if isinstance(workload, AllRanges):
        return _energy_of_ranges(workload.size, size)
    if isinstance(workload, Identity):
        return workload.size / size
    if isinstance(workload, Total):
        whole, rest = divmod(workload.size, size)
        return whole * size + rest * rest / size
    if isinstance(workload, Union):
        pairs = zip(workload.weights, workload.parts, strict=True)
        return float(sum(weight**2 * energy(part, size) for weight, part in pairs))
    return float(np.sum(query_energies(workload, size)))


def sampled_energy(workload: Workload, size: int) -> float:
    """As `energy`, from every so-many-th query where there are many in a list: good enough to choose by."""
    if isinstance(workload, Intervals) and not isinstance(workload, Prefix | AllRanges | Identity | Total):
        step = max(1, workload.queries // _MOST_SAMPLED)
        starts, stops = workload.edges
        return float(np.sum(interval_energies(starts[::step], stops[::step], size))) * step
    return energy(workload, size)


def query_energies(workload: Workload, size: int) -> Floats:
    """The energy of every query by itself, without importance weights.

    >>> from farthing.release.workloads import prefix
    >>> query_energies(prefix(4), 2)
    array([0.5, 2. , 2.5, 4. ])
    """
    if isinstance(workload, Intervals):
        return interval_energies(*workload.edges, size)
    if isinstance(workload, Union):
        return np.concatenate([query_energies(part, size) for part in workload.parts])
    if not workload.cells <= MOST_DENSE_CELLS:
        raise InvalidValue(
            "workload", type(workload).__name__, f"must be of intervals above {MOST_DENSE_CELLS:,} cells"
        )
    found: Floats = np.zeros(workload.queries)
    blocks = -(-workload.cells // size)
    at_once = max(1, _MOST_NUMBERS // max(workload.cells, workload.queries))
    owner = np.arange(workload.cells) // size
    for first in range(0, blocks, at_once):
        members = owner[:, None] == np.arange(first, min(first + at_once, blocks))
        found += np.sum(workload.times(members.astype(float)) ** 2, axis=1) / size
    return found


def squared_norms(workload: Workload) -> Floats:
    """The squared norm of every query, without importance weights.

    >>> from farthing.release.workloads import prefix
    >>> squared_norms(prefix(4))
    array([1., 2., 3., 4.])
    """
    if isinstance(workload, Union):
        return np.concatenate([squared_norms(part) for part in workload.parts])
    sums = workload.times(np.ones((workload.cells, 1)))[:, 0]
    # With coefficients 0 and 1 a sum is a sum of squares, and only then do both add up to the same.
    if abs(float(sums.sum()) - workload.trace) <= 1e-9 * workload.trace:
        return sums
    return np.asarray(np.sum(workload.matrix() ** 2, axis=1))


def _energy_of_prefixes(cells: int, size: int) -> float:
    """Closed form: a block of L cells that ends at e is cut by L prefixes and held by the n - e after it."""
    whole, rest = divmod(cells, size)
    held = size * size * (cells * whole - size * (whole * (whole + 1) // 2))
    return (whole * _squares(size) + held + _squares(rest)) / size


def _energy_of_ranges(cells: int, size: int) -> float:
    """Closed form: cells a <= b lie together in (a + 1)(n - b) ranges, summed over the pairs of each block."""
    whole, rest = divmod(cells, size)
    last = _block_of_ranges(cells, rest, 1, whole * size, (whole * size) ** 2) if rest else 0
    # The sums over the starts of the whole blocks of 1, of the start, and of its square.
    starts = size * (whole * (whole - 1) // 2)
    squares = size * size * ((whole - 1) * whole * (2 * whole - 1) // 6)
    return (_block_of_ranges(cells, size, whole, starts, squares) + last) / size


def _block_of_ranges(cells: int, length: int, blocks: int, starts: int, squares: int) -> int:
    """The sum over blocks, and over pairs (a, b) of one block, of the ranges that hold both cells."""
    least = (length - 1) * length * (2 * length - 1) // 6  # the sum of min(a, b) within a block
    most = length * length * (length - 1) - least
    both = (length * (length - 1) // 2) ** 2
    # (t + 1)(n - t) summed over the starts t
    corners = blocks * cells + starts * (cells - 1) - squares
    return (
        length * length * corners
        - (starts + blocks) * most
        + (blocks * cells - starts) * least
        - blocks * both
    )


def interval_energies(starts: Integers, stops: Integers, size: int) -> Floats:
    """For every interval, the squared lengths of its parts in each block, over `size`."""
    if size == 1:
        return np.asarray(stops - starts, dtype=float)
    first, last = starts // size, stops // size
    blocks = (last - first).astype(float)
    head, tail = (starts - first * size).astype(float), (stops - last * size).astype(float)
    # As if the interval began with its first block; what this adds is taken away again.
    across = blocks * float(size * size) + tail * tail - head * (2 * size - head)
    within = (tail - head) ** 2
    return np.asarray(np.where(blocks == 0, within, across) / size)


def _squares(length: int) -> int:
    return length * (length + 1) * (2 * length + 1) // 6
