"""Linked tables on every engine: the integers of the loop, and no unit moves more than is claimed."""

from __future__ import annotations

import os
import random
import re
from dataclasses import replace
from typing import Any

import pytest

from backends.engine_under_test import DuckDBUnderTest, EngineUnderTest, SparkUnderTest
from contracts.linked_chains import WEIGHTS, Asked, asked_of, refuse_moved_keys
from contracts.linked_worlds import (
    KEYS,
    SCHEMAS,
    Chain,
    World,
    a_chain,
    a_world,
    arrow,
    arrow_by_digits,
    held,
    mixed_types,
    types,
    without,
)
from contracts.test_neighbours import refuse_beyond
from farthing.data import Count
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.key_counts import each_key

# Where units have more rows than are kept, only how many are left is asked, which is no matter of chance.
pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]
CHAINS = int(os.environ.get("FARTHING_CHAINS", "0"))
PLANNED = [
    Chain("doses", (("drugs", "inner"), ("persons", "left")), 100, by_code=False, text=True),
    Chain("drugs", (("visits", "inner"), ("persons", "inner")), 2, by_code=True, text=False),
]


def test_linked_tables_have_the_integers_of_the_loop(engine: EngineUnderTest) -> None:
    """FARTHING_CHAINS=100 runs that many random chains besides, each on a pair of neighbours."""
    chains = [*PLANNED, *(a_chain(random.Random(seed)) for seed in range(CHAINS))]
    for number, chain in enumerate(chains):
        luck = random.Random(1000 + number)
        world = a_world(luck, 5, 4)
        smaller = without(world, chain.keys, luck.randrange(4))
        whole = chain.is_whole(world) and chain.is_whole(smaller)
        if not whole and (chain.people or chain.where or chain.beside):
            continue
        found = [answers(engine, chain, each, whole) for each in (world, smaller)]
        for name, (before, claim) in found[0].items():
            refuse_beyond(before, found[1][name][0], claim, f"{name} of {chain}")


def test_random_chains_of_all_steps_agree_with_duckdb(engine: EngineUnderTest, duckdb_engine: DuckDBUnderTest) -> None:
    """FARTHING_CHAINS=100 runs that many. No unit has more rows than are kept, so that no draw decides anything."""
    for seed in range(0 if engine is duckdb_engine else CHAINS or 3):
        text = seed % 3 == 0
        world = a_world(random.Random(seed), 4, 4)

        def ask(where: EngineUnderTest, worlds: list[World], seed: int = seed, text: bool = text) -> Any:
            for each in worlds:
                tables = {name: where.load(rows) for name, rows in arrow(each, types(text), text).items()}
                asked = asked_of(random.Random(seed), tables, text, whole=True)
                yield asked, asked.rows.exact(asked.aggregates) if asked.aggregates else {}, sums_of_keys(asked)

        ((asked, _, _),) = ask(duckdb_engine, [world])
        worlds = list(asked.neighbours(world, random.Random(seed), 4))
        (before, keys), (after, keys_after) = ((found, sums) for _, found, sums in ask(engine, worlds))
        for (one, sums), (_, expected, wanted) in zip(
            ((before, keys), (after, keys_after)), ask(duckdb_engine, worlds), strict=True
        ):
            assert {n: v.tolist() for n, v in one.items()} == {n: v.tolist() for n, v in expected.items()}, str(asked)
            assert sums == wanted, f"keys of {asked}"
        for name, aggregate in asked.aggregates.items():
            refuse_beyond(before[name], after[name], asked.rows.sensitivity(aggregate), f"{name} of {asked}")
        if asked.key_column is not None:
            refuse_moved_keys(keys, keys_after, asked)


def sums_of_keys(asked: Asked) -> dict[Any, int]:
    """The keys of the column whose values are asked for, if any, with the weights of their units."""
    found: dict[Any, int] = {}
    if asked.key_column is not None:
        take = found.update
        each_key(asked.table, asked.key_column, WEIGHTS, lambda keys, sums: take(zip(keys, sums.tolist(), strict=True)))
    return found


