"""The optimum of each case by a route of its own, sharing no code with farthing.

Repeated epsilons: the binomial sum, in 200-bit balls. Few reals: all atoms. Many reals and noise: the inversion
integral on a fixed line, with its step halved until the answer stands still. The last is not a proof (that is what
farthing is for); it is good to about 1e-12, which is enough to tell errors of 1e-2 from errors of 1e-11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import GAUSSIAN, LAPLACE, Case

Array = np.ndarray[Any, Any]


def true_epsilon(case: Case) -> float:
    """The optimal epsilon of `case`, to about twelve digits."""
    if case.kind == "repeated":
        return _of_binomial(case.low, case.k, case.delta)
    if case.kind == "noise":
        return _of_transform(_log_transform_of_noise, case.delta)
    epsilons = case.epsilons()
    if case.k <= 20:
        return _of_atoms(epsilons, case.delta)
    thinned, weight = epsilons[:: max(1, case.k // 1000)], max(1, case.k // 1000)
    return _of_transform(
        lambda z: _log_transform_of_responses(z, epsilons),
        case.delta,
        rough=lambda z: weight * _log_transform_of_responses(z, thinned),
    )


def _of_binomial(epsilon: float, k: int, delta: float) -> float:
    """k times the same epsilon: sums over how many answers were untrue, largest loss first."""
    from flint import arb, ctx

    before = ctx.prec
    ctx.prec = 200
    try:
        e = arb(epsilon)
        p, q = 1 / (1 + (-e).exp()), 1 / (1 + e.exp())
        # Start where the tail is far below delta: 60 standard deviations are always enough, 0 is always right.
        start = max(0, int(k / (1 + math.exp(epsilon)) - 60 * math.sqrt(k) - 60))
        log_choose = arb(k + 1).lgamma() - arb(start + 1).lgamma() - arb(k - start + 1).lgamma()
        mass = (log_choose + (k - start) * p.log() + start * q.log()).exp()
        tail, other = arb(0), arb(0)  # P- and Q-mass of all larger losses
        for i in range(start, k + 1):
            loss = (k - 2 * i) * e
            # At x = this loss the curve is tail - e^x * other; below the crossing, solve for x.
            tail, other = tail + mass, other + mass * (-loss).exp()
            next_loss = loss - 2 * e
            if tail - next_loss.exp() * other > delta or next_loss < 0:
                return max(0.0, float(((tail - arb(delta)) / other).log().mid()))
            mass *= (k - i) * q / ((i + 1) * p)
        return 0.0
    finally:
        ctx.prec = before


def _of_atoms(epsilons: Array, delta: float) -> float:
    """All 2^k losses, largest first."""
    losses, masses = np.zeros(1), np.ones(1)
    for e in epsilons:
        p = 1 / (1 + math.exp(-e))
        losses = np.concatenate((losses + e, losses - e))
        masses = np.concatenate((masses * p, masses * (1 - p)))
    order = np.argsort(-losses)
    losses, masses = losses[order], masses[order]
    tail, other = np.cumsum(masses), np.cumsum(masses * np.exp(-losses))
    curve = tail[:-1] - np.exp(losses[1:]) * other[:-1]  # delta at each next smaller loss
    i = int(np.argmax(curve > delta))
    return max(0.0, math.log((tail[i] - delta) / other[i]))


def _of_transform(
    log_transform: Callable[[Array], Array], delta: float, rough: Callable[[Array], Array] | None = None
) -> float:
    """Solve D(x) = delta with D(x) the integral of M(z) e^(-xz) / (z (z+1)) over Re z = c.

    Any c > 0 is right; a `rough` transform is enough to find a good one.
    """
    c = _tilt(rough or log_transform, delta)
    scale = _width(rough or log_transform, c)
    step, answer = 0.5 * scale, math.inf
    for _ in range(8):
        nodes = _nodes(log_transform, c, step, scale)
        found = _crossing(nodes, c, step, delta)
        if abs(found - answer) < 1e-13 * max(1.0, found):
            break
        answer, step = found, step / 2
    return found


def _tilt(log_transform: Callable[[Array], Array], delta: float) -> float:
    """The c that makes the Chernoff bound on epsilon smallest, by ternary search: near the saddle is near enough."""

    def bound(c: float) -> float:
        return (float(log_transform(np.array([c + 0j]))[0].real) - math.log(delta)) / c

    low, high = 1e-3, 1e4
    for _ in range(60):
        left, right = low * (high / low) ** (1 / 3), low * (high / low) ** (2 / 3)
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return low


def _width(log_transform: Callable[[Array], Array], c: float) -> float:
    """The scale in t on which |M(c + it)| falls, from its second derivative at t = 0."""
    h = 1e-3 * c
    values = log_transform(np.array([c - h, c, c + h]) + 0j).real
    return 1 / math.sqrt(max(float(values[0] - 2 * values[1] + values[2]) / h**2, 1e-12))


def _nodes(log_transform: Callable[[Array], Array], c: float, step: float, scale: float) -> tuple[Array, Array]:
    """Points z up the line until the transform is 40 orders of e below its top, with log(M / (z (z+1)))."""
    count = math.ceil(12 * scale / step)
    z = c + 1j * step * np.arange(count)
    values = np.concatenate([log_transform(part) for part in np.array_split(z, max(1, count // 16))])
    return z, values - np.log(z) - np.log(z + 1)


def _crossing(nodes: tuple[Array, Array], c: float, step: float, delta: float) -> float:
    z, values = nodes
    weights = np.where(z.imag == 0, 0.5, 1.0) * step / math.pi
    goal = math.log(delta)

    def log_curve(x: float) -> float:
        terms = values - x * z
        top = float(terms[0].real)
        return top + math.log(max(float(np.sum(weights * np.exp(terms - top).real)), 1e-300))

    low, high = 0.0, (float(values[0].real) + math.log(c * (c + 1)) - goal) / c + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if log_curve(middle) > goal else (low, middle)
    return high


def _log_transform_of_responses(z: Array, epsilons: Array) -> Array:
    """Sum of log(cosh((z + 1/2) e) / cosh(e / 2)), through the product formula so that small e lose nothing.

    cosh(a) / cosh(b) = 1 + 2 sinh((a+b)/2) sinh((a-b)/2) / cosh(b), with (a+b)/2 = (z+1) e / 2, (a-b)/2 = z e / 2.
    """
    total = np.zeros(len(z), dtype=complex)
    for i, point in enumerate(z):
        ratio = 2 * np.sinh((point + 1) * epsilons / 2) * np.sinh(point * epsilons / 2) / np.cosh(epsilons / 2)
        total[i] = np.sum(_log1p(ratio))
    return total


def _log1p(x: Array) -> Array:
    """log(1 + x), without losing the digits of a small x."""
    result: Array = 0.5 * np.log1p(2 * x.real + x.real**2 + x.imag**2) + 1j * np.arctan2(x.imag, 1 + x.real)
    return result


def _log_transform_of_noise(z: Array) -> Array:
    total = np.zeros(len(z), dtype=complex)
    for multiplier, count in LAPLACE:
        e, a = 1 / multiplier, z + 1
        top = a / (2 * a - 1) * np.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * np.exp(-a * e)
        total += count * np.log(top)
    for multiplier, count in GAUSSIAN:
        total += count * z * (z + 1) / (2 * multiplier**2)
    return total
