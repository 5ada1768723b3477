"""Medium and large compositions beside routes of their own: convolved lattices, connected dots, closed forms.

Origin: everything here is computed when the test runs, by code that shares nothing with the engines. Lattice
distributions are convolved in extended precision; Gaussian noise has the closed form of Balle & Wang (arXiv:1805.06530,
Theorem 8); repeated Laplace noise is a mixture of atoms and tilted Irwin-Hall densities, integrated by mpmath.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import flint
import mpmath
import numpy as np
import pytest

from farthing import Bounds, compose
from farthing.accounting.theorems import kov_exact_homogeneous
from farthing.privacy import DiscreteLaplaceNoise, GaussianNoise, LaplaceNoise
from theorems.lattice_twin import LatticeTwin
from theorems.transcripts import many_digits

# --- lattices, shown and hidden ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def twin_of(multiples: tuple[int, ...], step: float) -> LatticeTwin:
    """Of the last ones asked for: several deltas are judged by the same distribution."""
    return LatticeTwin.of(multiples, step)


def check(multiples: np.ndarray, step: float, delta: float, width: float, *, typed: bool = True) -> None:
    """The proven interval holds the twin's answer; for what people type estimates are good to 1e-10 as well."""
    values = multiples * step
    twin = twin_of(tuple(multiples.tolist()), step)
    truth, composition = twin.epsilon_at(delta), compose(values)
    bounds = composition.epsilon_at(delta)
    # The doubles are off the lattice by a rounding each, and the twin's curve by its own error.
    off = 2.0**-52 * float(values.sum()) + 10 * twin.error
    assert bounds.lower - off <= truth <= bounds.upper + off
    assert bounds.proven and bounds.width <= width
    x = 0.8 * truth
    exact, found = math.exp(twin.log_curve(x)), composition.delta_at(x)
    assert found.lower * (1 - 1e-13) <= exact <= found.upper * (1 + 1e-13)
    if typed:
        assert abs(bounds.estimate - truth) <= max(1e-10, off)
        quick = composition.epsilon_at(delta, proof=False)
        assert not quick.proven and quick.lower - off <= truth <= quick.upper + off
        assert step < 1e-4 or abs(quick.estimate - truth) <= max(1e-10, off)


@pytest.mark.parametrize("count", [41, 60, 200])
@pytest.mark.parametrize("delta", [0.2, 1e-9, 2.0**-100])
def test_decimals_equal_the_convolved_lattice(count: int, delta: float) -> None:
    check(np.random.default_rng(count).integers(1, 60, count), 0.01, delta, 1e-9)


@pytest.mark.parametrize("step", [1e-4, 1e-6, 1e-7, 1e-8])
def test_tiny_decimals_equal_the_convolved_lattice(step: float) -> None:
    """Where a naive lattice kernel cancels, and where the lattice is too fine to walk through."""
    multiples = np.random.default_rng(3).integers(1, 200, 100)
    for delta in (step, 1e-9):
        check(multiples, step, delta, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "top", "delta"),
    [pytest.param(45, 3000, 1e-9, marks=pytest.mark.slow), (300, 150, 0.1), (300, 150, 1e-9)],
)
def test_a_lattice_nobody_can_see_is_proven_all_the_same(count: int, top: int, delta: float) -> None:
    """Multiples of an irrational step look like any reals to the engines, yet the transform comes back far up."""
    step = math.sqrt(2) * (1.6e-4 if top > 1000 else 1.6e-3)
    multiples = np.random.default_rng(count).integers(67, top, count)
    assert compose(multiples * step).engine_at(delta).name == "contour"
    check(multiples, step, delta, 1e-6, typed=False)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "top", "step"), [(60, 50_000, 1e-5), (100, 9_000, 1e-4), (1000, 99, 0.01)])
def test_more_decimals_equal_the_convolved_lattice(count: int, top: int, step: float) -> None:
    check(np.random.default_rng(count).integers(1, top, count), step, 1e-9, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-6, 1e-100])
def test_a_thousand_on_a_lattice_nobody_can_see(delta: float) -> None:
    check(np.random.default_rng(8).integers(67, 500, 1000), math.sqrt(3) * 1e-4, delta, 1e-6, typed=False)


# --- reals, with dots connected ----------------------------------------------------------------------------------


