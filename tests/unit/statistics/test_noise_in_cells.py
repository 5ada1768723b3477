"""What an answer records of its noise is what happens to it: cell by cell, to the last digit, for any noise."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data import Dataset
from farthing.inference import Answer
from farthing.inference.noisy_numbers import CellNoise, NoisyCells, Spread
from farthing.statistics.answer_records import answers_from, restored, stored_form
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise


def dataset(rows: int = 500) -> Dataset:
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "sex": draw.choice(["F", "M"], rows),
            "age": draw.integers(0, 100, rows),
            "ill": draw.random(rows) < 0.3,
            "income": draw.uniform(0, 1000, rows),
        }
    )
    schema = {"sex": ["F", "M"], "age": (0, 99), "ill": bool, "income": (0.0, 1000.0)}
    return ft.dataset(table, schema=schema)


STATISTICS = [
    ft.count(),
    ft.count(by="sex"),
    ft.histogram("age", bins=4),
    ft.contingency(["sex", "ill"]),
    ft.mean("income", by="sex"),
    ft.sum("income", by="sex"),
    ft.mean("ill"),
    ft.cdf("age", bins=5),
    ft.cdf("income", bins=60),
]


def pair(answer: Answer, cell: int) -> tuple[float, float]:
    assert answer.noise is not None
    top, bottom = answer.noise.numbers(cell)
    return top.value, 1.0 if bottom is None else bottom.value


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_recorded_noises_are_those_that_move_the_numbers(kind: str) -> None:
    people = dataset()
    design = design_of(STATISTICS, people, {})
    noises: dict[str, Noise] = {
        slot.name: Noise(kind, 0.3 + place / 10)  # type: ignore[arg-type]
        for place, slot in enumerate(design.slots)
    }
    exact = design.measurements(noises).exact(people)
    plain = {slot.name: plain_numbers(slot, exact, noises[slot.name]) for slot in design.slots}
    draw = np.random.default_rng(4)
    noise = {name: draw.integers(-9, 10, len(numbers)) for name, numbers in plain.items()}
    noisy = {name: plain[name] + noise[name] for name in plain}
    before, after = (answers_of(design, noises, people, measured) for measured in (plain, noisy))
    known = 0
    for one, two in zip(before, after, strict=True):
        assert two.noise is not None, two.name
        for cell in range(len(two)):
            numbers = [each for each in two.noise.numbers(cell) if each is not None]
            for number, then, now in zip(numbers, pair(one, cell), pair(two, cell), strict=False):
                moved = sum(weight * noise[name][place] for (_, name, place, *_), weight in number.noise.items())
                assert now - then == pytest.approx(moved, rel=1e-6, abs=1e-6), (two.name, cell)
                known += 1
    assert known == 149


def plain_numbers(slot, exact, noise):  # type: ignore[no-untyped-def]
    """The numbers of a slot before any noise."""
    own = slot.own(exact)
    transforms = getattr(slot, "transforms", None)
    return np.asarray(slot.merged(own) if transforms is None else transforms[noise.kind].apply(own)).reshape(-1)


def answers_of(design: Design, noises: dict[str, Noise], people: Dataset, measured) -> list[Answer]:  # type: ignore[no-untyped-def]
    """As they are read from a ledger."""
    answers = answers_from(design.outputs, noises, people.schema, measured)
    return [restored(json.loads(json.dumps(stored_form(answer))), "release") for answer in answers]


def test_recorded_noises_of_linked_counts_have_the_stated_standard_errors() -> None:
    """These are computed in another way: from the variances of a least-squares estimate."""
    people = dataset()
    design = design_of([ft.count(), ft.contingency(["sex", "ill"]), ft.histogram("age", bins=4)], people, {})
    noises = {slot.name: Noise("gaussian", 8.0) for slot in design.slots}
    measured = design.measurements(noises).run(people)
    for answer in answers_of(design, noises, people, measured):
        found = [each.standard_error for each in answer.estimates]
        assert found == pytest.approx(np.atleast_1d(answer.standard_errors).tolist(), rel=1e-6)


def test_sampling_errors_of_groups_are_independent_where_each_unit_is_one_row() -> None:
    people = dataset()
    asked = [ft.mean("income", by="sex", for_population=True)]
    design = design_of(asked, people, {})
    noises = {slot.name: Noise("laplace", 40.0) for slot in design.slots}
    (answer,) = answers_of(design, noises, people, design.measurements(noises).run(people))
    difference = answer["F"] - answer["M"]
    alone = np.asarray(answer.standard_errors)
    assert difference.standard_errors == pytest.approx(math.hypot(*alone), rel=1e-3)


def test_sampling_errors_of_the_same_units_are_taken_at_their_worst() -> None:
    table = pa.table({"person": [1, 1, 2, 3] * 100, "sex": ["F", "M"] * 200, "income": [5.0, 900.0] * 200})
    schema = {"person": (0, 10), "sex": ["F", "M"], "income": (0.0, 1000.0)}
    people = ft.dataset(table, schema=schema, unit="person", max_rows=4)
    design = design_of([ft.mean("income", by="sex", for_population=True)], people, {})
    noises = {slot.name: Noise("laplace", 40.0) for slot in design.slots}
    (answer,) = answers_of(design, noises, people, design.measurements(noises).run(people))
    alone = np.asarray(answer.standard_errors)
    assert (answer["F"] - answer["M"]).standard_errors == pytest.approx(alone.sum(), rel=1e-2)
    assert (answer["F"] + answer["M"]).standard_errors == pytest.approx(alone.sum(), rel=1e-2)


def test_record_that_would_be_long_is_left_out() -> None:
    noise = CellNoise((("counts", "laplace", 1.0),), NoisyCells((1.0,), (Spread(0, 1.0, (0,) * 20_001),)))
    answer = Answer.within("n", 3.0, 1.0, lambda confidence: (np.array([1.0]), np.array([5.0])))
    assert not noise.small
    assert "noise" not in stored_form(replace(answer, noise=noise))
