"""Worlds of four linked tables in which keys go wrong in every way, who owns what in them, and what a loop counts.

Keys come from a few values, so that they are missing, repeated, used by several people, or lead nowhere. Cells of a row
above are functions of its key or of its person, so that of two rows with one key it does not matter which is used.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from farthing.data import Count, Dataset, Sum
from farthing.data.linked_tables import LinkedTables, linked, table

World = dict[str, list[dict[str, Any]]]

KEYS = {
    "visits": ("person_id", "persons", "person_id"),
    "drugs": ("visit_id", "visits", "visit_id"),
    "doses": ("drug_id", "drugs", "drug_id"),
}
BY_CODE = {**KEYS, "visits": ("code", "persons", "code")}  # a visit names its person by another column than the unit
SCHEMAS: dict[str, dict[str, Any]] = {
    "persons": {"sex": ["F", "M"]},
    "visits": {"ward": ["A", "B"], "cost": (0, 9)},
    "drugs": {"drug": ["x", "y"], "cost": (0, 5)},
    "doses": {"amount": (-3, 3)},
}
CELLS = {"sex": "FM", "ward": "AB", "drug": "xy"}
ABOVE = {"persons": [], "visits": ["persons"], "drugs": ["visits", "persons"], "doses": ["drugs", "visits", "persons"]}
SPELLED = ["ab", "AB", "ab ", "ä", "x" * 40, "x" * 41]
DIGITS = ["7", "07", "-12", "+7", "9223372036854775807", " 7"]  # some are the digits of a whole number, others are not


def types(text: bool) -> dict[str, pa.Schema]:
    key = pa.string() if text else pa.int64()
    return {
        "persons": pa.schema([("person_id", key), ("code", key), ("sex", pa.string())]),
        "visits": pa.schema(
            [("visit_id", key), ("person_id", key), ("code", key), ("ward", pa.string()), ("cost", pa.int64())]
        ),
        "drugs": pa.schema([("drug_id", key), ("visit_id", key), ("drug", pa.string()), ("cost", pa.int64())]),
        "doses": pa.schema([("drug_id", key), ("amount", pa.int64())]),
    }


def mixed_types(luck: random.Random) -> dict[str, pa.Schema]:
    """Each key is text or whole numbers, whatever it leads to."""
    shapes = {}
    for name, shape in types(True).items():
        kinds = [
            (each.name, luck.choice([each.type, pa.int64()]) if is_key(each.name) else each.type) for each in shape
        ]
        shapes[name] = pa.schema(kinds)
    return shapes


def is_key(name: str) -> bool:
    return name.endswith("_id") or name == "code"


def held(world: World, shapes: dict[str, pa.Schema]) -> World:
    """The world that such columns can hold: a whole number has one spelling, so that others are missing there."""

    def cell(name: str, column: str, value: Any) -> Any:
        whole = is_key(column) and value is not None and pa.types.is_integer(shapes[name].field(column).type)
        return None if whole and str(int(DIGITS[value])) != DIGITS[value] else value

    return {
        name: [{column: cell(name, column, value) for column, value in row.items()} for row in rows]
        for name, rows in world.items()
    }


def arrow_by_digits(world: World, shapes: dict[str, pa.Schema]) -> dict[str, pa.Table]:
    """The tables, with numbers of keys as digits: text in some columns, whole numbers in others."""

    def spelled(name: str, column: str, value: Any) -> Any:
        if not is_key(column) or value is None:
            return value
        return int(DIGITS[value]) if pa.types.is_integer(shapes[name].field(column).type) else DIGITS[value]

    return {
        name: pa.Table.from_pylist(
            [{column: spelled(name, column, value) for column, value in row.items()} for row in rows],
            schema=shapes[name],
        )
        for name, rows in world.items()
    }


def a_world(luck: random.Random, size: int, values: int) -> World:
    """`size` rows a table, whose keys are among so many values."""

    def key() -> int | None:
        return luck.choice([None, *range(values), *range(values), *range(values)])

    def cell(*options: Any) -> dict[Any, Any]:
        return {each: luck.choice([*options, None, "?"] if isinstance(options[0], str) else options) for each in keys}

    keys = [None, *range(values)]
    sex, ward, drug, code = cell("F", "M"), cell("A", "B"), cell("x", "y"), {each: key() for each in keys}
    rows: World = {name: [] for name in SCHEMAS}
    for _ in range(luck.randrange(size + 1)):
        who = key()
        rows["persons"].append({"person_id": who, "code": code[who], "sex": sex[who]})
    for _ in range(luck.randrange(2 * size + 1)):
        who = key()
        rows["visits"].append(
            {"visit_id": key(), "person_id": who, "code": code[who], "ward": ward[who], "cost": luck.randint(0, 9)}
        )
    for row in rows["visits"]:  # the same for all visits of one person: a dose may lead to any of them
        row["cost"] = (7 * (row["code"] or 0)) % 10
        row["ward"] = ward[row["code"]]
    for _ in range(luck.randrange(2 * size + 1)):
        number = key()
        rows["drugs"].append({"drug_id": number, "visit_id": key(), "drug": drug[number], "cost": (number or 0) % 6})
    for _ in range(luck.randrange(2 * size + 1)):
        rows["doses"].append({"drug_id": key(), "amount": luck.choice([None, luck.randint(-5, 5)])})
    return rows


def leads(world: World, keys: Any, name: str, row: dict[str, Any]) -> set[Any]:
    """The units that a row leads to, by following its keys one by one."""
    if name == "persons":
        return {row["person_id"]} - {None}
    column, parent, target = keys[name]
    if (parent, target) == ("persons", "person_id"):
        return {row[column]} - {None}
    found: set[Any] = set()
    for above in world[parent]:
        if row[column] is not None and above[target] == row[column]:
            found |= leads(world, keys, parent, above)
    return found


def without(world: World, keys: Any, unit: Any) -> World:
    """The world without a unit: without every row that leads to it."""
    return {name: [row for row in rows if unit not in leads(world, keys, name, row)] for name, rows in world.items()}


def rows_above(world: World, keys: Any, name: str, row: dict[str, Any], unit: Any) -> Iterator[tuple[str, Any]]:
    """For each table above the row that is used there, or None."""
    while name in keys:
        column, parent, target = keys[name]
        match = [each for each in world[parent] if row is not None and each[target] == row[column]]
        match = [each for each in match if unit in leads(world, keys, parent, each)]
        row, name = (match[0] if match else None), parent
        yield name, row


@dataclass(frozen=True)
class Chain:
    """One table with some of those above it, and what is asked of it."""

    place: str
    joins: tuple[tuple[str, str], ...]
    most: int | None  # rows of a unit that are kept; None where only statistics bound them
    by_code: bool = False
    text: bool = False
    where: str | None = None  # a category of the last join
    people: bool = False
    beside: str | None = None

    @property
    def keys(self) -> dict[str, tuple[str, str, str]]:
        return BY_CODE if self.by_code else KEYS

    def tables(self, sources: dict[str, Any]) -> LinkedTables:
        return linked(
            **{name: table(sources[name], schema=SCHEMAS[name]) for name in SCHEMAS},
            unit="persons.person_id",
            keys={f"{name}.{column}": f"{above}.{target}" for name, (column, above, target) in self.keys.items()},
            max_rows=None if self.most is None else dict.fromkeys(SCHEMAS, self.most),
        )

    def dataset(self, sources: dict[str, Any]) -> Dataset:
        rows = self.tables(sources)[self.place]
        for name, how in self.joins:
            rows = rows.join(name, how=how)
        if self.where is not None:
            rows = rows.where(self.where)
        if self.people:
            return rows.per_unit(number="count()")
        return rows if self.beside is None else rows.join(self.beside, how="left")

    def aggregates(self, rows: Dataset, whole: bool) -> dict[str, Any]:
        """`whole`: no unit has more rows than are kept, so that nothing is left to chance."""
        found: dict[str, Any] = {"rows": Count()}
        if self.people or not whole:
            return found
        for name in ("sex", "ward", "drug"):
            if name in rows.schema:
                found[f"by {name}"] = Count(by=name)
        for name in ("cost", "visits_cost", "amount"):
            if name in rows.schema:
                found[f"sum of {name}"] = Sum(name)
        return found

    def loop(self, world: World) -> dict[str, Any] | None:
        """What the aggregates come to, by a loop; None where it is not simple."""
        if self.where is not None or self.people or self.beside is not None:
            return None
        short = [row for rows in self.rows_of_units(world).values() for row in rows[: self.most] if not row["lost"]]
        found: dict[str, Any] = {"rows": len(short)}
        for name, values in CELLS.items():
            found[f"by {name}"] = [sum(row.get(name) == value for row in short) for value in values]
        for name, low, high in (("cost", 0, 9), ("visits_cost", 0, 9), ("amount", -3, 3)):
            found[f"sum of {name}"] = sum(max(low, min(high, row.get(name) or 0)) for row in short)
        return found

    def rows_of_units(self, world: World) -> dict[Any, list[dict[str, Any]]]:
        """All rows of each unit with the cells that are joined to them, and whether a join lost them."""
        kept: dict[Any, list[dict[str, Any]]] = {}
        for row in world[self.place]:
            units = leads(world, self.keys, self.place, row)
            if len(units) != 1:
                continue
            (unit,) = units
            above = dict(rows_above(world, self.keys, self.place, row, unit))
            cells, lost = dict(row), False
            for name, how in self.joins:
                lost |= above[name] is None and how == "inner"
                for column in SCHEMAS[name]:
                    value = None if above[name] is None else above[name][column]
                    cells[f"{name}_{column}" if column in cells else column] = value
            kept.setdefault(unit, []).append({**cells, "lost": lost})
        return kept

    def is_whole(self, world: World) -> bool:
        """Whether no unit has more rows than are kept, in any table."""
        for name in SCHEMAS:
            units = [leads(world, self.keys, name, row) for row in world[name]]
            owners = [min(unit) for unit in units if len(unit) == 1]
            if self.most is not None and any(owners.count(unit) > self.most for unit in set(owners)):
                return False
        return True


def a_chain(luck: random.Random) -> Chain:
    place = luck.choice(["visits", "drugs", "drugs", "doses", "persons"])
    above = [name for name in ABOVE[place] if luck.random() < 0.6]
    luck.shuffle(above)
    by_code = luck.random() < 0.4
    ways = {name: luck.choice(["inner", "left"]) if name == "persons" and not by_code else "inner" for name in above}
    most = luck.choice([1, 2, 100])
    where = None
    if most == 100 and above and luck.random() < 0.3:
        where = {"persons": "sex = 'F'", "visits": "ward = 'A'", "drugs": "drug = 'x'"}[above[-1]]
    last = luck.random()
    beside = "doses" if place == "persons" and last > 0.5 else None
    joins = tuple((name, ways[name]) for name in above)
    return Chain(place, joins, most, by_code, luck.random() < 0.3, where, last < 0.15, beside)


def arrow(world: World, shapes: dict[str, pa.Schema], text: bool) -> dict[str, pa.Table]:
    """The tables, with numbers of keys spelled as texts that an engine may take for each other."""

    def spelled(name: str, value: Any) -> Any:
        return SPELLED[value] if is_key(name) and text and value is not None else value

    return {
        name: pa.Table.from_pylist(
            [{column: spelled(column, value) for column, value in row.items()} for row in rows], schema=shapes[name]
        )
        for name, rows in world.items()
    }
