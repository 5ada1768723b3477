"""What measurements cost when the table itself is a secret sample of a population."""

from __future__ import annotations

from farthing.accounting import compose, sampled_approx_dp
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, Event
from farthing.privacy.events import checked_delta, checked_real

_TRIVIAL_DELTA = 0.1  # as for plans: an inner delta above this would promise next to nothing


def amplified(event: Event, sampling_rate: float, delta: float) -> ApproxDP:
    """The guarantee of `event` at (at most) `delta` for the population that the table is a secret sample of.

    It holds once: everything that is ever computed on one sample is one mechanism, and only the whole is amplified. Two
    releases from the same sample cost more than the sum of what this says of each.

    >>> from farthing.privacy import Composed, LaplaceNoise
    >>> plan = Composed(((LaplaceNoise(2.0), 2),))
    >>> amplified(plan, 0.01, 0.0)
    ApproxDP(epsilon=0.0170..., delta=0.0)
    """
    rate, whole = checked_rate(sampling_rate), checked_delta(delta)
    inner = min(whole / rate * (1 - 2.0**-50), _TRIVIAL_DELTA) if whole else 0.0
    return sampled_approx_dp(compose([event]).epsilon_at(inner).upper, inner, rate)


def checked_rate(sampling_rate: object) -> float:
    """The probability with which a unit came into the sample.

    >>> checked_rate(0.01)
    0.01
    """
    rate = checked_real(sampling_rate, "sampling_rate")
    if not 0 < rate <= 1:
        raise InvalidValue(
            "sampling_rate", sampling_rate, "must be above 0 and at most 1", "0.01 for one in a hundred"
        )
    return rate
