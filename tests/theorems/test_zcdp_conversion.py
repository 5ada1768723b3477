"""Both conversions from concentrated DP, beside Gaussian noise, whose curve is known exactly."""

from __future__ import annotations

import math

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.theorems import epsilon_of_zcdp, epsilon_of_zcdp_improved
from farthing.errors import InvalidValue
from strategies import target_deltas
from theorems.transcripts import many_digits

CONVERSIONS = [epsilon_of_zcdp, epsilon_of_zcdp_improved]
rhos = st.floats(-6, 3).map(lambda exponent: 10.0**exponent)


def gaussian_delta(rho: float, epsilon: float) -> object:
    """delta of Gaussian noise with mu^2 / 2 = rho, which is exactly rho-zCDP: Phi(mu/2 - e/mu) - exp(e) Phi(...)."""
    mu = (2 * flint.arb(rho)).sqrt()
    root = flint.arb(2).sqrt()
    above, below = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return ((above / root).erfc() - flint.arb(epsilon).exp() * (below / root).erfc()) / 2


@pytest.mark.slow
@settings(max_examples=80)
@given(rhos, target_deltas(0.9))
def test_both_conversions_hold_for_gaussian_noise(rho: float, delta: float) -> None:
    for convert in CONVERSIONS:
        with many_digits(3000):
            assert not gaussian_delta(rho, convert(rho, delta)) > flint.arb(delta)  # type: ignore[operator]


def test_gaussian_noise_needs_most_of_the_improved_conversion() -> None:
    """zCDP is weaker than being Gaussian, so some is lost: under a tenth at these deltas."""
    for rho, delta in ((0.5, 1e-6), (0.01, 1e-9), (4.0, 1e-12)):
        claim = epsilon_of_zcdp_improved(rho, delta)
        with many_digits(500):
            assert gaussian_delta(rho, 0.9 * claim) > flint.arb(delta)  # type: ignore[operator]


@pytest.mark.slow
@given(rhos, target_deltas(0.9))
def test_the_improved_conversion_is_never_worse(rho: float, delta: float) -> None:
    assert epsilon_of_zcdp_improved(rho, delta) <= epsilon_of_zcdp(rho, delta)


@settings(max_examples=40)
@given(rhos, target_deltas(0.9))
def test_more_rho_or_less_delta_never_costs_less(rho: float, delta: float) -> None:
    for convert in CONVERSIONS:
        base = convert(rho, delta) * (1 - 1e-9)
        assert convert(rho * 1.1, delta) >= base
        assert convert(rho, delta / 2) >= base


def test_the_conversions_at_the_edges() -> None:
    for convert in CONVERSIONS:
        assert convert(0.0, 0.0) == convert(0.0, 1e-9) == 0
        assert convert(0.5, 0.0) == math.inf
        assert 0 <= convert(1e-300, 1e-9) < 1e-100
        assert convert(1e300, 1e-9) >= 1e300


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("bad", [(-0.5, 0.1), (math.nan, 0.1), (math.inf, 0.1), (0.5, 1.0), (0.5, -1e-9)])
def test_values_outside_the_theorem_are_refused(convert: object, bad: tuple[float, float]) -> None:
    assert callable(convert)
    with pytest.raises(InvalidValue):
        convert(*bad)
