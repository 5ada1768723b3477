"""The arrows of the architecture hold, and the checker that says so can say no."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_arrows import ARROWS, ROOT, faults

SOURCE = Path(__file__).parents[2] / "src" / "farthing"


def test_every_import_follows_an_arrow() -> None:
    assert faults(SOURCE) == []


def test_every_package_stands_in_the_table() -> None:
    present = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert present - {"__init__", "__main__", "__pycache__", "py"} <= set(ARROWS)


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
    assert [name for name, below in ARROWS.items() if "auditing" in below] == ["cli", ROOT]


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
