"""A pair of distributions put onto a grid of losses: once from above, once from below.

From above, every outcome is split between the two grid points around its loss (`upper_distribution`); from below,
outcomes with nearly the same loss are merged (`lower_distribution`). Both are second order in the step. Masses are kept
as logarithms, so that nothing underflows before it is tilted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.algorithms.grid_pairs import ARGUMENT_ERROR, Atoms, Density, LossPair
from farthing.accounting.loss_transforms import Array

Index = NDArray[np.int64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
_PANEL = 0.05  # panel width times steepness; Renyi divergences add the slope of their power
_LOG_ERROR = 2.0**-43  # logarithms and exponentials on the way to the mass of a cell


@dataclass(frozen=True, eq=False)
class UpperDistribution:
    """Masses at losses offset + index * step + shift, and the logarithm of the mass at infinity.

    Read as exact real numbers they dominate the pair they were made from.
    """

    index: Index
    log_mass: Array
    log_infinite: float
    shift: float


@dataclass(frozen=True, eq=False)
class LowerDistribution:
    """P-masses from below and Q-masses from above of disjoint sets of outcomes, each labelled with an index.

    Labels need not be losses for the bound to hold: they only name the sets. `log_infinite` bounds the P-mass of
    outcomes without Q-mass from below.
    """

    index: Index
    log_p: Array
    log_q: Array
    log_infinite: float


class Bulk(NamedTuple):
    """Where a density needs the full grid: inside [low[0], high[0]]; every 2^k-th point inside [low[k], high[k]].

    No two neighbouring points are further apart than `widest`, or than one step, except that there are none below
    `floor` but the lowest.
    """

    low: list[float]
    high: list[float]
    widest: float
    floor: float


def upper_distribution(pair: LossPair, step: float, offset: float, bulk: Bulk | None = None) -> UpperDistribution:
    """A distribution on the grid that dominates the pair: connect the dots.

    Statement:
        Split the P-mass of every outcome of loss l, offset + j step <= l <= offset + (j+1) step, between these two
        grid points so that its Q-mass is kept too: the share of the upper one is (1 - e^-x) / (1 - e^-step) with
        x = l - offset - j step. (Grid points may be left out: `step` is then the distance of those around l.)
        This replaces the hockey-stick curve, as a function of e^epsilon, by its chords between grid points; the curve
        is convex, so chords lie above it. Moving mass to higher losses, adding mass, and moving mass to infinity raise
        the curve further. A curve above another at every epsilon stays above it in products.
    Source: Doroshenko, Ghazi, Kamath, Kumar & Manurangsi, arXiv:2207.04380, section 3; products: Zhu, Dong & Wang,
        arXiv:2106.08567, Theorem 10, whose proof holds for finite measures.
    Assumes: step > 0; the errors of the pair are as it states.
    Direction: upper bound, for every real epsilon.
    Checked by: tests/theorems/test_grid_distributions.py
    """
    pair = pair if pair.dominating is None else pair.dominating
    index, log_mass, slips = [], [], [0.0]
    if len(pair.atoms.loss):
        j, masses, slip = _split_atoms(pair.atoms, step, offset)
        index += j
        log_mass += masses
        slips.append(slip)
    if pair.density is not None:
        cells = _split_density(pair.density, step, offset, _grid(pair.density, step, offset, bulk))
        index += [cells.index, cells.above]
        log_mass += [cells.log_left, cells.log_right]
        slips.append(cells.slip)
    low = _grid_floor(pair, step, offset)
    if pair.log_below > -math.inf:
        # The mass cut off below lies under the lowest loss kept, hence under the next grid point.
        index.append(np.array([low + 1]))
        log_mass.append(np.array([pair.log_below]))
    log_infinite = float(np.logaddexp(pair.log_infinite, pair.log_above)) + ARGUMENT_ERROR * 4
    joined, total = _added(np.concatenate(index), np.concatenate(log_mass), 1.0)
    return UpperDistribution(joined, total, log_infinite, max(slips))


def lower_distribution(pair: LossPair, step: float, offset: float, bulk: Bulk | None = None) -> LowerDistribution:
    """Sets of outcomes with nearly equal loss, with their P-mass from below and Q-mass from above.

    Statement:
        Let T name the set an outcome falls in. For every set of names S and every epsilon the pair has
        H_epsilon(P || Q) >= P(T in S) - e^epsilon Q(T in S); in a composition the same holds with T the sum of
        the names.
    Source: the definition of the hockey-stick divergence as a supremum over events; a sum of names is a function of
        the outcomes, so {T in S} is one event. (Merging is post-processing.)
    Assumes: the errors of the pair are as it states. Outcomes beyond the cuts of the pair are left out of S.
    Direction: lower bound, for every real epsilon.
    Checked by: tests/theorems/test_grid_distributions.py
    """
    index, log_p, log_q = [], [], []
    atoms = pair.atoms
    if len(atoms.loss):
        index.append(np.rint((atoms.loss - offset) / step).astype(np.int64))
        log_p.append(atoms.log_p - atoms.error)
        log_q.append(atoms.log_q + atoms.error)
    if pair.density is not None:
        label, mass_p, mass_q = _merged_density(pair.density, step, offset, _grid(pair.density, step, offset, bulk))
        index.append(label)
        log_p.append(mass_p)
        log_q.append(mass_q)
    names = np.concatenate(index)
    joined, total_p = _added(names, np.concatenate(log_p), -1.0)
    _, total_q = _added(names, np.concatenate(log_q), 1.0)
    return LowerDistribution(joined, total_p, total_q, pair.log_infinite - ARGUMENT_ERROR * 4)


def _grid_floor(pair: LossPair, step: float, offset: float) -> int:
    lowest = math.inf
    if len(pair.atoms.loss):
        lowest = float(np.min(pair.atoms.loss))
    if pair.density is not None:
        lowest = min(lowest, float(pair.density.loss(np.array([pair.density.low]))[0]))
    return math.floor((lowest - offset) / step)


def _added(index: Index, log_mass: Array, sign: float) -> tuple[Index, Array]:
    """Masses with equal index added; rounded up for sign 1, down for -1."""
    order = np.argsort(index, kind="stable")
    index, log_mass = index[order], log_mass[order]
    starts = np.flatnonzero(np.append(True, index[1:] != index[:-1]))
    total = _log_sums(log_mass, starts)
    lengths = np.diff(np.append(starts, len(index)))
    size = np.abs(np.where(np.isinf(total), 0.0, total))
    return index[starts], total + sign * (ARGUMENT_ERROR + 2.0**-48 * size + 2.0**-52 * lengths)


def _log_sums(logs: Array, starts: Index) -> Array:
    """log of the sum of exp over runs that begin at `starts`."""
    if len(starts) == len(logs):
        return logs
    peak = np.maximum.reduceat(logs, starts)
    safe = np.where(np.isinf(peak), 0.0, peak)
    lengths = np.diff(np.append(starts, len(logs)))
    sums = np.add.reduceat(np.exp(logs - np.repeat(safe, lengths)), starts)
    with np.errstate(divide="ignore"):
        # reduceat adds in order: the relative error is at most the length of the run times 2^-53.
        return safe + np.log(sums)


def _split_atoms(atoms: Atoms, step: float, offset: float) -> tuple[list[Index], list[Array], float]:
    # Losses are off by their own error and by the rounding of (loss - offset) / step.
    size = float(np.max(np.abs(atoms.loss))) + abs(offset) + step
    slip = atoms.loss_error + 2.0**-50 * size
    j = np.floor((atoms.loss - offset) / step)
    x = atoms.loss - (offset + j * step)
    # An atom within the error of a grid point is put onto it: `shift` then covers both the error and this move.
    up = x > step - slip
    x = np.where(up | (x < slip), 0.0, x)
    j = j + up
    share = np.expm1(-x) / math.expm1(-step)
    log_p = atoms.log_p + atoms.error
    with np.errstate(divide="ignore"):
        right, left = np.log(share), np.log1p(-np.minimum(share, 1.0))
    index = j.astype(np.int64)
    some = share > 0
    # The share of a split atom is that of a loss which the rounding of the share may have moved a little.
    split = 2.0**-46 * step if some.any() else 0.0
    return [index, index[some] + 1], [log_p + left, (log_p + right)[some]], 2 * slip + split


def _grid(density: Density, step: float, offset: float, bulk: Bulk | None) -> Index:
    """Grid indices from just below the lowest loss of the density to just above the highest, sparser in its tails."""
    ends = density.loss(np.array([density.low, density.high]))
    first, last = math.floor((ends[0] - offset) / step), math.ceil((ends[1] - offset) / step)
    last = max(last, first + 1)
    if bulk is None:
        return np.arange(first, last + 1, dtype=np.int64)
    lowest, first = first, min(max(first, math.floor(max((bulk.floor - offset) / step, -1e15))), last - 1)
    low = [min(max(math.floor((x - offset) / step), first), last) for x in bulk.low]
    high = [min(max(math.ceil((x - offset) / step), first), last) for x in bulk.high]
    parts = [np.arange(low[0], high[0] + 1, dtype=np.int64)]
    levels = min(len(low) - 1, max(0, math.floor(math.log2(max(bulk.widest / step, 1.0)))))
    for k in range(1, levels + 1):
        down_to, up_to = (low[k], high[k]) if k < levels else (first, last)
        below, above, stride = int(parts[0][0]), int(parts[-1][-1]), 1 << k
        parts.insert(0, np.arange(below - stride, down_to - stride, -stride, dtype=np.int64)[::-1])
        parts.append(np.arange(above + stride, up_to + stride, stride, dtype=np.int64))
        parts = [part for part in parts if len(part)]
    inner = np.concatenate(parts) if levels else np.arange(first, last + 1, dtype=np.int64)
    return np.unique(np.append(np.clip(inner, first, last), lowest))


@dataclass(frozen=True, eq=False)
class _Cells:
    index: Index
    above: Index
    log_left: Array
    log_right: Array
    slip: float


def _split_density(density: Density, step: float, offset: float, grid: Index) -> _Cells:
    index, width = grid[:-1], np.diff(grid) * step
    edges = np.empty(len(grid))
    edges[0], edges[-1] = density.low, density.high
    inner = offset + grid[1:-1].astype(np.float64) * step
    edges[1:-1] = density.coordinate(inner)
    edges = np.maximum.accumulate(edges)
    # An outcome may be filed one cell too low by the rounding of the edges: measured here, and moved into `shift`.
    inside = (edges[1:-1] > density.low) & (edges[1:-1] < density.high)
    ends = density.loss(np.array([density.low, density.high]))
    inside |= (inner > ends[0]) & (inner < ends[1])
    missed = np.abs(density.loss(edges[1:-1]) - inner) + density.loss_error(edges[1:-1])
    tails = density.loss_error(np.array([density.low, density.high]))
    slip = float(max(np.max(missed[inside], initial=0.0), np.max(tails))) + 2.0**-50 * (abs(offset) + step)
    a, b = density.sandwich()
    nonempty = edges[1:] > edges[:-1]
    y, cell, log_weight = panels(density, edges)
    log_p = density.log_p_and_q(y)[0] + log_weight
    x = density.loss(y) - (offset + index[cell] * step)
    share = np.clip(np.expm1(-x) / np.expm1(-width[cell]), 0.0, 1.0)
    starts = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    total = _log_sums(log_p, starts)
    lengths = np.diff(np.append(starts, len(cell)))
    part = np.exp(log_p - np.repeat(total, lengths))
    # The upper share: too low by the errors of the losses (relative to the step) and of the integration.
    moved = np.maximum.reduceat(density.loss_error(y), starts) + 2.0**-50 * (abs(offset) + step)
    doubt = (2 * moved + 1e-17) / step + 2.0**-44
    right = np.minimum(np.add.reduceat(part * share, starts) + doubt, 1.0)
    total = total + a + np.maximum.reduceat(density.error(y), starts) + _LOG_ERROR + 2.0**-52 * lengths
    with np.errstate(divide="ignore"):
        left, right = total + np.log1p(-right), total + np.log(right)
    return _Cells(index[nonempty], grid[1:][nonempty], left, right, slip + a + b)


def _merged_density(density: Density, step: float, offset: float, grid: Index) -> tuple[Index, Array, Array]:
    edges = np.empty(len(grid) + 1)
    edges[0], edges[-1] = density.low, density.high
    edges[1:-1] = density.coordinate(offset + (grid[:-1] + grid[1:]).astype(np.float64) * (step / 2))
    a, b = density.sandwich()
    jitter = 0.0
    if density.lattice > 0:  # a set of whole atoms: edges half-way between two of them
        edges = (np.floor(edges / density.lattice) + 0.5) * density.lattice
        jitter = 2.0**-50 * float(np.max(np.abs(edges)))
    edges = np.maximum.accumulate(edges)
    nonempty = edges[1:] > edges[:-1]
    y, cell, log_weight = panels(density, edges)
    starts = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    lengths = np.diff(np.append(starts, len(cell)))
    error = np.maximum.reduceat(density.error(y), starts) + _LOG_ERROR + 2.0**-52 * lengths
    if jitter:
        error = error + jitter / np.diff(edges)[nonempty] * 8
    log_p, log_q = (_log_sums(log + log_weight, starts) for log in density.log_p_and_q(y))
    return grid[nonempty], log_p - error - b, log_q + error + a


def panels(density: Density, edges: Array, extra: float = 0.0) -> tuple[Array, Index, Array]:
    """Five Gauss-Legendre nodes on each of enough panels in every cell: the nodes, their cell, their log weight.

    Statement:
        On a panel of width w at most _PANEL / steepness the rule is right to a relative 1e-17, for both densities, and
        for their product with a power of exp(loss) whose logarithm has a slope of at most `extra` around the panel.
    Source: its remainder is w^11 (5!)^4 / (11 (10!)^3) |f^(10)|; by Cauchy's estimate |f^(10)| <= 10! sup|f| / r^10
        over distance r, and sup|f| <= e^1.5 f (Density.steepness), so the relative error is below 7e-6 (w / r)^10.
    Assumes: edges do not decrease.
    Direction: its error is far below ARGUMENT_ERROR, which callers add.
    Checked by: tests/theorems/test_grid_distributions.py
    """
    width = np.diff(edges)
    cell = np.flatnonzero(width > 0)
    steepness = np.maximum(density.steepness(edges[:-1]), density.steepness(edges[1:])) + extra
    count = np.ceil(width[cell] * steepness[cell] / _PANEL).astype(np.int64)
    owner = np.repeat(cell, count)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    half = (width[cell] / count)[np.searchsorted(cell, owner)] / 2
    middle = edges[owner] + (2 * rank + 1) * half
    y = (middle[:, None] + half[:, None] * _NODES).ravel()
    log_weight = (np.log(half)[:, None] + np.log(_WEIGHTS)).ravel()
    return y, np.repeat(owner, 5), log_weight
