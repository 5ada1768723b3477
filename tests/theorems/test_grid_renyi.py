"""Renyi divergences of composed pairs against closed forms, enumeration and integration."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from farthing.accounting.algorithms import dominating_pairs as grid_discrete
from farthing.accounting.algorithms import grid_renyi
from farthing.accounting.algorithms.grid_algorithm import compose_on_grid
from farthing.accounting.algorithms.grid_renyi import renyi_of_pairs
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
from theorems.grid_twin import outcomes


@pytest.mark.parametrize("alpha", [1.01, 2.0, 15.0])
def test_gaussians_have_alpha_over_two(alpha: float) -> None:
    bounds = renyi_of_pairs(((GaussianNoise(2.0), 8), (GaussianNoise(0.5), 1)), "remove", alpha)
    assert bounds.lower <= alpha * (8 / 4 + 4) / 2 <= bounds.upper
    assert bounds.width < 1e-9 * alpha / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.5, 4.0])
def test_laplace_meets_its_closed_form(alpha: float) -> None:
    e = 0.7
    moment = alpha / (2 * alpha - 1) * math.exp((alpha - 1) * e) + (alpha - 1) / (2 * alpha - 1) * math.exp(-alpha * e)
    bounds = renyi_of_pairs(((LaplaceNoise(1 / e), 3),), "remove", alpha)
    assert bounds.estimate == pytest.approx(3 * math.log(moment) / (alpha - 1), rel=1e-11)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("alpha", [1.5, 3.0, 20.0])
@pytest.mark.parametrize(
    "event",
    [
        RandomizedResponse(0.8),
        Sampled(RandomizedResponse(0.8), 0.3),
        DiscreteLaplaceNoise(1.2, 3),
        Sampled(DiscreteLaplaceNoise(1.2, 3), 0.1),
        Sampled(DiscreteGaussianNoise(1.5), 0.2),
    ],
    ids=repr,
)
def test_discrete_events_hold_the_enumeration(event: Event, alpha: float, direction: str) -> None:
    bounds = renyi_of_pairs(((event, 2),), direction, alpha)  # type: ignore[arg-type]
    with mp.workdps(40):
        moment = mp.fsum(p**alpha * q ** (1 - alpha) for p, q in outcomes(event, direction, 40.0) if p > 0)
        truth = 2 * mp.log(moment) / (alpha - 1)
    assert bounds.lower <= truth <= bounds.upper
    assert bounds.width < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("alpha", [2.0, 6.5])
def test_sampled_gaussians_agree_with_integration(alpha: float, direction: str) -> None:
    q, deviation = mp.mpf(0.1), mp.mpf(0.8)
    bounds = renyi_of_pairs(((Sampled(GaussianNoise(0.8), 0.1), 1),), direction, alpha)  # type: ignore[arg-type]
    with mp.workdps(25):

        def density(y: mp.mpf) -> mp.mpf:
            return mp.exp(-((y / deviation) ** 2) / 2) / (deviation * mp.sqrt(2 * mp.pi))

        def integrand(y: mp.mpf) -> mp.mpf:
            mixture = (1 - q) * density(y) + q * density(y - 1)
            if direction == "remove":
                return mixture**alpha * density(y) ** (1 - alpha)
            mixture = (1 - q) * density(y - 1) + q * density(y)
            return density(y - 1) ** alpha * mixture ** (1 - alpha)

        truth = mp.log(mp.quad(integrand, [-12, -4, 0, 1, 3, 6, 12, 20])) / (alpha - 1)
    assert float(truth) == pytest.approx(bounds.estimate, rel=1e-10)
    assert bounds.width < 1e-11


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_a_sandwiched_discrete_gaussian_is_enclosed(monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    event = Sampled(DiscreteGaussianNoise(1.5, 40), 0.3)
    whole = renyi_of_pairs(((event, 1),), direction, 3.0)  # type: ignore[arg-type]
    monkeypatch.setattr(grid_discrete, "MOST_ATOMS", 100)
    around = renyi_of_pairs(((event, 1),), direction, 3.0)  # type: ignore[arg-type]
    assert around.lower <= whole.lower <= whole.upper <= around.upper
    assert 0 < around.width < 0.05


@pytest.mark.parametrize("event", [GaussianNoise(0.5), DiscreteGaussianNoise(0.5, 6)], ids=repr)
def test_what_is_cut_off_is_paid_for(monkeypatch: pytest.MonkeyPatch, event: Event) -> None:
    whole = renyi_of_pairs(((event, 1),), "remove", 4.0)
    monkeypatch.setattr(grid_renyi, "_DEEP", 3.0)
    cut = renyi_of_pairs(((event, 1),), "remove", 4.0)
    assert cut.lower < whole.lower <= whole.upper < cut.upper


@pytest.mark.slow
def test_the_order_is_monotone_and_the_worse_direction_counts() -> None:
    composition = compose_on_grid([(Sampled(GaussianNoise(0.8), 0.1), 5), (LaplaceNoise(3.0), 2)])
    found = [composition.renyi(alpha) for alpha in (1.1, 2.0, 8.0)]
    assert found[0].upper < found[1].lower < found[1].upper < found[2].lower
    each = [renyi_of_pairs(composition.items, side, 8.0) for side in ("remove", "add")]  # type: ignore[arg-type]
    assert each[1].upper < each[0].lower == found[2].lower


def test_leaks_are_infinite_and_huge_orders_fall_back_soundly() -> None:
    assert compose_on_grid([(ApproxDP(0.1, 1e-9), 1)]).renyi(2.0).lower == math.inf
    far = compose_on_grid([(Sampled(GaussianNoise(0.1), 0.5), 1)]).renyi(500.0)
    assert far.lower <= far.upper == pytest.approx(500.0 * 100 / 2)
    assert compose_on_grid([]).renyi(3.0).upper == 0.0
    for alpha in (1.0, math.inf, math.nan):
        with pytest.raises(InvalidValue, match="must be a finite number > 1"):
            compose_on_grid([]).renyi(alpha)