def test_whole_numbers_and_text_are_one_key_by_their_digits_on_every_engine(engine: EngineUnderTest) -> None:
    """7 meets "7", and neither "07", "+7" nor " 7"; taking a unit away moves no more than is claimed."""
    for seed, chain in ((343, replace(PLANNED[0], text=False)), (158, replace(PLANNED[1], most=100))):
        luck = random.Random(seed)
        shapes = mixed_types(luck)
        ends = [(shapes[n].field(c).type, shapes[up].field(t).type) for n, (c, up, t) in chain.keys.items()]
        world = held(a_world(luck, 12, 6), shapes)
        owned = chain.rows_of_units(world)
        assert sum(one != other for one, other in ends) >= 2 and len(owned) == 2  # the seeds are chosen for that
        found = [answers(engine, chain, each, True, shapes) for each in (world, without(world, chain.keys, min(owned)))]
        for name, (before, claim) in found[0].items():
            refuse_beyond(before, found[1][name][0], claim, f"{name} of {chain}")


def answers(engine: EngineUnderTest, chain: Chain, world: World, whole: bool, mixed: Any = None) -> dict[str, Any]:
    made = arrow(world, types(chain.text), chain.text) if mixed is None else arrow_by_digits(world, mixed)
    tables = {name: engine.load(rows) for name, rows in made.items()}
    rows = chain.dataset(tables)
    asked = chain.aggregates(rows, whole)
    exact, expected = rows.exact(asked), chain.loop(world)
    for name in asked if expected is not None else ():
        assert exact[name].tolist() == expected[name], f"{name} of {chain}"
    return {name: (exact[name], rows.sensitivity(aggregate)) for name, aggregate in asked.items()}


def test_a_query_of_linked_tables_is_one_statement_that_returns_one_row_a_cell(
    engine: EngineUnderTest,
) -> None:
    """On Spark, the driver sends what it has collected: no row of a person is among that."""
    world = a_world(random.Random(7), 40, 5)
    chain = Chain("drugs", (("visits", "inner"), ("persons", "left")), 3)
    assert chain.keys == KEYS and set(world) == set(SCHEMAS)
    tables = {name: engine.load(rows) for name, rows in arrow(world, types(False), False).items()}
    rows = chain.dataset(tables)
    asked = {"n": Count(by=["ward", "sex"])}
    (query,) = aggregate_queries(asked, rows.schema)
    returned = engine.engine.rows(rows._sql(query, "no sample"))
    assert len(returned) <= 9  # A, B and neither, by F, M and neither
    assert rows.exact(asked)["n"].shape == (2, 2)


def test_spark_collects_no_side_of_a_join_at_its_driver(spark_engine: SparkUnderTest) -> None:
    """A broadcast does: by itself Spark plans one here, because the tables are small."""
    world: World = {  # nothing is left out: adaptive execution drops the joins of tables that turn out to be empty
        "persons": [{"person_id": n, "code": n, "sex": "FM"[n % 2]} for n in range(20)],
        "visits": [{"visit_id": n, "person_id": n % 20, "code": n, "ward": "AB"[n % 2], "cost": 1} for n in range(40)],
        "drugs": [{"drug_id": n, "visit_id": n % 40, "drug": "x", "cost": 1} for n in range(60)],
        "doses": [{"drug_id": n, "amount": 1} for n in range(60)],
    }
    tables = {name: spark_engine.load(rows) for name, rows in arrow(world, types(False), False).items()}
    chain = Chain("drugs", (("visits", "inner"), ("persons", "left")), 3, beside="doses")
    rows = chain.dataset(tables)
    (query,) = aggregate_queries({"n": Count(by=["ward", "sex"])}, rows.schema)
    sql = rows._sql(query, "no sample")

    def plan(text: str) -> str:
        return str(spark_engine.engine.rows(f"EXPLAIN FORMATTED {text}")[0][0])

    def ran(text: str) -> str:
        """The plan that adaptive execution ended with, by the metrics of its operators."""
        frame = spark_engine.engine.backend._session.sql(text)
        assert len(frame.collect()) <= 9
        return str(frame.executionInfo.metrics.toText())

    by_itself, joins = re.subn(r"/\*\+ MERGE\(.*?\) \*/", "", sql)
    assert joins
    for seen in (plan, ran):
        assert seen(by_itself).count("BroadcastExchange") >= 2
        assert "Broadcast" not in seen(sql) and "SortMergeJoin" in seen(sql)
