"""Errors that are predicted: for the worst case of what nobody told, and as they come out where it is told.

The noise is drawn from seeded generators, so that nothing here changes from run to run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import dataset
from farthing.errors import InvalidValue
from farthing.statistics import constructors as st
from farthing.statistics.design import design_of
from farthing.statistics.measurements import Noise, Output
from farthing.statistics.public_facts import Facts

DRAWS = 3_000
TRUTHS: dict[Any, Any] = {st.mean: np.mean, st.variance: np.var, st.std: np.std}


def _released(
    statistic: Any, values: Any, bounds: Any, expected: dict[str, Any], epsilon: float
) -> tuple[Output, dict[str, Noise], np.ndarray]:
    """The output, its noises, and what many releases of it come to."""
    people = dataset(pyarrow.table({"x": pyarrow.array(values, from_pandas=True)}), schema={"x": bounds})
    design = design_of([statistic], people, {"rows": len(values), **expected})
    (output,) = design.outputs
    noises = {slot.name: Noise("laplace", epsilon) for slot in design.slots}
    exact = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    return output, noises, _estimates(output, noises, exact, np.random.default_rng(16), DRAWS)[:, 0]


def _estimates(output: Any, noises: dict[str, Noise], exact: Any, draw: np.random.Generator, number: int) -> np.ndarray:
    """The values of many releases, one in a row: cells of one large release, and the first as one of its own."""
    noisy = {}
    for slot in output.slots:
        stop = 1 - np.exp(-1 / slot.scale(noises[slot.name]))
        noise = draw.geometric(stop, (number, slot.cells)) - draw.geometric(stop, (number, slot.cells))
        noisy[slot.name] = np.asarray(exact[slot.name]).reshape(-1) + noise
    shared = output.shared
    places = np.arange(number)[:, None] * len(shared.rows) + shared.members
    members = np.where(shared.members < 0, -1, places).reshape(-1)
    large = replace(output, shared=replace(shared, rows=np.tile(shared.rows, number), members=members))
    found = large.estimate({name: own.reshape(-1) for name, own in noisy.items()}, noises)[0].reshape(number, -1)
    first = output.estimate({name: own[0] for name, own in noisy.items()}, noises)[0]
    assert found[0] == pytest.approx(first, rel=1e-12)
    return np.asarray(found)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("rows", [60, 3_000])
def test_a_share_is_no_worse_than_predicted_with_nothing_expected(share: float, rows: int) -> None:
    """True 0.2 of 3,000 rows: predicted were 0.0012 and delivered 0.0080."""
    flags = np.arange(rows) < share * rows
    output, noises, found = _released(st.mean("x"), flags, bool, {}, 0.25)
    errors = found - flags.mean()
    assert np.sqrt(np.mean(errors**2)) <= 1.05 * output.predicted(noises).standard_error
    assert np.mean(np.abs(errors) <= output.predicted(noises).error(0.95)) >= 0.94
    assert output.depends_on == "the true share and on how many values are missing"
    if rows == 3_000 and share == 0.5:  # the best case is one
        best = output.predicted_at_best(noises).standard_error
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(best, rel=0.08)


@pytest.mark.parametrize("kind", list(TRUTHS))
@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0, 8, 400),
        pytest.param(np.linspace(40, 60, 400), marks=pytest.mark.slow),
        pytest.param(np.linspace(90, 100, 400), marks=pytest.mark.slow),
        pytest.param(np.repeat([0.0, 100.0], 200), marks=pytest.mark.slow),
        pytest.param(np.full(400, 100.0), marks=pytest.mark.slow),
        np.where(np.arange(400) % 5 == 0, np.nan, 97.0),
    ],
    ids=["low", "middle", "high", "both ends", "flat", "a fifth missing"],
)
def test_moments_are_no_worse_than_predicted_with_nothing_expected(kind: Any, values: np.ndarray) -> None:
    truth = TRUTHS[kind](values[~np.isnan(values)])
    output, noises, found = _released(kind("x"), values, (0.0, 100.0), {}, 0.3)
    assert np.sqrt(np.mean((found - truth) ** 2)) <= 1.05 * output.predicted(noises).standard_error
    assert np.mean(np.abs(found - truth) <= output.predicted(noises).error(0.95)) >= 0.94


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(TRUTHS))
@pytest.mark.parametrize("rows", [30, 90, 3_000])
def test_few_rows_and_missing_values_are_as_predicted_when_they_are_told(kind: Any, rows: int) -> None:
    """A third of the rows have no value; of few rows the number is mostly noise."""
    values = np.random.default_rng(rows).normal(30, 10, rows).clip(0, 100)
    values[::3] = np.nan
    known = values[~np.isnan(values)]
    truth = TRUTHS[kind](known)
    pair = {"mean": float(known.mean()), "sd": float(known.std()), "missing": 1 / 3}
    listed = [None if np.isnan(value) else float(value) for value in values]
    distributions = []
    for told in (pair, listed):
        output, noises, found = _released(kind("x"), values, (0.0, 100.0), {"x": told}, 0.4)
        distributions.append(output.predicted(noises))
        assert output.depends_on == ""
    errors = found - truth
    assert distributions[0].standard_error == pytest.approx(distributions[1].standard_error, rel=1e-9)
    assert 0.92 <= np.sqrt(np.mean(errors**2)) / distributions[0].standard_error <= 1.08
    # What is cut off at a bound has one error in many cases: more than 95% may lie within it.
    assert 0.93 <= np.mean(np.abs(errors) <= distributions[0].error(0.95)) <= (0.97 if rows > 100 else 0.99)


def test_sizes_that_nobody_told_are_half_of_an_even_part() -> None:
    people = dataset(pyarrow.table({"x": [1.0], "sex": ["F"]}), schema={"x": (0.0, 9.0), "sex": ["F", "M"]})
    asked = [st.mean("x", by="sex")]
    expected = {"rows": 1_000_000, "x": (3.0, 1.0)}
    plain = design_of(asked, people, expected)
    even = design_of(asked, people, {**expected, "sex": {"F": 1, "M": 1}})
    noises = {slot.name: Noise("laplace", 0.5) for slot in plain.slots}
    worst, best = (design.outputs[0].predicted(noises).standard_error for design in (plain, even))
    assert worst == pytest.approx(2 * best, rel=1e-3)
    assert plain.outputs[0].predicted_at_best(noises).standard_error == pytest.approx(best, rel=1e-3)
    assert "how many rows there are" in plain.outputs[0].depends_on and even.outputs[0].depends_on == ""
    assert any("half of an even share" in text for text in plain.assumptions)
    for told in ({"count by sex": [900_000, 100_000]}, {"sex": ["F", "M"]}):
        assert design_of(asked, people, {**expected, **told}).outputs[0].depends_on == ""


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_rare_group_is_within_the_error_or_below_the_rows_that_its_line_names(share: float) -> None:
    """Of a flag that 2% have, means were 1.66 times further off than the one number that was shown."""
    draw, rows = np.random.default_rng(2), 6_000
    flags, values = draw.random(rows) < share, draw.normal(30, 10, rows).clip(0, 100)
    people = dataset(pyarrow.table({"x": values, "f": flags}), schema={"x": (0.0, 100.0), "f": bool})
    design = design_of([st.mean("x", by="f")], people, {"rows": rows})
    (output,) = design.outputs
    assert output.condition == "if every group has at least 1,125 rows with x"
    assert output.short_condition == "for groups of 1,125 rows or more"
    noises = {slot.name: Noise("laplace", 0.25) for slot in design.slots}
    exact = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    truth = np.array([values[~flags].mean(), values[flags].mean()])
    found = _estimates(output, noises, exact, draw, 400) - truth
    ratios = np.sqrt(np.mean(np.square(found), axis=0)) / output.predicted(noises).standard_errors
    sizes = np.array([rows - flags.sum(), flags.sum()])
    assert np.all((ratios <= 1.1) | (sizes < 1_125))
    assert (ratios[1] > 1.5) == (share == 0.02)  # it matters


@pytest.mark.parametrize(
    ("asked", "expected", "words"),
    [
        (st.mean("x"), {}, "if at least 750 rows have x"),
        (st.mean("x"), {"x": (3.0, 1.0)}, ""),
        (st.std("x", where="sex = 'F'"), {}, "if at least 187 rows meet the condition and have x"),
        (
            st.mean("x", by="sex"),
            {"sex": {"F": 1, "M": 3}},
            "if every group has at least 75% of the rows exp",
        ),
        (st.mean("x", by="sex"), {"sex": {"F": 1, "M": 3}, "x": (3.0, 1.0)}, ""),
        (st.cdf("x", bins=4), {}, "if at least 750 rows have x"),
        (st.cdf("x", bins=4, by="sex"), {}, "if every group has at least 187 rows with x"),
        (st.cdf("x", bins=4, by="sex"), {"sex": ["F", "M"], "x": (3.0, 1.0)}, ""),
        (st.sum("x", by="sex"), {}, ""),
        (st.count(by="sex"), {}, ""),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_for_how_many_rows_an_error_is_predicted_stands_in_its_line(asked: Any, expected: Any, words: str) -> None:
    people = dataset(pyarrow.table({"x": [1.0], "sex": ["F"]}), schema={"x": (0.0, 9.0), "sex": ["F", "M"]})
    (output,) = design_of([asked], people, {"rows": 1_000, **expected}).outputs
    assert output.condition.startswith(words) and bool(output.condition) == bool(words)
    assert bool(output.short_condition) == bool(words)
    if words:
        assert output.condition.removeprefix("if ") in output.rests_on


@pytest.mark.slow
def test_a_cdf_of_which_nothing_is_expected_is_predicted_for_the_worst_shares() -> None:
    people = dataset(pyarrow.table({"x": [1.0]}), schema={"x": (0.0, 100.0)})
    for bins in (8, 200):
        (output,) = design_of([st.cdf("x", bins=bins)], people, {"rows": 1_000}).outputs
        (slot,) = output.slots
        noises = {slot.name: Noise("laplace", 0.5)}
        worst = output.predicted(noises)
        assert output.depends_on and worst.standard_errors[-1] == 0
        assert output.predicted_at_best(noises).standard_error < worst.standard_error / 1.1
        for level in (2.0, 50.0, 98.0):
            told = {"rows": 1_000, "x": (level, 1.0)}
            (known,) = design_of([st.cdf("x", bins=bins)], people, told).outputs
            assert np.all(known.predicted(noises).standard_errors <= worst.standard_errors * (1 + 1e-9))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mean": 3}, "must have mean and sd"),
        ({"mean": 3, "sd": 1, "missing": 1.0}, "below 1"),
        ({"mean": 3, "sd": 1, "none": 0.5}, "may have missing"),
    ],
)
def test_what_is_missing_is_said_as_a_share(given: dict[str, float], words: str) -> None:
    people = dataset(pyarrow.table({"x": [1.0]}), schema={"x": (0.0, 9.0)})
    with pytest.raises(InvalidValue, match=words):
        design_of([st.mean("x")], people, {"x": given})


def test_categories_may_be_missing() -> None:
    people = dataset(pyarrow.table({"sex": ["F"]}), schema={"sex": ["F", "M"]})
    assert Facts(people, {"sex": {"F": 2, "M": 1, None: 1}}).present("sex") == 0.75
    assert Facts(people, {"sex": ["F", "M", None, "F"]}).present("sex") == 0.75
    (output,) = design_of([st.count(by="sex")], people, {"rows": 400, "sex": {"F": 2, "M": 1, None: 1}}).outputs
    assert output.expected.tolist() == [200.0, 100.0]  # type: ignore[attr-defined]
