"""Rows of one table among several that keys link: whose they are, and the rows of other tables that they lead to.

    persons(person_id, born)          the unit is persons.person_id
    visits(visit_id, person_id, ward) visits.person_id leads to persons.person_id
    drugs(visit_id, drug)             drugs.visit_id leads to visits.visit_id

A visit names its person itself. A drug does not: it belongs to the person of its visit. Keys are compared as units are,
by their bytes (`unit_rows.unit_key`), and a key that is missing leads nowhere.

What keeps one person's rows from reaching another's, whatever the tables hold:

    a key that leads to two units     the row belongs to both, so it is left out, and so is what leads to it
    a key that leads nowhere          the row belongs to nobody, and is left out
    two rows with one key             one of them is used, at random; both are of one unit, by the first rule
    a unit that its table lacks       is a unit all the same; an inner join with that table drops its rows

`rows_of_one_unit` says what follows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.data.engines.engine import Engine
from farthing.data.ownership import Ownership
from farthing.data.schema import Domain, Schema, refuse_alike
from farthing.data.sources import Source
from farthing.data.stability import UNBOUNDED, Link, Run
from farthing.data.unit_rows import Base, bounded, unit_columns, with_draw
from farthing.errors import InvalidValue

(UNIT,) = unit_columns(1)
_SHARED = "__farthing_shared"  # 1 where a row leads to several units
_UP = "__farthing_up"  # the key by which a row names another
_KEY = "__farthing_key"  # the key by which it is named
_MATCH = "__farthing_match"
_DRAW = "__farthing_draw"
_RANK = "__farthing_rank"
_LEAST, _MOST = "__farthing_least", "__farthing_most"


@dataclass(frozen=True)
class Key:
    """A column that names a row of another table, by what stands in `target` there."""

    column: str
    parent: str
    target: str


@dataclass(frozen=True, eq=False)
class Tables:
    """Several tables of the same units, each but the one that names the units with a key to another."""

    members: Mapping[str, Base]
    keys: Mapping[str, Key]
    unit_table: str
    unit_column: str
    max_rows: Mapping[str, int]  # UNBOUNDED where every statistic has a bound of its own, or nothing is asked
    neighbours: str

    def above(self, name: str) -> list[str]:
        """The tables that one leads to, the nearest first."""
        path = []
        while name in self.keys:
            name = self.keys[name].parent
            path.append(name)
        return path

    def names_unit(self, name: str) -> bool:
        """Whether a row says by itself whose it is."""
        key = self.keys.get(name)
        return key is None or (key.parent, key.target) == (self.unit_table, self.unit_column)

    def unit_column_of(self, name: str) -> str:
        """The column that says whose a row is, where a row says it by itself."""
        key = self.keys.get(name)
        return self.unit_column if key is None else key.column

    def base(self, name: str) -> LinkedBase:
        """One of the tables, with the unit of all of them."""
        own = self.members[name]
        return LinkedBase(
            own.source, (self.unit_column,), self.max_rows[name], own.declared, self.neighbours, None,
            own.padded, own.schema, own.lists, spelled=own.spelled, tables=self, place=name,
        )  # fmt: skip

    def owner(self, name: str) -> Ownership:
        """How the rows of one of them say whose they are."""
        source, key = self.members[name].source, self.keys.get(name)
        if key is None:
            return Ownership(source, (self.unit_column,), place=name)
        if self.names_unit(name):
            return Ownership(source, (key.column,), place=name)
        return Ownership(source, (key.column,), self.members[key.parent].source, key.target, name)

    @property
    def definition(self) -> list[Any]:
        """All that was declared about them, as plain data."""
        keys = sorted([name, key.column, key.parent, key.target] for name, key in self.keys.items())
        members = sorted(
            [
                name,
                base.source.declared,
                self.max_rows[name] if self.max_rows[name] < UNBOUNDED else None,
                sorted([c, repr(each)] for c, each in (*base.declared.columns.items(), *base.declared.unknown.items())),
            ]
            for name, base in self.members.items()
        )
        return [self.unit_table, self.unit_column, keys, members]


@dataclass(frozen=True, eq=False)
class LinkedBase(Base):
    """One table of several, whose rows belong to the units of all."""

    tables: Tables = field(kw_only=True)
    place: str = field(kw_only=True)
    joins: tuple[tuple[str, bool], ...] = ()  # tables above it, each with whether rows without one there are kept
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # what comes from a table above, by its name

    @property
    def is_whole(self) -> bool:
        return super().is_whole and not self.joins

    @property
    def inner_joins(self) -> tuple[str, ...]:
        return tuple(name for name, keep in self.joins if not keep and self._by_unit(name))

    @property
    def place_name(self) -> str:
        return self.place

    @property
    def joined_tables(self) -> dict[str, Base]:
        """The tables whose columns are brought along, by name."""
        return {name: self.tables.members[name] for name, _ in self.joins}

    @property
    def own(self) -> Base:
        return self.tables.members[self.place]

    @property
    def home(self) -> Base:
        return self.tables.base(self.tables.unit_table)

    @property
    def unit_types(self) -> list[str]:
        return [self.tables.members[self.tables.unit_table].key_type(self.tables.unit_column)]

    @property
    def sources(self) -> tuple[Source, ...]:
        """Its own, those that say whose rows they are, and those that are joined."""
        read, name = [self.place], self.place
        while not self.tables.names_unit(name):
            name = self.tables.keys[name].parent
            read.append(name)
        read += [each for each, _ in self.joins]
        return tuple(self.tables.members[each].source for each in dict.fromkeys(read))

    @property
    def linked_sources(self) -> tuple[Source, ...]:
        return tuple(base.source for base in self.tables.members.values())

    @property
    def owners(self) -> tuple[Ownership, ...]:
        return tuple(map(self.tables.owner, self.tables.members))

    @property
    def schemas_beside(self) -> Mapping[str, Schema]:
        here = {self.place, *dict(self.joins)}
        return {name: base.declared for name, base in self.tables.members.items() if name not in here}

    @property
    def facts(self) -> list[Any]:
        joins = [[name, keep] for name, keep in self.joins]
        return [*super().facts, ["linked", self.place, self.tables.definition, joins]]

    @property
    def links(self) -> tuple[Link, ...]:
        (first,) = super().links
        if not self.tables.names_unit(self.place):
            key = self.tables.keys[self.place]
            first = replace(first, why=f"{first.why}; {key.column} says whose they are, through {key.parent}")
        more = []
        for name, keep in self.joins:
            why = "each row leads to at most 1 row there, of the same unit"
            lacking = "a row without one has missing cells" if keep else "a row without one is dropped"
            why = f"{why}; {lacking}" if self._by_unit(name) else why
            more.append(Link(f"join {name}", "x 1", first.rows, why))
        return (first, *more)

    def joined(self, name: str, keep: bool, changed: bool) -> LinkedBase | None:
        self._refuse_unknown(name)
        if name == self.place or name in dict(self.joins):
            raise InvalidValue("other", name, "must be another table, which was not joined yet")
        if name not in self.tables.above(self.place) or (changed and self._by_unit(name)):
            return None
        above = self.tables.members[name]
        taken, brought = {*self.declared, *self.declared.unknown}, {}
        unknown = above.declared.unknown
        for column in unknown:  # it is found under its own name, in its own table
            if column in taken:
                way_out = "declare what it holds, or rename one of them in the source"
                raise InvalidValue("other", name, f"has an unknown column {column!r}, and the name is taken", way_out)
        taken |= {*unknown}
        for column in above.schema:  # lists are read by the table that has them
            called = f"{name}_{column}" if column in taken else column
            if called in taken:
                raise InvalidValue("other", name, f"has a column {column!r}, and {called!r} is taken", "rename one")
            taken.add(called)
            brought[called] = (name, column)
        new = {called: above.schema[column] for called, (_, column) in brought.items()}
        still = {**self.declared.unknown, **unknown}
        refuse_alike([*self.declared, *new, *still])
        return replace(
            self,
            declared=Schema({**self.declared.columns, **new}, still),
            schema=Schema({**self.schema.columns, **new}, still),
            joins=(*self.joins, (name, keep)),
            columns={**self.columns, **brought, **{column: (name, column) for column in unknown}},
        )

    def key_columns(self, name: str) -> set[tuple[str, str]]:
        """Along which columns another table is joined: pairs of a column of a table here, and one of it."""
        here, pairs = [self.place, *dict(self.joins)], set()
        for child, key in self.tables.keys.items():
            if child in here and key.parent == name:
                pairs.add((f"{child}.{key.column}", key.target))
        if pairs or name in self.tables.above(self.place) or not self.tables.names_unit(name):
            return pairs
        # Each row meets every row of the same unit: by the columns that name it in both.
        own, there = self.tables.unit_column_of(self.place), self.tables.unit_column_of(name)
        return {(f"{self.place}.{own}", there)} if self.tables.names_unit(self.place) else pairs

    def table_of(self, column: str) -> LinkedBase:
        """The table of a column without any join: what is found there is the same, whatever it is joined to."""
        return self.tables.base(self.origin(column)[0])

    def origin(self, column: str) -> tuple[str, str]:
        return self.columns.get(column, (self.place, column))

    def with_domains(self, domains: Mapping[str, Domain]) -> LinkedBase:
        """Also in the tables themselves, which read the cells that are brought along."""
        members = dict(self.tables.members)
        for called, domain in domains.items():
            name, column = self.origin(called)
            members[name] = members[name].with_domains({column: domain})
        known = super().with_domains(domains)
        assert isinstance(known, LinkedBase)
        return replace(known, tables=replace(self.tables, members=members))

    def beside(self, name: str) -> Base:
        self._refuse_unknown(name)
        return self.tables.base(name)

    def table(self, run: Run, columns: Collection[str], limits: Mapping[str, int]) -> Any:
        """The rows, with those of the table that names the units beside them: after the bound, because then fewer."""
        rows = super().table(run, columns, limits)
        for name, keep in self.joins:
            if not self._by_unit(name):
                continue
            cells = self._cells_above(name, {*columns, *self._dated})
            if not cells and keep:
                continue
            above = self.tables.members[name]
            people = above.source.table.select(**{UNIT: above.key(self.tables.unit_column)}, **cells)
            one = bounded(people.filter(people[UNIT].notnull()), [UNIT], 1)
            one = one.select(**{_MATCH: one[UNIT]}, **{cell: one[cell] for cell in cells})
            rows = rows.join(one, rows[UNIT] == one[_MATCH], how="left" if keep else "inner").drop(_MATCH)
        return rows

    def rows_with_unit(self, columns: Collection[str], limits: Mapping[str, int], more: Mapping[str, Any]) -> Any:
        """All rows of the table that belong to one unit, with their cells and those that come with its parents."""
        cells = {**self.cells(columns, limits), **more}
        rows = self._resolved(self.place, cells, {*columns, *self._dated})
        return rows_of_one_unit(rows)

    def units(self) -> Any:
        return self.rows_with_unit((), {}, {}).select(UNIT)

    def shared_rows(self) -> Any:
        """The rows that lead to several units, and are left out for that."""
        rows = self._resolved(self.place, {}, ())
        return rows.filter(rows[_SHARED] != 0)

    def rows_lacking(self, name: str) -> Any:
        """The rows whose unit has no row in the table that names the units: an inner join with it leaves them out."""
        above, rows = self.tables.members[name], self.units()
        there = above.source.table.select(**{_MATCH: above.key(self.tables.unit_column)}).distinct()
        named = rows.filter(rows[UNIT].notnull())
        return named.anti_join(there, named[UNIT] == there[_MATCH])

    def _by_unit(self, name: str) -> bool:
        """Whether a table is joined by the unit itself, which every row has, whatever was done to it."""
        below = [each for each, key in self.tables.keys.items() if key.parent == name]
        path = [self.place, *self.tables.above(self.place)]
        return name == self.tables.unit_table and all(self.tables.names_unit(each) for each in below if each in path)

    def _cells_above(self, name: str, wanted: Collection[str]) -> dict[str, Any]:
        """The wanted cells of a table above, as its own domains read them."""
        above = self.tables.members[name]
        return {
            called: above.read(column, above.source.table[column])
            for called, (table, column) in self.columns.items()
            if table == name and called in wanted
        }

    def _resolved(self, name: str, cells: Mapping[str, Any], wanted: Collection[str]) -> Any:
        """The rows of a table with the unit that they lead to, and a mark where they lead to several."""
        import ibis

        member, none = self.tables.members[name], ibis.literal(0, "int8")
        raw, key = member.source.table, self.tables.keys.get(name)
        if key is None or self.tables.names_unit(name):
            unit = member.key(self.tables.unit_column if key is None else key.column)
            return raw.select(**{UNIT: unit, _SHARED: none}, **cells)
        above = self.tables.members[key.parent]
        more = self._cells_above(key.parent, wanted)
        parents = self._resolved(key.parent, {_KEY: above.key(key.target), **more}, wanted)
        there = parents.filter(parents[_KEY].notnull(), parents[UNIT].notnull())
        one = one_of_each_key(there, above.source.engine, mixed=not self.tables.names_unit(key.parent))
        rows = raw.select(**{_UP: member.key(key.column)}, **cells)
        joined = rows.inner_join(one, rows[_UP] == one[_MATCH])
        return joined.drop(_UP, _MATCH)

    def _refuse_unknown(self, name: str) -> None:
        if name not in self.tables.members:
            known = ", ".join(self.tables.members)
            raise InvalidValue("other", name, "is not one of the linked tables", f"there are: {known}")


def one_of_each_key(rows: Any, engine: Engine, mixed: bool = True) -> Any:
    """One row for each value of the key, at random, with a mark where rows with that value are of several units.

    `mixed`: some rows may have that mark already, because they do not name their unit themselves.
    """
    import ibis

    named = rows[UNIT]
    if engine.name == "postgres" and not (named.type().is_integer() or named.type().is_date()):
        # It has no least of bytes, UUIDs and flags before version 18; of digits it has.
        named = engine.hexadecimal(named) if named.type().is_binary() else named.cast("string")
    cells = [name for name in rows.columns if name not in (UNIT, _SHARED, _KEY)]
    if not cells and named is rows[UNIT]:
        one = rows.aggregate(
            by=[_KEY], **{_LEAST: named.min(), _MOST: named.max(), _SHARED: rows[_SHARED].max()}
        ).mutate(**{UNIT: ibis._[_LEAST]})
    else:
        # In one order, so that engines sort once: the first row has the least unit, and the last row the greatest.
        drawn = with_draw(rows.mutate(**{_LEAST: named}), _DRAW)
        ordered = ibis.window(group_by=_KEY, order_by=[_LEAST, _DRAW], preceding=None, following=None)
        one = drawn.mutate(
            **{
                _RANK: ibis.row_number().over(group_by=_KEY, order_by=[_LEAST, _DRAW]),
                _MOST: drawn[_LEAST].last().over(ordered),
                _SHARED: drawn[_SHARED].max().over(ordered) if mixed else drawn[_SHARED],
            }
        )
        one = one.filter(one[_RANK] == 0)
    several = ibis.cases((one[_LEAST] != one[_MOST], ibis.literal(1, "int8")), else_=one[_SHARED])
    return one.select(**{_MATCH: one[_KEY], UNIT: one[UNIT], _SHARED: several}, **{c: one[c] for c in cells})


def rows_of_one_unit(rows: Any) -> Any:
    """The rows that lead to one unit and to no other, after which adding or removing a unit moves its own rows alone.

    Statement:
        Let a row lead to a unit if it names it, or names a row that leads to it; the rows of a unit are all rows, in
        all tables, that lead to it. Taking the rows of unit u away changes no row that is kept for another unit, nor
        the rows above it that it may be joined to. So neighbours differ, after at most m rows of each unit are kept, in
        at most m rows, each beside one row at most of every table above.
    Source: Let row r be kept for v, so that it leads to v alone, and every row that r leads to does, too. None of them
        leads to u, so all are still there without u, and nothing else can have come: r is kept for v. Conversely, a row
        that is kept for v without u was not taken away, so it does not lead to u, nor do the rows it leads to; these
        are the same with u.
    Assumes: nothing about the tables; keys may be repeated, missing, or used by several units. What it takes for the
        rows of a person: where two people are given one key, the rows behind it are both theirs, come and go with
        either of them, and are left out. No rule could hold for every reading of such rows: with them, n visits that
        u shares with n others may be theirs or u's, and the tables are the same.
        One way of each row to its unit, for all answers of an account: neighbours are the tables with and without the
        rows of u, and which rows these are depends on the keys. Answers add up if each is private for the same
        neighbours. With one key for each table that an account reads (`curator.row_owners`) they are: every answer
        reads some of the tables, each of which loses the rows of u and no other, as above. So one key is enough. It is
        necessary: by sender, u has n rows of a table; a later answer that keeps 1 row of each receiver can change by
        n when they go, because each may be another receiver's only row. It was charged for 1.
    Direction: exact; only rows of u move.
    Checked by: tests/contracts/test_linked_neighbours.py, tests/unit/curator/test_row_owners.py
    """
    owned = rows.filter(rows[_SHARED] == 0)
    return owned.drop(_SHARED)
