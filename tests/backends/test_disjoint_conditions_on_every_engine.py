"""Cells of disjoint conditions are the same numbers on every engine, rows with missing values included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from backends.engine_under_test import EngineUnderTest
from farthing.statistics.design import design_of
from farthing.statistics.moments.moment_measurements import PartitionSlot

SCHEMA = {"age": (0, 99), "bmi": (10.0, 60.0), "income": (0, 90_000), "sex": ["F", "M"]}
CONDITIONS = ["age < 30 and sex = 'F'", "age between 30 and 59", "age >= 60", "age is null and bmi >= 25.5"]
ASKED = [
    *(ft.std("income", where=where) for where in CONDITIONS),
    *(ft.sum("bmi", where=where, by="sex") for where in CONDITIONS),
    *(ft.median("income", where=where) for where in CONDITIONS),
]


def rows() -> pa.Table:
    draw, size = np.random.default_rng(8), 400

    def some(values: Any) -> pa.Array:
        return pa.array(values.tolist(), mask=draw.random(size) < 0.15)

    return pa.table(
        {
            "age": some(draw.integers(0, 100, size)),
            "bmi": some(draw.uniform(10, 60, size)),
            "income": some(draw.integers(0, 90_001, size)),
            "sex": some(draw.choice(["F", "M"], size)),
        }
    )


@pytest.mark.slow
def test_cells_of_disjoint_conditions_are_the_same_on_every_engine(engine: EngineUnderTest) -> None:
    table = rows()
    here, there = (ft.dataset(source, schema=SCHEMA) for source in (table, engine.load(table)))
    design = design_of(ASKED, here)
    assert [slot.cells for slot in design.slots] == [20, 8, 4]
    asked = {slot.name: slot.aggregate for slot in design.slots}
    found = there.derive(**dict(design.derived)).exact(asked)
    wanted = here.derive(**dict(design.derived)).exact(asked)
    for name in asked:
        assert np.array_equal(found[name], wanted[name]), name
    pairs = zip(table["age"].to_pylist(), table["income"].to_pylist(), strict=True)
    old = [age for age, income in pairs if age is not None and age >= 60 and income is not None]
    slot = design.slots[0]
    assert isinstance(slot, PartitionSlot)
    # The third of five conditions (the last: none of them) has four numbers, of which the last is for missing incomes.
    assert found[slot.name].reshape(5, 4)[2, :3].sum() == slot.total * len(old) > 0
