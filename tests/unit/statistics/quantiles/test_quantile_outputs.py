"""Quantiles: their grids, what is predicted of their errors, and whether it comes true."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, Integers, Reals, dataset
from farthing.data.schema import Categories
from farthing.errors import InvalidValue
from farthing.mechanisms.quantiles import Quantile
from farthing.privacy import BoundedRange, Composed, DiscreteLaplaceNoise
from farthing.statistics.constructors import median, quantile, quantiles
from farthing.statistics.measurements import Measurements, Noise, QuantileSlot
from farthing.statistics.public_facts import Facts
from farthing.statistics.quantiles.quantile_grid import MOST_POINTS, QuantileGrid
from farthing.statistics.quantiles.quantile_intervals import QuantileDistribution, drifts
from farthing.statistics.quantiles.quantile_outputs import QuantileOutput, outputs_of
from farthing.statistics.statistic import Statistic
from sources import TestSource

SCHEMA = {"bmi": (10.0, 60.0), "age": (0, 110), "sex": ["F", "M"], "income": (0, 200_000)}


def people(size: int = 4, **options: Any) -> Dataset:
    table = pyarrow.table(
        {
            "bmi": np.linspace(20.0, 30.0, size),
            "age": np.arange(size) % 90,
            "sex": ["F", "M"] * (size // 2),
            "income": np.arange(size) * 7,
            "person": np.arange(size) // 2,
        }
    )
    return dataset(table, schema=SCHEMA, **options)


def output_of(statistic: Statistic, data: Dataset, **expected: Any) -> QuantileOutput:
    _, (output,), _, _ = outputs_of([statistic], Facts(data, expected))
    assert isinstance(output, QuantileOutput)
    return output


def test_a_grid_is_made_of_plain_decimals_inside_the_bounds() -> None:
    for domain, step, points in [
        (Reals(10.0, 60.0), 0.0005, 100_001),
        (Reals(-1.3, 1.3), 0.00005, 52_001),
        (Integers(0, 110), 1.0, 111),
        (Integers(0, 200_000), 2.0, 100_001),
        (Integers(5, 2**60), 2e13, 57_646),
    ]:
        grid = QuantileGrid.of("x", domain, groups=1)
        assert (float(grid.step), grid.points) == (step, points)
        assert domain.lower <= grid.values[0] and grid.values[-1] <= domain.upper
        assert grid.points <= MOST_POINTS


def test_many_groups_leave_fewer_points_and_too_many_are_refused() -> None:
    assert QuantileGrid.of("x", Reals(0.0, 1.0), groups=100).points == 1001
    with pytest.raises(InvalidValue, match=r"use fewer or wider groups"):
        QuantileGrid.of("x", Reals(0.0, 1.0), groups=10_000)


@pytest.mark.parametrize("domain", [Categories(("a", "b")), Integers(3, 3)])
def test_columns_without_an_order_or_a_spread_are_refused(domain: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^column='x'"):
        QuantileGrid.of("x", domain, groups=1)


@pytest.mark.slow
def test_rows_stand_at_the_point_next_to_them() -> None:
    table = pyarrow.table({"x": [0.0, 0.2499, 0.2501, 0.9999, 1.0, 7.0, None, float("nan")]})
    data = dataset(table, schema={"x": (0.0, 1.0)})
    (slot,), (output,), derived, _ = outputs_of([median("x")], Facts(data))
    counts = data.derive(**derived).exact({"n": slot.aggregate})["n"]
    assert isinstance(output, QuantileOutput)
    found = np.repeat(output.grid.values, counts).tolist()
    assert found == [0.0, 0.2499, 0.2501, 0.9999, 1.0, 1.0]


def test_whole_numbers_are_counted_as_they_are() -> None:
    slots, _, derived, _ = outputs_of([median("age")], Facts(people()))
    assert derived == {}
    assert slots[0].aggregate.by == ("age",)


@pytest.mark.slow
def test_quantiles_of_one_column_share_a_choice_where_none_loses_by_it() -> None:
    asked = [median("bmi"), quantiles("bmi", [0.25, 0.5, 0.75]), median("bmi", name="again")]
    slots, outputs, derived, _ = outputs_of(asked, Facts(people()))
    assert [len(slots), len(outputs), len(derived)] == [1, 3, 1]
    assert [output.columns for output in outputs] == [(1,), (0, 1, 2), (1,)]  # type: ignore[attr-defined]
    alone = output_of(asked[0], people())
    for epsilon in (0.1, 1.0):  # with the epsilon of both, a median is better by a third, and quartiles too
        assert outputs[0].variance_curve(1.5 * epsilon) == pytest.approx(alone.variance_curve(epsilon), rel=1e-2)
        assert outputs[0].alone_curve(epsilon) == pytest.approx(alone.variance_curve(epsilon))
        assert (outputs[1].variance_curve(2 * epsilon) < outputs[1].alone_curve(epsilon)).all()
    deciles = quantiles("bmi", [k / 10 for k in range(1, 10)])
    for others, many in (
        ([deciles], 2),  # their tree is deep: a median would lose
        ([median("bmi", by="sex")], 2),
        ([median("bmi", where="age > 30")], 2),
        ([median("age")], 2),
        ([quantile("bmi", 0.99)], 1),
        ([quantile("bmi", 0.51)], 1),
    ):
        assert len(outputs_of([median("bmi"), *others], Facts(people()))[0]) == many


def test_answers_of_a_shared_choice_are_those_of_the_probabilities_asked_for() -> None:
    asked = [median("bmi"), quantiles("bmi", [0.25, 0.5, 0.75])]
    (slot,), outputs, _, _ = outputs_of(asked, Facts(people()))
    noises = {slot.name: Noise("exponential", 0.5)}
    chosen = np.array([10_000, 20_000, 22_500])
    counts = np.full(len(slot.mechanism(noises[slot.name]).last_points(chosen)), 10)
    single, three = (output.answer({slot.name: np.append(chosen, counts)}, noises) for output in outputs)
    assert (single.values, np.asarray(three.values).tolist()) == (20.0, [15.0, 20.0, 21.25])
    assert (single.lower, single.upper) == (np.asarray(three.lower)[1], np.asarray(three.upper)[1])
    assert three.labels == (0.25, 0.5, 0.75)


def test_the_price_is_one_choice_for_each_level_of_probabilities_and_none_for_groups() -> None:
    noise = Noise("exponential", 1.25)
    data = people()
    counts = (DiscreteLaplaceNoise(4.0, 1), 1)  # around the choice
    assert output_of(median("bmi", by="sex"), data).slot.event(noise) == Composed(((BoundedRange(1.0), 1), counts))
    quartiles = output_of(quantiles("bmi", [0.25, 0.5, 0.75], by="sex"), data).slot
    assert quartiles.event(noise) == Composed(((BoundedRange(0.5), 2), counts))
    with pytest.raises(InvalidValue, match=r"must be exponential"):
        quartiles.event(Noise("laplace", 0.5))


def test_the_choice_is_the_mechanism_with_the_rows_a_unit_has_and_its_neighbours() -> None:
    data = people(unit="person", max_rows=2, neighbours="replace").group_privacy(3)
    slot = output_of(quantile("bmi", 0.9), data).slot
    assert (slot.max_rows, slot.neighbours) == (6, "replace")
    mechanism = slot.mechanism(Noise("exponential", 0.9375))
    (rate,) = mechanism.choosing.rates
    assert mechanism.l1_sensitivity == 12
    alone = Quantile(0.9, 0.75, 10.0, 60.0, 0.0005, max_rows=6, neighbours="replace")
    assert rate == alone.rate


def test_answers_rise_with_the_probability_and_stay_in_the_bounds() -> None:
    output = output_of(quantiles("bmi", [0.25, 0.5, 0.75], by="sex"), people())
    noises = {output.slot.name: Noise("exponential", 0.5)}
    chosen = np.array([[0, 20_000, 22_500], [1, 2, 50_000]])
    mechanism = output.slot.mechanism(noises[output.slot.name])
    counts = [np.full(len(mechanism.last_points(group)), 10) for group in chosen]
    answer = output.answer({output.slot.name: np.concatenate([chosen.reshape(-1), *counts])}, noises)
    assert answer.labels == tuple((sex, q) for sex in "FM" for q in (0.25, 0.5, 0.75))
    assert np.asarray(answer.values).tolist() == [10.0, 30.0, 32.5, 10.001, 10.002, 60.0]
    assert np.all(np.asarray(answer.lower) >= 10.0) and np.all(np.asarray(answer.upper) <= 60.0)


@pytest.mark.parametrize("asked", [median("bmi"), quantile("bmi", 0.9), median("age"), quantile("income", 0.1)])
def test_the_variance_falls_as_epsilon_grows(asked: Statistic) -> None:
    output = output_of(asked, people(), rows=10_000)
    variances = [float(output.variance_curve(epsilon)[0]) for epsilon in np.geomspace(1e-7, 50, 40)]
    assert all(a >= b > 0 for a, b in pairwise(variances))


def test_without_a_pull_all_points_are_alike() -> None:
    output = output_of(median("bmi"), people(), rows=100)
    assert float(output.variance_curve(1e-9)[0]) == pytest.approx(50**2 / 12, rel=0.01)


def test_the_law_is_that_of_the_mechanism_on_the_expected_counts() -> None:
    """Against weights written from the definition, point by point."""
    rows = np.array([3, 0, 5, 1, 1, 0, 7, 3])
    distribution = QuantileDistribution(np.arange(8.0), rows / rows.sum(), 0.3, 1.0, whole=True)
    rate, wanted = 0.35, 0.3 * rows.sum()
    upto = np.cumsum(rows)
    losses = [max(0, upto[y] - rows[y] - wanted, wanted - upto[y]) for y in range(8)]
    weights = np.exp(-rate * np.array(losses))
    weights /= weights.sum()
    assert distribution.quantile == 2.0
    assert distribution._plain_variance(rate * 20) == pytest.approx(float(weights @ (np.arange(8) - 2.0) ** 2))
    held = np.bincount(distribution.likely(rate * 20, 1_000), minlength=8) / 1_000
    assert held == pytest.approx(weights, abs=1e-3)


def test_the_law_of_a_choice_that_others_follow_is_the_mean_over_the_places_of_a_point() -> None:
    """Against weights place by place, and against shifts of the rank one by one."""
    rows = np.array([3, 0, 5, 1, 1, 0, 7, 3])
    shares, rate, wanted = rows / rows.sum(), 0.35, 0.3 * rows.sum()
    cut = QuantileDistribution(np.arange(8.0), shares, 0.3, 1.0, whole=True, cut=True)
    ranks = (np.cumsum(rows) - rows)[:, None] + rows[:, None] * (np.arange(4_000) + 0.5) / 4_000
    weights = np.exp(-rate * np.abs(ranks - wanted)).mean(axis=1)
    held = np.asarray(weights / weights.sum())
    assert cut._plain(rate * 20)[1] == pytest.approx(held, rel=1e-5)
    passed = QuantileDistribution(np.arange(8.0), shares, 0.3, 1.0, whole=True, passed=(0.5,))
    plain = QuantileDistribution(np.arange(8.0), shares, 0.3, 1.0, whole=True)
    shifts = drifts((0.5,), 9) / (rate * 20)
    mean = plain._weights(shifts, rate * 20, slice(0, 8)).mean(axis=0)
    assert passed._plain(rate * 20)[1] == pytest.approx(mean)
    assert shifts.mean() == pytest.approx(0) and np.mean(shifts**2) == pytest.approx(2 * (0.5 / (rate * 20)) ** 2)


def test_quantiles_of_one_column_under_many_conditions_share_their_tables() -> None:
    """And what they share is what each would have made for itself."""
    wheres = (None, "age > 30", "age > 40")
    one, *others = (output_of(quantile("bmi", 0.8, where=where), people(), rows=10_000) for where in wheres)
    assert all(other.distributions == one.distributions for other in others)
    shared = one.distributions[0]
    alone = QuantileDistribution(shared.values.copy(), shared.shares.copy(), 0.8, shared.step, shared.whole)
    assert alone is not shared and alone.curve(500.0).logarithms == pytest.approx(shared.curve(500.0).logarithms)


def test_look_ups_are_close_to_the_law_itself() -> None:
    output = output_of(quantile("bmi", 0.8), people(), rows=10_000, bmi=(27.0, 5.0))
    distribution = output.distributions[0]
    for epsilon in (0.0014, 0.006, 0.01, 0.04, 0.6):
        window, weights = distribution._plain(float(output._pulls(epsilon)[0]) * 10_000)
        exact = float(weights @ distribution._squares[window])
        assert float(output.variance_curve(epsilon)[0]) == pytest.approx(exact, rel=0.01)


def test_a_look_up_takes_well_under_a_millisecond_once_its_table_is_made() -> None:
    output = output_of(median("bmi", by="sex"), people())
    output.variance_curve(0.1)
    start = time.perf_counter()
    for epsilon in np.geomspace(0.01, 1, 100):
        output.variance_curve(float(epsilon))
    print(f"{(time.perf_counter() - start) * 10:.3f} ms a look-up")


def test_one_pass_on_an_engine_gives_quantiles_of_groups() -> None:
    data = people(2_000)
    slots, outputs, derived, assumptions = outputs_of(
        [median("bmi", by="sex"), quantiles("age", [0.25, 0.5]), quantile("income", 0.5, where="age >= 45")],
        Facts(data),
    )
    noises = {slot.name: Noise("exponential", 5.0) for slot in slots}
    measured = Measurements(tuple(derived.items()), tuple(slots), noises).run(data)
    found = [np.atleast_1d(output.answer(measured, noises).values) for output in outputs]
    assert np.allclose(found[0], 25.0, atol=0.3)
    assert np.allclose(found[1], [22, 45], atol=2)
    assert np.allclose(found[2], 7_000, atol=700)
    assert len(assumptions) == 7  # the rows, each of the three columns, and what the errors of each rest on


def errors_of(
    output: QuantileOutput, epsilon: float, releases: int, draw: Any, rows: int
) -> tuple[np.ndarray[Any, Any], float, float]:
    """Errors over tables drawn anew from the expected distribution, and what was predicted of them."""
    noise = Noise("exponential", epsilon)
    mechanism = output.slot.mechanism(noise)
    source, generator = TestSource(5), np.random.default_rng(5)
    errors, grid = [], output.grid
    for _ in range(releases):
        values = draw(generator, rows)
        points = np.clip(np.rint(values / float(grid.step)), grid.first, grid.last).astype(int) - grid.first
        counts = np.bincount(points, minlength=grid.points)
        truth = np.quantile(values, output.distributions[0].probability, method="inverted_cdf")
        errors.append(grid.values[int(mechanism._answer(counts, source)[0])] - truth)
    distribution = output.predicted({output.slot.name: noise})
    return np.array(errors), distribution.standard_error, distribution.error(0.95)


def normal(generator: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    return np.clip(generator.normal(27.0, 5.0, rows), 10.0, 60.0)


@pytest.mark.slow
@pytest.mark.parametrize(("probability", "rows", "epsilon"), [(0.5, 20_000, 0.1), (0.9, 5_000, 0.4), (0.25, 300, 0.6)])
def test_predicted_errors_of_real_numbers_come_true(probability: float, rows: int, epsilon: float) -> None:
    output = output_of(quantile("bmi", probability), people(), rows=rows, bmi=(27.0, 5.0))
    errors, deviation, bound = errors_of(output, epsilon, 500, normal, rows)
    found = np.sqrt(np.mean(errors**2))
    assert found == pytest.approx(deviation, rel=0.1)
    assert np.mean(np.abs(errors) <= bound) >= 0.93  # the interval reaches farther than the value is off
    for factor in (0.8, 1.25):  # a rate that is off by so much would be noticed
        distribution = output.predicted({output.slot.name: Noise("exponential", epsilon * factor)})
        assert found != pytest.approx(distribution.standard_error, rel=0.1)


@pytest.mark.slow
def test_predicted_errors_of_whole_numbers_come_true_over_many_tables() -> None:
    """A year holds more rows than the noise moves: where its border lies is a matter of the sample."""
    output = output_of(median("age"), people(), rows=20_000)
    errors, deviation, _ = errors_of(
        output, 0.1, 1_000, lambda generator, rows: generator.integers(0, 111, rows), 20_000
    )
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(deviation, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("column", "rows"), [("bmi", 500), ("age", 2_000)])
def test_predicted_errors_of_quartiles_and_a_median_beside_them_come_true(column: str, rows: int) -> None:
    """In a tree the lower and the upper one inherit a part of the miss of the middle one."""

    def draw(generator: np.random.Generator) -> np.ndarray[Any, Any]:
        return normal(generator, rows) if column == "bmi" else generator.integers(0, 111, rows)

    asked, expected = [quantiles(column, [0.25, 0.5, 0.75]), median(column)], {"rows": rows, "bmi": (27.0, 5.0)}
    (slot,), (output, middle), _, _ = outputs_of(asked, Facts(people(), expected))
    assert isinstance(output, QuantileOutput) and isinstance(slot, QuantileSlot)
    noise, grid = Noise("exponential", 1.5), output.grid
    choosing, source, generator = slot.mechanism(noise).choosing, TestSource(5), np.random.default_rng(5)
    errors = []
    for _ in range(500):
        values = draw(generator)
        points = np.clip(np.rint(values / float(grid.step)), grid.first, grid.last).astype(int) - grid.first
        chosen = choosing._answer(np.bincount(points, minlength=grid.points), source)[0]
        errors.append(grid.values[chosen] - np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf"))
    found = np.sqrt(np.mean(np.square(errors), axis=0))
    assert found == pytest.approx(np.sqrt(output.variance_curve(1.5)), rel=0.15)
    assert middle.variance_curve(1.5) == output.variance_curve(1.5)[1:2]
    for factor in (0.7, 1.4):
        assert found != pytest.approx(np.sqrt(output.variance_curve(1.5 * factor)), rel=0.15)


@pytest.mark.parametrize("upper", [60.0, 60_000.0])
def test_the_error_on_listed_rows_is_that_of_the_mechanism_on_just_these_rows(upper: float) -> None:
    """Against weights written from the definition; 1,000 times too wide a grid holds many rows in one point."""
    values, epsilon = np.sort(normal(np.random.default_rng(6), 2_000)), 0.7
    data = dataset(pyarrow.table({"bmi": [20.0]}), schema={"bmi": (10.0, upper)})
    output = output_of(median("bmi"), data, rows=2_000, bmi=[*values.tolist()])
    grid, truth = output.grid, values[999]
    points = np.rint(values / float(grid.step)).astype(int) - grid.first
    upto = np.searchsorted(points, np.arange(grid.points), "right")
    before = np.searchsorted(points, np.arange(grid.points), "left")
    weights = np.exp(-0.8 * epsilon * np.maximum(np.maximum(before - 1_000, 1_000 - upto), 0))
    exact = np.sqrt(weights @ (grid.values - truth) ** 2 / weights.sum())
    distribution = output.predicted({output.slot.name: Noise("exponential", epsilon)})
    assert distribution.standard_error == pytest.approx(exact, rel=0.02)


@pytest.mark.slow
def test_a_list_that_is_not_the_rows_tells_only_how_they_are_spread() -> None:
    values = normal(np.random.default_rng(6), 2_000).tolist()
    for asked, rows, known in [
        (median("bmi"), 2_050, True),
        (median("bmi"), 2_400, False),
        (median("bmi"), 1_000, False),
        (median("bmi", by="sex"), 2_000, False),
        (median("bmi", where="age > 30"), 2_000, False),
        (median("bmi", for_population=True), 2_000, False),
    ]:
        (distribution,) = output_of(asked, people(), rows=rows, bmi=values).distributions
        assert (distribution.known is not None) == known


def test_a_slot_has_no_noise_of_its_own() -> None:
    slot = output_of(median("bmi"), people()).slot
    assert isinstance(slot, QuantileSlot)
    with pytest.raises(AssertionError, match="a choice"):
        slot.variance(Noise("exponential", 1.0))


def test_a_law_for_one_expected_row_is_a_number_at_every_pull() -> None:
    coarse = QuantileDistribution(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 0.9, 1.0, whole=True)
    found = coarse.curve(rows=1.0).at(np.geomspace(0.1, 1e6, 30))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "missing", [[25.0] * 3 + [None], {"mean": 25.0, "sd": 3.0, "missing": 0.25}], ids=["list", "share"]
)
def test_errors_are_predicted_for_the_rows_that_have_a_value(missing: Any) -> None:
    found = output_of(median("bmi"), people(), rows=8_000, bmi=missing)
    assert found.rows.tolist() == [6_000.0]
