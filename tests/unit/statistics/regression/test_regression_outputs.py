"""Linear regression from noisy normal equations: the line, its errors before and after, and what noise can do to it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, dataset
from farthing.errors import InvalidValue
from farthing.statistics.constructors import linear_regression
from farthing.statistics.measurements import Measurements, Noise
from farthing.statistics.public_facts import Facts
from farthing.statistics.regression.regression_outputs import RegressionOutput, outputs_of
from farthing.statistics.statistic import Statistic
from sources import TestSource

pytestmark = pytest.mark.slow

ROWS = 8_000
SCHEMA = {
    "age": (18, 90),
    "school": (0.0, 25.0),
    "smoker": bool,
    "income": (0.0, 150_000.0),
    "sex": ["F", "M"],
}
ASKED = linear_regression("income", ["age", "school", "smoker"])


def columns() -> dict[str, Any]:
    generator = np.random.default_rng(8)
    age, smoker = generator.integers(18, 91, ROWS), generator.random(ROWS) < 0.3
    school = np.clip(generator.normal(12.0, 3.0, ROWS), 0.0, 25.0)
    noise = generator.normal(0.0, 8_000.0, ROWS)
    income = np.clip(10_000 + 300 * age + 1_500 * school - 5_000 * smoker + noise, 0.0, 150_000.0)
    return {
        "age": age,
        "school": school,
        "smoker": smoker,
        "income": income,
        "sex": generator.choice(["F", "M"], ROWS),
    }


PEOPLE = columns()
PUBLIC = {name: list(map(float, PEOPLE[name])) for name in ("age", "school", "smoker", "income")}


def people(**options: Any) -> Dataset:
    return dataset(pyarrow.table(PEOPLE), **{"schema": SCHEMA, "rows": ROWS, **options})


def made(statistic: Statistic = ASKED, data: Dataset | None = None, **expected: Any) -> Any:
    slots, (output,), derived, assumptions = outputs_of([statistic], Facts(data or people(), expected))
    assert isinstance(output, RegressionOutput)
    return slots, output, derived, assumptions


def exact_sums(slots: Any, derived: Any, data: Dataset) -> dict[str, Any]:
    found = data.derive(**derived).exact({slot.name: slot.aggregate for slot in slots})
    return {name: np.atleast_1d(numbers) for name, numbers in found.items()}


def fitted(rows: Any = slice(None), names: tuple[str, ...] = ("age", "school", "smoker")) -> np.ndarray[Any, Any]:
    design = np.column_stack([np.ones(len(PEOPLE["age"][rows])), *(PEOPLE[name][rows] for name in names)])
    return np.linalg.lstsq(design, PEOPLE["income"][rows], rcond=None)[0]


def test_without_noise_the_line_is_that_of_least_squares() -> None:
    slots, output, derived, _ = made()
    noises = {slot.name: Noise("gaussian", 0.01) for slot in slots}
    answer = output.answer(exact_sums(slots, derived, people()), noises)
    assert answer.labels == ("intercept", "age", "school", "smoker")
    assert np.asarray(answer.values) == pytest.approx(fitted(), rel=1e-4)


def test_groups_and_conditions_have_lines_of_their_own() -> None:
    asked = linear_regression("income", "age", by="sex", where="school > 10")
    slots, output, derived, _ = made(asked)
    noises = {slot.name: Noise("gaussian", 0.01) for slot in slots}
    answer = output.answer(exact_sums(slots, derived, people()), noises)
    assert answer.labels == (("F", "intercept"), ("F", "age"), ("M", "intercept"), ("M", "age"))
    for sex in "FM":
        rows = (PEOPLE["sex"] == sex) & (PEOPLE["school"] > 10)
        found = [answer[sex, term].values for term in ("intercept", "age")]
        assert np.array(found) == pytest.approx(fitted(rows, ("age",)), rel=1e-4)


def test_rows_with_a_missing_column_are_left_out_of_every_sum() -> None:
    table = {"x": [0.0, 1.0, 2.0, 3.0, None], "y": [1.0, 3.0, 5.0, None, 9.0]}
    data = dataset(pyarrow.table(table), schema={"x": (0.0, 4.0), "y": (0.0, 10.0)})
    slots, output, derived, _ = made(linear_regression("y", "x"), data)
    sums = exact_sums(slots, derived, data)
    assert sums["number of regression of y on x"].tolist() == [3]
    noises = {slot.name: Noise("gaussian", 0.01) for slot in slots}
    assert np.asarray(output.answer(sums, noises).values) == pytest.approx([1.0, 2.0], abs=1e-3)


def test_one_row_moves_every_sum_by_one_at_most_and_squares_by_a_half() -> None:
    slots, _, _, _ = made()
    assert len(slots) == 13  # the square of a flag is 1
    moves = {slot.name: slot.sensitivity.l1 * slot.step for slot in slots}
    squares = [name for name in moves if "square of" in name]
    assert {moves.pop(name) for name in squares} == {0.5}
    assert set(moves.values()) == {1.0}


def test_the_same_line_under_two_names_is_measured_once() -> None:
    again = linear_regression("income", ["age"], name="again")
    slots, outputs, _, _ = outputs_of([linear_regression("income", ["age"]), again], Facts(people()))
    assert [len(slots), len(outputs)] == [5, 2]


def test_the_error_is_exactly_what_the_noise_makes_of_it() -> None:
    """theta' - theta = A'^-1 (db - dA theta), with the truth in the weights."""
    slots, output, derived, _ = made()
    sums = exact_sums(slots, derived, people())
    generator = np.random.default_rng(4)
    noise = {slot.name: generator.integers(-(10**7), 10**7, 1) for slot in slots}
    noise["number of regression of income on age and school and smoker"] //= 10**6
    noisy = {name: sums[name] + noise[name] for name in sums}
    steps = [entry.slot.step for entry in output.equations.entries]
    names = [entry.slot.name for entry in output.equations.entries]

    def solved(numbers: dict[str, Any]) -> tuple[Any, Any, Any]:
        gram, right = output.equations.filled([float(numbers[n][0]) * s for n, s in zip(names, steps, strict=True)])
        theta = np.linalg.solve(gram, right)
        matrix, constant = output.equations.to_data()
        return gram, theta, matrix @ theta + constant

    _, theta, truth = solved(sums)
    gram, _, found = solved(noisy)
    noises = {slot.name: Noise("laplace", 1.0) for slot in slots}
    weights = output.line(gram, np.zeros(4), noises).weights(theta)
    moved = weights @ np.array([float(noise[name][0]) for name in names])
    assert found - truth == pytest.approx(moved, rel=1e-6)


def test_equations_that_drown_in_noise_get_an_answer_and_no_promise() -> None:
    slots, output, derived, _ = made()
    sums = exact_sums(slots, derived, people())
    noises = {slot.name: Noise("laplace", 1e-4) for slot in slots}
    answer = output.answer(sums, noises)
    assert np.isfinite(answer.values).all()
    assert np.isinf(answer.lower).all()
    assert np.isinf(answer.upper).all()
    assert answer.to_dict()["lower"] == [None] * 4
    nothing = output.answer({slot.name: np.array([0]) for slot in slots}, noises)
    assert np.isfinite(nothing.values).all()


def test_sampling_widens_the_intervals() -> None:
    widths = []
    for asked in (ASKED, replace(ASKED, for_population=True)):
        slots, output, derived, _ = made(asked)
        noises = {slot.name: Noise("gaussian", 1.0) for slot in slots}
        answer = output.answer(exact_sums(slots, derived, people()), noises)
        widths.append(np.asarray(answer.upper) - np.asarray(answer.lower))
    design = np.column_stack([np.ones(ROWS), PEOPLE["age"], PEOPLE["school"], PEOPLE["smoker"]])
    residuals = PEOPLE["income"] - design @ fitted()
    usual = 2 * 1.96 * np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * residuals.var())
    assert np.all(widths[1] > np.hypot(widths[0], usual))


def test_what_is_expected_may_be_a_public_table_or_the_line_itself() -> None:
    spread = {"age": (54.0, 21.0), "school": (12.0, 3.0), "smoker": {True: 0.3, False: 0.7}}
    _, plain, _, said = made(**spread)
    assert [text.split(" are ")[0] for text in said] == [
        f"the features of {ASKED.name!r}",
        f"errors of {ASKED.name!r}",
        "a quarter of the rows",
    ]
    _, told, _, nothing = made(**PUBLIC)
    assert nothing == []
    line = list(map(float, fitted()))
    _, given, _, _ = made(**spread, **{ASKED.name: line})
    noises = {slot.name: Noise("gaussian", 3.0) for slot in plain.slots}
    errors = [output.predicted(noises).standard_errors for output in (plain, told, given)]
    assert np.all(errors[0] > 1.1 * errors[2])  # the steepest line, and a quarter of the rows without income
    assert errors[1] == pytest.approx(errors[2] * 0.75, rel=0.15)
    for bad in ([1.0], [1.0, 2.0, 3.0, math.nan], "line"):
        with pytest.raises(InvalidValue, match=r"4 numbers, the intercept first"):
            made(**{ASKED.name: bad})


def test_rows_that_lack_a_column_are_expected_in_no_sum() -> None:
    ages = [value if place % 4 else None for place, value in enumerate(PUBLIC["age"])]
    lacking = {**PUBLIC, "age": ages}
    kept = {name: [v for place, v in enumerate(values) if place % 4] for name, values in PUBLIC.items()}
    _, some, _, nothing = made(**lacking)
    _, complete, _, _ = made(**kept)
    assert nothing == []
    assert some.rows.tolist() == [0.75 * ROWS]
    np.testing.assert_allclose(some.gram, complete.gram)
    np.testing.assert_allclose(some.theta, complete.theta)
    _, shares, _, _ = made(age={"mean": 50.0, "sd": 20.0, "missing": 0.2}, school={"mean": 12, "sd": 3, "missing": 0.5})
    # Of smoker and income nothing is expected: a quarter of the rows may lack each.
    np.testing.assert_allclose(shares.rows, [0.4 * 0.75**2 * ROWS])


def test_every_sum_matters_for_some_coefficient() -> None:
    """Otherwise a plan would leave it unmeasured, and the answer would be made of noise."""
    _, output, _, _ = made()
    for name, weights in output.coefficients.items():
        assert float(weights.max()) > 0, name


def test_columns_that_are_no_numbers_and_too_many_features_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"^column='sex'"):
        made(linear_regression("sex", ["income"]))
    many = [f"x{k}" for k in range(21)]
    table = pyarrow.table({name: [0.0] for name in ["y", *many]})
    data = dataset(table, schema=dict.fromkeys(["y", *many], (0.0, 1.0)))
    with pytest.raises(InvalidValue, match=r"must be at most 20"):
        made(linear_regression("y", many), data)


def test_one_pass_on_an_engine_gives_the_line() -> None:
    data = people()
    slots, output, derived, _ = made()
    noises = {slot.name: Noise("gaussian", 2.0) for slot in slots}
    measured = Measurements(tuple(derived.items()), tuple(slots), noises).run(data)
    answer = output.answer(measured, noises)
    assert np.all(np.abs(answer.values - fitted()) <= 4 * np.asarray(answer.standard_errors))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Noise("laplace", 0.3), Noise("gaussian", 4.0)], ids=lambda noise: noise.kind)
def test_predicted_errors_and_intervals_come_true(noise: Noise) -> None:
    slots, output, derived, _ = made(**PUBLIC)
    sums = exact_sums(slots, derived, people())
    noises = {slot.name: noise for slot in slots}
    source, releases, truth = TestSource(2), 600, fitted()
    drawn = {
        slot.name: np.asarray(
            replace(slot, cells=releases).mechanism(noise)._answer(np.repeat(sums[slot.name], releases), source)
        )
        for slot in slots
    }
    errors, inside = [], []
    for release in range(releases):
        answer = output.answer({name: numbers[[release]] for name, numbers in drawn.items()}, noises)
        errors.append(answer.values - truth)
        inside.append((answer.lower <= truth) & (truth <= answer.upper))
    distribution = output.predicted(noises)
    ratios = np.sqrt(np.mean(np.square(errors), axis=0)) / distribution.standard_errors
    shares = np.mean(np.abs(errors) <= distribution.errors(0.95), axis=0)
    assert np.all((ratios > 0.9) & (ratios < 1.1))
    assert np.all((shares >= 0.93) & (shares <= 0.975))
    assert np.all((np.mean(inside, axis=0) >= 0.93) & (np.mean(inside, axis=0) <= 0.975))


def test_regressions_whose_long_conditions_begin_alike_are_measured_apart() -> None:
    many = "age in (" + ", ".join(map(str, range(18, 90))) + ")"
    asked = [
        linear_regression("income", ["school"], where=f"{many} and {smoking}", name=smoking)
        for smoking in ("smoker", "not smoker")
    ]
    slots, outputs, _, _ = outputs_of(asked, Facts(people()))
    assert len(slots) == len({slot.name for slot in slots}) == 10
    assert {slot.name for slot in outputs[0].slots}.isdisjoint(slot.name for slot in outputs[1].slots)


def test_columns_of_many_words_do_not_make_two_regressions_one() -> None:
    names = ("x", "a", "a and b", "b and c", "c")
    odd = dataset(pyarrow.table({name: [1.0] for name in names}), schema=dict.fromkeys(names, (0.0, 9.0)))
    asked = [
        linear_regression("x", ["a and b", "c"], name="1"),
        linear_regression("x", ["a", "b and c"], name="2"),
    ]
    slots, outputs, _, _ = outputs_of(asked, Facts(odd))
    assert {slot.name for slot in slots} == {slot.name for output in outputs for slot in output.slots}
    assert len(slots) == 2 * len(outputs[0].slots)
