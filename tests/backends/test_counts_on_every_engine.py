"""Cells that counts share, on every engine: those of a loop over the rows in Python, hostile cells included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import Schema, dataset
from farthing.data.expressions import read, read_cell
from farthing.statistics import constructors as st
from farthing.statistics.counts.count_queries import Question, question_of
from farthing.statistics.counts.expected_shares import own_refinement, refinement_of
from farthing.statistics.design import checked

SCHEMA = Schema.read(SCHEMAS["people"])

TOGETHER = [
    st.count(),
    st.count(where="score < 0.1 or score is null"),
    st.count(where="not score <= 0.1"),
    st.count(where="score = 0.5 and sex = 'F'"),
    st.count(by="smokes"),
    st.count(where="city in ('東京', 'O''Hare', '100%') or smokes"),
]
APART = [
    st.histogram("age"),
    st.histogram("age", 10, by="sex"),
    st.histogram("age", [0, 18, 65, 110], where="score * 2 < 1"),
    st.histogram("score", 16),
    st.histogram("score", [-2.5, 0, 0.1, 0.5, 10.0]),
    st.histogram("born", 7, by="smokes"),
    st.histogram("weight", 11),
    st.contingency(["sex", "city", "smokes"]),
    st.count(where="age + score > 40 and not smokes"),
    st.count(where="born < '1980-02-29' or age between 41 and 50"),
]


def _question(statistic: st.Statistic) -> Question:
    return question_of(checked(statistic, SCHEMA), SCHEMA)


def _counted(question: Question) -> list[int]:
    found = np.zeros(question.cells, dtype=int)
    where = question.statistic.where
    condition = None if where is None else read(where, SCHEMA)
    for row in TABLES["people"].to_pylist():
        if condition is not None and condition.value(row) is not True:
            continue
        places = [axis.place(read_cell(row[axis.column], axis.domain)) for axis in question.axes]
        if min(places, default=0) >= 0:
            found[int(np.ravel_multi_index(places, question.shape)) if places else 0] += 1
    return [int(count) for count in found]


@pytest.fixture(scope="module")
def people(engine: EngineUnderTest) -> Any:
    return dataset(engine.load(TABLES["people"]), schema=SCHEMA)


@pytest.mark.slow
def test_counts_by_themselves_are_those_of_a_loop(people: Any) -> None:
    questions = {str(number): _question(statistic) for number, statistic in enumerate([*TOGETHER, *APART])}
    refined = {name: own_refinement(question) for name, question in questions.items()}
    found = people.exact({name: refinement.aggregate() for name, refinement in refined.items()})
    for name, question in questions.items():
        places = refined[name].members[0]
        sums = np.bincount(places[places >= 0], weights=found[name][places >= 0], minlength=question.cells)
        assert sums.tolist() == _counted(question), question.statistic.name


def test_counts_from_shared_cells_are_those_of_a_loop(people: Any) -> None:
    refinement = refinement_of([_question(statistic) for statistic in TOGETHER])
    assert refinement is not None
    cells = people.exact({"cells": refinement.aggregate()})["cells"]
    for question, places in zip(refinement.questions, refinement.members, strict=True):
        sums = np.bincount(places[places >= 0], weights=cells[places >= 0], minlength=question.cells)
        assert sums.tolist() == _counted(question), question.statistic.name
