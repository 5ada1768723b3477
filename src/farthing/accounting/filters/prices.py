"""What one event costs in the currencies of the simple filters: pure epsilon, leak, and zCDP.

Every (epsilon, delta)-DP mechanism is a mixture: on each of two neighbouring datasets its law is
(1 - delta) times a part that is epsilon-DP plus delta times a part that may say everything
(Kairouz, Oh & Viswanath, arXiv:1311.0776v4, section 6; Murtagh & Vadhan, arXiv:1507.03113, section 2). So a charge
has two amounts: what the pure part costs, and the `leak`, the probability of the other part.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

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
