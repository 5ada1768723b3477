"""Counts, ranges, cdfs and marginals of one plan: estimated from all that is measured, with the stated errors."""

from __future__ import annotations

import itertools
import json
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow
import pytest

from farthing.data import Dataset, dataset
from farthing.statistics import constructors as st
from farthing.statistics.answer_records import restored, stored_form
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise, Slot
from farthing.statistics.ranges.strategy_slots import StrategySlot

SCHEMA: dict[str, Any] = {"sex": ["F", "M"], "old": bool, "age": (0, 7)}
VALUES: dict[str, list[Any]] = {"sex": ["F", "M", None], "old": [False, True, None], "age": [*range(8), None]}
ATOMS = list(itertools.product(*VALUES.values()))
TYPES = {"sex": pyarrow.string(), "old": pyarrow.bool_(), "age": pyarrow.int64()}


def _people(rows: list[tuple[Any, ...]], **options: Any) -> Dataset:
    columns = dict(zip(VALUES, zip(*rows, strict=True), strict=True))
    table = pyarrow.table({name: pyarrow.array(list(values), TYPES[name]) for name, values in columns.items()})
    return dataset(table, schema=SCHEMA, **options)


@cache
def the_people() -> Dataset:
    return _people(ATOMS)


UNION = [
    st.count(),
    st.count(by="sex"),
    st.histogram("age", [0, 2, 4, 7]),
    st.ranges("age", ranges=[(0, 2), (1, 7), (2, 4)], name="listed"),
    st.ranges("age", name="ranges"),  # trees of eight cells: nothing is padded, so that the twin knows no more
    st.cdf("age", name="cdf", strategy="hierarchical-2"),
    st.marginals(["sex", "old", "age"], way=2, name="marginals"),
]


def _numbers(slot: Slot, exact: Any, kind: Any) -> np.ndarray:
    own = slot.own(exact)
    return slot.transforms[kind].apply(own) if isinstance(slot, StrategySlot) else slot.merged(own)


@lru_cache
def _design() -> Design:
    return design_of(UNION, the_people(), {"rows": 1_000})


@lru_cache
def _exact() -> tuple[Any, ...]:
    """What the engine adds up for one row of each kind."""
    noises = {slot.name: Noise("laplace", 1.0) for slot in _design().slots}
    return tuple(_design().measurements(noises).exact(_people([atom])) for atom in ATOMS)


def _atoms(noises: dict[str, Noise]) -> dict[str, np.ndarray]:
    """For each slot, what one row of each kind adds to every measured number: the engine's own word."""
    return {
        slot.name: np.array([_numbers(slot, exact, noises[slot.name].kind) for exact in _exact()]).T
        for slot in _design().slots
    }


def _noises(design: Design, kind: str, seed: int) -> dict[str, Noise]:
    draw = np.random.default_rng(seed)
    return {
        slot.name: Noise(kind, float(draw.uniform(0.1, 0.5) if kind == "laplace" else draw.uniform(5, 20)))  # type: ignore[arg-type]
        for slot in design.slots
    }


def _inside(column: str, low: int, high: int) -> np.ndarray:
    place = list(VALUES).index(column)
    return np.array([row[place] is not None and low <= row[place] < high for row in ATOMS], dtype=float)


