"""renyi_divergence_upper against sums and integrals of the two densities themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from mpmath import mp, mpf, quad

from farthing.accounting.event_price import renyi_divergence_upper
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

ORDERS = (1.25, 2.0, 3.5, 8.0)
DISCRETE = (
    ApproxDP(0.7, 0.01),
    RandomizedResponse(1.3),
    DiscreteLaplaceNoise(1.5),
    DiscreteLaplaceNoise(0.8, 3),
    DiscreteGaussianNoise(1.1),
    DiscreteGaussianNoise(0.9, 2),
)
CONTINUOUS = (LaplaceNoise(1.4), GaussianNoise(1.2))


def masses(event: Event) -> tuple[list[mpf], list[mpf]]:
    """The two distributions of a discrete event, atom by atom, in many digits because high orders blow up the tails."""
    match event:
        case ApproxDP(epsilon=e) | RandomizedResponse(epsilon=e):
            truth = 1 / (1 + mp.exp(-mpf(e)))
            return [truth, 1 - truth], [1 - truth, truth]
        case DiscreteLaplaceNoise(noise_multiplier=m, l1_sensitivity=shift):
            weight: Callable[[int], mpf] = lambda n: mp.exp(-abs(n) / mpf(m * shift))  # noqa: E731
        case DiscreteGaussianNoise(noise_multiplier=m, l2_sensitivity=shift):
            weight = lambda n: mp.exp(-(mpf(n) ** 2) / (2 * (m * shift) ** 2))  # noqa: E731
        case _:
            raise AssertionError(event)
    points = range(-200, 200)
    total = mp.fsum(weight(n) for n in points)
    return [weight(n) / total for n in points], [weight(n - shift) / total for n in points]


def divergence(p: list[mpf], q: list[mpf], alpha: float) -> float:
    """The Renyi divergence of two lists of masses, by its definition."""
    moment = mp.fsum(mpf(a) ** alpha * mpf(b) ** (1 - alpha) for a, b in zip(p, q, strict=True) if a and b)
    return float(mp.log(moment) / (alpha - 1))


def integral(event: Event, alpha: float, p: float, swapped: bool) -> float:
    """The divergence of a continuous event on a Poisson sample of probability p, by quadrature."""
    if isinstance(event, LaplaceNoise):
        b = mpf(event.noise_multiplier)
        density = lambda x: mp.exp(-abs(x) / b) / (2 * b)  # noqa: E731
        knots = [-60, 0, 1, 60]
    else:
        assert isinstance(event, GaussianNoise)
        s = mpf(event.noise_multiplier)
        density = lambda x: mp.npdf(x, 0, s)  # noqa: E731
        knots = [-25, -5, 0, 1, 5, 25]

    def integrand(x: mpf) -> mpf:
        plain = density(x)
        mixed = (1 - p) * plain + p * density(x - 1)
        top, bottom = (plain, mixed) if swapped else (mixed, plain)
        return top**alpha * bottom ** (1 - alpha)

    return float(mp.log(quad(integrand, knots)) / (alpha - 1))


@pytest.mark.parametrize("event", DISCRETE, ids=repr)
@pytest.mark.parametrize("alpha", ORDERS)
def test_discrete_events_match_their_definition(event: Event, alpha: float) -> None:
    p, q = masses(event)
    truth = max(divergence(p, q, alpha), divergence(q, p, alpha))
    upper = float(renyi_divergence_upper(event, alpha))
    assert truth <= upper * (1 + 1e-12)
    if not isinstance(event, DiscreteGaussianNoise) or alpha == int(alpha):  # whose bound is sharp at whole orders only
        assert upper == pytest.approx(truth, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("event", CONTINUOUS, ids=repr)
@pytest.mark.parametrize("alpha", ORDERS)
def test_continuous_events_match_their_definition(event: Event, alpha: float) -> None:
    truth = max(integral(event, alpha, 1, swapped) for swapped in (False, True))
    assert float(renyi_divergence_upper(event, alpha)) == pytest.approx(truth, rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("event", DISCRETE, ids=repr)
@pytest.mark.parametrize("alpha", (*ORDERS, 20.0))
@pytest.mark.parametrize("probability", [0.01, 0.4, 0.9])
def test_sampled_discrete_events_are_bounded_in_both_directions(event: Event, alpha: float, probability: float) -> None:
    p, q = masses(event)
    mixed = [(1 - probability) * b + probability * a for a, b in zip(p, q, strict=True)]
    there, back = divergence(mixed, q, alpha), divergence(q, mixed, alpha)
    upper = float(renyi_divergence_upper(Sampled(event, probability), alpha))
    assert back <= there + 1e-12  # the involution argument
    assert there <= upper + 1e-12
    if alpha == int(alpha):
        assert upper == pytest.approx(there, rel=1e-8, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("event", CONTINUOUS, ids=repr)
@pytest.mark.parametrize(("alpha", "probability"), [(1.5, 0.3), (3.0, 0.05), (6.0, 0.2)])
def test_sampled_continuous_events_are_bounded_in_both_directions(
    event: Event, alpha: float, probability: float
) -> None:
    there, back = (integral(event, alpha, probability, swapped) for swapped in (False, True))
    upper = float(renyi_divergence_upper(Sampled(event, probability), alpha))
    assert back <= there <= upper * (1 + 1e-9)
    if alpha == int(alpha):
        assert upper == pytest.approx(there, rel=1e-7)


def test_a_leaky_sampled_pair_is_no_worse_than_the_sampled_pair_without_its_leak() -> None:
    """Split off p * delta; what is left is sampled randomized response diluted by equal atoms."""
    epsilon, delta, p = 0.8, 0.05, 0.3
    truth = 1 / (1 + math.exp(-epsilon))
    # Atoms: reveal-in, reveal-out, 1, 0. The unit is in the sample with probability p.
    inside = [delta, 0.0, (1 - delta) * truth, (1 - delta) * (1 - truth)]
    outside = [0.0, delta, (1 - delta) * (1 - truth), (1 - delta) * truth]
    mixed = [(1 - p) * b + p * a for a, b in zip(inside, outside, strict=True)]
    keep = 1 - p * delta
    left_mixed = [0.0, mixed[1] / keep, mixed[2] / keep, mixed[3] / keep]
    left_plain = [0.0, (outside[1] - p * delta) / keep, outside[2] / keep, outside[3] / keep]
    assert math.fsum(left_mixed) == pytest.approx(1)
    assert math.fsum(left_plain) == pytest.approx(1)
    for alpha in ORDERS:
        upper = float(renyi_divergence_upper(Sampled(ApproxDP(epsilon, delta), p), alpha))
        assert divergence(left_mixed, left_plain, alpha) <= upper
        assert divergence(left_plain, left_mixed, alpha) <= upper


@pytest.mark.parametrize("event", (*DISCRETE, *CONTINUOUS, Sampled(GaussianNoise(1.0), 0.1)), ids=repr)
def test_divergence_grows_with_the_order(event: Event) -> None:
    values = [float(renyi_divergence_upper(event, alpha)) for alpha in (1.01, 1.5, 2.0, 2.5, 5.0, 50.0)]
    assert values == sorted(values)


def test_divergence_grows_with_the_sampling_probability() -> None:
    for inner in (*DISCRETE, *CONTINUOUS):
        values = [renyi_divergence_upper(Sampled(inner, p), 4.0) for p in (0.0, 1e-6, 0.1, 0.5, 0.99, 1.0)]
        assert values == sorted(values)
        assert values[0] == 0
        assert values[-1] == renyi_divergence_upper(inner, 4.0)


def test_a_black_box_costs_at_least_what_every_mechanism_of_its_class_costs() -> None:
    for alpha in ORDERS:
        box = renyi_divergence_upper(ApproxDP(0.5), alpha)
        assert box >= renyi_divergence_upper(LaplaceNoise(2.0), alpha)
        assert box >= renyi_divergence_upper(DiscreteLaplaceNoise(2.0, 5), alpha)


def test_degenerate_costs() -> None:
    assert renyi_divergence_upper(ApproxDP(0.0), 7.0) < 1e-30
    assert 499.9 < renyi_divergence_upper(ApproxDP(500.0), 1e6) <= 500
    assert 0 < renyi_divergence_upper(ApproxDP(1e-12), 2.0) < 1.1e-24
    assert renyi_divergence_upper(DiscreteLaplaceNoise(1.0, 10**9), 3.0) == pytest.approx(
        float(renyi_divergence_upper(LaplaceNoise(1.0), 3.0)), rel=1e-6
    )
    for alpha in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(InvalidValue, match="must be a finite number > 1"):
            renyi_divergence_upper(ApproxDP(1.0), alpha)
    with pytest.raises(InvalidValue, match="smaller alpha"):
        renyi_divergence_upper(Sampled(GaussianNoise(1.0), 0.5), 1e5)
