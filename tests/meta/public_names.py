"""The public modules. A module is public because it stands here, and a name because it stands in its `__all__`."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

PUBLIC = (
    "farthing",
    "farthing.study",
    "farthing.publication",
    "farthing.statistics",
    "farthing.adaptive",
    "farthing.matrix",
    "farthing.matrix.workloads",
    "farthing.inference",
    "farthing.inference.graphical",
    "farthing.ledger",
    "farthing.curator",
    "farthing.privacy",
    "farthing.accounting",
    "farthing.accounting.theorems",
    "farthing.accounting.filters",
    "farthing.auditing",
    "farthing.auditing.attacks",
    "farthing.data",
    "farthing.mechanisms",
    "farthing.plots",
    "farthing.numerics",
    "farthing.errors",
)
# Not public, but other packages call what they export: it explains its parameters as well.
EXPORTING = (
    "farthing.accounting.comparison",
    "farthing.adaptive.holdout",
    "farthing.adaptive.monitor",
    "farthing.adaptive.query_session",
    "farthing.adaptive.running_series",
    "farthing.adaptive.synthesis",
    "farthing.matrix.strategies",
    "farthing.matrix.strategies.marginals",
    "farthing.matrix.strategies.optimisation",
    "farthing.mechanisms.samplers",
    "farthing.planner",
)
# Whole until 1.0, and on no page: each of its names is one of another module.
OLD_NAMES = ("farthing.release", "farthing.release.workloads")


@cache
def module_of(name: str) -> ModuleType:
    """A module of farthing."""
    return importlib.import_module(name)


def names_of(module: str) -> list[str]:
    """What a public module exports."""
    return list(module_of(module).__all__)
