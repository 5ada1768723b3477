"""Noise whose law is known: the expected squared error of an answer that carries it, exactly.

With it the RMSE of a peer is compared as it is, without the luck of its releases; `benchmarks.mixed` checks it against
the releases first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """A function that draws one release, with the expected squared error of each of its numbers."""

    draw: Callable[[], Any]
    squares: Floats

    def __call__(self) -> Any:
        """One release."""
        return self.draw()


def laplace(scale: float, truths: Any, lower: float = -np.inf, upper: float = np.inf) -> Floats:
    """Of Laplace noise on each truth, where answers beyond the bounds are moved to them.

    A side that leaves room for a distance a has the integral of x^2 exp(-x / b) / (2 b) up to a, and a^2 beyond it:
    b^2 - (a b + b^2) exp(-a / b).
    """
    found = np.zeros(np.size(truths))
    for room in (np.ravel(truths) - lower, upper - np.ravel(truths)):
        with np.errstate(invalid="ignore"):
            cut = (room * scale + scale**2) * np.exp(-room / scale)
        found += scale**2 - np.where(np.isinf(room), 0.0, cut)
    return found


def geometric(scale: float, truths: Any, lower: float = -np.inf) -> Floats:
    """Of two-sided geometric noise, P(k) in proportion to exp(-|k| / scale); answers below `lower` are moved to it."""
    ratio = np.exp(-1 / scale)
    if np.isinf(lower):
        return np.full(np.size(truths), 2 * ratio / np.expm1(-1 / scale) ** 2)
    steps = np.arange(1, int(60 * scale) + 2, dtype=float)
    chances = (1 - ratio) / (1 + ratio) * ratio**steps
    sides = np.concatenate(([0.0], np.cumsum(steps**2 * chances)))  # up to k steps on one side
    beyond = ratio ** (np.arange(len(sides)) + 1) / (1 + ratio)
    rooms = np.minimum(np.ravel(truths) - lower, len(steps)).astype(int)
    below = sides[rooms] + np.square(rooms, dtype=float) * beyond[rooms]
    return np.asarray(sides[-1] + below)


def gaussian(scale: float, truths: Any) -> Floats:
    """Of Gaussian noise, discrete or not: whole steps that are small beside the scale change nothing."""
    return np.full(np.size(truths), scale**2)
