"""Codes back to values: what the schema says, and no more exact than the cells are."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing.data import Schema, dataset
from farthing.data.coded_rows import coded_axes, coded_rows
from farthing.study.synthesis.cell_values import decoded

SCHEMA: dict[str, Any] = {
    "sex": ["F", "M"], "grade": [3, 1], "smoker": bool, "age": (0, 110), "income": (0, 250_000), "bmi": (10.0, 60.0),
    "tiny": (0.0, 1e-6), "wide": (-1e12, 1e12), "born": (date(1900, 1, 1), date(2020, 1, 1)),
    "day": (date(2020, 1, 1), date(2020, 1, 9)), "fixed": (1.5, 1.5),
}  # fmt: skip
TYPES = {
    "sex": pa.string(), "grade": pa.int64(), "smoker": pa.bool_(), "age": pa.int64(), "income": pa.int64(),
    "bmi": pa.float64(), "tiny": pa.float64(), "wide": pa.float64(), "born": pa.date32(), "day": pa.date32(),
    "fixed": pa.float64(),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("bins", [{}, {"bmi": [18.5, 25.0], "age": 7, "income": [0, 1, 1000], "born": 3}])
def test_decoded_rows_have_the_codes_they_were_made_of(bins: Any) -> None:
    schema = Schema.read(SCHEMA)
    axes = coded_axes(schema, bins=bins)
    luck = np.random.default_rng(4)
    codes = np.stack([luck.integers(0, len(axis), 3000) for axis in axes], axis=1)
    table = decoded(codes, axes, luck)
    assert {field.name: field.type for field in table.schema} == TYPES
    again, counts = coded_rows(dataset(table, schema=schema), axes)
    assert sorted(np.repeat(again, counts, axis=0).tolist()) == sorted(codes.tolist())


def test_values_within_a_cell_are_spread_over_it() -> None:
    (axis,) = coded_axes(Schema.read({"income": (0, 1000)}), bins={"income": [0, 1, 11, 1000]}, missing=False)
    values = decoded(np.full((4000, 1), 1), [axis], np.random.default_rng(1))["income"].to_pylist()
    assert sorted(set(values)) == list(range(1, 11))
    (last,) = {max(decoded(np.full((99999, 1), 2), [axis], np.random.default_rng(1))["income"].to_pylist())}
    assert last == 1000  # the last cell holds its upper edge


def test_reals_have_few_decimals() -> None:
    (axis,) = coded_axes(Schema.read({"bmi": (10.0, 60.0)}), bins={"bmi": 10}, missing=False)
    values = decoded(np.zeros((500, 1), dtype=int), [axis], np.random.default_rng(1))["bmi"].to_pylist()
    assert all(len(repr(value)) <= len("14.99") for value in values) and len(set(values)) > 100
