"""A unit moves an aggregate with a bound of its own by no more than claimed, however many rows it has.

Here the bounds bite: units have more rows, in more cells, than any bound keeps. What is kept is drawn anew in every
query, so a world of the units that change is compared with the world without them, for every outcome of the draw; that
nobody else's rows matter is seen in worlds in which nothing has to be left out.
"""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.test_neighbours import (
    CHAINS,
    CONNECTION,
    SCHEMA,
    a_row,
    a_visit,
    answers,
    chains,
    keep,
    put,
    refuse_beyond,
    run,
)
from farthing.data import (
    Bounded,
    CellCounts,
    Count,
    Dataset,
    Histogram,
    Moments,
    SoftPartition,
    Sum,
    UnitBound,
    dataset,
)
from farthing.data.aggregates.unit_bounds import sensitivity_of_cells
from farthing.data.engines.duckdb import quiet
from farthing.data.stability import ADD_REMOVE, REPLACE, Sensitivity, sensitivity_of_rows
from farthing.errors import InvalidValue

MANY = 12  # rows of one unit: more than any bound keeps
PAIRS = 4

bounds = st.one_of(
    st.builds(UnitBound, rows_per_cell=st.integers(1, 3), max_cells=st.integers(1, 3)),
    st.builds(UnitBound, rows_per_cell=st.just(1), max_cells=st.integers(1, 4)),
    st.builds(UnitBound, max_rows=st.integers(1, 4)),
)


def aggregates_of(people: Dataset) -> list[Any]:
    """Counts and sums whose cells a row is in one of."""
    whole = [Count(by="smoker"), Sum("age", by="smoker", grid=2**-3), Histogram("day", cells=5)]
    if "sex" not in people.schema:  # one row a unit
        return whole
    whole += [
        Count(),
        Count("age", by="sex"),
        CellCounts(["sex", "smoker"]),
        CellCounts(["age"]),
        Histogram("day", cells=5, by="sex"),
        Histogram("age", cells=4, where="smoker"),
        Sum("age", by=["sex"], where="smoker"),
        Moments("age", powers=(0, 1, 2), by="smoker"),
    ]
    if people.schema["age"].lower >= 0:  # type: ignore[union-attr]
        whole.append(SoftPartition("age", 40, by="sex", complete=False))
    return whole


@pytest.mark.slow
@settings(max_examples=max(12, CHAINS // 3))  # a fault in one of 3 is missed by one run in 150
@given(
    chains(),
    st.sampled_from([ADD_REMOVE, REPLACE]),
    st.sampled_from([1, 1, 2]),
    st.lists(st.tuples(st.integers(0, 30), bounds), min_size=3, max_size=4),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_no_unit_moves_a_bounded_aggregate_beyond_its_sensitivity(
    chain: list[tuple[str, Any]], neighbours: str, group: int, chosen: list[tuple[int, UnitBound]], own: bool, seed: int
) -> None:
    luck = random.Random(seed)
    needed = own or any(name in ("join", "per_unit") for name, _ in chain)  # these need the dataset's own bound

    def units() -> tuple[dict[int, Any], dict[int, Any]]:
        rows = {unit: [a_row(luck) for _ in range(luck.randint(1, MANY))] for unit in range(100, 100 + group)}
        return rows, {unit: [a_visit(luck) for _ in range(luck.randint(0, 4))] for unit in rows}

    empty: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
    worlds = [world for _ in range(PAIRS) for world in (units(), units() if neighbours == REPLACE else empty)]
    tables = CONNECTION.con
    put(tables, worlds[0])
    with quiet():
        people, second = CONNECTION.table("people"), CONNECTION.table("visits")
    facts: dict[str, Any] = {"unit": "person", "neighbours": neighbours, "max_rows": 3 if needed else None}
    base = dataset(people, schema=SCHEMA, **facts)
    other = dataset(second, schema={"visits": (-1, 5), "ward": ["N", "S"]}, **facts)
    whole = run(chain, base, other).group_privacy(group)
    possible = aggregates_of(whole)
    wanted = {
        f"{place} {bound}": Bounded(possible[number % len(possible)], bound)
        for place, (number, bound) in enumerate(chosen)
    }
    queries = [(query, whole._sql(query, "no sample")) for query in whole._queries(wanted)]
    claims = {name: whole.sensitivity(aggregate) for name, aggregate in wanted.items()}
    keep(tables, worlds)
    for number, (_, sql) in enumerate(queries):
        tables.execute(f"prepare query_{number} as {sql}")
    for number in range(0, len(worlds), 2):
        before, after = (answers(tables, queries, world) for world in (number, number + 1))
        for name, claim in claims.items():
            refuse_beyond(before[name], after[name], claim, f"{name} of {wanted[name]} after {chain}")


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_sensitivity_of_cells_is_sound_and_tight(
    cells: int, kept: int, rows: int, group: int, width: int, replaces: bool
) -> None:
    """Against every pair of units at the corners of what they may add; with a group, all of its units alike."""
    ends = [(-width, 1)]
    values = [(0,), (-width * rows,), (rows,)]
    possible = set()
    for places in (each for size in range(min(kept, cells) + 1) for each in combinations(range(cells), size)):
        for chosen in product(values, repeat=len(places)):
            vector = [0] * cells
            for place, value in zip(places, chosen, strict=True):
                vector[place] = value[0]
            possible.add(tuple(vector))
    added, replaced = (sensitivity_of_rows(1, ends, rows, each) for each in (ADD_REMOVE, REPLACE))
    neighbours = REPLACE if replaces else ADD_REMOVE
    claim = sensitivity_of_cells(cells, kept, added, replaced, group, neighbours)
    changes = [
        [group * abs(a - b) for a, b in zip(one, other, strict=True)]
        for one in possible
        for other in (possible if replaces else {(0,) * cells})
    ]
    assert max(max(change) for change in changes) == claim.linf
    assert max(sum(change) for change in changes) == claim.l1
    assert max(sum(each * each for each in change) for change in changes) == claim.l2_squared
    assert max(sum(1 for each in change if each) for change in changes) <= claim.l0


def table_of_people(size: int = 40) -> Any:
    import pyarrow as pa

    luck = random.Random(7)
    rows = [(luck.randrange(size), luck.choice(["N", "S", "E", "?"]), luck.randint(0, 9)) for _ in range(12 * size)]
    names = ("person", "ward", "age")
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)}), rows


