"""The table a dataset starts from: opened, checked against the schema, with its unit and its bound.

Whose rows these are: units without a name leave, a secret sample is taken, at most `max_rows` rows a unit stay.

Two units are the same only if their bytes are. Engines disagree with that, and with themselves: under a collation
"a" = "A" in a GROUP BY and not in a hash, and a CHAR(8) meets VARCHARs with and without blanks at their ends. So text
is replaced by bytes before anything is grouped, hashed or joined (`unit_key`).

    whole numbers       as 64 bits; of 8 unsigned bytes, as they are
    text                its bytes if there are fewer than 32 of them, and their SHA-256 (32 bytes) otherwise; the blanks
                        that fill up a CHAR(n) are no part of it, other blanks are
    dates, UUIDs, flags as they are: every engine has one form for each of them
    a key of whole      by its digits, as text, if the key at its other end is text (`linked_tables`): 7 and "7" are
    numbers             one, "07" and " 7" are others
    anything else       refused when the dataset is made, by its type

The rows of a unit that stay are chosen uniformly at random, by the engine's own generator. Privacy does not rest on
that randomness: for *any* choice that looks at the unit's own rows only, adding or removing the unit changes at most
`max_rows` rows, so the claim holds for every outcome of the generator and hence on average over them. Uniformity is
for the statistics. `random()` looks at no row at all.

The sample is another matter. Amplification holds because nobody knows who was kept, so `random()` will not do: it is
a fast generator whose state can be worked out. A unit is kept when

    SHA-256(key, unit) < floor(probability * 2^256)

for a key of 256 bits that the operating system draws for every run and that stands only in the SQL of that run. Under
the usual assumption that
the keyed hash looks random, the units are kept independently, each with probability floor(p 2^256) / 2^256 <= p,
which is never above the `probability` that is priced. Rows without a unit are distinguished by a token the engine makes
for each (a UUID): tokens need to be different, not secret, because the key is.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any

from farthing.data.column_types import refuse_wrong_type, type_text, typed
from farthing.data.engines.engine import Engine
from farthing.data.expressions import read_column
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.ownership import Ownership
from farthing.data.parquet_files import refuse_milliseconds
from farthing.data.schema import Domain, Schema, Unknown
from farthing.data.sources import Source, open_source
from farthing.data.stability import NEIGHBOURS, UNBOUNDED, LeftOut, Link, Run, UnitSizes, refuse_unbounded
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count
from farthing.privacy.periods import Periods

UNIT = "__farthing_unit_"
_DRAW = "__farthing_draw"
_RANK = "__farthing_rank"
_BITS = 256
_DIGEST = 32  # bytes; text that is shorter stands for itself, so that the two cannot meet


def unit_columns(count: int) -> list[str]:
    """Names under which the columns of the unit travel through the steps."""
    return [f"{UNIT}{place}" for place in range(count)]


def common_type(kind: Any) -> Any:
    """An Ibis type without what differs between sources of the same values: width, length and NOT NULL.

    >>> import ibis
    >>> common_type(ibis.dtype("!int8"))
    Int64(nullable=True)
    """
    import ibis

    narrow = kind.is_signed_integer() or (kind.is_unsigned_integer() and kind.nbytes < 8)
    return ibis.dtype("int64" if narrow else "string") if narrow or kind.is_string() else kind.copy(nullable=True)


def unit_key(column: Any, engine: Engine) -> Any:
    """What stands for a unit in every comparison; see the top of this module."""
    import ibis

    if not column.type().is_string():
        return column.cast(common_type(column.type()))
    data = engine.bytes_of(column)
    return ibis.cases((engine.octets(column) < _DIGEST, data), else_=engine.sha256(data))


def fresh_key() -> str:
    """256 secret bits from the operating system, as hexadecimal digits."""
    return secrets.token_hex(_BITS // 8)


def sampled(table: Any, engine: Engine, units: int, probability: Fraction, key: str) -> Any:
    """The rows of the units that a secret sample keeps; see the top of this module."""
    if probability >= 1:
        return table
    threshold = int(probability * 2**_BITS)  # rounded down: kept with at most the probability that is priced
    names = unit_columns(units)
    if names:
        # Lengths make the text of several columns one-to-one: ("a", "bc") and ("ab", "c") differ.
        parts = [_digits(table[name], engine) for name in names]
        text = parts[0].length().cast("string") + ":" + parts[0]
        for part in parts[1:]:
            text = text + part.length().cast("string") + ":" + part
    else:
        name = "__farthing_token"
        table = table.mutate(**{name: engine.token()})
        text = table[name]
    import ibis

    # Bytes, not digits: a database may have a collation of its own for the order of digits and letters.
    digest = engine.sha256(engine.bytes_of(ibis.literal(key) + text))
    kept = digest < engine.constant_bytes(threshold.to_bytes(_BITS // 8))
    sample = table.filter(kept)
    return sample if names else sample.drop("__farthing_token")


def _digits(unit: Any, engine: Engine) -> Any:
    """A unit as plain ASCII text."""
    return engine.hexadecimal(unit) if unit.type().is_binary() else unit.cast("string")


def with_draw(table: Any, name: str) -> Any:
    """A random number beside each row, by which some are chosen; it looks at no cell.

    A column of its own, because DuckDB refuses random() inside a window.
    """
    import ibis

    return table.mutate(**{name: ibis.random()})


def bounded(table: Any, names: Sequence[str], max_rows: int, first: str | None = None) -> Any:
    """At most `max_rows` rows of each group of `names`, which hold a unit's key; chosen uniformly at random.

    With `first`, those that are least in it; among rows that are equal there the choice is random. Rows without a value
    there must have left.
    """
    import ibis

    if not names:
        return table
    shuffled = with_draw(table, _DRAW)
    order = [_DRAW] if first is None else [first, _DRAW]
    ranked = shuffled.mutate(**{_RANK: ibis.row_number().over(group_by=list(names), order_by=order)})
    return ranked.filter(ranked[_RANK] < max_rows).drop(_DRAW, _RANK)


MOST_ROWS_A_UNIT = 10**6
AUTO = "auto"
"""Says that a study finds `max_rows`; until then a unit may have as many rows as any."""

_DAY = "__farthing_day"
_ROW = "__farthing_row"  # something to select where rows are only counted


@dataclass(frozen=True, eq=False)
class Base:
    """Everything that was declared about a source."""

    source: Source
    unit: tuple[str, ...]
    max_rows: int  # UNBOUNDED where every statistic has a bound of its own
    declared: Schema
    neighbours: str
    rows: int | None
    padded: frozenset[str]
    schema: Schema  # the columns that can be used at once
    lists: tuple[str, ...]  # columns whose cells are lists: they are read after `explode`
    earliest: tuple[str, date] | None = None  # rows from this day on, the earliest of each unit: see `Dataset.earliest`
    during: tuple[str, Periods] | None = None  # rows of one period: see `Dataset.during`
    present: str | None = None  # rows without a value there leave before any is chosen: see `unknown_columns`
    is_auto: bool = False  # nobody knows how many rows of a unit to keep: `max_rows` is the most there can be
    people: int | None = None  # how many units there are, where that is public
    left_out: LeftOut | None = None  # how many rows `max_rows` leaves out, where a study has found that
    unit_sizes: UnitSizes | None = None  # how many rows units have, where a study has found that
    spelled: frozenset[str] = frozenset()  # keys of whole numbers that are compared with text, by their digits

    @property
    def unit_types(self) -> list[str]:
        """What the columns of the unit hold."""
        return [self.key_type(name) for name in self.unit]

    @property
    def is_whole(self) -> bool:
        """Whether all rows are read, and no columns of another table with them."""
        return self.earliest is None and self.during is None and self.present is None

    @property
    def inner_joins(self) -> tuple[str, ...]:
        """The joined tables in which a unit must have a row: rows of other units are left out."""
        return ()

    @property
    def place_name(self) -> str | None:
        """What it is called among linked tables; None where it is alone."""
        return None

    @property
    def own(self) -> Base:
        """The table itself, without what is read of others."""
        return self

    @property
    def home(self) -> Base:
        """The table that names the units, whose account pays unless another one is named."""
        return self

    @property
    def sources(self) -> tuple[Source, ...]:
        """Every table that is read for its rows, its own first."""
        return (self.source,)

    @property
    def linked_sources(self) -> tuple[Source, ...]:
        """Every table that keys link to this one, its own included."""
        return (self.source,)

    @property
    def owners(self) -> tuple[Ownership, ...]:
        """How each table that keys link to this one says whose its rows are, its own included."""
        return (Ownership(self.source, self.unit),)

    @property
    def schemas_beside(self) -> Mapping[str, Schema]:
        """What was declared of the linked tables that keys bring no column of."""
        return {}

    @property
    def facts(self) -> list[Any]:
        """What says which rows are read at all, as plain data."""
        kept: list[Any] = [] if self.earliest is None else [[self.earliest[0], self.earliest[1].isoformat()]]
        return kept + ([] if self.during is None else [[self.during[0], *self.during[1].names, "during"]])

    @property
    def links(self) -> tuple[Link, ...]:
        """How many rows of one unit there are, and why."""
        if self.unit and self.max_rows >= UNBOUNDED:
            first = Link(self.source.name, "keep all", UNBOUNDED, "every statistic has a bound of its own")
        elif self.unit:
            rows = "1 row of a unit is" if self.max_rows == 1 else f"{self.max_rows} rows of a unit are"
            how, own = "chosen at random", f"keep {self.max_rows}"
            if self.earliest is not None:
                column, since = self.earliest
                how, own = f"the earliest by {column} from {since} on", f"{own} by {column} from {since}"
            first = Link(self.source.name, own, self.max_rows, f"at most {rows} kept, {how}")
        else:
            first = Link(self.source.name, "1", 1, "a unit is one row")
        if self.during is not None:
            column, periods = self.during
            first = replace(first, own=f"{first.own} in {periods.names[0]} by {column}")
        return (first,)

    def refuse_unlike(self, other: Base, more: Mapping[str, tuple[Any, Any]]) -> None:
        """Refuse a table of other units, of another engine, or of which `more` facts differ."""
        facts = {"unit": (self.unit, other.unit), "neighbours": (self.neighbours, other.neighbours), **more}
        for name, (left, right) in facts.items():
            if left != right:
                way_out = f"declare the other one with the same {name}"
                raise InvalidValue(name, right, f"must be the same in both datasets, here {left!r}", way_out)
        if self.source.engine is not other.source.engine:
            raise InvalidValue("other", other.source.name, "must be in the same engine", "move one of the two tables")
        for name, mine, theirs in zip(self.unit, self.unit_types, other.unit_types, strict=True):
            if mine != theirs:  # an engine that casts one to the other may fail at a row
                raise InvalidValue("unit", name, f"must be {mine} in both datasets, not {theirs}", "convert one")

    def origin(self, column: str) -> tuple[str, str]:
        """The linked table that a column stands in, "" where there is one table, and its name there."""
        return "", column

    def table_of(self, column: str) -> Base:
        """The table that a column stands in, by itself: another one if the column was brought along from there."""
        return self

    def with_domains(self, domains: Mapping[str, Domain]) -> Base:
        """The same table where unknown columns have become known; other names are left aside."""
        declared, usable = self.declared, self.schema
        for name, domain in domains.items():
            if name in self.declared.unknown:
                declared, usable = declared.with_column(name, domain), usable.with_column(name, domain)
        return replace(self, declared=declared, schema=usable)

    def joined(self, name: str, keep: bool, changed: bool) -> Base | None:
        """The same rows with the columns of another table that they lead to; None where the unit alone can join them.

        `changed` says that steps were done to the rows, after which their keys are gone.
        """
        raise InvalidValue(
            "other", name, "must be a dataset or a public table", "only tables of farthing.linked are joined by name"
        )

    def beside(self, name: str) -> Base:
        """Another table of the same units, by its name among those that are linked."""
        raise InvalidValue("other", name, "must be a dataset or a public table")

    def table(self, run: Run, columns: Collection[str], limits: Mapping[str, int]) -> Any:
        """Rows with a unit, sampled, bounded unless `run` wants all, and with the wanted cells read by their domains.

        Units become keys and cells are read first of all: what one row holds, however large it is, then weighs as
        much as any other in all that follows. Lists are cut to their `limits` and read after `explode`.
        """
        table, names = self.rows_of_units(columns, limits), unit_columns(len(self.unit))
        if self.earliest is not None:  # before the bound, so that older rows use none of it up
            column, since = self.earliest
            table = table.filter(table[column] >= literal(since))
        if self.present is not None:
            table = table.filter(table[self.present].notnull())
        table = sampled(table, self.source.engine, len(names), run.probability, run.key)
        if run.all_rows:
            return table
        return bounded(table, names, refuse_unbounded(self.max_rows, self.place_name), *self._dated)

    def rows_of_units(
        self, columns: Collection[str], limits: Mapping[str, int], more: Mapping[str, Any] | None = None
    ) -> Any:
        """Every row of a unit, and of the period where there is one, with the wanted cells and `more` of the source."""
        table = self.rows_with_unit(columns, limits, more or {})
        names = unit_columns(len(self.unit))
        if names:  # rows that belong to nobody are dropped: together they would pass for one giant unit
            table = table.filter(*(table[name].notnull() for name in names))
        if self.during is not None:  # before the bound, which is then one on a unit's rows of this period
            start, end = self.during[1].edges
            table = table.filter(table[_DAY] >= literal(start), table[_DAY] < literal(end)).drop(_DAY)
        return table

    def rows_with_unit(self, columns: Collection[str], limits: Mapping[str, int], more: Mapping[str, Any]) -> Any:
        """All rows with the key of their unit, the wanted cells as domains read them, and `more` of the source."""
        import ibis

        return self.source.table.select(
            **self._keys(),
            **({} if self.unit else {_ROW: ibis.literal(1, "int8")}),
            **self.cells(columns, limits),
            **more,
        )

    def cells(self, columns: Collection[str], limits: Mapping[str, int]) -> dict[str, Any]:
        """The wanted cells of the source, and its day where only a period is read."""
        raw, engine = self.source.table, self.source.engine

        def cell(name: str) -> Any:
            if name in self.lists:
                return engine.first(raw[name], limits[name]) if name in limits else raw[name]
            return self.read(name, raw[name])

        return {
            **({} if self.during is None else {_DAY: self._day(self.during[0])}),
            **{name: cell(name) for name in self.own.declared if name in columns or name in self._deciding},
        }

    @property
    def _dated(self) -> tuple[str, ...]:
        return () if self.earliest is None else self.earliest[:1]

    @property
    def _deciding(self) -> tuple[str, ...]:
        """Columns that say which rows are kept."""
        return self._dated if self.present is None else (*self._dated, self.present)

    def units(self) -> Any:
        """The keys of the units, one row for each row of the table; None for a row that names nobody."""
        return self.source.table.select(**self._keys())

    def key(self, column: str) -> Any:
        """What stands for a cell in comparisons of units and of keys."""
        value = self._plain(column, self.source.table[column])
        return unit_key(value.cast("string") if column in self.spelled else value, self.source.engine)

    def key_type(self, column: str) -> str:
        """What a column of units or keys holds; neither its width nor its NOT NULL matters."""
        if self.source.text_file or column in self.spelled:
            return "string"
        return str(common_type(self.source.table.schema()[column]))

    def _keys(self) -> dict[str, Any]:
        names = unit_columns(len(self.unit))
        return {name: self.key(column) for name, column in zip(names, self.unit, strict=True)}

    def read(self, name: str, value: Any) -> Any:
        """A cell of a declared column, or an element of its lists, as the domain reads it."""
        domain, engine = self.declared[name], self.source.engine
        column = typed(self._plain(name, value), domain, engine, csv=self.source.text_file)
        return read_column(column, domain, engine)

    def _day(self, name: str) -> Any:
        """The day of a row as it stands in the source: bounds, which another declaration may have others of, move it
        to no other period.
        """
        raw, engine = self.source.table[name], self.source.engine
        day = typed(self._plain(name, raw), self.declared[name], engine, csv=self.source.text_file)
        return day.date() if day.type().is_timestamp() else day

    def _plain(self, name: str, value: Any) -> Any:
        return self.source.engine.plain(value, padded=name in self.padded)


def opened_base(
    source: Any,
    unit: str | Sequence[str] | None,
    max_rows: int | str | None,
    schema: Any,
    neighbours: str,
    rows: int | None,
    name: str | None = None,
    keys: Sequence[str] = (),
    people: int | None = None,
) -> Base:
    """Open and check everything that can be checked without reading a row; `keys` are columns that link tables."""
    declared = Schema.read(schema)
    if neighbours not in NEIGHBOURS:
        raise InvalidValue("neighbours", neighbours, f"must be one of {', '.join(NEIGHBOURS)}")
    units = () if unit is None else (unit,) if isinstance(unit, str) or not isinstance(unit, Sequence) else tuple(unit)
    named = all(isinstance(column, str) for column in units)
    if unit is not None and (not units or not named or len(set(units)) != len(units)):
        raise InvalidValue("unit", unit, "must name one column or several, each once", "leave it out for one row")
    units = tuple(map(str, units))  # plain text, also of numpy's
    is_auto = max_rows == AUTO and bool(units)
    bound = MOST_ROWS_A_UNIT if is_auto else checked_max_rows(max_rows, units)
    size = None if rows is None else checked_count(rows, "rows")
    persons = _checked_people(people, units, size)
    opened_source = open_source(
        source, list(dict.fromkeys([*units, *keys, *declared, *declared.unknown])), _checked_name(name)
    )
    for name in (*declared, *declared.unknown):
        _refuse_absent(f"schema[{name!r}]", name, opened_source)
    for name in units:
        _refuse_absent("unit", name, opened_source, declared)
    for name in keys:
        _refuse_absent("keys", name, opened_source, declared)
    padded, lists = _checked_types(
        opened_source, declared, {**dict.fromkeys(units, "unit"), **dict.fromkeys(keys, "keys")}
    )
    usable = Schema({name: declared[name] for name in declared if name not in lists}, declared.unknown)
    more: Any = {"is_auto": is_auto, "people": persons}
    return Base(opened_source, units, bound, declared, neighbours, size, padded, usable, lists, **more)


def _checked_types(
    source: Source, declared: Schema, units: Mapping[str, str]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """The padded columns and the lists; refuses types that cannot hold what is declared."""
    kinds = {} if source.text_file else dict(source.table.schema().items())  # a text file has text, and nothing else
    for name in declared:
        refuse_wrong_type(name, kinds.get(name), declared[name], text_file=source.text_file)
    for name, unknown in declared.unknown.items():
        _refuse_wrong_unknown(name, kinds.get(name), unknown, text_file=source.text_file)
    if source.text_file:
        return frozenset(), ()
    for name, argument in units.items():
        _refuse_wrong_unit(argument, name, kinds[name])
    refuse_milliseconds(source.footer)
    text = any(_is_text(kinds[name]) for name in (*declared, *declared.unknown, *units))
    padded = source.engine.padded(source.table) if text else frozenset()
    return padded, tuple(name for name in declared if kinds[name].is_array())


def _refuse_wrong_unknown(name: str, kind: Any, unknown: Unknown, *, text_file: bool) -> None:
    """Refuse a column that cannot be of the kind that is declared, whatever its range turns out to be."""
    if kind is not None and kind.is_array():
        rule, way_out = "must not be a column of lists", "declare what its elements may be, for explode"
        raise InvalidValue(f"schema[{name!r}]", unknown, rule, way_out)
    if unknown.kind != "text":
        refuse_wrong_type(name, kind, widest_of(unknown, kind), text_file=text_file)
    elif kind is not None and not kind.is_string() and (unknown.trim or unknown.lower or not kind.is_integer()):
        rule = f"needs a column of text, or of whole numbers as they are, and this one holds {type_text(kind)}"
        raise InvalidValue(f"schema[{name!r}]", unknown, rule, "declare what the column holds")


def widest_of(unknown: Unknown, kind: Any) -> Domain:
    """All that a column of this kind and this type may hold; `kind` is the Ibis type, None in a text file."""
    return unknown.widest(wide_integers=kind is not None and kind.is_integer())


def _is_text(kind: Any) -> bool:
    return bool((kind.value_type if kind.is_array() else kind).is_string())


def _checked_name(name: str | None) -> str | None:
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise InvalidValue("name", name, "must be a text that names the table", "leave it out for its file name")
    return name


def _checked_people(people: int | None, units: tuple[str, ...], rows: int | None) -> int | None:
    if people is None:
        return None
    number = checked_count(people, "people")
    if not units:
        raise InvalidValue("people", people, "must be left out when the unit is one row", "say rows= instead")
    if rows is not None and not number <= rows:
        raise InvalidValue("people", people, f"must be at most the number of rows, {rows:,}")
    return number


def checked_max_rows(max_rows: int | str | None, units: tuple[str, ...]) -> int:
    """How many rows of a unit are kept, as it was declared; UNBOUNDED where each statistic is to bound them."""
    if not units:
        if max_rows not in (None, 1):
            raise InvalidValue("max_rows", max_rows, "must be 1 when the unit is one row", "name the unit's column")
        return 1
    if max_rows is None:
        return UNBOUNDED
    bound = checked_count(max_rows, "max_rows")
    if not 1 <= bound <= MOST_ROWS_A_UNIT:
        raise InvalidValue("max_rows", max_rows, f"must be a whole number from 1 to {MOST_ROWS_A_UNIT:,}")
    return bound


def _refuse_absent(argument: str, name: str, source: Source, there: Collection[str] = ()) -> None:
    """Refuse a column that the source lacks; `there` are declared ones that it has, so its first line is a header."""
    kinds = source.columns
    if name not in kinds:
        import difflib

        close = difflib.get_close_matches(name, kinds, n=1)
        # The first line of a text file that has no header is a person's row: it is not shown.
        known = f"there are: {', '.join(list(kinds)[:20])}"
        beside = ", ".join(list(there)[:20])
        header = f"its header has {beside}" if beside else "its first line must hold the names of the columns"
        rest = header if source.text_file else known
        hint = f"did you mean {close[0]!r}" if close else rest
        raise InvalidValue(argument, name, "is not a column of the source", hint)


def _refuse_wrong_unit(argument: str, name: str, kind: Any) -> None:
    named = kind.is_integer() or kind.is_string() or kind.is_uuid() or kind.is_date() or kind.is_boolean()
    if not named:
        raise InvalidValue(
            argument,
            name,
            f"must be a column of whole numbers, text, UUIDs or dates, not {type_text(kind)}",
            "convert it in the source: equal people must have equal values",
        )
