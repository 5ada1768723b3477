from __future__ import annotations

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference import ErrorLaw, StatedLaw, Term, errors_of_laws
from farthing.inference.noise_sums import law_of
from farthing.inference.noise_terms import parts_of
from farthing.mechanisms.noise_distributions import DiscreteGaussianLaw, DiscreteLaplaceLaw


@pytest.mark.parametrize("scale", [0.05, 0.3, 0.9, 1.0, 1.7, 4.0, 33.0, 1e4])
def test_one_term_agrees_with_the_exact_law_of_the_mechanism(scale: float) -> None:
    from fractions import Fraction

    exact = {
        "laplace": DiscreteLaplaceLaw(Fraction(scale)),
        "gaussian": DiscreteGaussianLaw(Fraction(scale) ** 2),
    }
    for kind, law in exact.items():
        found = ErrorLaw([Term(kind, scale, coefficient=0.25)])  # type: ignore[arg-type]
        assert found.standard_error == pytest.approx(0.25 * law.variance**0.5, rel=1e-12)
        for confidence in (0.3, 0.95, 0.999):
            assert found.error(confidence) == 0.25 * law.error(confidence)


def test_equal_cells_have_the_error_of_each() -> None:
    law = ErrorLaw([Term("laplace", 20.0, coefficient=np.array([1.0, -1.0, 1.0]))])
    assert law.cells == 3
    assert law.error(0.95) == law.errors(0.95)[0] == law.cell(1).error(0.95) == 60.0
    assert law.standard_error == pytest.approx(law.standard_errors[2])


def test_unequal_cells_reach_the_confidence_on_average_and_not_before() -> None:
    law = ErrorLaw([Term("laplace", 9.0, coefficient=np.array([1.0, 2.0, 5.0]), count=np.array([1, 3, 2]))])
    error = law.error(0.9)

    def coverage(e: float) -> float:
        return float(np.mean([1 - law_of(parts_of(law_terms(law, i))).tail(e) for i in range(3)]))

    assert law.errors(0.9).min() < error < law.errors(0.9).max()
    assert coverage(error) >= 0.9 > coverage(0.995 * error)


def law_terms(law: ErrorLaw, cell: int) -> list[tuple[str, float, float, int]]:
    one = law.cell(cell)
    return [(t.kind, t.scale, float(t.coefficient), int(t.count)) for t in one.terms]


def test_a_thousand_kinds_of_cells_are_summed_up_by_a_few() -> None:
    rng = np.random.default_rng(3)
    law = ErrorLaw(
        [
            Term("laplace", 5000.0, coefficient=rng.uniform(0.5, 2, 1000)),
            Term("gaussian", 8000.0, coefficient=rng.uniform(0, 1, 1000)),
        ]
    )
    few = ErrorLaw([Term(t.kind, t.scale, np.asarray(t.coefficient)[:60]) for t in law.terms])
    assert law.error(0.95) == pytest.approx(few.error(0.95), rel=0.15)
    assert law.errors(0.95).shape == (1000,)
    coverage = np.mean(law.errors(0.95) <= law.error(0.95))
    assert 0.3 < coverage < 0.9  # between the least and the greatest of the cells


def test_cells_of_very_different_size_are_told_together() -> None:
    """An intercept of thousands beside a slope of hundredths: the small one never misses, so the large one may more."""
    sizes = np.array([1.0, 1e-3, 1e-6])
    law = ErrorLaw([Term("laplace", 1e5, sizes), Term("laplace", 3e4, 2 * sizes)])
    assert law.error(0.95) == pytest.approx(law.errors(0.85)[0], rel=1e-3)


def test_no_cells_and_no_terms_are_no_error() -> None:
    assert ErrorLaw([]).error() == 0
    empty = ErrorLaw([Term("laplace", 1.0, coefficient=np.zeros(0))])
    assert empty.error() == empty.standard_error == 0
    assert empty.errors().shape == (0,)


def test_a_stated_law_averages_coverage_over_its_cells() -> None:
    normal = ErrorLaw([Term("normal", 1.0, coefficient=np.array([1.0, 3.0]))])
    stated = StatedLaw([1.0, 3.0], normal.errors)
    assert stated.errors(0.9) == pytest.approx(normal.errors(0.9))
    assert normal.error(0.9) <= stated.error(0.9) <= 1.05 * normal.error(0.9)
    assert stated.cell(1).error(0.9) == pytest.approx(normal.errors(0.9)[1])
    assert stated.scaled(2).standard_errors == pytest.approx([2.0, 6.0])


def test_laws_of_a_plan_are_shown_in_one_pass() -> None:
    laws = [
        ErrorLaw([Term("laplace", 10.0 + i, count=3), Term("gaussian", 20.0, coefficient=0.1 * i)])
        for i in range(20)
    ] + [StatedLaw(1.0, lambda confidence: 2.0), ErrorLaw([Term("laplace", 2.0, np.array([1.0, 4.0]))])]
    assert errors_of_laws(laws, 0.9) == pytest.approx([law.error(0.9) for law in laws], rel=1e-9)


@pytest.mark.parametrize("confidence", [95, 0, 1, -0.5, float("nan"), True, "0.95"])
def test_a_confidence_is_a_probability(confidence: object) -> None:
    with pytest.raises(InvalidValue, match="confidence"):
        ErrorLaw([Term("laplace", 1.0)]).error(confidence)  # type: ignore[arg-type]


def test_ninety_five_is_told_apart_from_a_probability() -> None:
    with pytest.raises(InvalidValue, match=r"95% is 0\.95"):
        ErrorLaw([]).error(95)


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
        ErrorLaw([Term("laplace", 1.0, np.ones(2)), Term("laplace", 1.0, np.ones(3))])
    with pytest.raises(InvalidValue, match="one dimension"):
        ErrorLaw([Term("laplace", 1.0, np.ones((2, 2)))])
