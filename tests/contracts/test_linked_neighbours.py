"""Taking one unit out of all linked tables moves no aggregate by more than is claimed, whatever the keys hold.

Every chain runs on pairs of neighbouring worlds on DuckDB, and its integers are those of a loop in Python. Planted
faults must be found.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.linked_worlds import SCHEMAS, Chain, World, a_chain, a_world, arrow, leads, types, without
from contracts.test_neighbours import refuse_beyond
from farthing.data import connection, linked_rows, unit_rows
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.data.linked_rows import rows_of_one_unit

CHAINS = int(os.environ.get("FARTHING_CHAINS", "12"))
PAIRS = 6
CONNECTION = connection(threads=1)


def keep(tables: Any, worlds: list[World], text: bool) -> None:
    """All worlds in tables of DuckDB's own, and views of the one whose number stands in `present`."""
    shapes = types(text)
    tables.execute("create or replace table present as select 0 as world")
    for name in SCHEMAS:
        parts = []
        for number, world in enumerate(worlds):
            part = arrow(world, shapes, text)[name]
            parts.append(part.append_column("world", pa.array([number] * part.num_rows, pa.int32())))
        tables.register("arrived", pa.concat_tables(parts))
        tables.execute(f"create or replace table all_{name} as select * from arrived")
        tables.unregister("arrived")
        tables.execute(
            f"create or replace view {name} as"
            f" select * exclude (world) from all_{name} where world = (select world from present)"
        )


def check(chain: Chain, luck: random.Random, size: int, values: int) -> None:
    pairs = []
    for _ in range(PAIRS):
        world = a_world(luck, size, values)
        pairs.append((world, without(world, chain.keys, luck.randrange(values))))
    whole = all(chain.is_whole(world) for pair in pairs for world in pair)
    with quiet():
        keep(CONNECTION.con, [world for pair in pairs for world in pair], chain.text)
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


@pytest.mark.slow
@settings(max_examples=CHAINS)
@given(st.integers(0, 2**40), st.integers(1, 5), st.integers(1, 5))
def test_no_unit_moves_an_aggregate_of_linked_tables_beyond_its_sensitivity(seed: int, size: int, values: int) -> None:
    """FARTHING_CHAINS=2000 runs that many; each chain runs on several pairs of neighbours."""
    luck = random.Random(seed)
    check(a_chain(luck), luck, size, values)


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
        lambda rows, engine: rows.rename(__farthing_match="__farthing_key"),
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
