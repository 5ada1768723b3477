from __future__ import annotations

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference import ErrorDistribution, StatedDistribution, Term, errors_of_distributions
from farthing.inference.noise_sums import distribution_of
from farthing.inference.noise_terms import parts_of
from farthing.mechanisms.noise_distributions import DiscreteGaussianDistribution, DiscreteLaplaceDistribution


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.9, 1.0, 1.7, 4.0, 33.0, 1e4])
def test_one_term_agrees_with_the_exact_law_of_the_mechanism(scale: float) -> None:
    from fractions import Fraction

    exact = {
        "laplace": DiscreteLaplaceDistribution(Fraction(scale)),
        "gaussian": DiscreteGaussianDistribution(Fraction(scale) ** 2),
    }
    for kind, distribution in exact.items():
        found = ErrorDistribution([Term(kind, scale, coefficient=0.25)])  # type: ignore[arg-type]
        assert found.standard_error == pytest.approx(0.25 * distribution.variance**0.5, rel=1e-12)
        for confidence in (0.3, 0.95, 0.999):
            assert found.error(confidence) == 0.25 * distribution.error(confidence)


@pytest.mark.parametrize(
    "distribution",
    [
        ErrorDistribution([Term("laplace", 20.0, count=np.array([1, 4]))]),
        StatedDistribution([1.0, 2.0], lambda level: np.array([2.0, 4.0]) * level),
    ],
    ids=["terms", "stated"],
)
def test_what_a_caller_does_with_errors_changes_none_that_are_asked_for_later(distribution: ErrorDistribution) -> None:
    first = distribution.errors(0.95)
    kept = first.copy()
    first *= 0
    assert np.array_equal(distribution.errors(0.95), kept)
    assert (distribution.errors(0.5) < kept).all()


def test_equal_cells_have_the_error_of_each() -> None:
    distribution = ErrorDistribution([Term("laplace", 20.0, coefficient=np.array([1.0, -1.0, 1.0]))])
    assert distribution.cells == 3
    assert distribution.error(0.95) == distribution.errors(0.95)[0] == distribution.cell(1).error(0.95) == 60.0
    assert distribution.standard_error == pytest.approx(distribution.standard_errors[2])


def test_unequal_cells_reach_the_confidence_on_average_and_not_before() -> None:
    distribution = ErrorDistribution(
        [Term("laplace", 9.0, coefficient=np.array([1.0, 2.0, 5.0]), count=np.array([1, 3, 2]))]
    )
    error = distribution.error(0.9)

    def coverage(e: float) -> float:
        return float(
            np.mean([1 - distribution_of(parts_of(distribution_terms(distribution, i))).tail(e) for i in range(3)])
        )

    assert distribution.errors(0.9).min() < error < distribution.errors(0.9).max()
    assert coverage(error) >= 0.9 > coverage(0.995 * error)


def distribution_terms(distribution: ErrorDistribution, cell: int) -> list[tuple[str, float, float, int]]:
    one = distribution.cell(cell)
    return [(t.kind, t.scale, float(t.coefficient), int(t.count)) for t in one.terms]


@pytest.mark.slow
def test_a_thousand_kinds_of_cells_are_summed_up_by_a_few() -> None:
    rng = np.random.default_rng(3)
    distribution = ErrorDistribution(
        [
            Term("laplace", 5000.0, coefficient=rng.uniform(0.5, 2, 1000)),
            Term("gaussian", 8000.0, coefficient=rng.uniform(0, 1, 1000)),
        ]
    )
    few = ErrorDistribution([Term(t.kind, t.scale, np.asarray(t.coefficient)[:60]) for t in distribution.terms])
    assert distribution.error(0.95) == pytest.approx(few.error(0.95), rel=0.15)
    assert distribution.errors(0.95).shape == (1000,)
    coverage = np.mean(distribution.errors(0.95) <= distribution.error(0.95))
    assert 0.3 < coverage < 0.9  # between the least and the greatest of the cells


def test_cells_of_very_different_size_are_told_together() -> None:
    """An intercept of thousands beside a slope of hundredths: the small one never misses, so the large one may more."""
    sizes = np.array([1.0, 1e-3, 1e-6])
    distribution = ErrorDistribution([Term("laplace", 1e5, sizes), Term("laplace", 3e4, 2 * sizes)])
    assert distribution.error(0.95) == pytest.approx(distribution.errors(0.85)[0], rel=1e-3)


def test_no_cells_and_no_terms_are_no_error() -> None:
    assert ErrorDistribution([]).error() == 0
    empty = ErrorDistribution([Term("laplace", 1.0, coefficient=np.zeros(0))])
    assert empty.error() == empty.standard_error == 0
    assert empty.errors().shape == (0,)


def test_a_stated_law_averages_coverage_over_its_cells() -> None:
    normal = ErrorDistribution([Term("normal", 1.0, coefficient=np.array([1.0, 3.0]))])
    stated = StatedDistribution([1.0, 3.0], normal.errors)
    assert stated.errors(0.9) == pytest.approx(normal.errors(0.9))
    assert normal.error(0.9) <= stated.error(0.9) <= 1.05 * normal.error(0.9)
    assert stated.cell(1).error(0.9) == pytest.approx(normal.errors(0.9)[1])
    assert stated.scaled(2).standard_errors == pytest.approx([2.0, 6.0])


def test_laws_of_a_plan_are_shown_in_one_pass() -> None:
    distributions = [
        ErrorDistribution([Term("laplace", 10.0 + i, count=3), Term("gaussian", 20.0, coefficient=0.1 * i)])
        for i in range(20)
    ] + [
        StatedDistribution(1.0, lambda confidence: 2.0),
        ErrorDistribution([Term("laplace", 2.0, np.array([1.0, 4.0]))]),
    ]
    assert errors_of_distributions(distributions, 0.9) == pytest.approx(
        [distribution.error(0.9) for distribution in distributions], rel=1e-9
    )


@pytest.mark.parametrize("confidence", [95, 0, 1, -0.5, float("nan"), True, "0.95"])
def test_a_confidence_is_a_probability(confidence: object) -> None:
    with pytest.raises(InvalidValue, match="confidence"):
        ErrorDistribution([Term("laplace", 1.0)]).error(confidence)  # type: ignore[arg-type]


def test_ninety_five_is_told_apart_from_a_probability() -> None:
    with pytest.raises(InvalidValue, match=r"95% is 0\.95"):
        ErrorDistribution([]).error(95)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "uniform"},
        {"scale": -1.0},
        {"scale": float("nan")},
        {"scale": float("inf")},
        {"coefficient": float("nan")},
        {"coefficient": np.array([1.0, np.inf])},
        {"count": 1.5},
        {"count": -1},
    ],
)
def test_a_term_that_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Term(**{"kind": "laplace", "scale": 1.0, **fields})  # type: ignore[arg-type]


def test_terms_over_different_cells_are_refused() -> None:
    with pytest.raises(InvalidValue, match="same cells"):
        ErrorDistribution([Term("laplace", 1.0, np.ones(2)), Term("laplace", 1.0, np.ones(3))])
    with pytest.raises(InvalidValue, match="one dimension"):
        ErrorDistribution([Term("laplace", 1.0, np.ones((2, 2)))])
