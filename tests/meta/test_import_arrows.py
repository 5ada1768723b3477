"""The arrows of the architecture hold, and the checker that says so can say no."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_arrows import ARROWS, INSIDE, ROOT, cycles, faults, module_graph

SOURCE = Path(__file__).parents[2] / "src" / "farthing"


def test_every_import_follows_an_arrow() -> None:
    assert faults(SOURCE) == []


def test_every_package_stands_in_the_table() -> None:
    present = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert present - {"__init__", "__main__", "__pycache__", "py"} <= set(ARROWS)


def test_every_sub_package_stands_in_the_table_of_its_folder() -> None:
    folders = {path.parent for path in SOURCE.rglob("*/__init__.py")}
    parts: dict[str, set[str]] = {}
    for folder in folders - {SOURCE}:
        if folder.parent != SOURCE:
            parts.setdefault(folder.parent.relative_to(SOURCE).as_posix(), {"."}).add(folder.name)
    assert {name: set(table) for name, table in INSIDE.items()} == parts


def test_no_package_has_a_cycle_of_modules() -> None:
    """A way in a circle, also one that only types or functions take: nobody can read such modules one at a time."""
    assert [" -> ".join(cycle) for cycle in cycles(module_graph(SOURCE))] == []


def test_arrows_have_no_cycle() -> None:
    """Only `cli` sits above everything; a cycle would make the layers a circle."""
    done: set[str] = set()
    while len(done) < len(ARROWS):
        ready = {name for name, below in ARROWS.items() if name not in done and below - {name} <= done}
        assert ready, f"a cycle among {sorted(set(ARROWS) - done)}"
        done |= ready


def test_post_processing_has_no_way_to_rows() -> None:
    assert ARROWS["inference"].isdisjoint({"data", "mechanisms", "release", "curator", "ledger"})


def test_only_the_face_and_the_command_line_import_the_auditor() -> None:
    assert [name for name, below in ARROWS.items() if "auditing" in below] == [ROOT, "cli"]


def test_nothing_imports_the_command_line() -> None:
    assert [name for name, below in ARROWS.items() if "cli" in below] == []


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("numerics/bounds.py", "from farthing.privacy import Event", "must not import farthing.privacy"),
        ("numerics/bounds.py", "from farthing import privacy", "must not import farthing.privacy"),
        (
            "numerics/bounds.py",
            "def f():\n    import farthing.accounting.theorems",
            "must not import farthing.accounting",
        ),
        ("numerics/bounds.py", "from ..privacy.events import Event", "must not import farthing.privacy"),
        ("numerics/bounds.py", "from .. import privacy", "must not import farthing.privacy"),
        (
            "privacy/events.py",
            "import importlib\nimportlib.import_module('farthing.plots')",
            "must not import farthing.plots",
        ),
        ("privacy/events.py", "__import__('farthing.cli')", "must not import farthing.cli"),
        ("privacy/events.py", "name = 'x'\n__import__(name)", "named at run time"),
        (
            "accounting/compose.py",
            "if TYPE_CHECKING:\n    from farthing.plots import chart",
            "must not import farthing.plots",
        ),
        ("accounting/compose.py", "from farthing import compose", "must not import farthing (the root)"),
        ("accounting/compose.py", "import farthing", "must not import farthing (the root)"),
        ("accounting/compose.py", "import scipy.fft", "must not import scipy while it is being imported"),
        ("accounting/compose.py", "def f():\n    import pandas", "must not import pandas"),
        ("plots/region.py", "import altair", "must not import altair while it is being imported"),
        ("__init__.py", "from farthing.plots import chart", "must not import farthing.plots"),
        ("surprise/__init__.py", "", "not in the table"),
        ("surprise.py", "", "not in the table"),
    ],
)
def test_a_planted_bad_import_is_caught(tmp_path: Path, module: str, source: str, fault: str) -> None:
    found = faults(_planted(tmp_path, module, source))
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "privacy/events.py",
            "import math\nfrom farthing.errors import InvalidValue\nfrom farthing.numerics import Bounds",
        ),
        (
            "privacy/events.py",
            "from .unit import Unit\nfrom . import unit\nfrom ..errors import InvalidValue",
        ),
        ("accounting/compose.py", "import numpy as np\ndef f():\n    import scipy.fft"),
        (
            "cli/__init__.py",
            "import click\nimport farthing\nfrom farthing import __version__\nimport farthing.plots",
        ),
        ("__init__.py", "from farthing.accounting import compose"),
    ],
)
def test_an_allowed_import_is_let_through(tmp_path: Path, module: str, source: str) -> None:
    assert faults(_planted(tmp_path, module, source)) == []


def test_the_root_is_told_from_a_package_of_the_same_depth() -> None:
    assert ROOT in ARROWS["cli"]
    assert all(ROOT not in below for name, below in ARROWS.items() if name != "cli")


def _planted(tmp_path: Path, module: str, source: str) -> Path:
    folder = tmp_path / "farthing"
    path = folder / module
    path.parent.mkdir(parents=True)
    path.write_text(source, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"data/steps/one.py": "from farthing.data.engines import run"}, "'steps' must not import 'engines'"),
        ({"data/steps/one.py": "from ..engines.duck import run"}, "'steps' must not import 'engines'"),
        (
            {"data/steps/one.py": "def f():\n    from farthing.data import rows"},
            "'steps' must not import '.'",
        ),
        (
            {"data/rows.py": "if TYPE_CHECKING:\n    from farthing.data.steps.one import S"},
            "'.' must not import",
        ),
        ({"data/views/one.py": "from farthing.data.engines import duck"}, "no row for 'views'"),
        (
            {"data/steps/deep/one.py": "from farthing.data.steps import two"},
            "data/steps has no row for 'deep'",
        ),
    ],
)
def test_a_planted_bad_import_between_sub_packages_is_caught(tmp_path: Path, files: dict[str, str], fault: str) -> None:
    table = {"data": {".": ["engines"], "steps": [], "engines": []}}
    found = faults(_planted_files(tmp_path, files), table)
    assert len(found) == 1
    assert fault in found[0]


def test_sub_packages_import_themselves_and_what_their_table_allows(tmp_path: Path) -> None:
    files = {
        "data/steps/one.py": "from farthing.data.steps import two\nfrom farthing.errors import InvalidValue",
        "data/rows.py": "from farthing.data.engines import duck",
        "data/__init__.py": "from farthing.data.rows import x",
    }
    assert faults(_planted_files(tmp_path, files), {"data": {".": ["engines"], "steps": [], "engines": []}}) == []


def test_a_cycle_is_found_however_its_imports_are_written(tmp_path: Path) -> None:
    folder = _planted_files(
        tmp_path,
        {
            "data/rows.py": "from farthing.data import steps",
            "data/steps/__init__.py": "from farthing.data.steps.one import S",
            "data/steps/one.py": "if TYPE_CHECKING:\n    from farthing.data.engines.duck import run",
            "data/engines/duck.py": "def f():\n    from ..rows import x",
        },
    )
    graph = module_graph(folder)
    (cycle,) = cycles(graph)
    assert sorted(cycle[1:]) == ["data/engines/duck.py", "data/rows.py", "data/steps/__init__.py", "data/steps/one.py"]
    graph["data/engines/duck.py"].clear()
    assert cycles(graph) == []


def _planted_files(tmp_path: Path, files: dict[str, str]) -> Path:
    folder = tmp_path / "farthing"
    there = {
        "data/__init__.py",
        "data/rows.py",
        "data/steps/one.py",
        "data/steps/two.py",
        "data/steps/__init__.py",
    }
    there |= {"data/engines/duck.py", "data/engines/__init__.py"}
    for name, text in {**dict.fromkeys(there, ""), **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
