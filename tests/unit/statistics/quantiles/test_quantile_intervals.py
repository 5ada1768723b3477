"""Intervals of released quantiles hold whatever the data, and say so."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow
import pytest
from scipy.stats import binom

from farthing.data import Dataset, dataset
from farthing.mechanisms.quantile_surroundings import QuantileSurroundings
from farthing.statistics.constructors import median, quantile, quantiles
from farthing.statistics.measurements import Noise
from farthing.statistics.public_facts import Facts
from farthing.statistics.quantiles.quantile_intervals import NoisyRanks, in_order
from farthing.statistics.quantiles.quantile_outputs import QuantileOutput, outputs_of
from farthing.statistics.statistic import Statistic
from sources import TestSource

PLACES = [0.1, 0.5, 0.9]


def costs(upper: float = 50_000.0, days: int = 30, **options: Any) -> Dataset:
    table = pyarrow.table({"cost": [1.0, 2.0], "days": [1, 2], "sex": ["F", "M"]})
    schema: dict[str, Any] = {"cost": (0.0, upper), "days": (0, days), "sex": ["F", "M"]}
    return dataset(table, schema=schema, **options)


def output_of(statistic: Statistic, data: Dataset | None = None, **expected: Any) -> QuantileOutput:
    _, (output,), _, _ = outputs_of([statistic], Facts(data or costs(), expected))
    assert isinstance(output, QuantileOutput)
    return output


def counts_of(output: QuantileOutput, values: Any) -> np.ndarray[Any, Any]:
    grid = output.grid
    points = np.clip(np.rint(np.asarray(values) / float(grid.step)), grid.first, grid.last).astype(int)
    return np.bincount(points - grid.first, minlength=grid.points)


def releases(output: QuantileOutput, epsilon: float, counts: Any, number: int, seed: int = 3) -> Any:
    noise, source = Noise("exponential", epsilon), TestSource(seed)
    mechanism = output.slot.mechanism(noise)
    for _ in range(number):
        yield output.answer({output.slot.name: mechanism._answer(counts, source)}, {output.slot.name: noise})


def draws(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "upper", "values", "epsilon"),
    [
        pytest.param(quantile("cost", 0.99), 5e6, draws().lognormal(5.3, 1.25, 20_000), 0.1, id="too wide"),
        pytest.param(median("cost"), 5e4, [10.0, 20.0, 30.0, 40.0, 900.0], 1.0, id="tiny"),
        *(
            pytest.param(*case, marks=pytest.mark.slow, id=name)
            for name, case in {
                "skewed": (quantile("cost", 0.9), 5e4, draws().lognormal(5.3, 1.25, 5_000), 0.2),
                "heavy-tailed": (median("cost"), 5e4, draws().pareto(0.7, 4_000), 0.1),
                "discrete": (quantile("days", 0.75), 5e4, draws().poisson(3.0, 3_000), 0.05),
                "two values, a tie": (median("days"), 5e4, [3] * 40 + [20] * 40, 1.0),
                "one value": (quantile("cost", 0.1), 5e4, np.full(300, 49_000.0), 0.2),
            }.items()
        ),
    ],
)
def test_intervals_hold_whatever_the_data_and_nothing_expected(
    asked: Statistic, upper: float, values: Any, epsilon: float
) -> None:
    """By chance, at exactly 95%, 1 in 10^9 such tests would fail; the source is seeded, so that none does."""
    output = output_of(asked, costs(upper))
    kept = np.clip(np.asarray(values, dtype=float), output.grid.lower, output.grid.upper)
    truth = np.quantile(kept, asked.probabilities[0], method="inverted_cdf")
    number = 120
    missed = sum(
        not answer.lower <= truth <= answer.upper
        for answer in releases(output, epsilon, counts_of(output, kept), number)
    )
    assert missed <= binom.isf(1e-9, number, 0.05)


def by_definition(last: Any, counts: Any, probability: float, errors: Any, choice: int) -> tuple[int, int]:
    """The first and the last point, cell by cell."""
    total = sum(counts)
    start = 0
    for cell in range(len(counts) - 1):
        if not sum(counts[: cell + 1]) - probability * total < -errors[cell]:
            break
        start = last[cell] + 1
    end = last[-1]
    for cell in reversed(range(len(counts) - 1)):
        if not sum(counts[: cell + 1]) - probability * total >= errors[cell]:
            break
        end = last[cell]
    return min(start, end, choice), max(start, end, choice)


def test_the_interval_is_that_of_the_definition() -> None:
    generator = draws(4)
    for _ in range(300):
        cells = int(generator.integers(1, 9))
        last = np.sort(generator.choice(50, cells, replace=False))
        counts, errors = generator.integers(-5, 15, cells), generator.uniform(0, 9, cells - 1) + 0.123
        choice = int(generator.integers(0, 50))
        for probability in (0.25, 0.5, 0.9):
            found = NoisyRanks(last, counts, 1.0).interval(probability, errors, choice)
            slow = by_definition(last.tolist(), counts.tolist(), probability, errors.tolist(), choice)
            assert found == slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    [
        (3, 1, 3),
        (0, 0, 0),
        pytest.param((0, 7, 0), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("probability", [0.25, 0.5])
def test_coverage_is_at_least_the_confidence_over_every_noise(table: Any, probability: float) -> None:
    """Whether the choice lies below the quantile or above, and wherever in its cell the quantile lies."""
    scale, confidence, last = 0.8, 0.9, np.array([4, 5, 9])
    upto = np.cumsum(table)
    own = int(np.searchsorted(upto, probability * upto[-1]))  # the cell the quantile lies in
    first, final = (int(last[own - 1]) + 1 if own else 0), int(last[own])
    errors = NoisyRanks(last, np.array(table), scale).rank_errors(probability, confidence)
    chance = {n: np.tanh(0.5 / scale) * np.exp(-abs(n) / scale) for n in range(-8, 9)}
    above = below = 0.0
    for noise in product(chance, repeat=3):
        ranks, own_chance = NoisyRanks(last, np.add(table, noise), scale), np.prod([chance[n] for n in noise])
        above += own_chance * (ranks.interval(probability, errors, 9)[0] <= first)
        below += own_chance * (ranks.interval(probability, errors, 0)[1] >= final)
    assert min(above, below) >= confidence - 1e-4  # noise beyond 8 was left out: 6e-5


@pytest.mark.slow
def test_noise_that_is_ten_percent_wider_than_said_is_seen() -> None:
    """The rank of a point is exactly the one asked for: one tail of its noise makes the interval miss."""
    generator, last, number = draws(9), np.array([4, 5, 9]), 15_000
    errors = NoisyRanks(last, np.zeros(3, dtype=np.int64), 20.0).rank_errors(0.5, 0.95)
    missed, kept = {}, {}
    for factor in (1.0, 1.1):
        noise = np.rint(generator.laplace(0.0, 20.0 * factor, (number, 3))).astype(np.int64)
        ranks = [NoisyRanks(last, np.add((0, 500, 500), one), 20.0) for one in noise]
        missed[factor] = sum(not low <= 5 for low, _ in (one.interval(0.5, errors, 9) for one in ranks))
        kept[factor] = all(one.interval(0.5, errors, 5)[0] <= 5 for one in ranks)
    assert binom.isf(1 - 1e-6, number, 0.05) <= missed[1.0] <= binom.isf(1e-6, number, 0.05) < missed[1.1]
    assert all(kept.values())  # a choice that is the quantile is never missed


@pytest.mark.parametrize("spread", [0.0, 1e-12])
def test_the_errors_of_ranks_are_those_of_the_noise_and_between_rungs_no_smaller(spread: float) -> None:
    """Of the rows, one tail has all that may be missed; of a population, which the choice follows, each has half."""
    cells, scale, probability = 40, 3.0, 0.9
    found = NoisyRanks(np.arange(cells), np.zeros(cells, dtype=np.int64), scale, spread).rank_errors(probability, 0.95)
    noise = np.rint(draws(5).laplace(0.0, scale, (20_000, cells)))
    ranks = (1 - probability) * np.cumsum(noise, axis=1) - probability * (
        noise.sum(axis=1, keepdims=True) - np.cumsum(noise, axis=1)
    )
    beyond = np.mean(ranks[:, :-1] > found, axis=0) * (2 if spread else 1)
    assert (beyond <= 0.058).all() and beyond.max() > 0.042
    assert len(found) == cells - 1 and (np.diff(found) <= 0).all()


def test_an_interval_of_little_confidence_is_narrow_and_holds_the_choice() -> None:
    ranks = NoisyRanks(np.array([4, 5, 9]), np.array([100, 0, 110]), 1.0)
    for confidence in (0.01, 0.5):
        errors = ranks.rank_errors(0.5, confidence)
        assert (errors >= 0).all() and errors.max() < 1
        assert ranks.interval(0.5, errors, 6) == (6, 9)


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.5, 0.9])
def test_smooth_columns_are_held_by_96_to_98_of_100_intervals(probability: float) -> None:
    """At 97%, of 6,000 intervals fewer than 95.5% or more than 98.2% hold it by chance less than once in 10^9."""
    points, epsilon, number, generator = 20_001, 1.0, 6_000, draws(7)
    mechanism = QuantileSurroundings((probability,), epsilon, points)
    upto = np.cumsum(np.arange(points) % 5 == 0)
    truth, scale = int(np.searchsorted(upto, probability * upto[-1])), mechanism.counting().scale
    rate = float(mechanism.choosing.rates[0])
    losses = np.maximum(np.append(0, upto[:-1]) - probability * upto[-1], probability * upto[-1] - upto)
    weights = np.exp(-rate * np.maximum(losses, 0.0))
    held = 0
    for choice in generator.choice(points, number, p=weights / weights.sum()):
        last = mechanism.last_points(np.array([choice]))
        counts = np.diff(upto[last], prepend=0) + np.rint(generator.laplace(0.0, scale, len(last))).astype(np.int64)
        ranks = NoisyRanks(last, counts, scale)
        low, high = ranks.interval(probability, ranks.rank_errors(probability, 0.95), int(choice))
        held += low <= truth <= high
    assert 0.955 <= held / number <= 0.982


@pytest.mark.slow
def test_a_sample_widens_the_interval_so_that_it_holds_the_population() -> None:
    asked = median("cost", for_population=True)
    output, plain = output_of(asked), output_of(median("cost"))
    generator, number = draws(6), 100
    truth, missed, missed_plain = 1_000.0, 0, 0
    for release in range(number):
        counts = counts_of(output, generator.exponential(1_000.0 / np.log(2), 2_000))
        (answer,) = releases(output, 5.0, counts, 1, release)
        missed += not answer.lower <= truth <= answer.upper
        (answer,) = releases(plain, 5.0, counts, 1, release)
        missed_plain += not answer.lower <= truth <= answer.upper
    assert missed <= binom.isf(1e-9, number, 0.05) < missed_plain


@pytest.mark.slow
@pytest.mark.parametrize("column", ["cost", "days"])
@pytest.mark.parametrize("epsilon", [0.001, 50.0])
def test_ends_rise_hold_the_value_stay_in_the_bounds_and_widen(column: str, epsilon: float) -> None:
    output = output_of(quantiles(column, PLACES, by="sex"))
    grid, generator = output.grid, draws()
    counts = generator.integers(0, 3, (2, grid.points))
    for answer in releases(output, epsilon, counts, 2):
        values, lower, upper = (np.reshape(a, (2, 3)) for a in (answer.values, answer.lower, answer.upper))
        assert (np.diff(lower) >= 0).all() and (np.diff(upper) >= 0).all()
        assert (lower >= grid.lower).all() and (upper <= grid.upper).all()
        assert (lower <= values).all() and (values <= upper).all()
        again = answer.at(0.9999)
        assert (again.lower <= answer.lower).all() and (again.upper >= answer.upper).all()


def test_ends_out_of_order_are_moved_outward() -> None:
    lower, upper = in_order(np.array([[1.0, 0.0, 2.0]]), np.array([[3.0, 5.0, 4.0]]))
    assert lower.tolist() == [[0.0, 0.0, 2.0]] and upper.tolist() == [[3.0, 5.0, 5.0]]


def test_a_note_says_that_it_was_measured_what_the_bounds_do_and_when_it_says_nothing() -> None:
    output = output_of(median("cost"))
    (answer,) = releases(output, 5.0, counts_of(output, [100.0] * 500), 1)
    known = (
        "the interval was measured and holds whatever the data, more often than stated where many rows share a value"
    )
    assert answer.note == f"{known}; values outside 0 to 50000 count as the nearer bound"
    (nothing,) = releases(output, 0.01, counts_of(output, [100.0]), 1)
    assert (nothing.lower, nothing.upper) == (0.0, 50_000.0)
    assert nothing.note.endswith("the interval is as wide as the bounds: there are too few rows for this epsilon")
    groups = output_of(median("cost", by="sex"))
    (both,) = releases(groups, 1.0, np.stack([counts_of(groups, [100.0]), counts_of(groups, [7.0] * 900)]), 1)
    assert "1 of 2 intervals is as wide as the bounds: there are too few rows for this epsilon, or the" in both.note
    assert both.note.endswith("or the categories of sex do not match the file: farthing check")
    sample = output_of(median("cost", for_population=True))
    (answer,) = releases(sample, 5.0, counts_of(sample, [100.0] * 500), 1)
    assert "any population whose units are sampled independently" in answer.note


@pytest.mark.slow
def test_a_standard_error_is_nothing_only_where_the_interval_is_one_point() -> None:
    """Whole numbers jump: of 27s and a few 28s two thirds of the chances may all be 27, and the rest are not."""
    output, seen = output_of(quantile("days", 0.5)), 0
    for share in np.linspace(0.40, 0.60, 21):
        values = np.where(np.arange(2_000) < share * 2_000, 27, 28)
        for answer in releases(output, 0.2, counts_of(output, values), 4):
            low, high = answer.interval_at(0.68)
            seen += float(low[0]) == float(high[0]) and answer.lower < answer.upper
            assert (answer.standard_errors == 0) == (answer.lower == answer.upper)
            assert answer.standard_errors >= (answer.upper - answer.lower) / 4
    assert seen  # else this shows nothing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "rows", "epsilon"), [("cost", 20_000, 0.2), ("days", 3_000, 0.01), ("cost", 500, 1.0)]
)
def test_a_plan_predicts_how_far_intervals_reach_where_values_are_spread_as_expected(
    column: str, rows: int, epsilon: float
) -> None:
    values = draws(8).gamma(3.0, 2.0, rows) * (400.0 if column == "cost" else 1.0)
    values = np.clip(values if column == "cost" else np.rint(values), 0, 30 if column == "days" else 50_000)
    output = output_of(quantiles(column, [0.5, 0.8]), rows=rows, **{column: values.tolist()})
    distribution = output.predicted({output.slot.name: Noise("exponential", epsilon)})
    found = [answer.error() for answer in releases(output, epsilon, counts_of(output, values), 60)]
    usual = np.mean(np.sqrt(found), axis=0) ** 2
    assert usual == pytest.approx(distribution.errors(0.95), rel=0.25)
    assert distribution.error(0.95) == distribution.errors(0.95).max()
    assert (distribution.errors(0.5) < distribution.errors(0.99)).all()


@pytest.mark.slow
def test_a_required_error_counts_the_few_intervals_that_reach_up_to_a_bound() -> None:
    """It holds on average: a usual interval is much shorter than the mean of all, where some reach a far bound."""
    values = np.rint(draws(1).normal(500.0, 120.0, 500))
    output = output_of(quantile("cost", 0.75), rows=500, cost=values.tolist())
    noise = {output.slot.name: Noise("exponential", 0.2)}
    usual, promised = output.predicted(noise).error(0.95), output.promised(noise).error(0.95)
    released = np.mean([answer.error() for answer in releases(output, 0.2, counts_of(output, values), 400)])
    assert released == pytest.approx(promised, rel=0.4)
    assert released > 1.5 * usual and promised > 1.5 * usual


def test_a_plan_says_that_errors_rest_on_a_crude_guess() -> None:
    for guess, said in ((None, True), ((400.0, 300.0), True), ([1.0, 2.0, 3.0], False)):
        expected = {"rows": 100} if guess is None else {"rows": 100, "cost": guess}
        _, (output, _), _, assumptions = outputs_of([median("cost"), quantile("cost", 0.9)], Facts(costs(), expected))
        line = (
            "the error of quantiles of cost depends on how cost is distributed; "
            "a list of public values gives a better prediction"
        )
        assert assumptions.count(line) == said
        assert output.condition == f"if cost is distributed as {'assumed' if guess is None else 'expected'}"
