"""The dominating pair of every event, written down as atoms and densities.

    randomized response, leaky or not    two atoms, and the leak as an atom of infinite loss
    Laplace noise                        two atoms and a density between them
    a choice of bounded range            the same density without the atoms
    Gaussian noise                       a density
    discrete Laplace and Gaussian        atoms (`grid_discrete`)
    a sampled event                      the pair of the event, through `grid_pairs.sampled_loss`

All but the last are symmetric: (P, Q) and (Q, P) have the same hockey-stick curve, being mirror images. For noise,
shifts smaller than the sensitivity are dominated: the noises are log-concave, so the best tests are upper sets
{y >= t}, whose P-mass grows with the shift.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from farthing.accounting.algorithms.grid_pairs import (
    ARGUMENT_ERROR,
    Atoms,
    Density,
    Direction,
    LossPair,
    gaussian_range,
    gaussian_tails,
    largest_sampled_loss,
    no_atoms,
    sampled_loss,
)
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

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
    Source: the geometric series; connect the dots (grid_cells.upper_distribution) for the two ends.
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


def discrete_gaussian(multiplier: float, sensitivity: int, q: float, direction: Direction, cut: float) -> LossPair:
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


LARGEST_LAPLACE = 500.0
"""Laplace noise with more epsilon than this is bounded by randomized response from above, by its atoms from below."""

SMALLEST_RANGE = 1e-9
"""A bounded range below this is priced as randomized response: the difference is less than anyone can see."""

LARGEST_MU = 400.0
LARGEST_SAMPLED_MU = 100.0
"""Gaussian noise with a larger mu = 1 / noise_multiplier counts as a leak in upper bounds, as nothing in lower ones."""

LARGEST_EPSILON = 1e8
"""So does any event with a larger loss: doubles end here."""


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
    q = event.probability if isinstance(event, Sampled) else 1.0
    event = event.event if isinstance(event, Sampled) else event
    if q == 0.0:
        return nothing()
    match event:
        case RandomizedResponse(epsilon=epsilon):
            return _leaky(epsilon, 0.0, q, direction)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _leaky(epsilon, delta, q, direction)
        case BoundedRange(epsilon=epsilon):
            return _bounded_range(epsilon, q, direction)
        case LaplaceNoise(noise_multiplier=multiplier):
            return _laplace(_inverse(multiplier), q, direction)
        case GaussianNoise(noise_multiplier=multiplier):
            return _gaussian(_inverse(multiplier), q, direction, cut)
        case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=sensitivity):
            if _inverse(multiplier) > LARGEST_EPSILON:
                return _fully_leaking(_inverse(multiplier), 0.0, q, direction)
            return discrete_laplace(_inverse(multiplier), sensitivity, q, direction)
        case DiscreteGaussianNoise(noise_multiplier=multiplier, l2_sensitivity=sensitivity):
            if _inverse(multiplier) > LARGEST_SAMPLED_MU:
                return _fully_leaking(math.inf, 0.0, q, direction)
            return discrete_gaussian(multiplier, sensitivity, q, direction, cut)
    raise InvalidValue("event", event, "must be an event that this accountant knows")


def negligible_loss(event: Event) -> float:
    """A loss that `event` exceeds, in either direction, with probability below exp(-1800); inf when it may leak.

    No double is a delta that such a probability could change. Used to set aside events of next to no loss.

    >>> negligible_loss(RandomizedResponse(1e-50))
    1e-50
    """
    q = event.probability if isinstance(event, Sampled) else 1.0
    event = event.event if isinstance(event, Sampled) else event
    match event:
        case ApproxDP(epsilon=epsilon, delta=delta):
            loss = epsilon if delta == 0 else math.inf
        case RandomizedResponse(epsilon=epsilon) | BoundedRange(epsilon=epsilon):
            loss = epsilon
        case LaplaceNoise(noise_multiplier=multiplier) | DiscreteLaplaceNoise(noise_multiplier=multiplier):
            loss = _inverse(multiplier)
        case GaussianNoise(noise_multiplier=multiplier) | DiscreteGaussianNoise(noise_multiplier=multiplier):
            # 60 deviations out, P has exp(-1800) left.
            loss = _inverse(multiplier) * (_inverse(multiplier) / 2 + 60) if multiplier > 1e-9 else math.inf
        case _:
            return math.inf
    if q == 1.0 or loss > 300:
        return loss
    # log(1 - q + q e^u) <= q (e^u - 1), and -log(1 - q + q e^-u) <= min(u, 2 q) for q <= 1/2.
    return max(q * math.expm1(loss), min(loss, 2 * q)) if q <= 0.5 else loss


def has_endless_loss(event: Event) -> bool:
    """Whether the loss of `event` has no bound.

    >>> has_endless_loss(GaussianNoise(1.0)), has_endless_loss(LaplaceNoise(1.0))
    (True, False)
    """
    inner = event.event if isinstance(event, Sampled) else event
    return isinstance(inner, GaussianNoise | DiscreteGaussianNoise)


def nothing() -> LossPair:
    """The pair of an event that reveals nothing: loss 0, always."""
    zero = np.zeros(1)
    return LossPair(Atoms(zero, zero, zero, zero, 0.0), largest_loss=0.0)


def _inverse(multiplier: float) -> float:
    return 1 / multiplier if multiplier > 1e-300 else 1e300


def _leaky(epsilon: float, delta: float, q: float, direction: Direction) -> LossPair:
    """Randomized response with a leak: the P-only outcome has loss inf and the Q-only one -inf, before sampling."""
    if epsilon > LARGEST_EPSILON:
        return _fully_leaking(epsilon, delta, q, direction)
    log_true = math.log1p(-delta) - math.log1p(math.exp(-epsilon))
    log_mass = np.array([log_true - epsilon, log_true])
    error = np.full(2, ARGUMENT_ERROR * (1 + epsilon + abs(log_true)))
    atoms = Atoms(np.array([-epsilon, epsilon]), log_mass, log_mass[::-1].copy(), error, 0.0).sampled(q, direction)
    log_infinite = -math.inf
    if delta > 0:
        if q < 1.0:
            atoms = _with_leak(atoms, math.log(delta), q, direction)
        if q == 1.0 or direction == "remove":
            log_infinite = math.log(q) + math.log(delta)
    return LossPair(atoms, log_infinite=log_infinite, largest_loss=float(np.max(atoms.loss)) + atoms.loss_error)


def _with_leak(atoms: Atoms, log_delta: float, q: float, direction: Direction) -> Atoms:
    """After sampling, the outcome that only Q (remove) or only P (add) had is one both have, at ratio 1 - q."""
    log_rest = math.log1p(-q)
    loss = log_rest if direction == "remove" else -log_rest
    log_p, log_q = (log_rest + log_delta, log_delta) if direction == "remove" else (log_delta, log_rest + log_delta)
    return Atoms(
        np.append(atoms.loss, loss),
        np.append(atoms.log_p, log_p),
        np.append(atoms.log_q, log_q),
        np.append(atoms.error, ARGUMENT_ERROR * (2 + abs(log_rest) + abs(log_delta))),
        max(atoms.loss_error, ARGUMENT_ERROR * abs(log_rest)),
    )


def _fully_leaking(loss: float, delta: float, q: float, direction: Direction) -> LossPair:
    """An event whose loss before sampling is too large: all of it leaks in upper bounds, none of it in lower ones."""
    # A finite loss of next to no mass, so that there is a distribution to add up; more mass only raises an upper bound.
    zero = np.zeros(1)
    atoms = Atoms(zero, zero - 1e4, zero - 1e4, zero, 0.0)
    leaks = q == 1.0 or direction == "remove"
    everything = LossPair(
        atoms if q == 1.0 else _with_leak(atoms, 0.0, q, direction),
        log_infinite=math.log(q) if leaks else -math.inf,
    )
    if math.isfinite(loss):
        largest = float(sampled_loss(np.array([loss]), q, direction)[0]) * (1 + ARGUMENT_ERROR)
        largest = max(largest, -math.log1p(-q)) if delta > 0 and direction == "add" and q < 1.0 else largest
    else:
        largest = largest_sampled_loss(q, direction)
    return replace(
        nothing(),
        log_infinite=math.log(q) + math.log(delta) if leaks and delta > 0 else -math.inf,
        largest_loss=largest,
        dominating=everything,
    )


def _laplace(epsilon: float, q: float, direction: Direction) -> LossPair:
    """Half of P sits on the near side of both centres, exp(-epsilon) / 2 on the far side, the rest in between."""
    if epsilon > LARGEST_EPSILON:
        return _fully_leaking(epsilon, 0.0, q, direction)
    log_p = math.log(0.5) + np.array([-epsilon, 0.0])
    error = np.full(2, ARGUMENT_ERROR * (1 + epsilon))
    loss_error = ARGUMENT_ERROR * epsilon
    atoms = Atoms(np.array([-epsilon, epsilon]), log_p, log_p[::-1].copy(), error, loss_error).sampled(q, direction)
    largest = float(np.max(atoms.loss)) + atoms.loss_error
    if epsilon > LARGEST_LAPLACE:
        return LossPair(atoms, largest_loss=largest, dominating=_leaky(epsilon + loss_error, 0.0, q, direction))
    density = Density("laplace", epsilon, -epsilon, epsilon, direction, q)
    return LossPair(atoms, density, largest_loss=largest)


def _bounded_range(epsilon: float, q: float, direction: Direction) -> LossPair:
    """The pair that dominates every choice whose losses lie within an interval of length epsilon.

    Statement:
        Among all pairs with losses in [t - epsilon, t] for some t, the largest hockey-stick divergence at x is
            delta(x) = (exp(epsilon/2) - exp(x/2))^2 / (exp(epsilon) - 1)   for |x| <= epsilon.
        It is the curve of the pair with P-density exp(u/2) / (4 sinh(epsilon/2)) of the loss u in [-epsilon, epsilon],
        which therefore dominates all of them.
    Source: Dong, Durfee & Rogers, arXiv:1909.13830 (the curve of one such mechanism); the proof is at
        `farthing.mechanisms.weighted_choice`. The density follows from Q[loss > x] = -exp(-x) delta'(x).
    Assumes: 0 < epsilon; in composition, epsilons fixed in advance (the interval may depend on earlier answers).
    Direction: exact for one choice, an upper bound for several.
    Checked by: tests/theorems/test_bounded_range.py
    """
    if epsilon == 0.0:
        return nothing()
    if epsilon > LARGEST_EPSILON:
        return _fully_leaking(epsilon, 0.0, q, direction)
    largest = float(sampled_loss(np.array([epsilon]), q, direction)[0]) * (1 + 4 * ARGUMENT_ERROR)
    if epsilon > LARGEST_LAPLACE or epsilon < SMALLEST_RANGE:
        return replace(nothing(), largest_loss=largest, dominating=_leaky(epsilon, 0.0, q, direction))
    return LossPair(no_atoms(), Density("range", epsilon, -epsilon, epsilon, direction, q), largest_loss=largest)


def _gaussian(mu: float, q: float, direction: Direction, cut: float) -> LossPair:
    if mu > (LARGEST_MU if q == 1.0 else LARGEST_SAMPLED_MU):
        return _fully_leaking(math.inf, 0.0, q, direction)
    low, high = gaussian_range(mu, q, direction, cut)
    above, below = gaussian_tails(mu, low, high, q, direction)
    return LossPair(
        no_atoms(),
        Density("gaussian", mu, low, high, direction, q),
        log_above=above,
        log_below=below,
        largest_loss=largest_sampled_loss(q, direction),
    )
