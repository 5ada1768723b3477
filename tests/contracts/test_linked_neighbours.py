"""Taking one unit out of all linked tables moves no aggregate by more than is claimed, whatever the keys hold.

Every chain runs on pairs of neighbouring worlds on DuckDB, and its integers are those of a loop in Python. Planted
faults must be found.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.linked_worlds import (
    CELLS,
    SCHEMAS,
    Chain,
    World,
    a_chain,
    a_world,
    arrow,
    arrow_by_digits,
    held,
    leads,
    mixed_types,
    types,
    without,
)
from contracts.test_neighbours import refuse_beyond
from farthing.data import Bounded, Count, Sum, UnitBound, connection, linked_rows, unit_rows
from farthing.data.aggregates import unit_bounds
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.data.linked_rows import rows_of_one_unit

CHAINS = int(os.environ.get("FARTHING_CHAINS", "12"))
PAIRS = 6
CONNECTION = connection(threads=1)


Mixed = dict[str, pa.Schema]


def keep(tables: Any, worlds: list[World], text: bool, mixed: Mixed | None = None) -> None:
    """All worlds in tables of DuckDB's own, and views of the one whose number stands in `present`."""
    shapes = types(text)
    rows = [arrow(world, shapes, text) if mixed is None else arrow_by_digits(world, mixed) for world in worlds]
    tables.execute("create or replace table present as select 0 as world")
    for name in SCHEMAS:
        parts = []
        for number, world in enumerate(rows):
            part = world[name]
            parts.append(part.append_column("world", pa.array([number] * part.num_rows, pa.int32())))
        tables.register("arrived", pa.concat_tables(parts))
        tables.execute(f"create or replace table all_{name} as select * from arrived")
        tables.unregister("arrived")
        tables.execute(
            f"create or replace view {name} as"
            f" select * exclude (world) from all_{name} where world = (select world from present)"
        )


def check(chain: Chain, luck: random.Random, size: int, values: int, mixed: Mixed | None = None) -> None:
    pairs = []
    for _ in range(PAIRS):
        world = a_world(luck, size, values) if mixed is None else held(a_world(luck, size, values), mixed)
        pairs.append((world, without(world, chain.keys, luck.randrange(values))))
    whole = all(chain.is_whole(world) for pair in pairs for world in pair)
    with quiet():
        keep(CONNECTION.con, [world for pair in pairs for world in pair], chain.text, mixed)
        rows = chain.dataset({name: CONNECTION.table(name) for name in SCHEMAS})
    asked = chain.aggregates(rows, whole)
    if not whole and (chain.people or chain.where or chain.beside):
        return
    claims = {name: rows.sensitivity(aggregate) for name, aggregate in asked.items()}
    (query,) = aggregate_queries(asked, rows.schema)
    CONNECTION.con.execute(f"prepare linked as {rows._sql(query, 'no sample')}")
    found = []
    for number, world in enumerate(world for pair in pairs for world in pair):
        CONNECTION.con.execute(f"update present set world = {number}")
        answer = query.answers(columns_of_rows(CONNECTION.con.execute("execute linked").fetchall(), query.bits))
        found.append(answer)
        expected = chain.loop(world)
        for name in asked if expected is not None else ():
            assert answer[name].tolist() == expected[name], f"{name} of {chain}"
    for before, after in zip(found[::2], found[1::2], strict=True):
        for name, claim in claims.items():
            refuse_beyond(before[name], after[name], claim, f"{name} of {chain}")


def check_bounds(chain: Chain, luck: random.Random, size: int, values: int) -> None:
    """Without `max_rows`: what each unit adds is bounded by the aggregates, which look at all of its rows.

    One bound leaves nothing to chance, so that neighbours can be compared, and the loop. The others choose rows at
    random: there a world of one unit alone is compared with the world without it.
    """
    chain = replace(chain, most=None, where=None, people=False, beside=None)
    pairs, alone = [], []
    for _ in range(PAIRS):
        world, one = a_world(luck, size, values), luck.randrange(values)
        pairs += [world, without(world, chain.keys, one)]
        for other in set(range(values)) - {one}:
            world = without(world, chain.keys, other)
        alone.append(world)
    with quiet():
        keep(CONNECTION.con, [*pairs, *alone], chain.text)
        rows = chain.dataset({name: CONNECTION.table(name) for name in SCHEMAS})
    asked = {"rows of anybody": Bounded(Count(), UnitBound(max_rows=1))}
    for name in (each for each in CELLS if each in rows.schema):
        asked[f"by {name}"] = Bounded(Count(by=name), UnitBound(rows_per_cell=2, max_cells=2))
        asked[f"rows of 1 {name}"] = Bounded(Count(by=name), UnitBound(rows_per_cell=1, max_cells=1))
    for name in (each for each in ("cost", "visits_cost", "amount") if each in rows.schema):
        asked[f"sum of {name}"] = Bounded(Sum(name), UnitBound(max_rows=2))

    for name, aggregate in asked.items():
        claim = rows.sensitivity(aggregate)
        (query,) = rows._queries({name: aggregate})
        CONNECTION.con.execute(f"prepare linked as {rows._sql(query, 'no sample')}")

        def found(number: int, query: Any = query, name: str = name) -> Any:
            CONNECTION.con.execute(f"update present set world = {number}")
            cells = CONNECTION.con.execute("execute linked").fetchall()
            return query.answers(columns_of_rows(cells, query.bits))[name]

        for number in range(len(pairs), len(pairs) + PAIRS):
            some = found(number)
            refuse_beyond(some, some * 0, claim, f"{name} of {chain}")
        if not name.startswith("by "):
            continue
        answers = [found(number) for number in range(len(pairs))]
        for answer, world in zip(answers, pairs, strict=True):
            assert answer.tolist() == people_in_cells(chain, world, name[3:]), f"{name} of {chain}"
        for before, after in zip(answers[::2], answers[1::2], strict=True):
            refuse_beyond(before, after, claim, f"{name} of {chain}")


