"""Errors of sums of noise hold the share they claim, and hardly more, whatever the method behind them."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from farthing.inference import ErrorDistribution, Term, error_of_sum, tail_of_sum
from farthing.inference.gaussian_sums import normal_errors, wide_errors
from farthing.inference.noise_sums import (
    MixedSum,
    Normal,
    OneLaplace,
    SeriesSum,
    SumDistribution,
    distribution_of,
    error_of_parts,
    errors_of_many,
    series_sum,
    stepped_sum,
    tails_of_many,
)
from farthing.inference.noise_terms import (
    LatticeSum,
    Parts,
    WideSum,
    chernoff_radius,
    lattice_sum,
    parts_of,
    variance_of_parts,
    wide_sum,
)
from farthing.inference.normal_quantiles import normal_quantiles
from theorems.convolution_twin import atoms, lattice_within

CONFIDENCES = (0.1, 0.5, 0.8, 0.95, 0.99, 0.999)
ON_A_LATTICE: list[tuple[type, Parts]] = [
    (OneLaplace, (("laplace", 0.4, 1.0, 1),)),
    (OneLaplace, (("laplace", 30.0, 2.0, 1),)),
    (LatticeSum, (("laplace", 1.0, 1.0, 3),)),
    (LatticeSum, (("laplace", 0.3, 1.0, 2), ("laplace", 2.0, 3.0, 1))),
    (LatticeSum, (("gaussian", 0.5, 1.0, 1),)),
    (LatticeSum, (("gaussian", 2.0, 1.0, 2),)),
    (Normal, (("gaussian", 4.5, 1.0, 1),)),
    (Normal, (("gaussian", 20.0, 1.0, 5),)),
    (Normal, (("gaussian", 9.0, 1.0, 2), ("gaussian", 30.0, 3.0, 1))),
    (WideSum, (("laplace", 10.0, 1.0, 12),)),
    (WideSum, (("laplace", 40.0, 1.0, 1), ("laplace", 25.0, 1.0, 1))),
    (WideSum, (("gaussian", 30.0, 1.0, 4), ("laplace", 20.0, 2.0, 2))),
    (WideSum, (("laplace", 2.0, 2.0, 12), ("laplace", 20.0, 3.0, 3))),
]
INCOMMENSURABLE: list[tuple[type, Parts]] = [
    (MixedSum, (("laplace", 1.0, math.pi, 1), ("laplace", 1.3, 1.0, 1))),
    (SeriesSum, (("gaussian", 1.2, math.e, 1), ("laplace", 0.8, 1.0, 2))),
    (MixedSum, (("laplace", 0.5, 0.3 * math.sqrt(2), 1), ("gaussian", 40.0, 1e-2, 1))),
    (MixedSum, (("laplace", 2.2, 0.49999, 1), ("laplace", 2.2, 0.50001, 1))),
    (MixedSum, (("laplace", 0.3, 1 / 3, 1), ("laplace", 2.5, math.sqrt(2), 1), ("gaussian", 1.1, 0.2, 1))),
]


@pytest.mark.parametrize(("method", "parts"), ON_A_LATTICE)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_error_is_the_least_lattice_point_that_holds_the_share(
    method: type, parts: Parts, confidence: float
) -> None:
    """Sound: the twin's coverage is enough. Tight: 1e-4 of coverage less would have been another point."""
    assert isinstance(distribution_of(parts), method)
    within = lattice_within(parts)
    error = error_of_parts(parts, confidence)
    assert within[int(error)] >= confidence
    least = int(np.searchsorted(within, confidence - 1e-13))
    most = int(np.searchsorted(within, confidence + min(1e-4, 0.06 * (1 - confidence))))
    assert least <= error <= most
    if confidence < 0.5 and isinstance(distribution_of(parts), WideSum):
        return
    assert most - least <= 1 + 0.01 * math.sqrt(variance_of_parts(parts)) / (1 - confidence) ** 0.5


