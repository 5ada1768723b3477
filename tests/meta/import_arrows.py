"""Who may import whom inside farthing, and a checker that reads source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = ""  # the name under which `farthing/__init__.py` itself stands in the table

# One row per package: what it may import. `errors`, `numerics` and `privacy` are open to every row below them, and
# are written out all the same: the row is the whole permission.
_BASE = {"errors", "numerics", "privacy"}
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "numerics": {"errors"},
    "privacy": {"errors", "numerics"},
    "accounting": _BASE,
    "mechanisms": _BASE,
    "data": _BASE,
    "inference": _BASE,
    "release": _BASE | {"data", "mechanisms", "accounting", "inference"},
    "adaptive": _BASE | {"release", "inference", "accounting", "mechanisms", "data"},
    "ledger": _BASE | {"accounting"},
    "curator": _BASE | {"data", "release", "inference", "adaptive", "ledger"},
    "planner": _BASE | {"release", "accounting"},
    "study": _BASE
    | {"planner", "curator", "ledger", "data", "release", "inference", "adaptive", "mechanisms", "plots"},
    "auditing": _BASE | {"mechanisms", "accounting", "adaptive", "release"},
    "plots": _BASE | {"accounting", "inference"},
    "web": _BASE | {"plots"},
    "server": _BASE | {"study", "ledger", "accounting", "web"},
    "client": _BASE | {"release", "study", "ledger", "adaptive", "plots"},
}
ARROWS["cli"] = {ROOT, *ARROWS}
# What `import farthing` offers; the rest is imported by its own name.
ARROWS[ROOT] = _BASE | {
    "accounting",
    "mechanisms",
    "data",
    "auditing",
    "ledger",
    "release",
    "adaptive",
    "study",
    "client",
}

# Third-party modules that may be imported while farthing is being imported. Everything else waits inside a function,
# so that `import farthing` stays quick and the optional parts stay optional.
EAGER = {"numpy", "flint"}
EAGER_IN_CLI = EAGER | {"click", "rich"}
# Nothing imports the server but the command that starts it, so it may import what it is made of.
EAGER_IN_SERVER = EAGER | {
    "argon2", "fastapi", "httpx", "jwt", "pydantic", "pydantic_core", "sqlalchemy", "starlette", "uvicorn",
}  # fmt: skip
LAZY = EAGER_IN_CLI | {"scipy", "altair", "vl_convert", "opendp"}
LAZY_IN_LEDGER = LAZY | {"sqlalchemy", "psycopg"}
LAZY_IN_DATA = LAZY | {"ibis", "duckdb", "sqlglot", "pandas", "polars", "pyarrow", "psycopg", "pyspark"}


# The one file that imports by a name it was given: the user's own module, to be audited.
NAMED_AT_RUN_TIME = {("cli", "audit_target")}


def faults(package_folder: Path) -> list[str]:
    """Every import below `package_folder` that no arrow allows, as `file:line: what is wrong`."""
    return [
        fault for path in sorted(package_folder.rglob("*.py")) for fault in _faults_of(path, package_folder)
    ]


def _faults_of(path: Path, folder: Path) -> Iterator[str]:
    parts = path.relative_to(folder).with_suffix("").parts
    here = ROOT if parts == ("__init__",) else parts[0]
    if here not in ARROWS:
        yield f"{path}:1: package {here!r} is not in the table of arrows"
        return
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    not_run_on_import = {
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types_only(outer)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        for name in _imported(node, folder.name, parts):
            if name is None and parts in NAMED_AT_RUN_TIME:
                continue
            fault = _fault(here, name, folder, lazy=node in not_run_on_import)
            if fault:
                yield f"{path}:{getattr(node, 'lineno', 0)}: {fault}"


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
    if below and (
        (folder / below[0]).is_dir() or (folder / f"{below[0]}.py").is_file() or below[0] in ARROWS
    ):
        there = below[0]
    if there in {here} | ARROWS[here]:
        return None
    return f"{_shown(here)} must not import {_shown(there)}"


def _third_party_fault(here: str, top: str, *, lazy: bool) -> str | None:
    import sys

    if lazy:
        allowed = {
            "data": LAZY_IN_DATA,
            "ledger": LAZY_IN_LEDGER,
            "release": LAZY | {"pandas"},
            "study": LAZY | {"pandas", "pyarrow"},
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
    elif isinstance(node, ast.Call) and _called(node) in {"import_module", "__import__"}:
        first = node.args[0] if node.args else None
        yield first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _shown(package: str) -> str:
    return f"farthing.{package}" if package else "farthing (the root)"
