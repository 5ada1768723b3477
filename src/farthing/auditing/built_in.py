"""farthing's own mechanisms with neighbours that strain them; each is audited against its own event."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.mechanisms import BoundedSum, DiscreteGaussian, DiscreteLaplace, Mechanism
from farthing.mechanisms.key_selection import KeySelection

_QUICK, _EXACT = 400_000, 12_000  # samples a side: of whole vectors at once, and one release after the other


@dataclass(frozen=True)
class BuiltIn:
    """A mechanism of ours, neighbours, and how many samples a side are drawn.

    >>> built_in_mechanisms()[0].name
    'discrete Laplace'
    """

    name: str
    mechanism: Mechanism
    neighbours: list[tuple[Any, Any]]
    samples: int
    batch: Callable[[Any, int], Any] | None = None


def built_in_mechanisms() -> list[BuiltIn]:
    """Every mechanism, in the variants whose code differs."""
    return [*_additive(), *_sums(), *_keys()]


def _cell_by_cell(mechanism: DiscreteLaplace | DiscreteGaussian) -> Callable[[Any, int], Any]:
    """Noise is drawn for each cell by itself, so a vector of equal values is as many releases of one."""

    def batch(value: int, count: int) -> Any:
        return replace(mechanism, cells=count).release(np.full(count, value, dtype=np.int64))

    return batch


def _additive() -> list[BuiltIn]:
    laplace, gaussian = DiscreteLaplace(1.0), DiscreteGaussian(1.0)
    wide = DiscreteLaplace(1.0, l1_sensitivity=3)
    return [
        BuiltIn("discrete Laplace", laplace, [(0, 1)], _QUICK, _cell_by_cell(laplace)),
        BuiltIn("discrete Laplace, sensitivity 3", wide, [(0, 3)], _QUICK, _cell_by_cell(wide)),
        BuiltIn("discrete Laplace, one by one", laplace, [(0, 1), (2**62 + 5, 2**62 + 4)], _EXACT),
        BuiltIn(
            "discrete Laplace, three cells",
            DiscreteLaplace(1.0, l1_sensitivity=3, cells=3),
            [([0, 0, 0], [1, 1, 1]), ([0, 0, 0], [3, 0, 0])],
            _EXACT,
        ),
        BuiltIn(
            "discrete Laplace, real values",
            DiscreteLaplace(1.0, l1_sensitivity=1.0, grid=2.0**-10),
            [(0.0, 1.0), (2.0**-40, 1.0 - 2.0**-11)],
            _EXACT,
        ),
        BuiltIn("discrete Gaussian", gaussian, [(0, 1)], _QUICK, _cell_by_cell(gaussian)),
        BuiltIn(
            "discrete Gaussian, real values",
            DiscreteGaussian(1.0, l2_sensitivity=1.0, grid=2.0**-10),
            [(0.0, 1.0)],
            _EXACT,
        ),
    ]


def _sums() -> list[BuiltIn]:
    whole = BoundedSum(1.0, lower=0, upper=10)
    real = BoundedSum(1.0, lower=-1.0, upper=1.0, grid=2.0**-10)
    largest = 2**63 - 1
    return [
        BuiltIn(
            "bounded sum, whole rows",
            whole,
            [([3, 4], [3, 4, 10]), ([], [largest]), ([largest] * 3, [largest] * 4)],
            _EXACT,
        ),
        BuiltIn(
            "bounded sum, real rows",
            real,
            [([0.5], [0.5, 1.0]), ([0.5], [0.5, math.nan]), ([1e300] * 9, [1e300] * 10)],
            _EXACT,
        ),
    ]


def _keys() -> list[BuiltIn]:
    pairs = [({}, {"a": 1}), ({"a": 3, "b": 50}, {"a": 4, "b": 50})]
    return [
        BuiltIn(f"key selection, {rule}", KeySelection(1.0, 0.01, rule=rule), pairs, _EXACT)
        for rule in ("optimal", "truncated_geometric", "laplace")
    ]
