"""No measurement of a plan moves by more than its noise is made for, whatever is asked and whichever unit changes.

Random statistics are designed together, so that conditions are cut into pieces, merged and shared as in a plan; then
the exact numbers of every slot are compared on neighbouring tables, with all that goes wrong in real rows.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.data import Sensitivity, connection
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.engines.duckdb import quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.statistics.constructors import marginals, ranges
from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import QuantileSlot
from farthing.statistics.ranges.strategy_slots import StrategySlot
from farthing.statistics.ranges.strategy_transforms import sensitivity_through

TYPES = pyarrow.schema(
    [("person", pyarrow.int64()), ("sex", pyarrow.string()), ("age", pyarrow.int64()), ("bmi", pyarrow.float64()),
     ("smoker", pyarrow.bool_())]
)  # fmt: skip
SCHEMA = {"sex": ["F", "M"], "age": (-5, 20), "bmi": (-2.0, 3.5), "smoker": bool}
ODD = [None, math.nan, math.inf, -math.inf, -2.0, 3.5, 1.5, 1e300, -7.25, 0.3]
WHERE = [
    None, "age >= 3", "age < 3", "age <= 3", "bmi < 1.5", "bmi >= 1.5", "bmi > 1.5 or sex = 'F'", "bmi is null",
    "not (smoker and age < 3)", "age + bmi > 4", "age + bmi <= 4 and smoker", "sex = 'M' and bmi = 3.5",
]  # fmt: skip

CONNECTION = connection(threads=1)


def a_row(luck: random.Random, person: int) -> dict[str, Any]:
    return {
        "person": person,
        "sex": luck.choice(["F", "M", "X", None]),
        "age": luck.choice([None, -5, 3, 20, luck.randint(-30, 40)]),
        "bmi": luck.choice([luck.choice(ODD), luck.uniform(-3, 5)]),
        "smoker": luck.choice([True, False, None]),
    }


def statistics(luck: random.Random) -> list[Any]:
    asked: list[Any] = []
    for place in range(7):
        often: dict[str, Any] = {
            "where": luck.choice(WHERE),
            "by": luck.choice([None, "sex", ["sex", "smoker"]]),
            "name": f"s{place}",
        }
        column = luck.choice(["age", "bmi"])
        asked.append(
            luck.choice(
                [
                    lambda often=often: ft.count(**often),
                    lambda often=often: ft.histogram("age", bins=[3, 10], **often),
                    lambda often=often: ft.cdf("age", bins=5, **often),
                    lambda often=often, column=column: ft.sum(column, **often),
                    lambda often=often, column=column: ft.mean(column, **often),
                    lambda often=often, column=column: ft.std(column, **often),
                    lambda often=often, column=column: ft.quantiles(column, [0.25, 0.9], **often),
                    lambda often=often: ft.linear_regression("bmi", ["age"], **often),
                    lambda often=often: ranges("age", **often),
                    lambda often=often: ranges("bmi", ranges=[(-1.0, 1.5), (0.0, 3.5)], **often),
                    lambda often=often: ft.cdf("age", **often),
                    lambda often=often: marginals(["age", "bmi", "smoker"], bins={"bmi": 3}, **_without_smoker(often)),
                ]
            )()
        )
    return [*asked, ft.count_distinct("age", where=asked[0].where, by="sex", name="different ages")]


def _without_smoker(often: dict[str, Any]) -> dict[str, Any]:
    return {**often, "by": "sex" if often["by"] else None}


def exact(design: Design, queries: list[Any], rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The numbers of every slot when the table has these rows."""
    _put(rows)
    found: dict[str, Any] = {}
    for gathering, sql in queries:
        found.update(gathering.answers(columns_of_rows(CONNECTION.con.execute(sql).fetchall(), gathering.bits)))
    return numbers_of(design, found)


def numbers_of(design: Design, found: dict[str, Any]) -> dict[str, list[int]]:
    """What aggregates are to the slots; to slots that combine cells, for each kind of noise."""
    numbers: dict[str, list[int]] = {}
    for slot in design.slots:
        own = slot.own(found)
        if isinstance(slot, StrategySlot):
            numbers |= {slot.name + kind: list(map(int, t.apply(own))) for kind, t in slot.transforms.items()}
        else:
            numbers[slot.name] = [int(number) for number in slot.merged(np.asarray(own))]
    return numbers


