"""Exact distributions beside plain sums in many digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from farthing.errors import InvalidValue
from farthing.mechanisms.noise_distributions import (
    DiscreteGaussianDistribution,
    DiscreteLaplaceDistribution,
    NoiseDistribution,
)

SCALES = [
    Fraction(1, 1000),
    Fraction(3, 10),
    Fraction(1),
    Fraction(37, 10),
    Fraction(50),
    Fraction(63),
    Fraction(64),
]


def masses(distribution: NoiseDistribution, reach: int) -> dict[int, mpmath.mpf]:
    """P[noise = n] for 0 <= n <= reach by summing the unnormalised masses, the obvious way."""
    with mpmath.workdps(40):
        if isinstance(distribution, DiscreteLaplaceDistribution):
            rate = mpmath.mpf(distribution.scale.denominator) / distribution.scale.numerator
            raw = [mpmath.exp(-n * rate) for n in range(reach + 1)]
        else:
            assert isinstance(distribution, DiscreteGaussianDistribution)
            v = mpmath.mpf(distribution.sigma_squared.numerator) / distribution.sigma_squared.denominator
            raw = [mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * v)) for n in range(reach + 1)]
        total = raw[0] + 2 * mpmath.fsum(raw[1:])
        return {n: mass / total for n, mass in enumerate(raw)}


def cases() -> list[tuple[NoiseDistribution, int]]:
    laplace = [(DiscreteLaplaceDistribution(s), int(90 * s) + 40) for s in SCALES]
    gaussian = [(DiscreteGaussianDistribution(s**2), int(16 * s) + 20) for s in SCALES]
    return [*laplace, *gaussian]


@pytest.mark.parametrize(("distribution", "reach"), cases(), ids=str)
def test_mass_tail_and_variance_are_those_of_the_plain_sums(distribution: NoiseDistribution, reach: int) -> None:
    mass = masses(distribution, reach)
    for n in (0, 1, 2, 5, 17):
        assert distribution.mass(n) == distribution.mass(-n) == pytest.approx(float(mass[n]), rel=1e-13, abs=1e-300)
        tail = 2 * mpmath.fsum(mass[m] for m in range(n + 1, reach + 1))
        # Wide Gaussians integrate over the tail: good to 1e-6 near the middle and better outside.
        assert distribution.tail(n) == pytest.approx(float(tail), rel=1e-5 if reach > 1000 else 1e-13, abs=1e-35)
    variance = 2 * mpmath.fsum(n * n * m for n, m in mass.items())
    assert distribution.variance == pytest.approx(float(variance), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("distribution", "reach"), cases(), ids=str)
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999, 1 - 1e-9])
def test_the_error_is_the_least_that_holds_the_asked_share(
    distribution: NoiseDistribution, reach: int, confidence: float
) -> None:
    mass = masses(distribution, reach)
    within, error = mass[0], 0
    while within < confidence:
        error += 1
        within += 2 * mass[error]
    assert distribution.error(confidence) == error


def test_every_cell_at_once_is_the_power_of_one_cell() -> None:
    distribution = DiscreteLaplaceDistribution(Fraction(5))
    error = distribution.error(0.95, cells=1000)
    assert (1 - distribution.tail(error)) ** 1000 >= 0.95 > (1 - distribution.tail(error - 1)) ** 1000


@pytest.mark.parametrize("scale", [Fraction(65), Fraction(1000), Fraction(10**6), Fraction(2**40)])
def test_wide_gaussians_are_their_integrals(scale: Fraction) -> None:
    distribution = DiscreteGaussianDistribution(scale**2)
    assert distribution.variance == pytest.approx(float(scale**2), rel=1e-14)
    for share, deviations in (
        (0.6826894921370859, 1.0),
        (0.9544997361036416, 2.0),
        (1 - 1.973175290075e-9, 6.0),
    ):
        assert distribution.error(share) == pytest.approx(deviations * float(scale), rel=1e-10, abs=1.01)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, float("nan"), None, "0.95", True])
def test_a_confidence_is_a_probability_between(confidence: object) -> None:
    with pytest.raises(InvalidValue, match="confidence"):
        DiscreteLaplaceDistribution(Fraction(1)).error(confidence)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="cells"):
        DiscreteLaplaceDistribution(Fraction(1)).error(0.9, cells=0)
