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


def exponential_choice(points: Any, losses: Any, truth: float) -> float:
    """Of a choice among points with chances in proportion to exp(-loss): Gumbel noise and the largest."""
    chances = np.exp(np.min(losses) - np.asarray(losses, dtype=float))
    return float(np.sum(chances * (np.asarray(points) - truth) ** 2) / chances.sum())


def permute_and_flip(points: Any, losses: Any, truth: float) -> float:
    """Of exponential noise and the largest: with q = exp(-loss), i has the integral of q_i prod_{j != i} (1 - u q_j).

    u, from 0 to 1, stands for the level that the largest exceeds; the integrand is a polynomial in it.
    """
    chances = np.exp(np.min(losses) - np.asarray(losses, dtype=float))
    near = chances > 1e-18
    points, chances = np.asarray(points, dtype=float)[near], chances[near]
    nodes, weights = np.polynomial.legendre.leggauss(min(len(chances) // 2 + 8, 400))
    level = (nodes[:, None] + 1) / 2
    others = np.exp(np.log1p(-level * chances).sum(axis=1))[:, None] / (1 - level * chances)
    chosen = (weights / 2) @ (others * chances)
    return float(np.sum(chosen * (points - truth) ** 2) / chosen.sum())


def exponential_interval(edges: Any, losses: Any, truth: float) -> float:
    """Of a point at random in the gap between neighbours, chosen in proportion to its length times exp(-loss)."""
    edges, losses = np.asarray(edges, dtype=float), np.asarray(losses, dtype=float)
    sizes = np.diff(edges)
    densities = np.where(sizes > 0, np.exp(np.min(losses[sizes > 0]) - losses), 0.0)
    cubes = ((edges[1:] - truth) ** 3 - (edges[:-1] - truth) ** 3) / 3
    return float(np.sum(densities * cubes) / np.sum(densities * sizes))
