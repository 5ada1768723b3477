"""Variances, quantiles and regressions with bounds of their own: no unit moves a measurement further than claimed.

That of quantiles is `BoundedGroups`, whose cells are the groups of `by`.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from contracts.test_neighbours import refuse_beyond
from farthing.data import dataset
from farthing.errors import InvalidValue
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import QuantileSlot

SCHEMA: dict[str, Any] = {"ward": ["N", "S", "E"], "age": (0, 9), "bmi": (10.0, 40.0), "smoker": bool}
BOUNDS: list[dict[str, int]] = [
    {"max_rows": 3},
    {"rows_per_cell": 2, "max_cells": 2},
    {"rows_per_cell": 1, "max_cells": 9},
]
ASKED = {
    "variance": lambda **how: ft.variance("bmi", **how),
    "std": lambda **how: ft.std("age", **how),
    "median": lambda **how: ft.median("age", **how),
    "quantile": lambda **how: ft.quantile("bmi", 0.9, **how),
    "quantiles": lambda **how: ft.quantiles("age", [0.25, 0.5, 0.75], **how),
    "regression": lambda **how: ft.linear_regression("bmi", ["age", "smoker"], **how),
}


def some_rows(luck: random.Random, person: int, number: int) -> list[dict[str, Any]]:
    return [
        {
            "person": person,
            "ward": luck.choice(["N", "S", "E", "?", None]),
            "age": luck.choice([None, luck.randint(-2, 12)]),
            "bmi": luck.choice([None, float("nan"), luck.uniform(5, 50)]),
            "smoker": luck.choice([True, False, None]),
        }
        for _ in range(number)
    ]


KINDS = pa.schema(
    [
        ("person", pa.int64()), ("ward", pa.string()), ("age", pa.int64()), ("bmi", pa.float64()),
        ("smoker", pa.bool_()),
    ]
)  # fmt: skip


def people(rows: list[dict[str, Any]], **facts: Any) -> Any:
    return dataset(pa.Table.from_pylist(rows, schema=KINDS), unit="person", schema=SCHEMA, **facts)


def exact_of(design: Design, rows: Any) -> dict[str, Any]:
    whole = rows.derive(**dict(design.derived)) if design.derived else rows
    return whole.exact({slot.name: slot.aggregate for slot in design.slots}, one_sample=True)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", ASKED)
def test_a_unit_moves_no_measurement_of_a_bounded_statistic_too_far(kind: str, neighbours: str) -> None:
    """Units of many rows, so that bounds bite; what they add is compared with nothing, and with each other's."""
    luck = random.Random(f"{kind} {neighbours}")
    worlds = [people(some_rows(luck, 1, 25), neighbours=neighbours) for _ in range(3)]
    for how in BOUNDS:
        asked = ASKED[kind](**how, by="ward")
        design = design_of([asked], worlds[0])
        found = [exact_of(design, each) for each in worlds]
        for slot in design.slots:
            assert slot.sensitivity.l1 > 0
            some = [slot.merged(slot.own(each)) for each in found]
            alone = [(each, each * 0) for each in some]
            for before, after in pairwise(some) if neighbours == "replace" else alone:
                refuse_beyond(before, after, slot.sensitivity, f"{slot.name} of {asked}")
            if isinstance(slot, QuantileSlot):
                assert max(each.sum() for each in some) <= slot.max_rows


@pytest.mark.parametrize(
    ("how", "rows"),
    [({"max_rows": 3}, 3), ({"rows_per_cell": 2, "max_cells": 2}, 4), ({"rows_per_cell": 2, "max_cells": 9}, 6)],
)
def test_choices_of_quantiles_are_priced_for_all_rows_that_a_unit_may_bring(how: dict[str, int], rows: int) -> None:
    table = people([])
    (slot,) = design_of([ft.median("age", by="ward", **how)], table).slots
    assert isinstance(slot, QuantileSlot)
    assert (slot.max_rows, slot.sensitivity.l1) == (rows, rows)
    (grouped,) = design_of([ft.median("age", by="ward", **how)], table.group_privacy(2)).slots
    assert isinstance(grouped, QuantileSlot)
    assert (grouped.max_rows, grouped.sensitivity.l1) == (2 * rows, 2 * rows)
    (replaced,) = design_of([ft.median("age", by="ward", **how)], people([], neighbours="replace")).slots
    assert isinstance(replaced, QuantileSlot)
    assert (replaced.max_rows, replaced.sensitivity.l1) == (rows, 2 * rows)


