"""Intervals of released quantiles: what they hold, and what they say they rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pytest
from scipy.stats import binom

from farthing.data import Dataset, dataset
from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.mechanisms.counted_quantiles import CountedQuantiles
from farthing.release.facts import Facts
from farthing.release.noise import Noise
from farthing.release.quantile_intervals import in_order, rank_error
from farthing.release.quantile_outputs import QuantileOutput, outputs_of
from farthing.release.statistic import Statistic
from farthing.release.statistics import median, quantile, quantiles
from sources import TestSource

pytestmark = pytest.mark.slow

PLACES = [0.1, 0.5, 0.9]


def costs(**options: Any) -> Dataset:
    table = pyarrow.table({"cost": [1.0, 2.0], "days": [1, 2], "sex": ["F", "M"]})
    schema: dict[str, Any] = {"cost": (0.0, 50_000.0), "days": (0, 30), "sex": ["F", "M"]}
    return dataset(table, schema=schema, **options)


def output_of(statistic: Statistic, **expected: Any) -> QuantileOutput:
    _, (output,), _, _ = outputs_of([statistic], Facts(costs(), expected))
    assert isinstance(output, QuantileOutput)
    return output


def answer_of(output: QuantileOutput, epsilon: float, places: Any, confidence: float = 0.95) -> Answer:
    name = output.slot.name
    return output.answer({name: np.asarray(places)}, {name: Noise("exponential", epsilon)}, confidence)


def skewed(rows: int, seed: int) -> np.ndarray[Any, Any]:
    return np.clip(np.random.default_rng(seed).lognormal(5.3, 1.25, rows), 0, 50_000)


@pytest.mark.parametrize(
    ("guess", "foretold_fails"),
    [
        pytest.param((450.0, 850.0), True, id="mean and deviation"),
        pytest.param((3_000.0, 500.0), True, id="wrong", marks=pytest.mark.slow),
        pytest.param(skewed(500, 2).tolist(), False, id="public values", marks=pytest.mark.slow),
        pytest.param(None, False, id="nothing", marks=pytest.mark.slow),
    ],
)
def test_intervals_hold_a_skewed_column_though_the_guess_is_crude(guess: Any, foretold_fails: bool) -> None:
    rows, epsilon = 20_000, 0.05
    expected = {"rows": rows} if guess is None else {"rows": rows, "cost": guess}
    output = output_of(quantiles("cost", PLACES), **expected)
    values, grid = skewed(rows, 1), output.grid
    truth = np.quantile(values, PLACES, method="inverted_cdf")
    points = np.clip(np.rint(values / float(grid.step)), grid.first, grid.last).astype(int) - grid.first
    counts = np.bincount(points, minlength=grid.points)
    noise, source = Noise("exponential", epsilon), TestSource(3)
    held, foretold = [], []
    for _ in range(25):
        answer = answer_of(output, epsilon, output.slot.mechanism(noise)._answer(counts, source))
        held.append((answer.lower <= truth) & (truth <= answer.upper))
        foretold.append(np.abs(answer.values - truth) <= output._errors(epsilon, 0.95))
    assert np.min(np.sum(held, axis=0)) >= 24
    assert (np.min(np.sum(foretold, axis=0)) < 20) == foretold_fails


@pytest.mark.slow
@pytest.mark.parametrize("probabilities", [(0.5,), (0.4, 0.5, 0.6)])
def test_ranks_are_as_near_as_said_where_the_rows_make_it_hardest(probabilities: tuple[float, ...]) -> None:
    """All rows on one point: every other point is wrong by the same number of rows."""
    releases, points = 1_000, 1_001
    mechanism = CountedQuantiles(probabilities, 1.0, points)
    reach, source = rank_error(mechanism, 0.95), TestSource(7)

    def misses(loss: float) -> int:
        counts = np.zeros(points, dtype=np.int64)
        counts[points // 2] = round(loss / min(*probabilities, 0.5))
        found = [np.sort(mechanism._answer(counts, source)[0]) for _ in range(releases)]
        return sum(bool((answer != points // 2).any()) for answer in found)

    assert misses(reach + 1) <= binom.isf(1e-6, releases, 0.05)
    assert misses(0.8 * reach) > binom.isf(1e-6, releases, 0.05)  # a shorter one would not do


def test_the_rank_error_is_that_of_the_mechanism_and_wants_a_confidence() -> None:
    mechanism = CountedQuantiles((0.9,), 0.5, 20_001)
    assert rank_error(mechanism, 0.95) == mechanism.choices[0].error(0.95)
    assert rank_error(mechanism, 1 - 1e-16) < np.inf
    with pytest.raises(InvalidValue, match="confidence"):
        rank_error(mechanism, 95.0)


@pytest.mark.parametrize("column", ["cost", "days"])
@pytest.mark.parametrize("epsilon", [0.001, 0.1, 50.0])
def test_ends_rise_stay_in_the_bounds_and_leave_a_step_on_each_side(column: str, epsilon: float) -> None:
    output = output_of(quantiles(column, PLACES, by="sex"), rows=5_000, cost=(400.0, 300.0), days=(5.0, 4.0))
    grid, generator = output.grid, np.random.default_rng(1)
    for level in (0.5, 0.95, 0.999):
        answer = answer_of(output, epsilon, generator.integers(0, grid.points, 6), level)
        values, lower, upper = (np.reshape(a, (2, 3)) for a in (answer.values, answer.lower, answer.upper))
        assert (np.diff(lower) >= 0).all() and (np.diff(upper) >= 0).all()
        assert (lower >= grid.lower).all() and (upper <= grid.upper).all()
        assert (lower <= np.maximum(values - float(grid.step), grid.lower)).all()
        assert (upper >= np.minimum(values + float(grid.step), grid.upper)).all()
        again = answer.at(0.9999)
        assert (again.lower <= answer.lower).all() and (again.upper >= answer.upper).all()  # type: ignore[union-attr]


def test_ends_out_of_order_are_moved_outward() -> None:
    lower, upper = in_order(np.array([[1.0, 0.0, 2.0]]), np.array([[3.0, 5.0, 4.0]]))
    assert lower.tolist() == [[0.0, 0.0, 2.0]] and upper.tolist() == [[3.0, 5.0, 5.0]]


def test_a_rounded_answer_lies_in_the_interval_of_the_one_before_rounding() -> None:
    exact = output_of(median("cost"), rows=20_000, cost=[0.0, 50_000.0])
    rounded = output_of(median("cost", rounded=True), rows=20_000, cost=[0.0, 50_000.0])
    one, other = (answer_of(output, 50.0, [1_001]) for output in (exact, rounded))
    assert (one.values, other.values) == (2_502.5, 2_502.0)
    assert other.lower <= one.lower and other.upper >= one.upper  # type: ignore[operator]


@pytest.mark.parametrize(
    ("asked", "expected", "ground"),
    [
        (median("cost"), {"rows": 9, "cost": [1.0, 5.0, 9.0]}, "what was expected of cost"),
        (
            median("cost"),
            {"rows": 9, "cost": (9.0, 5.0)},
            "what was expected of cost, taken for a bell curve",
        ),
        (
            median("cost"),
            {},
            "the assumption that cost is spread evenly between its bounds and that the table has 10,000 rows",
        ),
        (
            median("cost", by="sex", where="days > 3"),
            {"rows": 9, "cost": [1.0, 5.0, 9.0]},
            "what was expected of cost and on the assumption that the rows that meet the condition are as many and "
            "as spread as foretold and that the groups are as large and as spread as foretold",
        ),
    ],
)
def test_a_note_tells_what_the_interval_rests_on(asked: Statistic, expected: Any, ground: str) -> None:
    output = output_of(asked, **expected)
    note = answer_of(output, 0.5, [5] * len(output.rows)).note
    # log(20,000 * 19) / 0.5 = 25.7
    known = "95 times in 100 the answer's rank is within 26 rows of the rank asked for, whatever the data; "
    assert note == f"{known}the interval in values rests on {ground}"


def test_a_note_speaks_of_all_quantiles_and_of_the_confidence_asked_for() -> None:
    output = output_of(quantiles("days", [0.25, 0.5], by="sex"))
    answer = answer_of(output, 0.5, [5] * 4, 0.9)
    assert answer.note.startswith("90 times in 100 the ranks of all answers of a group are within ")
    assert answer["F", 0.5].note == answer.at(0.5).note == answer.note


def test_a_plan_says_that_errors_rest_on_a_crude_guess() -> None:
    for guess, said in ((None, True), ((400.0, 300.0), True), ([1.0, 2.0, 3.0], False)):
        expected = {"rows": 100} if guess is None else {"rows": 100, "cost": guess}
        *_, assumptions = outputs_of([median("cost"), quantile("cost", 0.9)], Facts(costs(), expected))
        line = "the error of quantiles of cost rests on how cost is spread; a list of public values foretells it better"
        assert assumptions.count(line) == said
