"""`linked(...)`: several private tables of the same people, linked by keys; whose privacy it is is said once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from farthing.data.dataset import Dataset
from farthing.data.linked_rows import Key, Tables
from farthing.data.owner_conflicts import refuse_two_owners
from farthing.data.schema import Schema
from farthing.data.stability import UNBOUNDED
from farthing.data.unit_rows import AUTO, Base, checked_max_rows, opened_base
from farthing.errors import InvalidValue


@dataclass(frozen=True)
class TableFacts:
    """A table for `linked`: where its rows are, and what its columns may hold. Made by `table`.

    Args:
        source: As for `dataset`.
        schema: For each column its public bounds, categories or kind.
        name: What a ledger calls the table.

    >>> TableFacts("visits.csv", {"ward": ["A", "B"]}).source
    'visits.csv'
    """

    source: Any
    schema: Mapping[str, object] | Schema
    name: str | None = None


def table(source: Any, *, schema: Mapping[str, object] | Schema, name: str | None = None) -> TableFacts:
    """One of the tables of `linked`. Nothing is opened yet.

    Args:
        source: A path, a frame or an Ibis table, as for `dataset`.
        schema: For each column its public bounds, categories or kind. Keys need not be declared; {} for a
            table that only links others.
        name: What a ledger calls the table; its file name by default, and for a frame its name among the linked tables.

    Returns:
        Its public facts.

    >>> table("visits.csv", schema={"ward": ["A", "B"]}).schema
    {'ward': ['A', 'B']}
    """
    return TableFacts(source, schema, name)


class _UnknownTable(InvalidValue, KeyError):
    """A KeyError, too, as every mapping has; a KeyError by itself shows its message in quotes."""

    __str__ = Exception.__str__


@dataclass(frozen=True, eq=False)
class LinkedTables(Mapping[str, Dataset]):
    """Datasets by name, all of the same units; `tables["drugs"].join("visits")` brings the columns of a visit along.

    Make one with `farthing.linked`.

    >>> import pyarrow
    >>> persons = table(pyarrow.table({"id": [1, 2], "sex": ["F", "M"]}), schema={"sex": ["F", "M"]})
    >>> visits = table(pyarrow.table({"who": [1, 1], "ward": ["A", "B"]}), schema={"ward": ["A", "B"]})
    >>> clinic = linked(
    ...     persons=persons, visits=visits, unit="persons.id", keys={"visits.who": "persons.id"}, max_rows={"visits": 3}
    ... )
    >>> list(clinic)
    ['persons', 'visits']
    >>> clinic["visits"].join("persons")
    Dataset(visits, unit=id, at most 3 rows, columns=ward, sex)
    """

    _tables: Tables

    def __getitem__(self, name: str) -> Dataset:
        if name not in self._tables.members:
            known = ", ".join(self._tables.members)
            raise _UnknownTable("table", name, "is not one of the linked tables", f"there are: {known}")
        base = self._tables.base(name)
        return Dataset(base, (), base.schema)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables.members)

    def __len__(self) -> int:
        return len(self._tables.members)

    def __str__(self) -> str:
        lines = [f"unit: {self._tables.unit_table}.{self._tables.unit_column}"]
        for name in self:
            key = self._tables.keys.get(name)
            leads = f", {key.column} -> {key.parent}.{key.target}" if key else ""
            most = self._tables.max_rows[name]
            rows = "any number of rows" if most >= UNBOUNDED else f"at most {most} row{'s' * (most > 1)}"
            lines.append(f"{name}: {rows} of a unit{leads}")
        return "\n".join(lines)


def linked(
    *,
    unit: str,
    keys: Mapping[str, str],
    max_rows: Mapping[str, int] | None = None,
    neighbours: str = "add-remove",
    **tables: TableFacts,
) -> LinkedTables:
    """Several private tables that keys link, and the one unit that all of their rows belong to.

    A row belongs to the unit that its keys lead to. A row that leads to nobody, or to several units, is left out.
    No row is read here: only names and types of columns.

    Args:
        unit: The column that names a person, with its table: "persons.person_id".
        keys: For each other table the column that leads to a row of another: {"visits.person_id": "persons.person_id",
            "drugs.visit_id": "visits.visit_id"}. Whole numbers lead to text, and text to them, by their digits: 7 and
            "7" are the same, "07" is another.
        max_rows: How many rows of each unit are kept, by table, chosen uniformly at random; 1 of the unit's own table
            unless it is given. A table needs none if nothing is asked of its rows (they are only joined), or if
            every statistic has a bound of its own (`of="people"` with `max_cells`, for example): such a statistic
            looks at all rows of a unit.
        neighbours: "add-remove" or "replace".
        **tables: Each table by name, made with `table`.

    Returns:
        A mapping from the name of each table to a dataset, in which neighbours differ by all rows of one unit in all
        tables.

    Raises:
        InvalidValue: If keys form a cycle, lead nowhere or have two types; or a table or column is not there.

    >>> import pyarrow
    >>> hospital = linked(
    ...     persons=table(pyarrow.table({"person_id": [1, 2], "born": [1950, 1990]}), schema={"born": (1900, 2025)}),
    ...     visits=table(pyarrow.table({"visit_id": [7, 8], "person_id": [1, 1], "ward": ["A", "B"]}),
    ...                  schema={"ward": ["A", "B"]}),
    ...     drugs=table(pyarrow.table({"visit_id": [7, 7, 8], "drug": ["x", "y", "x"]}), schema={"drug": ["x", "y"]}),
    ...     unit="persons.person_id",
    ...     keys={"visits.person_id": "persons.person_id", "drugs.visit_id": "visits.visit_id"},
    ...     max_rows={"visits": 5, "drugs": 3},
    ... )
    >>> print(hospital["drugs"].join("visits").join("persons", how="left").stability())
    unit: all rows with one person_id; neighbours add or remove one unit
    V0  drugs         keep 3  3 rows     at most 3 rows of a unit are kept, chosen at random; visit_id says whose...
    V1  join visits   x 1     3 rows     each row leads to at most 1 row there, of the same unit
    V2  join persons  x 1     3 rows     each row leads to at most 1 row there, of the same unit; a row without one...
    neighbours differ in at most 3 rows
    """
    for name, facts in tables.items():
        if not isinstance(facts, TableFacts):
            raise InvalidValue(name, type(facts), "must be a table", 'write table("visits.csv", schema={...})')
    unit_table, unit_column = _place("unit", unit, tables)
    links = _links(keys, tables)
    _refuse_unlinked(links, tables, unit_table)
    bounds = _bounds(max_rows, tables, unit_table)
    members = {
        name: _opened(
            name,
            facts,
            neighbours,
            _key_columns(name, links, unit_table, unit_column),
            unit_column if name == unit_table else None,
        )
        for name, facts in tables.items()
    }
    _refuse_other_engine(members)
    members = _comparable(members, links)
    made = Tables(members, links, unit_table, unit_column, bounds, neighbours)
    refuse_two_owners(map(made.owner, members))
    return LinkedTables(made)


def _opened(name: str, facts: TableFacts, neighbours: str, keys: list[str], unit: str | None) -> Base:
    """A table by itself; what is wrong with it is said with its name, and of the unit's column as `unit`."""
    frame = not isinstance(facts.source, str) and not hasattr(facts.source, "__fspath__")
    frame = frame and not isinstance(facts.source, list | tuple) and not hasattr(facts.source, "op")
    called = facts.name or (name if frame else None)
    schema = Schema({}) if isinstance(facts.schema, Mapping) and not facts.schema else facts.schema  # it only links
    try:
        return opened_base(facts.source, None, None, schema, neighbours, None, called, keys)
    except InvalidValue as problem:
        if problem.name == "keys" and problem.value == unit:
            raise InvalidValue("unit", f"{name}.{unit}", problem.rule, problem.way_out) from None
        raise InvalidValue(f"{name}.{problem.name}", problem.value, problem.rule, problem.way_out) from None


