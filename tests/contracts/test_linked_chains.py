"""No unit moves anything further than is claimed, in random chains over linked tables in which every cap bites.

Rows are chosen at random, and a claim must hold for every choice that looks at a unit's own rows alone. Here the choice
is such a function, of what is in a row: a neighbour can then be compared to the integer, with all other units in it.
"""

from __future__ import annotations

import os
import random
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.linked_chains import WEIGHTS, Asked, asked_of, refuse_moved_keys, with_heavy_unit
from contracts.linked_worlds import SCHEMAS, a_world
from contracts.test_linked_neighbours import CONNECTION, keep
from contracts.test_neighbours import refuse_beyond
from farthing.data import key_counts, linked_rows, unit_rows
from farthing.data.aggregates import unit_bounds
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows

CHAINS = int(os.environ.get("FARTHING_CHAINS", "15"))
PAIRS = 4
MODULES = (unit_rows, linked_rows, unit_bounds, key_counts)


def by_content(salt: str) -> Any:
    """A draw that looks at what is in the row; rows that are equal are as good as each other."""

    def with_draw(table: Any, name: str) -> Any:
        import ibis

        parts = [table[column].cast("string").fill_null("-") for column in table.columns]
        text = reduce(lambda left, right: left + "," + right, parts, ibis.literal(salt))
        return table.mutate(**{name: text.hexdigest("md5")})

    return with_draw


def check(seed: int, size: int, values: int, heavy: float = 0.7) -> int:
    """How many pairs of answers were compared."""
    luck = random.Random(seed)
    text = luck.random() < 0.3
    worlds = [with_heavy_unit(luck, a_world(luck, size, values)) for _ in range(PAIRS)]
    with quiet():
        keep(CONNECTION.con, worlds[:1], text)
        asked = asked_of(luck, {name: CONNECTION.table(name) for name in SCHEMAS}, text)
        pairs = [asked.neighbours(world, luck, values, heavy) for world in worlds]
        keep(CONNECTION.con, [world for pair in pairs for world in pair], text)
    return law_of_aggregates(asked) + law_of_keys(asked)


def law_of_aggregates(asked: Asked) -> int:
    claims = {name: asked.rows.sensitivity(aggregate) for name, aggregate in asked.aggregates.items()}
    found: list[dict[str, Any]] = [{} for _ in range(2 * PAIRS)]
    for query in asked.rows._queries(asked.aggregates, apart=False) if asked.aggregates else ():
        CONNECTION.con.execute(f"prepare linked as {asked.rows._sql(query, 'no sample')}")
        for world in range(2 * PAIRS):
            CONNECTION.con.execute(f"update present set world = {world}")
            cells = CONNECTION.con.execute("execute linked").fetchall()
            found[world].update(query.answers(columns_of_rows(cells, query.bits)))
    for before, after in zip(found[::2], found[1::2], strict=True):
        for name, claim in claims.items():
            refuse_beyond(before[name], after[name], claim, f"{name} of {asked}")
    return PAIRS * len(claims)


def law_of_keys(asked: Asked) -> int:
    """A unit adds its weights to at most as many keys as it may keep."""
    if asked.key_column is None:
        return 0
    query = key_counts.key_query(asked.table, asked.key_column, WEIGHTS)
    CONNECTION.con.execute(f"prepare linked as {asked.table._base.source.engine.sql(query)}")
    found = []
    for world in range(2 * PAIRS):
        CONNECTION.con.execute(f"update present set world = {world}")
        found.append(dict(CONNECTION.con.execute("execute linked").fetchall()))
    for before, after in zip(found[::2], found[1::2], strict=True):
        refuse_moved_keys(before, after, asked)
    return PAIRS


def chosen_by_content(monkeypatch: pytest.MonkeyPatch, salt: str = "") -> None:
    for module in MODULES:
        monkeypatch.setattr(module, "with_draw", by_content(salt))


@pytest.mark.slow
def test_no_unit_moves_anything_in_a_chain_over_linked_tables_further_than_is_claimed() -> None:
    """FARTHING_CHAINS=3000 runs that many, each on several pairs of neighbours."""

    @settings(max_examples=CHAINS)
    @given(st.integers(0, 2**40), st.integers(1, 6), st.integers(1, 5))
    def law(seed: int, size: int, values: int) -> None:
        check(seed, size, values)

    with pytest.MonkeyPatch.context() as patch:
        chosen_by_content(patch)
        law()


def lossy_key(column: Any, engine: Any) -> Any:
    """Units that differ in the case of a letter, or by three, are taken for one."""
    return column.lower().strip() if column.type().is_string() else column.cast("int64") % 3


@pytest.mark.slow
@pytest.mark.parametrize("module", [unit_rows, linked_rows], ids=["a cap is not applied", "a join duplicates rows"])
def test_a_row_too_many_is_found_within_the_chains_that_the_suite_runs(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen_by_content(monkeypatch)
    monkeypatch.setattr(module, "bounded", lambda rows, *_: rows)
    with pytest.raises(AssertionError, match=r"of .*: (linf|l1|l2|l0)"):
        for seed in range(15):
            check(seed, 6, 5)


@pytest.mark.slow
def test_units_that_a_cast_makes_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen_by_content(monkeypatch)
    monkeypatch.setattr(unit_rows, "unit_key", lossy_key)
    with pytest.raises(AssertionError, match=r"of .*: (linf|l1|l2|l0)"):
        for seed in range(34, 200):  # those before find nothing, and take time
            check(seed, 6, 5, heavy=0)
