"""What holds for every test and every example, wherever they stand: see tests/draws.py."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

# Tests run side by side already. Threads of linear algebra on top keep cores busy while they wait for each other: up to
# forty times the processor time. NumPy reads this when it is first imported, so it stands before the plugins.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pytest

pytest_plugins = ["draws", "forks"]

SLOW_PAGES = {
    "adaptive.md",
    "audit.md",
    "data-dependent.md",
    "gallery.md",
    "limits.md",
    "planner.md",
    "requests.md",
    "sampled.md",
    "studies.md",
    "synthetic.md",
    "tour.md",
    "year.md",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A page that takes half a second or more cannot be marked in its text."""
    for item in items:
        if item.path.suffix == ".md" and item.path.name in SLOW_PAGES:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Files without examples are not searched for them, object by object."""
    found = yield
    if file_path.name.startswith("test_") or (file_path.suffix == ".py" and b">>>" not in file_path.read_bytes()):
        return [one for one in found if type(one).__name__ != "DoctestModule"]
    return found
