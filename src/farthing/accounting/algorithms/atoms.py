"""The atoms engine: every transcript, by meeting in the middle.

Statement:
    Let S = sum e_i. The outcome in which the responses of a set B are untruthful has, with e(B) = sum of e_i in B,
    loss S - 2 e(B) and probability p exp(-e(B)) under one hypothesis, p exp(-S + e(B)) under the other, where
    p = prod 1 / (1 + exp(-e_i)).
    With a = 2 e(B1), b = 2 e(B2) over two halves of the charges and y = S - x,
        D(x) = p * sum over a + b < y of (exp(-(a + b) / 2) - exp(-y + (a + b) / 2)).
    Sorting one half and keeping prefix sums costs 2^(k/2) instead of 2^k.
    On a lattice of span d every depth is a whole multiple of d. The number of sets B2 of each depth below y follows
    from adding one charge after the other, in y / d additions each; B1 then holds only a few of the largest charges.
Source: Murtagh & Vadhan, arXiv:1507.03113, Theorem 1.5, regrouped; Horowitz & Sahni 1974 for the halves.
Assumes: pure randomized responses; x >= 0; S <= 1300 so that no exponential overflows.
Direction: both. All sums have positive terms, so their relative error is bounded term by term; the depths a and b
    and S are each off by at most `blur`, which moves x by three times that.
Checked by: tests/theorems/test_atoms.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.inversion import Curve
from farthing.accounting.lattice import Lattice
from farthing.accounting.loss_transforms import Array, Transform

_U = 2.0**-53
_MOST_DEPTHS = 1e7
_BLOCK, _SHORTEST_BLOCK = 1 << 15, 1 << 12
_LISTED = 16


@dataclass(frozen=True, eq=False)
class Atoms:
    """Both halves, the second one sorted with its prefix sums."""

    depth: Array
    log_multiplicity: Array | None
    other: Array | float  # sorted depths, or the span of a lattice of them
    prefix_low: Array
    prefix_high: Array
    top: float
    log_mass: float
    blur: float
    relative: float
    lowest: float = -math.inf  # the least x whose atoms are all here

    @classmethod
    def of(cls, transform: Transform) -> Atoms:
        """Enumerate the two halves of the charges."""
        items = sorted(
            zip(transform.epsilons.tolist(), transform.weights.tolist(), strict=True),
            key=lambda item: -item[1],
        )
        halves: list[list[tuple[float, int]]] = [[], []]
        sizes = [1, 1]
        for e, n in items:
            side = 0 if sizes[0] <= sizes[1] else 1
            halves[side].append((e, int(n)))
            sizes[side] *= int(n) + 1
        depth, log_multiplicity = _enumerated(halves[0])
        order = np.argsort(depth, kind="stable")  # sorted look-ups are several times faster
        depth = depth[order]
        log_multiplicity = None if log_multiplicity is None else log_multiplicity[order]
        other, other_log = _enumerated(halves[1])
        order = np.argsort(other, kind="stable")
        other = other[order]
        many = 0.0 if other_log is None else other_log[order]
        top, log_mass = transform.top()
        k = len(items) + 2
        # Each depth is a sum of at most k rounded products; epsilons themselves may be off by 2^-52.
        blur = (2 * k + 8) * _U * 2 * top
        relative = 2.0**-44 + 4 * math.sqrt(max(sizes)) * _U + 4 * blur + 2.0**-46 * float(transform.weights.sum())
        return cls(
            depth,
            log_multiplicity,
            other,
            _prefix(np.exp(many - other / 2)),
            _prefix(np.exp(many + other / 2)),
            top,
            log_mass,
            blur,
            relative,
        )

    @classmethod
    def on_lattice(cls, transform: Transform, lattice: Lattice, lowest: float) -> Atoms:
        """Count the atoms with a loss of `lowest` or more by their depth."""
        top, log_mass = transform.top()
        block = math.isqrt(math.floor((top - lowest) / lattice.span)) + 2
        size = block * block
        listed, counted = _divided(transform.weights, lattice)
        first = np.sort(_enumerated([(float(m), 1) for m in lattice.multiples[listed].tolist()])[0] / 2)  # exact
        counts = _counted(lattice.multiples[counted], transform.weights[counted], size)
        weight = _powers(lattice.span / 2, size)
        # The depths lie between those of two exact lattices, of steps 2^-51 apart; each addition rounds once.
        blur = 2.0**-50 * top
        number = float(transform.weights.sum())
        relative = 2.0**-44 + 4 * math.sqrt(size) * _U + 4 * blur + 2 * number * _U
        return cls(
            first[first < size] * lattice.span,
            None,
            lattice.span,
            _prefix(counts / weight),
            _prefix(np.multiply(counts, weight, out=weight)),
            top,
            log_mass,
            blur,
            relative,
            lowest,
        )

    def _sums(self, x: float) -> tuple[float, float]:
        """The two positive sums whose difference is D(x) / p."""
        y = self.top - x
        if isinstance(self.other, float):
            room = np.clip(np.ceil((y - self.depth) / self.other), 0, len(self.prefix_low)).astype(np.int64)
        else:
            room = np.searchsorted(self.other, y - self.depth, side="left")
        inside = room > 0
        room, depth = room[inside] - 1, self.depth[inside]
        many = 0.0 if self.log_multiplicity is None else self.log_multiplicity[inside]
        plus = float(np.sum(np.exp(many - depth / 2) * self.prefix_low[room]))
        minus = float(np.sum(np.exp(many + depth / 2 - y) * self.prefix_high[room]))
        return plus, minus

    def log_delta(self, x: float) -> Curve:
        """log D(x) from below and from above."""
        if not x - 3 * self.blur >= self.lowest:
            return Curve(self.log_delta(self.lowest + 4 * self.blur).low, 0.0)
        plus, minus = self._sums(x - 3 * self.blur)
        high = plus - minus + self.relative * (plus + minus)
        plus, minus = self._sums(x + 3 * self.blur)
        low = plus - minus - self.relative * (plus + minus)
        slack = 2.0**-46 * (1 + abs(self.log_mass))
        return Curve(
            self.log_mass + math.log(low) - slack if low > 0 else -math.inf,
            min(0.0, self.log_mass + math.log(high) + slack) if high > 0 else -math.inf,
        )

    def slope(self, x: float) -> float:
        """-d log D / dx: the second sum over the difference."""
        plus, minus = self._sums(x)
        return minus / (plus - minus) if plus > minus > 0 else 1.0

    def root(self, log_target: float, start: float) -> float:
        """The x where D(x) is the target, by Newton in exp(x), in which D is convex; no error bounds."""
        target = math.exp(log_target - self.log_mass)
        low, high = max(self.lowest, 0.0), self.top
        x = start if low < start < high else low
        for _ in range(200):
            plus, minus = self._sums(x)
            value = plus - minus - target
            if value > 0:
                low = x
            else:
                high = x
            # d/dx D = -(the second sum), so d/d exp(x) is that over exp(x).
            fresh = x + math.log1p(value / minus) if minus > 0 and value > -minus else low
            if not low < fresh < high:
                fresh = (low + high) / 2
            if abs(value) <= 4e-16 * (plus + minus) or abs(fresh - x) <= 4e-16 * x or high - low <= 2e-16 * high:
                return x
            x = fresh
        return x


def _enumerated(items: list[tuple[float, int]]) -> tuple[Array, Array | None]:
    """All depths 2 e(B) of one half, and the logs of how often each occurs (None when once each)."""
    depth = np.zeros(1)
    repeated = any(n > 1 for _, n in items)
    many = np.zeros(1) if repeated else None
    for e, n in items:
        steps = 2 * e * np.arange(n + 1)
        depth = (depth[:, None] + steps).ravel()
        if many is not None:
            binomials = np.array(
                [math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) for j in range(n + 1)]
            )
            many = (many[:, None] + binomials).ravel()
    return depth, many


def lattice_work(transform: Transform, lattice: Lattice, lowest: float) -> float:
    """How many additions `Atoms.on_lattice` would make; infinite where its numbers would overflow, or not fit."""
    top, log_mass = transform.top()
    depth = top - lowest
    size = depth / lattice.span
    if not (transform.only_responses and depth <= 300 and log_mass >= -300 and size <= _MOST_DEPTHS):
        return math.inf
    _, counted = _divided(transform.weights, lattice)
    multiples, weights = lattice.multiples[counted], transform.weights[counted]
    return float(np.dot(np.minimum(np.cumsum(multiples * weights), size), weights))


def _divided(weights: Array, lattice: Lattice) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The charges whose sets are listed, a few of the largest, and those that are counted, in rising order."""
    order = np.argsort(lattice.multiples)
    listed = order[-_LISTED:][weights[order[-_LISTED:]] == 1]
    return listed, order[~np.isin(order, listed)]


