"""The hockey-stick curve of one event, exactly: delta as a function of epsilon, for every real epsilon.

    H_epsilon(P || Q) = sup over sets S of P(S) - e^epsilon Q(S)

for the dominating pair of the event. Closed forms are evaluated in ball arithmetic, so both ends of each `Bounds` are
certain; discrete noises are sums of positive terms with a stated error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import flint
import numpy as np

from farthing.accounting.algorithms.dominating_pairs import loss_pair
from farthing.accounting.algorithms.grid_cells import lower_distribution, upper_distribution
from farthing.accounting.algorithms.grid_pairs import Direction, LossPair
from farthing.accounting.loss_transforms import Array
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import down, precision, up
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
from farthing.privacy.events import checked_real

_BITS = (96, 256, 1024, 4096, 16384, 65536)
_CUT = 800.0  # -log of the mass at which discrete noises are cut
_FINE_CELLS = 1 << 17


def hockey_stick_divergence(event: Event, epsilon: float, direction: Direction = "remove") -> Bounds:
    """The smallest delta at which one run of `event` is (epsilon, delta)-DP for neighbours in `direction`.

    Statement:
        Randomized response: max(0, 1 - e^x, (e^e - e^x) / (1 + e^e)); a leak d turns H into d + (1 - d) H.
        Laplace, e = 1 / noise_multiplier: 0 for x >= e, 1 - exp((x - e) / 2) for |x| <= e, 1 - e^x for x <= -e.
        Gaussian, m = 1 / noise_multiplier: Phi(m/2 - x/m) - e^x Phi(-m/2 - x/m).
        Discrete noises: the sum of P(k) (1 - e^(x - u(k))) over outcomes k of loss u(k) > x.
        Sampled with probability q, remove: 1 - e^x if e^x <= 1 - q, else q H_y with e^y = (e^x - (1 - q)) / q;
        add: 0 if e^x (1 - q) >= 1, else a H_y with a = 1 - e^x (1 - q) and e^y = q e^x / a.
    Source: Kairouz, Oh & Viswanath, arXiv:1311.0776v4, Theorem 3.3 (k = 1); Balle & Wang, arXiv:1805.06530, Theorem 8;
        Zhu, Dong & Wang, arXiv:2106.08567, Theorem 11, with the supremum taken over S.
    Assumes: epsilon is any real number; units join or leave, one at a time.
    Direction: charge `upper`, at the worse of the two directions.
    Checked by: tests/unit/accounting/test_hockey_stick.py

    >>> hockey_stick_divergence(LaplaceNoise(1.0), 0.0).estimate
    0.39346934...
    >>> hockey_stick_divergence(Sampled(GaussianNoise(1.0), 0.5), 1.0, "add").upper < 0.02
    True
    """
    x = checked_real(epsilon, "epsilon")
    if not -math.inf < x < math.inf:
        raise InvalidValue("epsilon", epsilon, "must be a finite number")
    if direction not in ("remove", "add"):
        raise InvalidValue("direction", direction, "must be 'remove' or 'add'")
    if isinstance(event, Sampled):
        return _sampled(event, x, direction)
    return _base(event, x)


def upper_curve(event: Event, epsilons: Sequence[float]) -> list[float]:
    """Upper bounds of the curve of an event that is not sampled, at many epsilons: discrete noises are prepared once.

    >>> upper_curve(LaplaceNoise(1.0), [0.0, 1.0])
    [0.393469340287366..., 0.0]
    """
    match event:
        case DiscreteGaussianNoise() | DiscreteLaplaceNoise():
            curve = _upper_of_pair(loss_pair(event, "remove", _CUT))
            return [curve(x) for x in epsilons]
    return [_base(event, x).upper for x in epsilons]


def _sampled(event: Sampled, x: float, direction: Direction) -> Bounds:
    if event.probability == 0.0:
        return _flat(x)
    for bits in _BITS:
        with precision(bits):
            e_x, q = flint.arb(x).exp(), flint.arb(event.probability)
            factor = q if direction == "remove" else 1 - e_x * (1 - q)
            ratio = e_x - 1 + q if direction == "remove" else q * e_x
            if direction == "remove" and ratio <= 0:
                return _flat(x)
            if direction == "add" and factor <= 0:
                return Bounds(0.0, 0.0)
            if not (ratio > 0 and factor > 0):
                continue  # e^x is too near a kink to tell on which side: ask for more bits
            y = (ratio / factor).log()
            least, most = _base(event.event, up(y)), _base(event.event, down(y))  # the curve falls with y
            if most.upper == 0.0:
                return Bounds(0.0, 0.0)
            return _unit(down(factor * least.lower), up(factor * most.upper))
    return Bounds(_flat(x).lower, 1.0)


def _unit(lower: float, upper: float) -> Bounds:
    return Bounds(min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0))


def _flat(x: float) -> Bounds:
    """max(0, 1 - e^x): the curve of an event that reveals nothing."""
    if x >= 0:
        return Bounds(0.0, 0.0)
    with precision(96):
        value = -flint.arb(x).expm1()
        return _unit(down(value), up(value))


def _base(event: Event, x: float) -> Bounds:
    if math.isinf(x):
        return Bounds(1.0, 1.0) if x < 0 else Bounds(0.0, getattr(event, "delta", 0.0))
    match event:
        case RandomizedResponse(epsilon=epsilon):
            return _ball(lambda: _response(epsilon, 0.0, x))
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _ball(lambda: _response(epsilon, delta, x))
        case BoundedRange(epsilon=epsilon):
            return _flat(x) if epsilon == 0 else _ball(lambda: _bounded_range(flint.arb(epsilon), x))
        case LaplaceNoise(noise_multiplier=multiplier):
            return _ball(lambda: _laplace(1 / flint.arb(multiplier), x))
        case GaussianNoise(noise_multiplier=multiplier):
            return _ball(lambda: _gaussian(1 / flint.arb(multiplier), x))
    return _of_pair(loss_pair(event, "remove", _CUT), x)


def _ball(formula: Callable[[], Any]) -> Bounds:
    """The value of the formula, at growing precision until its ball is small next to it."""
    value: Any = flint.arb(0)
    for bits in _BITS:
        with precision(bits):
            value = formula()
            if value.is_zero() or value.rel_accuracy_bits() > 60:
                break
    return Bounds(0.0, 0.0) if value.is_zero() else _unit(down(value), up(value))


def _response(epsilon: float, delta: float, x: float) -> Any:
    leak, e_x = flint.arb(delta), flint.arb(x).exp()
    if x >= epsilon:
        return leak
    if x <= -epsilon:
        return 1 - (1 - leak) * e_x
    # (e^e - e^x) / (1 + e^e), with nothing that overflows or cancels.
    return leak + (1 - leak) * -(flint.arb(x) - epsilon).expm1() / (1 + (-flint.arb(epsilon)).exp())


def _bounded_range(epsilon: Any, x: float) -> Any:
    if epsilon <= x:
        return flint.arb(0)
    if epsilon <= -x:
        return -flint.arb(x).expm1()
    # (e^(e/2) - e^(x/2))^2 / (e^e - 1), with nothing that overflows or cancels.
    return ((x - epsilon) / 2).expm1() ** 2 / -(-epsilon).expm1()


def _laplace(epsilon: Any, x: float) -> Any:
    gap = flint.arb(x) - epsilon
    if gap >= 0:
        return flint.arb(0)
    if flint.arb(x) + epsilon <= 0:
        return -flint.arb(x).expm1()
    # Where x is within rounding of epsilon or -epsilon the ball holds the value of the other branch too.
    return -(gap / 2).expm1()


def _gaussian(mu: Any, x: float) -> Any:
    root = flint.arb(2).sqrt()
    near = ((flint.arb(x) / mu - mu / 2) / root).erfc() / 2
    far = ((flint.arb(x) / mu + mu / 2) / root).erfc() / 2
    return near - flint.arb(x).exp() * far


def _of_pair(pair: LossPair, x: float) -> Bounds:
    """The curve of a pair given by atoms: a sum of positive terms. Sandwiched pairs are put on a fine grid first."""
    if pair.density is None:
        # Losses off by loss_error move the curve by as much along x.
        least = _log_curve(pair.atoms.loss, pair.atoms.log_p - pair.atoms.error, x + pair.atoms.loss_error, -1.0)
    else:
        sets = lower_distribution(pair, _fine_step(pair), 0.0)
        # Each set of outcomes has the loss log P - log Q, whatever it is named.
        least = _log_curve(sets.log_p - sets.log_q, sets.log_p, x + 2.0**-44 * (1 + abs(x)), -1.0)
    return _unit(math.exp(min(least, 0.0)), _upper_of_pair(pair)(x))


def _upper_of_pair(pair: LossPair) -> Callable[[float], float]:
    """The upper side of that curve."""
    if pair.density is None:
        above = pair.atoms if pair.dominating is None else pair.dominating.atoms
        loss, log_p, moved = above.loss, above.log_p + above.error, above.loss_error
    else:
        step = _fine_step(pair)
        distribution = upper_distribution(pair, step, 0.0)
        loss, log_p = distribution.index.astype(np.float64) * step, distribution.log_mass
        moved = distribution.shift + 2.0**-50 * float(np.abs(_ends(pair)).sum())
    top = pair if pair.dominating is None else pair.dominating

    def curve(x: float) -> float:
        most = _log_curve(loss, log_p, x - moved, 1.0)
        # Cut off mass may count in full, at either end.
        most = float(np.logaddexp.reduce([most, top.log_infinite, top.log_above, top.log_below]))
        return min(1.0, math.exp(min(most, 0.0)) * (1 + 2.0**-50)) if most > -math.inf else 0.0

    return curve


def _fine_step(pair: LossPair) -> float:
    low, high = _ends(pair)
    return float(high - low) / _FINE_CELLS


def _ends(pair: LossPair) -> Array:
    assert pair.density is not None
    return pair.density.loss(np.array([pair.density.low, pair.density.high]))


def _log_curve(loss: Array, log_p: Array, x: float, sign: float) -> float:
    """log of the sum of P (1 - e^(x - loss)) over losses above x, rounded up (sign 1) or down (-1)."""
    use = loss > x
    if not use.any():
        return -math.inf
    terms = log_p[use] + np.log(-np.expm1(x - loss[use]))
    size = float(np.max(np.abs(terms[np.isfinite(terms)]), initial=0.0))
    total = float(np.logaddexp.reduce(terms)) if len(terms) < 64 else _log_sum(terms)
    return total + sign * (2.0**-44 + 2.0**-50 * size)


def _log_sum(terms: Array) -> float:
    peak = float(np.max(terms))
    return peak + math.log(float(np.sum(np.exp(terms - peak))))
