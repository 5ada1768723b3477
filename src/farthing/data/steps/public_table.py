"""A public table, read whole, to be looked up by keys that stand in it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from farthing.data.aggregates.shape import domain_of, names_of
from farthing.data.expressions import read_cell
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema, read_domain
from farthing.data.steps.rowwise import Lookup
from farthing.errors import InvalidValue

MOST_KEYS = 1_000


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
            raise InvalidValue(
                "on", list(keys), "must be columns of the public table", f"it has {list(record)}"
            )
        values = tuple(record[key] for key in keys)
        if values in entries:
            raise InvalidValue(
                "on", values, "must stand once in the public table", "aggregate it by its key first"
            )
        entries[values] = tuple(record[name] for name in columns)
    domains = [
        (name, _domain(name, [entry[place] for entry in entries.values()], declared))
        for place, name in enumerate(columns)
    ]
    read = {
        values: tuple(
            _read(name, value, domain) for value, (name, domain) in zip(entry, domains, strict=True)
        )
        for values, entry in entries.items()
        # A key that is no value of its column can meet no row; clipped, it would meet the wrong ones.
        if all(
            value is not None and _read(key, value, schema[key]) == value
            for key, value in zip(keys, values, strict=True)
        )
    }
    if not read:
        raise InvalidValue(
            "on", list(keys), "must have values in common with the public table", "check its spelling"
        )
    return Lookup(keys, tuple(read.items()), tuple(domains), keep)


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
        raise InvalidValue(
            name, value, f"must be of the kind {type(domain).__name__}", "convert the public table"
        )
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
        raise InvalidValue(
            "other", type(table), "must be a dataset or a public table", "a frame or list of dicts"
        )
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
    if (
        present
        and all(type(value) is type(present[0]) for value in present)
        and hasattr(present[0], "isoformat")
    ):
        return Dates(min(present), max(present))
    raise InvalidValue("other", name, "must hold values of one kind", "convert them first")