def test_entries_of_a_regression_move_as_far_as_the_rows_that_a_unit_may_bring() -> None:
    table = people([])
    one = design_of([ft.linear_regression("bmi", "age", max_rows=1)], table)
    for how, times in (({"max_rows": 3}, 3), ({"rows_per_cell": 2, "max_cells": 1}, 2)):
        more = design_of([ft.linear_regression("bmi", "age", **how)], table)
        for first, slot in zip(one.slots, more.slots, strict=True):
            assert slot.sensitivity.l1 == times * first.sensitivity.l1
            assert slot.sensitivity.l2_squared == times**2 * first.sensitivity.l2_squared


@pytest.mark.slow
@pytest.mark.parametrize("how", BOUNDS)
def test_all_entries_of_a_bounded_regression_are_of_the_same_rows(how: dict[str, int]) -> None:
    """Every row has age = 1 + 2 smoker, so that any rows lie on one line; rows chosen anew for an entry would not."""
    luck = random.Random(5)
    rows = [
        {"person": person, "ward": luck.choice("NSE"), "age": 1 + 2 * smoker, "bmi": 20.0, "smoker": bool(smoker)}
        for person in range(6)
        for smoker in [luck.randrange(2) for _ in range(20)]
    ]
    rows += [{**row, "smoker": None} for row in rows]  # which take the place of none that count
    table = people(rows)
    asked = ft.linear_regression("age", ["smoker"], by="ward", **how)
    design = design_of([asked], table)
    found = exact_of(design, table)
    (query,) = table.derive(**dict(design.derived))._queries(
        {slot.name: slot.aggregate for slot in design.slots}, apart=False
    )
    assert set(query.aggregates) == set(found)
    number, smokers, ages, products = (np.asarray(found[slot.name]).astype(float) * slot.step for slot in design.slots)
    assert number.sum() > 0
    # With u = 2 smoker - 1 and v = (age - 4.5) / 4.5: age = 2 + u, so that v = (u - 2.5) / 4.5.
    assert ages == pytest.approx((smokers - 2.5 * number) / 4.5, abs=1e-4)
    assert products == pytest.approx((number - 2.5 * smokers) / 4.5, abs=1e-4)


@pytest.mark.slow
def test_rows_of_a_quantile_are_cut_by_group_and_not_by_value() -> None:
    rows = [{"person": 1, "ward": "N", "age": age, "bmi": 20.0, "smoker": True} for age in range(10)]
    rows += [{**rows[0], "ward": "S"}, {**rows[0], "ward": "E"}]
    table = people(rows)
    for how, kept in (
        ({"rows_per_cell": 4, "max_cells": 3}, [4, 1, 1]),
        ({"rows_per_cell": 20, "max_cells": 3}, [10, 1, 1]),
    ):
        (slot,) = design_of([ft.median("age", by="ward", **how)], table).slots
        assert table.exact({"rows": slot.aggregate})["rows"].sum(axis=1).tolist() == kept
    (slot,) = design_of([ft.median("age", by="ward", rows_per_cell=4, max_cells=1)], table).slots
    found = table.exact({"rows": slot.aggregate})["rows"].sum(axis=1).tolist()
    assert sorted(found)[:2] == [0, 0] and sum(found) in (1, 4)


def test_bounds_of_these_statistics_are_refused_in_the_same_words() -> None:
    for make in ASKED.values():
        with pytest.raises(InvalidValue, match="max_cells=None: must be given"):
            make(by="ward", rows_per_cell=2)
        with pytest.raises(InvalidValue, match="max_rows=3: must be the only bound"):
            make(max_rows=3, rows_per_cell=2, max_cells=1)
        made = make(by="ward", rows_per_cell=2, max_cells=1)
        assert "rows_per_cell=2" in repr(made) and "max_cells=1" in repr(made)
