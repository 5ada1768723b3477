"""What a user installs: pinned versions, a typed wheel, the command, nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tree import TOP

PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = (TOP / "constraints.txt").read_text(encoding="utf-8").splitlines()


def test_every_pin_is_a_name_and_a_version() -> None:
    shape = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+]*")
    assert [line for line in PINS if not shape.fullmatch(line)] == []
    assert "farthing" not in _pinned()


def test_pins_are_sorted_and_unique() -> None:
    names = [canonicalize_name(line.split("==")[0]) for line in PINS]
    assert names == sorted(set(names))


def test_every_requirement_is_pinned_to_a_version_it_allows() -> None:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    wanted = [Requirement(text) for group in groups for text in group]
    outside = [
        r for r in wanted if r.name != "farthing" and not r.specifier.contains(_pinned()[canonicalize_name(r.name)])
    ]
    assert outside == []


def test_everything_that_farthing_brings_along_is_pinned() -> None:
    """A package missing here would float: two people would test two different things."""
    assert _brought_along() - {"farthing"} - set(_pinned()) == set()


def test_what_farthing_brings_along_is_found_through_others() -> None:
    """pluggy comes with pytest and with nothing that farthing names itself."""
    assert {"numpy", "pytest", "pluggy"} <= _brought_along()


@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_the_wheel_holds_the_package_its_types_and_its_licence(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)],
        cwd=TOP,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("farthing-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = archive.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    assert {"farthing/__init__.py", "farthing/py.typed", "farthing/errors.py"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"farthing"}
    assert "farthing = farthing.cli:main" in entry_points


def test_ci_runs_what_a_user_runs() -> None:
    script = TOP / ".ci" / "run"
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in commands
    assert commands[-1] == "exec make test"


def test_the_readme_names_only_make_targets_that_exist() -> None:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    pages = [TOP / "README.md", TOP / "CONTRIBUTING.md", *(TOP / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}
    assert {"install", "demo", "test", "lint", "docs", "bench"} <= targets
    assert named <= targets


def _pinned() -> dict[str, str]:
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in PINS)}


def _brought_along() -> set[str]:
    """Names of all packages that an installation with every extra pulls in, through others too."""
    found: set[str] = set()
    waiting = [Requirement(text) for group in (PROJECT["dependencies"], *_extras()) for text in group]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = f"{name}[{','.join(sorted(requirement.extras))}]"
        if key in found:
            continue
        found |= {key, name}
        try:
            below = distribution(name).requires or []
        except PackageNotFoundError:  # a peer that only the bench installs: its pin is checked by name above
            continue
        for text in below:
            other = Requirement(text)
            environments = [{"extra": extra} for extra in requirement.extras or [""]]
            if other.marker is None or any(other.marker.evaluate(e) for e in environments):
                waiting.append(other)
    return {name for name in found if not name.endswith("]")}


def _extras() -> list[list[str]]:
    return [[t for t in group if not t.startswith("farthing")] for group in PROJECT["optional-dependencies"].values()]
