"""Renyi divergence of one event at a real order, rounded up.

With M(z) = E[exp(z L)] the transform of the privacy loss L, the divergence of order alpha is
log M(alpha - 1) / (alpha - 1): each event is priced by its own transform, and a black box by that of randomized
response, which dominates its class. A leak is priced apart (see `prices`); this is the part without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from farthing.accounting.filters.exact_amounts import ball, exact, precise_balls, upper_fraction
from farthing.errors import InvalidValue
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

Charge = Event | float | tuple[float, float]
"""What filters take: an event, an epsilon, or an (epsilon, delta) pair."""


@dataclass(frozen=True, slots=True)
class Price:
    """Exact amounts for one event; `None` where the event has no finite amount in that currency."""

    epsilon: Fraction | None
    leak: Fraction
    twice_rho: Fraction | None
    """2 rho of zCDP for the part without leak: epsilon^2 for an epsilon-DP mechanism."""


def as_event(charge: Charge) -> Event:
    """The event a charge stands for.

    >>> as_event(0.5), as_event((0.5, 1e-9))
    (ApproxDP(epsilon=0.5, delta=0.0), ApproxDP(epsilon=0.5, delta=1e-09))
    """
    if isinstance(charge, Event):
        return charge
    if isinstance(charge, tuple | list):
        if len(charge) != 2:
            raise InvalidValue(
                "charge", charge, "a pair must be (epsilon, delta)", "charge events one at a time"
            )
        return ApproxDP(charge[0], charge[1])
    return ApproxDP(charge)


@lru_cache(maxsize=4096)
def price_of(event: Event) -> Price:
    """Pure epsilon, leak and zCDP of one event, rounded up where they are not rational."""
    if isinstance(event, Composed):
        return _price_of_parts(event)
    inner, probability = (event.event, event.probability) if isinstance(event, Sampled) else (event, 1.0)
    if probability == 0:
        return Price(Fraction(0), Fraction(0), Fraction(0))
    epsilon, leak = _pure_epsilon(inner), _own_delta(inner) * exact(probability)
    if epsilon is not None:
        epsilon = amplified(epsilon, exact(probability))
        # A loss within an interval of length epsilon has at most epsilon^2 / 4 of variance under every tilt, a loss
        # within +-epsilon at most epsilon^2 (Cesar & Rogers, arXiv:2004.07223, Lemma 3.2).
        within = probability == 1 and isinstance(inner, BoundedRange)
        return Price(epsilon, leak, epsilon**2 / 4 if within else epsilon**2)
    if probability == 1 and isinstance(inner, GaussianNoise | DiscreteGaussianNoise):
        return Price(None, leak, 1 / exact(inner.noise_multiplier) ** 2)
    return Price(None, leak, None)  # sampled Gaussian noise: zCDP does not shrink with sampling


def _price_of_parts(event: Composed) -> Price:
    """Pure epsilons, leaks and zCDP all add; one part without an amount leaves the whole without it."""
    prices = [(price_of(part), count) for part, count in event.parts if count]
    pure = [count * price.epsilon for price, count in prices if price.epsilon is not None]
    rhos = [count * price.twice_rho for price, count in prices if price.twice_rho is not None]
    return Price(
        sum(pure, Fraction(0)) if len(pure) == len(prices) else None,
        sum((count * price.leak for price, count in prices), Fraction(0)),
        sum(rhos, Fraction(0)) if len(rhos) == len(prices) else None,
    )


def amplified(epsilon: Fraction, probability: Fraction) -> Fraction:
    """ln(1 + p (e^epsilon - 1)), rounded up; exact where sampling changes nothing."""
    if probability in (0, 1) or epsilon == 0:
        return epsilon * probability
    with precise_balls():
        upper = upper_fraction((ball(probability) * ball(epsilon).expm1()).log1p())
    return epsilon if upper is None else min(epsilon, upper)


def _pure_epsilon(event: Event) -> Fraction | None:
    match event:
        case ApproxDP(epsilon=epsilon) | RandomizedResponse(epsilon=epsilon) | BoundedRange(epsilon=epsilon):
            return exact(epsilon)
        case LaplaceNoise(noise_multiplier=multiplier) | DiscreteLaplaceNoise(noise_multiplier=multiplier):
            return 1 / exact(multiplier)
        case GaussianNoise() | DiscreteGaussianNoise():
            return None
    raise InvalidValue("event", event, "must be an event that filters can price", "see farthing.privacy")


def _own_delta(event: Event) -> Fraction:
    return exact(event.delta) if isinstance(event, ApproxDP) else Fraction(0)


_LARGEST_SAMPLED_ORDER = 10_000
"""The sum for a sampled event has one term per unit of order, so the order is bounded."""


@lru_cache(maxsize=4096)
def renyi_divergence_upper(event: Event, alpha: float) -> Fraction:
    """An upper bound of the Renyi divergence of order `alpha`, both directions, of `event` without its leak.

    >>> from farthing.privacy import GaussianNoise
    >>> float(renyi_divergence_upper(GaussianNoise(2.0), 8.0))
    1.0

    Statement:
        For neighbours with laws P and Q of the event's answer (given no leak), both D_alpha(P || Q) and
        D_alpha(Q || P) are at most log M(alpha - 1) / (alpha - 1), with
            randomized response, or any epsilon-DP:  M(z) = cosh((z + 1/2) epsilon) / cosh(epsilon / 2);
            Laplace, e = 1/noise_multiplier:         M(z) = ((z+1) exp(z e) + z exp(-(z+1) e)) / (2z + 1);
            bounded range, the dominating pair:      M(z) = sinh((z + 1/2) epsilon) / ((2z+1) sinh(epsilon / 2)),
                and without sampling exp(z (z+1) epsilon^2 / 8), by Hoeffding's lemma, which is smaller;
            Gaussian, also discrete:                 M(z) = exp(z (z+1) / (2 noise_multiplier^2));
            discrete Laplace:                        a finite sum with a closed form.
        For `event` on a Poisson sample of probability p and an integer order alpha it is at most
            log(sum_k C(alpha, k) (1-p)^(alpha-k) p^k M(k-1)) / (alpha - 1),
        and for other orders (alpha - 1) D_alpha is at most the chord between the integers around, by convexity.
    Source: Mironov, arXiv:1702.07476, section 6 (Laplace, Gaussian, randomized response); Canonne, Kamath & Steinke,
        arXiv:2004.00010, Proposition 5 (discrete Gaussian); Mironov, Talwar & Zhang, arXiv:1908.10530, Theorems 4
        and 5 (sampling, and that this direction is the larger one when an involution swaps P and Q, as it
        does for every event here); Zhu, Dong & Wang, arXiv:2106.08567, Theorem 11 (sampled pairs dominate).
    Assumes: alpha > 1; neighbours add or remove one unit if the event is sampled.
    Direction: upper; an event whose bound cannot be computed is refused.
    Checked by: tests/theorems/test_renyi_divergence.py
    """
    if not 1 < alpha < math.inf:
        raise InvalidValue("alpha", alpha, "must be a finite number > 1")
    if isinstance(event, Composed):  # divergences of one order add (Mironov, Proposition 1)
        return sum((count * renyi_divergence_upper(part, alpha) for part, count in event.parts), Fraction(0))
    if isinstance(event, BoundedRange):
        return min(exact(event.epsilon), exact(alpha) * exact(event.epsilon) ** 2 / 8)
    with precise_balls():
        if isinstance(event, Sampled) and 0 < event.probability < 1:
            moment = _sampled_log_moment(event, alpha)
        elif isinstance(event, Sampled):
            moment = log_moment(event.event, ball(exact(alpha)) - 1) if event.probability else arb(0)
        else:
            moment = log_moment(event, ball(exact(alpha)) - 1)
        upper = upper_fraction(moment / (ball(exact(alpha)) - 1))
    if upper is None:
        raise InvalidValue(
            "event", event, f"has no finite Renyi bound at alpha={alpha!r}", "use a smaller alpha"
        )
    epsilon = price_of(event).epsilon  # an epsilon-DP event has no divergence above epsilon
    return max(Fraction(0), upper if epsilon is None else min(upper, epsilon))


def log_moment(event: Event, z: Any) -> Any:
    """log M(z) of an event that is not sampled, z >= 0, as a ball (an upper bound for the discrete Gaussian)."""
    match event:
        case ApproxDP(epsilon=epsilon) | RandomizedResponse(epsilon=epsilon):
            e = ball(exact(epsilon))
            return ((z + arb(0.5)) * e).cosh().log() - (e / 2).cosh().log()
        case BoundedRange(epsilon=epsilon):
            e = ball(exact(epsilon))
            return (((z + arb(0.5)) * e).sinh() / ((2 * z + 1) * (e / 2).sinh())).log() if epsilon else arb(0)
        case LaplaceNoise(noise_multiplier=multiplier):
            e = 1 / ball(exact(multiplier))
            return (((z + 1) * (z * e).exp() + z * (-(z + 1) * e).exp()) / (2 * z + 1)).log()
        case GaussianNoise(noise_multiplier=multiplier) | DiscreteGaussianNoise(noise_multiplier=multiplier):
            return z * (z + 1) / (2 * ball(exact(multiplier)) ** 2)
        case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=shift):
            return _discrete_laplace_log_moment(1 / (ball(exact(multiplier)) * shift), shift, z)
    raise InvalidValue("event", event, "must be an event that filters can price", "see farthing.privacy")


def _discrete_laplace_log_moment(rate: Any, shift: int, z: Any) -> Any:
    """Mass (1 - r)/(1 + r) r^|n|, r = exp(-rate), against itself moved by `shift`.

    The loss is rate * shift for n <= 0, minus that for n >= shift, and rate * (shift - 2n) between, where the terms are
    a geometric series of ratio exp(-(2z + 1) rate).
    """
    r, top = (-rate).exp(), (z * rate * shift).exp()
    ends = (top + (-rate * shift).exp() / top) / (1 + r)
    ratio = (-(2 * z + 1) * rate).exp()
    between = (1 - r) / (1 + r) * top * ratio * (1 - ratio ** (shift - 1)) / (1 - ratio)
    return (ends + between).log()


def _sampled_log_moment(event: Sampled, alpha: float) -> Any:
    """(alpha - 1) D_alpha of a sampled event: exact at integers, a chord between them."""
    if not alpha <= _LARGEST_SAMPLED_ORDER:
        raise InvalidValue(
            "alpha", alpha, f"must be at most {_LARGEST_SAMPLED_ORDER} to price a sampled event",
            "make the filter with a smaller alpha",
        )  # fmt: skip
    below = math.floor(alpha)
    value = _sampled_integer_log_moment(event, below)
    if below == alpha:
        return value
    share = ball(exact(alpha)) - below
    # alpha -> log E_Q[(mixture / Q)^alpha] is convex, so the chord lies above it.
    return (1 - share) * value + share * _sampled_integer_log_moment(event, below + 1)


def _sampled_integer_log_moment(event: Sampled, order: int) -> Any:
    """log sum_k C(order, k) (1-p)^(order-k) p^k M(k-1); the terms k = 0 and 1 and all the ones sum to 1."""
    p = ball(exact(event.probability))
    odds = p / (1 - p)
    weight, excess = (1 - p) ** order, arb(0)
    for k in range(1, order + 1):
        weight *= odds * (order - k + 1) / k
        if k >= 2:
            excess += weight * log_moment(event.event, arb(k - 1)).expm1()
    return excess.log1p()
