"""Steps that look at one row at a time: none of them gives a unit more rows than it had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from farthing.data.aggregates.aggregate import domain_of, names_of
from farthing.data.aggregates.bin_edges import labels_of, place_of
from farthing.data.expressions import Expression, read_cell
from farthing.data.expressions.ibis_compiler import literal
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema, read_domain
from farthing.data.stability import Link, Run
from farthing.errors import InvalidValue

EACH_ROW = "every row is changed by itself"


@dataclass(frozen=True)
class Where:
    """Rows for which a predicate is true; unknown is not true."""

    predicate: Expression
    drops: ClassVar[bool] = True

    def schema(self, before: Schema) -> Schema:
        return before

    def link(self, rows: int) -> Link:
        return Link(f"where {self.predicate.text}", "x 1", rows, "every row is kept or dropped by itself")

    def needs(self, after: Set[str]) -> set[str]:
        """And what the predicate looks at."""
        return {*after, *self.predicate.columns}

    def apply(self, table: Any, run: Run) -> Any:
        """WHERE drops a row whose predicate is NULL, on every engine."""
        return table.filter(self.predicate.to_ibis(table, cells_read=True))


@dataclass(frozen=True)
class Derive:
    """New columns from expressions over the old ones, all computed from the same row."""

    columns: tuple[tuple[str, Expression], ...]
    drops: ClassVar[bool] = False

    def schema(self, before: Schema) -> Schema:
        for name, expression in self.columns:
            before = before.with_column(name, expression.domain)
        return before

    def link(self, rows: int) -> Link:
        text = ", ".join(f"{name} = {expression.text}" for name, expression in self.columns)
        return Link(f"derive {text}", "x 1", rows, EACH_ROW)

    def needs(self, after: Set[str]) -> set[str]:
        """What is derived, and what it is derived from."""
        needed = [(name, expression) for name, expression in self.columns if name in after]
        sources = {name for _, expression in needed for name in expression.columns}
        return {*after} - {name for name, _ in needed} | sources

    def apply(self, table: Any, run: Run) -> Any:
        """Total on every engine, and within its bounds."""
        return table.mutate(
            **{
                name: expression.to_ibis(table, cells_read=True)
                for name, expression in self.columns
                if name in run.columns
            }
        )


@dataclass(frozen=True)
class Clip:
    """Columns moved into narrower bounds."""

    bounds: tuple[tuple[str, Domain], ...]
    drops: ClassVar[bool] = False

    def schema(self, before: Schema) -> Schema:
        for name, domain in self.bounds:
            before = before.with_column(name, domain)
        return before

    def link(self, rows: int) -> Link:
        text = ", ".join(f"{name} to {_bounds_text(domain)}" for name, domain in self.bounds)
        return Link(f"clip {text}", "x 1", rows, EACH_ROW)

    def needs(self, after: Set[str]) -> set[str]:
        return set(after)

    def apply(self, table: Any, run: Run) -> Any:
        """By comparison with the two bounds."""
        return table.mutate(
            **{name: _clipped(table[name], domain) for name, domain in self.bounds if name in run.columns}
        )


@dataclass(frozen=True)
class Bin:
    """Columns of numbers or dates turned into categories by public edges."""

    edges: tuple[tuple[str, tuple[Any, ...], Domain], ...]
    drops: ClassVar[bool] = False

    def schema(self, before: Schema) -> Schema:
        """With the names of the cells as categories."""
        for name, edges, domain in self.edges:
            before = before.with_column(name, Categories(labels_of(edges, domain)))
        return before

    def link(self, rows: int) -> Link:
        text = ", ".join(f"{name} into {len(edges) - 1}" for name, edges, _ in self.edges)
        return Link(f"bin {text}", "x 1", rows, EACH_ROW)

    def needs(self, after: Set[str]) -> set[str]:
        return set(after)

    def apply(self, table: Any, run: Run) -> Any:
        """The name of the cell that a value lies in."""
        return table.mutate(
            **{
                name: _named(place_of(table[name], edges, domain), edges, domain)
                for name, edges, domain in self.edges
                if name in run.columns
            }
        )


@dataclass(frozen=True)
class Select:
    """Only some of the columns; every row stays."""

    columns: tuple[str, ...]
    drops: ClassVar[bool] = False

    def schema(self, before: Schema) -> Schema:
        return Schema({name: before[name] for name in self.columns})

    def link(self, rows: int) -> Link:
        return Link(f"select {', '.join(self.columns)}", "x 1", rows, EACH_ROW)

    def needs(self, after: Set[str]) -> set[str]:
        return set(after)

    def apply(self, table: Any, run: Run) -> Any:
        """Nothing to do: the columns that nobody asks for are not read in the first place."""
        return table


@dataclass(frozen=True)
class Lookup:
    """Columns looked up in a public table by keys that stand there once."""

    keys: tuple[str, ...]
    entries: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    columns: tuple[tuple[str, Domain], ...]
    keep: bool
    drops: ClassVar[bool] = True

    def schema(self, before: Schema) -> Schema:
        """With the columns of the public table."""
        for name, domain in self.columns:
            before = before.with_column(name, domain)
        return before

    def link(self, rows: int) -> Link:
        """Keys are unique, so a row finds one partner at most."""
        title = f"join a public table on {', '.join(self.keys)}"
        return Link(title, "x 1", rows, "each key appears once in the public table")

    def needs(self, after: Set[str]) -> set[str]:
        """The keys instead of what is looked up."""
        return {*after} - {name for name, _ in self.columns} | {*self.keys}

    def apply(self, table: Any, run: Run) -> Any:
        """A CASE over the public keys: nothing has to be written to the engine."""
        import ibis

        matches = [_matches(table, self.keys, values) for values, _ in self.entries]
        columns = {}
        for place, (name, domain) in enumerate(self.columns):
            if name not in run.columns:
                continue
            kind = _kind(domain)
            branches = [
                (match, ibis.null(kind) if entry[place] is None else literal(entry[place]))
                for match, (_, entry) in zip(matches, self.entries, strict=True)
            ]
            columns[name] = ibis.cases(*branches, else_=ibis.null(kind))
        if not self.keep:
            known = ibis.cases(*((match, ibis.literal(True)) for match in matches), else_=ibis.literal(False))
            columns["__farthing_known"] = known
        joined = table.mutate(**columns)
        return joined if self.keep else joined.filter(joined["__farthing_known"]).drop("__farthing_known")


def narrowed(domain: Domain, bounds: Domain) -> Domain:
    """The domain of values of one domain after clipping them to another of the same kind."""

    def inside(bound: Any) -> Any:
        return min(max(bound, bounds.lower), bounds.upper)  # type: ignore[union-attr]

    return type(domain)(inside(domain.lower), inside(domain.upper))  # type: ignore[union-attr,call-arg]


def ranged(name: str, domain: Domain, pair: Any) -> Domain:
    """A pair of bounds for values of `domain`, as a domain of the same kind."""
    if not isinstance(domain, Integers | Reals | Dates):
        raise InvalidValue(name, pair, "must be a column of numbers or dates to be clipped")
    bounds = read_domain(name, tuple(pair) if isinstance(pair, list) else pair)
    if isinstance(domain, Reals) and isinstance(bounds, Integers):
        bounds = Reals(float(bounds.lower), float(bounds.upper))
    if type(bounds) is not type(domain):
        raise InvalidValue(name, pair, f"must be bounds of the kind {type(domain).__name__}")
    return bounds


def _clipped(value: Any, domain: Domain) -> Any:
    import ibis

    lower, upper = literal(domain.lower), literal(domain.upper)  # type: ignore[union-attr]
    return ibis.cases((value < lower, lower), (value > upper, upper), else_=value)


def _named(place: Any, edges: tuple[Any, ...], domain: Domain) -> Any:
    """The label of a cell by its number, in a balanced tree of CASE; a number after the last is the last."""
    import ibis

    labels = labels_of(edges, domain)

    def between(first: int, last: int) -> Any:
        if first == last:
            return ibis.literal(labels[first])
        middle = (first + last + 1) // 2
        return (place < middle).ifelse(between(first, middle - 1), between(middle, last))

    return place.notnull().ifelse(between(0, len(labels) - 1), ibis.null("string"))


def _matches(table: Any, keys: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    import ibis

    return ibis.and_(*(table[key] == value for key, value in zip(keys, values, strict=True)))


def _kind(domain: Domain) -> str:
    if isinstance(domain, Integers):
        return "int64"
    if isinstance(domain, Reals):
        return "float64"
    if isinstance(domain, Dates):
        return "date"
    if isinstance(domain, Categories):
        first = domain.values[0]
        return "boolean" if isinstance(first, bool) else "int64" if isinstance(first, int) else "string"
    return "boolean"


def _bounds_text(domain: Domain) -> str:
    return f"[{domain.lower}, {domain.upper}]"  # type: ignore[union-attr]


MOST_KEYS = 1_000


def changes_of(step: Any) -> set[str]:
    """The columns whose cells are others after a step on rows."""
    pairs = {Derive: "columns", Clip: "bounds", Bin: "edges", Lookup: "columns"}.get(type(step))
    return set() if pairs is None else {change[0] for change in getattr(step, pairs)}


def lookup(
    table: Any, on: str | Sequence[str] | None, schema: Schema, *, keep: bool, declared: Mapping[str, Any]
) -> Lookup:
    """The step that looks a public table up; its values are public, so their bounds are read from them."""
    if on is None:
        raise InvalidValue("on", on, "must name the columns that the public table is looked up by")
    keys = names_of(on, "on")
    for key in keys:
        if isinstance(domain_of(key, schema, "on"), Reals):
            raise InvalidValue("on", key, "must not be a real number", "bin it, or join on whole numbers")
    records = _records(table)
    columns = [name for name in records[0] if name not in keys]
    clash = [name for name in columns if name in schema]
    if not columns or clash or any(set(record) != set(records[0]) for record in records):
        rule = f"must not repeat {', '.join(clash)}" if clash else "must have the same columns in every row"
        raise InvalidValue("other", list(records[0]), rule, "keep the keys and the new columns")
    entries: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for record in records:
        if any(key not in record for key in keys):
            raise InvalidValue("on", list(keys), "must be columns of the public table", f"it has {list(record)}")
        values = tuple(record[key] for key in keys)
        if values in entries:
            raise InvalidValue("on", values, "must appear once in the public table", "aggregate it by its key first")
        entries[values] = tuple(record[name] for name in columns)
    domains = [
        (name, _domain(name, [entry[place] for entry in entries.values()], declared))
        for place, name in enumerate(columns)
    ]
    rows = {
        values: tuple(_read(name, value, domain) for value, (name, domain) in zip(entry, domains, strict=True))
        for values, entry in entries.items()
        # A key that is no value of its column can meet no row; clipped, it would meet the wrong ones.
        if all(
            value is not None and _read(key, value, schema[key]) == value
            for key, value in zip(keys, values, strict=True)
        )
    }
    if not rows:
        raise InvalidValue("on", list(keys), "must have values in common with the public table", "check its spelling")
    return Lookup(keys, tuple(rows.items()), tuple(domains), keep)


def _read(name: str, value: Any, domain: Domain) -> Any:
    """A public value as its domain reads it: in the domain or missing, like every cell."""
    kinds: tuple[type, ...]
    if isinstance(domain, Integers | Reals):
        kinds = (int, float)
    elif isinstance(domain, Dates):
        kinds = (date,)
    else:
        kinds = (bool,) if isinstance(domain, Flags) else (type(domain.values[0]),)
    number_or_flag = isinstance(value, bool) == (bool in kinds)
    if value is not None and not (isinstance(value, kinds) and number_or_flag):
        raise InvalidValue(name, value, f"must be of the kind {type(domain).__name__}", "convert the public table")
    return read_cell(value, domain)


def _records(table: Any) -> list[dict[str, Any]]:
    if hasattr(table, "to_pylist"):
        records = table.to_pylist()
    elif hasattr(table, "to_dicts"):
        records = table.to_dicts()
    elif hasattr(table, "to_dict"):
        records = table.to_dict(orient="records")
    elif isinstance(table, Sequence) and table and all(isinstance(row, Mapping) for row in table):
        records = [dict(row) for row in table]
    else:
        raise InvalidValue("other", type(table), "must be a dataset or a public table", "a frame or list of dicts")
    if not 1 <= len(records) <= MOST_KEYS:
        raise InvalidValue("rows of the public table", len(records), f"must be between 1 and {MOST_KEYS:,}")
    return [dict(record) for record in records]


def _domain(name: str, values: list[Any], declared: Mapping[str, Any]) -> Domain:
    if name in declared:
        return read_domain(name, declared[name])
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present):
        return Flags()
    if all(isinstance(value, str) for value in present):
        return Categories(tuple(dict.fromkeys(present)))
    if present and all(isinstance(value, int) for value in present):
        return Integers(min(present), max(present))
    if present and all(isinstance(value, int | float) and value == value for value in present):
        return Reals(min(present), max(present))
    if present and all(type(value) is type(present[0]) for value in present) and hasattr(present[0], "isoformat"):
        return Dates(min(present), max(present))
    raise InvalidValue("other", name, "must hold values of one kind", "convert them first")