def people_in_cells(chain: Chain, world: World, name: str) -> list[int]:
    """Rows in each cell of a column, at most two of each unit there, by a loop."""
    units = [[row.get(name) for row in rows if not row["lost"]] for rows in chain.rows_of_units(world).values()]
    return [sum(min(2, own.count(value)) for own in units) for value in CELLS[name]]


@pytest.mark.slow
@settings(max_examples=CHAINS // 3)
@given(st.integers(0, 2**40), st.integers(1, 5), st.integers(1, 4))
def test_without_max_rows_no_unit_moves_a_bounded_aggregate_too_far(seed: int, size: int, values: int) -> None:
    luck = random.Random(seed)
    check_bounds(a_chain(luck), luck, size, values)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "broken"),
    [
        (unit_bounds, "bounded", lambda rows, *_: rows),
        (linked_rows, "rows_of_one_unit", lambda rows: rows.drop("__farthing_shared")),
    ],
)
def test_a_planted_fault_is_found_without_max_rows(
    module: Any, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError, match=r"rows of|by |sum of"):
        for seed in range(40):
            luck = random.Random(seed)
            check_bounds(a_chain(luck), luck, 5, 4)


@pytest.mark.slow
@settings(max_examples=CHAINS)
@given(st.integers(0, 2**40), st.integers(1, 5), st.integers(1, 5))
def test_no_unit_moves_an_aggregate_of_linked_tables_beyond_its_sensitivity(seed: int, size: int, values: int) -> None:
    """FARTHING_CHAINS=2000 runs that many; each chain runs on several pairs of neighbours."""
    luck = random.Random(seed)
    check(a_chain(luck), luck, size, values)


@pytest.mark.slow
@settings(max_examples=max(1, CHAINS // 2))
@given(st.integers(0, 2**40), st.integers(1, 5), st.integers(3, 6))
def test_whole_numbers_and_text_are_one_key_if_their_digits_are(seed: int, size: int, values: int) -> None:
    """Keys of mixed types: 7 meets "7", and neither meets "07", "+7" or " 7"; the integers are those of the loop."""
    luck = random.Random(seed)
    check(a_chain(luck), luck, size, values, mixed_types(luck))


def test_rows_of_other_units_stay_as_they_are() -> None:
    """`rows_of_one_unit`, by the loop alone: what is kept for another unit is the same rows, and those above them."""
    assert rows_of_one_unit.__doc__ is not None
    for seed in range(300):
        luck = random.Random(seed)
        chain, world = a_chain(luck), a_world(luck, 4, 4)
        gone = luck.randrange(4)
        smaller = without(world, chain.keys, gone)
        for name in SCHEMAS:
            kept = [
                [row for row in each[name] if len(leads(each, chain.keys, name, row) | {gone}) == 2]
                for each in (world, smaller)
            ]
            kept[0] = [row for row in kept[0] if gone not in leads(world, chain.keys, name, row)]
            assert kept[0] == kept[1]


FAULTS = {
    "a row that leads to two units is kept for one of them": (
        linked_rows, "rows_of_one_unit", lambda rows: rows.drop("__farthing_shared")
    ),
    "every row above with the key is joined": (
        linked_rows, "one_of_each_key",
        lambda rows, *_, **__: rows.rename(__farthing_match="__farthing_key"),
    ),
    "rows of a unit are not bounded": (unit_rows, "bounded", lambda rows, *_: rows),
    "rows of the unit's own table are not bounded": (linked_rows, "bounded", lambda rows, *_: rows),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, broken = FAULTS[fault]
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError, match=r"rows of|by |sum of"):
        for seed in range(40):
            luck = random.Random(seed)
            check(a_chain(luck), luck, 5, 4)
