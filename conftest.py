"""What holds for every test and every example, wherever they stand: see tests/draws.py."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

pytest_plugins = ["draws", "forks"]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Files without examples are not searched for them, object by object."""
    found = yield
    if file_path.name.startswith("test_") or (file_path.suffix == ".py" and b">>>" not in file_path.read_bytes()):
        return [one for one in found if type(one).__name__ != "DoctestModule"]
    return found
