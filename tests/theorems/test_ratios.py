"""Intervals of means, variances and standard deviations: Ratio and Variance hold what they claim, draw by draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.inference import Term, error_of_sum
from farthing.inference.error_distributions import Measured, Ratio
from farthing.inference.variance_estimates import StandardDeviation, Variance

Floats = NDArray[np.float64]


def laplace(scale: float, size: int, rng: np.random.Generator) -> Floats:
    chance = -math.expm1(-1 / scale)
    return (rng.geometric(chance, size) - rng.geometric(chance, size)).astype(float)


def gaussian(sigma: float, size: int, rng: np.random.Generator) -> Floats:
    return np.round(rng.normal(0, sigma, size))  # nearly the discrete Gaussian, for sigma of 5 and more


CASES = [  # true N, true mean, step of the sum, noise of the sum and of the count
    (1000, 0.3, 1e-3, ("laplace", 2000.0), ("laplace", 2.0)),
    (1000, -0.9, 1e-3, ("gaussian", 3000.0), ("gaussian", 9.0)),
    (60, 0.8, 1e-3, ("laplace", 5000.0), ("laplace", 5.0)),
    (40, 0.0, 1e-3, ("gaussian", 5000.0), ("laplace", 8.0)),
    (8, 0.5, 1e-3, ("laplace", 5000.0), ("laplace", 5.0)),
]


def drawn(noise: tuple[str, float], size: int, rng: np.random.Generator) -> Floats:
    return (laplace if noise[0] == "laplace" else gaussian)(noise[1], size, rng)


@pytest.mark.parametrize("case", CASES)
def test_several_levels_at_once_are_each_as_by_itself(
    case: tuple[int, float, float, tuple[str, float], tuple[str, float]],
) -> None:
    rows, mean, step, (kind, scale), (count_kind, count_scale) = case
    sums = Measured([rows * mean, rows * mean + 3, 0.0], [Term(kind, scale, step)])  # type: ignore[arg-type]
    ratio = Ratio(sums, Measured([rows, rows + 2.0, 1.0], [Term(count_kind, count_scale)]), -1.0, 1.0)  # type: ignore[arg-type]
    levels = (0.5, 0.95, 0.999, 1 - 1e-6)
    for level, ends in zip(levels, ratio.at_levels(levels), strict=True):
        assert np.allclose(ends, ratio(level), rtol=1e-12, atol=0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_the_true_mean_is_inside_exactly_when_the_noise_is_within_its_error(
    case: tuple[int, float, float, tuple[str, float], tuple[str, float]], confidence: float
) -> None:
    """Sound and tight for every single draw: coverage is then that of e(r), which other tests pin down."""
    n, mean, step, sum_noise, count_noise = case
    rng, size = np.random.default_rng(7), 100
    ns, nn = step * drawn(sum_noise, size, rng), drawn(count_noise, size, rng)
    terms = Term(sum_noise[0], sum_noise[1], step), Term(count_noise[0], count_noise[1])  # type: ignore[arg-type]
    low, high = Ratio(Measured(n * mean + ns, terms[:1]), Measured(n + nn, terms[1:]), -1.0, 1.0)(confidence)
    error = error_of_sum([terms[0], Term(terms[1].kind, terms[1].scale, mean)], confidence)
    trusted = n + nn > error_of_sum(terms[1:], confidence)
    noise = np.abs(ns - mean * nn)
    inside = (low <= mean) & (mean <= high)
    assert np.all(inside[noise <= error])
    assert np.all(low[~trusted] == -1)
    assert np.all(high[~trusted] == 1)
    if n >= 40:  # with fewer the count is close to its own noise, and the interval may be all of [-1, 1]
        assert np.mean(trusted) > 0.5
        assert np.all(~inside[trusted & (noise > 1.002 * error + 1e-3)])


def test_with_a_known_count_the_interval_is_the_noise_over_the_count() -> None:
    ratio = Ratio(Measured([10.0, 20.0], [Term("laplace", 3.0)]), Measured([100.0, 50.0]), -1, 1)
    low, high = ratio(0.95)
    error = error_of_sum([Term("laplace", 3.0)])
    assert high - ratio.values == pytest.approx(error / np.array([100, 50]), rel=1e-6)
    assert ratio.values - low == pytest.approx(error / np.array([100, 50]), rel=1e-6)


def test_intervals_grow_with_confidence_and_with_noise() -> None:
    def width(confidence: float, scale: float) -> float:
        ratio = Ratio(
            Measured(30.0, [Term("laplace", 1e3 * scale, 1e-3)]),
            Measured(100.0, [Term("laplace", scale / 2)]),
            -1,
            1,
        )
        low, high = ratio(confidence)
        return float(high[0] - low[0])

    for scale in (0.5, 3.0, 10.0, 40.0):
        widths = [width(c, scale) for c in (0.3, 0.6, 0.9, 0.95, 0.99, 0.9999)]
        assert widths == sorted(widths)
    widths = [width(0.95, scale) for scale in (0.1, 1.0, 3.0, 10.0, 20.0, 100.0)]
    assert widths == sorted(widths)
    assert widths[-1] == 2.0


def test_a_count_that_may_be_nothing_says_nothing() -> None:
    ratio = Ratio(
        Measured([5.0, 5.0, 5.0], [Term("laplace", 1.0)]),
        Measured([0.0, -4.0, 2.0], [Term("laplace", 1.0)]),
        0,
        9,
    )
    low, high = ratio(0.95)
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [9, 9, 9]
    assert np.all((ratio.values >= 0) & (ratio.values <= 9))
    assert np.all(np.isfinite(ratio.standard_errors))
    empty = Ratio(Measured(0.0), Measured(0.0), -2, 3)
    assert [end.tolist() for end in empty(0.95)] == [[-2], [3]]


def test_the_identity_behind_the_variance_holds() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        n, m, v, h, n0, n1, n2 = rng.uniform(0.1, 2, 7)
        measured_n, s1, s2 = n + n0, m * n + n1, (v - h**2 / 2 + m**2) * n + n2
        mean = s1 / measured_n
        variance = s2 / measured_n + h**2 / 2 - mean**2
        right = n2 - 2 * m * n1 + (m**2 + h**2 / 2 - v) * n0 - measured_n * (mean - m) ** 2
        assert measured_n * (variance - v) == pytest.approx(right, abs=1e-12)


def moments(n: int, mean: float, variance: float, epsilon: float, size: int, seed: int, noise: float = 1.0) -> Variance:
    """`size` draws of the three noisy numbers for values in [-1, 1] on a fine grid, each made epsilon-private."""
    rng, step = np.random.default_rng(seed), 1e-3
    scales = 1 / epsilon, 1 / epsilon / step, 0.5 / epsilon / step
    exact = n, n * mean, n * (variance + mean**2 - 0.5)
    steps = 1.0, step, step
    return Variance(
        *(
            Measured(value + noise * unit * laplace(scale, size, rng), [Term("laplace", scale, unit)])
            for value, unit, scale in zip(exact, steps, scales, strict=True)
        ),
        half_width=1.0,
    )


@pytest.mark.parametrize(("n", "mean", "variance"), [(500, 0.4, 0.2), (200, -0.7, 0.05), (60, 0.0, 0.4)])
def test_the_variance_lies_inside_whenever_its_noise_is_within_its_error(n: int, mean: float, variance: float) -> None:
    found = moments(n, mean, variance, epsilon=1.0, size=60, seed=11)
    low, high = found(0.95)
    n0, n1, n2 = (
        measured.values - exact
        for measured, exact in zip(
            (found.count, found.first, found.second),
            (n, n * mean, n * (variance + mean**2 - 0.5)),
            strict=True,
        )
    )
    turn = mean**2 + 0.5 - variance
    error = error_of_sum(
        [Term("laplace", 1.0, turn), Term("laplace", 1000.0, 2 * mean * 1e-3), Term("laplace", 500.0, 1e-3)],
        0.951,
    )
    noise = np.abs(n2 - 2 * mean * n1 + turn * n0)
    mean_low, mean_high = Ratio(found.first, found.count, -1, 1)(0.999)
    agree = (noise <= error) & (mean_low <= mean) & (mean <= mean_high)
    inside = (low <= variance) & (variance <= high)
    assert np.mean(agree) > 0.85
    assert np.all(inside[agree])
    assert np.all((low >= 0) & (high <= 1) & (low <= found.values) & (found.values <= high))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "mean", "variance"), [(5000, 0.4, 0.2), (300, -0.7, 0.1)])
def test_simulated_coverage_is_the_promised_one_and_wrong_noise_is_caught(n: int, mean: float, variance: float) -> None:
    """False-alarm rate 1e-6; noise of 0.6 and of 1.4 times the scale is refused by 800 draws, of the harder case."""
    size = 800
    allowed = 4.9 * math.sqrt(0.05 * 0.95 / size)

    def shares(noise: float) -> tuple[float, float]:
        found = moments(n, mean, variance, epsilon=0.5, size=size, seed=2026, noise=noise)
        truths = mean, variance
        makers = Ratio(found.first, found.count, -1, 1), found
        ends = [make(0.95) for make in makers]
        return tuple(  # type: ignore[return-value]
            float(np.mean((low <= truth) & (truth <= high))) for (low, high), truth in zip(ends, truths, strict=True)
        )

    right = shares(1.0)
    assert all(0.95 - allowed <= share <= 0.955 + allowed for share in right), right
    if (
        n < 1000
    ):  # where the noise is large beside the rows; the distribution of the noise, and the check, are the same elsewhere
        assert all(share < 0.95 - allowed for share in shares(1.4))
        assert all(share > 0.955 + allowed for share in shares(0.6))


def test_first_order_errors_are_those_of_many_draws() -> None:
    found = moments(5000, 0.4, 0.2, epsilon=0.5, size=20_000, seed=3)
    mean = Ratio(found.first, found.count, -1, 1)
    for maker, truth in ((mean, 0.4), (found, 0.2), (StandardDeviation(found), math.sqrt(0.2))):
        rms = math.sqrt(np.mean((maker.values - truth) ** 2))
        assert rms == pytest.approx(float(np.median(maker.standard_errors)), rel=0.05)


def test_a_standard_deviation_is_the_root_of_its_variance() -> None:
    variance = moments(300, 0.1, 0.3, epsilon=1.0, size=5, seed=1)
    deviation = StandardDeviation(variance)
    assert deviation.values**2 == pytest.approx(variance.values)
    assert deviation(0.9)[1] ** 2 == pytest.approx(variance(0.9)[1])
    nothing = StandardDeviation(Variance(Measured(100.0), Measured(0.0), Measured(-50.0), half_width=1.0))
    assert nothing.values.tolist() == nothing.standard_errors.tolist() == [0.0]
    assert [end.tolist() for end in nothing(0.95)] == [[0.0], [0.0]]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidValue, match="numerator"):
        Ratio(Measured([1.0]), Measured([1.0, 2.0]))
    with pytest.raises(InvalidValue, match="least"):
        Ratio(Measured(1.0), Measured(1.0), 2, 1)
    with pytest.raises(InvalidValue, match="same cells"):
        Measured([1.0, 2.0], [Term("laplace", 1.0, np.ones(3))])
    with pytest.raises(InvalidValue, match="confidence"):
        Ratio(Measured(1.0), Measured(1.0))(95)
    with pytest.raises(InvalidValue, match="half_width"):
        Variance(Measured(1.0), Measured(1.0), Measured(1.0), half_width=-1)


def test_the_square_of_the_means_error_is_paid_for() -> None:
    """The worst draw that is promised: the mean as far off as allowed, and the noise at its error on the low side."""
    n, variance = 100, 0.3
    count, first, second = Term("laplace", 1.0), Term("laplace", 1000.0, 1e-3), Term("laplace", 500.0, 1e-3)
    mean = 0.999 * error_of_sum([first], 0.999) / n
    turn = mean**2 + 0.5 - variance
    error = error_of_sum([second, Term("laplace", 1000.0, 2e-3 * mean), Term("laplace", 1.0, turn)], 0.951)
    noise = -0.999 * error - 2 * mean**2 * n
    found = Variance(
        Measured(n, [count]),
        Measured(0.0, [first]),
        Measured(n * (variance + mean**2 - 0.5) + noise, [second]),
        half_width=1.0,
    )
    low, high = found(0.95)
    assert low[0] <= variance <= high[0] < 1
