"""Planted bugs: mechanisms that claim more than they keep, which an auditor has to catch.

Faults people have shipped: noise too small, noise in floating point, sums that wrap around or turn into NaN, keys that
are shown too early, and a ledger that was not told. The broken sparse-vector variants are in `planted_sparse_vector`.

Nothing here is for use; the generator is NumPy's, because these mechanisms protect nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.privacy import ApproxDP


@dataclass(frozen=True)
class PlantedBug:
    """A wrong mechanism, its claim, neighbours that show the fault, and how many samples are enough for that.

    >>> [bug.name for bug in planted_bugs()][:2]
    ['scale halved', 'scale x 0.9']
    """

    name: str
    story: str
    batch: Callable[[Any, int], Any]
    claim: Any
    neighbours: Any
    samples: int


def planted_bugs() -> list[PlantedBug]:
    """Every planted bug, those of the sparse vector and of adaptive sessions included."""
    from farthing.auditing.planted_adaptive import adaptive_bugs
    from farthing.auditing.planted_sparse_vector import sparse_vector_bugs

    return [*_bugs_of_noise(), *sparse_vector_bugs(), *adaptive_bugs(), *_bugs_of_data()]


def _generator() -> np.random.Generator:
    """A fresh one for every batch: forked processes must not share a stream."""
    return np.random.default_rng()


def _integer_laplace(scale: float, count: int) -> NDArray[np.int64]:
    """Discrete Laplace noise: the difference of two geometric variables."""
    stop = -math.expm1(-1 / scale)
    generator = _generator()
    return generator.geometric(stop, count) - generator.geometric(stop, count)


def _with_scale(scale: float) -> Callable[[int, int], NDArray[np.int64]]:
    return lambda value, count: value + _integer_laplace(scale, count)


def _bugs_of_noise() -> list[PlantedBug]:
    def float_laplace(value: float, count: int) -> NDArray[np.float64]:
        uniform = _generator().random(count) - 0.5
        with np.errstate(divide="ignore"):
            return np.asarray(value - np.sign(uniform) * np.log1p(-2 * np.abs(uniform)))

    def charged_nothing(value: int, count: int) -> NDArray[np.int64]:
        return value + _integer_laplace(1.0, count)

    def three_rows(value: list[int], count: int) -> NDArray[np.int64]:
        return sum(value) + _integer_laplace(2.0, count)

    halved = "epsilon = 1 is claimed, the noise has half the scale that takes"
    tenth = "epsilon = 2 is claimed, the noise is a tenth too small"
    return [
        PlantedBug("scale halved", halved, _with_scale(0.5), 1.0, (0, 1), 20_000),
        PlantedBug("scale x 0.9", tenth, _with_scale(0.45), 2.0, (0, 1), 60_000),
        PlantedBug(
            "naive float Laplace",
            "the inverse of the distribution function in doubles: the low bits tell the value",
            float_laplace,
            1.0,
            (0.0, 1.0),
            20_000,
        ),
        PlantedBug(
            "sensitivity off by one",
            "a person has up to three rows, the noise is made for two",
            three_rows,
            1.0,
            ([1, 1, 1, 1], [1]),
            60_000,
        ),
        PlantedBug(
            "budget charged zero",
            "noise of epsilon = 1 is released, the event says 0",
            charged_nothing,
            ApproxDP(0.0),
            (0, 1),
            20_000,
        ),
    ]


def _bugs_of_data() -> list[PlantedBug]:
    def wrapping(value: list[int], count: int) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            total = np.sum(np.array(value, dtype=np.int64))
        return np.asarray(float(total) + _integer_laplace(1.0, count), dtype=np.float64)

    def nan_in(value: list[float], count: int) -> NDArray[np.float64]:
        total = np.sum(np.clip(np.array(value), 0.0, 1.0))  # clip lets NaN through
        return np.asarray(np.round(total) + _integer_laplace(1.0, count))

    def early_keys(value: dict[str, int], count: int) -> list[dict[str, int]]:
        # Right would be 1 + log(1 / (2 delta)) / epsilon: a key of one person must stay hidden but for delta.
        threshold = math.log(1 / (2 * 0.01)) / 1.0
        noisy = {key: number + _integer_laplace(1.0, count) for key, number in value.items()}
        return [
            {key: int(numbers[i]) for key, numbers in noisy.items() if numbers[i] > threshold}
            for i in range(count)
        ]

    largest = 2**63 - 1
    return [
        PlantedBug(
            "wrong key threshold",
            "a group with one person is shown too often: the threshold forgets that person",
            early_keys,
            (1.0, 0.01),
            ({"a": 60}, {"a": 60, "b": 1}),
            12_000,
        ),
        PlantedBug(
            "integer wrap-around",
            "a sum of int64 wraps around, and one person moves it by 2^64",
            wrapping,
            1.0,
            ([largest - 1, 1], [largest - 1, 1, 1]),
            20_000,
        ),
        PlantedBug(
            "NaN in",
            "one missing value passes the clamp, and the answer is NaN",
            nan_in,
            1.0,
            ([1.0, 1.0], [1.0, 1.0, math.nan]),
            20_000,
        ),
    ]
