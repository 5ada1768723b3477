"""Tests know the noise: p-values are even where the hypothesis is true, and small where it is far from true."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference.noisy_numbers import NoisyNumber
from farthing.inference.significance import (
    TOO_FEW,
    Noises,
    Significance,
    adjusted,
    equality,
    fit,
    independence,
    p_value_of,
    same_distribution,
)

DRAW = np.random.Generator
DRAWS = 999


def laplace(draw: DRAW, scale: float, count: int) -> np.ndarray:
    success = -math.expm1(-1 / scale)
    return (draw.geometric(success, count) - draw.geometric(success, count)).astype(float)


def counts(draw: DRAW, cells: np.ndarray, epsilon: float) -> list[NoisyNumber]:
    """Counts with noise of their own."""
    noisy = cells + laplace(draw, 1 / epsilon, len(cells))
    return [NoisyNumber(float(x), {("r", "c", i, "laplace", 1 / epsilon): 1.0}) for i, x in enumerate(noisy)]


def halves(
    draw: DRAW, groups: list[np.ndarray], epsilon: float, step: float = 1e-3
) -> tuple[list[NoisyNumber], list[NoisyNumber]]:
    """Sums and numbers of values in 0 .. 1, which have the noise of the sum of values in common."""
    tops, bottoms, scale = [], [], 1 / epsilon / step
    for place, values in enumerate(groups):
        one, other = (laplace(draw, scale, 2) * step).tolist()
        first, second = (("r", "halves", 2 * place + part, "laplace", scale) for part in (0, 1))
        tops.append(NoisyNumber(values.sum() + one, {first: step}))  # type: ignore[dict-item]
        bottoms.append(NoisyNumber(len(values) + one + other, {first: step, second: step}))  # type: ignore[dict-item]
    return tops, bottoms


def table_p(draw: DRAW, rows: int, epsilon: float, related: float = 0.0) -> float:
    shares = np.outer([0.4, 0.6], [0.3, 0.7]).reshape(-1) + related * np.array([1, -1, -1, 1])
    return independence(counts(draw, draw.multinomial(rows, shares), epsilon), (2, 2), "t", DRAWS).p_value


def fit_p(draw: DRAW, rows: int, epsilon: float, moved: float = 0.0) -> float:
    shares = np.array([0.1, 0.2, 0.7])
    cells = draw.multinomial(rows, shares + moved * np.array([1, 0, -1]))
    return fit(counts(draw, cells, epsilon), shares.tolist(), "t", DRAWS).p_value


def shares_p(draw: DRAW, rows: int, epsilon: float, apart: float = 0.0) -> float:
    groups = [(draw.random(rows // 2) < share).astype(float) for share in (0.3, 0.3 + apart)]
    return equality(*halves(draw, groups, epsilon), None, "t", DRAWS).p_value


def means_p(draw: DRAW, rows: int, epsilon: float, apart: float = 0.0) -> float:
    spreads = ((0.4, 0.05, rows // 4), (0.4 + apart, 0.15, rows // 4), (0.4, 0.1, rows // 2))
    groups = [np.clip(draw.normal(mean, spread, size), 0, 1) for mean, spread, size in spreads]
    variances = [float(values.var()) for values in groups]
    return equality(*halves(draw, groups, epsilon), variances, "t", DRAWS).p_value


def cdf_p(draw: DRAW, rows: int, epsilon: float, apart: float = 0.0) -> float:
    below, totals = [], []
    for group in range(2):
        shares = np.full(5, 0.2) + group * apart * np.array([1, 1, 0, -1, -1])
        numbers = counts(draw, draw.multinomial(rows // 2, shares), epsilon)
        rising = []
        total = NoisyNumber(0.0)
        for place, number in enumerate(numbers):
            (weights,) = [{("r", "c", 5 * group + place, *source[3:]): 1.0 for source in number.noise}]
            total = total.plus(NoisyNumber(number.value, weights))
            rising.append(total)
        below.append(rising)
        totals.append(total)
    return same_distribution(below, totals, None, "t", DRAWS).p_value


TESTS = [table_p, fit_p, shares_p, means_p, cdf_p]


@pytest.mark.slow
@pytest.mark.parametrize("rows,epsilon", [(400, 1.0), (3000, 0.1), (3000, 10.0)])
@pytest.mark.parametrize("test", TESTS)
def test_p_values_are_even_where_the_hypothesis_is_true(
    test: Callable[[DRAW, int, float], float], rows: int, epsilon: float
) -> None:
    """200 releases: more than 42 below 0.05 by chance less than once in 10^9, as is a mean below 0.37."""
    draw = np.random.default_rng(11)
    values = np.array([test(draw, rows, epsilon) for _ in range(200)])
    assert np.sum(values <= 0.05) <= 42
    assert 0.37 < values.mean() < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS)
def test_large_effects_are_found(test: Callable[[DRAW, int, float, float], float]) -> None:
    draw = np.random.default_rng(12)
    assert all(test(draw, 3000, 1.0, 0.08) < 0.01 for _ in range(20))


def test_without_the_noise_a_true_hypothesis_would_be_refused() -> None:
    """What the tests are for: the same counts as if they were exact."""
    draw = np.random.default_rng(13)
    values = []
    for _ in range(40):
        numbers = counts(draw, draw.multinomial(2000, np.outer([0.4, 0.6], [0.3, 0.7]).reshape(-1)), 0.02)
        exact = [NoisyNumber(number.value) for number in numbers]
        values.append(independence(exact, (2, 2), "t", 199).p_value)
    assert np.mean(np.array(values) <= 0.05) > 0.3


def test_too_few_rows_for_the_noise_conclude_nothing() -> None:
    draw = np.random.default_rng(14)
    few = counts(draw, np.array([20, 30, 30, 20]), 0.05)
    tests = [
        independence(few, (2, 2), "t"),
        fit(few, [0.25] * 4, "t"),
        equality(few[:2], few[2:], None, "t"),
        same_distribution([few[:1], few[1:2]], few[2:], None, "t"),
    ]
    assert [(test.p_value, test.note) for test in tests] == [(1.0, TOO_FEW)] * 4


def test_a_release_has_one_p_value() -> None:
    numbers = counts(np.random.default_rng(15), np.array([40, 60, 55, 45]), 1.0)
    assert independence(numbers, (2, 2), "t") == independence(numbers, (2, 2), "t")


def test_draws_have_the_noise_that_numbers_share() -> None:
    source = ("r", "c", 0, "laplace", 5.0)
    drawn = Noises([NoisyNumber(1.0, {source: 2.0}), NoisyNumber(1.0, {source: -1.0})]).rows  # type: ignore[dict-item]
    assert (drawn[:, 0] == -2 * drawn[:, 1]).all()
    assert 6.3 < drawn[:, 1].std() < 7.8  # 7.04


@pytest.mark.parametrize(("kind", "scale", "deviation"), [("gaussian", 0.5, 0.4637), ("gaussian", 30.0, 30.0)])
def test_gaussian_draws_have_their_own_variance(kind: str, scale: float, deviation: float) -> None:
    drawn = Noises([NoisyNumber(0.0, {("r", "c", 0, kind, scale): 1.0})]).rows  # type: ignore[dict-item]
    assert drawn.std() == pytest.approx(deviation, rel=0.06)


def test_p_value_is_never_zero_and_doubt_is_large() -> None:
    assert p_value_of(5.0, np.zeros(99)) == 0.01
    assert p_value_of(math.nan, np.zeros(99)) == 1.0
    assert p_value_of(5.0, np.full(99, math.nan)) == 1.0
    assert str(Significance("t", "so", 5.0, 0.0001, 9_999)) == "t: p < 0.0002 (if so)"


def test_adjustment_for_many_tests_refuses_other_methods() -> None:
    with pytest.raises(InvalidValue, match="must be holm or bh"):
        adjusted([Significance("t", "so", 5.0, 0.01, 99)], "none")


def test_many_true_hypotheses_are_refused_together_5_times_in_100() -> None:
    """Of 1,000 families of 20 tests with even p-values; 113 or more by chance less than once in 10^9."""
    draw = np.random.default_rng(16)
    families = draw.random((1_000, 20))
    refused = [min(t.p_value for t in adjusted([Significance("t", "", 0, p, 99) for p in row])) for row in families]
    assert 10 < np.sum(np.array(refused) <= 0.05) < 113
