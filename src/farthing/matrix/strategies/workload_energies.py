"""How much of a workload lies in blocks of neighbouring cells: all that the error of a tree depends on.

For blocks of s neighbouring cells, the first block starting at cell 0 (the last one may be cut short), let P_s average
every block. The energy of a workload W at s is tr(W P_s W'), the sum over blocks B of |W 1_B|^2 / s; that of one query
q is q' P_s q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.matrix.strategies.strategy import MOST_DENSE_CELLS, Floats, Integers, Norm
from farthing.matrix.workloads.interval_queries import AllRanges, Identity, Intervals, Prefix, Total
from farthing.matrix.workloads.named_workloads import Union
from farthing.matrix.workloads.workload import Workload

Kept = NDArray[np.bool_]

_DROPPED = 1e-3
_STEPS = 400
_ROUNDS = 8


def precisions(sizes: Floats, shares: Floats, norm: Norm) -> Floats:
    """lambda_j of every level at epsilon = 1 (l1, continuous Laplace noise) or mu = 1 (l2)."""
    weights = sizes * (shares**2 / 2 if norm == "l1" else shares)
    return np.asarray(np.cumsum(weights[..., ::-1], axis=-1)[..., ::-1])


def error(sizes: Floats, details: Floats, shares: Floats, norm: Norm) -> Floats:
    """The total variance sum_j d_j / lambda_j, for one tree or for many; infinite where a detail is not measured."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = details / precisions(sizes, shares, norm)
    return np.asarray(np.sum(np.where(details > 0, terms, 0.0), axis=-1))


def best_shares(sizes: Floats, details: Floats, norm: Norm, steps: int = _STEPS, start: Floats | None = None) -> Floats:
    """The shares of least error, rows of trees at once: (trees, levels) each.

    At the optimum the error falls equally fast in every share that is not zero. Each step moves
    the shares towards that; for l2 this is the classical multiplicative algorithm of optimal design, for l1 the
    problem is not convex and the answer is a local optimum. A share that is 0 when `begun` stays 0.

    >>> sizes, details = np.array([[4.0, 1.0]]), np.array([[8.0, 8.0]])
    >>> best_shares(sizes, details, "l2").round(4)
    array([[0.1547, 0.8453]])
    """
    shares: Floats = np.full(sizes.shape, 1.0 / sizes.shape[-1]) if start is None else start
    for step in range(steps):
        following = _moved(sizes, details, shares, norm)
        change = float(np.max(np.abs(following - shares)))
        shares = following
        if change < 1e-6 and step > 8:
            break
    return shares


def converged_shares(sizes: Floats, details: Floats, norm: Norm) -> Floats:
    """The best shares of one tree, where levels that would get next to nothing are not measured at all.

    For l1 the shares sit in one of many local optima, each with its own set of measured levels: sets that leave out
    one level more, or move one level to the next size, are tried as long as one of them is better.

    >>> from farthing.matrix.strategies.tree_strategies import details_of
    >>> from farthing.matrix.workloads import prefix
    >>> sizes = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
    >>> converged_shares(np.array(sizes, dtype=float), details_of(prefix(1024), sizes), "l1").round(2)
    array([0.  , 0.  , 0.3 , 0.  , 0.  , 0.  , 0.34, 0.  , 0.  , 0.  , 0.36])
    """
    shares: Floats = best_shares(sizes[None], details[None], norm)[0]
    shares = _from_sets(sizes, details, [shares >= _DROPPED / len(shares)], shares, norm)
    if norm == "l2":  # convex: there is nothing better to be found
        return shares
    for _ in range(_ROUNDS):
        following = _from_sets(sizes, details, _nearby_sets(shares > 0), shares, norm)
        if following is shares:
            break
        shares = following
    return shares


def _nearby_sets(kept: Kept) -> list[Kept]:
    """The sets of levels that differ by one level left out, or moved to a neighbouring size; the finest stays."""
    neighbours = []
    for place in np.flatnonzero(kept[:-1]):
        without = kept.copy()
        without[place] = False
        neighbours.append(without)
        for other in (place - 1, place + 1):
            if 0 <= other < len(kept) - 1 and not kept[other]:
                moved = without.copy()
                moved[other] = True
                neighbours.append(moved)
    return neighbours


def _from_sets(sizes: Floats, details: Floats, sets: list[Kept], shares: Floats, norm: Norm) -> Floats:
    """The best shares that measure only one of the sets of levels, if they are as good as `shares`; else those."""
    # Details finer than anything measured stay unknown: such sets have no error to speak of.
    finest = int(np.flatnonzero(details > 0)[-1]) if bool(np.any(details > 0)) else 0
    usable = [members for members in sets if bool(np.any(members[finest:]))]
    if not usable:
        return shares
    many = (len(usable), len(sizes))
    starts = np.array(usable, dtype=float)
    starts /= np.sum(starts, axis=1, keepdims=True)
    wide, deep = np.broadcast_to(sizes, many), np.broadcast_to(details, many)
    tried = best_shares(wide, deep, norm, start=starts)
    errors = error(wide, deep, tried, norm)
    lowest = int(np.argmin(errors))
    # Fewer levels for the same error are better; a hair of tolerance, so that the search ends.
    fewer = np.count_nonzero(tried[lowest]) < np.count_nonzero(shares)
    limit = float(error(sizes, details, shares, norm)) * (1 + 1e-6 if fewer else 1 - 1e-6)
    return np.asarray(tried[lowest]) if errors[lowest] <= limit else shares


def _moved(sizes: Floats, details: Floats, shares: Floats, norm: Norm) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = details / precisions(sizes, shares, norm) ** 2
    # A detail that no level measures pulls endlessly at levels without a share, which stay without one.
    endless = sizes * np.cumsum(np.where(details > 0, slopes, 0.0), axis=-1)
    pulls = np.where(shares > 0, endless, 0.0)
    moved = shares * (np.cbrt(shares * pulls) if norm == "l1" else np.sqrt(pulls))
    return np.asarray(moved / np.sum(moved, axis=-1, keepdims=True))


_MOST_SAMPLED = 4096
_MOST_NUMBERS = 2**22


def energy(workload: Workload, size: int) -> float:
    """The workload's energy in blocks of `size` cells, importance weights included.

    >>> from farthing.matrix.workloads import prefix
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

    >>> from farthing.matrix.workloads import prefix
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
    energies: Floats = np.zeros(workload.queries)
    blocks = -(-workload.cells // size)
    at_once = max(1, _MOST_NUMBERS // max(workload.cells, workload.queries))
    owner = np.arange(workload.cells) // size
    for first in range(0, blocks, at_once):
        members = owner[:, None] == np.arange(first, min(first + at_once, blocks))
        energies += np.sum(workload.times(members.astype(float)) ** 2, axis=1) / size
    return energies


def squared_norms(workload: Workload) -> Floats:
    """The squared norm of every query, without importance weights.

    >>> from farthing.matrix.workloads import prefix
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
    inside = size * size * (cells * whole - size * (whole * (whole + 1) // 2))
    return (whole * _squares(size) + inside + _squares(rest)) / size


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
    return length * length * corners - (starts + blocks) * most + (blocks * cells - starts) * least - blocks * both


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