@pytest.mark.parametrize(("method", "parts"), ON_A_LATTICE)
def test_tails_are_never_too_small_and_hardly_too_large(method: type, parts: Parts) -> None:
    distribution, within = distribution_of(parts), lattice_within(parts)
    for x in np.linspace(0, min(len(within) - 1, 5 * math.sqrt(variance_of_parts(parts))), 60):
        truth = 1 - within[math.floor(x)]
        found = distribution.tail(float(x))
        assert found >= truth - 1e-12
        if method is not WideSum or x >= 0.1 * math.sqrt(variance_of_parts(parts)):
            assert found <= truth + 1e-4


@pytest.mark.parametrize(("method", "parts"), INCOMMENSURABLE)
@pytest.mark.parametrize("confidence", CONFIDENCES[1:])
def test_sums_without_a_lattice_are_within_a_hair(method: type, parts: Parts, confidence: float) -> None:
    assert isinstance(distribution_of(parts), method)
    values, within = atoms(list(parts))
    error = error_of_parts(parts, confidence)
    assert within[np.searchsorted(values, error, side="right") - 1] >= confidence
    exact = values[np.searchsorted(within, confidence)]
    blur = (0.008 if method is SeriesSum else 2e-4) * math.sqrt(variance_of_parts(parts))
    further = values[np.searchsorted(within, min(confidence + 2e-5, 1 - 1e-9))]
    assert exact <= error <= further + blur


MIXED: list[Parts] = [
    (("laplace", 1.3, 0.7, 1), ("laplace", 5000.0, 3e-4, 1)),
    (("laplace", 0.4, 1.0, 2), ("laplace", 2000.0, 5e-4, 1), ("laplace", 3000.0, 2e-4, 1)),
    (("laplace", 2.0, 0.9, 1), ("laplace", 1500.0, 5e-4, 2)),
    (("gaussian", 0.7, 1.0, 1), ("gaussian", 900.0, 4e-4, 1)),
    (("laplace", 3.0, 1.0, 1), ("normal", 0.2, 1.0, 1)),
]


@pytest.mark.parametrize("parts", MIXED)
def test_coarse_noise_beside_fine_noise_agrees_with_the_series_and_is_tighter(parts: Parts) -> None:
    distribution, slow = distribution_of(parts), series_sum(parts)
    assert isinstance(distribution, MixedSum)
    deviation = math.sqrt(variance_of_parts(parts))
    for confidence in (0.3, 0.8, 0.95, 0.99):
        assert slow.error(confidence) - 0.011 * deviation <= distribution.error(confidence)
        assert distribution.error(confidence) <= slow.error(confidence) + 0.002 * deviation
    for x in np.linspace(0, 4, 17) * deviation:
        # The series blurs by a thousandth of a deviation, the closed form moves in by one fine step.
        assert (
            slow.tail(float(x) + 0.01 * deviation) - 2e-5 <= distribution.tail(float(x)) <= slow.tail(float(x)) + 1e-6
        )


@pytest.mark.parametrize("scale", [20.0, 110.0, 230.0, 236.0, 5000.0])
@pytest.mark.parametrize("apart", [1e-5, 5e-4, 0.1])
def test_two_noises_with_nearly_equal_steps_agree_with_the_series_and_are_tighter(scale: float, apart: float) -> None:
    """The atoms of one beside the exact tail of the other; beyond 8,192 of them, both as good as continuous."""
    parts = parts_of([("laplace", scale, 0.5 - apart / math.pi, 1), ("laplace", scale, 0.5 + apart / math.pi, 1)])
    distribution, slow = stepped_sum(parts), series_sum(parts)
    assert distribution is not None
    deviation = math.sqrt(variance_of_parts(parts))
    for confidence in (0.3, 0.8, 0.95, 0.99):
        assert slow.error(confidence) - 0.011 * deviation <= distribution.error(confidence)
        assert distribution.error(confidence) <= slow.error(confidence) + 0.002 * deviation
    for x in np.linspace(0, 4, 17) * deviation:
        assert slow.tail(float(x) + 0.011 * deviation) - 2e-5 <= distribution.tail(float(x))
        assert distribution.tail(float(x)) <= slow.tail(float(x)) + 5e-5


METHODS = {"series": series_sum, "lattice": lattice_sum, "wide": wide_sum}


