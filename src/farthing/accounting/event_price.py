"""What one event costs, in each precision that somebody works with.

    exact    `price_of`: pure epsilon, leak and zCDP as fractions, rounded up; `renyi_divergence_upper`; `log_moment` as
             a ball. Filters, odometers and amplification add these.
    whole    `divergences_of`, `alone_in_nano`: whole billionths of epsilon and units of 1e-40 of delta, rounded up. A
             ledger stores and adds these, so that its sums are exact on every machine.

`compose` encloses the cost of many events together, from the same transforms with bounds on their error
(`loss_transforms`). With M(z) = E[exp(z L)] the transform of the privacy loss L, the divergence of order alpha is
log M(alpha - 1) / (alpha - 1): each event is priced by its own transform, and a black box by that of randomized
response, which dominates its class. A leak is priced apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from farthing.accounting.compose import compose
from farthing.errors import InvalidValue
from farthing.numerics.bounds import (
    ball,
    exact,
    float_down,
    float_up,
    precise_balls,
    rounded_down,
    upper_fraction,
)
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
from farthing.privacy.events import checked_delta, checked_epsilon

# Exact: fractions and balls, rounded up.

Charge = Event | float | tuple[float, float]
"""What filters take: an event, an epsilon, or an (epsilon, delta) pair."""


def as_event(charge: Charge) -> Event:
    """The event a charge stands for.

    >>> as_event(0.5), as_event((0.5, 1e-9))
    (ApproxDP(epsilon=0.5, delta=0.0), ApproxDP(epsilon=0.5, delta=1e-09))
    """
    if isinstance(charge, Event):
        return charge
    if isinstance(charge, tuple | list):
        if len(charge) != 2:
            raise InvalidValue("charge", charge, "a pair must be (epsilon, delta)", "charge events one at a time")
        return ApproxDP(charge[0], charge[1])
    return ApproxDP(charge)


@dataclass(frozen=True, slots=True)
class Price:
    """Exact amounts for one event; `None` where the event has no finite amount in that currency."""

    epsilon: Fraction | None
    leak: Fraction
    twice_rho: Fraction | None
    """2 rho of zCDP for the part without leak: epsilon^2 for an epsilon-DP mechanism."""


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
        For neighbours with distributions P and Q of the event's answer (given no leak), both D_alpha(P || Q) and
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
        raise InvalidValue("event", event, f"has no finite Renyi bound at alpha={alpha!r}", "use a smaller alpha")
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
            "alpha",
            alpha,
            f"must be at most {_LARGEST_SAMPLED_ORDER} to price a sampled event",
            "make the filter with a smaller alpha",
        )
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
    weight, excess = (1 - p) ** order * order * odds, arb(0)
    for k in range(2, order + 1):
        weight *= odds * (order - k + 1) / k
        excess += weight * _moment_excess(event.event, k - 1)
    return excess.log1p()


@lru_cache(maxsize=8192)
def _moment_excess(event: Event, z: int) -> Any:
    """M(z) - 1: the same for every order and probability of a sample. An enclosure holds at any precision."""
    return log_moment(event, arb(z)).expm1()


# Whole numbers. An account must add up the same on every machine, in every database and after any number of charges, so
# it holds no doubles. A budget is rounded down and a charge up; a number that a short decimal names is read as that
# decimal, so ten charges of 0.1 fill a budget of 1.0 exactly.

NANO = 10**9
"""Units of epsilon, and of Renyi divergence, in 1."""

DELTA_UNITS = 10**40
"""Units of delta in 1."""

LARGEST_EPSILON = 10**6
"""Beyond, nothing is private; `compose` draws the same line."""


def budget_in_nano(epsilon: float) -> int:
    """The epsilon of a budget in billionths, rounded down.

    >>> budget_in_nano(0.1), budget_in_nano(1 / 3)
    (100000000, 333333333)
    """
    number = checked_epsilon(epsilon)
    if not (number == 0 or 1 / NANO <= number <= LARGEST_EPSILON):
        raise InvalidValue("epsilon", epsilon, "a budget must be 0, or at least 1e-9 and at most 1e6")
    return math.floor(exact(number) * NANO)


def budget_in_units(delta: float) -> int:
    """The delta of a budget in units of 1e-40, rounded down.

    >>> budget_in_units(1e-9) == 10**31
    True
    """
    number = checked_delta(delta)
    if not (number == 0 or number >= 1e-40):
        raise InvalidValue("delta", delta, "a budget must be 0 or at least 1e-40", "use a delta such as 1e-9")
    return math.floor(exact(number) * DELTA_UNITS)


def nano_up(epsilon: Fraction) -> int:
    """An epsilon in billionths, rounded up: nothing above 0 is free.

    >>> nano_up(Fraction(1, 10)), nano_up(Fraction(1, 10**12))
    (100000000, 1)
    """
    return math.ceil(epsilon * NANO)


def units_up(delta: Fraction) -> int:
    """A delta in units of 1e-40, rounded up.

    >>> units_up(Fraction(1, 10**60))
    1
    """
    return math.ceil(delta * DELTA_UNITS)


def epsilon_down(nano: int) -> float:
    """Billionths as a double that is read as no more than they are.

    >>> epsilon_down(300_000_000)
    0.3
    """
    return float_down(Fraction(nano, NANO))


def epsilon_up(nano: int) -> float:
    """Billionths as a double that is read as no less than they are."""
    return float_up(Fraction(nano, NANO))


def delta_down(units: int) -> float:
    """Units of 1e-40 as a double that is read as no more than they are.

    >>> delta_down(5 * 10**30)
    5e-10
    """
    return float_down(Fraction(units, DELTA_UNITS))


def delta_up(units: int) -> float:
    """Units of 1e-40 as a double that is read as no less than they are."""
    return float_up(Fraction(units, DELTA_UNITS))


PARTS = 256
"""Orders are 1 + n / PARTS for whole n."""

EXCESSES = (
    128, *(PARTS * n for n in (
        1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 40, 51, 64, 81, 102, 128, 161, 203, 256, 323, 406, 512, 1024, 4096,
    )),
)  # fmt: skip
"""alpha - 1 of every order kept, in parts: three to the octave where common budgets are, wider outside."""

ORDERS = tuple(1 + excess / PARTS for excess in EXCESSES)

Divergences = tuple[int | None, ...]
"""One divergence for each of ORDERS in billionths, never falling; None is infinite."""

NOTHING: Divergences = (0,) * len(ORDERS)

# Parts of a plan are priced this much finer than billionths, so that rounding up a plan costs once.
_FINE = 10**9


@lru_cache(maxsize=4096)
def divergences_of(event: Event) -> Divergences:
    """The divergence of `event` at every order, without its leak, rounded up."""
    pure = price_of(event).epsilon  # an epsilon-DP event has no divergence above epsilon
    most = None if pure is None else nano_up(pure)
    return tuple(least(most, None if fine is None else -(-fine // _FINE)) for fine in _fine_divergences(event))


@lru_cache(maxsize=4096)
def _fine_divergences(event: Event) -> Divergences:
    if isinstance(event, Composed):
        parts = [(_fine_divergences(part), count) for part, count in event.parts if count]
        sums = zip(*([None if d is None else count * d for d in part] for part, count in parts), strict=True)
        return tuple(_total(amounts) for amounts in sums) if parts else (0,) * len(ORDERS)
    if isinstance(event, Sampled | BoundedRange):
        return tuple(_generic(event, alpha) for alpha in ORDERS)
    with precise_balls():
        return tuple(_ball_divergence(event, excess) for excess in EXCESSES)


def _generic(event: Event, alpha: float) -> int | None:
    try:
        return math.ceil(renyi_divergence_upper(event, alpha) * NANO * _FINE)
    except InvalidValue:  # no finite bound at this order, or too large an order for a sampled event
        return None


def _ball_divergence(event: Event, excess: int) -> int | None:
    """log M(alpha - 1) / (alpha - 1) in the finest units, rounded up."""
    ball = log_moment(event, arb(fmpq(excess, PARTS))) * fmpq(PARTS, excess)
    if not ball.is_finite():
        return None
    return max(0, int((ball * (NANO * _FINE)).upper().ceil().unique_fmpz()))


def _total(amounts: tuple[int | None, ...]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def least(one: int | None, other: int | None) -> int | None:
    """The lesser of two amounts, None being infinite."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


