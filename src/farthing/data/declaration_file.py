"""A dataset described in a file: `[dataset]`, `[schema]`, `[tables]`, `[keys]` and `[[steps]]` of a `study.toml`.

[dataset]
source = "people.parquet"          # beside this file, a path, a glob or a folder
unit = "person_id"                 # left out: one row
max_rows = 3                       # "auto": farthing discover finds it
neighbours = "add-remove"

[schema]
sex = { categories = ["F", "M"] }
age = { range = [0, 110] }         # whole numbers; [0.0, 110.0] for reals, [2000-01-01, 2025-12-31] for dates
smoker = { flags = true }          # true/false, yes/no, 1/0
income = { unknown = "number" }    # nobody knows its range: farthing discover; or "whole number", "date", "text"
bmi = { range = [10.0, 60.0], decimal = "," }                        # text such as 23,5
region = { categories = ["north", "south"], trim = true, lower = true }   # " North" is north

[[steps]]                          # what is done to the rows, in this order; each step has one word
where = "age >= 18"

[[steps]]
derive = { share = "bmi / 60", index = { of = "bmi * age", range = [0.0, 6_600.0] } }

[[steps]]
per_unit = { visits = "count()", ever_smoked = "any(smoker)", bmi = "mean(bmi)" }

Several tables that keys link are described one by one, each with its own schema:

[dataset]
table = "drugs"                    # the one that is studied
unit = "persons.person_id"

[keys]
"visits.person_id" = "persons.person_id"
"drugs.visit_id" = "visits.visit_id"

[tables.drugs]                     # likewise [tables.persons] and [tables.visits]
source = "drugs.csv"
max_rows = 3
schema = { drug = { categories = ["x", "y"] } }

[[steps]]
join = "visits"                    # or { table = "persons", how = "left" }, or { public = "wards.csv", on = "ward" }
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from farthing.data.csv_files import header
from farthing.data.dataset import Dataset, dataset
from farthing.data.file_paths import beside, paths_of
from farthing.data.linked_tables import TableFacts, linked
from farthing.data.parquet_files import PARQUET, parquet_schema
from farthing.data.schema import KINDS, Categories, Flags, Reals, Schema, Unknown, folded
from farthing.errors import FarthingError, InvalidExpression, InvalidValue

ZONED = "times with a time zone"
"""What a column holds that no statistic can use: the zone decides which day a moment falls on."""

DATASET_KEYS = ("source", "unit", "max_rows", "neighbours", "rows", "people", "sample")
LINKED_KEYS = ("table", "unit", "neighbours", "sample")
TABLE_KEYS = ("source", "max_rows", "schema")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "range": ("decimal",),
    "categories": ("trim", "lower"),
    "flags": (),
    "unknown": ("trim", "lower", "decimal"),
}
_WAYS = "write { range = [lowest, highest] }, { categories = [...] }, { flags = true } or { unknown = KIND }"
_RULES = {
    "range": "must be a list of two bounds",
    "categories": "must be a list of values",
    "flags": "must be true",
    "unknown": f"must be one of {', '.join(KINDS)}",
}


def read_toml(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The text of a `study.toml`, and its tables."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or type(problem).__name__
        raise InvalidValue("file", str(file), f"cannot be read ({reason})", "check the path") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidValue("file", str(file), f"is not valid TOML ({problem})", "correct that line") from None


def read_declaration(path: str | os.PathLike[str]) -> Dataset:
    """The dataset that a `study.toml` describes; paths in it are relative to the file."""
    return dataset_of_tables(read_toml(path)[1], Path(path).parent)


def dataset_of_tables(facts: Mapping[str, Any], folder: Path) -> Dataset:
    """The dataset that the tables of a `study.toml` describe; paths in it are relative to `folder`."""
    about = dict(table_of(facts, "dataset", empty=False))
    sample = about.pop("sample", None)
    if "tables" in facts or "keys" in facts:
        whole = _linked(facts, about, folder)
    else:
        columns = table_of(facts, "schema", empty=False)
        _refuse_unknown("dataset", about, DATASET_KEYS)
        places = _places("dataset", about, folder)
        whole = dataset(places, schema={name: domain_of_entry(name, entry) for name, entry in columns.items()}, **about)
    whole = after_steps(whole, facts.get("steps", []), folder)
    return whole if sample is None else whole.sample(sample)


def _linked(facts: Mapping[str, Any], about: dict[str, Any], folder: Path) -> Dataset:
    """The table that is studied, among those that are linked."""
    if "schema" in facts:
        raise InvalidValue("schema", "", "must stand with each table", "write [tables.NAME.schema]")
    _refuse_unknown("dataset", about, LINKED_KEYS)
    tables: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    for name, entry in table_of(facts, "tables", empty=False).items():
        place = f"tables.{name}"
        one = dict(table_of({place: entry}, place, empty=False))
        _refuse_unknown(place, one, TABLE_KEYS)
        columns = one.get("schema", {})
        if not isinstance(columns, dict):
            raise InvalidValue(f"{place}.schema", columns, "must be a table", f"write [{place}.schema] and lines below")
        schema = {column: domain_of_entry(column, each, f"{place}.schema") for column, each in columns.items()}
        tables[name] = TableFacts(_places(place, one, folder), schema)
        bounds |= {name: one["max_rows"]} if "max_rows" in one else {}
    studied = about.pop("table", None)
    if not isinstance(studied, str) or studied not in tables:
        raise InvalidValue("dataset.table", studied, f"must be one of {', '.join(tables)}", "the table that is studied")
    clash = sorted(set(tables) & {"unit", "keys", "max_rows", "neighbours"})
    if clash:
        raise InvalidValue("tables", clash[0], "must be another name", "rename it")
    if "unit" not in about:
        raise InvalidValue("dataset.unit", None, "must be given", 'such as unit = "persons.person_id"')
    return linked(**tables, keys=table_of(facts, "keys"), max_rows=bounds, **about)[studied]


def _refuse_unknown(place: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise InvalidValue(f"{place}.{key}", given[key], "is not known", f"there are: {', '.join(known)}")


def _places(place: str, about: dict[str, Any], folder: Path) -> list[Any]:
    """The files that `source` names."""
    if "source" not in about:
        raise InvalidValue(f"{place}.source", None, "must be given", "name a CSV or Parquet file")
    given = about.pop("source")
    sources = [given] if isinstance(given, str) else given
    if not isinstance(sources, list) or not sources or not all(isinstance(one, str) and one for one in sources):
        raise InvalidValue(
            f"{place}.source", given, "must be the name of a file, or a list of names", 'write source = "people.csv"'
        )
    return [beside(folder, source) for source in sources]


def _joined(folder: Path | None, rows: Dataset, asked: Any) -> Dataset:
    """A linked table by its name, or a public one by its file or its rows."""
    facts = {"table": asked} if isinstance(asked, str) else dict(asked) if isinstance(asked, dict) else {}
    how = facts.pop("how", "inner")
    if set(facts) == {"table"} and isinstance(facts["table"], str):
        return rows.join(facts["table"], how=how)
    public = facts.get("public")
    if set(facts) == {"public", "on"} and isinstance(public, list):
        return rows.join(public, on=facts["on"], how=how)
    if set(facts) == {"public", "on"} and isinstance(public, str) and folder is not None:
        return rows.join(_public(beside(folder, public)), on=facts["on"], how=how)
    way_out = 'write join = "visits", or join = { public = "wards.csv", on = "ward" }'
    raise InvalidValue(
        "other", asked, "must name a linked table, or a public one and the columns it is looked up by", way_out
    )


def _public(path: str | os.PathLike[str]) -> Any:
    """A public table from a file, whose types may be guessed."""
    import pyarrow
    from pyarrow import csv, parquet

    try:
        return parquet.read_table(path) if str(path).lower().endswith(PARQUET) else csv.read_csv(path)
    except (OSError, pyarrow.ArrowException):
        raise InvalidValue("public", str(path), "must be a CSV or Parquet file that can be read", "check it") from None


_STEPS: dict[str, Callable[[Dataset, Any], Dataset]] = {
    "where": lambda rows, asked: rows.where(asked),
    "derive": lambda rows, asked: rows.derive(**_bounded(asked)),
    "clip": lambda rows, asked: rows.clip(**asked),
    "bin": lambda rows, asked: rows.bin(**asked),
    "select": lambda rows, asked: rows.select(*asked),
    "explode": lambda rows, asked: rows.explode(**asked),
    "per_unit": lambda rows, asked: rows.per_unit(**_bounded(asked)),
}
_STEP_KINDS: dict[str, tuple[Any, str]] = {
    "where": (str, "a text"),
    "select": (list, "a list of columns"),
    "join": ((str, dict), "the name of a linked table, or a table of facts"),
}


def after_steps(rows: Dataset, steps: Any, folder: Path | None = None) -> Dataset:
    """The dataset after `[[steps]]`; what is wrong with one is said with its number.

    Public tables are files of `folder`; without one, only their rows can be given.
    """
    known: dict[str, Callable[[Dataset, Any], Dataset]] = {**_STEPS, "join": partial(_joined, folder)}
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise InvalidValue("steps", steps, "must be a list of tables", "write [[steps]], and where = ... below it")
    for number, step in enumerate(steps, start=1):
        place = f"steps[{number}]"
        words = list(step)
        if len(words) != 1 or words[0] not in known:
            raise InvalidValue(place, ", ".join(words), f"must have one of {', '.join(known)}", "one word a step")
        (word,) = words
        kind, called = _STEP_KINDS.get(word, (dict, "a table"))
        if not isinstance(step[word], kind):
            raise InvalidValue(f"{place}.{word}", step[word], f"must be {called}")
        if word == "explode" and set(step[word]) != {"column", "limit"}:
            raise InvalidValue(f"{place}.explode", step[word], "must have a column and a limit")
        try:
            rows = known[word](rows, step[word])
        except InvalidValue as problem:
            raise InvalidValue(f"{place}.{word}.{problem.name}", problem.value, problem.rule, problem.way_out) from None
        except InvalidExpression as problem:
            if problem.column not in rows.unknown:
                raise
            rule = "is declared as unknown, and steps come before any search"
            way_out = (
                "find it first, for example with farthing discover; then declare what was found instead of unknown"
            )
            raise InvalidValue(f"{place}.{word}", problem.column, rule, way_out) from None
        except FarthingError:
            raise
        except (TypeError, ValueError, AttributeError, LookupError):  # nothing but what was written is looked at here
            way_out = f"see `{word}` under steps in the page on datasets"
            raise InvalidValue(f"{place}.{word}", step[word], "cannot be read", way_out) from None
    return rows


def _bounded(columns: Mapping[str, Any]) -> dict[str, Any]:
    """For each column its text, or the pair of its text and its bounds."""

    def read(name: str, entry: Any) -> Any:
        if isinstance(entry, dict) and set(entry) != {"of", "range"}:
            way_out = 'write { of = "weight / 2", range = [0, 100] }, or the text alone'
            raise InvalidValue(name, entry, "must be a text, or have of and range", way_out)
        if isinstance(entry, dict) and set(entry) == {"of", "range"} and isinstance(entry["range"], list):
            return (entry["of"], tuple(entry["range"]))
        return entry

    return {name: read(name, entry) for name, entry in columns.items()}


def columns_of(path: str) -> list[tuple[str, str | None]]:
    """Names of the columns of a file, each with what its type says it holds; None where only rows could show it."""
    first = paths_of(path)[0]
    parquet = first.lower().endswith(PARQUET)
    columns = parquet_schema(first) if parquet else [(name, None) for name in header(first)[0]]
    names = [name for name, _ in columns]
    # A text file without a header starts with a person's row, which must be neither written down nor shown.
    if not names or not all(map(_can_be_declared, names)) or len(set(map(folded, names))) != len(names):
        fault = "must have columns with names, each once"
    elif not parquet and any(map(_is_number, names)):
        fault = "must start with a line of column names, and numbers are none"
    else:
        return [(name, _holds(kind) if parquet else None) for name, kind in columns]
    raise InvalidValue("source", first, fault, "rename the columns" if parquet else "add a header line")


def _can_be_declared(name: str) -> bool:
    try:
        Schema({name: Flags()})
    except InvalidValue:
        return False
    return True


def _is_number(name: str) -> bool:
    try:
        float(name.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def table_of(facts: Mapping[str, Any], name: str, *, empty: bool = True) -> dict[str, Any]:
    """The table `[name]` of a file, which must have lines unless it may be `empty`."""
    table = facts.get(name)
    if not isinstance(table, dict) or not (table or empty):
        raise InvalidValue(name, table, "must be a table of the file", f"write [{name}] and its lines below")
    return table


def domain_of_entry(name: str, entry: Any, place: str = "schema") -> Any:
    """What an entry of [schema] says about its column, as the schema reads it."""
    where = f"{place}.{name}"
    kinds = [kind for kind in entry if kind in _OPTIONS] if isinstance(entry, dict) else []
    if len(kinds) != 1:
        raise InvalidValue(where, entry, "must have exactly one kind", f"{_WAYS}, or remove the line")
    (kind,) = kinds
    value, options = entry[kind], {key: option for key, option in entry.items() if key != kind}
    for key, option in options.items():
        if key not in _OPTIONS[kind]:
            known = ", ".join(_OPTIONS[kind])
            way_out = f"with {kind} there are: {known}" if known else _WAYS
            raise InvalidValue(f"{where}.{key}", option, f"is not known for {kind}", way_out)
        if key != "decimal" and not isinstance(option, bool):
            raise InvalidValue(f"{where}.{key}", option, "must be true or false")
    if kind == "flags" and value is True:
        return bool
    try:
        if kind == "range" and isinstance(value, list) and len(value) == 2:
            return Reals(*_real(value), **options) if options else tuple(value)
        if kind == "categories" and isinstance(value, list) and value:
            return Categories(value, **options)
        if kind == "unknown" and isinstance(value, str) and value:
            return Unknown(value, **options)
    except InvalidValue as problem:
        raise InvalidValue(where, entry, f"{problem.name} {problem.rule}", problem.way_out) from None
    rule = _RULES[kind] if value or value == 0 else "must be filled in"
    raise InvalidValue(where, entry, rule, _WAYS)


def _real(bounds: list[Any]) -> list[Any]:
    if all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds):
        raise InvalidValue("range", bounds, "must be of real numbers with decimal", "write a point, as in [0.0, 60.0]")
    return bounds


def _holds(kind: Any) -> str | None:
    import pyarrow.types as types

    if types.is_list(kind) or types.is_large_list(kind):
        return _holds(kind.value_type)
    if types.is_boolean(kind):
        return "flags"
    if types.is_integer(kind):
        return "whole numbers"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "real numbers"
    if types.is_timestamp(kind) and kind.tz is not None:
        return ZONED
    if types.is_date(kind) or types.is_timestamp(kind):
        return "dates"
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind)
    return "categories" if text else "other"
