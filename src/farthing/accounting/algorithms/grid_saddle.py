"""Where a query needs the grid: tilt, region and step. Nothing here is proven; a bad choice only widens a bound.

Each pair is sampled at some nodes (losses and log P-masses), from which come the cumulants K(c) = log E[exp(c L)] and
a saddle-point approximation of the composed curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from farthing.accounting.algorithms.grid_cells import Bulk
from farthing.accounting.algorithms.grid_pairs import LossPair
from farthing.accounting.loss_transforms import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, eq=False)
class Nodes:
    """A pair as a list of losses and log masses, good enough to plan with."""

    loss: Array
    log_mass: Array
    count: int


class Plan(NamedTuple):
    """A tilt `rate`, the loss `x` and log D(x) that belong to it, and the spread of the tilted sum."""

    rate: float
    x: float
    log_delta: float
    spread: float


def nodes_of(pair: LossPair, count: int) -> Nodes:
    """The pair that bounds from above, at its atoms and on panels of its density."""
    pair = pair if pair.dominating is None else pair.dominating
    loss, log_mass = [pair.atoms.loss], [pair.atoms.log_p]
    if pair.density is not None:
        density = pair.density
        edges = [density.low]
        while edges[-1] < density.high:
            width = 1.5 / float(density.steepness(np.array([edges[-1]]))[0])
            edges.append(min(density.high, edges[-1] + max(width, (density.high - density.low) * 1e-4)))
        ends = np.array(edges)
        half = np.diff(ends) / 2
        y = ((ends[:-1] + half)[:, None] + half[:, None] * _NODES).ravel()
        loss.append(density.loss(y))
        log_mass.append(density.log_p_and_q(y)[0] + (np.log(half)[:, None] + np.log(_WEIGHTS)).ravel())
    return Nodes(np.concatenate(loss), np.concatenate(log_mass), count)


def cumulants(nodes: Sequence[Nodes], rate: float) -> tuple[float, float, float]:
    """K(rate) of the sum of all copies, and its first two derivatives."""
    value = first = second = 0.0
    for distribution in nodes:
        exponent = distribution.log_mass + rate * distribution.loss
        peak = float(np.max(exponent))
        weight = np.exp(np.maximum(exponent - peak, -200.0))  # subnormal numbers would be slow
        total = float(np.sum(weight))
        mean = float(np.sum(weight * distribution.loss)) / total
        value += distribution.count * (peak + math.log(total))
        first += distribution.count * mean
        second += distribution.count * float(np.sum(weight * (distribution.loss - mean) ** 2)) / total
    return value, first, second


def plan_for_delta(nodes: Sequence[Nodes], log_delta: float) -> Plan:
    """The saddle at which D is about exp(log_delta)."""
    return _search(nodes, lambda plan: plan.log_delta <= log_delta)


def plan_for_loss(nodes: Sequence[Nodes], x: float) -> Plan:
    """The saddle that belongs to the loss x."""
    return _search(nodes, lambda plan: plan.x >= x)


def _search(nodes: Sequence[Nodes], reached: Callable[[Plan], bool]) -> Plan:
    # Tilted that hard, every single distribution has settled on its largest loss.
    largest = [float(np.max(np.abs(distribution.loss))) for distribution in nodes]
    least = min((loss for loss in largest if loss > 0), default=1.0)
    # ... and beyond the second bound rate * loss would lose its digits.
    low, high = math.log(1e-4), math.log(min(300.0 / max(least, 1e-100) + 10.0, 1e10 / max(*largest, 1e-100)))
    while high - low > 0.02:
        middle = (low + high) / 2
        if reached(plan_at(nodes, math.exp(middle))):
            high = middle
        else:
            low = middle
    return plan_at(nodes, math.exp(high))


def plan_at(nodes: Sequence[Nodes], c: float) -> Plan:
    """The loss, D and spread that belong to the tilt c."""
    value, first, second = cumulants(nodes, c)
    x = first - 1 / c - 1 / (c + 1)
    curvature = second + 1 / c**2 + 1 / (c + 1) ** 2
    log_delta = value - c * x - math.log(c) - math.log(c + 1) - 0.5 * math.log(2 * math.pi * curvature)
    return Plan(c, x, log_delta, math.sqrt(max(second, 0.0)))


def common_lattice(pairs: Sequence[LossPair]) -> float | None:
    """A step such that the atoms of each pair are whole steps apart, or None when there is none.

    >>> from farthing.accounting.algorithms.dominating_pairs import loss_pair
    >>> from farthing.privacy import RandomizedResponse
    >>> common_lattice([loss_pair(RandomizedResponse(e), "remove", 50.0) for e in (0.5, 0.75)])
    0.5
    """
    if any(pair.density is not None or pair.dominating is not None for pair in pairs):
        return None
    gaps = np.concatenate([np.abs(pair.atoms.loss - pair.atoms.loss[0]) for pair in pairs])
    gaps = np.unique(gaps[gaps > 0])
    if not len(gaps):
        return None
    tolerance = 1e-11 * float(gaps[-1])
    step = float(gaps[0])
    for _ in range(200):
        rest = np.abs(gaps - np.rint(gaps / step) * step)
        worst = float(np.max(rest))
        if worst <= tolerance:
            return step
        step = float(np.min(rest[rest > tolerance]))
        if step < 1e-7 * float(gaps[-1]):
            return None
    return None


def bulk_of(nodes: Nodes, rate: float, levels: int = 16) -> Bulk:
    """Where the tilted distribution needs the full grid.

    Cells 2^k times wider cost 4^k times the error, so they may hold 2^-(3k+3) of the mass on either side; but the
    tilt must not vary much across any of them.
    """
    order = np.argsort(nodes.loss)
    loss = nodes.loss[order]
    exponent = (nodes.log_mass + rate * nodes.loss)[order]
    peak = float(np.max(exponent))
    weight = np.exp(np.maximum(exponent - peak, -200.0))
    below = np.cumsum(weight) / np.sum(weight)
    above = np.cumsum(weight[::-1])[::-1] / np.sum(weight)
    # A density may end beyond its first and last node, by less than these are from their neighbours; choices have much
    # of their mass there.
    gaps = np.diff(loss) if len(loss) > 1 else np.zeros(1)
    ends = np.concatenate([[loss[0] - gaps[0]], loss, [loss[-1] + gaps[-1]]])
    low, high = [], []
    for k in range(1, levels + 1):
        small = 2.0 ** -(3 * k)
        low.append(float(ends[int(np.searchsorted(below, small))]))
        high.append(float(ends[int(np.searchsorted(-above, -small)) + 1]))
    # Whatever lies below this loss has no weight after the tilt, even with all of the P-mass or all of the Q-mass.
    level = peak + math.log(float(np.sum(weight))) - 60 - math.log(nodes.count)
    return Bulk(low, high, 0.25 / (1 + rate), min(level / rate, level / (rate + 1)))
