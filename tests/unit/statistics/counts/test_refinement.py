"""Cells that several counts share: exact on every row, missing values included, and no more of them than needed."""

from __future__ import annotations

import datetime
import itertools
import math
from functools import cache

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from farthing.data import Dataset, dataset
from farthing.data.expressions import read, read_cell
from farthing.data.schema import Schema
from farthing.statistics import constructors as st
from farthing.statistics.constructors import Statistic
from farthing.statistics.counts.count_queries import Question, question_of
from farthing.statistics.counts.expected_shares import Refinement, own_refinement, refinement_of
from farthing.statistics.design import checked

DAYS = (datetime.date(2020, 1, 1), datetime.date(2020, 1, 20))
ROWS = [
    {"sex": sex, "age": age, "bmi": bmi, "day": day, "ill": ill}
    for sex, age, bmi, day, ill in itertools.product(
        ["F", "M", None, "X"],
        [-5, 3, 17, 18, 40, None],
        [24.9, 25.0, 25.1, math.nan],
        [DAYS[0], None],
        [True, None],
    )
]
TABLE = pyarrow.Table.from_pylist(
    ROWS,
    schema=pyarrow.schema(
        [
            ("sex", pyarrow.string()),
            ("age", pyarrow.int64()),
            ("bmi", pyarrow.float64()),
            ("day", pyarrow.date32()),
            ("ill", pyarrow.bool_()),
        ]
    ),
)


SCHEMA = Schema.read({"sex": ["F", "M"], "age": (0, 110), "bmi": (10.0, 60.0), "day": DAYS, "ill": bool})


@cache
def the_people() -> Dataset:
    return dataset(TABLE, schema=SCHEMA)


STATISTICS = [
    st.count(),
    st.count(where="bmi < 25"),
    st.count(where="25 >= bmi"),
    st.count(where="not (bmi <= 25 or sex = 'F')"),
    st.count(where="bmi = 25"),
    st.count(where="bmi in (25.0, 25.1) and age between 3 and 17"),
    st.count(where="bmi is null"),
    st.count(where="age < 17.5"),
    st.count(where="age % 2 = 1"),
    st.count(where="bmi * 2 < 50 or age > 20"),
    st.count(where="not bmi * 2 < 50"),
    st.count(where="age + bmi > 43"),
    st.count(where="ill"),
    st.count(where="not ill or sex <> 'M'"),
    st.count(where="day > '2020-01-03' or day is null"),
    st.count(where="true"),
    st.count(where="sex like 'F%'"),
    st.count(by="sex"),
    st.count(by=["sex", "ill"], where="age >= 18"),
    st.histogram("age", [0, 18, 40, 110]),
    st.histogram("age", 10, by="sex"),
    st.histogram("age"),
    st.histogram("day"),
    st.histogram("day", 3, where="bmi < 25"),
    st.histogram("bmi", 20),
    st.contingency(["sex", "bmi"], {"bmi": [10, 25, 60]}),
]


def _truth(statistic: Statistic, question: Question) -> np.ndarray:
    """The same counts, one row after the other in plain Python."""
    found = np.zeros(question.cells, dtype=int)
    condition = None if statistic.where is None else read(statistic.where, SCHEMA)
    for row in ROWS:
        if condition is not None and condition.value(row) is not True:
            continue
        places = [axis.place(read_cell(row[axis.column], axis.domain)) for axis in question.axes]
        if min(places, default=0) >= 0:
            found[int(np.ravel_multi_index(places, question.shape)) if places else 0] += 1
    return found


QUESTIONS = [question_of(checked(one, SCHEMA), SCHEMA) for one in STATISTICS]


def _counted(refinement: Refinement) -> list[np.ndarray]:
    exact = the_people().exact({"cells": refinement.aggregate()})["cells"]
    return [
        np.bincount(places[places >= 0], weights=exact[places >= 0], minlength=question.cells)
        for question, places in zip(refinement.questions, refinement.members, strict=True)
    ]


def _assert_exact(refinement: Refinement) -> None:
    for question, counted in zip(refinement.questions, _counted(refinement), strict=True):
        assert counted.tolist() == _truth(question.statistic, question).tolist(), question.statistic.name


