"""Are these the same people? The sketch of a table is the same wherever the table lies."""

from __future__ import annotations

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from farthing.data import dataset
from farthing.data.unit_sketch import UnitSketch

# Nothing is drawn: a sketch is a matter of rows alone.
pytestmark = pytest.mark.draws(false_alarm=0, miss=0)

NUMBERS = [*range(-20, 300), 10**14]
TEXT = [*(f"{number:04d}" for number in range(100)), " ab ", "AB", "äb", "", "x" * 12_000, "12.50", "1_000", None]


def test_sketches_agree_with_those_of_the_same_rows_in_memory(engine: EngineUnderTest) -> None:
    rows = {"a": NUMBERS, "b": [number / 8 for number in range(len(NUMBERS))], "c": (TEXT * 3)[: len(NUMBERS)]}
    table = pa.table({"b": rows["b"], "c": rows["c"], "a": rows["a"]})
    loaded = engine.load(table)
    for unit in ("a", "c", None):
        facts = {"unit": unit, "max_rows": 5} if unit else {}
        schema = {"a": (0, 9), "b": (0.0, 99.0), "c": ["AB"]}
        here, there = (dataset(each, schema=schema, **facts) for each in (table, loaded))
        assert UnitSketch.of(there) == UnitSketch.of(here), unit