@lru_cache(maxsize=4096)
def composed_nano(event: Event, units: int) -> int | None:
    """The least epsilon of `event` at a delta of so many units, by its own curve, in billionths rounded up."""
    bounds = compose([event]).epsilon_at(rounded_down(Fraction(units, DELTA_UNITS)))
    return nano_up(Fraction(bounds.upper)) if bounds.upper < math.inf else None


def alone_in_nano(event: Event, units: int) -> int | None:
    """The least epsilon known for `event` and nothing else at a delta of so many units."""
    own = price_of(event)
    known = nano_up(own.epsilon) if own.epsilon is not None and units_up(own.leak) <= units else None
    return least(known, composed_nano(event, units))


def amount_read(value: Any, name: str, *, infinite: bool = False) -> int | None:
    """A whole number >= 0 from stored data; -1, if allowed, is infinite."""
    if isinstance(value, bool) or not isinstance(value, int) or not value >= (-1 if infinite else 0):
        raise InvalidValue(name, value, "must be a whole number >= 0", "the stored account was changed")
    return None if value == -1 else value


def divergences_read(values: Any) -> Divergences:
    """One amount for each order, from stored data."""
    if not isinstance(values, list) or len(values) != len(ORDERS):
        raise InvalidValue("divergences", values, f"must be {len(ORDERS)} whole numbers")
    if set(map(type, values)) == {int} and min(values) >= 0:  # nearly always; -1 is infinite
        return tuple(values)
    return tuple(amount_read(value, "divergences", infinite=True) for value in values)
