"""Counts of people on every engine: what a loop over the rows in Python finds, wherever nothing has to be left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import Bounded, Count, Schema, Sum, UnitBound, dataset
from farthing.data.expressions import read_cell
from farthing.statistics import constructors as st
from farthing.statistics.design import design_of

SCHEMA = Schema.read(SCHEMAS["people"])


@pytest.fixture(scope="module")
def people(engine: EngineUnderTest) -> Any:
    return dataset(engine.load(TABLES["people"]), unit="person", schema=SCHEMA)


def reached() -> dict[tuple[Any, str], int]:
    """How many rows each person has in each sex."""
    found: dict[tuple[Any, str], int] = {}
    for row in TABLES["people"].to_pylist():
        sex = read_cell(row["sex"], SCHEMA["sex"])
        if row["person"] is not None and sex is not None:
            found[row["person"], sex] = found.get((row["person"], sex), 0) + 1
    return found


@pytest.mark.slow
def test_people_and_bounded_rows_are_those_of_a_loop(people: Any) -> None:
    design = design_of(
        [
            st.count(by="sex", of="people", max_cells=2),
            st.count(by="sex", rows_per_cell=2, max_cells=2),
            st.count(of="people", where="sex = 'F'"),
            st.histogram("score", bins=4, of="people", max_cells=4),
        ],
        people,
    )
    found = people.exact({slot.name: slot.aggregate for slot in design.slots})
    once, twice, women, bands = (np.asarray(found[slot.name]).reshape(-1).tolist() for slot in design.slots)
    cells = reached()
    assert once == [sum(1 for _, sex in cells if sex == each) for each in ("F", "M")]
    assert twice == [sum(min(rows, 2) for (_, sex), rows in cells.items() if sex == each) for each in ("F", "M")]
    assert women == once[:1]
    persons = {row["person"] for row in TABLES["people"].to_pylist()} - {None}
    assert 0 < max(bands) <= len(persons)


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_what_is_left_out_keeps_the_bound_on_every_engine(people: Any) -> None:
    cells = reached()
    persons = len({person for person, _ in cells})
    one = Bounded(Count(by="sex"), UnitBound(rows_per_cell=1, max_cells=1))
    rows = Bounded(Count(by="sex"), UnitBound(max_rows=2))
    sums = Bounded(Sum("age", by="sex"), UnitBound(rows_per_cell=1, max_cells=1))
    found = people.exact({"one": one, "rows": rows, "sums": sums})
    assert found["one"].sum() == persons
    each: dict[Any, int] = {}
    for (person, _), number in cells.items():
        each[person] = each.get(person, 0) + number
    assert found["rows"].sum() == sum(min(number, 2) for number in each.values())
    assert 0 <= found["sums"].sum() <= 110 * persons
