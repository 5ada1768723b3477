"""Soft partitions: no row moves one by more than it may, whatever is in it, and the claim is attained."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.data import Dataset, Sensitivity, connection, dataset
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.aggregates.soft_partitions import SoftPartition, sensitivity_of_shares
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.errors import InvalidValue
from farthing.statistics import constructors
from farthing.statistics.design import Design, design_of
from farthing.statistics.moments.moment_measurements import PartitionSlot


def norms(difference: np.ndarray[Any, Any]) -> tuple[int, int, int, int]:
    sizes = [abs(int(number)) for number in difference.reshape(-1)]
    return sum(1 for size in sizes if size), sum(sizes), sum(size**2 for size in sizes), max(sizes)


def claimed(sensitivity: Sensitivity) -> tuple[int, int, int, int]:
    return sensitivity.l0, sensitivity.l1, sensitivity.l2_squared, sensitivity.linf


def rows_of(cells: int, parts: int, total: int) -> list[np.ndarray[Any, Any]]:
    """Every vector that a row may add: nothing, or the total divided among the parts of one cell."""
    found = [np.zeros((cells, parts), dtype=np.int64)]
    for cell, division in itertools.product(range(cells), itertools.product(range(total + 1), repeat=parts)):
        if sum(division) == total:
            vector = np.zeros((cells, parts), dtype=np.int64)
            vector[cell] = division
            found.append(vector)
    return found


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("cells", "parts", "total", "rows"), [(1, 1, 3, 2), (1, 3, 2, 1), (2, 2, 3, 1), (2, 3, 2, 2)])
def test_sensitivity_of_shares_is_sound_and_tight(
    cells: int, parts: int, total: int, rows: int, neighbours: str
) -> None:
    """Against all pairs of sums of `rows` vectors; l0 is a bound, the others are attained."""
    vectors = rows_of(cells, parts, total)
    sums = [sum(chosen) for chosen in itertools.combinations_with_replacement(vectors, rows)]
    nothing = [np.zeros((cells, parts), dtype=np.int64)]
    pairs = itertools.product(sums, sums if neighbours == "replace" else nothing)
    most = np.max([norms(one - other) for one, other in pairs], axis=0)
    claim = claimed(sensitivity_of_shares(cells, parts, total, rows, neighbours))
    assert claim[0] >= most[0]
    assert claim[1:] == tuple(most[1:])


def test_more_rows_and_larger_totals_never_move_less_and_nothing_moves_nothing() -> None:
    for neighbours in ("add-remove", "replace"):
        base = claimed(sensitivity_of_shares(2, 3, 5, 2, neighbours))
        for more in ((3, 3, 5, 2), (2, 4, 5, 2), (2, 3, 6, 2), (2, 3, 5, 3)):
            assert all(a >= b for a, b in zip(claimed(sensitivity_of_shares(*more, neighbours)), base, strict=True))
        assert claimed(sensitivity_of_shares(2, 3, 5, 0, neighbours)) == (0, 0, 0, 0)


ODD = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, 10.0, 60.0, 9.999, 60.001, 35.0, 5e-324]
AGES = [None, -(2**62), -1, 0, 17, 17 + 36, 90, 91, 2**62]
SCHEMA = {"bmi": (10.0, 60.0), "age": (17, 90), "wide": (0, 2**40), "smoker": bool, "sex": ["F", "M"]}
TYPES = pa.schema(
    [("bmi", pa.float64()), ("age", pa.int64()), ("wide", pa.int64()), ("smoker", pa.bool_()), ("sex", pa.string())]
)
ROWS = [
    {"bmi": bmi, "age": age, "wide": age, "smoker": smoker, "sex": sex}
    for (bmi, age), smoker, sex in zip(
        itertools.product(ODD, AGES), itertools.cycle([True, False, None]), itertools.cycle("FMX?"), strict=False
    )
]
ASKED = [
    constructors.variance("bmi"),
    constructors.std("age", by=["sex", "smoker"]),
    constructors.mean("age"),
    constructors.variance("wide"),
    constructors.mean("smoker"),
    constructors.mean("wide", where="sex = 'F'"),
]


def table_of(rows: list[dict[str, Any]], **options: Any) -> Dataset:
    return dataset(pa.Table.from_pylist(rows, schema=TYPES), schema=SCHEMA, **options)


CONNECTION = connection(threads=1)


@functools.cache
def asked_of_neighbours(neighbours: str) -> tuple[Design, list[tuple[Any, str]]]:
    """What is asked, and its SQL: made once and run on every table, for making it takes longer than running it."""
    put(ROWS)
    with quiet():
        table = CONNECTION.table("people")
    people = dataset(table, schema=SCHEMA, neighbours=neighbours)
    design = design_of(ASKED, people)
    prepared = people.derive(**dict(design.derived))
    groups = aggregate_queries({slot.name: slot.aggregate for slot in design.slots}, prepared.schema)
    return design, [(group, prepared._sql(group, "no sample")) for group in groups]


def put(rows: list[dict[str, Any]]) -> None:
    CONNECTION.con.register("people", pa.Table.from_pylist(rows, schema=TYPES))


def exact_of(rows: list[dict[str, Any]], neighbours: str) -> dict[str, Any]:
    queries = asked_of_neighbours(neighbours)[1]
    put(rows)
    found: dict[str, Any] = {}
    for group, sql in queries:
        found.update(group.answers(columns_of_rows(CONNECTION.con.execute(sql).fetchall(), group.bits)))
    return found


@pytest.mark.slow
def test_the_sql_that_is_made_once_gives_what_a_dataset_gives() -> None:
    people = table_of(ROWS)
    design = design_of(ASKED, people)
    exact = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    assert {name: np.asarray(own).tolist() for name, own in exact_of(ROWS, "add-remove").items()} == {
        name: np.asarray(own).tolist() for name, own in exact.items()
    }


@pytest.mark.slow
def test_the_numbers_of_every_row_add_up_to_the_total() -> None:
    """Each row by itself, on the engine: missing, infinite, not a number, out of bounds; without a group too."""
    design = asked_of_neighbours("add-remove")[0]
    assert all(isinstance(slot, PartitionSlot) for slot in design.slots) and len(design.slots) == len(ASKED)
    for row in ROWS[:: max(1, len(ROWS) // 40)]:
        alone = exact_of([row], "add-remove")
        for slot in design.slots:
            numbers = np.asarray(alone[slot.name])
            inside = slot.aggregate.where is None or row["sex"] == "F"
            assert numbers.min() >= 0
            assert numbers.sum() == slot.total * inside, (slot.name, row)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_sums_are_those_of_the_functions_and_every_row_is_in_one_group() -> None:
    people = table_of(ROWS)
    design = design_of(ASKED, people)
    exact = people.derive(**dict(design.derived)).exact({slot.name: slot.aggregate for slot in design.slots})
    for slot in design.slots:
        assert isinstance(slot, PartitionSlot)
        flat = np.asarray(exact[slot.name]).reshape(-1)
        counted = flat[slot.numbers_of_groups].sum(axis=1)
        assert np.all(counted % slot.total == 0)
        whole = sum(1 for row in ROWS if slot.aggregate.where is None or row["sex"] == "F")
        assert counted.sum() == whole * slot.total
    present = [row["bmi"] for row in ROWS if row["bmi"] is not None and not math.isnan(row["bmi"])]
    x = (np.clip(present, 10.0, 60.0) - 10.0) / 50.0
    squares = np.asarray(exact["thirds of bmi"]) / 2**20
    assert squares[:3] == pytest.approx([np.sum(x**2), np.sum((1 - x) ** 2), np.sum(2 * x * (1 - x))], abs=1e-3)
    assert squares[3] == len(ROWS) - len(present)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(range(len(ROWS))), min_size=1, max_size=4),
    st.lists(st.sampled_from(range(len(ROWS))), min_size=1, max_size=2),
    st.sampled_from(["add-remove", "replace"]),
)
@settings(max_examples=12)
def test_no_neighbour_is_further_away_than_claimed(stay: list[int], change: list[int], neighbours: str) -> None:
    others = change[-1:] if neighbours == "replace" else []
    before, after = (exact_of([ROWS[place] for place in who], neighbours) for who in (stay + change[:1], stay + others))
    design = asked_of_neighbours(neighbours)[0]
    for slot in design.slots:
        moved = norms(np.asarray(before[slot.name]) - np.asarray(after[slot.name]))
        assert all(a <= b for a, b in zip(moved, claimed(slot.sensitivity), strict=True)), slot.name


def test_a_second_column_is_cut_to_what_the_first_leaves() -> None:
    both = dataset(pa.table({"a": [4, 5, 1, None], "b": [3, 5, 2, 1]}), schema={"a": (0, 5), "b": (0, 5)})
    found = both.exact({"parts": SoftPartition(["a", "b"], 5)})["parts"]
    assert found.tolist() == [10, 3, 2, 5]


def test_what_is_no_part_is_refused() -> None:
    people = dataset(pa.table({"a": [1], "r": [1.0]}), schema={"a": (0, 6), "r": (0.0, 1.0)})
    for wrong in (SoftPartition("a", 5), SoftPartition("r", 5)):
        with pytest.raises(InvalidValue, match=r"0 \.\. 5"):
            people.sensitivity(wrong)
    for total in (0, -1, True, 1.5, 2**63):
        with pytest.raises(InvalidValue, match="total"):
            SoftPartition("a", total)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="at least one"):
        SoftPartition((), 5)


def test_sums_beyond_64_bits_are_whole() -> None:
    huge = 2**60
    people = dataset(pa.table({"a": [huge] * 20}), schema={"a": (0, huge)})
    assert people.exact({"parts": SoftPartition("a", huge)})["parts"].tolist() == [20 * huge, 0, 0]
