"""What holds for every test and every example, wherever they stand: see tests/draws.py."""

from __future__ import annotations

import random
from collections.abc import Generator
from pathlib import Path

import pytest

pytest_plugins = ["draws"]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Files of tests hold no examples: to look for them in each takes a tenth of the time of collecting."""
    found = yield
    if file_path.name.startswith("test_"):
        return [one for one in found if type(one).__name__ != "DoctestModule"]
    return found


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each worker takes files in an order of its own: it rewrites the asserts of some, and finds most of them done."""
    report = yield
    if isinstance(collector, pytest.Dir) and (worker := getattr(collector.config, "workerinput", None)):
        random.Random(worker["workerid"]).shuffle(report.result)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """And end with the same order."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.parts)