def _put(rows: list[dict[str, Any]]) -> None:
    CONNECTION.con.register("people", pyarrow.Table.from_pylist(rows, schema=TYPES))


def claims(slot: Any) -> dict[str, tuple[int, Sensitivity]]:
    """How many numbers there are, and how far they move at most."""
    if not isinstance(slot, StrategySlot):
        return {slot.name: (slot.cells, slot.sensitivity)}
    found = {}
    for kind, transform in slot.transforms.items():
        own = sensitivity_through(slot.cells_moved, transform.columns, transform.size)
        # What the mechanism is made for is this norm, of this kind.
        norm = "l1" if kind == "laplace" else "l2_squared"
        assert getattr(own, norm) == getattr(slot.sensitivity, norm)
        found[slot.name + kind] = transform.size, own
    return found


def moved(before: list[int], after: list[int]) -> Sensitivity:
    steps = [abs(a - b) for a, b in zip(before, after, strict=True)]
    return Sensitivity(sum(map(bool, steps)), sum(steps), sum(step**2 for step in steps), max(steps))


def within(found: Sensitivity, claimed: Sensitivity) -> bool:
    return all(getattr(found, norm) <= getattr(claimed, norm) for norm in ("l0", "l1", "l2_squared", "linf"))


def neighbours(luck: random.Random, rows: list[dict[str, Any]], most: int, replaced: bool) -> list[Any]:
    """The table without one person, with somebody new, or with one person exchanged."""
    person = luck.choice(rows)["person"]
    rest = [row for row in rows if row["person"] != person]
    new = [a_row(luck, 99) for _ in range(most)]
    return [rest + new] if replaced else [rest, rows + new]


def _check(seed: int) -> None:
    luck = random.Random(seed)
    most, relation = luck.choice([1, 2, 3]), luck.choice(["add-remove", "replace"])
    rows = [a_row(luck, person) for person in range(3) for _ in range(luck.randint(1, most))]
    _put(rows)
    with quiet():
        people = CONNECTION.table("people")
    data = ft.dataset(people, unit="person", max_rows=most, schema=SCHEMA, neighbours=relation)
    design = design_of(statistics(luck), data)
    prepared = data.derive(**dict(design.derived)) if design.derived else data
    wanted = {name: part for slot in design.slots for name, part in slot.aggregates.items()}
    # The SQL is made once and run on every table: making it takes longer than running it.
    queries = [(each, prepared._sql(each, "no sample")) for each in aggregate_queries(wanted, prepared.schema)]
    before = exact(design, queries, rows)
    for other in neighbours(luck, rows, most, relation == "replace"):
        after = exact(design, queries, other)
        for slot in design.slots:
            for name, (cells, sensitivity) in claims(slot).items():
                assert within(moved(before[name], after[name]), sensitivity), name
                if isinstance(slot, QuantileSlot):
                    assert (slot.max_rows, slot.neighbours) == (most, relation)
                else:
                    assert len(before[name]) == cells


@pytest.mark.slow
def test_measurements_move_no_further_than_claimed() -> None:
    _check(1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_measurements_move_no_further_than_claimed_in_many_plans(seed: int) -> None:
    _check(seed)


def test_a_claim_that_is_too_small_is_caught() -> None:
    people = pyarrow.Table.from_pylist(
        [{"age": 20, "sex": "F"}], schema=pyarrow.schema([("age", pyarrow.int64()), ("sex", pyarrow.string())])
    )
    schema = {"age": (-5, 20), "sex": ["F", "M"]}
    design = design_of([ft.sum("age", by="sex")], ft.dataset(people, schema=schema))
    (slot,) = design.slots
    tables = [ft.dataset(part, schema=schema).derive(**dict(design.derived)) for part in (people, people[:0])]
    found = moved(*(numbers_of(design, table.exact(dict(slot.aggregates)))[slot.name] for table in tables))
    assert within(found, slot.sensitivity)
    assert not within(found, replace(slot.sensitivity, l1=slot.sensitivity.l1 - 1))
