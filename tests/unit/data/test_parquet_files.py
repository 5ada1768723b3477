"""Parquet files: what their types alone decide, before anything is read or paid for."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.errors import InvalidValue

SCHEMA: dict[str, Any] = {"day": (date(2024, 1, 1), date(2024, 12, 31))}


def written(folder: Path, unit: str, last: int) -> str:
    moments = pyarrow.array([0, last], pyarrow.int64()).cast(pyarrow.timestamp(unit), safe=False)
    path = str(folder / f"{unit}.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"day": moments, "x": [1, 2]}), path)
    return path


@pytest.mark.parametrize("last", [1, 2**62])
def test_milliseconds_are_refused_by_their_type_whatever_they_hold(tmp_path: Path, last: int) -> None:
    path = written(tmp_path, "ms", last)
    # A column that no query names stops them too: DuckDB converts what the footer says of its least and largest.
    for schema in (SCHEMA, {"day": ft.data.unknown("date")}, {"x": (0, 9)}):
        with pytest.raises(InvalidValue, match="microseconds"):
            ft.dataset(path, schema=schema)


@pytest.mark.parametrize("size", [1, -1])
def test_milliseconds_in_lists_and_structs_are_refused_too(tmp_path: Path, size: int) -> None:
    kind = pyarrow.list_(pyarrow.timestamp("ms"), size)
    path = str(tmp_path / "lists.parquet")
    for cells in (pyarrow.array([[0]], kind), pyarrow.array([{"a": [0]}], pyarrow.struct({"a": kind}))):
        pyarrow.parquet.write_table(pyarrow.table({"days": cells, "x": [1]}), path)
        with pytest.raises(InvalidValue, match="microseconds"):
            ft.dataset(path, schema={"x": (0, 9)})


def test_other_units_of_time_are_read(tmp_path: Path) -> None:
    for unit in ("us", "ns"):
        assert ft.dataset(written(tmp_path, unit, 2**62), schema=SCHEMA).schema


def test_a_frame_may_have_milliseconds() -> None:
    moments = pyarrow.array([0, 2**62], pyarrow.int64()).cast(pyarrow.timestamp("ms"), safe=False)
    assert ft.dataset(pyarrow.table({"day": moments}), schema=SCHEMA).schema