def connected_dots(epsilons: np.ndarray, step: float, delta: float) -> float:
    """An upper bound of the optimum: every loss split between its two neighbours on a grid, keeping P- and Q-mass."""
    reach = sum(math.ceil(e / step) for e in epsilons.tolist())
    distribution, start = np.ones(1), 0  # distribution[j] is the P-mass at (start + j) * step
    for e in epsilons.tolist():
        taps: dict[int, float] = {}
        for loss, mass in ((e, 1 / (1 + math.exp(-e))), (-e, 1 / (1 + math.exp(e)))):
            below = math.floor(loss / step)
            share = math.expm1(below * step - loss) / math.expm1(-step)
            taps[below] = taps.get(below, 0.0) + mass * (1 - share)
            taps[below + 1] = taps.get(below + 1, 0.0) + mass * share
        wider = np.zeros(len(distribution) + max(taps) - min(taps))
        for place, mass in taps.items():
            wider[place - min(taps) : place - min(taps) + len(distribution)] += mass * distribution
        distribution, start = wider, start + min(taps)
    loss = (start + np.arange(len(distribution))) * step
    low, high = 0.0, reach * step
    for _ in range(100):
        middle = (low + high) / 2
        above = loss > middle
        value = float(np.sum(distribution[above] * -np.expm1(middle - loss[above])))
        low, high = (middle, high) if value > delta else (low, middle)
    return high


