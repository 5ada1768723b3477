"""Statistics under disjoint conditions are cells of one measurement: what is merged, what it costs, what it answers."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ibis
import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, dataset
from farthing.data.expressions import read
from farthing.data.schema import Schema
from farthing.planner import Problem, allocate
from farthing.statistics.constructors import mean, median, quantiles, std, sum, variance
from farthing.statistics.design import Design, design_of
from farthing.statistics.disjoint_conditions import disjoint_sets
from farthing.statistics.measurements import Noise
from farthing.statistics.statistic import Statistic

pytestmark = pytest.mark.slow

SCHEMA = {
    "age": (18, 90),
    "bmi": (10.0, 60.0),
    "income": (0, 200_000),
    "sex": ["F", "M"],
    "smoker": bool,
    "region": ["north", "south", "west"],
}
BANDS = [f"age >= {low} and age < {low + 8}" for low in range(18, 90, 8)]
Row = dict[str, Any]


def rows_of(size: int) -> list[Row]:
    generator = np.random.default_rng(11)
    domains: dict[str, Callable[[], Any]] = {
        "age": lambda: int(generator.integers(18, 91)),
        "bmi": lambda: round(float(generator.uniform(10, 60)), 3),
        "income": lambda: int(generator.integers(0, 200_001)),
        "sex": lambda: "FM"[generator.integers(2)],
        "smoker": lambda: bool(generator.random() < 0.4),
        "region": lambda: SCHEMA["region"][generator.integers(3)],  # type: ignore[index]
    }
    return [{name: None if generator.random() < 0.1 else draw() for name, draw in domains.items()} for _ in range(size)]


ROWS = rows_of(600)


def people(**options: Any) -> Dataset:
    return dataset(pyarrow.Table.from_pylist(ROWS), schema=SCHEMA, **options)


def designed(*statistics: Statistic, **options: Any) -> Design:
    return design_of(statistics, people(**options), expected={"rows": 50_000})


def sets(*wheres: Any) -> list[list[int]]:
    return disjoint_sets(wheres, Schema.read(SCHEMA))


def test_means_over_nine_bands_are_one_measurement_of_nine_cells_and_the_rest() -> None:
    design = designed(*(mean("income", where=band) for band in BANDS))
    assert [slot.cells for slot in design.slots] == [10 * 3]
    assert [slot.sensitivity.l1 for slot in design.slots] == [200_000]
    assert {output.slots for output in design.outputs} == {design.slots}


@pytest.mark.parametrize(
    ("wheres", "found"),
    [
        (["age < 30", "age >= 30"], [[0, 1]]),
        (["age < 30", "age <= 30", "age > 30"], [[0, 2], [1]]),
        (["age < 30", "age < 40", "age >= 30", "age >= 40"], [[0, 2], [1, 3]]),
        (["bmi < 25", "bmi >= 25"], [[0, 1]]),
        (["bmi <= 25", "bmi >= 25"], [[0], [1]]),
        (["sex = 'F'", "sex = 'M'"], [[0, 1]]),
        (["smoker", "not smoker"], [[0, 1]]),
        (["region in ('north', 'west')", "region = 'south'", "region <> 'south'"], [[0, 1], [2]]),
        (["sex = 'F' and bmi < 25", "sex = 'M' and age > 40", "sex = 'F' and bmi > 30"], [[0, 1, 2]]),
        (["sex = 'F' or age < 30", "sex = 'M' and age > 40"], [[0, 1]]),
        (["sex = 'F' or age < 30", "sex = 'M'"], [[0], [1]]),
        (["sex = 'F'", "age < 30"], [[0], [1]]),
        ([None, "sex = 'F'", "sex = 'M'"], [[0], [1, 2]]),
        # A missing value is neither below nor above, and null is a cell of its own.
        (["age is null", "age < 30", "not (age < 30)"], [[0, 1, 2]]),
        (["age is null", "coalesce(age, 20) < 30"], [[0], [1]]),
        # What pieces cannot decide may hold in any row; where the rest is disjoint, so is the whole.
        (["income > 1000 * age", "income < 1000 * age"], [[0], [1]]),
        (["bmi * bmi < 600", "bmi >= 50"], [[0], [1]]),
        (["sex = 'F' and income > 1000 * age", "sex = 'M' and income > 900 * age"], [[0, 1]]),
        (["income > 1000 * age", "not income > 1000 * age"], [[0, 1]]),
        ([ibis._.age < 30, "age >= 30"], [[0, 1]]),
    ],
)
def test_only_conditions_that_cannot_both_be_true_are_put_together(wheres: list[Any], found: list[list[int]]) -> None:
    assert sets(*wheres) == found


def test_conditions_that_are_put_together_never_hold_in_one_row() -> None:
    generator = np.random.default_rng(5)
    atoms = [
        "age < 40", "age >= 60", "age between 40 and 59", "sex = 'F'", "sex <> 'F'", "smoker", "not smoker",
        "bmi < 20", "bmi >= 20.5", "region = 'west'", "region in ('north', 'south')", "age is null",
        "income > 1000 * age",
    ]  # fmt: skip
    schema = Schema.read(SCHEMA)
    wheres = list(dict.fromkeys(_random_condition(generator, atoms) for _ in range(60)))
    found = sets(*wheres)
    assert sorted(itertools.chain(*found)) == list(range(len(wheres)))
    assert len(found) < len(wheres)
    conditions = [read(where, schema) for where in wheres]
    for members in found:
        for row in ROWS:
            assert [conditions[place].value(row) for place in members].count(True) <= 1


def _random_condition(generator: np.random.Generator, atoms: Sequence[str]) -> str:
    first, second, third = (atoms[place] for place in generator.integers(len(atoms), size=3))
    form = ["{0} and {1}", "{0} and not ({1} or {2})", "({0} or {1}) and {2}", "{0}"][generator.integers(4)]
    return form.format(first, second, third)


def test_conditions_too_many_for_one_column_are_divided() -> None:
    many = [f"income = {n} and age > 20 and bmi > 12 and (sex = 'F' or smoker)" for n in range(70)]
    first, second = disjoint_sets(many, Schema.read(SCHEMA))
    assert sorted((*first, *second)) == list(range(70))
    assert [len(members) for members in disjoint_sets(many[:10], Schema.read(SCHEMA), most=4)] == [4, 4, 2]
    design = designed(*(sum("income", where=where) for where in many))  # each can be read
    assert [slot.cells for slot in design.slots] == [len(first), len(second)]


def test_overlapping_bands_are_measured_apart() -> None:
    design = designed(mean("income", where="age < 50"), mean("income", where="age > 40"))
    assert [slot.cells for slot in design.slots] == [3, 3]


def test_other_columns_groups_and_probabilities_are_measured_apart() -> None:
    young, old = "age < 50", "age >= 50"
    assert len(designed(sum("income", where=young), sum("bmi", where=old)).slots) == 2
    assert len(designed(sum("income", where=young), sum("income", where=old, by="sex")).slots) == 2
    assert len(designed(median("bmi", where=young), quantiles("bmi", [0.5, 0.9], where=old)).slots) == 2
    assert len(designed(median("bmi", where=young), quantiles("bmi", [0.5], where=old)).slots) == 1


def test_a_sum_beside_a_mean_elsewhere_reads_the_means_measurements() -> None:
    young, old = "age < 50", "age >= 50"
    design = designed(sum("income", where=young), mean("income", where=old), std("income", where=old))
    assert [slot.cells for slot in design.slots] == [3 * 4]
    assert {output.slots for output in design.outputs} == {design.slots}


def test_replaced_rows_move_two_cells() -> None:
    asked = [mean("income", where="age < 50"), mean("income", where="age >= 50")]
    design = designed(*asked, neighbours="replace", rows=600)
    assert [slot.sensitivity.l1 for slot in design.slots] == [2 * 200_000]


def test_a_fine_grid_stays_fine_however_many_conditions_share_it() -> None:
    bands = [f"income between {low} and {low + 999}" for low in range(0, 40_000, 1000)]
    design = designed(*(median("bmi", where=band) for band in bands))
    assert [slot.cells for slot in design.slots] == [26, 14]
    assert all(slot.points >= 5_001 for slot in design.slots)  # type: ignore[attr-defined]
    whole = designed(*(median("age", where=band) for band in bands))
    assert [slot.cells for slot in whole.slots] == [40]


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize(
    "make",
    [lambda band: mean("income", where=band), lambda band: median("bmi", where=band)],
    ids=["mean", "median"],
)
def test_a_plan_over_bands_is_as_exact_as_one_by_groups(make: Callable[[str], Statistic], pure: bool) -> None:
    """Nine bands cost as much as one of them: divided among nine, the errors would be several times as large."""

    def errors(statistics: Sequence[Statistic]) -> float:
        design = design_of(statistics, people(), expected={"rows": 50_000, "income": (40_000, 20_000)}, pure=pure)
        made = allocate(Problem(design, 1.0, 0.0 if pure else 1e-9))
        return float(made.distributions[statistics[0].name].standard_error)

    alone, together = errors([make(BANDS[0])]), errors([make(band) for band in BANDS])
    assert together == pytest.approx(alone, rel=0.25)
    overlapping = [f"({band}) or age = {age}" for band, age in zip(BANDS, itertools.repeat(90))]
    assert errors([make(band) for band in overlapping]) > 1.8 * together


def _kept(where: str | None, by: str | None, group: Any) -> Iterator[Row]:
    condition = None if where is None else read(where, Schema.read(SCHEMA))
    for row in ROWS:
        if (by is None or row[by] == group) and (condition is None or condition.value(row) is True):
            yield row


def _groups(statistic: Statistic) -> Iterator[list[float]]:
    """The values that a statistic is about, group by group, by a loop over the rows."""
    (by,) = statistic.by or (None,)
    for group in [None] if by is None else SCHEMA[by]:  # type: ignore[attr-defined]
        rows = _kept(statistic.where, by, group)
        yield sorted(row[statistic.column] for row in rows if row[statistic.column] is not None)


def _plain(kind: str, values: list[float]) -> float:
    average = math.fsum(values) / len(values)
    spread = math.fsum((value - average) ** 2 for value in values) / len(values)
    return {"sum": math.fsum(values), "mean": average, "variance": spread, "std": math.sqrt(spread)}[kind]


def _rank_is_right(chosen: float, probability: float, values: list[float]) -> bool:
    wanted = probability * len(values)
    below, up_to = bisect_left(values, chosen), bisect_right(values, chosen)
    return below - 1.5 <= wanted <= up_to + 1.5


def test_answers_are_those_of_a_loop_over_the_rows_when_noise_is_negligible() -> None:
    young, middle, old = "age < 40", "age between 40 and 59", "age >= 60"
    moments = [
        *(mean("income", where=where) for where in (young, middle, old)),
        *(variance("bmi", where=where, by="sex") for where in (old, young)),
        std("bmi", where=middle, by="sex"),
        *(sum("income", where=where, by="region") for where in ("smoker", "not smoker")),
        *(sum("bmi", where=where) for where in ("sex = 'F' and bmi < 25", "sex = 'M'", "bmi > 30 and sex = 'F'")),
        mean("income", where="age > 30"),
    ]
    choices = [
        *(median("age", where=where) for where in ("sex = 'F'", "sex = 'M'")),
        *(quantiles("age", [0.2, 0.7], where=where, by="sex") for where in ("smoker", "not smoker")),
    ]
    data, design = people(), designed(*moments, *choices)
    assert [slot.cells for slot in design.slots] == [4 * 3, 3, 4 * 3 * 4, 6, 3, 2, 8]
    noises = {slot.name: Noise(slot.kinds[0], 50.0) for slot in design.slots}
    noisy = design.measurements(noises).run(data)
    exact = data.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    for measured, accuracy in [
        (noisy, 0.05),
        ({slot.name: slot.merged(exact[slot.name]) for slot in design.slots}, 1e-4),
    ]:
        for statistic in moments:
            answer = design.output(statistic.name).answer(measured, noises)
            wanted = [_plain(statistic.kind, values) for values in _groups(statistic)]
            assert np.atleast_1d(answer.values).tolist() == pytest.approx(wanted, rel=accuracy), statistic.name
    for statistic in choices:
        found = np.atleast_1d(design.output(statistic.name).answer(noisy, noises).values)
        places = itertools.product(_groups(statistic), statistic.probabilities)
        for chosen, (values, probability) in zip(found.tolist(), places, strict=True):
            assert _rank_is_right(chosen, probability, values), statistic.name


def test_a_row_that_meets_no_condition_for_want_of_a_value_is_in_no_cell() -> None:
    design = designed(mean("income", where="age < 40"), mean("income", where="age >= 40"))
    (slot,) = design.slots
    exact = people().derive(**dict(design.derived)).exact({"n": slot.aggregate})["n"] / 200_000
    present = [row for row in ROWS if row["income"] is not None]
    aged = len([row for row in present if row["age"] is not None])
    assert exact[:2, :2].sum() == pytest.approx(aged) and exact[2, :2].sum() == pytest.approx(len(present) - aged)
    assert exact.sum() == pytest.approx(len(ROWS))
    missed = {label: output.shared.members.tolist() for label, output in enumerate(design.outputs)}  # type: ignore[attr-defined]
    assert missed == {0: [0, -1, -1], 1: [-1, 0, -1]}
