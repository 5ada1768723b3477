"""Hockey-stick curves read off composed grid distributions, from above and from below.

Both curves work with log D, so that deltas of 1e-300 keep all their digits. A composed cell of loss l holds the mass
weight * exp(log_scale - rate * l), and D(x) sums mass * (1 - exp(x - l)) over l > x: relative to
exp(log_scale - rate * x) all terms are of order one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.accounting.algorithms.grid_fourier import CircularSum
from farthing.accounting.loss_transforms import Array

_FAR = 42.0  # exp(-42) of the tilted mass is dropped from sums and added back as a bound
_SUM_ERROR = 2.0**-43  # pairwise sums, exponentials and the last multiplications


def log_add(first: float, second: float) -> float:
    """log(exp(first) + exp(second)) of plain floats.

    >>> log_add(-math.inf, 1.0)
    1.0
    """
    return float(np.logaddexp(first, second))


def composed_log_infinite(log_finite: list[float], log_infinite: list[float], counts: list[int]) -> float:
    """log of prod (F_i + I_i)^n_i - prod F_i^n_i: the mass at infinite loss of a composition.

    >>> round(math.exp(composed_log_infinite([math.log(0.9)], [math.log(0.1)], [2])), 12)
    0.19
    """
    finite = math.fsum(n * f for n, f in zip(counts, log_finite, strict=True))
    growth = math.fsum(
        n * float(np.logaddexp(0.0, i - f)) for n, f, i in zip(counts, log_finite, log_infinite, strict=True)
    )
    if growth == 0.0:
        # Subnormal ratios: n I / F is exact to first order and log1p(x) <= x.
        with np.errstate(divide="ignore"):
            terms = [math.log(n) + i - f for n, f, i in zip(counts, log_finite, log_infinite, strict=True)]
            return finite + float(np.logaddexp.reduce(terms))
    return finite + (math.log(math.expm1(growth)) if growth < 700 else growth)


@dataclass(frozen=True, eq=False)
class Window:
    """Losses origin + (start + k) * step of cells k = 0, 1, ...; each off by at most `error`."""

    origin: float
    start: int
    step: float
    cells: int
    error: float

    def loss(self, first: int, last: int) -> Array:
        """The losses of cells first ... last - 1."""
        return self.origin + (self.start + np.arange(first, last, dtype=np.float64)) * self.step

    def above(self, x: float) -> int:
        """A cell at or just below the first one with loss > x."""
        place = (x - self.origin) / self.step - self.start - 1
        return math.floor(min(max(place, 0.0), float(self.cells)))

    @property
    def ends(self) -> tuple[float, float]:
        """Losses of the first and the last cell."""
        low, high = (
            self.origin + self.start * self.step,
            self.origin + (self.start + self.cells - 1) * self.step,
        )
        return low, high

    @property
    def certain_ends(self) -> tuple[float, float]:
        """The ends moved inwards by their error: what lies beyond them may be outside the window."""
        low, high = self.ends
        return low + self.error, high - self.error


@dataclass(frozen=True, eq=False)
class UpperCurve:
    """An upper bound of log D(x), for any x.

    `outside` bounds the tilted mass beyond the window or dropped, `shift` is what all losses are moved up by.
    """

    window: Window
    sums: CircularSum
    rate: float
    log_scale: float
    outside: float
    shift: float
    log_infinite: float

    def log_delta(self, epsilon: float) -> float:
        """An upper bound of log D(epsilon)."""
        x = epsilon - self.shift - self.window.error
        first = self.window.above(x)
        last = min(self.window.cells, first + math.ceil(_FAR / (self.rate * self.window.step)) + 2)
        gap = self.window.loss(first, last) - x
        gap = np.maximum(gap, 0.0)
        kernel = np.exp(-self.rate * gap) * -np.expm1(-gap)
        values = self.sums.values[first:last]
        scaled = float(np.sum(values * kernel)) * (1 + self.sums.relative)
        scaled += self.sums.blur(kernel)
        beyond = 0.0
        if last < self.window.cells:
            rest = float(np.sum(self.sums.values[last:])) + self.sums.absolute * (self.window.cells - last)
            beyond = rest * (1 + self.sums.relative) * math.exp(-_FAR)
        # Outside the window the kernel is at most its maximum over all losses.
        scaled += beyond + self.outside * largest_kernel(self.rate)
        if not scaled > 0:
            return self.log_infinite
        level = self.log_scale - self.rate * x
        slack = _SUM_ERROR + 2.0**-50 * (abs(self.log_scale) + abs(self.rate * x)) + self.rate * self.window.error
        return log_add(math.log(scaled) + level + slack, self.log_infinite)


@dataclass(frozen=True, eq=False)
class LowerCurve:
    """A lower bound of log D(x), for any x, from the composed P- and Q-masses of sets of outcomes.

    The Q-distribution is tilted at rate + 1; `excess` is the difference of the two logarithmic scales, Q minus P.
    `outside` bounds the tilted P-mass beyond the window, `lost_q` the tilted Q-mass that was dropped.
    """

    window: Window
    p: CircularSum
    q: CircularSum
    rate: float
    log_scale: float
    excess: float
    outside: float
    lost_q: float
    log_infinite: float

    def log_delta(self, epsilon: float) -> float:
        """A lower bound of log D(epsilon): the best of the sets {name > j}."""
        x = epsilon
        # Names near x decide; further up everything belongs to the best set, further down nothing does.
        first = self.window.above(x - min(40 * self.window.step, 20 / self.rate))
        last = min(self.window.cells, self.window.above(x) + math.ceil(_FAR / (self.rate * self.window.step)) + 2)
        gap = self.window.loss(first, last) - x
        skipped = int(np.searchsorted(gap, max(-25 / (self.rate + 1), self.excess - 300)))
        first, gap = first + skipped, gap[skipped:]
        weight = np.exp(-self.rate * gap)
        mass_p = self.p.values[first:last] * weight
        weight_q = weight * np.exp(self.excess - gap)
        mass_q = self.q.values[first:last] * weight_q
        gains = np.cumsum((mass_p - mass_q)[::-1])
        if not len(gains) or not np.max(gains) > 0:
            return self.log_infinite
        best = len(gains) - 1 - int(np.argmax(gains))
        held_p, held_q = float(np.sum(mass_p[best:])), float(np.sum(mass_q[best:]))
        # Losses are only names here, but the weights that undo the tilt must be those of the tilt: hence their error.
        blur = _SUM_ERROR + (2 * self.rate + 1) * self.window.error + 2.0**-50 * abs(self.excess)
        sure_p = held_p * (1 - self.p.relative - blur) - self.p.blur(weight[best:]) - self.outside * float(weight[best])
        sure_q = held_q * (1 + self.q.relative + blur) + self.q.blur(weight_q[best:])
        sure_q += self.lost_q * float(weight_q[best])  # the largest of them
        scaled = sure_p - sure_q
        if not scaled > 0:
            return self.log_infinite
        level = self.log_scale - self.rate * x
        slack = _SUM_ERROR + 2.0**-50 * (abs(self.log_scale) + abs(self.rate * x))
        return log_add(math.log(scaled) + level - slack, self.log_infinite) - 2.0**-50


def largest_kernel(rate: float) -> float:
    """The maximum of exp(-rate r) (1 - exp(-r)) over r >= 0, rounded up.

    >>> round(largest_kernel(1.0), 6)
    0.25
    """
    return math.exp(rate * math.log(rate / (rate + 1))) / (rate + 1) * (1 + 1e-9) if rate > 0 else 1.0
