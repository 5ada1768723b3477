"""What is no number is missing, whatever else its column holds: engines keep the extremes of a column, without NaN."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import farthing as ft
from backends.engine_under_test import EngineUnderTest


@pytest.mark.parametrize("more", [[], [2.0], [59.0]], ids=["one number", "two numbers", "a large one"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_a_row_more_changes_no_other_row(engine: EngineUnderTest, more: list[float], kind: pa.DataType) -> None:
    table = pa.table({"x": pa.array([1.0] * 30 + [math.nan] * 20 + more, kind, from_pandas=False)})
    dataset = ft.dataset(engine.load(table), schema={"x": (0.0, 60.0)})

    def counted(where: str) -> int:
        return int(dataset.where(where).exact({"n": ft.data.Count()})["n"])

    assert counted("x is null") == 20
    assert counted("x is not null") == 30 + len(more)
    assert counted("x >= 55") == sum(number >= 55 for number in more)
