"""Distinct rows as codes, on every engine: those of a loop over the rows in Python, hostile cells included."""

from __future__ import annotations

from typing import Any

import pytest

from backends.engine_under_test import EngineUnderTest
from backends.tables import SCHEMAS, TABLES
from farthing.data import dataset
from farthing.data.coded_rows import CodedAxis, coded_axes, coded_rows
from farthing.data.expressions import read_cell


def _code(value: Any, axis: CodedAxis) -> int:
    read = read_cell(value, axis.domain)
    if read is None:
        return axis.present
    if axis.edges is None:
        return list(axis.labels or ()).index(read)
    return max(place for place in range(axis.present) if place == 0 or axis.edges[place] <= read)


@pytest.mark.parametrize("bins", [{}, {"age": 7, "score": [-2.5, 0, 0.1, 0.5], "born": 5}])
def test_coded_rows_are_those_of_a_loop(engine: EngineUnderTest, bins: Any) -> None:
    schema = {name: domain for name, domain in SCHEMAS["people"].items() if name not in ("visits", "pains")}
    people = dataset(engine.load(TABLES["people"]), schema=schema)
    axes = coded_axes(people.schema, bins=bins)
    codes, counts = coded_rows(people, axes)
    found = sorted(row for row, count in zip(codes.tolist(), counts.tolist(), strict=True) for _ in range(count))
    expected = [[_code(row[axis.column], axis) for axis in axes] for row in TABLES["people"].to_pylist()]
    assert found == sorted(expected)
    assert len({tuple(row) for row in codes.tolist()}) == len(counts)