@pytest.mark.slow
@pytest.mark.parametrize(("count", "step"), [(60, 1e-3), (200, 4e-3), pytest.param(1000, 8e-3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("delta", [0.05, 1e-9])
def test_reals_lie_below_connected_dots_and_where_these_converge_to(count: int, step: float, delta: float) -> None:
    values = np.random.default_rng(count).uniform(0.01, 0.5, count)
    bounds = compose(values).epsilon_at(delta)
    rough, fine = connected_dots(values, step, delta), connected_dots(values, step / 2, delta)
    assert bounds.lower <= fine <= rough
    limit = fine - (rough - fine) / 3  # the error is second order in the step
    assert abs(bounds.estimate - limit) <= 0.05 * (rough - fine) + 1e-11
    assert bounds.width <= 1e-6


# --- equal charges -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "count", "delta"),
    [
        (0.1, 41, 1e-300),
        (0.5, 333, 0.3),
        (1e-9, 1000, 1e-9),
        (5.0, 2000, 1e-12),
        (2.0**-20, 12_345, 1e-7),
        (1e-3, 10**6, 1e-300),
        (1e-4, 10**7, 1e-9),
    ],
)
def test_equal_charges_equal_the_sum_of_binomials(epsilon: float, count: int, delta: float) -> None:
    exact = kov_exact_homogeneous(epsilon, count, delta)
    for composition in (
        compose([epsilon], counts=[count]),
        compose([epsilon, epsilon], counts=[count // 3, count - count // 3]),
    ):
        bounds = composition.epsilon_at(delta)
        assert bounds.lower <= exact.upper and exact.lower <= bounds.upper
        assert bounds.width <= 1e-9 * max(1.0, exact.upper)
        quick = composition.epsilon_at(delta, proof=False)
        assert quick.lower * (1 - 1e-15) <= exact.upper and exact.lower <= quick.upper * (1 + 1e-15)
        if epsilon >= 1e-3:
            assert abs(quick.estimate - exact.estimate) <= 1e-10 * max(1.0, exact.upper)


def test_discrete_laplace_noise_at_sensitivity_one_is_randomized_response() -> None:
    exact = kov_exact_homogeneous(0.25, 80, 1e-9)
    bounds = compose([DiscreteLaplaceNoise(4.0)], counts=[80]).epsilon_at(1e-9)
    assert bounds.lower <= exact.upper and exact.lower <= bounds.upper and bounds.width <= 1e-9


# --- Gaussian noise ----------------------------------------------------------------------------------------------


def gaussian_delta(mu_squared: Any, x: Any) -> Any:
    """Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu), in balls."""
    mu, root = mu_squared.sqrt(), flint.arb(2).sqrt()
    return (((x / mu - mu / 2) / root).erfc() - x.exp() * ((x / mu + mu / 2) / root).erfc()) / 2


def holds_gaussian(mu_squared: Any, delta: float, bounds: Bounds) -> bool:
    """Whether the curve is at or below delta at the upper end and at or above it at the lower."""
    above = gaussian_delta(mu_squared, flint.arb(bounds.upper)) <= delta
    below = bounds.lower == 0 or gaussian_delta(mu_squared, flint.arb(bounds.lower)) >= delta
    return bool(above and below)


@pytest.mark.parametrize("multiplier", [1e-2, 0.3, 1.0, 4.0, 100.0, 1e4])
@pytest.mark.parametrize("count", [1, 7])
def test_gaussian_noise_has_its_closed_form(multiplier: float, count: int) -> None:
    composition = compose([GaussianNoise(multiplier)], counts=[count])
    with many_digits(3000):
        mu_squared = count / flint.arb(multiplier) ** 2
        for delta in (0.3, 1e-6, 1e-15, 1e-30, 2.0**-100, 1e-300):
            bounds = composition.epsilon_at(delta)
            assert holds_gaussian(mu_squared, delta, bounds), (delta, bounds)
            assert bounds.width <= 1e-9 * max(1.0, bounds.upper)
            assert bounds.upper > 0 or gaussian_delta(mu_squared, flint.arb(0)) <= delta
        for x in (0.0, 0.5 / multiplier, 3 / multiplier):
            found, exact = composition.delta_at(x), gaussian_delta(mu_squared, flint.arb(x))
            assert not (exact < found.lower or exact > found.upper)


def test_gaussian_noises_of_different_size_are_one_of_their_total() -> None:
    noises = [GaussianNoise(2.0), GaussianNoise(5.0), GaussianNoise(0.7)]
    with many_digits(600):
        mu_squared = sum((1 / flint.arb(noise.noise_multiplier) ** 2 for noise in noises), flint.arb(0))
        for delta in (1e-3, 1e-9, 1e-60):
            assert holds_gaussian(mu_squared, delta, compose(noises).epsilon_at(delta))


# --- Laplace noise -----------------------------------------------------------------------------------------------


def laplace_delta(epsilon: Any, count: int, x: Any) -> Any:
    """k Laplace noises: each loss is +e (1/2), -e (exp(-e)/2), or has density exp((l-e)/2)/4 between.

    The sum of m of the last has density 4^-m exp((s - m e)/2) times the m-fold convolution of the interval (-e, e).
    """
    total = mpmath.mpf(0)
    for up in range(count + 1):
        for down in range(count + 1 - up):
            m = count - up - down
            ways = mpmath.factorial(count) / (mpmath.factorial(up) * mpmath.factorial(down) * mpmath.factorial(m))
            weight = ways * mpmath.mpf(0.5) ** up * (mpmath.exp(-epsilon) / 2) ** down
            y = x - (up - down) * epsilon
            if m == 0:
                total += weight * max(0, -mpmath.expm1(y))
                continue
            edges = [(2 * j - m) * epsilon for j in range(m + 1)]
            pieces = sorted({min(max(y, edges[0]), edges[-1]), *(edge for edge in edges if edge > y)})
            if len(pieces) > 1:
                total += weight * mpmath.quad(
                    lambda s, m=m, y=y: -mpmath.expm1(y - s) * _density(s, m, epsilon), pieces
                )
    return total


def _density(s: Any, m: int, epsilon: Any) -> Any:
    terms = ((-1) ** j * mpmath.binomial(m, j) * max(s + (m - 2 * j) * epsilon, 0) ** (m - 1) for j in range(m + 1))
    if m == 1:
        interval = mpmath.mpf(1)
    else:
        interval = mpmath.fsum(terms) / mpmath.factorial(m - 1)
    return interval * mpmath.exp((s - m * epsilon) / 2) / mpmath.mpf(4) ** m


@pytest.mark.slow
@pytest.mark.parametrize(("count", "multiplier"), [(1, 4.0), (2, 0.5), (3, 4.0), (4, 2.0)])
def test_repeated_laplace_noise_equals_its_convolution(count: int, multiplier: float) -> None:
    composition = compose([LaplaceNoise(multiplier)], counts=[count])
    with mpmath.workdps(20):
        epsilon = 1 / mpmath.mpf(multiplier)
        for place in (0.0, 0.37, 0.9):
            x = place * count / multiplier
            exact, bounds = laplace_delta(epsilon, count, mpmath.mpf(x)), composition.delta_at(x)
            assert bounds.lower <= exact * (1 + mpmath.mpf(10) ** -15)
            assert bounds.upper >= exact * (1 - mpmath.mpf(10) ** -15)
            assert bounds.width <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("noise", [LaplaceNoise, GaussianNoise])
def test_many_noises_beside_many_responses_agree_with_their_worst_case(noise: Any) -> None:
    """Not another route, but an order: exact curves cost no more than (epsilon, delta) guarantees of the same noise."""
    responses = np.random.default_rng(4).uniform(0.01, 0.2, 41)
    own = compose([noise(10.0)] * 20).plus(responses).epsilon_at(1e-6)
    alone = 0.1 if noise is LaplaceNoise else compose([noise(10.0)]).epsilon_at(1e-9).upper
    worst = compose([(alone, 0.0 if noise is LaplaceNoise else 1e-9)] * 20).plus(responses).epsilon_at(1e-6)
    assert own.proven and own.upper < worst.lower
    assert own.lower > compose(responses).epsilon_at(1e-6).upper
