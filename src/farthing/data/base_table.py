"""The table a dataset starts from: opened, checked against the schema, with its unit and its bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farthing.data.column_types import refuse_wrong_type, typed
from farthing.data.contribution_bounds import bounded, common_type, sampled, unit_columns, unit_key
from farthing.data.expressions import read_column
from farthing.data.schema import Schema
from farthing.data.sources import Source, opened
from farthing.data.stability import NEIGHBOURS
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count

MOST_ROWS_A_UNIT = 10**6
_ROW = "__farthing_row"  # something to select where rows are only counted


@dataclass(frozen=True, eq=False)
class Base:
    """Everything that was declared about a source."""

    source: Source
    unit: tuple[str, ...]
    max_rows: int
    declared: Schema
    neighbours: str
    rows: int | None
    padded: frozenset[str] = frozenset()

    @property
    def lists(self) -> tuple[str, ...]:
        """Columns whose cells are lists: they are read after `explode`."""
        kinds = self.source.table.schema()
        return tuple(name for name in self.declared if kinds[name].is_array())

    @property
    def schema(self) -> Schema:
        """The columns that can be used at once."""
        lists = self.lists
        return Schema({name: self.declared[name] for name in self.declared if name not in lists})

    @property
    def unit_types(self) -> list[str]:
        """What the columns of the unit hold; neither the width nor the NOT NULL of a column matters."""
        return [str(common_type(self.source.table.schema()[name])) for name in self.unit]

    def table(
        self, columns: Collection[str], probability: Fraction, key: str, limits: Mapping[str, int]
    ) -> Any:
        """Rows with a unit, sampled, bounded, and with the wanted cells read by their domains.

        Units become keys and cells are read first of all: what one row holds, however large it is, then weighs as
        much as any other in all that follows. Lists are cut to their `limits` and read after `explode`.
        """
        import ibis

        raw, engine, lists = self.source.table, self.source.engine, self.lists
        names = unit_columns(len(self.unit))

        def cell(name: str) -> Any:
            if name in lists:
                return engine.first(raw[name], limits[name]) if name in limits else raw[name]
            return self.read(name, raw[name])

        table = raw.select(
            **self._keys(),
            **({} if names else {_ROW: ibis.literal(1, "int8")}),
            **{name: cell(name) for name in self.declared if name in columns},
        )
        if names:  # rows that belong to nobody are dropped: together they would pass for one giant unit
            table = table.filter(*(table[name].notnull() for name in names))
        table = sampled(table, engine, len(names), probability, key)
        return bounded(table, len(names), self.max_rows)

    def units(self) -> Any:
        """The keys of the units, one row for each row of the table; None for a row that names nobody."""
        return self.source.table.select(**self._keys())

    def _keys(self) -> dict[str, Any]:
        names = unit_columns(len(self.unit))
        return {
            name: unit_key(self._plain(column, self.source.table[column]), self.source.engine)
            for name, column in zip(names, self.unit, strict=True)
        }

    def read(self, name: str, value: Any) -> Any:
        """A cell of a declared column, or an element of its lists, as the domain reads it."""
        domain, engine = self.declared[name], self.source.engine
        read = typed(self._plain(name, value), domain, engine, csv=self.source.text_file)
        return read_column(read, domain, engine)

    def _plain(self, name: str, value: Any) -> Any:
        return self.source.engine.plain(value, padded=name in self.padded)


def based(
    source: Any,
    unit: str | Sequence[str] | None,
    max_rows: int | None,
    schema: Any,
    neighbours: str,
    rows: int | None,
    name: str | None = None,
) -> Base:
    """Open and check everything that can be checked without reading a row."""
    declared = Schema.read(schema)
    if neighbours not in NEIGHBOURS:
        raise InvalidValue("neighbours", neighbours, f"must be one of {', '.join(NEIGHBOURS)}")
    units = () if unit is None else (unit,) if isinstance(unit, str) else tuple(unit)
    if unit is not None and (not units or len(set(units)) != len(units)):
        raise InvalidValue(
            "unit", unit, "must name one column or several, each once", "leave it out for one row"
        )
    bound = _checked_max_rows(max_rows, units)
    size = None if rows is None else checked_count(rows, "rows")
    opened_source = opened(source, list(dict.fromkeys([*units, *declared])), _checked_name(name))
    kinds = dict(opened_source.table.schema().items())
    for name in declared:
        _refuse_absent(f"schema[{name!r}]", name, opened_source)
        refuse_wrong_type(name, kinds[name], declared[name], text_file=opened_source.text_file)
    for name in units:
        _refuse_absent("unit", name, opened_source)
        _refuse_wrong_unit(name, kinds[name])
    text = any(_is_text(kinds[name]) for name in (*declared, *units))
    padded = opened_source.engine.padded(opened_source.table) if text else frozenset()
    return Base(opened_source, units, bound, declared, neighbours, size, padded)


def _is_text(kind: Any) -> bool:
    return bool((kind.value_type if kind.is_array() else kind).is_string())


def _checked_name(name: str | None) -> str | None:
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise InvalidValue(
            "name", name, "must be a text that names the table", "leave it out for its file name"
        )
    return name


def _checked_max_rows(max_rows: int | None, units: tuple[str, ...]) -> int:
    if not units:
        if max_rows not in (None, 1):
            raise InvalidValue(
                "max_rows", max_rows, "must be 1 when the unit is one row", "name the unit's column"
            )
        return 1
    if max_rows is None:
        raise InvalidValue(
            "max_rows",
            max_rows,
            "must be given with a unit",
            "say how many rows of one unit are kept, such as 3",
        )
    bound = checked_count(max_rows, "max_rows")
    if not 1 <= bound <= MOST_ROWS_A_UNIT:
        raise InvalidValue("max_rows", max_rows, f"must be a whole number from 1 to {MOST_ROWS_A_UNIT:,}")
    return bound


def _refuse_absent(argument: str, name: str, source: Source) -> None:
    kinds = source.table.columns
    if name not in kinds:
        import difflib

        close = difflib.get_close_matches(name, kinds, n=1)
        # The first line of a text file that has no header is a person's row: it is not shown.
        known = f"there are: {', '.join(list(kinds)[:20])}"
        rest = "its first line must hold the names of the columns" if source.text_file else known
        hint = f"perhaps {close[0]!r} is meant" if close else rest
        raise InvalidValue(argument, name, "is not a column of the source", hint)


def _refuse_wrong_unit(name: str, kind: Any) -> None:
    named = kind.is_integer() or kind.is_string() or kind.is_uuid() or kind.is_date() or kind.is_boolean()
    if not named:
        raise InvalidValue(
            "unit", name, f"must be a column of whole numbers, text, UUIDs or dates, not {kind}",
            "convert it in the source: equal people must have equal values",
        )  # fmt: skip
