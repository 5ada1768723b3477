"""What noises cost together, in doubles that are rounded to neither side: for searches, which charge nothing.

A planner searches with these, and `compose` decides with them what is worth proving.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.charges import Charges
from farthing.privacy.events import (
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
)

_MOST_NOISES = 4096  # Laplace noises that are listed one by one

Floats = NDArray[np.float64]

REAL_LAPLACE = 2.0**44
"""A number of steps so large that discrete Laplace noise is real Laplace noise to every digit."""


def laplace_log_moment(z: Any, epsilon: Any, steps: Any) -> Any:
    """K(z) of discrete Laplace noise on a number that moves by `steps`; at one step, of randomized response.

    >>> float(laplace_log_moment(1.0, 0.5, REAL_LAPLACE))  # ((z+1) exp(z e) + z exp(-(z+1) e)) / (2z+1), logged
    0.200...
    """
    rate = epsilon / steps
    turn = -(2 * z + 1) * rate
    ends = (1 + np.exp(turn * steps)) / (1 + np.exp(-rate))
    between = np.tanh(rate / 2) * np.exp(turn) * np.expm1(turn * (steps - 1)) / np.expm1(turn)
    return z * epsilon + np.log(ends + between)


def range_log_moment(z: Any, epsilon: Any) -> Any:
    """K(z) of a choice by exponential weights: sinh((z + 1/2) e) / ((2z + 1) sinh(e / 2)), logged.

    >>> float(range_log_moment(1.0, 0.5))
    0.081...
    """
    s = 2 * z + 1
    return z * epsilon + np.log(np.expm1(-s * epsilon) / (s * np.expm1(-epsilon)))


@dataclass(frozen=True, eq=False)
class Losses:
    """The noises of a plan as the accountant will see them, sorted by kind.

    `gaussian` is the sum of 1 / noise_multiplier^2; `laplace` and `steps` are the epsilons and sensitivities of Laplace
    noises; `ranges` and `counts` the epsilons and multiplicities of choices by exponential weights.
    """

    gaussian: float
    laplace: Floats
    steps: Floats
    ranges: Floats
    counts: Floats

    def log_moment(self, z: Any) -> Any:
        """K of all together at each z (an array of one dimension)."""
        total = z * (z + 1) * (self.gaussian / 2)
        column = z[:, None]
        if len(self.laplace):
            total = total + laplace_log_moment(column, self.laplace, self.steps).sum(axis=1)
        if len(self.ranges):
            total = total + (self.counts * range_log_moment(column, self.ranges)).sum(axis=1)
        return total

    def pull(self, saddle: float) -> float:
        """How fast the Renyi divergence of order saddle + 1 grows with the logarithm of a common factor."""
        if np.isinf(saddle):
            return self.pure
        turned = 1 + 1e-20j
        total = (saddle + 1) * self.gaussian
        if len(self.laplace):
            moved = laplace_log_moment(saddle, self.laplace * turned, self.steps).imag
            total += float(moved.sum()) / (1e-20 * saddle)
        if len(self.ranges):
            moved = self.counts * range_log_moment(saddle, self.ranges * turned).imag
            total += float(moved.sum()) / (1e-20 * saddle)
        return total

    @property
    def pure(self) -> float:
        """The sum of the epsilons; infinite with Gaussian noise."""
        if self.gaussian > 0:
            return float("inf")
        return float(self.laplace.sum() + (self.counts * self.ranges).sum())


def losses_of(charges: Charges) -> Losses | None:
    """The charges without their leaks; None where one of them is of another kind, or there are very many.

    >>> losses = losses_of(Charges(events={GaussianNoise(2.0): 3, LaplaceNoise(4.0): 1}, k=4))
    >>> losses.gaussian, losses.laplace.tolist()
    (0.75, [0.25])
    """
    gaussian, laplace, ranges = 0.0, list[tuple[float, float]](), list[tuple[float, float]]()
    if charges.k > _MOST_NOISES or any(chunk.epsilons.any() for chunk in charges.chunks):
        return None
    for event, count in charges.events.items():
        match event:
            case GaussianNoise() | DiscreteGaussianNoise():
                gaussian += count / event.noise_multiplier**2
            case LaplaceNoise():
                laplace += [(1 / event.noise_multiplier, REAL_LAPLACE)] * count
            case DiscreteLaplaceNoise():
                laplace += [(1 / event.noise_multiplier, float(event.l1_sensitivity))] * count
            case BoundedRange():
                ranges.append((event.epsilon, float(count)))
            case _:
                return None
    (epsilons, steps), (lengths, counts) = (np.array(each).reshape(-1, 2).T for each in (laplace, ranges))
    return Losses(gaussian, epsilons, steps, lengths, counts)


_WIDEST = np.exp(np.linspace(math.log(1e-3), math.log(1e9), 57))
_NEAR = np.exp(np.linspace(-0.9, 0.9, 9))
_MOST_POINTS = 1536
_NEGLIGIBLE = 1e-7  # how far epsilon may be off, relatively, for what is missing from the integral


class Cost(NamedTuple):
    """An estimate of epsilon at a delta, the saddle c it was found at, and whether the integral had died out."""

    epsilon: float
    saddle: float
    reliable: bool


def composed_cost(losses: Losses, delta: float, near: float | None = None) -> Cost:
    """Epsilon of the noises together at `delta`; `near` is a saddle to look around first.

    >>> alone = Losses(1 / 16, *(np.zeros(0) for _ in range(4)))     # Gaussian noise of multiplier 4
    >>> round(composed_cost(alone, 1e-6).epsilon, 6)
    1.060702
    """
    sum_of_epsilons = losses.pure
    if delta == 0 or sum_of_epsilons == 0:
        return Cost(sum_of_epsilons, math.inf, True)
    if _one_atom_decides(losses, delta):
        known = near is not None and math.isfinite(near)
        return Cost(sum_of_epsilons, near if known and near else _saddle(losses, delta, None)[0], True)
    c, x, spread = _saddle(losses, delta, near)
    epsilon, reliable = _root_on_line(losses, math.log(delta), c, x, spread)
    return Cost(min(epsilon, sum_of_epsilons), c, reliable)


def saddle_cost(losses: Losses, delta: float, near: float | None = None) -> tuple[float, float]:
    """Epsilon to first order, and the saddle: what steers a search."""
    if delta == 0:
        return losses.pure, math.inf
    c, x, _ = _saddle(losses, delta, near)
    return min(max(x, 1e-300), losses.pure), c


def _one_atom_decides(losses: Losses, delta: float) -> bool:
    """Whether delta is too small against the mass of the largest loss to save anything: epsilons then just add."""
    if losses.gaussian > 0 or len(losses.ranges):
        return False
    log_mass = -float(np.log1p(np.exp(-losses.laplace / losses.steps)).sum())
    # epsilon = sum + log(1 - delta / mass) at the least.
    return math.log(delta) - log_mass < math.log(_NEGLIGIBLE * losses.pure)


def _saddle(losses: Losses, delta: float, near: float | None) -> tuple[float, float, float]:
    """c, its loss x, and the spread of the tilted loss, where the first-order approximation of D(x) is delta."""
    grids = [_WIDEST] if near is None or not 0 < near < math.inf else [near * _NEAR, _WIDEST]
    target = math.log(delta)
    for grid in grids:
        # One complex step gives K and K' together.
        values = losses.log_moment(grid * (1 + 1e-20j))
        first = values.imag / (1e-20 * grid)
        second = np.maximum(np.gradient(first, grid), 0.0)
        x = first - 1 / grid - 1 / (grid + 1)
        curvature = second + 1 / grid**2 + 1 / (grid + 1) ** 2
        log_delta = values.real - x * grid - np.log(grid * (grid + 1)) - 0.5 * np.log(2 * np.pi * curvature)
        below = np.flatnonzero(log_delta <= target)
        if len(below) and below[0] > 0:
            break
    place = int(below[0]) if len(below) else len(grid) - 1
    if place == 0:
        return float(grid[0]), float(x[0]), math.sqrt(float(second[0]))
    share = (log_delta[place - 1] - target) / max(log_delta[place - 1] - log_delta[place], 1e-300)
    share = min(max(float(share), 0.0), 1.0)

    def between(values: Floats) -> float:
        return float(values[place - 1] * (1 - share) + values[place] * share)

    c = math.exp(between(np.log(grid)))
    return c, max(between(x), 0.0), math.sqrt(between(second))


def _root_on_line(losses: Losses, log_delta: float, c: float, x: float, spread: float) -> tuple[float, bool]:
    """The x with log D(x) = log_delta, by Newton on one sampled line."""
    period = max((30 - log_delta) / c, 10 * spread + 30 / (c + 1))
    step = 2 * math.pi / period
    scale = float(losses.log_moment(np.array([c]))[0].real)
    t = np.zeros(0)
    log_phi = np.zeros(0, dtype=complex)
    size = 24
    while len(t) < _MOST_POINTS:
        more = np.arange(len(t), len(t) + size) * step
        log_phi = np.concatenate((log_phi, losses.log_moment(c + 1j * more) - scale))
        t = np.concatenate((t, more))
        if float(log_phi[-8:].real.max()) < -30:
            break
        size = len(t)
    z = c + 1j * t
    weights = np.where(t == 0, 1.0, 2.0) * np.exp(log_phi.real) / (z * (z + 1))
    left_out = math.exp(float(log_phi[-(len(t) // 4) :].real.max())) / float(t[-1])
    reliable = True
    for _ in range(30):
        samples = weights * np.exp(1j * (log_phi.imag - t * x))
        total, change = float(samples.real.sum()), float((samples * z).real.sum())
        if not (total > 0 and change > 0):
            return max(x, 0.0), False
        # log D is off by at most this share, epsilon by that over the slope, which is about c.
        reliable = left_out / (total * step) < _NEGLIGIBLE * c * abs(x)
        value = math.log(step / (2 * math.pi) * total) + scale - c * x
        move = (value - log_delta) * total / change
        x += min(max(move, -spread - 2 / c), spread + 2 / c)
        if abs(move) < 1e-13 * (1 + abs(x)):
            break
    return max(x, 0.0), reliable