@pytest.mark.slow
def test_every_question_by_itself_is_exact() -> None:
    for question in QUESTIONS:
        _assert_exact(own_refinement(question))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(some.lists(some.sampled_from(range(len(STATISTICS))), min_size=2, max_size=5, unique=True))
def test_questions_together_are_exact(chosen: list[int]) -> None:
    refinement = refinement_of([QUESTIONS[number] for number in chosen])
    if refinement is not None:
        _assert_exact(refinement)


def _cells(*statistics: Statistic) -> int:
    found = refinement_of([question_of(checked(one, SCHEMA), SCHEMA) for one in statistics])
    assert found is not None
    return found.cells


def test_no_two_cells_answer_alike() -> None:
    found = refinement_of([QUESTIONS[number] for number in (1, 3, 5, 17, 19)])
    assert found is not None
    signatures = np.array(found.members).T
    assert len(np.unique(signatures, axis=0)) == len(signatures)
    assert (signatures >= 0).any(axis=1).all()


def _where(condition: str) -> Statistic:
    return st.count(where=condition)


@pytest.mark.parametrize(
    "written",
    [
        [*map(_where, ("sex = 'M' and bmi < 25", "sex = 'M'", "sex = 'F' and bmi < 25", "sex = 'F'"))],
        [*map(_where, ("25 > bmi and not sex <> 'M'", "sex in ('M')", "not (bmi>=25 or sex<>'F')", "sex like 'F'"))],
        [st.count(by="sex"), st.count(by="sex", where="bmi < 25")],
        [st.count(by="sex"), st.contingency(["sex", "bmi"], {"bmi": [10, 25, 60]}, where="bmi < 25")],
    ],
    ids=["as conditions", "as other conditions", "as groups", "as a table"],
)
def test_the_four_counts_need_four_cells_however_they_are_written(written: list[Statistic]) -> None:
    assert _cells(*written) == 4


def test_a_condition_that_no_row_meets_has_no_cells() -> None:
    assert _cells(st.count(where="bmi < 20 and bmi > 30")) == 0


def test_a_row_without_the_column_is_counted_where_nobody_asks_for_it() -> None:
    assert _cells(st.count(), st.histogram("age", [0, 50, 110])) == 3  # two cells and those without an age
    assert _cells(st.histogram("age", [0, 50, 110])) == 2


def test_a_condition_in_too_many_pieces_is_tried_row_by_row() -> None:
    many = " or ".join(f"age + bmi > {number}" for number in range(40, 52))
    statistic = checked(st.histogram("age", where=many), SCHEMA)
    question = question_of(statistic, SCHEMA)
    refinement = own_refinement(question)
    assert refinement.by_itself and refinement.cells == 111
    _assert_exact(refinement)
    assert refinement_of([question, QUESTIONS[0]]) is None


def test_a_column_named_like_a_condition_is_not_taken_for_it() -> None:
    table = pyarrow.table({"a": [1, 5], "b": [2, 2], "a < b": ["x", "y"]})
    odd = dataset(table, schema={"a": (0, 9), "b": (0, 9), "a < b": ["x", "y"]})
    questions = [
        question_of(checked(one, odd.schema), odd.schema) for one in (st.count(where="a < b"), st.count(by="a < b"))
    ]
    refinement = refinement_of(questions)
    assert refinement is not None
    exact = odd.exact({"cells": refinement.aggregate()})["cells"]
    assert int(exact[refinement.members[0] >= 0].sum()) == 1
    assert int(exact[refinement.members[1] >= 0].sum()) == 2


def test_one_row_changes_one_cell() -> None:
    refinement = refinement_of([QUESTIONS[number] for number in (1, 3, 17, 19)])
    assert refinement is not None
    assert the_people().sensitivity(refinement.aggregate()).l1 == 1
    replaced = dataset(TABLE, schema=SCHEMA, neighbours="replace")
    assert replaced.sensitivity(refinement.aggregate()).l1 == 2
    # One cell by itself only loses or gains a row, however many pieces it is made of.
    assert replaced.sensitivity(own_refinement(QUESTIONS[3]).aggregate()).l1 == 1
