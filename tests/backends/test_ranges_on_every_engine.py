"""Ranges, cdfs of many cells and marginals: the same sums of cells on every engine, also where values are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from backends.engine_under_test import EngineUnderTest
from farthing.statistics.design import design_of

SCHEMA = {"age": (0, 99), "bmi": (10.0, 60.0), "sex": ["F", "M"], "smoker": bool}
ASKED = [
    ft.ranges("age", by="sex", where="bmi < 40"),
    ft.cdf("bmi", bins=200),
    ft.ranges("bmi", ranges=[(10.0, 25.0), (18.5, 60.0)]),
    ft.marginals(["sex", "age", "smoker"], bins={"age": [0, 18, 65, 99]}, where="bmi >= 12"),
]


def rows() -> pa.Table:
    draw, size = np.random.default_rng(8), 300

    def some(values: Any) -> pa.Array:
        return pa.array(values.tolist(), mask=draw.random(size) < 0.15)

    return pa.table(
        {
            "age": some(draw.integers(0, 100, size)),
            "bmi": some(draw.uniform(10, 60, size)),
            "sex": some(draw.choice(["F", "M"], size)),
            "smoker": some(draw.random(size) < 0.3),
        }
    )


@pytest.mark.slow
def test_sums_of_cells_are_the_same_on_every_engine(engine: EngineUnderTest) -> None:
    table = rows()
    here, there = (ft.dataset(source, schema=SCHEMA) for source in (table, engine.load(table)))
    design = design_of(ASKED, here)
    asked = {name: part for slot in design.slots for name, part in slot.aggregates.items()}
    found, wanted = there.exact(asked), here.exact(asked)
    for slot in design.slots:
        for kind, transform in slot.transforms.items():
            assert np.array_equal(transform.apply(slot.own(found)), transform.apply(slot.own(wanted))), kind
    complete = [
        row
        for row in table.to_pylist()
        if None not in (row["sex"], row["age"], row["smoker"]) and (row["bmi"] or 0) >= 12
    ]
    (marginal,) = design.output(ASKED[3].name).slots
    rest = table.num_rows - len(complete)
    for name, part in marginal.aggregates.items():  # tables count complete rows; the others are counted by each column
        assert int(np.sum(found[name])) == (rest if part.where.startswith("case when") else len(complete))
    assert rest and any(int(np.sum(found[name])) == rest for name in marginal.aggregates)
