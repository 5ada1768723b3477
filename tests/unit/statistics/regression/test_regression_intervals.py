"""Intervals of regressions: covered on good and bad designs, predicted, and told in words where they have no end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow
import pytest
from scipy.stats import binom

from farthing.data import dataset
from farthing.errors import InvalidValue
from farthing.statistics.constructors import linear_regression
from farthing.statistics.measurements import Noise
from farthing.statistics.public_facts import Facts
from farthing.statistics.regression.regression_intervals import NoisyLine
from farthing.statistics.regression.regression_outputs import RegressionOutput, outputs_of
from sources import TestSource

ROWS = 2_000


def columns(features: int, spread: float, alike: float, slope: float) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    own, common = generator.normal(size=(ROWS, features)), generator.normal(size=(ROWS, 1))
    x = np.clip(spread * (np.sqrt(1 - alike) * own + np.sqrt(alike) * common), -1, 1)
    y = np.clip(0.3 + slope * x.sum(axis=1) + 0.1 * generator.normal(size=ROWS), -1, 1)
    return {**{f"x{place}": x[:, place] for place in range(features)}, "y": y}


def made(table: dict[str, Any], features: list[str], schema: dict[str, Any] | None = None) -> Any:
    bounds = schema or dict.fromkeys(table, (-1.0, 1.0))
    data = dataset(pyarrow.table(table), schema=bounds, rows=len(table["y"]))
    expected = {name: list(values) for name, values in table.items()}
    slots, (output,), derived, _ = outputs_of([linear_regression("y", features)], Facts(data, expected))
    assert isinstance(output, RegressionOutput)
    sums = data.derive(**derived).exact({slot.name: slot.aggregate for slot in slots})
    return output, {name: np.asarray(numbers).reshape(-1) for name, numbers in sums.items()}


def truth_of(output: RegressionOutput, sums: Any) -> Any:
    entries = output.equations.entries
    gram, right = output.equations.filled([float(sums[e.slot.name][0]) * e.slot.step for e in entries])
    to_data, constant = output.equations.to_data()
    return to_data @ np.linalg.solve(gram, right) + constant


def releases(output: RegressionOutput, sums: Any, noise: Noise, number: int) -> tuple[dict[str, Noise], list[Any]]:
    source, noises = TestSource(1), {slot.name: noise for slot in output.slots}
    drawn = {
        slot.name: np.asarray(
            replace(slot, cells=number).mechanism(noise)._answer(np.repeat(sums[slot.name], number), source)
        )
        for slot in output.slots
    }
    return noises, [
        output.answer({name: numbers[[at]] for name, numbers in drawn.items()}, noises) for at in range(number)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "spread", "alike", "slope", "epsilon", "endless"),
    [
        pytest.param(1, 0.3, 0.0, 0.5, 0.2, 0.0, id="well-conditioned"),
        pytest.param(3, 0.3, 0.5, 0.3, 0.2, 0.0, id="three that go together"),
        pytest.param(1, 0.1, 0.0, 4.0, 0.2, 0.03, id="narrow and steep"),
        pytest.param(1, 0.05, 0.0, 5.0, 0.5, 0.25, id="hardly any variation"),
        pytest.param(2, 0.2, 0.97, 0.5, 0.1, 1.0, id="nearly one column"),
    ],
)
def test_intervals_hold_and_plans_predict_their_reach_and_whether_they_end(
    features: int, spread: float, alike: float, slope: float, epsilon: float, endless: float
) -> None:
    output, sums = made(columns(features, spread, alike, slope), [f"x{at}" for at in range(features)])
    truth, number = truth_of(output, sums), 150
    noises, answers = releases(output, sums, Noise("laplace", epsilon), number)
    held = np.sum([(one.lower <= truth) & (truth <= one.upper) for one in answers], axis=0)
    # 93% is what is promised of an interval that is exact to first order only.
    assert (number - held <= binom.isf(1e-6, number, 0.07)).all()
    open_ended = np.array([~np.isfinite(one.error()) for one in answers])
    share = open_ended.any(axis=1).mean()
    assert share == pytest.approx(endless, abs=0.13)
    assert output.endless_share(noises, ROWS) == pytest.approx(share, abs=0.13)
    assert bool(output.caution(noises)) == (endless > 0.05)
    distribution = output.predicted(noises)
    errors = np.sqrt(np.mean([(one.values - truth) ** 2 for one in answers], axis=0))
    if endless <= 0.5:
        assert errors == pytest.approx(distribution.standard_errors, rel=0.2)
        assert np.median([one.error() for one in answers], axis=0) == pytest.approx(distribution.errors(0.95), rel=0.3)
    for one, own in zip(answers, open_ended, strict=True):
        named = [label for label, without in zip(one.labels, own, strict=True) if without]
        assert one.note.startswith(f"the interval is unbounded for {' and '.join(named)}: " if named else "")
        assert bool(one.note) == bool(named)


@pytest.mark.slow
def test_where_the_slope_of_one_number_has_no_end_no_coefficient_has() -> None:
    """With bounds 1,000 times too wide the others had ends, and held the truth in three of four releases."""
    table = columns(2, 0.3, 0.8, 0.5)
    output, sums = made({**table, "x1": table["x1"] / 1_000}, ["x0", "x1"])
    truth = truth_of(output, sums)
    _, answers = releases(output, sums, Noise("laplace", 0.2), 200)
    ends = np.array([np.isfinite(np.asarray(answer.upper) - np.asarray(answer.lower)) for answer in answers])
    assert (ends.all(axis=1) | ~ends.any(axis=1)).all() and 0 < ends.all(axis=1).mean() < 0.2
    held = np.mean([(answer.lower <= truth) & (truth <= answer.upper) for answer in answers], axis=0)
    assert (held > 0.88).all(), held


def test_one_coefficient_is_the_ratio_of_two_noisy_numbers_as_fieller_had_it() -> None:
    """b'/A' with |b' - t A'| <= k s sqrt(1 + t^2): a quadratic equation in t."""
    a, b, deviation, k = 40.0, 90.0, 6.0, 2.0
    line = NoisyLine(
        np.array([[a]]), np.array([b]), np.array([[[1.0]], [[0.0]]]), np.array([[0.0], [1.0]]),
        np.full(2, deviation), np.eye(1), np.zeros(1),
    )  # fmt: skip
    theta = b / a
    first = deviation * np.sqrt(1 + theta**2) / a
    below, above = line.reaches(np.array([k * first]))
    limit = (k * deviation) ** 2
    roots = np.roots([a**2 - limit, -2 * a * b, b**2 - limit])
    assert theta - below == pytest.approx(roots.min(), rel=0.02)
    assert theta + above == pytest.approx(roots.max(), rel=0.02)
    assert not line.endless(k).any()
    weak = replace(line, gram=np.array([[1.9 * deviation]]))
    assert weak.endless(k).all() and np.isinf(weak.reaches(k * weak.deviations_of_line)).any()


@pytest.mark.slow
def test_noise_that_is_ten_percent_wider_is_seen_in_the_reach() -> None:
    output, sums = made(columns(2, 0.3, 0.2, 0.3), ["x0", "x1"])
    noises = {slot.name: Noise("laplace", 0.5) for slot in output.slots}
    wider = {slot.name: Noise("laplace", 0.5 / 1.1) for slot in output.slots}
    one, other = (output.answer(sums, own).error() for own in (noises, wider))
    assert other / one == pytest.approx(np.full(3, 1.1), abs=0.03)


@pytest.mark.slow
def test_categories_are_flags_compared_with_the_first() -> None:
    generator = np.random.default_rng(3)
    group = generator.choice(["a", "it's", "c d"], ROWS, p=[0.5, 0.3, 0.2])
    x = generator.uniform(0, 10, ROWS)
    y = np.clip(2 * x + 5 * (group == "it's") - 3 * (group == "c d") + generator.normal(size=ROWS), -10, 40)
    table = {"g": group.tolist(), "x": x, "y": y}
    schema = {"g": ["a", "it's", "c d"], "x": (0.0, 10.0), "y": (-10.0, 40.0)}
    output, sums = made(table, ["g", "x"], schema)
    assert output.labels == ("intercept", "g = it's", "g = c d", "x")
    design = np.column_stack([np.ones(ROWS), group == "it's", group == "c d", x])
    truth = np.linalg.lstsq(design, y, rcond=None)[0]
    assert truth_of(output, sums) == pytest.approx(truth, abs=1e-3)
    # Squares of flags, and products of flags of one column, follow from other sums and are not measured.
    assert len(output.slots) == 11
    assert np.linalg.eigvalsh(output.gram)[0] > 0
    scaled = np.column_stack([np.ones(ROWS), 2 * design[:, 1:3] - 1, x / 5 - 1])
    assert output.gram == pytest.approx(scaled.T @ scaled / ROWS, abs=1e-6)
    _, answers = releases(output, sums, Noise("gaussian", 1.0), 1)
    wide = answers[0].at(1 - 1e-10)  # so that one release is enough, whatever the seed
    assert ((wide.lower <= truth) & (truth <= wide.upper)).all()


def test_rows_whose_category_is_not_listed_are_left_out() -> None:
    table = {"g": ["a", "b", "z", None, "b", "a"], "y": [0.0, 1.0, -1.0, 1.0, 0.5, 0.25]}
    output, sums = made(table, ["g"], {"g": ["a", "b"], "y": (-1.0, 1.0)})
    assert truth_of(output, sums) == pytest.approx([0.125, 0.625], abs=1e-5)


def test_a_category_cannot_be_explained_and_one_alone_explains_nothing() -> None:
    data = dataset(
        pyarrow.table({"g": ["a"], "h": ["a"], "y": [1.0]}),
        schema={"g": ["a", "b"], "h": ["a"], "y": (0.0, 1.0)},
    )
    with pytest.raises(InvalidValue, match=r"^column='g'"):
        outputs_of([linear_regression("g", ["y"])], Facts(data))
    with pytest.raises(InvalidValue, match=r"two categories or more"):
        outputs_of([linear_regression("y", ["h"])], Facts(data))


def test_without_expectations_categories_are_taken_to_be_alike_and_exclude_each_other() -> None:
    data = dataset(pyarrow.table({"g": ["a"], "y": [1.0]}), schema={"g": ["a", "b", "c"], "y": (0.0, 1.0)})
    _, (output,), _, _ = outputs_of([linear_regression("y", ["g"])], Facts(data))
    assert isinstance(output, RegressionOutput)
    flags = np.array([[1, -1, -1], [1, 1, -1], [1, -1, 1]])
    assert output.gram == pytest.approx(flags.T @ flags / 3, abs=1e-6)
    assert output.depends_on == "how far g varies"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "categories", "values", "blamed"),
    [
        ("region", ["n", "e", "s", "w"], ["n", "e", "s"], "region = w"),
        ("region", ["n", "e", "s", "w"], ["e", "s", "w"], "region = n"),  # all others are compared with it
        ("smoker", bool, [True], "smoker = false"),
        ("smoker", bool, [False], "smoker = true"),
    ],
)
def test_the_category_that_no_row_has_is_named_from_its_noisy_count(
    column: str, categories: Any, values: list[Any], blamed: str
) -> None:
    generator = np.random.default_rng(4)
    table = {
        "x": generator.uniform(-1, 1, ROWS),
        column: generator.choice(values, ROWS),
        "y": generator.uniform(-1, 1, ROWS),
    }
    schema = {"x": (-1.0, 1.0), "y": (-1.0, 1.0), column: categories}
    data = dataset(pyarrow.table(table), schema=schema, rows=ROWS)
    slots, (output,), derived, _ = outputs_of([linear_regression("y", ["x", column])], Facts(data, {}))
    assert isinstance(output, RegressionOutput)
    exact = data.derive(**derived).exact({slot.name: slot.aggregate for slot in slots})
    sums = {name: np.asarray(numbers).reshape(-1) for name, numbers in exact.items()}
    _, answers = releases(output, sums, Noise("laplace", 0.5), 12)
    notes = [answer.note for answer in answers if answer.note]
    assert len(notes) > 6
    for note in notes:
        _, _, why = note.partition(": hardly any row has ")
        assert why.startswith(f"{blamed} (") and why.endswith("or merge it with another")
        assert why.count(" = ") == 1  # and no other


@pytest.mark.slow
def test_where_every_category_has_rows_it_is_the_rows_that_vary_too_little() -> None:
    output, sums = made(columns(2, 0.2, 0.999, 0.5), ["x0", "x1"])
    noises = {slot.name: Noise("laplace", 0.1) for slot in output.slots}
    assert "the rows vary too little" in output.answer(sums, noises).note