@pytest.mark.parametrize("parts", [case for kind, case in ON_A_LATTICE if kind in (WideSum, Normal) and len(case) > 1])
def test_three_methods_agree_where_all_apply(parts: Parts) -> None:
    distributions: dict[str, SumDistribution | None] = {name: method(parts) for name, method in METHODS.items()}
    assert all(distribution is not None for distribution in distributions.values())
    deviation = math.sqrt(variance_of_parts(parts))
    for confidence in (0.5, 0.8, 0.95, 0.99):
        found = [distribution.error(confidence) for distribution in distributions.values() if distribution is not None]
        assert max(found) - min(found) <= 0.012 * deviation + 1.0


def test_the_ripple_of_nearly_equal_steps_is_seen() -> None:
    """Coefficients 1 and 1.0005 make a beat that a path past the poles would miss."""
    near: Parts = (("laplace", 20.0, 1.0, 1), ("laplace", 20.0, 1.0005, 1))
    assert wide_sum(near) is None
    far: Parts = (("laplace", 20.0, 1.0, 1), ("laplace", 2000.0, 0.010005, 1))
    assert wide_sum(far) is not None


def test_more_noise_and_more_confidence_never_mean_less_error() -> None:
    for build in (
        lambda t: (("laplace", t, 1.0, 3),),
        lambda t: (("gaussian", t, 1.0, 2),),
        lambda t: (("laplace", t, 1.0, 1), ("gaussian", 30.0, 1.0, 1)),
    ):
        scales = [0.2, 0.5, 1, 2, 3.5, 5, 8, 9, 10, 12, 20, 50, 200, 1e4, 1e8]
        errors = [error_of_parts(build(float(t)), 0.95) for t in scales]
        assert errors == sorted(errors)
        for t in scales:
            ladder = [error_of_parts(build(float(t)), c) for c in (0.3, 0.5, 0.9, 0.99, 0.999, 0.99999, 1 - 1e-9)]
            assert ladder == sorted(ladder)


def test_far_tails_are_exact_on_a_lattice_and_else_bounded_by_chernoff() -> None:
    parts: Parts = (("laplace", 3.0, 1.0, 4),)
    within = lattice_within(parts)
    for tail in (1e-5, 1e-7, 1e-9):
        exact = np.searchsorted(within, 1 - tail)
        assert exact <= error_of_parts(parts, 1 - tail) <= exact + 1
        assert exact <= chernoff_radius(parts, tail) <= 1.25 * exact
    long: Parts = (("laplace", 3000.0, 1.0, 4),)  # too long for a lattice: Chernoff's bound itself
    assert error_of_parts(long, 1 - 1e-7) == pytest.approx(chernoff_radius(long, 1e-7))


def test_degenerate_sums() -> None:
    assert error_of_sum([]) == 0
    assert error_of_sum([Term("laplace", 5.0, coefficient=0.0), Term("gaussian", 0.0)]) == 0
    assert error_of_sum([Term("gaussian", 5.0, count=0)]) == 0
    assert error_of_sum([Term("laplace", 1e-9)]) == 0
    assert tail_of_sum([], 0.0) == 0
    assert tail_of_sum([Term("laplace", 5.0)], -1.0) == 1
    assert error_of_sum([Term("normal", 1.0)]) == pytest.approx(1.959963984540054, rel=1e-8)
    huge = error_of_sum([Term("laplace", 1e12, count=2)])
    assert huge == pytest.approx(1e12 * error_of_sum([Term("laplace", 1e5, count=2)]) / 1e5, rel=1e-4)


def test_sums_scale_with_their_units() -> None:
    terms = [("laplace", 17.0, 1.0, 3), ("gaussian", 25.0, 2.0, 1)]
    one = error_of_parts(parts_of(terms), 0.95)  # type: ignore[arg-type]
    for factor in (1e-12, 1e-3, 7.0, 1e9):
        moved = [(kind, scale, factor * size, count) for kind, scale, size, count in terms]
        assert error_of_parts(parts_of(moved), 0.95) == pytest.approx(factor * one, rel=1e-9)  # type: ignore[arg-type]


