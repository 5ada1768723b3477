"""Chains on neighbouring tables whose units are collated or blank-padded text: nobody moves more than is claimed."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from backends.engine_under_test import EngineUnderTest
from backends.hostile_columns import TEXT, retyped
from contracts.test_neighbours import SCHEMA, a_row, a_visit, aggregates_for, refuse_beyond, run
from farthing.data import Dataset, dataset

# Each unit has one row, so that the rows that stay are the same whatever is drawn.
pytestmark = [pytest.mark.slow, pytest.mark.draws(false_alarm=0, miss=0)]

SPELLINGS = ["ab", "AB", "Ab", "aB", "äb", "Äb", "a\u0308b", "ab ", "AB ", "ab  ", " ab", "b", "B", "ß", "ss"]
PEOPLE = pa.schema(
    [
        ("person", pa.string()), ("sex", pa.string()), ("age", pa.int64()), ("bmi", pa.float64()),
        ("smoker", pa.bool_()), ("day", pa.date32()), ("codes", pa.list_(pa.string())),
    ]
)  # fmt: skip
VISITS = pa.schema([("person", pa.string()), ("visits", pa.int64()), ("ward", pa.string())])
CHAINS: list[list[tuple[str, Any]]] = [
    [("explode", 2), ("union", "age >= 3"), ("join", ("left", 1))],
    [("where", "not smoker or age > 0"), ("join", ("inner", 1)), ("bin", {"bmi": [0.0, 1.0]})],
]
PAIRS = {
    "duckdb": [("varchar collate nocase", "varchar"), ("varchar", "varchar collate nocase.noaccent")],
    "postgres": [("varchar(40)", "char(40)"), ("citext", 'text collate "no_case"'), ("char(40)", "text")],
    "spark": [("string collate utf8_lcase", "char(40)")],
}


def test_one_spelling_is_one_unit_in_every_chain(engine: EngineUnderTest) -> None:
    """Each unit has one row in each table, so that no choice is left to chance; then one of them leaves both."""
    kinds = TEXT[engine.name]
    for number, (left, right) in enumerate(PAIRS[engine.name]):
        luck = random.Random(number)
        people = {unit: a_row(luck) for unit in units(kinds[left])}
        visits = {unit: a_visit(luck) for unit in units(kinds[right])}
        leaving = ["ab"] if engine.name == "spark" else ["ab", "AB"]
        worlds = [
            [
                retyped(engine, table_of(rows, shape, unit), {"person": kind})
                for rows, shape, kind in ((people, PEOPLE, left), (visits, VISITS, right))
            ]
            for unit in (None, *leaving)
        ]
        for chain in CHAINS:
            before, *after = (described(chain, *world) for world in worlds)
            asked = dict(aggregates_for(before)[:3])
            claims = {name: before.sensitivity(aggregate) for name, aggregate in asked.items()}
            found = before.exact(asked)
            for unit, neighbour in zip(leaving, after, strict=True):
                moved = neighbour.exact(asked)
                for name, claim in claims.items():
                    where = f"{name} after {chain} without {unit!r}, {left} and {right}"
                    refuse_beyond(found[name], moved[name], claim, where)


def units(padded: bool) -> list[str]:
    """Spellings that are different units: without those that differ in blanks at the end, where these do not count."""
    return [unit for unit in SPELLINGS if not (padded and unit.endswith(" "))]


def table_of(rows: dict[str, dict[str, Any]], shape: pa.Schema, without: str | None) -> pa.Table:
    stay = [{"person": unit, **row} for unit, row in rows.items() if unit != without]
    return pa.Table.from_pylist(stay, schema=shape)


def described(chain: list[tuple[str, Any]], people: Any, visits: Any) -> Dataset:
    base = dataset(people, unit="person", max_rows=1, schema=SCHEMA)
    facts = {"visits": (-1, 5), "ward": ["N", "S"]}
    return run(chain, base, dataset(visits, unit="person", max_rows=1, schema=facts))
