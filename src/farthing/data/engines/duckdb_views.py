"""The files that a view of DuckDB reads, by its text: the plan of a query says that a file is read, and not which.

DuckDB parses the text, and DuckDB finds the files of a pattern. Only what is certain passes: paths written out, in the
view itself or in a view or macro that it uses. A view that makes its paths, or reads with a function that is not known
here, is refused, because the people in its files could not be found.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from farthing.data.engines.engine import Engine, rows_of
from farthing.errors import EngineError, InvalidValue


class ViewFiles(NamedTuple):
    """The files that a view reads today, and how it spells them."""

    files: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()


def files_of_view(engine: Engine, name: str) -> ViewFiles:
    """The files of a view and of whatever it reads; nothing for a table. A view that hides its files is refused."""
    texts: dict[str, list[str]] = {}
    for called, text in rows_of(engine, "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"):
        texts.setdefault(called.lower(), []).append(text)
    if name.lower() not in texts:
        return ViewFiles()
    for kind, called, text in rows_of(engine, _MACROS):
        texts.setdefault(called.lower(), []).append(f"SELECT {text}" if kind == "macro" else text)
    spelled: set[str] = set()
    waiting, seen = [name.lower()], {name.lower()}
    while waiting:
        for text in texts[waiting.pop()]:
            for source in _read_by(name, _parsed(engine, name, text)):
                used = source.name.lower()
                if used in texts and used not in seen:
                    waiting.append(used)
                    seen.add(used)
                if source.is_function and used not in texts and used not in _HARMLESS:
                    _refuse(name, f"with {source.name}()")
                spelled.update(source.paths)
    files = {path: _matches(engine, name, path) for path in spelled}
    return ViewFiles(
        tuple(sorted({file for matches in files.values() for file in matches})),
        tuple(sorted(path for path, matches in files.items() if matches)),
    )


class _Read(NamedTuple):
    """What a text reads from: a table, view or file that it names, or a function with the paths given to it."""

    name: str
    is_function: bool
    paths: tuple[str, ...]


def _parsed(engine: Engine, view: str, text: str) -> Any:
    query = _OPENING.sub("", text, count=1).rstrip("; \n")
    quoted = query.replace("'", "''")
    ((parsed,),) = rows_of(engine, f"SELECT CAST(json_serialize_sql('{quoted}') AS VARCHAR)")
    tree = json.loads(parsed)
    if tree.get("error") is not False:
        _refuse(view, "in a way that cannot be followed")
    return tree


def _read_by(view: str, tree: Any) -> Iterator[_Read]:
    """Everything that the parse of a text reads from; functions on values too, since a macro may read a table."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
            continue
        if not isinstance(node, dict):
            continue
        waiting += node.values()
        if node.get("type") == "BASE_TABLE":
            path = ".".join(node["qualified_name"]["path"])  # people.parquet without quotes is a name of two parts
            yield _Read(node["table_name"], False, (path,) if "." in path or "/" in path else ())
        elif node.get("type") == "TABLE_FUNCTION":
            called = node["function"]["function_name"]
            if called.lower() in _PARQUET:
                yield _Read(called, True, tuple(_constants(view, node["function"])))
            else:
                yield _Read(called, True, ())
        elif node.get("class") == "FUNCTION":
            yield _Read(node["function_name"], False, ())


def _constants(view: str, function: dict[str, Any]) -> Iterator[str]:
    """The paths that are given to a function: one text, or a list of texts."""
    first = function["arguments"][0]["expression"]
    is_list = first.get("class") == "FUNCTION" and first["function_name"] == "list_value"
    for part in [each["expression"] for each in first["arguments"]] if is_list else [first]:
        literal = part.get("literal") or {}
        if part.get("class") != "CONSTANT" or literal.get("kind") != "STRING":
            _refuse(view, "by a path that is not written out")
        yield literal["text"]


def _matches(engine: Engine, view: str, path: str) -> list[str]:
    quoted = path.replace("'", "''")
    try:
        matches = [str(file) for (file,) in rows_of(engine, f"SELECT file FROM glob('{quoted}')")]
    except EngineError:  # it takes an extension to read from there
        matches = [path]
    if os.path.isdir(local_path(path)):  # DuckDB reads the files in it
        _refuse(view, "by the name of their folder alone")
    if not all(map(os.path.isfile, matches)):
        _refuse(view, "that are not on this machine")
    return matches


def local_path(path: str) -> str:
    """A path as DuckDB reads it: without the beginning of an address.

    >>> local_path("file:///data/a.parquet"), local_path("data/*.parquet")
    ('/data/a.parquet', 'data/*.parquet')
    """
    return re.sub(r"^file:(//(localhost)?)?(?=/)", "", path)


def _refuse(view: str, how: str) -> NoReturn:
    raise InvalidValue(
        "source",
        view,
        f"must not be a view that reads files {how}: whose rows they hold could not be known",
        "pass the path of the file itself, write it out in the view, or store the rows as a table",
    )


_PARQUET = ("read_parquet", "parquet_scan")
_HARMLESS = (*_PARQUET, "range", "generate_series", "unnest", "python_arrow_scan", "arrow_scan", "pandas_scan")
_NAME = r'(?:"(?:[^"]|"")*"|[^\W\d]\w*)'
_OPENING = re.compile(
    rf"^CREATE (?:OR REPLACE )?(?:TEMP(?:ORARY)? )?VIEW {_NAME}(?:\.{_NAME})*(?: \({_NAME}(?:, {_NAME})*\))? AS "
)
_MACROS = """
SELECT function_type, function_name, macro_definition FROM duckdb_functions()
WHERE NOT internal AND macro_definition IS NOT NULL
"""
