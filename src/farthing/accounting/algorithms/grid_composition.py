"""One composition on one grid: distributions built, tilted, added up, and handed over as an upper and a lower curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from farthing.accounting.algorithms.grid_cells import (
    Bulk,
    Index,
    LowerDistribution,
    UpperDistribution,
    lower_distribution,
    upper_distribution,
)
from farthing.accounting.algorithms.grid_curves import LowerCurve, UpperCurve, Window, composed_log_infinite
from farthing.accounting.algorithms.grid_fourier import (
    FEW_TAPS,
    Tails,
    TiltedDistribution,
    circular_sum,
    lost_mass,
    tails,
    tilted,
)
from farthing.accounting.algorithms.grid_pairs import LossPair
from farthing.accounting.algorithms.grid_saddle import Nodes, Plan, bulk_of, common_lattice
from farthing.accounting.loss_transforms import Array
from farthing.numerics import Bounds

_LOG_ERROR = 2.0**-44  # of a logarithm of total mass


@dataclass(frozen=True, eq=False)
class Part:
    """A pair, how often it is composed, and the nodes it was planned with."""

    pair: LossPair
    count: int
    nodes: Nodes

    @property
    def is_sparse(self) -> bool:
        """Whether adding it directly is cheaper than transforming it."""
        return self.pair.density is None and self.count * 2 * len(self.pair.atoms.loss) <= FEW_TAPS

    @property
    def offset(self) -> float:
        """A loss that lies on this pair's grid: an atom, if there is one."""
        loss = self.pair.atoms.loss
        return float(loss[np.argmin(np.abs(loss))]) if len(loss) else 0.0


class Curves(NamedTuple):
    """Both bounds of a composed curve, from a grid of `step` with that many `cells`."""

    upper: UpperCurve
    lower: LowerCurve
    step: float
    cells: int
    exact: bool  # all losses lie on the grid, so a finer one would not help


def composed_curves(parts: Sequence[Part], plan: Plan, step: float, most_cells: int, tolerance: float) -> Curves:
    """The composition of `parts`, tilted as planned, on a grid as near to `step` as `most_cells` allow.

    Statement:
        With distributions that dominate (are dominated by) each pair, the composed distribution dominates (is dominated
        by) the composed pair; cells of the sum are known up to `absolute` and `relative` errors and up to the mass
        outside the window.
    Source: grid_cells.upper_distribution, grid_cells.lower_distribution, grid_fourier.circular_sum; Chernoff's bound
        for the window.
    Assumes: all parts are of the same direction.
    Direction: `upper` bounds from above, `lower` from below, at every real epsilon.
    Checked by: tests/theorems/test_grid_composition.py
    """
    rate = plan.rate
    bulks = [bulk_of(part.nodes, rate) for part in parts]
    # exp(-need) may lie outside the window: little next to what lies above x, which is about 1 / (rate * spread), and
    # of which a part 1 / rate counts.
    need = 6.0 + math.log1p(rate * plan.spread) + math.log1p(rate) - math.log(tolerance)
    room = _room(parts, plan, need + 8.0)
    lattice = common_lattice([part.pair for part in parts])
    if lattice is not None and room / lattice < most_cells:
        step, need = lattice, need + 8.0
    else:
        finest = max(_finest(part, bulk, most_cells) for part, bulk in zip(parts, bulks, strict=True))
        step = _aligned(parts, max(step, room / most_cells, finest))
    while True:
        upper = [
            upper_distribution(part.pair, step, part.offset, bulk) for part, bulk in zip(parts, bulks, strict=True)
        ]
        split = _tilted(parts, [(each.index, each.log_mass) for each in upper], step, rate, 1.0)
        reach = tails(split, step, rate)
        if (reach.top(need) - reach.bottom(need)) / step <= 2 * most_cells:
            break
        step *= 2  # the room was underestimated; memory comes first
    window = _window(parts, step, reach, need)
    upper_curve = _upper_curve(parts, upper, split, reach, window, rate)
    lower = [lower_distribution(part.pair, step, part.offset, bulk) for part, bulk in zip(parts, bulks, strict=True)]
    return Curves(upper_curve, _lower_curve(parts, lower, window, step, rate), step, window.cells, step == lattice)


