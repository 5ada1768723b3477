"""The pairs of discrete Laplace and discrete Gaussian noise: atoms, gathered when there are too many."""

from __future__ import annotations

import math

import numpy as np

from farthing.accounting.engines.grid_pairs import (
    ARGUMENT_ERROR,
    Atoms,
    Density,
    Direction,
    LossPair,
    no_atoms,
)
from farthing.accounting.engines.grid_tails import gaussian_range, gaussian_tails, largest_sampled_loss
from farthing.errors import InvalidValue

MOST_ATOMS = 500_000
"""Discrete noises with more atoms than this are gathered in runs (Laplace) or sandwiched (Gaussian)."""

MOST_RUNS = 100_000
"""Into how many runs outcomes are gathered."""


def discrete_laplace(epsilon: float, sensitivity: int, q: float, direction: Direction) -> LossPair:
    """The pair of discrete Laplace noise with scale sensitivity / epsilon, sampled.

    Statement:
        For a shift by s the loss of outcome k is -epsilon for k <= 0, epsilon for k >= s and (2k - s) epsilon / s
        between. With r = exp(-epsilon / s) the ends have P-mass exp(-epsilon) / (1 + r) and 1 / (1 + r), and outcome k
        in between has (1 - r) / (1 + r) r^(s - k); Q is the mirror image. A run of outcomes is a geometric series:
        merging it (adding its P-mass and its Q-mass) is a garbling; moving it to its two ends, with
        1 / (1 + exp(-w / 2)) of its P-mass at the upper one when they differ in loss by w, keeps both masses and
        spreads the loss, so that it dominates.
    Source: the geometric series; connect the dots (grid_cells.upper_law) for the two ends.
    Assumes: epsilon > 0; sensitivity >= 1.
    Direction: exact without runs; with runs the pair is dominated and its `dominating` pair dominates.
    Checked by: tests/theorems/test_sampling_pairs.py

    >>> discrete_laplace(1.0, 2, 1.0, "remove").atoms.loss.tolist()
    [-1.0, 1.0, 0.0]
    """
    s, step = sensitivity, epsilon / sensitivity
    runs = s - 1 if s - 1 <= MOST_ATOMS else MOST_RUNS
    # Whole numbers as Python integers: they may exceed what a double can count.
    edges = [1 + i * (s - 1) // runs for i in range(runs + 1)] if runs else [1]
    bounds = list(zip(edges[:-1], (edge - 1 for edge in edges[1:]), strict=True))
    end = -math.log1p(math.exp(-step))
    series = np.log(-np.expm1(-step * np.array([float(1 + j - i) for i, j in bounds]))) + end
    log_p = series - step * np.array([float(s - j) for _, j in bounds])
    middle = step * np.array([float(i + j - s) for i, j in bounds])
    loss_error = ARGUMENT_ERROR * epsilon
    error = ARGUMENT_ERROR * (4 + 4 * epsilon + np.abs(series))
    ends = Atoms(
        np.array([-epsilon, epsilon]),
        np.array([end - epsilon, end]),
        np.array([end, end - epsilon]),
        np.full(2, ARGUMENT_ERROR * (2 + epsilon)),
        loss_error,
    )
    atoms = _joined(ends, Atoms(middle, log_p, log_p - middle, error, loss_error)).sampled(q, direction)
    largest = float(np.max(atoms.loss)) + atoms.loss_error
    if runs == s - 1:
        return LossPair(atoms, largest_loss=largest)
    half = step * np.array([float(j - i) for i, j in bounds])
    upper = log_p - np.log1p(np.exp(-half))
    low, high = middle - half, middle + half
    low_ends = Atoms(low, upper - half, upper - half - low, error, loss_error)
    high_ends = Atoms(high, upper, upper - high, error, loss_error)
    spread = _joined(ends, low_ends, high_ends).sampled(q, direction)
    return LossPair(atoms, largest_loss=largest, dominating=LossPair(spread, largest_loss=largest))


def _joined(*parts: Atoms) -> Atoms:
    return Atoms(
        np.concatenate([part.loss for part in parts]),
        np.concatenate([part.log_p for part in parts]),
        np.concatenate([part.log_q for part in parts]),
        np.concatenate([part.error for part in parts]),
        max(part.loss_error for part in parts),
    )


def discrete_gaussian(
    multiplier: float, sensitivity: int, q: float, direction: Direction, cut: float
) -> LossPair:
    """The pair of discrete Gaussian noise with deviation multiplier * sensitivity, sampled.

    Atoms y = k / deviation, P centred at mu = 1 / multiplier and Q at 0; the loss of outcome k is
    (2 k s - s^2) / (2 deviation^2). With too many atoms it is the Gaussian pair inside `Density.sandwich`.

    >>> len(discrete_gaussian(1.0, 1, 1.0, "remove", 50.0).atoms.loss)
    21
    """
    if sensitivity >= 1 << 500:
        raise InvalidValue("l2_sensitivity", sensitivity, "must be below 2**500", "scale the answer down")
    deviation, mu = multiplier * sensitivity, 1 / multiplier
    low, high = gaussian_range(mu, q, direction, cut)
    largest = largest_sampled_loss(q, direction)
    if (high - low) * deviation > MOST_ATOMS:
        lattice = 1 / deviation
        # Only atoms whose whole cell lies inside are kept, so the tails begin up to two atoms earlier.
        above, below = gaussian_tails(mu, low + 2 * lattice, high - 2 * lattice, q, direction)
        density = Density("gaussian", mu, low, high, direction, q, lattice)
        return LossPair(no_atoms(), density, log_above=above, log_below=below, largest_loss=largest)
    k = np.arange(math.floor(low * deviation), math.ceil(high * deviation) + 1, dtype=np.float64)
    y = k / deviation
    ends = math.ceil(39 * deviation) + 1
    log_total = math.log(float(np.sum(np.exp(-((np.arange(-ends, ends + 1) / deviation) ** 2) / 2))))
    # The integers first: their products are exact.
    loss = (2 * k * sensitivity - float(sensitivity) ** 2) / (2 * deviation * deviation)
    atoms = Atoms(
        loss,
        -((y - mu) ** 2) / 2 - log_total,
        -(y**2) / 2 - log_total,
        ARGUMENT_ERROR * (2 + y * y + (y - mu) ** 2),
        ARGUMENT_ERROR * float(np.max(np.abs(loss)) + mu * mu),
    )
    # The outermost atoms are at or beyond low and high, so what is beyond them is beyond low and high.
    above, below = gaussian_tails(mu, low, high, q, direction)
    return LossPair(atoms.sampled(q, direction), log_above=above, log_below=below, largest_loss=largest)
