"""farthing's own mechanisms with neighbours that strain them; each is audited against its own event."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.mechanisms import (
    AboveThreshold,
    BoundedSum,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    KeySelection,
    Mechanism,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    RandomizedResponse,
    ReportNoisyMax,
    SparseVector,
    TopK,
)
from farthing.mechanisms.quantile_surroundings import QuantileSurroundings
from farthing.mechanisms.smooth_median import SmoothMedian
from farthing.mechanisms.smooth_sensitivity import SmoothSensitivity, SmoothStatistic

_QUICK, _EXACT = 400_000, 8_000  # samples a side: of whole vectors at once, and one release after the other


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
    return [*_additive(), *_sums(), *_answers(), *_choices(), *_thresholds(), *_smooth(), *_keys()]


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


def _answers() -> list[BuiltIn]:
    three = RandomizedResponse(1.0, categories=("a", "b", "c"))
    return [
        BuiltIn("randomized response", RandomizedResponse(1.0), [(0, 1)], _EXACT),
        BuiltIn("randomized response, k = 3", three, [("a", "b")], _EXACT),
        BuiltIn("randomized response, Warner", RandomizedResponse.warner("3/4"), [(0, 1)], _EXACT),
    ]


def _choices() -> list[BuiltIn]:
    """Scores that move against each other, which is the worst case, and ties, which are another."""
    apart = [([0, 0, 0, 0], [1, -1, -1, -1])]
    rows = [0.2, 0.3, 0.5, 0.6]
    moved = [(rows, [*rows, 1.0]), ([0.5], [])]
    counted = [([0, 3, 3, 0], [0, 3, 4, 0]), ([0, 0, 0, 1], [0, 0, 0, 0])]
    return [
        BuiltIn("exponential mechanism", ExponentialMechanism(1.0), apart, _EXACT),
        BuiltIn("report noisy max", ReportNoisyMax(1.0), apart, _EXACT),
        BuiltIn("report noisy max, with gap", ReportNoisyMax(1.0, gap=True), apart, _EXACT),
        BuiltIn("permute and flip", PermuteAndFlip(1.0), apart, _EXACT),
        BuiltIn("top k", TopK(k=2, epsilon=1.0), apart, _EXACT),
        BuiltIn("quantile", Quantile(0.5, 1.0, lower=0.0, upper=1.0, grid=2.0**-4), moved, _EXACT // 2),
        BuiltIn(
            "several quantiles",
            Quantiles((0.25, 0.75), 1.0, lower=0.0, upper=1.0, grid=2.0**-4),
            moved,
            _EXACT // 2,
        ),
        BuiltIn(
            "quantile and counts around it", QuantileSurroundings((0.5,), 1.0, points=4), counted, _EXACT // 2
        ),
    ]


def _thresholds() -> list[BuiltIn]:
    """The neighbours that refute the broken variants (see `planted_sparse_vector`)."""
    pairs = [([0, 0, 1, 1], [1, 1, 0, 0]), ([0, 0, 0], [1, 1, 1])]
    return [
        BuiltIn("above threshold", AboveThreshold(1.0), pairs, _EXACT),
        BuiltIn("above threshold, with gap", AboveThreshold(1.0, with_gap=True), pairs, _EXACT),
        BuiltIn("sparse vector", SparseVector(1.0, positives=2), pairs, _EXACT),
        BuiltIn(
            "sparse vector, fresh, with gap",
            SparseVector(1.0, positives=2, fresh_threshold=True, with_gap=True),
            pairs,
            _EXACT,
        ),
    ]


def _doubling(t: int) -> int:
    return min(100, 1 << t)


def _doubling_early(t: int) -> int:
    return _doubling(t + 1)


def _smooth() -> list[BuiltIn]:
    """Neighbours between which the local sensitivity itself jumps."""
    calm, jumpy = [5, 5, 5, 5, 5], [5, 5, 5, 5, 5, 100]
    steep = SmoothStatistic(0, _doubling), SmoothStatistic(1, _doubling_early)
    return [
        BuiltIn("smooth median", SmoothMedian(1.0, lower=0, upper=100), [(calm, jumpy)], _EXACT // 2),
        BuiltIn(
            "smooth median, with delta",
            SmoothMedian(1.0, lower=0, upper=100, delta=0.01),
            [([0, 0, 50, 100, 100], [0, 0, 50, 100])],
            _EXACT // 2,
        ),
        BuiltIn("smooth sensitivity", SmoothSensitivity(1.0, global_sensitivity=100), [steep], _EXACT // 2),
    ]


def _keys() -> list[BuiltIn]:
    pairs = [({}, {"a": 1}), ({"a": 3, "b": 50}, {"a": 4, "b": 50})]
    return [
        BuiltIn(f"key selection, {rule}", KeySelection(1.0, 0.01, rule=rule), pairs, _EXACT)
        for rule in ("optimal", "truncated_geometric", "laplace")
    ]