def _powers(rate: float, size: int) -> Array:
    """exp(rate j) for j = 0 ... size - 1, as products of two table entries."""
    fine, coarse = np.exp(rate * np.arange(1024)), np.exp(rate * 1024 * np.arange(-(-size // 1024)))
    powers: Array = np.multiply.outer(coarse, fine).ravel()[:size]
    return powers


def _counted(multiples: NDArray[np.int64], weights: Array, size: int) -> Array:
    """How many sets of responses have each depth 0, 1 ... size - 1, in spans: exact, or rounded once an addition."""
    counts = np.zeros(size)
    counts[0] = 1.0
    end = 1  # nothing lies there or beyond so far
    for m, times in zip(multiples.tolist(), weights.tolist(), strict=True):
        block = min(m, _BLOCK) if m >= _SHORTEST_BLOCK else size  # NumPy copies what overlaps
        for _ in range(int(times)):
            end = min(end + m, size)
            for high in range(end, m, -block):
                low = max(high - block, m)
                counts[low:high] += counts[low - m : high - m]
    return counts


def _prefix(values: Array) -> Array:
    """Prefix sums in blocks, so that the relative error grows with the square root of the length; maybe in place."""
    size = len(values)
    block = max(1, math.isqrt(size))
    rows = -(-size // block)
    padded = values if rows * block == size else np.concatenate([values, np.zeros(rows * block - size)])
    grid = padded.reshape(rows, block)
    np.cumsum(grid, axis=1, out=grid)
    grid += np.concatenate([[0.0], np.cumsum(grid[:-1, -1])])[:, None]
    result: Array = grid.ravel()[:size]
    return result
