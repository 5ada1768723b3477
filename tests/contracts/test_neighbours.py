"""Removing or replacing a unit never moves an aggregate by more than the claimed sensitivity, whatever the chain.

Random tables and random chains of transformations run on DuckDB. A unit has at most `max_rows` rows here, so that the
choice of rows is not left to chance and the same chain can be run on both neighbours; that the bound holds for units
with more rows is `test_bounding.py`.
"""

from __future__ import annotations

import datetime
import math
import os
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.data import (
    CellCounts,
    Count,
    CrossProducts,
    Dataset,
    Histogram,
    Moments,
    OrderCounts,
    Sum,
    connection,
    dataset,
)
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.data.stability import Sensitivity, sensitivity_of_rows

CHAINS = int(os.environ.get("FARTHING_CHAINS", "40"))  # a fault in one of 8 is missed by one run in 150
PAIRS = 10
DAYS = (datetime.date(2020, 1, 1), datetime.date(2020, 3, 1))
SCHEMA = {
    "sex": ["F", "M"],
    "age": (-5, 20),
    "bmi": (-2.0, 3.5),
    "smoker": bool,
    "day": DAYS,
    "codes": ["a", "b", "ü"],
}
TYPES = pa.schema(
    [
        ("person", pa.int64()), ("sex", pa.string()), ("age", pa.int64()), ("bmi", pa.float64()),
        ("smoker", pa.bool_()), ("day", pa.date32()), ("codes", pa.list_(pa.string())),
    ]
)  # fmt: skip
OTHER = pa.schema([("person", pa.int64()), ("visits", pa.int64()), ("ward", pa.string())])

ODD_NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, -2.0, 3.5, 1e300, -7.25, 1.75]


def a_row(luck: random.Random) -> dict[str, Any]:
    """One row, with what goes wrong in real tables: missing, infinite, out of range, unknown."""
    codes = [luck.choice(["a", "b", "ü", "?", None]) for _ in range(luck.randrange(5))]
    return {
        "sex": luck.choice(["F", "M", "X", None]),
        "age": luck.choice([None, luck.randint(-30, 40), luck.randint(-5, 20)]),
        "bmi": luck.choice([luck.choice(ODD_NUMBERS), luck.uniform(-3, 5)]),
        "smoker": luck.choice([True, False, None]),
        "day": luck.choice([None, datetime.date(2019, 12, 1) + datetime.timedelta(days=luck.randrange(120))]),
        "codes": luck.choice([None, codes]),
    }


def a_visit(luck: random.Random) -> dict[str, Any]:
    return {"visits": luck.choice([None, luck.randint(-3, 9)]), "ward": luck.choice(["N", "S", "?", None])}


