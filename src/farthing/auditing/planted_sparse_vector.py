"""The broken sparse-vector variants that Lyu, Su & Li found in print (PVLDB 10(6), 2017, figure 1, Algorithms 3 to 6).

All of them claim epsilon for queries of sensitivity 1. A table is the list of its query values, the threshold is 0, and
the outputs are rows: 1 above, 0 below, NaN after the last answer (Algorithm 3: the noisy number instead of 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.planted import PlantedBug

Array = NDArray[np.float64]


def _variant(
    epsilon: float, threshold_share: float, noise_factor: float, positives: int | None, numbers: bool = False
) -> Callable[[Any, int], Array]:
    """One variant: the share of epsilon for the threshold, query noise = factor / rest of epsilon, most positives."""
    scale, noise = 1 / (epsilon * threshold_share), noise_factor / (epsilon * (1 - threshold_share))

    def batch(value: Any, count: int) -> Array:
        generator = np.random.default_rng()
        queries = np.asarray(value, dtype=np.float64)
        threshold = generator.laplace(0.0, scale, (count, 1))
        noisy = queries + (generator.laplace(0.0, noise, (count, len(queries))) if noise else 0.0)
        noisy = (np.floor(8 * noisy) + 0.5) / 8  # on a grid, so that it is not the low bits that give it away
        above = noisy >= threshold
        answers = np.where(above, noisy if numbers else 1.0, 0.0)
        if positives is not None:  # nothing is answered after the last positive that may be
            before: NDArray[np.int64] = np.cumsum(above, axis=1) - above
            answers[before >= positives] = np.nan
        return answers

    return batch


def sparse_vector_bugs() -> list[PlantedBug]:
    """Algorithms 3 to 6, each with the neighbours that its refutation uses."""
    return [
        PlantedBug(
            "sparse vector, Algorithm 3",
            "the noisy answer itself is shown, which bounds the noise of the threshold (Roth's notes, 2011)",
            _variant(1.5, 1 / 2, 1.0, positives=1, numbers=True),
            1.5,
            ([0, 0, 0], [1, 1, 1]),
            800_000,
        ),
        PlantedBug(
            "sparse vector, Algorithm 4",
            "query noise does not grow with the number of positives (Lee & Clifton, 2014)",
            _variant(1.0, 1 / 4, 1.0, positives=3),
            1.0,
            ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0]),
            100_000,
        ),
        PlantedBug(
            "sparse vector, Algorithm 5",
            "queries have no noise at all (Stoddard et al., 2014)",
            _variant(1.0, 1 / 2, 0.0, positives=None),
            1.0,
            ([0, 1], [1, 0]),
            20_000,
        ),
        PlantedBug(
            "sparse vector, Algorithm 6",
            "positives are never counted (Chen et al., 2015)",
            _variant(1.0, 1 / 2, 1.0, positives=None),
            1.0,
            ([0] * 20, [1] * 10 + [-1] * 10),
            40_000,
        ),
    ]
