"""The dominating pair of every event, written down as atoms and densities.

    randomized response, leaky or not    two atoms, and the leak as an atom of infinite loss
    Laplace noise                        two atoms and a density between them
    Gaussian noise                       a density
    discrete Laplace and Gaussian        atoms; merged or sandwiched when there are millions of them
    a sampled event                      the pair of the event, through `grid_pairs.sampled_loss`

All but the last are symmetric: (P, Q) and (Q, P) have the same hockey-stick curve, being mirror images. For noise,
shifts smaller than the sensitivity are dominated: the noises are log-concave, so the best tests are upper sets
{y >= t}, whose P-mass grows with the shift.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from farthing.accounting.engines.grid_pairs import ARGUMENT_ERROR, Atoms, Density, Direction, LossPair
from farthing.accounting.transforms import Array
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

MOST_ATOMS = 1_000_000
"""Discrete noises with more atoms than this are merged (Laplace) or sandwiched (Gaussian)."""

MOST_RUNS = 100_000
"""Into how many runs merged outcomes are gathered."""

_LOW_CUT = (
    50.0  # -log of the P-mass that may be moved up from the low end: far below what a tilted law can feel
)


def is_symmetric(event: Event) -> bool:
    """Whether adding and removing a unit cost the same, so that one direction is enough.

    >>> is_symmetric(LaplaceNoise(1.0)), is_symmetric(Sampled(LaplaceNoise(1.0), 0.5))
    (True, False)
    """
    return not isinstance(event, Sampled) or event.probability in (0.0, 1.0)


def loss_pair(event: Event, direction: Direction, cut: float) -> LossPair:
    """The dominating pair of `event`; unbounded losses are cut where the P-mass above is below exp(-cut).

    >>> loss_pair(RandomizedResponse(1.0), "remove", 50.0).atoms.loss.tolist()
    [-1.0, 1.0]
    """
    probability = event.probability if isinstance(event, Sampled) else 1.0
    event = event.event if isinstance(event, Sampled) else event
    if probability == 0.0:
        return _finite(np.zeros(1), np.zeros(1), np.zeros(1), 0.0, 0.0)
    match event:
        case RandomizedResponse(epsilon=epsilon):
            pair = _responses(epsilon, 0.0)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _sampled_leak(_responses(epsilon, delta), delta, probability, direction)
        case LaplaceNoise(noise_multiplier=multiplier):
            pair = _laplace(1 / multiplier)
        case GaussianNoise(noise_multiplier=multiplier):
            return _gaussian(1 / multiplier, 0.0, probability, direction, cut)
        case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=sensitivity):
            pair = _discrete_laplace(1 / multiplier, sensitivity)
        case DiscreteGaussianNoise(noise_multiplier=multiplier, l2_sensitivity=sensitivity):
            return _discrete_gaussian(multiplier, sensitivity, probability, direction, cut)
        case _:
            raise InvalidValue("event", event, "must be an event this accountant knows")
    return _sampled(pair, probability, direction)


def _finite(loss: Array, log_p: Array, log_q: Array, error: float, loss_error: float) -> LossPair:
    atoms = Atoms(loss, log_p, log_q, np.full(len(loss), error), loss_error)
    return LossPair(atoms, largest_loss=float(loss[-1]) + loss_error)


def _sampled(pair: LossPair, probability: float, direction: Direction) -> LossPair:
    """A pair without tails or infinite loss after Poisson sampling."""
    if probability == 1.0:
        return pair
    atoms, density, spread = pair.atoms.sampled(probability, direction), pair.density, pair.spread
    if density is not None:
        density = replace(density, probability=probability, direction=direction)
    if spread is not None:
        spread = spread.sampled(probability, direction)
    top = atoms if spread is None else spread
    return LossPair(atoms, density, spread, largest_loss=float(np.max(top.loss)) + top.loss_error)


def _responses(epsilon: float, delta: float) -> LossPair:
    log_true = math.log1p(-delta) - math.log1p(math.exp(-epsilon))
    log_false = log_true - epsilon
    loss = np.array([-epsilon, epsilon])
    error = ARGUMENT_ERROR * (1 + epsilon)
    return _finite(loss, np.array([log_false, log_true]), np.array([log_true, log_false]), error, 0.0)


def _sampled_leak(pair: LossPair, delta: float, q: float, direction: Direction) -> LossPair:
    """Leaky randomized response: the P-only outcome has loss inf, the Q-only outcome -inf, before sampling."""
    atoms = pair.atoms.sampled(q, direction)
    if q == 1.0 or delta == 0.0 or direction == "remove":
        extra, infinite = None, q * delta
        if 0.0 < q < 1.0 and delta > 0.0:  # the Q-only outcome now has P-mass (1-q) delta
            extra = (math.log1p(-q), math.log1p(-q) + math.log(delta), math.log(delta))
    else:  # the P-only outcome now has Q-mass (1-q) delta
        extra, infinite = (-math.log1p(-q), math.log(delta), math.log1p(-q) + math.log(delta)), 0.0
    if extra is not None:
        order = np.argsort(np.append(atoms.loss, extra[0]))
        error = ARGUMENT_ERROR * (2 + abs(extra[0]) + abs(extra[1]))
        atoms = Atoms(
            np.append(atoms.loss, extra[0])[order],
            np.append(atoms.log_p, extra[1])[order],
            np.append(atoms.log_q, extra[2])[order],
            np.append(atoms.error, error)[order],
            max(atoms.loss_error, ARGUMENT_ERROR * abs(extra[0])),
        )
    return LossPair(atoms, infinite=infinite, largest_loss=float(atoms.loss[-1]) + atoms.loss_error)


def _laplace(epsilon: float) -> LossPair:
    """Half of P sits on the near side of both centres, exp(-epsilon) / 2 on the far side, the rest in between."""
    loss = np.array([-epsilon, epsilon])
    log_p = math.log(0.5) + np.array([-epsilon, 0.0])
    error = np.full(2, ARGUMENT_ERROR * (1 + epsilon))
    atoms = Atoms(loss, log_p, log_p[::-1].copy(), error, ARGUMENT_ERROR * epsilon)
    density = Density("laplace", epsilon, -epsilon, epsilon)
    return LossPair(atoms, density, largest_loss=epsilon + atoms.loss_error)


def _discrete_laplace(epsilon: float, sensitivity: int) -> LossPair:
    """Outcomes k = 0 ... s of a shift by s, with everything outside added to the ends, which have equal loss.

    P(s) = 1 / (1 + r), P(0) = exp(-epsilon) P(s) and P(k) = (1 - r) / (1 + r) * r^(s - k) in between, where
    r = exp(-epsilon / s); Q is the mirror image. Too many outcomes are gathered in runs. A run is a geometric series:
    merging it (adding its P-mass and its Q-mass) is a garbling; moving it to its two ends, with 1 / (1 + exp(-w / 2))
    of its P-mass at the upper one when they differ in loss by w, keeps both masses and spreads the loss.
    """
    s, step = sensitivity, epsilon / sensitivity
    runs = s - 1 if s - 1 <= MOST_ATOMS else MOST_RUNS
    # Whole numbers as Python integers: they may exceed what a double can count.
    edges = [1 + i * (s - 1) // runs for i in range(runs + 1)] if runs else [1]
    first, last = edges[:-1], [edge - 1 for edge in edges[1:]]
    end = -math.log1p(math.exp(-step))
    series = (
        np.log(-np.expm1(-step * np.array([float(1 + j - i) for i, j in zip(first, last, strict=True)])))
        + end
    )
    log_p = series - step * np.array([float(s - j) for j in last])
    middle = step * np.array([float(i + j - s) for i, j in zip(first, last, strict=True)])
    log_q = log_p - middle
    loss_error = ARGUMENT_ERROR * epsilon
    ends = Atoms(
        np.array([-epsilon, epsilon]),
        np.array([end - epsilon, end]),
        np.array([end, end - epsilon]),
        np.full(2, ARGUMENT_ERROR * (2 + epsilon)),
        loss_error,
    )
    error = np.full(runs, ARGUMENT_ERROR * (4 + 4 * epsilon))
    atoms = _joined(ends, Atoms(middle, log_p, log_q, error, loss_error))
    if runs == s - 1:
        return LossPair(atoms, largest_loss=epsilon + loss_error)
    half = step * np.array([float(j - i) for i, j in zip(first, last, strict=True)])
    upper = log_p - np.log1p(np.exp(-half))
    low_loss, high_loss = middle - half, middle + half
    low_ends = Atoms(low_loss, upper - half, upper - half - low_loss, error, loss_error)
    high_ends = Atoms(high_loss, upper, upper - high_loss, error, loss_error)
    return LossPair(atoms, spread=_joined(ends, low_ends, high_ends), largest_loss=epsilon + loss_error)


def _joined(*parts: Atoms) -> Atoms:
    return Atoms(
        np.concatenate([part.loss for part in parts]),
        np.concatenate([part.log_p for part in parts]),
        np.concatenate([part.log_q for part in parts]),
        np.concatenate([part.error for part in parts]),
        max(part.loss_error for part in parts),
    )


def _tails(mu: float, low: float, high: float, q: float, direction: Direction) -> tuple[float, float]:
    """Bounds on log P(y > high) and log P(y < low) by P[N > z] <= exp(-z^2 / 2) / 2 for z >= 0.

    For atoms on a lattice the same holds: a sum of decreasing terms is below the integral one step earlier.
    """
    weights = [(q, mu)] if direction == "add" or q == 1.0 else [(q, mu), (1 - q, 0.0)]
    if direction == "add":
        weights = [(1.0, mu)]

    def log_tail(distance: float) -> float:
        return 0.0 if not distance > 0 else -distance * distance / 2 - math.log(2.0)

    above = [math.log(w) + log_tail(high - m) for w, m in weights if w > 0]
    below = [math.log(w) + log_tail(m - low) for w, m in weights if w > 0]
    return float(np.logaddexp.reduce(above)) + 1e-9, float(np.logaddexp.reduce(below)) + 1e-9


def _range(mu: float, q: float, direction: Direction, cut: float) -> tuple[float, float]:
    lowest_centre = 0.0 if direction == "remove" and q < 1.0 else mu
    return lowest_centre - math.sqrt(2 * _LOW_CUT), mu + math.sqrt(2 * max(cut, 1.0))


def _gaussian(mu: float, lattice: float, q: float, direction: Direction, cut: float) -> LossPair:
    low, high = _range(mu, q, direction, cut)
    density = Density("gaussian", mu, low, high, direction, q, lattice)
    # Of a lattice only atoms whose whole cell lies inside are kept, so its tails begin up to two atoms earlier.
    above, below = _tails(mu, low + 2 * lattice, high - 2 * lattice, q, direction)
    largest = -math.log1p(-q) * (1 + ARGUMENT_ERROR) if direction == "add" and q < 1.0 else math.inf
    return LossPair(no_atoms(), density, log_above=above, log_below=below, largest_loss=largest)


def no_atoms() -> Atoms:
    """An empty list of atoms."""
    empty = np.zeros(0)
    return Atoms(empty, empty, empty, empty, 0.0)


def _discrete_gaussian(multiplier: float, s: int, q: float, direction: Direction, cut: float) -> LossPair:
    deviation = multiplier * s
    mu = 1 / multiplier
    low, high = _range(mu, q, direction, cut)
    if (high - low) * deviation > MOST_ATOMS:
        return _gaussian(mu, 1 / deviation, q, direction, cut)
    k = np.arange(math.floor(low * deviation), math.ceil(high * deviation) + 1, dtype=np.float64)
    y = k / deviation
    ends = math.ceil(39 * deviation)
    centred = np.exp(-((np.arange(-ends, ends + 1) / deviation) ** 2) / 2)
    log_total = math.log(float(np.sum(centred)))
    log_q = -(y**2) / 2 - log_total
    log_p = -((y - mu) ** 2) / 2 - log_total
    # (2 k s - s^2) / (2 deviation^2), with the integers first: they are exact.
    loss = (2 * k * s - float(s * s)) / (2 * deviation * deviation)
    error = ARGUMENT_ERROR * (1 + y * y + (y - mu) ** 2)
    atoms = Atoms(loss, log_p, log_q, error, ARGUMENT_ERROR * float(np.max(np.abs(loss))))
    # The outermost atoms are at or beyond low and high, so the tails beyond them are those beyond low and high.
    above, below = _tails(mu, low, high, q, direction)
    largest = -math.log1p(-q) * (1 + ARGUMENT_ERROR) if direction == "add" and q < 1.0 else math.inf
    return LossPair(atoms.sampled(q, direction), log_above=above, log_below=below, largest_loss=largest)