def _functions() -> dict[str, np.ndarray]:
    """What every statistic counts, row by row of the atoms."""
    complete = np.array([None not in row for row in ATOMS])
    tables = []
    for one, other in itertools.combinations(VALUES, 2):
        places = [list(VALUES).index(name) for name in (one, other)]
        for left, right in itertools.product(VALUES[one][:-1], VALUES[other][:-1]):
            tables.append([row[places[0]] == left and row[places[1]] == right for row in ATOMS] & complete)
    return {
        "count": np.ones((1, len(ATOMS))),
        "count by sex": np.array([[row[0] == sex for row in ATOMS] for sex in ("F", "M")], dtype=float),
        "histogram of age": np.array([_inside("age", *ends) for ends in ((0, 2), (2, 4), (4, 8))]),
        "listed": np.array([_inside("age", *ends) for ends in ((0, 2), (1, 8), (2, 4))]),
        "ranges": np.array([_inside("age", age, age + 1) for age in range(8)]),
        "marginals": np.array(tables, dtype=float),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_errors_are_those_of_least_squares_over_all_kinds_of_rows(kind: str) -> None:
    """The slow twin: every measured number as a function of how many rows of each kind there are."""
    design = _design()
    assert all(slot.row_counts for slot in design.slots)
    noises = _noises(design, kind, 1)
    cells = _atoms(noises)
    matrix = np.concatenate([cells[slot.name] for slot in design.slots]).astype(float)
    weights = np.concatenate(
        [np.full(len(cells[slot.name]), 1 / slot.variance(noises[slot.name])) for slot in design.slots]
    )
    inverse = np.linalg.pinv((matrix.T * weights) @ matrix, rcond=1e-11, hermitian=True)
    for name, functions in _functions().items():
        best = np.einsum("ij,jk,ik->i", functions, inverse, functions)
        stated = design.output(name).predicted(noises).standard_errors ** 2
        assert stated == pytest.approx(best, rel=1e-5), name
    measured = {slot.name: np.random.default_rng(5).integers(0, 10**6, len(cells[slot.name])) for slot in design.slots}
    everything = inverse @ (matrix.T @ (weights * np.concatenate([measured[slot.name] for slot in design.slots])))
    for name in ("listed", "ranges", "marginals"):
        found = np.ravel(design.output(name).answer(measured, noises).raw)
        assert found == pytest.approx(_functions()[name] @ everything, rel=1e-5, abs=1e-4), name


@pytest.mark.slow
def test_exact_numbers_satisfy_all_relations() -> None:
    """Also of rows without values, and under a condition that is unknown for some of them."""
    asked = [*UNION[:-1], st.marginals(["sex", "age"], way=1, where="old", name="marginals where old")]
    for statistics in (UNION, asked):
        design = design_of(statistics, the_people(), {"rows": 1_000})
        noises = {slot.name: Noise("laplace", 1.0) for slot in design.slots}
        combination = design.outputs[0].links
        assert len(combination.slots) == len(design.slots)
        rows = [ATOMS[place] for place in np.random.default_rng(2).integers(0, len(ATOMS), 500)]
        exact = design.measurements(noises).exact(_people(rows))
        numbers = [slot.numbers(_numbers(slot, exact, "laplace"), "laplace") for slot in combination.slots]
        linked = combination.over(tuple(range(len(numbers))))
        assert len(linked.kept) > 10
        assert np.abs(linked.gaps(numbers)).max() < 1e-6


NAMES = ("listed", "ranges")


def _estimates(output: Any, noises: dict[str, Noise], drawn: dict[str, np.ndarray]) -> np.ndarray:
    """The numbers of an output's slot in every release, one in a row: a linear estimate, so one for each number."""

    def estimate(measured: dict[str, np.ndarray]) -> np.ndarray:
        return np.asarray(output.links.estimates(measured, noises)[output.slots[0].name])

    nothing = {name: np.zeros(own.shape[1], dtype=np.int64) for name, own in drawn.items()}
    assert not estimate(nothing).any()
    every: Any = 0.0
    for name, own in drawn.items():
        one_by_one = [estimate({**nothing, name: unit}) for unit in np.eye(own.shape[1], dtype=np.int64)]
        every = every + own @ np.array(one_by_one)
    for release in (0, 1):
        whole = estimate({name: own[release] for name, own in drawn.items()})
        assert every[release] == pytest.approx(whole, rel=1e-9, abs=1e-6)
    return np.asarray(every)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_drawn_errors_are_as_predicted(kind: str) -> None:
    """4,000 releases, each of cells that share noises: 6% is six deviations of the mean, a tenth of noise moves it 10%.

    Of the intervals at least 94% and 89% hold what they claim at 95% and 90%: shapes are bounds for Laplace noise.
    """
    design = _design()
    noises = _noises(design, kind, 3)
    counts = np.full(len(ATOMS), 60)
    exact = {name: own @ counts for name, own in _atoms(noises).items()}
    draw, drawn = np.random.default_rng(4), {}
    for slot in design.slots:
        scale, size = slot.scale(noises[slot.name]), (4_000, len(exact[slot.name]))
        if kind == "gaussian":
            noise = np.rint(draw.normal(0, scale, size))
        else:
            stop = 1 - np.exp(-1 / scale)
            noise = draw.geometric(stop, size) - draw.geometric(stop, size)
        drawn[slot.name] = exact[slot.name] + noise.astype(np.int64)
    truth = {name: functions @ counts for name, functions in _functions().items()}
    for name in NAMES:
        output = design.output(name)
        cells = _estimates(output, noises, drawn)[:, : output.workload.cells]
        errors = output.workload.times(cells.T).T - truth[name]
        predicted = output.predicted(noises)
        assert np.sqrt(np.mean(errors**2)) == pytest.approx(predicted.standard_error, rel=0.06)
        for confidence in (0.9, 0.95):
            covered = float(np.mean(np.abs(errors) <= predicted.errors(confidence)))
            assert confidence - 0.01 < covered < confidence + 0.03


@pytest.mark.slow
def test_answers_agree_and_survive_being_stored() -> None:
    design = _design()
    noises = _noises(design, "laplace", 6)
    counts = np.full(len(ATOMS), 200)
    draw = np.random.default_rng(7)
    measured = {name: own @ counts + draw.integers(-50, 51, len(own)) for name, own in _atoms(noises).items()}
    answers = {output.name: output.answer(measured, noises) for output in design.outputs}
    raw = {name: np.ravel(answer.raw) for name, answer in answers.items()}
    assert np.add.reduceat(raw["ranges"], [0, 2, 4]) == pytest.approx(raw["histogram of age"], rel=1e-6)
    assert raw["ranges"][:2].sum() == pytest.approx(raw["listed"][0], rel=1e-6)
    for name, question in (("ranges", "1 <= age < 4"), ("marginals", "sex = 'F' and age < 2"), ("marginals", "old")):
        kept = restored(json.loads(json.dumps(stored_form(answers[name]))))
        one, other = answers[name].query(question), kept.query(question)
        assert other.standard_errors == pytest.approx(one.standard_errors, rel=1e-5)
        assert other.standard_errors >= one.standard_errors * (1 - 1e-9)
        assert (other.lower, other.upper) == pytest.approx((one.lower, one.upper), rel=1e-5)


def test_questions_asked_afterwards_have_the_errors_of_the_same_sums() -> None:
    design = _design()
    noises = _noises(design, "gaussian", 8)
    measured = {name: own.sum(axis=1) for name, own in _atoms(noises).items()}
    listed, ranges = (design.output(name).answer(measured, noises) for name in ("listed", "ranges"))
    for place, question in enumerate(["age < 2", "age >= 1", "2 <= age < 4"]):
        # Listed ranges have a measurement of their own; what is estimated of both is the same number.
        assert ranges.query(question).standard_errors == pytest.approx(
            np.ravel(listed.standard_errors)[place], rel=1e-4
        )
    tables = design.output("marginals").answer(measured, noises)
    labels = list(design.output("marginals").labels)
    place = labels.index("sex = F, age = 3")
    assert tables.query("sex = 'F' and age = 3").standard_errors == pytest.approx(
        np.ravel(tables.standard_errors)[place], rel=1e-6
    )


def test_nothing_is_counted_outside_where_rows_are_chosen_anew() -> None:
    """One row of a unit inside and another outside would move the numbers twice."""
    rows = [ATOMS[place] for place in np.random.default_rng(2).integers(0, len(ATOMS), 60)]
    columns = dict(zip(VALUES, zip(*rows, strict=True), strict=True))
    arrays = {name: pyarrow.array(list(values), TYPES[name]) for name, values in columns.items()}
    table = pyarrow.table({**arrays, "id": np.repeat(np.arange(20), 3)})
    people = dataset(table, schema=SCHEMA, unit="id", max_rows=2)
    design = design_of(UNION, people, {"rows": 1_000})
    assert design.output("marginals").links is None
    assert not design.output("marginals").slots[0].row_counts
    alone = design_of([UNION[-1]], people, {"rows": 1_000}).slots[0]
    assert design.output("marginals").slots[0].sensitivity == alone.sensitivity
    assert len(alone.aggregates) == len(design.output("marginals").slots[0].aggregates)


def test_other_rows_leave_every_sensitivity_as_it_is() -> None:
    for options in ({}, {"neighbours": "replace"}):
        people = _people(ATOMS, **options)
        together = design_of(UNION, people, {"rows": 1_000})
        for name in ("listed", "ranges", "marginals"):
            (slot,) = together.output(name).slots
            statistic = together.output(name).statistic
            (alone,) = design_of([statistic], people, {"rows": 1_000}).slots
            assert (slot.sensitivity.l1, slot.sensitivity.l2_squared) == (
                alone.sensitivity.l1,
                alone.sensitivity.l2_squared,
            )
