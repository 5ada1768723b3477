"""Sums, means, variances and standard deviations: what they share, what is predicted, and whether it comes true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, Integers, Reals, dataset
from farthing.data.expressions import read
from farthing.data.schema import Categories, Domain, Flags, Schema, read_domain
from farthing.errors import InvalidValue
from farthing.inference import Answer
from farthing.statistics.constructors import mean, std, sum, variance
from farthing.statistics.measurements import Measurements, Noise, Output, Slot
from farthing.statistics.moments import outputs_of
from farthing.statistics.moments.mean_outputs import MomentOutput
from farthing.statistics.moments.moment_measurements import Centred
from farthing.statistics.public_facts import DerivedColumns, Facts
from farthing.statistics.statistic import Statistic
from sources import TestSource

ROWS = 5_000
SCHEMA = {"age": (18, 90), "bmi": (10.0, 60.0), "smoker": bool, "sex": ["F", "M"], "debt": (-100.0, 20.0)}
EXPECTED = {
    "age": (54.0, 20.8),
    "bmi": (27.0, 5.0),
    "smoker": {True: 0.3, False: 0.7},
    "sex": {"F": 1, "M": 1},
}


def columns() -> dict[str, Any]:
    generator = np.random.default_rng(3)
    return {
        "age": generator.integers(18, 91, ROWS),
        "bmi": np.clip(generator.normal(27.0, 5.0, ROWS), 10.0, 60.0),
        "smoker": generator.random(ROWS) < 0.3,
        "sex": generator.choice(["F", "M"], ROWS),
        "debt": generator.uniform(-100.0, 20.0, ROWS),
    }


PEOPLE = columns()


def people(**options: Any) -> Dataset:
    return dataset(pyarrow.table(PEOPLE), **{"schema": SCHEMA, "rows": ROWS, **options})


def made(
    statistics: Sequence[Statistic], data: Dataset | None = None, **expected: Any
) -> tuple[list[Slot], list[Output], dict[str, Any]]:
    slots, outputs, derived, _ = outputs_of(statistics, Facts(data or people(), {**EXPECTED, **expected}))
    return slots, outputs, derived


def noiseless(statistics: Sequence[Statistic], data: Dataset) -> list[Answer]:
    """Answers from exact sums, with a little noise in the account alone."""
    slots, outputs, derived = made(statistics, data)
    prepared = data.derive(**derived)
    exact = prepared.exact({slot.name: slot.aggregate for slot in slots})
    measured = {slot.name: slot.merged(exact[slot.name]) for slot in slots}
    noises = {slot.name: Noise("laplace", 40.0) for slot in slots}
    return [output.answer(measured, noises) for output in outputs]


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Integers(0, 99), [0, 17, 99]),
        (Integers(-7, 10), [-7, 0, 10]),
        (Integers(-7, 1_000_000), [-7, 5, 1_000_000]),
        (Integers(0, 2**50), [0, 2**49 + 1, 2**50]),
        (Reals(-5.0, 3.0), [-5.0, -1.0, 0.1, 3.0]),
        (Reals(0.0, 1e-6), [0.0, 3.3e-7, 1e-6]),
        (Reals(-1e15, 9e15), [-1e15, 1.0, 9e15]),
        (Flags(), [False, True]),
    ],
)
def test_steps_are_the_column_its_centre_and_its_square(domain: Domain, values: list[Any]) -> None:
    schema = Schema({'x "y"': domain})
    column = Centred.of('x "y"', domain)
    half = column.half_width
    for stepped, formula in [
        (column.plain, lambda x: x),
        (column.first, lambda x: x - column.middle),
        (column.second, lambda x: (x - column.middle) ** 2 - half**2 / 2),
    ]:
        text, bounds = stepped.derived
        expression = read(text, schema, read_domain("stepped", bounds))
        for value in values:
            found = expression.value({'x "y"': value})
            assert isinstance(found, int)
            assert abs(found) <= stepped.bound
            assert found * stepped.step == pytest.approx(float(formula(value)), abs=0.51 * stepped.step)
        assert expression.value({'x "y"': None}) is None
    assert column.first.bound * column.first.step == pytest.approx(half, rel=1e-5)
    assert column.second.bound * column.second.step == pytest.approx(half**2 / 2, rel=1e-5)


@pytest.mark.parametrize(
    "domain", [Integers(0, 99), Integers(-7, 1_000_000), Reals(-5.0, 3.0), Reals(-1e15, 9e15), Flags()]
)
def test_shares_are_a_soft_partition_of_every_value(domain: Any) -> None:
    """Also where they are missing, infinite, not a number or out of bounds: never below 0, never above the total."""
    schema, column = Schema({"x": domain}), Centred.of("x", domain)
    low, high = (0, 1) if isinstance(domain, Flags) else (domain.lower, domain.upper)
    inside = [True, False] if isinstance(domain, Flags) else [low + (high - low) * k // 97 for k in range(98)]
    odd = [] if isinstance(domain, Flags) else [low - 1, high + 1, 2**50, -(2**50)]
    odd += [float("nan"), float("inf"), float("-inf"), 1e300] if isinstance(domain, Reals) else []
    for shares, functions in [
        (column.halves, [lambda x: x]),
        (column.thirds, [lambda x: x**2, lambda x: (1 - x) ** 2]),
    ]:
        expressions = [read(text, schema, read_domain("share", bounds)) for text, bounds in shares.derived]
        for value in [*inside, *odd]:
            numbers = [expression.value({"x": value}) for expression in expressions]
            assert all(
                number is None or (isinstance(number, int) and 0 <= number <= shares.total) for number in numbers
            )
            if value in inside:
                x = (float(value) - low) / (high - low)
                for number, function in zip(numbers, functions, strict=False):
                    assert number / shares.total == pytest.approx(function(x), abs=1e-6)
                assert shares.total - np.sum(numbers) >= 0
        assert [expression.value({"x": None}) for expression in expressions] == [None] * len(expressions)


@pytest.mark.parametrize("domain", [Categories(("a",)), Integers(3, 3), Reals(1.0, 1.0), Integers(0, 2**60)])
def test_columns_that_cannot_be_added_up_are_refused(domain: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^column='x'"):
        Centred.of("x", domain)


def test_derived_names_are_short_and_taken_by_nobody() -> None:
    schema = Schema.read({"moment_1": (0, 1), "MOMENT_2": (0, 1)})
    derived = DerivedColumns(schema, "moment")
    assert [derived.named((text, (0, 1))) for text in ("1", "2", "1")] == ["moment_3", "moment_4", "moment_3"]


def test_a_column_is_put_into_steps_once_however_many_conditions_look_at_it() -> None:
    slots, _, derived = made([mean("bmi", where=f"age > {years}") for years in (20, 30, 40)])
    assert [len(slots), len(derived)] == [3, 1]


def test_statistics_of_one_column_share_their_sums() -> None:
    slots, _, _ = made([mean("bmi"), variance("bmi"), std("bmi"), sum("bmi")])
    assert [slot.name for slot in slots] == ["thirds of bmi"]
    assert [slot.sensitivity.l1 * slot.step for slot in slots] == [1.0]
    apart, _, _ = made([mean("bmi"), mean("bmi", where="age > 40"), mean("bmi", by="smoker"), mean("age")])
    names = ["halves of bmi by smoker", "halves of bmi where age > 40", "number of age"]
    assert [slot.name for slot in apart] == [*names, "centred sum of age"]  # age is expected in the middle


@pytest.mark.slow
def test_coarse_groups_are_sums_of_fine_ones_where_neither_loses() -> None:
    """Two shares halve the scale; three groups, with that of rows without one, have three times the variance."""
    sexes = np.where(np.arange(ROWS) % 10 == 0, None, PEOPLE["sex"])
    table = pyarrow.table({**PEOPLE, "sex": pyarrow.array(sexes.tolist()), "town": ["a"] * ROWS})
    data = dataset(table, schema={**SCHEMA, "town": list("abcdefgh")}, rows=ROWS)
    asked = [variance("bmi"), mean("bmi", by="sex"), sum("bmi"), mean("bmi", by=["smoker", "sex"])]
    (slot,), outputs, _ = made([asked[0], asked[1]], data)
    assert (slot.name, slot.cells) == ("thirds of bmi by sex", 12)
    assert [output.shared.counts.tolist() for output in outputs] == [[3], [1, 1]]  # type: ignore[attr-defined]
    alone = [made([one], data)[1][0] for one in asked[:2]]
    for output, own in zip(outputs, alone, strict=True):
        (before,), (after,) = own.coefficients.values(), output.coefficients.values()
        assert np.all(after / 4 <= before * (1 + 1e-9))  # with two shares
        (even,) = output.alone.values()
        assert even == pytest.approx(before, rel=1e-9)
    for answer, statistic in zip(noiseless(asked, data), asked, strict=True):
        own = noiseless([statistic], data)[0]
        assert answer.labels == own.labels and np.asarray(answer.values) == pytest.approx(own.values, rel=1e-5)
    slots, _, _ = made([mean("bmi"), mean("bmi", by="town")], data)  # nine groups and two shares
    assert [slot.name for slot in slots] == ["halves of bmi", "halves of bmi by town"]
    slots, _, _ = made([mean("bmi"), mean("bmi", by="sex", where="age > 40")], data)
    assert len(slots) == 2
    many, _, _ = made([mean("bmi", by=["sex", "smoker"]), mean("bmi", by=["smoker", "sex"], name="turned")], data)
    assert len(many) == 1


def test_a_sum_alone_is_measured_as_it_is() -> None:
    (slot,), (output,), _ = made([sum("age")])
    assert (slot.name, slot.sensitivity.l1, slot.step) == ("sum of age", 90, 1.0)
    assert dict(output.coefficients) == {"sum of age": np.array([1.0])}


def test_only_laplace_noise_is_offered_where_delta_is_zero() -> None:
    slots, _, _, _ = outputs_of([mean("bmi")], Facts(people(), pure=True))
    assert {slot.kinds for slot in slots} == {("laplace",)}


def test_a_unit_with_many_rows_moves_everything_more() -> None:
    table = pyarrow.table({"person": [1, 1, 2], "bmi": [20.0, 21.0, 22.0]})
    data = dataset(table, unit="person", max_rows=4, schema={"bmi": (10.0, 60.0)})
    slots, _, _, _ = outputs_of([mean("bmi")], Facts(data))
    assert [slot.sensitivity.l1 * slot.step for slot in slots] == [4.0]


def test_rows_that_are_replaced_need_no_count_when_their_number_is_public() -> None:
    data = people(neighbours="replace")
    slots, _, _, assumptions = outputs_of([mean("bmi"), sum("bmi")], Facts(data))
    assert [slot.name for slot in slots] == ["centred sum of bmi"]
    assert slots[0].sensitivity.l1 * slots[0].step == 50.0
    assert any("every row has bmi" in text for text in assumptions)
    truth = PEOPLE["bmi"].mean()
    assert float(noiseless([mean("bmi")], data)[0].values) == pytest.approx(truth, abs=1e-5)
    (with_condition,), _, _ = made([mean("bmi", where="age > 40")], data)
    assert with_condition.name == "halves of bmi where age > 40"


@pytest.mark.slow
def test_without_noise_the_answers_are_the_truth() -> None:
    old = PEOPLE["age"] >= 40
    asked = [
        sum("age"), mean("age"), variance("age"), std("age"), mean("smoker"), variance("smoker"), sum("debt"),
        sum("bmi", where="age >= 40"), mean("bmi", where="age >= 40"), std("bmi", where="age >= 40"),
    ]  # fmt: skip
    age, bmi, smoker = PEOPLE["age"], PEOPLE["bmi"][old], PEOPLE["smoker"]
    truths = [
        age.sum(), age.mean(), age.var(), age.std(), smoker.mean(), smoker.var(), PEOPLE["debt"].sum(),
        bmi.sum(), bmi.mean(), bmi.std(),
    ]  # fmt: skip
    for answer, truth in zip(noiseless(asked, people()), truths, strict=True):
        assert float(answer.values) == pytest.approx(float(truth), rel=1e-6), answer.name


def test_groups_have_their_labels_and_their_own_numbers() -> None:
    (answer,) = noiseless([mean("bmi", by="sex")], people())
    assert answer.labels == ("F", "M")
    for sex in "FM":
        assert float(answer[sex].values) == pytest.approx(PEOPLE["bmi"][PEOPLE["sex"] == sex].mean(), rel=1e-6)


def test_missing_values_are_left_out() -> None:
    data = dataset(pyarrow.table({"x": [1.0, None, 4.0, float("nan")]}), schema={"x": (0.0, 8.0)})
    found = noiseless([sum("x"), mean("x"), variance("x")], data)
    assert [round(float(answer.values), 4) for answer in found] == [5.0, 2.5, 2.25]


def test_a_mean_of_nothing_is_no_secret_and_no_error() -> None:
    _, outputs, _ = made([mean("bmi"), variance("bmi"), std("bmi")])
    slots = outputs[1].slots
    noises = {slot.name: Noise("laplace", 0.1) for slot in slots}
    for number in (-20, 0, 1):
        measured = {slot.name: np.full(slot.cells, number) for slot in slots}
        whole = outputs[0].answer(measured, noises)
        assert (whole.lower, whole.upper) == (10.0, 60.0)
        assert whole.note == "the interval is as wide as the bounds: there are too few rows for this epsilon"
        assert 10.0 <= float(whole.values) <= 60.0
        assert 0 <= float(outputs[1].answer(measured, noises).values) <= 25.0**2


def test_a_note_says_how_many_groups_have_no_more_than_their_bounds() -> None:
    _, (output,), _ = made([mean("bmi", by="sex")])
    noises = {slot.name: Noise("laplace", 0.1) for slot in output.slots}
    (slot,) = output.slots
    steps = round(1 / slot.step)  # of one row
    few, many = (
        output.answer({slot.name: np.array([[2_500, 2_500, 0], [n / 2, n / 2, 0], [0, 0, 0]]) * steps}, noises)
        for n in (1, 4_000)
    )
    assert few.note == (
        "1 of 2 intervals is as wide as the bounds: there are too few rows for this epsilon, "
        "or the categories of sex do not match the file: farthing check"
    )
    assert few.lower[1] == 10.0 and few.upper[1] == 60.0 and many.note == ""


def test_a_note_says_where_the_error_of_the_mean_makes_an_interval_hold_more_often() -> None:
    data = people()
    (slot,), outputs, derived = made([variance("bmi"), std("bmi")], data)
    exact = slot.merged(data.derive(**derived).exact({slot.name: slot.aggregate})[slot.name])
    noises = {slot.name: Noise("laplace", 1.0)}
    for output in outputs:
        few, many = (output.answer({slot.name: np.rint(exact * share)}, noises).note for share in (0.012, 1.0))
        assert "leaves room for the error of the mean at its worst" in few and many == ""


def test_errors_are_predicted_for_groups_of_a_number_of_rows_that_is_said() -> None:
    (told,) = made([mean("bmi", by="sex")])[1]
    (untold,) = outputs_of([mean("bmi", by="sex")], Facts(people(), {"bmi": (27.0, 5.0)}))[1]
    assert told.rows_needed is None
    assert untold.rows_needed is not None and untold.rows_needed.tolist() == [ROWS / 4] * 2
    assert f"at least {ROWS // 4:,} rows" in untold.clause


def test_sums_of_one_sign_keep_it_and_whole_ones_are_rounded_where_asked() -> None:
    _, (total, debt), _ = made([sum("age", rounded=True), sum("debt")])
    noises = {"sum of age": Noise("laplace", 1.0), "sum of debt": Noise("laplace", 1.0)}
    answer = total.answer({"sum of age": np.array([-5])}, noises)
    assert (answer.values, answer.lower) == (0.0, 0.0)
    assert float(debt.answer({"sum of debt": np.array([-5])}, noises).values) < 0


@pytest.mark.slow
def test_sampling_widens_the_interval_by_what_theory_says() -> None:
    for asked, alone in [
        # With the squares measured, the variance of a mean is variance / N.
        ([mean("bmi", for_population=True), variance("bmi")], PEOPLE["bmi"].std() / np.sqrt(ROWS)),
        # Without them, the most it can be.
        ([mean("bmi", for_population=True)], 25.0 / np.sqrt(ROWS)),
        # Rows and their number vary: at most the largest value times the sum.
        ([sum("age", for_population=True)], np.sqrt(90.0 * PEOPLE["age"].sum())),
    ]:
        found = noiseless(asked, people())[0]
        assert float(found.standard_errors) == pytest.approx(alone, rel=0.1)
        assert float(found.upper) - float(found.lower) == pytest.approx(2 * 1.96 * alone, rel=0.1)
    age = PEOPLE["age"]
    wide = noiseless([variance("age", for_population=True)], people())[0]
    exact = np.sqrt(np.var((age - age.mean()) ** 2) / ROWS)
    assert exact < float(wide.standard_errors) < 3 * exact


def test_expected_values_of_statistics_are_used_and_checked() -> None:
    _, (plain, told), _ = made([mean("bmi"), mean("age")], **{"mean of age": 90.0})
    assert told.reference.tolist() == [90.0]
    assert plain.reference[0] == pytest.approx(27.0, rel=0.01)
    _, (named,), _ = made([mean("bmi", name="bmi")])  # what is expected under that name is the column
    assert named.reference.tolist() == [27.0]
    with pytest.raises(InvalidValue, match=r"one for each cell"):
        made([mean("bmi", by="sex")], **{"mean of bmi by sex": [1.0, 2.0, 3.0]})
    with pytest.raises(InvalidValue, match=r"none below 0"):
        made([variance("bmi")], **{"variance of bmi": -1.0})


def test_what_the_steward_says_of_a_column_is_taken_as_said() -> None:
    """A bell curve cut off at the bounds would have another mean and another spread."""
    _, (whole, spread), _ = made([mean("bmi"), std("bmi")], bmi=(12.0, 9.0))
    assert whole.reference.tolist() == [12.0]
    assert spread.reference.tolist() == [9.0]
    _, (whole, spread), _ = made([mean("bmi"), std("bmi")], bmi=[11.0, 12.0, 13.0, 99.0])
    assert whole.reference.tolist() == [24.0]
    assert spread.reference[0] == pytest.approx(np.std([11.0, 12.0, 13.0, 60.0]))


def test_expected_means_and_spreads_do_not_depend_on_the_rows() -> None:
    empty = dataset(pyarrow.table(PEOPLE).slice(0, 0), schema=SCHEMA, rows=ROWS)
    asked = [mean("bmi", by="sex"), std("age"), sum("smoker")]
    noises = {slot.name: Noise("laplace", 0.3) for slot in made(asked)[0]}
    for full, none in zip(made(asked)[1], made(asked, empty)[1], strict=True):
        assert full.predicted(noises).standard_error == none.predicted(noises).standard_error


@pytest.mark.slow
def test_weights_are_derivatives() -> None:
    """What one step of noise moves an answer by, against moving it."""
    asked = [sum("bmi"), mean("bmi"), variance("bmi"), std("bmi")]
    slots, outputs, derived = made(asked)
    exact = people().derive(**derived).exact({slot.name: slot.aggregate for slot in slots})
    noises = {slot.name: Noise("laplace", 1e-3) for slot in slots}
    bmi = PEOPLE["bmi"]
    truth = np.array([float(ROWS)]), np.array([bmi.mean()]), np.array([bmi.var()])
    for output in outputs:
        assert isinstance(output, MomentOutput)
        for part, weight in zip(output.shared.parts, output.weights(*truth), strict=True):
            moved = round(10 / part.slot.step)
            direction = moved * (np.arange(part.slot.cells) == part.place)
            ends = [
                output.answer({**exact, part.slot.name: exact[part.slot.name] + side * direction}, noises).values
                for side in (-1, 1)
            ]
            slope = (float(ends[1]) - float(ends[0])) / (2 * moved)
            assert slope == pytest.approx(float(weight[0]), rel=0.01, abs=1e-12), part.source


def noisy(slots: Any, noise: Noise, exact: Any, releases: int, source: TestSource) -> dict[str, Any]:
    """What every slot measures in many releases, one in a row: one long vector of noise for each slot."""
    return {
        slot.name: np.asarray(
            replace(slot, cells=slot.cells * releases)
            .mechanism(noise)
            ._answer(np.tile(slot.merged(exact[slot.name]), releases), source)
        ).reshape(releases, -1)
        for slot in slots
    }


def estimated(output: Any, drawn: dict[str, Any], noises: dict[str, Noise]) -> Any:
    """The estimates of many releases at once, as many cells as releases; one by one they are the same."""
    assert isinstance(output, MomentOutput)
    shared, releases = output.shared, len(next(iter(drawn.values())))
    each = [shared.own({name: numbers[release] for name, numbers in drawn.items()}) for release in range(releases)]
    parts = [np.array(own) for own in zip(*each, strict=True)]
    return output._released(parts, noises, shared.rows, shared.counts, (releases, len(shared.rows)))


def simulated(
    statistics: Sequence[Statistic], noise: Noise, truths: Sequence[Any], releases: int, data: Dataset
) -> list[tuple[float, float]]:
    """For each statistic: the RMS error over the predicted one, and the share of errors inside the predicted one."""
    slots, outputs, derived = made(statistics, data)
    exact = data.derive(**derived).exact({slot.name: slot.aggregate for slot in slots})
    noises = {slot.name: noise for slot in slots}
    source = TestSource(11)
    drawn = noisy(slots, noise, exact, releases, source)
    errors = []
    for output, truth in zip(outputs, truths, strict=True):
        values = estimated(output, drawn, noises)[0].reshape(releases, -1)
        first = output.estimate({name: numbers[0] for name, numbers in drawn.items()}, noises)[0]
        assert values[0] == pytest.approx(np.atleast_1d(first), rel=1e-12)
        errors.append(values - truth)
    found = []
    for output, own in zip(outputs, errors, strict=True):
        distribution = output.predicted(noises)
        share = np.mean(np.abs(own) <= distribution.errors(0.95))
        found.append((float(np.sqrt(np.mean(own**2)) / distribution.standard_error), float(share)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Noise("laplace", 0.4), Noise("gaussian", 4.0)], ids=lambda noise: noise.kind)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_predicted_errors_come_true(noise: Noise, neighbours: str) -> None:
    bmi, age, sex = PEOPLE["bmi"], PEOPLE["age"], PEOPLE["sex"]
    asked = [mean("bmi"), variance("bmi"), std("bmi"), sum("age"), mean("smoker"), mean("age", by="sex")]
    by_sex = np.array([age[sex == "F"].mean(), age[sex == "M"].mean()])
    truths = [bmi.mean(), bmi.var(), bmi.std(), age.sum(), PEOPLE["smoker"].mean(), by_sex]
    found = simulated(asked, noise, truths, 2_000, people(neighbours=neighbours))
    for statistic, (ratio, share) in zip(asked, found, strict=True):
        assert 0.9 <= ratio <= 1.1, statistic.name
        assert 0.935 <= share <= 0.97, statistic.name


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """With so little data that the number of rows is quite unsure."""
    data = people().where("age < 20")
    young = PEOPLE["bmi"][PEOPLE["age"] < 20]
    slots, outputs, derived = made([mean("bmi"), std("bmi")], data)
    exact = data.derive(**derived).exact({slot.name: slot.aggregate for slot in slots})
    noise, source = Noise("gaussian", 2.0), TestSource(12)
    noises = {slot.name: noise for slot in slots}
    drawn = noisy(slots, noise, exact, 400, source)
    for output, truth in zip(outputs, (young.mean(), young.std()), strict=True):
        _, _, interval = estimated(output, drawn, noises)
        low, high = interval(0.95)
        answer = output.answer({name: numbers[0] for name, numbers in drawn.items()}, noises)
        assert (low[0], high[0]) == pytest.approx((float(answer.lower), float(answer.upper)), rel=1e-9)
        assert 0.92 <= np.mean((low <= truth) & (truth <= high)) <= 0.99


@pytest.mark.slow
def test_noise_that_is_a_tenth_off_would_be_noticed() -> None:
    asked, truth = [sum("age")], [PEOPLE["age"].sum()]
    (ratio, _) = simulated(asked, Noise("gaussian", 4.0), truth, 20_000, people())[0]
    assert abs(ratio - 1) < 0.05
    assert abs(ratio / 0.9 - 1) > 0.05
    assert abs(ratio / 1.1 - 1) > 0.05


def test_one_pass_on_an_engine_answers_everything() -> None:
    data = people()
    asked = [mean("bmi"), std("bmi"), sum("age", by="sex"), mean("age", where="smoker")]
    slots, outputs, derived = made(asked, data)
    noises = {slot.name: Noise("gaussian", 1.0) for slot in slots}
    measured = Measurements(tuple(derived.items()), tuple(slots), noises).run(data)
    found = [output.answer(measured, noises) for output in outputs]
    assert float(found[0].values) == pytest.approx(PEOPLE["bmi"].mean(), abs=0.2)
    assert float(found[1].values) == pytest.approx(PEOPLE["bmi"].std(), abs=0.5)
    assert np.sum(found[2].values) == pytest.approx(PEOPLE["age"].sum(), rel=0.01)
    assert float(found[3].values) == pytest.approx(PEOPLE["age"][PEOPLE["smoker"]].mean(), abs=1.0)


def test_people_with_several_rows_are_sampled_as_one() -> None:
    table = pyarrow.table({"person": np.arange(1000) // 4, "bmi": np.full(1000, 27.0)})
    schema = {"bmi": (10.0, 60.0)}
    for kind in (sum, mean, variance, std):
        distributions = []
        for data in (
            dataset(table, schema=schema, rows=1000),
            dataset(table, unit="person", max_rows=4, schema=schema),
        ):
            asked = [kind("bmi", for_population=True)]  # type: ignore[operator]
            slots, (output,), _ = made(asked, data, rows=1000)
            # So little noise that sampling is all there is.
            distributions.append(output.predicted({slot.name: Noise("gaussian", 0.01) for slot in slots}))
        assert distributions[1].standard_error == pytest.approx(2 * distributions[0].standard_error, rel=0.01)


def test_a_column_that_is_called_like_a_condition_has_measurements_of_its_own() -> None:
    names = ("x", "x where c < 3", "c")
    odd = dataset(pyarrow.table({name: [1] for name in names}), schema=dict.fromkeys(names, (0, 9)))
    slots, _, _, _ = outputs_of([mean("x", where="c < 3"), mean("x where c < 3", name="other")], Facts(odd))
    assert len({slot.name for slot in slots}) == len(slots) == 2


def test_a_column_without_spread_has_a_deviation_without_warnings() -> None:
    alike = dataset(pyarrow.table({"x": [0] * 20}), schema={"x": (0, 1_000_000)})
    (answer,) = noiseless([std("x")], alike)
    assert answer.values == 0
    assert np.isfinite(answer.standard_errors)
