"""Trade-off functions and regions beside the Neyman-Pearson tests of few charges, and of one Gaussian."""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import compose
from farthing.errors import InvalidValue
from farthing.privacy import GaussianNoise, LaplaceNoise

Pair = tuple[float, float]
GRID = np.linspace(0, 1, 201)


def best_tests(charges: list[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """(P_FA, P_MD) corners: reject on the transcripts most likely under the alternative, one after the other."""
    outcomes = [(1.0, 1.0)]  # probabilities under "the person is not in the data" and "is"
    for epsilon, delta in charges:
        told = (1 - delta) / (1 + math.exp(-epsilon))
        lied = (1 - delta) / (1 + math.exp(epsilon))
        four = [(delta, 0.0), (told, lied), (lied, told), (0.0, delta)]
        outcomes = [(p * a, q * b) for p, q in outcomes for a, b in four]
    outcomes = [pair for pair in outcomes if sum(pair) > 0]
    outcomes.sort(key=lambda pair: math.inf if pair[0] == 0 else pair[1] / pair[0], reverse=True)
    alarm = np.cumsum([0.0, *(p for p, _ in outcomes)])
    missed = 1 - np.cumsum([0.0, *(q for _, q in outcomes)])
    return np.minimum(alarm, 1), np.maximum(missed, 0)


small_charges = st.lists(
    st.tuples(st.floats(0.01, 3.0), st.sampled_from([0.0, 0.0, 0.01, 0.1])), min_size=1, max_size=4
)


@settings(max_examples=25)
@given(small_charges)
def test_no_test_does_better_and_few_charges_leave_no_gap(charges: list[Pair]) -> None:
    alarm, missed = best_tests(charges)
    exact = np.interp(GRID, alarm, missed)
    promised = compose(charges).tradeoff()(GRID)
    assert np.all(promised <= exact + 1e-12)
    assert np.all(promised >= exact - 1e-9)


@pytest.mark.slow
@settings(max_examples=25)
@given(small_charges)
def test_the_region_holds_every_test_and_its_opposite(charges: list[Pair]) -> None:
    region = compose(charges).region()
    alarm, missed = best_tests(charges)
    for a, b in zip(alarm.tolist(), missed.tolist(), strict=True):
        # Corners lie on the edge: a hair towards the middle, they must be inside.
        x, y = a + 1e-12 * (0.5 - a), b + 1e-12 * (0.5 - b)
        assert (x, y) in region and (y, x) in region and (1 - x, 1 - y) in region
    assert region.vertices.shape[1] == 2
    assert np.all((region.vertices >= 0) & (region.vertices <= 1))
    assert (0.0, 0.0) not in region and (1.0, 1.0) not in region
    assert (-0.1, 0.5) not in region and (0.5, 1.1) not in region and (math.nan, 0.5) not in region


@pytest.mark.parametrize(
    "charges",
    [
        [0.1] * 60,
        np.random.default_rng(5).uniform(0.01, 0.3, 14),
        [(0.2, 1e-3)] * 20,
        [LaplaceNoise(2.0), 0.3],
        [GaussianNoise(1.0)] * 3,
        [],
        [30.0],
    ],
    ids=["lattice", "atoms", "leaky", "laplace", "gaussian", "nothing", "no privacy"],
)
def test_the_curve_is_convex_falling_symmetric_and_within_the_unit_square(charges: object) -> None:
    curve = compose(charges).tradeoff()
    values = curve(GRID)
    assert values[0] <= 1 and values[-1] == 0 and np.all(values >= 0)
    assert np.all(np.diff(values) <= 0) and np.all(np.diff(values, 2) >= -1e-12)
    assert np.all(values <= 1 - GRID + 1e-15)
    # A symmetric convex curve is its own inverse wherever it falls.
    falling = values > 1e-9
    assert np.all(np.abs(curve(values[falling]) - GRID[falling]) <= 1e-6)
    assert len(curve.alpha) == len(curve.beta) and np.all(np.diff(curve.alpha) >= 0)


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 5.0])
def test_one_gaussian_has_the_known_trade_off(multiplier: float) -> None:
    """G_mu(alpha) = Phi(Phi^-1(1 - alpha) - mu), Dong, Roth & Su, arXiv:1905.02383."""
    normal = NormalDist()
    rates = GRID[1:-1]
    exact = np.array([normal.cdf(normal.inv_cdf(1 - a) - 1 / multiplier) for a in rates.tolist()])
    found = compose([GaussianNoise(multiplier)]).tradeoff()(rates)
    assert np.all(found <= exact + 1e-12) and np.max(exact - found) < 1e-3


def test_nothing_composed_tells_nothing() -> None:
    assert np.allclose(compose([]).tradeoff()(GRID), 1 - GRID, rtol=0, atol=1e-15)
    assert (0.5, 0.5) in compose([]).region() and (0.49, 0.5) not in compose([]).region()


def test_more_charges_lower_the_curve() -> None:
    fewer, more = compose([0.2] * 10), compose([0.2] * 10).plus([0.5])
    assert np.all(more.tradeoff()(GRID) <= fewer.tradeoff()(GRID) + 1e-12)


def test_a_curve_takes_one_rate_or_many_and_refuses_what_is_none() -> None:
    curve = compose([1.0]).tradeoff()
    assert isinstance(curve(0.25), float) and curve(np.array([0.25]))[0] == curve(0.25)
    for bad in (-0.1, 1.1, math.nan, [0.5, 2.0], None):
        with pytest.raises(InvalidValue, match="must be a rate between 0 and 1"):
            curve(bad)


def test_curves_and_regions_are_frozen() -> None:
    for value, name in ((compose([1.0]).tradeoff(), "alpha"), (compose([1.0]).region(), "vertices")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)