def counted(table: Any, aggregate: Any, **facts: Any) -> list[int]:
    people = dataset(table, unit="person", schema={"ward": ["N", "S", "E"], "age": (0, 9)}, **facts)
    return people.exact({"people": aggregate})["people"].tolist()


def test_people_in_cells_are_those_of_the_table_whatever_rows_the_dataset_keeps() -> None:
    table, rows = table_of_people()
    truth = [len({person for person, ward, _ in rows if ward == each}) for each in ("N", "S", "E")]
    people = Bounded(Count(by="ward"), UnitBound(rows_per_cell=1, max_cells=3))
    assert counted(table, people) == counted(table, people, max_rows=1) == truth


def test_conditions_apply_before_cells_are_chosen() -> None:
    """Everybody with a row that meets the condition is in its cell: no other cell takes its place."""
    table, rows = table_of_people()
    truth = len({person for person, ward, age in rows if ward == "N" and age >= 5})
    people = Bounded(Count(by="ward", where="ward = 'N' and age >= 5"), UnitBound(rows_per_cell=1, max_cells=1))
    assert counted(table, people) == [truth, 0, 0]


def test_rows_outside_the_listed_categories_use_up_no_cell() -> None:
    import pyarrow as pa

    table = pa.table({"person": [1] * 9, "ward": ["?"] * 8 + ["S"], "age": [3] * 9})
    people = Bounded(Count(by="ward"), UnitBound(rows_per_cell=1, max_cells=1))
    assert counted(table, people) == [0, 1, 0]


def test_of_one_cell_each_the_cells_add_up_to_the_people() -> None:
    table, rows = table_of_people()
    people = Bounded(Count(by="ward"), UnitBound(rows_per_cell=1, max_cells=1))
    assert sum(counted(table, people)) == len({person for person, ward, _ in rows if ward != "?"})


def test_rows_in_a_cell_are_cut_where_they_are_too_many_and_nowhere_else() -> None:
    table, rows = table_of_people()
    each = np.zeros((40, 3), dtype=int)
    for person, ward, _ in rows:
        if ward != "?":
            each[person, "NSE".index(ward)] += 1
    bounded = Bounded(Count(by="ward"), UnitBound(rows_per_cell=2, max_cells=3))
    assert counted(table, bounded) == np.minimum(each, 2).sum(axis=0).tolist()


def test_the_upper_bound_of_a_column_is_no_cell_of_its_own() -> None:
    import pyarrow as pa

    table = pa.table({"person": [1, 1], "age": [0.75, 1.0]})
    people = dataset(table, unit="person", schema={"age": (0.0, 1.0)})
    once = Bounded(Histogram("age", cells=2), UnitBound(rows_per_cell=1, max_cells=2))
    assert people.exact({"people": once})["people"].tolist() == [0, 1]


def test_without_a_bound_nothing_but_bounded_aggregates_is_read() -> None:
    table, _ = table_of_people()
    people = dataset(table, unit="person", schema={"ward": ["N", "S", "E"]})
    once = Bounded(Count(), UnitBound(rows_per_cell=1, max_cells=1))
    for refused in (
        lambda: people.exact({"rows": Count()}),
        lambda: people.sensitivity(Count()),
        lambda: people.per_unit(visits="count()"),
        lambda: people.stability().distance,
        lambda: people.join(dataset(table, unit="person", schema={"age": (0, 9)})).sensitivity(Count()),
        lambda: people.join(people.select("ward").derive(other="ward = 'N'").select("other")).exact({"people": once}),
    ):
        with pytest.raises(InvalidValue, match="max_rows=None: must be given with a unit") as refusal:
            refused()
        assert "of='people' with max_cells=" in str(refusal.value)
    assert "any number of rows" in str(people.stability())


def test_where_the_unit_is_one_row_nothing_is_bounded() -> None:
    table, _ = table_of_people()
    rows = dataset(table, schema={"ward": ["N", "S", "E"]})
    with pytest.raises(InvalidValue, match="where the unit is one row, rows are people"):
        rows.sensitivity(Bounded(Count(), UnitBound(max_rows=2)))


@pytest.mark.parametrize(
    "wrong",
    [{}, {"rows_per_cell": 1}, {"max_cells": 1}, {"max_rows": 0}, {"max_rows": 1, "max_cells": 2}, {"max_rows": True}],
)
def test_a_bound_says_cells_and_rows_or_rows_alone(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        UnitBound(**wrong)


def test_l2_grows_with_the_root_of_the_cells_and_not_with_the_rows() -> None:
    table, _ = table_of_people()
    people = dataset(table, unit="person", schema={"age": (0, 9)})
    spread = people.sensitivity(Bounded(CellCounts(["age"]), UnitBound(rows_per_cell=2, max_cells=9)))
    assert spread == Sensitivity(l0=9, l1=18, l2_squared=36, linf=2)
    assert people.sensitivity(Bounded(CellCounts(["age"]), UnitBound(max_rows=18))).l2_squared == 18**2
