"""Renyi divergences of pairs, by adding up or integrating exp((alpha - 1) * loss) over P."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from farthing.accounting.algorithms.dominating_pairs import loss_pair
from farthing.accounting.algorithms.grid_cells import lower_distribution, panels
from farthing.accounting.algorithms.grid_pairs import LOW_CUT, Direction, LossPair, no_atoms
from farthing.numerics import Bounds
from farthing.privacy import DiscreteGaussianNoise, Event, GaussianNoise, Sampled

_LARGE_ORDER = 100.0  # order times largest loss beyond which the integral is not worth its time
_DEEP = 40.0  # -log of the part of the integral that may be left to a tail bound


def renyi_of_pairs(items: tuple[tuple[Event, int], ...], direction: Direction, alpha: float) -> Bounds:
    """The Renyi divergence of order `alpha` of a composition, in one direction.

    Statement:
        D_alpha = sum over events of count * log(E_P[exp((alpha - 1) L)]) / (alpha - 1). Beyond y = alpha mu + z a
        Gaussian pair, sampled or not, discrete or not, has at most exp(alpha (alpha - 1) mu^2 / 2 - z^2 / 2) / 2 of
        this expectation; below alpha mu - z it has as little, plus its P- or Q-mass there.
    Source: Mironov, arXiv:1702.07476, Proposition 1 (composition). Sampling never raises a loss above max(u, 0), so
        beyond the cut the integrand is at most exp(alpha u) Q = exp(alpha (alpha - 1) mu^2 / 2) N(alpha mu, 1).
    Assumes: alpha > 1.
    Direction: two-sided; inf when an event leaks.
    Checked by: tests/theorems/test_grid_renyi.py

    >>> from farthing.privacy import RandomizedResponse
    >>> round(renyi_of_pairs(((RandomizedResponse(1.0), 2),), "remove", 2.0).upper, 9)
    1.470651...
    """
    lower = upper = 0.0
    for event, count in items:
        low, high = _log_moment(event, direction, alpha)
        lower += count * low / (alpha - 1)
        upper += count * high / (alpha - 1)
    slack = 2.0**-48 * (1 + len(items))
    if math.isfinite(lower):
        lower = max(0.0, lower - slack * abs(lower))
    return Bounds(lower, max(0.0, upper + slack * abs(upper)))


def _log_moment(event: Event, direction: Direction, alpha: float) -> tuple[float, float]:
    """Bounds on log E_P[exp((alpha - 1) L)]."""
    mu, q = _gaussian_parameters(event)
    growth = alpha * (alpha - 1) * mu * mu / 2
    # Sampled pairs may have a moment near 1, so their tail has to outweigh the growth of the plain one.
    z = math.sqrt(2 * (_DEEP + (growth if q < 1.0 else 0.0)))
    if not _affordable(mu, alpha, z):
        return 0.0, growth if math.isfinite(growth) else math.inf
    pair = loss_pair(event, direction, ((alpha - 1) * mu + z) ** 2 / 2)
    above = pair if pair.dominating is None else pair.dominating
    if pair.log_infinite > -math.inf:
        return math.inf, math.inf
    if mu == 0 and alpha * _largest_loss(pair) > _LARGE_ORDER:
        # Bounded losses: at large orders the divergence is the largest loss for all that matters, and never above it.
        return 0.0, (alpha - 1) * _largest_loss(above) * (1 + 1e-12)
    lower = _finite_log_moment(pair, alpha, -1.0)
    if above.log_infinite > -math.inf:
        return lower, math.inf
    tails = []
    if mu > 0:
        # Twice: above alpha mu + z, and below the lowest y kept, which is at least as far from alpha mu.
        tails = [growth - z * z / 2, growth - z * z / 2, -LOW_CUT]
    upper = float(np.logaddexp.reduce([_finite_log_moment(above, alpha, 1.0), *tails]))
    return lower, upper + 1e-15


def _largest_loss(pair: LossPair) -> float:
    """The largest finite loss of a pair without Gaussian tails, rounded up."""
    losses = [0.0]
    if len(pair.atoms.loss):
        losses.append(float(np.max(pair.atoms.loss)) + pair.atoms.loss_error)
    if pair.density is not None:
        end = np.array([pair.density.high])
        losses.append(float(pair.density.loss(end)[0]) + float(pair.density.loss_error(end)[0]))
    return max(losses)


def _gaussian_parameters(event: Event) -> tuple[float, float]:
    q = event.probability if isinstance(event, Sampled) else 1.0
    inner = event.event if isinstance(event, Sampled) else event
    if isinstance(inner, GaussianNoise | DiscreteGaussianNoise):
        return 1 / max(inner.noise_multiplier, 1e-150), q
    return 0.0, q


def _affordable(mu: float, alpha: float, z: float) -> bool:
    """Whether the integral fits into memory; if not, sampling is ignored, which never lowers the divergence."""
    reach = alpha * mu + z + 10
    return reach * (1 + reach + 2 * alpha * mu) < 1e5


def _finite_log_moment(pair: LossPair, alpha: float, sign: float) -> float:
    """log of the moment over finite losses, rounded up (sign 1) or down (-1)."""
    terms = []
    atoms = pair.atoms
    if len(atoms.loss):
        size = np.abs(atoms.log_p) + alpha * np.abs(atoms.loss)
        error = atoms.error + alpha * atoms.loss_error + 2.0**-50 * size
        terms.append(atoms.log_p + (alpha - 1) * atoms.loss + sign * error)
    density = pair.density
    if density is not None and density.lattice > 0 and sign < 0:
        # Merging outcomes lowers the divergence.
        ends = density.loss(np.array([density.low, density.high]))
        distribution = lower_distribution(replace(pair, atoms=no_atoms()), float(ends[1] - ends[0]) / 2**17, 0.0)
        terms.append(alpha * distribution.log_p - (alpha - 1) * distribution.log_q)
    elif density is not None:
        extra = 2 * alpha * density.scale
        y, _, log_weight = panels(density, np.array([density.low, density.high]), extra)
        loss = density.loss(y)
        error = density.error(y) + alpha * density.loss_error(y) + 2.0**-43 + 2.0**-50 * alpha * np.abs(loss)
        a, b = density.sandwich()
        error = error + alpha * a + (alpha - 1) * b
        terms.append(density.log_p_and_q(y)[0] + (alpha - 1) * loss + log_weight + sign * error)
    joined = np.concatenate(terms)
    peak = float(np.max(joined))
    return peak + math.log(float(np.sum(np.exp(joined - peak)))) + sign * 2.0**-46