def _upper_curve(
    parts: Sequence[Part],
    upper: Sequence[UpperDistribution],
    split: Sequence[TiltedDistribution],
    reach: Tails,
    window: Window,
    rate: float,
) -> UpperCurve:
    counts = [part.count for part in parts]
    return UpperCurve(
        window=window,
        sums=circular_sum(split, window.start, window.cells),
        rate=rate,
        log_scale=_scale(split),
        outside=reach.outside(*window.certain_ends) + lost_mass(split),
        shift=math.fsum(n * each.shift for n, each in zip(counts, upper, strict=True)) * (1 + 1e-12),
        log_infinite=_infinite([each.log_mass for each in upper], upper, counts, 1.0),
    )


def _lower_curve(
    parts: Sequence[Part], lower: Sequence[LowerDistribution], window: Window, step: float, rate: float
) -> LowerCurve:
    merged_p = _tilted(parts, [(each.index, each.log_p) for each in lower], step, rate, -1.0)
    merged_q = _tilted(parts, [(each.index, each.log_q) for each in lower], step, rate + 1, 1.0)
    return LowerCurve(
        window=window,
        p=circular_sum(merged_p, window.start, window.cells),
        q=circular_sum(merged_q, window.start, window.cells),
        rate=rate,
        log_scale=_scale(merged_p),
        excess=_scale(merged_q) - _scale(merged_p),
        outside=tails(merged_p, step, rate).outside(*window.certain_ends),
        lost_q=lost_mass(merged_q),
        log_infinite=_infinite([each.log_p for each in lower], lower, [part.count for part in parts], -1.0),
    )


def _tilted(
    parts: Sequence[Part], distributions: Sequence[tuple[Index, Array]], step: float, rate: float, sign: float
) -> list[TiltedDistribution]:
    return [
        tilted(
            index,
            part.offset + index.astype(np.float64) * step,
            log_mass,
            rate,
            part.count,
            sign,
            2.0**-50 * abs(part.offset),
        )
        for part, (index, log_mass) in zip(parts, distributions, strict=True)
    ]


def _window(parts: Sequence[Part], step: float, reach: Tails, need: float) -> Window:
    bottom, top = reach.bottom(need), reach.top(need)
    cells = fast_size(math.ceil((top - bottom) / step) + 4)
    origin = math.fsum(part.count * part.offset for part in parts)
    start = math.floor((bottom - origin) / step) - 1
    offsets = math.fsum(part.count * abs(part.offset) for part in parts)
    error = 2.0**-50 * (offsets + max(abs(start), abs(start + cells)) * step)
    return Window(origin, start, step, cells, error)


def _scale(distributions: Sequence[TiltedDistribution]) -> float:
    return math.fsum(distribution.count * distribution.log_scale for distribution in distributions)


def _infinite(
    finite: Sequence[Array],
    distributions: Sequence[UpperDistribution] | Sequence[LowerDistribution],
    counts: list[int],
    sign: float,
) -> float:
    totals = [float(np.logaddexp.reduce(masses)) + sign * _LOG_ERROR for masses in finite]
    value = composed_log_infinite(totals, [distribution.log_infinite for distribution in distributions], counts)
    return value + sign * _LOG_ERROR * (2 + abs(value)) if math.isfinite(value) else value


def _room(parts: Sequence[Part], plan: Plan, need: float) -> float:
    """About how wide the window will be."""
    distributions = [
        tilted(np.arange(len(part.nodes.loss)), part.nodes.loss, part.nodes.log_mass, plan.rate, part.count, 1.0)
        for part in parts
    ]
    reach = tails(distributions, max(plan.spread, 1e-3 / plan.rate), plan.rate)
    return reach.top(need) - reach.bottom(need)


def _finest(part: Part, bulk: Bulk, most_cells: int) -> float:
    """A step below which indices are no longer exact numbers, or a distribution alone needs too many cells."""
    losses = np.concatenate([part.nodes.loss, part.pair.atoms.loss])
    finest = 1e-14 * float(np.max(np.abs(losses)))
    if part.pair.density is None:
        return finest
    widths = [(high - low) / 2**k for k, (low, high) in enumerate(zip(bulk.low, bulk.high, strict=True))]
    return float(max(finest, max(widths) / most_cells))


def _aligned(parts: Sequence[Part], step: float) -> float:
    """A step of at most `step` that puts the atoms of the most frequent event with few atoms on the grid."""
    atomic = [part for part in parts if 2 <= len(part.pair.atoms.loss) <= 64]
    if not atomic:
        return step
    loss = max(atomic, key=lambda part: part.count).pair.atoms.loss
    gap = float(np.max(loss) - np.min(loss)) / (len(loss) - 1)
    return gap / math.ceil(gap / step) if gap > step else step


