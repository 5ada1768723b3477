"""Counts of people on every engine: what a loop over the rows in Python finds, wherever nothing has to be left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import Bounded, Count, DistinctCount, Schema, Sum, UnitBound, dataset
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


@pytest.mark.slow
def test_different_values_are_those_of_a_loop(people: Any) -> None:
    """All rows of each person are looked at, and all listed values can be brought: nothing is left to chance."""
    design = design_of(
        [st.count_distinct("city", max_cells=20), st.count_distinct("age", by="sex", max_cells=300)], people
    )
    found = people.exact({slot.name: slot.aggregate for slot in design.slots})
    rows = [row for row in TABLES["people"].to_pylist() if row["person"] is not None]
    read = [{name: read_cell(row[name], SCHEMA[name]) for name in ("city", "age", "sex")} for row in rows]
    cities = {row["city"] for row in read} - {None}
    ages = [{row["age"] for row in read if row["sex"] == sex} - {None} for sex in ("F", "M")]
    cities_found, ages_found = (np.asarray(found[slot.name]).reshape(-1).tolist() for slot in design.slots)
    assert (cities_found, ages_found) == ([len(cities)], [len(each) for each in ages])


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_nobody_brings_more_different_values_than_agreed_on_any_engine(engine: EngineUnderTest) -> None:
    table = pa.table({"person": [1] * 60, "age": [row % 12 for row in range(60)], "sex": ["F", "M"] * 30})
    rows = dataset(engine.load(table), unit="person", schema={"age": (0, 20), "sex": ["F", "M"]})
    asked = {"few": DistinctCount("age"), "by": DistinctCount("age", by="sex"), "all": DistinctCount("age")}
    most = {"few": 3, "by": 7, "all": 12}
    bound = {name: UnitBound(rows_per_cell=1, max_cells=most[name]) for name in asked}
    found = rows.exact({name: Bounded(each, bound[name]) for name, each in asked.items()})
    assert {name: int(np.sum(found[name])) for name in asked} == most
