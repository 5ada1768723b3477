"""Odometer: no adaptive strategy makes the loss exceed the reading, at any time, with more than its delta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import pytest
from mpmath import mp, mpf

from farthing.accounting.filters import Odometer, RenyiFilter
from farthing.numerics.bounds import exact
from farthing.privacy import GaussianNoise, LaplaceNoise


def chance_of_overrun(meter: Odometer, menu: tuple[int, ...], depth: int) -> float:
    """The largest probability, over adaptive strategies, that the loss ever exceeds the reading.

    Questions are randomized responses in tenths; the recursion over (odometer, loss) covers every strategy.
    """

    readings: dict[tuple[int, ...], float] = {}

    def reading(asked: tuple[int, ...]) -> float:
        """The reading after so many of each question; the order of charges does not matter."""
        if asked not in readings:
            state = meter
            for question, count in zip(menu, asked, strict=True):
                state = state.charge(round(question / 10, 12), count)
            readings[asked] = state.epsilon + 1e-12
        return readings[asked]

    @cache
    def solve(asked: tuple[int, ...], loss: int) -> float:
        if sum(asked) == depth:
            return 0.0
        best = 0.0
        for i, question in enumerate(menu):
            after = (*asked[:i], asked[i] + 1, *asked[i + 1 :])
            truth, bar = 1 / (1 + math.exp(-question / 10)), reading(after) * 10
            up = 1.0 if loss + question > bar else solve(after, loss + question)
            down = 1.0 if loss - question > bar else solve(after, loss - question)
            best = max(best, truth * up + (1 - truth) * down)
        return best

    return solve((0,) * len(menu), 0)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.5, 0.2, 0.05])
def test_no_adaptive_strategy_outruns_the_reading(delta: float) -> None:
    assert chance_of_overrun(Odometer(delta, leak=0), (2, 5, 10), depth=12) <= delta


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.5, 0.2])
def test_no_long_adaptive_strategy_outruns_the_reading(delta: float) -> None:
    assert chance_of_overrun(Odometer(delta, leak=0), (2, 5), depth=60) <= delta


@dataclass(frozen=True, repr=False)
class EagerOdometer(Odometer):
    """A planted fault: reads the bound of a single time, as a filter would, at every time."""

    @property
    def epsilon(self) -> float:
        spent = RenyiFilter(10.0, self.delta, leak=0, alpha=3.0)
        return spent.charge(0.5, self.count).spent.epsilon - 1.0 if self.count else 0.0


def test_an_odometer_that_reads_too_low_is_caught() -> None:
    assert chance_of_overrun(EagerOdometer(0.2), (5,), depth=40) > 0.2


@pytest.mark.parametrize("charge", [0.01, LaplaceNoise(100.0), GaussianNoise(100.0)])
def test_reading_costs_little_over_a_filter_of_the_same_size(charge: object) -> None:
    """The price of every time at once: at most two fifths more than the best single order, chosen afterwards."""
    for count in (100, 1_000, 10_000, 100_000):
        reading = Odometer(1e-6, leak=0).charge(charge, count).epsilon  # type: ignore[arg-type]
        best = min(
            RenyiFilter(1e5, 1e-6, leak=0, alpha=a).charge(charge, count).spent.epsilon  # type: ignore[arg-type]
            for a in (1.5, 2, 3, 5, 8, 14, 25, 50, 100, 200, 400, 800)
        )
        assert best <= reading <= 1.4 * best


@pytest.mark.parametrize("charge", [0.05, LaplaceNoise(7.0), GaussianNoise(3.0)])
def test_reading_solves_its_equation_and_is_verified(charge: object) -> None:
    """The mixture written out again in another arithmetic, at the reading and a hair below it."""
    delta, count = 1e-6, 400
    meter = Odometer(delta, leak=0).charge(charge, count)  # type: ignore[arg-type]
    alphas = [1 + mpf(2) ** j for j in range(-3, 13)]

    def mixture(epsilon: float) -> mpf:
        sums = [count * _divergence(charge, alpha) for alpha in alphas]
        terms = [mp.exp((a - 1) * (mpf(epsilon) - s)) for a, s in zip(alphas, sums, strict=True)]
        return mp.fsum(terms) / len(terms)

    assert mixture(meter.epsilon) * (1 + mpf(10) ** -12) >= 1 / mpf(delta)
    assert mixture(meter.epsilon * (1 - 1e-9)) < 1 / mpf(delta)
    assert meter._reaches(meter.epsilon, exact(delta))
    assert not meter._reaches(meter.epsilon * (1 - 1e-9), exact(delta))
    assert not meter._reaches(math.nan, exact(delta)) and not meter._reaches(math.inf, exact(delta))


def _divergence(charge: object, alpha: mpf) -> mpf:
    if isinstance(charge, GaussianNoise):
        return alpha / (2 * charge.noise_multiplier**2)
    if isinstance(charge, LaplaceNoise):
        e = 1 / mpf(charge.noise_multiplier)
        moment = alpha * mp.exp((alpha - 1) * e) + (alpha - 1) * mp.exp(-alpha * e)
        return mp.log(moment / (2 * alpha - 1)) / (alpha - 1)
    e = mpf(charge)
    return mp.log(mp.cosh((alpha - mpf(1) / 2) * e) / mp.cosh(e / 2)) / (alpha - 1)


@pytest.mark.slow
def test_reading_never_falls_and_never_exceeds_the_plain_sum() -> None:
    meter, before = Odometer(1e-9), 0.0
    for k in range(1, 200):
        meter = meter.charge((0.1, 1e-13))
        assert before <= meter.epsilon <= k * 0.1 * (1 + 1e-12)
        before = meter.epsilon


def test_a_smaller_delta_reads_higher() -> None:
    readings = [Odometer(d, leak=0).charge(0.1, 500).epsilon for d in (0.1, 1e-3, 1e-9, 1e-300)]
    assert readings == sorted(readings)


def test_degenerate_readings() -> None:
    meter = Odometer(1e-6, leak=1e-7)
    assert meter.epsilon == 0.0
    assert meter.charge(0.0, 10**6).epsilon == 0.0
    assert meter.charge(5.0, 0) == meter
    assert meter.charge((0.1, 1e-8), 10).epsilon == 1.0  # exactly the leak set aside
    assert meter.charge((0.1, 1e-8), 11).epsilon == math.inf
    assert meter.charge((0.1, 1e-8), 11).leaked == 1.1e-7
    assert 0 < meter.charge(GaussianNoise(1e6)).epsilon < 0.01
    assert meter.charge(1e6, 10**6).epsilon < math.inf
