"""Random chains over linked tables: joins along keys, caps on every table, all steps, and all kinds of aggregates.

A chain is made of a seed and runs on any engine. What it is asked for comes with what it claims.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contracts.linked_worlds import SCHEMAS, SPELLED, World, a_chain, types, without
from contracts.test_neighbours import refuse_beyond
from farthing.data import (
    Bounded,
    CellCounts,
    Count,
    Dataset,
    DistinctCount,
    Histogram,
    Moments,
    Sum,
    UnitBound,
)
from farthing.data.aggregates.unit_bounds import BoundedGroups
from farthing.data.linked_tables import LinkedTables, linked, table
from farthing.data.schema import Categories, Flags, Integers
from farthing.data.stability import Sensitivity
from farthing.errors import InvalidValue

PREDICATES = [
    (("cost",), "cost > 2"), (("cost",), "cost is null or cost < 4"), (("sex",), "sex = 'F'"),
    (("ward", "cost"), "ward = 'A' or cost between 1 and 3"), (("amount",), "amount >= 0"),
    (("drug",), "not drug = 'x'"), (("number",), "number > 1"), (("new",), "new < 3"),
]  # fmt: skip
DERIVATIONS = [
    (("cost",), "cost * 2 - 3"), (("amount",), "coalesce(amount, 2) * amount"), (("sex",), "sex = 'M'"),
    (("ward", "cost"), "case when ward = 'B' then cost else -cost end"), (("number",), "number + 1"),
]  # fmt: skip
CUTS = [("clip", "cost", (1, 4)), ("clip", "amount", (-1, 2)), ("bin", "cost", [3]), ("bin", "amount", 2)]
PEOPLE = {
    "total": ("cost", "sum(cost)"), "ever": ("sex", "any(sex = 'F')"), "kinds": ("ward", "distinct(ward)"),
    "least": ("amount", "min(amount)"), "mean": ("cost", "mean(cost)"),
}  # fmt: skip
WEIGHTS = (30, 21, 17)
VALUES: dict[str, list[Any]] = {
    "sex": ["F", "M"], "ward": ["A", "B"], "drug": ["x", "y"], "cost": [1, 5], "amount": [2, 3],
}  # fmt: skip
MOST = 100  # rows of a unit: more than any world has
HEAVY = len(SPELLED) - 1  # a unit, and the key of all of its rows, which no other row has


def with_heavy_unit(luck: random.Random, world: World) -> World:
    """One more unit, with more rows in each table than a cap keeps, all of them with one key."""

    def row(columns: list[str]) -> dict[str, Any]:
        return {name: luck.choice(VALUES.get(name, [HEAVY])) for name in columns}  # what has no values is a key

    names = {name: shape.names for name, shape in types(text=False).items()}
    return {name: [*rows, *(row(names[name]) for _ in range(luck.randint(2, 9)))] for name, rows in world.items()}


@dataclass
class Asked:
    """A dataset at the end of a chain, its aggregates, and how the chain can be told."""

    rows: Dataset
    table: Dataset  # the table that it begins with
    aggregates: dict[str, Any]
    keys: dict[str, tuple[str, str, str]]
    key_column: str | None
    group: int
    text: list[str] = field(default_factory=list)

    def neighbours(self, world: World, luck: random.Random, values: int, heavy: float = 0) -> tuple[World, World]:
        """The world with and without as many units as are protected together, or with others in their place."""
        units = luck.sample(range(max(values, 4)), 2 * self.group)
        if luck.random() < heavy:  # of the others few have more rows than any cap
            units[0] = HEAVY

        def fewer(gone: list[int], some: World) -> World:
            for unit in gone:
                some = without(some, self.keys, unit)
            return some

        leave, come = units[: self.group], units[self.group :]
        if self.rows.neighbours == "replace":
            return fewer(come, world), fewer(leave, world)
        return world, fewer(leave, world)

    def __str__(self) -> str:
        return "; ".join(self.text)


def asked_of(luck: random.Random, sources: Mapping[str, Any], text: bool, whole: bool = False) -> Asked:
    """A chain and what is asked of it. `whole`: nothing has to be left out, so that no draw decides anything."""
    chain = a_chain(luck)
    bare = luck.random() < 0.4  # a join by the unit, a cap and a count: no step or bound hides a row too many
    while bare and (chain.by_code or chain.place == "persons"):
        chain = a_chain(luck)
    neighbours = luck.choice(["add-remove", "add-remove", "replace"])
    caps = {name: MOST if whole else luck.choice([1, 2, 3] if bare else [1, 2, 3, None]) for name in SCHEMAS}
    tables = linked_tables(chain.keys, sources, neighbours, caps)
    rows = first = tables[chain.place]
    told = [f"{chain.place}, {caps}, {neighbours}, {'text' if text else 'numbers'}, code {chain.by_code}"]
    joins = list(chain.joins)
    if chain.place != "persons" and "persons" not in dict(joins) and (bare or luck.random() < 0.5):
        joins.append(("persons", luck.choice(["inner", "left"])))
    for name, how in joins:
        rows = rows.join(name, how=how)
        told.append(f"join {name} {how}")
    for number in range(0 if bare else luck.randrange(5)):
        rows = with_step(rows, luck, told, "beside" if not number and luck.random() < 0.5 else None)
    group = 1 if bare else luck.choice([1, 1, 1, 2])
    asked = Asked(rows.group_privacy(group), first, {}, chain.keys, None, group, told)
    if bare:
        asked.aggregates["by sex"] = Count(by="sex")
    bounded = (
        not bare and luck.random() < 0.5
    )  # making a query takes longer than running it: three that share one, or one
    for number in range(1 if bounded else 3):
        aggregate = an_aggregate(asked.rows, luck, bounded, whole)
        if aggregate is not None:
            asked.aggregates[f"{number} {aggregate}"] = aggregate
    own = [name for name, domain in SCHEMAS[chain.place].items() if isinstance(domain, list)]
    if own and luck.random() < 0.3:
        asked.key_column = luck.choice(own)
    return asked


def refuse_moved_keys(before: Mapping[Any, int], after: Mapping[Any, int], asked: Asked) -> None:
    """Fail where the weights of keys differ by more than those of the units that left or came."""
    times = asked.group * (2 if asked.rows.neighbours == "replace" else 1)
    most = times * max(number * weight for number, weight in enumerate(WEIGHTS, 1))
    squares = most**2  # no more than that is asked of it here
    claim = Sensitivity(l0=times * len(WEIGHTS), l1=most, l2_squared=squares, linf=times * max(WEIGHTS))
    keys = sorted({*before, *after})
    sums = (np.array([int(each.get(key, 0)) for key in keys]) for each in (before, after))
    refuse_beyond(*sums, claim, f"keys of {asked.key_column} of {asked}")


def linked_tables(
    keys: Mapping[str, tuple[str, str, str]],
    sources: Mapping[str, Any],
    neighbours: str,
    caps: Mapping[str, int | None],
) -> LinkedTables:
    return linked(
        **{name: table(sources[name], schema=SCHEMAS[name]) for name in SCHEMAS},
        unit="persons.person_id",
        keys={f"{name}.{column}": f"{above}.{target}" for name, (column, above, target) in keys.items()},
        max_rows={name: most for name, most in caps.items() if most is not None},
        neighbours=neighbours,
    )


def with_step(rows: Dataset, luck: random.Random, told: list[str], kind: str | None = None) -> Dataset:
    """One more step, if one that was drawn is possible."""
    there = rows.schema

    def possible(options: list[tuple[tuple[str, ...], str]]) -> list[str]:
        numbers = {name for name in there if isinstance(there[name], Integers)}
        cells = {name for name in there if isinstance(there[name], Categories)} & {"sex", "ward", "drug"}
        return [text for names, text in options if {*names} <= numbers | cells]

    kind = kind or luck.choice(["where", "where", "derive", "cut", "cut", "per_unit", "beside", "union"])
    try:
        if kind in ("where", "union") and possible(PREDICATES):
            predicate = luck.choice(possible(PREDICATES))
            few = rows.where(predicate)
            told.append(f"{kind} {predicate}")
            return few if kind == "where" else rows.union(few)
        if kind == "derive" and possible(DERIVATIONS) and "new" not in there:
            text = luck.choice(possible(DERIVATIONS))
            told.append(f"derive {text}")
            return rows.derive(new=text)
        if kind == "cut":
            word, name, how = luck.choice(CUTS)
            if isinstance(there.columns.get(name), Integers):
                cut: Dataset = getattr(rows, word)(**{name: how})
                told.append(f"{word} {name} {how}")
                return cut
        if kind == "per_unit" and "number" not in there:
            texts = {name: text for name, (column, text) in PEOPLE.items() if possible([((column,), text)])}
            people = rows.per_unit(number="count()", **texts)
            told.append(f"per_unit {texts}")
            return people
        if kind == "beside":
            name, how = luck.choice(list(SCHEMAS)), luck.choice(["inner", "left"])
            beside = rows.join(name, how=how)
            told.append(f"join {name} {how}")
            return beside
    except InvalidValue:  # a column of that name is there, no bound, a key that is gone
        pass
    return rows


def an_aggregate(rows: Dataset, luck: random.Random, bounded: bool, whole: bool) -> Any:
    """One aggregate, with a bound of its own or without; None where it is refused."""
    schema = rows.schema
    cells = [name for name in schema if isinstance(schema[name], Categories | Flags)]
    numbers = [name for name in schema if isinstance(schema[name], Integers) and width(schema[name]) < 400]
    by = luck.sample(cells, luck.randint(0, min(2, len(cells))))
    options: list[Any] = [Count(by=by)]
    if cells:
        options += [CellCounts([luck.choice(cells)]), DistinctCount(luck.choice(cells))]
    if numbers:
        name = luck.choice(numbers)
        options += [
            Sum(name, by=by), Moments(name, powers=(0, 1, 2), by=by), Histogram(name, cells=1, by=by),
            Count(name, by=by, where=f"{name} > 0"), DistinctCount(name, by=by), CellCounts([*by, name]),
        ]  # fmt: skip
    aggregate = luck.choice([Count(), luck.choice(options), luck.choice(options)])
    bound = UnitBound(max_rows=MOST if whole else luck.randint(1, 4))
    if luck.random() < 0.6:
        bound = UnitBound(rows_per_cell=luck.randint(1, 3), max_cells=luck.randint(1, 4))
        if whole:
            bound = UnitBound(rows_per_cell=MOST, max_cells=MOST**2)
    if bounded and isinstance(aggregate, CellCounts) and luck.random() < 0.7:
        aggregate = BoundedGroups(aggregate, bound, groups=aggregate.by[:-1])
    elif bounded:
        aggregate = Bounded(aggregate, bound)
    try:
        rows.sensitivity(aggregate)
        rows._queries({"one": aggregate}, apart=False)
    except InvalidValue:  # no bound on rows, or too many cells
        return None
    return aggregate


def width(domain: Any) -> int:
    return int(domain.upper - domain.lower)
