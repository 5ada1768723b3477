"""Who may import whom inside farthing, and a checker that reads source without running it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from tree import PARTS, parsed

ROOT = ""  # the name under which `farthing/__init__.py` itself stands in the table

# The tables are data, from which the pages about the architecture are made as well.
TABLES: dict[str, Any] = tomllib.loads(
    (Path(__file__).parents[2] / "docs" / "architecture.toml").read_text(encoding="utf-8")
)


def _arrows() -> dict[str, set[str]]:
    """One row per package: what it may import, and nothing else."""
    rows: dict[str, set[str]] = {}
    for name, facts in TABLES["packages"].items():
        named = {ROOT, *TABLES["packages"]} - {"__init__", name} if facts["imports"] == ["*"] else facts["imports"]
        above = {one for one in TABLES["open"] if one in rows}
        rows[ROOT if name == "__init__" else name] = set(named) | above
    return rows


ARROWS = _arrows()
# For each folder: what each of its parts may import of the others; "." are the modules that stand in the folder itself.
INSIDE: dict[str, dict[str, list[str]]] = TABLES["inside"]


# Third-party modules that may be imported while farthing is being imported. Everything else waits inside a function,
# so that `import farthing` stays quick and the optional parts stay optional.
EAGER = {"numpy", "flint"}
EAGER_IN_CLI = EAGER | {"click", "rich"}
# Nothing imports the server but the command that starts it, so it may import what it is made of.
EAGER_IN_SERVER = EAGER | {
    "argon2", "fastapi", "httpx", "jwt", "pydantic", "pydantic_core", "sqlalchemy", "starlette", "uvicorn",
}  # fmt: skip
LAZY = EAGER_IN_CLI | {"scipy", "altair", "vl_convert", "opendp"}
LAZY_IN_LEDGER = LAZY | {"sqlalchemy", "psycopg", "cryptography"}
LAZY_IN_DATA = LAZY | {"ibis", "duckdb", "sqlglot", "pandas", "polars", "pyarrow", "psycopg", "pyspark"}


_CALLS = ("import_module", "__import__")  # an import that is no statement
# The files that import by a name they were given: the user's own module, to be audited; and a public name, when it is
# first used. What the latter may import stands in the file for type checkers, and is checked there.
NAMED_AT_RUN_TIME = {("cli", "audit_command"), ("__init__",)}


@dataclass(frozen=True)
class Import:
    """One import statement, as far as one name of it goes; `name` is None if only known at run time."""

    line: int
    name: str | None
    lazy: bool  # not run while the module itself is being imported


def faults(package_folder: Path, inside: Mapping[str, Mapping[str, list[str]]] = INSIDE) -> list[str]:
    """Every import below `package_folder` that no arrow allows, as `file:line: what is wrong`."""
    return [
        fault
        for path in sorted(package_folder.rglob("*.py"))
        for fault in (*_faults_of(path, package_folder), *_faults_inside(path, package_folder, inside))
    ]


def _faults_of(path: Path, folder: Path) -> Iterator[str]:
    parts = path.relative_to(folder).with_suffix("").parts
    here = ROOT if parts == ("__init__",) else parts[0]
    if here not in ARROWS:
        yield f"{path}:1: package {here!r} is not in the table of arrows"
        return
    for one in imports_of(path, folder):
        if one.name is None and parts in NAMED_AT_RUN_TIME:
            continue
        fault = _fault(here, one.name, folder, lazy=one.lazy)
        if fault:
            yield f"{path}:{one.line}: {fault}"


def _faults_inside(path: Path, folder: Path, inside: Mapping[str, Mapping[str, list[str]]]) -> Iterator[str]:
    """Imports of a part of the same folder that its table does not allow."""
    here = path.relative_to(folder).parts
    for one in imports_of(path, folder):
        target = _file_of(one.name, folder)
        if target is None:
            continue
        there = target.relative_to(folder).parts
        common = _common(here[:-1], there[:-1])
        if not common:
            continue  # two packages: the table of arrows
        importer, imported = (part[len(common)] if len(part) > len(common) + 1 else "." for part in (here, there))
        if importer == imported:
            continue
        table = inside.get("/".join(common))
        if table is None or importer not in table:
            yield f"{path}:{one.line}: {'/'.join(common)} has no row for {importer!r} among its parts"
        elif imported not in table[importer]:
            yield f"{path}:{one.line}: in {'/'.join(common)}, {importer!r} must not import {imported!r}"


def module_graph(folder: Path) -> dict[str, set[str]]:
    """Each file below `folder` with the files of the same package that it imports, anywhere and for any reason."""
    graph = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        targets = {_file_of(one.name, folder) for one in imports_of(path, folder)} - {None, path}
        names = {target.relative_to(folder).as_posix() for target in targets if target is not None}
        graph[name] = {one for one in names if one.partition("/")[0] == name.partition("/")[0]}
    return graph


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Cycles of imports: one for each import that would have to go."""
    open_imports: dict[str, set[str]] = {name: set() for name in graph}
    closed = []
    for name, targets in graph.items():
        for target in sorted(targets):
            way = _way(open_imports, target, name)
            if way:
                closed.append([name, *way])
            else:
                open_imports[name].add(target)
    return closed


