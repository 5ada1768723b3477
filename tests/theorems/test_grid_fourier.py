"""Sums on a circle: cells within the errors that `circular_sum` states, no more mass outside than `tails` say."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accounting.algorithms import grid_fourier
from farthing.accounting.algorithms.grid_fourier import (
    FEW_TAPS,
    ROUNDING,
    TRANSFORM_ERROR,
    TiltedDistribution,
    circular_sum,
    tails,
    tilted,
)
from farthing.numerics.bounds import precision


def distribution_of(weights: list[float], count: int, first: int = 0, step: float = 0.25) -> TiltedDistribution:
    index = first + np.arange(len(weights), dtype=np.int64)
    return TiltedDistribution(index, index * step, np.array(weights), 0.0, count, 0.0)


def exact_sum(distributions: list[TiltedDistribution], cells: int, start: int) -> list[Fraction]:
    """The wrapped sum in rational arithmetic, one copy at a time."""
    held = [Fraction(0)] * cells
    held[0] = Fraction(1)
    for distribution in distributions:
        taps = [
            (int(i) % cells, Fraction(float(w))) for i, w in zip(distribution.index, distribution.weight, strict=True)
        ]
        for _ in range(distribution.count):
            fresh = [Fraction(0)] * cells
            for place, mass in enumerate(held):
                if mass:
                    for shift, weight in taps:
                        fresh[(place + shift) % cells] += mass * weight
            held = fresh
    return [held[(start + k) % cells] for k in range(cells)]


def normalised(weights: list[float]) -> list[float]:
    return (np.array(weights) / sum(weights)).tolist()


DISTRIBUTIONS = st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=7).map(normalised)


@pytest.mark.slow
@given(
    st.lists(st.tuples(DISTRIBUTIONS, st.integers(1, 9), st.integers(-5, 5)), min_size=1, max_size=3),
    st.integers(-30, 30),
)
@settings(max_examples=40)
def test_every_cell_is_within_the_stated_errors(parts: list[tuple[list[float], int, int]], start: int) -> None:
    distributions = [distribution_of(weights, count, first) for weights, count, first in parts]
    found = circular_sum(distributions, start, 40)
    truth = exact_sum(distributions, 40, start)
    errors = [abs(Fraction(float(v)) - t) for v, t in zip(found.values, truth, strict=True)]
    assert all(e <= found.absolute + Fraction(found.relative) * t for e, t in zip(errors, truth, strict=True))
    beyond = [max(Fraction(0), e - Fraction(found.relative) * t) for e, t in zip(errors, truth, strict=True)]
    assert math.sqrt(float(sum(e * e for e in beyond))) <= found.norm + 1e-300
    assert (found.values >= 0).all()


def test_many_copies_are_within_errors_that_stay_small() -> None:
    """A thousand copies of a three-cell law, against exact integers: (1 + 2x + x^2)^1000 has binomial coefficients."""
    count, cells = 1000, 4096
    found = circular_sum([distribution_of([0.25, 0.5, 0.25], count)], 0, cells)
    for k in range(900, 1101, 7):
        truth = Fraction(math.comb(2 * count, k), 4**count)
        assert abs(Fraction(float(found.values[k])) - truth) <= Fraction(found.absolute)
    assert found.absolute < 1e-11
    # Errors are relative to the peak, so what lies below them is only known to be small.
    assert found.values[0] <= found.absolute


@pytest.mark.parametrize("cells", [64, 96, 80, 1024, 1536, 1280])
def test_transforms_err_less_than_a_tenth_of_what_is_assumed(cells: int) -> None:
    """The model behind TRANSFORM_ERROR, at every frequency of worst-case and random laws, against ball arithmetic."""
    generator = np.random.default_rng(cells)
    for weights in (
        np.eye(1, cells, cells - 1)[0],
        np.full(cells, 1 / cells),
        generator.dirichlet(np.ones(cells)),
    ):
        computed = np.fft.rfft(weights)
        with precision(100):
            roots = [flint.acb(flint.fmpq(2 * k, cells)).exp_pi_i() for k in range(cells)]
            for k in range(0, cells // 2 + 1, max(1, cells // 16)):
                exact = sum(
                    (flint.arb(float(w)) * roots[(-k * j) % cells] for j, w in enumerate(weights)),
                    flint.acb(0),
                )
                off = math.hypot(
                    float(exact.real - float(computed[k].real)), float(exact.imag - float(computed[k].imag))
                )
                assert off <= 0.1 * TRANSFORM_ERROR * ROUNDING * math.log2(cells) * float(np.sum(weights))


def test_an_error_bound_that_forgets_the_count_would_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is not so generous that nothing could break it."""
    count, cells = 100_000, 1 << 13
    weights = normalised([0.3, 0.1, 0.2, 0.15, 0.25])
    distribution = distribution_of(weights, count)
    whole = circular_sum([distribution], 2 * count, cells)
    monkeypatch.setattr(grid_fourier, "_power", lambda base, n: base**n * (1 + 3 * n * ROUNDING))
    bent = circular_sum([distribution], 2 * count, cells)
    moved = float(np.max(np.abs(bent.values - whole.values)))
    assert 0 < moved <= whole.absolute
    assert moved > whole.absolute / 1e5


