"""Parquet files: what their types alone decide, before anything is read or paid for."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import farthing as ft
from farthing.data.expressions.ibis_compiler import read_cell
from farthing.data.schema import Reals
from farthing.data.steward_check import check
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


NAN, INF = math.nan, math.inf
CELLS: dict[str, list[float | None]] = {
    "one number": [1.0] * 20 + [NAN] * 10,
    "two numbers": [1.0] * 20 + [NAN] * 10 + [2.0],  # DuckDB 2.0 takes every cell for a number
    "beyond the bounds": [-9.0, 70.0, NAN, NAN, 5.0, None],
    "infinities": [INF, NAN, -INF, 3.0, NAN],
    "nothing else": [NAN] * 5,
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("kind", [pyarrow.float64(), pyarrow.float32()], ids=str)
@pytest.mark.parametrize("options", [{}, {"row_group_size": 4}, {"write_statistics": False}], ids=str)
def test_no_cell_is_read_by_what_the_file_says_of_others(
    tmp_path: Path, cells: list[float | None], kind: pyarrow.DataType, options: dict[str, Any]
) -> None:
    path, domain = str(tmp_path / "cells.parquet"), Reals(0.0, 60.0)
    column = pyarrow.array(cells, kind, from_pandas=False)
    pyarrow.parquet.write_table(pyarrow.table({"x": column}), path, **options)
    dataset = ft.dataset(path, schema={"x": (0.0, 60.0)})
    read = [read_cell(cell, domain) for cell in column.to_pylist()]
    for where, holds in {
        "x is null": lambda x: x is None,
        "x is not null": lambda x: x is not None,
        "x >= 55": lambda x: x is not None and x >= 55,
        "x < 55": lambda x: x is not None and x < 55,
        "not (x >= 55)": lambda x: x is not None and not x >= 55,
    }.items():
        counted = dataset.where(where).exact({"n": ft.data.Count()})["n"]
        assert int(counted) == sum(map(holds, read)), where
    assert next(each.missing for each in check(dataset).columns) == sum(one is None for one in read)


def test_a_row_more_moves_a_count_of_missing_cells_by_one_at_most(tmp_path: Path) -> None:
    counts = []
    for name, cells in (("before", [1.0] * 50 + [NAN] * 100), ("after", [1.0] * 50 + [NAN] * 100 + [2.0])):
        path = str(tmp_path / f"{name}.parquet")
        pyarrow.parquet.write_table(pyarrow.table({"x": pyarrow.array(cells, from_pandas=False)}), path)
        dataset = ft.dataset(path, schema={"x": (0.0, 60.0)})
        counts.append(int(dataset.where("x is null").exact({"n": ft.data.Count()})["n"]))
    assert counts == [100, 100]
