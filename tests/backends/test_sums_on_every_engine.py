"""What sums, means, quantiles and regressions measure, on every engine: what a loop over the rows in Python finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import CellCounts, Count, Schema, Sum, dataset
from farthing.data.aggregates.soft_partitions import SoftPartition
from farthing.data.expressions import Expression, read, read_cell
from farthing.data.schema import read_domain
from farthing.statistics import constructors as st
from farthing.statistics.cells.statistic_cells import groups_of
from farthing.statistics.design import Design, design_of

SCHEMA = Schema.read(SCHEMAS["people"])
ASKED = [
    st.sum("age"),
    st.std("age", by="sex"),
    st.mean("score"),
    st.variance("score", where="age >= 30"),
    st.sum("weight", by=["sex", "smokes"]),
    st.mean("smokes", where="score < 0.5 or score is null"),
    st.median("score", by="smokes"),
    st.quantiles("age", [0.1, 0.9], where="sex = 'F'"),
    st.quantile("weight", 0.3),
    st.linear_regression("score", ["age", "smokes", "weight"]),
    st.linear_regression("score", ["sex", "age"]),
    st.linear_regression("weight", "age", by="sex", where="not smokes"),
]


def looped(design: Design, aggregate: Any) -> list[int]:
    """An aggregate by one row after the other, expressions evaluated in Python."""
    derived: Mapping[str, Expression] = {
        name: read(text, SCHEMA, read_domain(name, bounds)) for name, (text, bounds) in design.derived
    }

    def value(row: Any, name: str) -> Any:
        return derived[name].value(row) if name in derived else read_cell(row[name], SCHEMA[name])

    def axis(name: str) -> Any:
        return groups_of(name, derived[name].domain if name in derived else SCHEMA[name])

    axes = [axis(name) for name in aggregate.by]
    soft = isinstance(aggregate, SoftPartition)
    shape = tuple(len(one) + soft for one in axes)
    found = np.zeros((int(np.prod(shape)), aggregate.parts if soft else 1), dtype=object)
    condition = None if aggregate.where is None else read(aggregate.where, SCHEMA)
    for row in TABLES["people"].to_pylist():
        places = [one.place(value(row, one.column)) for one in axes]
        if soft:  # a row without a group is in the last one
            places = [place if place >= 0 else len(one) for place, one in zip(places, axes, strict=True)]
        if (condition is not None and condition.value(row) is not True) or min(places, default=0) < 0:
            continue
        place = int(np.ravel_multi_index(places, shape)) if places else 0
        if isinstance(aggregate, SoftPartition):
            found[place] += divided([value(row, name) for name in aggregate.columns], aggregate.total)
        elif isinstance(aggregate, Sum):
            found[place] += value(row, aggregate.column) or 0
        elif isinstance(aggregate, Count):
            found[place] += value(row, str(aggregate.column)) is not None
        else:
            assert isinstance(aggregate, CellCounts)
            found[place] += 1
    return [int(number) for number in found.reshape(-1)]


def divided(values: list[int | None], total: int) -> Any:
    """What a row adds to the cells of a soft partition."""
    if None in values:
        return np.array([0] * (len(values) + 1) + [total], dtype=object)
    parts: list[int] = []
    for value in values:
        parts.append(min(int(value or 0), total - sum(parts)))
    return np.array([*parts, total - sum(parts), 0], dtype=object)


@pytest.fixture(scope="module")
def people(engine: EngineUnderTest) -> Any:
    return dataset(engine.load(TABLES["people"]), schema=SCHEMA)


@pytest.mark.slow
def test_measurements_are_those_of_a_loop(people: Any) -> None:
    design = design_of(ASKED, people)
    found = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    for slot in design.slots:
        numbers = [int(number) for number in np.asarray(found[slot.name]).reshape(-1)]
        assert numbers == looped(design, slot.aggregate), slot.name