def fast_size(cells: int) -> int:
    """The next number of the form 2^a, 3 * 2^a or 5 * 2^a, at least 8.

    >>> fast_size(9), fast_size(1025)
    (10, 1280)
    """
    power = 1 << max(3, (cells - 1).bit_length())
    return min(size for size in (power, 3 * power // 4, 5 * power // 8) if size >= cells)


_MOST_STEPS = 100


def last_above(curve: Callable[[float], float], target: float, guess: float, slope: float, close: float) -> float:
    """An x >= 0 with curve(x) > target, within about `close` of the crossing; -inf when even curve(0) <= target.

    >>> x = last_above(lambda x: -x * x, -2.0, 1.0, 1.0, 1e-9)
    >>> x * x < 2.0 < (x + 1e-8) ** 2
    True
    """
    return _crossing(curve, target, guess, slope, close)[0]


def first_below(curve: Callable[[float], float], target: float, guess: float, slope: float, close: float) -> float:
    """An x >= 0 with curve(x) <= target, within about `close` of the crossing; inf when none was found.

    >>> x = first_below(lambda x: -x * x, -2.0, 1.0, 1.0, 1e-9)
    >>> (x - 1e-8) ** 2 < 2.0 <= x * x
    True
    """
    return _crossing(curve, target, guess, slope, close, below=True)[1]


def _crossing(
    curve: Callable[[float], float],
    target: float,
    guess: float,
    slope: float,
    close: float,
    below: bool = False,
) -> tuple[float, float]:
    """Secant steps inside a bracket, each aimed a little to the wanted side of the crossing."""
    low, high = -math.inf, math.inf
    at_low = at_high = math.nan
    x, before, slow = max(guess, 0.0), math.inf, 0
    for step in range(_MOST_STEPS):
        excess = curve(x) - target
        if excess <= 0:
            high, at_high = x, excess
        else:
            low, at_low = x, excess
        width = high - low
        if width < math.inf and at_low > at_high > -math.inf:
            slope = (at_low - at_high) / width
        near = slope * close
        if high == 0.0 or width <= close or (-at_high <= near if below else at_low <= near):
            break
        # From the wanted side when that is known: it is the end that has to come closer.
        start, at = (high, at_high) if high < math.inf and (below or low == -math.inf) else (low, at_low)
        x = start + at / slope + (close if below else -close) / 2
        if width < math.inf:
            slow = slow + 1 if width > before / 2 else 0
            before = width
            if not low < x < high or slow > 2:
                x, slow = (low + high) / 2, 0
        else:
            # One side only: go at least a growing step in the other direction.
            stride = close * 3.0**step
            if math.isinf(high):
                x = max(x, low + stride)
            else:
                x = max(0.0, min(x, high - stride) if math.isfinite(x) else high - stride)
        if not x < 1e30:
            break
    return low, high


def epsilon_between(curves: Curves, log_delta: float, guess: float, tolerance: float) -> Bounds:
    """Bounds on the smallest epsilon >= 0 with D(epsilon) <= exp(log_delta)."""
    slope = curves.upper.rate + 0.5
    close = 1e-11 * max(1.0, abs(guess)) if curves.exact else tolerance / 500
    high = math.inf
    if curves.upper.log_infinite <= log_delta:
        high = first_below(curves.upper.log_delta, log_delta, guess, slope, close)
    # The lower curve says something only near the loss it was tilted for.
    start = min(max(high, guess - 3 / slope), guess + 3 / slope)
    low = last_above(curves.lower.log_delta, log_delta, start, slope, close)
    low = max(low, 0.0)
    # Splitting spreads a loss twice as much as merging narrows it, so the truth is nearer to the lower bound.
    return Bounds(low, high, low + (high - low) / 3 if math.isfinite(high) else math.nan)


def delta_from_logs(low: float, high: float, slack: float) -> Bounds:
    """Bounds on a probability from bounds on its logarithm.

    >>> delta_from_logs(-2.0, -1.0, 0.0).upper > math.exp(-1.0)
    True
    """
    lower = math.exp(min(low - slack, 0.0)) * (1 - 2.0**-50) if low > -math.inf else 0.0
    upper = min(1.0, math.exp(min(high + slack, 0.0)) * (1 + 2.0**-50)) if high > -math.inf else 0.0
    if high > -math.inf:
        upper = max(upper, 5e-324)  # what underflows is not zero
    return Bounds(min(lower, upper), upper, lower + (upper - lower) / 3)


def delta_between(curves: Curves, epsilon: float) -> Bounds:
    """Bounds on D(epsilon) from the curves of a composition on a grid."""
    return delta_from_logs(curves.lower.log_delta(epsilon), curves.upper.log_delta(epsilon), 2.0**-50)
