"""What goes into a fit: repeated, merged, missing and impossible measurements, and earlier models."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.errors import InvalidValue
from farthing.inference.graphical import GraphicalModel, Measured, fit_graphical

SIZES = (3, 4, 2)


def noisy(subset: tuple[int, ...], seed: int, deviation: float = 5.0) -> Measured:
    draw = np.random.default_rng(seed)
    shape = [SIZES[column] for column in subset]
    truth = 600.0 * draw.dirichlet(np.ones(int(np.prod(shape)))).reshape(shape)
    return Measured(subset, truth + draw.normal(0, deviation, shape), deviation)


def whole(model: GraphicalModel) -> np.ndarray:
    return model.marginal(range(len(SIZES)))


def test_measuring_twice_is_measuring_once_with_less_noise() -> None:
    one, two = noisy((0, 1), 1, 3.0), noisy((0, 1), 2, 4.0)
    weights = np.array([1 / 9, 1 / 16])
    mean = (one.values * weights[0] + two.values * weights[1]) / weights.sum()
    together = Measured((0, 1), mean, weights.sum() ** -0.5)
    expected = whole(fit_graphical(SIZES, [together], 600))
    assert whole(fit_graphical(SIZES, [one, two], 600)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_an_earlier_model_is_a_start_and_leaves_no_trace() -> None:
    tables = [noisy((0, 1), 3), noisy((1, 2), 4), noisy((0, 2), 5)]
    early = fit_graphical(SIZES, tables[:2], 600)
    cold = fit_graphical(SIZES, tables, 600, tolerance=1e-10, rounds=1000)
    warm = fit_graphical(SIZES, tables, 600, start=early, tolerance=1e-10, rounds=1000)
    assert warm.loss == pytest.approx(cold.loss, rel=1e-6)
    assert whole(warm) == pytest.approx(whole(cold), abs=0.02)
    again = fit_graphical(SIZES, tables, 600, start=cold, rounds=3)
    assert again.loss <= cold.loss * (1 + 1e-9)


def test_a_start_keeps_its_shape_where_nothing_is_measured_any_more() -> None:
    """Only the column 2 is measured now: given its value, all other columns are as they were."""
    start = fit_graphical(SIZES, [noisy((0, 1), 6), noisy((1, 2), 7)], 600)
    wanted = Measured((2,), [100.0, 500.0], 1e-3)
    model = fit_graphical(SIZES, [wanted], 600, start=start, tolerance=1e-12)
    assert model.marginal((2,)) == pytest.approx(wanted.values, abs=1e-3)
    given = [whole(one) / one.marginal((2,)) for one in (start, model)]
    assert given[1] == pytest.approx(given[0], abs=1e-9)


def test_merged_values_are_spread_evenly() -> None:
    model = fit_graphical((4, 2), [Measured((0,), [30.0, 70.0], 1.0, groups=([0, 1, 1, 0],))], 100)
    assert model.marginal((0,)) == pytest.approx([15, 35, 35, 15])


def test_nothing_measured_is_the_even_table_and_no_rows_are_no_rows() -> None:
    assert whole(fit_graphical(SIZES, [], 48)) == pytest.approx(np.full(SIZES, 2.0))
    assert not whole(fit_graphical(SIZES, [noisy((0,), 8)], 0)).any()


def test_values_below_zero_leave_nearly_nothing() -> None:
    model = fit_graphical((4,), [Measured((0,), [-50.0, 60.0, 45.0, -3.0], 1.0)], 100, tolerance=1e-9)
    assert model.marginal((0,)) == pytest.approx([0, 57.5, 42.5, 0], abs=1e-3)
    assert model.loss - model.gap <= (50**2 + 2.5**2 * 2 + 3**2) / 2 <= model.loss + 1e-6


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_counts_of_any_size_are_fitted_alike(scale: float) -> None:
    tables = [noisy((0, 1), 9), noisy((1, 2), 10)]
    scaled = [Measured(t.subset, t.values * scale, t.standard_deviation * scale) for t in tables]
    expected = whole(fit_graphical(SIZES, tables, 600)) * scale
    assert whole(fit_graphical(SIZES, scaled, 600 * scale)) == pytest.approx(expected, rel=1e-5)


def test_progress_ends_where_it_should() -> None:
    told: list[tuple[int, int]] = []
    fit_graphical(SIZES, [noisy((0, 1), 11)], 600, rounds=50, progress=lambda done, of: told.append((done, of)))
    assert told == sorted(told)
    assert told[-1] == (50, 50)


@pytest.mark.parametrize(
    "values",
    [
        lambda: Measured((0, 0), [[1.0]], 1.0),
        lambda: Measured((0,), [[1.0]], 1.0),
        lambda: Measured((0,), [float("nan")], 1.0),
        lambda: Measured((0,), [1.0], 0.0),
        lambda: Measured((0,), [1.0], float("nan")),
        lambda: Measured((0,), [1.0, 2.0], 1.0, groups=([0, 2, 2],)),
        lambda: Measured((0,), [1.0], 1.0, groups=()),
        lambda: fit_graphical(SIZES, [Measured((0,), [1.0], 1.0)], 10),
        lambda: fit_graphical(SIZES, [Measured((0,), [1.0, 2.0], 1.0, groups=([0, 1],))], 10),
        lambda: fit_graphical(SIZES, [Measured((3,), [1.0], 1.0)], 10),
        lambda: fit_graphical(SIZES, [], float("nan")),
        lambda: fit_graphical(SIZES, [], 10, start=fit_graphical((2,), [], 10)),
    ],
)
def test_what_is_no_measurement_is_refused(values: object) -> None:
    with pytest.raises(InvalidValue):
        values()  # type: ignore[operator]
