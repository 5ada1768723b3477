"""Guarantees for other units and for samples: groups cost more, secret samples cost less.

Numbers are read as in the filters (a short decimal is the decimal), and results are rounded to the side that
claims less privacy.
"""

from __future__ import annotations

from fractions import Fraction

from farthing.accounting.event_price import Charge, amplified, as_event, price_of
from farthing.errors import InvalidValue
from farthing.numerics.bounds import (
    ball,
    exact,
    float_down,
    float_up,
    precise_balls,
    upper_fraction,
)
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
)
from farthing.privacy.events import checked_count, checked_delta, checked_epsilon, checked_real

__all__ = ["group_privacy", "sampled_approx_dp", "sampled_without_replacement"]


def group_privacy(charge: Charge, size: int) -> Event:
    """What `charge` costs when any `size` units may change together, as an event.

    Noise stays noise of a larger sensitivity, which is exact; everything else becomes an (epsilon, delta) pair.

    Args:
        charge: An epsilon, an (epsilon, delta) pair or an event.
        size: How many units may change together, at least 1.

    Returns:
        The event that the group is protected by.

    Raises:
        InvalidValue: If `charge` is not a charge or cannot be stated for groups, or `size` is not a whole number >= 1.

    >>> from farthing.privacy import GaussianNoise
    >>> group_privacy(GaussianNoise(4.0), 2)
    GaussianNoise(noise_multiplier=2.0)
    >>> group_privacy(0.1, 3)
    ApproxDP(epsilon=0.3, delta=0.0)
    >>> group_privacy((1.0, 1e-9), 3).delta     # 1e-9 (1 + e + e^2); the usual 3 e^2 1e-9 is twice that
    1.11...e-08

    Statement:
        If M is (epsilon, delta)-DP for one unit, it is (g epsilon, delta (1 + e^epsilon + ... + e^((g-1) epsilon)))-DP
        for g units. If one unit moves an answer by at most s, then g units move it by at most g s: the same noise
        has its multiplier divided by g.
    Source: Vadhan, The Complexity of Differential Privacy (2017), Lemma 2.2, before the sum of powers is
        bounded by g e^((g-1) epsilon); the second part is the triangle inequality.
    Assumes: datasets that differ in g units are joined by a chain of g neighbours. Noise events describe one
        answer whose noise does not depend on the data. Randomized response is priced as any epsilon-DP
        mechanism, because the event does not say whether a group holds one bit or several.
    Direction: epsilon and delta rounded up, noise multipliers rounded down.
    Checked by: tests/unit/accounting/test_amplification.py
    """
    event, group = as_event(charge), checked_count(size, "size")
    if not group >= 1:
        raise InvalidValue("size", size, "must be a whole number >= 1")
    match event:
        case GaussianNoise(noise_multiplier=multiplier):
            return GaussianNoise(float_down(exact(multiplier) / group))
        case BoundedRange(epsilon=epsilon):  # the ranges of a chain of neighbours add up
            return BoundedRange(float_up(exact(epsilon) * group))
        case LaplaceNoise(noise_multiplier=multiplier):
            return LaplaceNoise(float_down(exact(multiplier) / group))
        case DiscreteGaussianNoise(noise_multiplier=multiplier, l2_sensitivity=moved):
            return DiscreteGaussianNoise(float_down(exact(multiplier) / group), moved * group)
        case DiscreteLaplaceNoise(noise_multiplier=multiplier, l1_sensitivity=moved):
            return DiscreteLaplaceNoise(float_down(exact(multiplier) / group), moved * group)
    price = price_of(event)
    if price.epsilon is None:
        raise InvalidValue(
            "charge",
            event,
            "sampled Gaussian noise has no group cost of its own here",
            "state an (epsilon, delta) pair that it satisfies for one unit",
        )
    return _pair(group * price.epsilon, _sum_of_leaks(price.epsilon, price.leak, group), "size", size)