def _place(argument: str, text: Any, tables: Mapping[str, TableFacts]) -> tuple[str, str]:
    """The table and the column of "table.column"."""
    table_name, dot, column = text.partition(".") if isinstance(text, str) else ("", "", "")
    if not (dot and column):
        raise InvalidValue(argument, text, "must be a table and a column", 'such as "persons.person_id"')
    if table_name not in tables:
        raise InvalidValue(argument, text, f"must begin with a table: {', '.join(tables) or 'none is given'}")
    return table_name, column


def _links(keys: Mapping[str, str], tables: Mapping[str, TableFacts]) -> dict[str, Key]:
    if not isinstance(keys, Mapping):
        raise InvalidValue("keys", keys, "must be a mapping", 'such as {"visits.person_id": "persons.person_id"}')
    links: dict[str, Key] = {}
    for child, parent in keys.items():
        (below, column), (above, target) = (_place("keys", text, tables) for text in (child, parent))
        if below in links:
            both = f"{links[below].column} and {column}"
            raise InvalidValue(
                "keys", child, f"must be the only key of {below!r}, not {both}", "keep the one to its owner"
            )
        links[below] = Key(column, above, target)
    return links


def _refuse_unlinked(links: Mapping[str, Key], tables: Mapping[str, TableFacts], unit_table: str) -> None:
    """Refuse keys that do not lead from every table to the one that names the units."""
    for name in tables:
        path = [name]
        while path[-1] in links:
            path.append(links[path[-1]].parent)
            if path[-1] in path[:-1]:
                raise InvalidValue(
                    "keys", " -> ".join(path), "must not form a cycle", f"let each lead towards {unit_table!r}"
                )
        if path[-1] != unit_table:
            raise InvalidValue(
                "keys",
                f"{path[-1]} -> ?",
                f"must lead from {path[-1]!r} to {unit_table!r}, which names the units",
                f'add "{path[-1]}.column": "table.column", or leave that table out',
            )