predicates = st.sampled_from(
    [
        "age >= 3", "bmi < 1.5", "sex = 'F'", "smoker", "not smoker or age > 0", "bmi is null", "age between 0 and 9",
        "day < date '2020-02-01'", "sex in ('F', 'M') and bmi / age > 0",
    ]
)  # fmt: skip
derivations = st.sampled_from(
    [
        {"new": "age * 2 - 1"}, {"new": "coalesce(bmi, 0.5) * age"}, {"new": "case when smoker then age else -age end"},
        {"new": ("bmi / age", (-1.0, 1.0))}, {"new": "abs(bmi) + 1"},
    ]
)  # fmt: skip


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Names of methods and their arguments, in an order that makes sense."""
    steps: list[tuple[str, Any]] = []
    if draw(st.booleans()):
        steps.append(("where", draw(predicates)))
    if draw(st.booleans()):
        steps.append(("derive", draw(derivations)))
    if draw(st.booleans()):
        steps.append(("clip", {"age": draw(st.sampled_from([(0, 10), (-3, 3), (30, 40), (7, 7)]))}))
    if draw(st.booleans()):
        steps.append(("explode", draw(st.integers(1, 3))))
    if draw(st.booleans()):
        steps.append(("public", draw(st.sampled_from(["inner", "left"]))))
    if draw(st.booleans()):
        steps.append(("union", draw(predicates)))
    if draw(st.booleans()):
        steps.append(("join", (draw(st.sampled_from(["inner", "left"])), draw(st.integers(1, 2)))))
    if draw(st.booleans()):
        steps.append(("bin", {"bmi": draw(st.sampled_from([3, [0.0, 1.0]]))}))
    if draw(st.booleans()):
        steps.append(("where", draw(st.sampled_from(["sex = 'M'", "age > 1", "age is not null"]))))
    if draw(st.booleans()):
        ages = draw(st.sampled_from(["sum(age)", "mean(age)", "max(age)", "min(age)", ("sum(age)", (-4, 9))]))
        people = {"age": ages, "smoker": "any(smoker)", "day": "min(day)", "visits": "count(age)"}
        steps.append(("per_unit", (people, draw(st.sampled_from(["visits > 1", "visits >= 0"])))))
    return steps


def run(chain: list[tuple[str, Any]], people: Dataset, other: Dataset | None) -> Dataset:
    """The chain on a dataset."""
    for name, argument in chain:
        if name == "where":
            people = people.where(argument)
        elif name in ("derive", "clip", "bin"):
            people = getattr(people, name)(**argument)
        elif name == "explode":
            people = people.explode("codes", limit=argument)
        elif name == "public":
            table = [{"sex": "F", "weight": 1.5}, {"sex": "M", "weight": -2.0}]
            people = people.join(table, on="sex", how=argument)
        elif name == "per_unit":
            people = people.per_unit(**argument[0]).where(argument[1]) if people.unit else people
        elif name == "union":
            people = people.union(people.where(argument))
        elif other is not None:
            people = people.join(other, how=argument[0])
    return people


def aggregates_for(people: Dataset) -> list[tuple[str, Any]]:
    """All kinds of aggregates on the columns that are left."""
    if "sex" not in people.schema:  # one row a unit
        return [
            ("count", Count(by="smoker")),
            ("sum", Sum("age", by="smoker", grid=2**-3)),
            ("visits", CellCounts(["visits", "smoker"])),
            ("days", Histogram("day", cells=5)),
        ]
    found: list[tuple[str, Any]] = [
        ("count", Count()),
        ("present", Count("age", by="sex")),
        ("cells", CellCounts(["sex", "smoker"])),
        ("sum", Sum("age")),
        ("sum by", Sum("age", by=["sex"], where="smoker")),
        ("moments", Moments("age", powers=(0, 1, 2, 3), by="smoker")),
        ("days", Histogram("day", cells=5, by="sex")),
        ("ranks", OrderCounts("age", grid=[0, 3, 9])),
    ]
    for name in ("bmi", "new", "weight", "visits"):
        domain: Any = people.schema.columns.get(name)
        if hasattr(domain, "lower"):
            found.append((f"sum of {name}", Sum(name, grid=2**-3)))
            found.append((f"products of {name}", CrossProducts(["age", name], grids={name: 2**-2})))
            found.append((f"parts of {name}", Histogram(name, cells=3 if domain.lower < domain.upper else 1)))
    for name in ("bmi", "codes", "ward"):
        if name in people.schema and hasattr(people.schema[name], "values"):
            found.append((f"cells of {name}", CellCounts([name])))
    return found


def table_of(units: dict[int, list[dict[str, Any]]], schema: pa.Schema) -> pa.Table:
    flat = [{"person": unit, **row} for unit, own in units.items() for row in own]
    return pa.Table.from_pylist(flat, schema=schema)


def refuse_beyond(before: np.ndarray, after: np.ndarray, claim: Sensitivity, what: str) -> None:
    change = [abs(int(a) - int(b)) for a, b in zip(before.reshape(-1), after.reshape(-1), strict=True)]
    assert max(change, default=0) <= claim.linf, f"{what}: linf"
    assert sum(change) <= claim.l1, f"{what}: l1"
    assert sum(c * c for c in change) <= claim.l2_squared, f"{what}: l2"
    assert sum(1 for c in change if c) <= claim.l0, f"{what}: l0"


@dataclass
class Case:
    """A chain with its aggregates, and pairs of neighbouring worlds to run it on."""

    chain: list[tuple[str, Any]]
    by_row: bool
    most: int
    limit: int
    neighbours: str
    group: int
    size: int
    chosen: list[int]
    worlds: list[tuple[tuple[Any, Any], tuple[Any, Any]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    by_row = draw(st.booleans())
    most = 1 if by_row else draw(st.integers(1, 3))
    neighbours = draw(st.sampled_from(["add-remove", "replace"]))
    chain = draw(chains())
    limit = next((argument[1] for name, argument in chain if name == "join"), 1)
    group, size = draw(st.sampled_from([1, 1, 2])), draw(st.integers(0, 3))
    luck = random.Random(draw(st.integers(0, 2**32)))  # thousands of cells: too many for hypothesis to draw one by one

    def somebody() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        own = [a_row(luck) for _ in range(1 if by_row else luck.randint(0, most))]
        return own, [a_visit(luck) for _ in range(luck.randint(0, limit))]

    worlds = []
    for _ in range(PAIRS):
        stay = {unit: somebody() for unit in range(size)}
        leave = {unit: somebody() for unit in range(100, 100 + group)}
        come = {unit: somebody() for unit in leave} if neighbours == "replace" else {}
        worlds.append((split({**stay, **leave}), split({**stay, **come})))
    chosen = draw(st.lists(st.integers(0, 30), min_size=3, max_size=4))
    return Case(chain, by_row, most, limit, neighbours, group, size, chosen, worlds)


def split(units: dict[int, tuple[Any, Any]]) -> tuple[Any, Any]:
    return {u: own for u, (own, _) in units.items()}, {u: second for u, (_, second) in units.items()}


CONNECTION = connection(threads=1)


def check(case: Case) -> None:
    """The SQL is made once for the chain and run on every world: making it takes longer than running it."""
    tables = CONNECTION.con
    put(tables, case.worlds[0][0])
    unit: dict[str, Any] = {} if case.by_row else {"unit": "person", "max_rows": case.most}
    if case.by_row:
        unit = {"rows": case.size + case.group}
    with quiet():
        people, second = CONNECTION.table("people"), CONNECTION.table("visits")
    base = dataset(people, schema=SCHEMA, neighbours=case.neighbours, **unit)
    other = None
    if not case.by_row:
        facts = {"visits": (-1, 5), "ward": ["N", "S"]}
        other = dataset(second, unit="person", max_rows=case.limit, neighbours=case.neighbours, schema=facts)
    whole = run(case.chain, base, other).group_privacy(case.group)
    possible = aggregates_for(whole)
    wanted = dict(possible[number % len(possible)] for number in case.chosen)
    queries = [(g, whole._sql(g, "no sample")) for g in aggregate_queries(wanted, whole.schema)]
    claims = {name: whole.sensitivity(aggregate) for name, aggregate in wanted.items()}
    keep(tables, [world for pair in case.worlds for world in pair])
    for number, (_, sql) in enumerate(queries):
        tables.execute(f"prepare query_{number} as {sql}")
    for number in range(0, 2 * len(case.worlds), 2):
        before, after = (answers(tables, queries, world) for world in (number, number + 1))
        for name, claim in claims.items():
            refuse_beyond(before[name], after[name], claim, f"{name} after {case.chain}")


def put(tables: Any, world: tuple[Any, Any]) -> None:
    tables.execute("drop view if exists people")
    tables.execute("drop view if exists visits")
    tables.register("people", table_of(world[0], TYPES))
    tables.register("visits", table_of(world[1], OTHER))


def keep(tables: Any, worlds: list[tuple[Any, Any]]) -> None:
    """All worlds in tables of DuckDB's own, and views of the one whose number stands in `present`.

    A query that is prepared on the views is planned once for all worlds, and planning takes longer than running.
    """
    tables.unregister("people")
    tables.unregister("visits")
    tables.execute("create or replace table present as select 0 as world")
    for place, (name, types) in enumerate((("people", TYPES), ("visits", OTHER))):
        parts = [
            table_of(world[place], types).append_column("world", pa.array([number] * rows, pa.int32()))
            for number, world in enumerate(worlds)
            for rows in [sum(map(len, world[place].values()))]
        ]
        tables.register("arrived", pa.concat_tables(parts))
        tables.execute(f"create or replace table all_{name} as select * from arrived")
        tables.unregister("arrived")
        tables.execute(
            f"create or replace view {name} as"
            f" select * exclude (world) from all_{name} where world = (select world from present)"
        )


def answers(tables: Any, queries: list[Any], world: int) -> dict[str, Any]:
    tables.execute(f"update present set world = {world}")
    found: dict[str, Any] = {}
    for number, (gathering, _) in enumerate(queries):
        found.update(
            gathering.answers(columns_of_rows(tables.execute(f"execute query_{number}").fetchall(), gathering.bits))
        )
    return found


@pytest.mark.slow
@settings(max_examples=CHAINS)
@given(cases())
def test_no_unit_moves_an_aggregate_beyond_its_sensitivity(case: Case) -> None:
    """FARTHING_CHAINS=5000 runs that many; each chain runs on several pairs of neighbours."""
    check(case)


@pytest.mark.slow
@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(-4, 0), st.integers(0, 4)), min_size=1, max_size=3),
    st.integers(1, 2),
    st.sampled_from(["add-remove", "replace"]),
)
@settings(max_examples=50)
def test_sensitivity_of_rows_is_sound_and_tight_for_corner_vectors(
    cells: int, ranges: list[tuple[int, int]], count: int, neighbours: str
) -> None:
    """Against every pair of sums of `count` vectors from the corners of the ranges: the convex hull is theirs."""
    from itertools import combinations_with_replacement, product

    corners = [np.zeros((cells, len(ranges)), dtype=int)]
    for cell in range(cells):
        for ends in product(*ranges):
            vector = np.zeros((cells, len(ranges)), dtype=int)
            vector[cell] = ends
            corners.append(vector)
    sums = {
        tuple(sum(chosen, np.zeros((cells, len(ranges)), dtype=int)).reshape(-1).tolist())
        for chosen in combinations_with_replacement(corners, count)
    }
    sums_b = sums if neighbours == "replace" else {(0,) * (cells * len(ranges))}
    claim = sensitivity_of_rows(cells, ranges, count, neighbours)
    worst = {"linf": 0, "l1": 0, "l2_squared": 0, "l0": 0}
    for a in sums:
        for b in sums_b:
            change = [abs(x - y) for x, y in zip(a, b, strict=True)]
            worst["linf"] = max(worst["linf"], max(change))
            worst["l1"] = max(worst["l1"], sum(change))
            worst["l2_squared"] = max(worst["l2_squared"], sum(c * c for c in change))
            worst["l0"] = max(worst["l0"], sum(1 for c in change if c))
    assert worst["linf"] == claim.linf
    assert worst["l1"] == claim.l1
    assert worst["l2_squared"] == claim.l2_squared
    assert worst["l0"] <= claim.l0