def test_the_worst_error_of_a_transform_stays_inside_after_many_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transform that errs as much as the model allows, at every frequency and in the direction that hurts most."""
    count, cells = 100_000, 1 << 13
    distribution = distribution_of(normalised([0.3, 0.1, 0.2, 0.15, 0.25]), count)
    exact = circular_sum([distribution], 2 * count, cells)
    honest = np.fft.rfft
    allowed = TRANSFORM_ERROR * ROUNDING * math.log2(cells)

    def worst(values: np.ndarray) -> np.ndarray:
        spectrum = honest(values)
        return spectrum + 0.9 * allowed * spectrum / np.maximum(np.abs(spectrum), 1e-300)

    monkeypatch.setattr(np.fft, "rfft", worst)
    bent = circular_sum([distribution], 2 * count, cells)
    moved = float(np.max(np.abs(bent.values - exact.values)))
    assert 0.01 * bent.absolute < moved <= bent.absolute
    assert float(np.sqrt(np.sum((bent.values - exact.values) ** 2))) <= bent.norm


def test_direct_and_transformed_sums_agree() -> None:
    weights = normalised([0.5, 0.2, 0.3])
    few = FEW_TAPS // 3
    direct = circular_sum([distribution_of(weights, few)], 0, 64)
    split = circular_sum([distribution_of(weights, few), distribution_of([1.0] + [0.0] * FEW_TAPS, 1)], 0, 64)
    assert direct.absolute == 0.0 < split.absolute
    assert np.max(np.abs(direct.values - split.values)) <= split.absolute + 1e-15


@pytest.mark.slow
@given(
    st.lists(st.floats(-50.0, 0.0), min_size=2, max_size=6),
    st.floats(0.01, 40.0),
    st.sampled_from([1.0, -1.0]),
)
def test_tilting_rounds_to_its_side(log_mass: list[float], rate: float, sign: float) -> None:
    loss = np.linspace(-1.0, 2.0, len(log_mass))
    distribution = tilted(np.arange(len(loss)), loss, np.array(log_mass), rate, 1, sign)
    with precision(200):
        for place, weight in zip(distribution.index.tolist(), distribution.weight.tolist(), strict=True):
            mass = flint.arb(log_mass[place]).exp()
            given_back = (
                flint.arb(weight)
                * (flint.arb(distribution.log_scale) - flint.arb(rate) * flint.arb(float(loss[place]))).exp()
            )
            assert given_back >= mass if sign > 0 else given_back <= mass
    assert float(np.sum(distribution.weight)) == pytest.approx(1.0, abs=1e-9)


def test_weights_too_small_to_matter_are_counted_as_lost() -> None:
    distribution = tilted(np.arange(3), np.array([-50.0, 0.0, 1.0]), np.log([0.5, 0.25, 0.25]), 10.0, 1, 1.0)
    assert distribution.index.tolist() == [1, 2]
    assert 0.5 * math.exp(10.0 * (-50.0) - distribution.log_scale) <= distribution.lost < 1e-120


@pytest.mark.slow
@given(DISTRIBUTIONS, st.integers(1, 12), st.floats(0.1, 5.0))
@settings(max_examples=40)
def test_tails_bound_the_mass_outside_a_window(weights: list[float], count: int, tilt: float) -> None:
    distribution = distribution_of(weights, count)
    reach = tails([distribution], 0.25, tilt)
    span = (len(weights) - 1) * count
    held = exact_sum([distribution], span + 1, 0)
    for need in (1.0, 5.0, 20.0):
        bottom, top = reach.bottom(need), reach.top(need)
        above = sum((m for k, m in enumerate(held) if k * 0.25 > top), Fraction(0))
        below = sum((m for k, m in enumerate(held) if k * 0.25 < bottom), Fraction(0))
        assert float(above) <= math.exp(-need) * (1 + 1e-9) and float(below) <= math.exp(-need) * (1 + 1e-9)
        assert float(above + below) <= reach.outside(bottom, top) * (1 + 1e-9)


@pytest.mark.parametrize(("cells", "empty"), [(3, 0), (500, 7), (90_000, 0)])
def test_tails_are_chernoff_bounds_at_each_rate(cells: int, empty: int) -> None:
    generator = np.random.default_rng(cells)
    weights = generator.uniform(0.1, 1.0, cells)
    weights[generator.permutation(cells)[:empty]] = 0.0  # rounded down to nothing
    losses = np.sort(generator.normal(0.0, 0.3, cells))
    parts = [
        replace(distribution_of([1.0], 1), loss=losses, weight=weights / weights.sum(), count=count) for count in (1, 4)
    ]
    reach = tails(parts, 0.25, 2.0)
    for rate, level in zip(reach.rates.tolist(), reach.levels.tolist(), strict=True):
        exact = sum(part.count * math.log(math.fsum(part.weight * np.exp(rate * part.loss))) for part in parts)
        assert exact <= level <= exact + 1e-9