def _bounds(max_rows: Mapping[str, int] | None, tables: Mapping[str, TableFacts], unit_table: str) -> dict[str, int]:
    max_rows = {} if max_rows is None else max_rows
    if not isinstance(max_rows, Mapping) or not set(max_rows) <= set(tables):
        rule = f"must say how many rows of a unit are kept, for tables among {', '.join(tables)}"
        raise InvalidValue("max_rows", max_rows, rule, 'such as {"visits": 5}')
    bounds = {}
    for name in tables:
        asked: Any = max_rows.get(name, 1 if name == unit_table else None)
        if asked == AUTO:
            way_out = f"find it in a study of {name!r} alone, or leave it out and give every statistic a bound"
            raise InvalidValue(f"max_rows[{name!r}]", asked, "must be a number in linked tables", way_out)
        try:
            bounds[name] = checked_max_rows(asked, ("unit",))
        except InvalidValue as problem:
            raise InvalidValue(f"max_rows[{name!r}]", problem.value, problem.rule, problem.way_out) from None
    return bounds


def _key_columns(name: str, links: Mapping[str, Key], unit_table: str, unit_column: str) -> list[str]:
    """The columns of a table that link it."""
    own = [links[name].column] if name in links else []
    own += [key.target for key in links.values() if key.parent == name]
    own += [unit_column] if name == unit_table else []
    return list(dict.fromkeys(own))


def _refuse_other_engine(members: Mapping[str, Base]) -> None:
    engines = {name: base.source.engine for name, base in members.items()}
    first = next(iter(engines))
    for name, engine in engines.items():
        if engine is not engines[first]:
            way_out = "move one of them"
            if engine.name == engines[first].name == "postgres":
                way_out = "open it with postgres_table(..., beside=...), in the connection of the other"
            raise InvalidValue(name, members[name].source.name, f"must be in the engine of {first!r}", way_out)


def _comparable(members: Mapping[str, Base], links: Mapping[str, Key]) -> dict[str, Base]:
    """The tables with keys of one type: where whole numbers lead to text, or text to them, both are text.

    Every column of a CSV file is text. A whole number has one spelling, its digits, so that it meets the cell that is
    spelled like it and no other: "07" leads nowhere.
    """
    spelled = {name: set[str]() for name in members}
    while True:  # a key that becomes text may be what another one leads to
        made = {name: replace(base, spelled=frozenset(spelled[name])) for name, base in members.items()}
        before = sum(map(len, spelled.values()))
        for name, key in links.items():
            ends = {name: key.column, key.parent: key.target}
            kinds = {each: made[each].key_type(column) for each, column in ends.items()}
            if "string" in kinds.values():
                for each, kind in kinds.items():
                    spelled[each] |= {ends[each]} if kind in ("int64", "uint64") else set()
        if sum(map(len, spelled.values())) == before:
            break
    for name, key in links.items():
        left, right = made[name].key_type(key.column), made[key.parent].key_type(key.target)
        if left != right:  # an engine that casts one to the other may fail at a row
            raise InvalidValue(
                "keys",
                f"{name}.{key.column}: {key.parent}.{key.target}",
                f"must be columns of one type, not {left} and {right}",
                "convert one of them; whole numbers and text, such as any column of a CSV file, are compared by digits",
            )
    return made
