"""The atoms engine: every transcript, by meeting in the middle.

Statement:
    Let S = sum e_i. The outcome in which the responses of a set B are untruthful has, with e(B) = sum of e_i in B,
    loss S - 2 e(B) and probability p exp(-e(B)) under one hypothesis, p exp(-S + e(B)) under the other, where
    p = prod 1 / (1 + exp(-e_i)).
    With a = 2 e(B1), b = 2 e(B2) over two halves of the charges and y = S - x,
        D(x) = p * sum over a + b < y of (exp(-(a + b) / 2) - exp(-y + (a + b) / 2)).
    Sorting one half and keeping prefix sums costs 2^(k/2) instead of 2^k.
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

from farthing.accounting.inversion import Curve
from farthing.accounting.loss_transforms import Array, Transform

_U = 2.0**-53


@dataclass(frozen=True, eq=False)
class Atoms:
    """Both halves, the second one sorted with its prefix sums."""

    depth: Array
    log_multiplicity: Array | None
    other: Array
    prefix_low: Array
    prefix_high: Array
    top: float
    log_mass: float
    blur: float
    relative: float

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

    def _sums(self, x: float) -> tuple[float, float]:
        """The two positive sums whose difference is D(x) / p."""
        y = self.top - x
        room = np.searchsorted(self.other, y - self.depth, side="left")
        inside = room > 0
        room, depth = room[inside] - 1, self.depth[inside]
        many = 0.0 if self.log_multiplicity is None else self.log_multiplicity[inside]
        plus = float(np.sum(np.exp(many - depth / 2) * self.prefix_low[room]))
        minus = float(np.sum(np.exp(many + depth / 2 - y) * self.prefix_high[room]))
        return plus, minus

    def log_delta(self, x: float) -> Curve:
        """log D(x) from below and from above."""
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
        low, high = 0.0, self.top
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


def _prefix(values: Array) -> Array:
    """Prefix sums in blocks, so that the relative error grows with the square root of the length."""
    size = len(values)
    block = max(1, math.isqrt(size))
    rows = -(-size // block)
    padded = np.zeros(rows * block)
    padded[:size] = values
    grid = np.cumsum(padded.reshape(rows, block), axis=1)
    before = np.concatenate([[0.0], np.cumsum(grid[:-1, -1])])
    result: Array = (grid + before[:, None]).ravel()[:size]
    return result