def test_many_at_once_is_one_by_one() -> None:
    sums = [parts for _, parts in [*ON_A_LATTICE, *INCOMMENSURABLE]] + MIXED + [()]
    for confidence in (0.5, 0.95, 0.99999):
        assert errors_of_many(sums, confidence) == pytest.approx(
            [error_of_parts(parts, confidence) for parts in sums], rel=3e-4
        )
    for x in (0.0, 1.0, 20.0, 400.0):
        assert tails_of_many(sums, x) == pytest.approx([distribution_of(parts).tail(x) for parts in sums], abs=1e-12)


def draws(kind: str, scale: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Another way to the laws: differences of geometric draws; normal draws thinned to integers by their masses."""
    if kind == "laplace":
        chance = -math.expm1(-1 / scale)
        return rng.geometric(chance, shape) - rng.geometric(chance, shape)
    reach = math.ceil(12 * scale)
    n = np.arange(-reach, reach + 1)
    weights = np.exp(-(n**2) / (2 * scale**2))
    return rng.choice(n, size=shape, p=weights / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    "terms",
    [
        [Term("laplace", 12.0, 0.31, 1), Term("laplace", 4000.0, 2e-3, 1)],
        [Term("laplace", 6.0, 1.0, 8)],
        [Term("gaussian", 9.0, 1.0, 2), Term("laplace", 5.0, math.sqrt(3), 1)],
    ],
)
def test_simulated_coverage_is_the_promised_one_and_wrong_scales_are_caught(terms: list[Term]) -> None:
    """False-alarm rate 1e-6: 4.9 standard deviations of a share over 200,000 draws."""
    rng, size = np.random.default_rng(20261116), 200_000
    allowed = 4.9 * math.sqrt(0.05 * 0.95 / size)
    total = np.zeros(size)
    for term in terms:
        noise = draws(term.kind, term.scale, (size, int(term.count)), rng).sum(axis=1)
        total += term.coefficient * noise
    distribution = ErrorDistribution(terms)
    step = distribution.error(0.95) - error_of_sum(terms, 0.9499)  # whole numbers overshoot by up to one step
    share = np.mean(np.abs(total) <= distribution.error(0.95))
    slack = 0.012 if step or len(terms) == 1 else 0.0
    assert 0.95 - allowed <= share <= 0.95 + allowed + slack
    assert np.mean(np.abs(1.1 * total) <= distribution.error(0.95)) < 0.95 - allowed
    assert np.mean(np.abs(0.9 * total) <= distribution.error(0.95)) > 0.95 + allowed
    assert np.std(total) == pytest.approx(distribution.standard_error, rel=0.015)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.03, 0.08, 0.13, 0.2])
def test_noise_that_is_nearly_always_zero_is_no_trouble(kind: str, scale: float) -> None:
    parts = parts_of([(kind, scale, 1.0, 1), (kind, scale, math.sqrt(2), 2)])  # type: ignore[list-item]
    values, within = atoms([(kind, scale, 1.0, 1), (kind, scale, math.sqrt(2), 2)])
    for confidence in (0.5, 0.95, 0.999):
        error = error_of_parts(parts, confidence)
        exact = values[np.searchsorted(within, confidence)]
        assert exact <= error <= exact + 0.01


def test_narrow_noise_never_takes_the_path_past_the_poles() -> None:
    """Its poles lie so far right that their repeats would be met on the wrong side; with many copies that overflows."""
    parts: Parts = (("laplace", 0.2, 1.0, 1_000_000), ("laplace", 4e6, 1e-3, 1))
    assert wide_sum(parts) is None
    assert error_of_parts(parts, 0.95) >= error_of_parts(parts[1:], 0.95)


def test_a_million_copies_of_fine_noise_are_moved_by_one_step_only() -> None:
    parts: Parts = (("gaussian", 110.0, 2.0, 1_000_000), ("laplace", 0.2, 4.0, 1))
    assert error_of_parts(parts, 0.95) == pytest.approx(1.959964 * 220e3, rel=1e-4)


@pytest.mark.parametrize("seed", range(40))
def test_many_gaussian_sums_have_the_errors_of_one_after_the_other(seed: int) -> None:
    """A share of them is left to the slow way; of the others none is narrower, and hardly any wider."""
    draw = np.random.default_rng(seed)
    number, sums = int(draw.integers(1, 5)), 7
    kinds = [str(draw.choice(["gaussian", "gaussian", "gaussian", "normal"])) for _ in range(number)]
    scales = np.exp(draw.uniform(0, 8, number)).tolist()
    scales[-1] = scales[0]  # noises of one scale may become one
    counts = draw.integers(0, 4, (number, sums)).astype(float)
    plain = draw.integers(-6, 7, (number, sums)) / int(draw.integers(1, 5))
    coefficients = plain if seed % 2 else draw.normal(size=(number, sums))
    levels = np.array([0.1, 0.5, 0.8, 0.95, 0.99, 0.999, 1 - 1e-6])
    found = normal_errors(kinds, scales, counts, coefficients, levels)
    for place, (error, level) in enumerate(zip(found.tolist(), levels.tolist(), strict=True)):
        own = zip(kinds, scales, coefficients[:, place].tolist(), counts[:, place].astype(int).tolist(), strict=True)
        parts = parts_of(own)  # type: ignore[arg-type]
        if not math.isnan(error):
            assert error == pytest.approx(error_of_parts(parts, level), rel=2e-3 if level > 0.9999 else 2e-5)
            assert error >= error_of_parts(parts, level) * (1 - 1e-12)


def test_wide_gaussian_sums_are_all_found_at_once() -> None:
    one = np.ones((2, 3))
    assert np.all(normal_errors(["gaussian", "normal"], [50.0, 7.0], one, one * [1, 2, math.pi], 0.95) > 0)
    assert np.all(normal_errors(["gaussian", "gaussian"], [50.0, 50.0], one, one * [1, 2, math.pi], 0.95) > 0)
    assert np.all(np.isnan(normal_errors(["gaussian", "laplace"], [50.0, 7.0], one, one, 0.95)))
    assert np.all(np.isnan(normal_errors(["gaussian", "gaussian"], [50.0, 1.5], one, one, 0.95)))


def test_normal_quantiles_are_those_of_the_standard_library() -> None:
    shares = np.concatenate(
        [10.0 ** -np.arange(1, 300, 7.3), np.linspace(0.001, 0.999, 999), 1 - 10.0 ** -np.arange(1, 15)]
    )
    wanted = [NormalDist().inv_cdf(share) for share in shares.tolist()]
    assert normal_quantiles(shares) == pytest.approx(wanted, rel=1e-14, abs=1e-15)
    assert normal_quantiles(np.array([0.0, -1.0, 1.0])).tolist() == [-math.inf, -math.inf, math.inf]


def test_errors_beside_laplace_noise_from_arrays_are_those_found_one_by_one() -> None:
    numbers = np.random.default_rng(5)
    seen = 0
    for _ in range(20):
        kinds = ["laplace", *numbers.choice(["laplace", "gaussian", "normal"], numbers.integers(0, 4)).tolist()]
        scales = numbers.choice([3.0, 10.0, 55.5, 200.0], len(kinds)).tolist()
        shape = (len(kinds), 8)
        plain, odd = numbers.choice([0.0, 1.0, -1.0, 2.0], shape), numbers.uniform(-3, 3, shape)
        coefficients, counts = np.where(numbers.random(shape) < 0.5, plain, odd), numbers.integers(0, 5, shape)
        levels = numbers.choice([0.5, 0.95, 0.999, 0.99999], shape[1])
        errors = wide_errors(kinds, scales, counts.astype(float), coefficients, levels)
        for place in np.flatnonzero(~np.isnan(errors)).tolist():
            own = zip(kinds, scales, coefficients[:, place].tolist(), counts[:, place].tolist(), strict=True)
            parts = parts_of(own)
            assert isinstance(distribution_of(parts), WideSum)
            assert errors[place] == pytest.approx(error_of_parts(parts, float(levels[place])), rel=1e-8)
            seen += 1
    assert seen > 40
    one = np.ones((1, 1))
    assert np.isnan(wide_errors(["laplace"], [50.0], one, one, 0.95))  # has a closed form
    assert np.isnan(wide_errors(["laplace"], [0.3], 9 * one, one, 0.95))