def sampled_approx_dp(epsilon: float, delta: float, probability: float) -> ApproxDP:
    """What an (epsilon, delta)-DP mechanism costs on a secret Poisson sample.

    Args:
        epsilon: The epsilon of the mechanism on the sample.
        delta: Its delta.
        probability: The probability with which every unit came into the sample, independently of all others.

    Returns:
        What it costs the population, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> sampled_approx_dp(1.0, 1e-6, 0.01)
    ApproxDP(epsilon=0.01703686323617..., delta=1e-08)

    Statement:
        Keep every unit independently with probability p and do not say which. If M is (epsilon, delta)-DP, then M on
        the sample is (ln(1 + p (e^epsilon - 1)), p delta)-DP; and no less holds for every such M.
    Source: Balle, Barthe & Gaboardi, arXiv:1807.01647, Theorem 8.
    Assumes: neighbours add or remove one unit, for M and for the result; the sample is drawn afresh for M and
        stays secret. Under replacement of a unit this does not hold.
    Direction: both rounded up.
    Checked by: tests/unit/accounting/test_amplification.py
    """
    share = checked_real(probability, "probability")
    if not 0 <= share <= 1:
        raise InvalidValue("probability", probability, "must be between 0 and 1")
    return _amplified_pair(epsilon, delta, exact(share))


def sampled_without_replacement(epsilon: float, delta: float, sample_size: int, population_size: int) -> ApproxDP:
    """What an (epsilon, delta)-DP mechanism costs on a secret sample of a fixed size.

    Args:
        epsilon: The epsilon of the mechanism on the sample, for one unit replaced.
        delta: Its delta.
        sample_size: How many units the sample holds.
        population_size: How many units it was drawn from, at least `sample_size`.

    Returns:
        What it costs the population, rounded up.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> sampled_without_replacement(1.0, 1e-6, 10, 1000) == sampled_approx_dp(1.0, 1e-6, 0.01)
    True

    Statement:
        Draw `sample_size` of `population_size` units, every such set equally likely, and do not say which. If M is
        (epsilon, delta)-DP, then M on the sample is (ln(1 + p (e^epsilon - 1)), p delta)-DP with
        p = sample_size / population_size.
    Source: Balle, Barthe & Gaboardi, arXiv:1807.01647, Theorem 9.
    Assumes: neighbours replace one unit by another, for M and for the result, so the population's size is public;
        the sample is drawn afresh for M and stays secret. Under add/remove use a Poisson sample instead.
    Direction: both rounded up.
    Checked by: tests/unit/accounting/test_amplification.py
    """
    size, out_of = (
        checked_count(sample_size, "sample_size"),
        checked_count(population_size, "population_size"),
    )
    if not 0 <= size <= out_of or not out_of >= 1:
        raise InvalidValue(
            "sample_size", sample_size, f"must be at most population_size={population_size!r}, itself >= 1"
        )
    return _amplified_pair(epsilon, delta, Fraction(size, out_of))


def _amplified_pair(epsilon: float, delta: float, probability: Fraction) -> ApproxDP:
    pure, leak = exact(checked_epsilon(epsilon)), exact(checked_delta(delta))
    return _pair(amplified(pure, probability), probability * leak, "epsilon", epsilon)


def _sum_of_leaks(epsilon: Fraction, leak: Fraction, group: int) -> Fraction | None:
    """leak (1 + e^epsilon + ... + e^((group-1) epsilon)), rounded up; None when it cannot be told from infinity."""
    if leak == 0 or epsilon == 0 or group == 1:
        return leak * group
    with precise_balls():
        return upper_fraction(ball(leak) * (group * ball(epsilon)).expm1() / ball(epsilon).expm1())


def _pair(epsilon: Fraction, delta: Fraction | None, name: str, value: object) -> ApproxDP:
    if delta is None or not delta < 1 or not float_up(delta) < 1:
        raise InvalidValue(name, value, "leaves delta >= 1, which promises nothing", "use a smaller group or delta")
    return ApproxDP(float_up(epsilon), float_up(delta))