def _way(graph: Mapping[str, set[str]], start: str, end: str) -> list[str]:
    """The shortest way from one file to another, or nothing."""
    ways = {start: [start]}
    queue = [start]
    for here in queue:
        if here == end:
            return ways[here]
        for there in sorted(graph.get(here, ())):
            if there not in ways:
                ways[there] = [*ways[here], there]
                queue.append(there)
    return []


@cache
def _file_of(name: str | None, folder: Path) -> Path | None:
    """The file of this package that is imported under a dotted name: a module, or a package's `__init__`."""
    top, *below = (name or "").split(".")
    if top != folder.name:
        return None
    for length in (len(below), len(below) - 1):
        path = folder.joinpath(*below[: max(length, 0)])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if length > 0 and file.is_file():
                return file
    return None


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that two files share."""
    return tuple(pair[0] for pair in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@cache
def imports_of(path: Path, folder: Path) -> tuple[Import, ...]:
    """Every import of a file, also those inside functions and those for types only."""
    parts = path.relative_to(folder).with_suffix("").parts
    text = path.read_text(encoding="utf-8")
    return tuple(
        Import(getattr(node, "lineno", 0), name, lazy)
        for node, lazy in _nodes(parsed(text), within=any(word in text for word in _CALLS))
        for name in _imported(node, folder.name, parts)
    )


def _nodes(tree: ast.AST, *, within: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every statement once, and whether it is left alone while its module is being imported; also what is within it."""
    waiting = [(tree, False)]
    while waiting:
        node, lazy = waiting.pop()
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types_only(node)
        yield node, lazy
        children = ast.iter_child_nodes(node)
        waiting.extend((child, lazy) for child in children if within or isinstance(child, PARTS))


def _for_types_only(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:` without an else: only type checkers read it."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        and not node.orelse
    )


def _fault(here: str, name: str | None, folder: Path, *, lazy: bool) -> str | None:
    if name is None:
        return "the module is named at run time, which no checker can read"
    top, *below = name.split(".")
    if top != folder.name:
        return _third_party_fault(here, top, lazy=lazy)
    there = ROOT
    if below and ((folder / below[0]).is_dir() or (folder / f"{below[0]}.py").is_file() or below[0] in ARROWS):
        there = below[0]
    if there in {here} | ARROWS[here]:
        return None
    return f"{_shown(here)} must not import {_shown(there)}"


def _third_party_fault(here: str, top: str, *, lazy: bool) -> str | None:
    import sys

    if lazy:
        allowed = {
            "data": LAZY_IN_DATA,
            "inference": LAZY | {"pandas"},
            "ledger": LAZY_IN_LEDGER,
            "matrix": LAZY | {"pandas"},
            "publication": LAZY | {"httpx", "pyarrow"},
            "study": LAZY | {"pandas", "pyarrow", "sqlglot"},
            "cli": LAZY | {"pyarrow"},
            "server": LAZY | EAGER_IN_SERVER | {"psycopg", "pyarrow"},
            "client": LAZY | {"httpx", "pandas", "pyarrow"},
        }.get(here, LAZY)
    else:
        allowed = {"cli": EAGER_IN_CLI, "server": EAGER_IN_SERVER}.get(here, EAGER)
    if top in sys.stdlib_module_names or top in allowed:
        return None
    return f"{_shown(here)} must not import {top}" + ("" if lazy else " while it is being imported itself")


def _imported(node: ast.AST, package: str, parts: tuple[str, ...]) -> Iterator[str | None]:
    """Full dotted names that `node` imports; None for a name that is only known at run time."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:  # `from ..privacy import x`: walk up from this module's package
            above = (package, *parts)[: len(parts) + 1 - node.level]
            base = ".".join((*above, base)).rstrip(".")
        # `from farthing import privacy` imports a package, `from farthing import compose` the root: ask per name.
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and _called(node) in _CALLS:
        first = node.args[0] if node.args else None
        yield first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _shown(package: str) -> str:
    return f"farthing.{package}" if package else "farthing (the root)"
