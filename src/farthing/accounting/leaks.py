"""The part of delta that leaks outright, and what it leaves for the rest.

A leaky randomized response reveals its bit with probability delta_i. Leaks compose on their own:
    1 - delta_g = prod(1 - delta_i) * (1 - D(epsilon_g)),
so epsilon_g is the least x with D(x) <= 1 - (1 - delta_g) / prod(1 - delta_i). When the right side is negative no
epsilon exists. The quotient cancels badly when delta_g is close to the leak, so it is formed in balls, with more bits
until its sign is certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.accounting.charges import Chunk
from farthing.accounting.transforms import Array
from farthing.numerics import Bounds
from farthing.numerics.balls import down, precision, up

_MANY = 4096  # distinct deltas beyond which they are summed in NumPy, with its error bound, not in balls


class Target(NamedTuple):
    """Bounds on log of what D may be; -inf is zero, and NaN in `low` marks a delta that is (maybe) infeasible."""

    low: float
    high: float

    @property
    def infeasible(self) -> bool:
        """No epsilon exists at this delta."""
        return math.isnan(self.high)


class Leaks(NamedTuple):
    """The distinct positive deltas with their multiplicities."""

    deltas: Array
    counts: NDArray[np.int64]


def collect_leaks(chunks: Sequence[Chunk]) -> Leaks:
    """All leaks of the chunks, equal ones joined."""
    parts = [
        (chunk.deltas[chunk.deltas > 0], chunk.counts[chunk.deltas > 0]) for chunk in chunks if chunk.leaky
    ]
    deltas = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0)
    if not len(deltas):
        return Leaks(np.zeros(0), np.zeros(0, dtype=np.int64))
    counts = np.concatenate([part[1] for part in parts])
    distinct, inverse = np.unique(deltas, return_inverse=True)
    totals = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, inverse, counts)
    return Leaks(distinct, totals)


def log_kept(leaks: Leaks) -> Any:
    """A ball around log prod(1 - delta_i), at the working precision."""
    if len(leaks.deltas) > _MANY:
        terms = leaks.counts * np.log1p(-leaks.deltas)
        total = float(np.sum(terms))
        return flint.arb(total, 2.0**-45 * -total)
    return sum((int(n) * (-flint.arb(float(d))).log1p() for d, n in zip(*leaks, strict=True)), flint.arb(0))


def leak_of(leaks: Leaks) -> Bounds:
    """1 - prod(1 - delta_i)."""
    if not len(leaks.deltas):
        return Bounds(0.0, 0.0)
    with precision(128):
        leak = -log_kept(leaks).expm1()
        return Bounds(max(0.0, down(leak)), min(1.0, up(leak)), float(leak.mid()))


def target_of(leaks: Leaks, delta: float) -> Target:
    """log of 1 - (1 - delta) / prod(1 - delta_i)."""
    if not len(leaks.deltas):
        if delta == 0:
            return Target(-math.inf, -math.inf)
        return Target(math.nextafter(math.log(delta), -math.inf), math.nextafter(math.log(delta), math.inf))
    for bits in (128, 512, 2048):
        with precision(bits):
            room = -((-flint.arb(delta)).log1p() - log_kept(leaks)).expm1()
            if room > 0:
                if room.rel_accuracy_bits() > 60 or bits == 2048 or len(leaks.deltas) > _MANY:
                    return Target(down(room.log()), up(room.log()))
            elif room < 0:
                return Target(math.nan, math.nan)
            elif room.is_finite() and bits == 2048:
                high = up(room.upper().log()) if room.upper() > 0 else -math.inf
                return _exactly(leaks, delta) or Target(math.nan, high)
    return Target(math.nan, math.inf)


def _exactly(leaks: Leaks, delta: float) -> Target | None:
    """Decide in rationals whether delta is exactly the leak; None when that would take too long."""
    if int(leaks.counts.sum()) > 256:
        return None
    kept = Fraction(1)
    for leak, count in zip(*leaks, strict=True):
        kept *= (1 - Fraction(float(leak))) ** int(count)
    difference = kept - (1 - Fraction(delta))
    if difference == 0:
        return Target(-math.inf, -math.inf)
    return Target(math.nan, math.nan) if difference < 0 else None
