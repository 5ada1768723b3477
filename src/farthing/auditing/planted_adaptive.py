"""Planted bugs of adaptive sessions: the online answerer, the reusable holdout, and select-measure-fit loops.

A session pays for a number of rounds in advance. Each is a run of the sparse vector that ends with its first positive,
and the next one draws its threshold noise anew. A table is the list of its query values, of which neighbours move each
by at most 1; the threshold is 0. Outputs are rows: NaN for "near", a number if it was paid for, -1000 after the end.

Old threshold noise is no leak by itself: one noise may serve all rounds if each positive is still paid for (see
`SparseVector`). The leak is in what it hides: a round that was never begun is a round that was never charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.planted import PlantedBug

Array = NDArray[np.float64]
_ENDED = -1000.0


def adaptive_bugs() -> list[PlantedBug]:
    """The bugs of all three."""
    return [*_bugs_of_online_answers(), *_bugs_of_holdouts(), *_bugs_of_synthesis()]


def _geometric(generator: np.random.Generator, rate: float, size: Any) -> NDArray[np.int64]:
    """One-sided noise on 0, 1, 2, ... of mass proportional to exp(-rate n)."""
    return np.asarray(generator.geometric(-np.expm1(-rate), size) - 1)


def _laplace(generator: np.random.Generator, rate: float, size: Any) -> NDArray[np.int64]:
    return _geometric(generator, rate, size) - _geometric(generator, rate, size)


@dataclass(frozen=True)
class _Rounds:
    """Sessions of threshold rounds, many at once; `positives` ends a session, None never does."""

    threshold_rate: float
    question_rate: float
    positives: int | None
    refreshed: bool = True
    sides: int = 1
    shared: bool = False  # one threshold noise for both sides
    answer_rate: float | None = None  # a fresh noisy answer; without one, the gap

    def __call__(self, values: Any, count: int) -> Array:
        generator = np.random.default_rng()
        truth = np.asarray(values, dtype=np.int64)
        outputs = np.full((count, len(truth)), np.nan)
        used = np.zeros(count, dtype=np.int64)
        thresholds = self._thresholds(generator, count)
        for place, value in enumerate(truth):
            noise = _geometric(generator, self.question_rate, (count, self.sides))
            gaps = value * np.array([1, -1])[: self.sides] + noise - thresholds
            above, below = gaps[:, 0] >= 0, gaps[:, -1] >= 0
            answers = np.where(above, gaps[:, 0], -gaps[:, -1] - 1).astype(np.float64)
            if self.answer_rate is not None:
                answers = value + _laplace(generator, self.answer_rate, count).astype(np.float64)
            open_ = np.ones(count, dtype=bool) if self.positives is None else used < self.positives
            paid = open_ & (above | below)
            outputs[~open_, place] = _ENDED
            outputs[paid, place] = answers[paid]
            used += paid
            if self.refreshed:
                thresholds[paid] = self._thresholds(generator, count)[paid]
        return outputs

    def _thresholds(self, generator: np.random.Generator, count: int) -> NDArray[np.int64]:
        if self.shared:
            return np.repeat(_geometric(generator, self.threshold_rate, (count, 1)), self.sides, axis=1)
        return _geometric(generator, self.threshold_rate, (count, self.sides))


def _bugs_of_online_answers() -> list[PlantedBug]:
    """Rates of the real ones: a round with two sides costs threshold_rate + question_rate."""

    def bare_start(value: Any, count: int) -> Array:
        generator = np.random.default_rng()
        cells = np.asarray(value, dtype=np.float64)
        answers = _laplace(generator, 1.0, (count, 1)) + cells.sum()
        return np.hstack([np.repeat(cells[None, :], count, axis=0), answers])

    return [
        PlantedBug(
            "online answerer, old threshold",
            "the thresholds' noise is not drawn anew after an update: one round is charged, four are run",
            _Rounds(0.5, 0.5, positives=4, refreshed=False, sides=2),
            1.0,
            ([0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]),
            40_000,
        ),
        PlantedBug(
            "online answerer, free updates",
            "updates are not charged: two rounds are paid for, and it goes on for ever",
            _Rounds(0.5, 0.5, positives=None, sides=2),
            2.0,
            ([1] * 12, [0] * 12),
            40_000,
        ),
        PlantedBug(
            "online answerer, one threshold",
            "both sides share one threshold noise, at the price of one for each",
            _Rounds(0.6, 1.4, positives=1, sides=2, shared=True),
            2.0,
            ([0] * 6 + [-1], [1] * 6 + [0]),
            60_000,
        ),
        PlantedBug(
            "online answerer, start without noise",
            "the weights begin with the exact cells, and only the answers have noise",
            bare_start,
            1.0,
            ([3, 0, 0, 1], [2, 0, 0, 1]),
            20_000,
        ),
    ]


def _bugs_of_holdouts() -> list[PlantedBug]:
    """A round costs threshold_rate + 2 question_rate for its comparisons, and answer_rate for its answer."""
    return [
        PlantedBug(
            "holdout, old threshold",
            "the threshold's noise is not drawn anew after a correction: one round is charged, three are run",
            _Rounds(0.4, 0.3, positives=3, refreshed=False, answer_rate=0.5),
            1.5,
            ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0]),
            40_000,
        ),
        PlantedBug(
            "holdout, free corrections",
            "corrections are not charged: two are paid for, and it goes on for ever",
            _Rounds(0.4, 0.3, positives=None, answer_rate=0.5),
            3.0,
            ([2] * 12, [1] * 12),
            100_000,
        ),
        PlantedBug(
            "holdout, half the noise",
            "corrected answers have the noise of half a row",
            _Rounds(0.4, 0.3, positives=1, answer_rate=3.0),
            2.5,
            ([4], [5]),
            60_000,
        ),
    ]


def _loop(choice_rate: float | None, cell_rate: float, rounds: int) -> Callable[[Any, int], Array]:
    """Select, measure, fit on two columns of two values: the worst of three tables is measured, and the model is what
    was measured. A choice costs 2 choice_rate, a measurement cell_rate; None chooses without noise."""
    views = np.array(
        [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    )  # first column, second column, whether they agree

    def batch(value: Any, count: int) -> Array:
        generator = np.random.default_rng()
        truth = views @ np.asarray(value, dtype=np.int64)
        model = np.zeros((count, len(views)), dtype=np.int64)
        every = np.arange(count)
        found = []
        for _ in range(rounds):
            scores = np.abs(truth - model).astype(np.float64)
            if choice_rate is not None:
                scores += generator.gumbel(0.0, 1 / choice_rate, scores.shape)
            choice = np.argmax(scores, axis=1)
            noisy = truth[choice] + _laplace(generator, cell_rate, count)
            model[every, choice] = noisy
            found += [choice.astype(np.float64), noisy.astype(np.float64)]
        return np.column_stack(found)

    return batch


def _bugs_of_synthesis() -> list[PlantedBug]:
    return [
        PlantedBug(
            "synthesis, choice without noise",
            "the worst marginal is chosen exactly, and only measured with noise",
            _loop(None, 0.5, rounds=1),
            1.0,
            ([2, 1, 1, 0], [2, 0, 1, 0]),
            20_000,
        ),
        PlantedBug(
            "synthesis, half the sensitivity",
            "marginals are measured with the noise of half a row",
            _loop(0.25, 2.0, rounds=1),
            1.5,
            ([9, 0, 0, 0], [10, 0, 0, 0]),
            60_000,
        ),
        PlantedBug(
            "synthesis, rounds charged once",
            "three rounds of choosing and measuring are run at the price of one",
            _loop(0.25, 0.5, rounds=3),
            1.0,
            ([9, 9, 9, 9], [10, 9, 9, 9]),
            60_000,
        ),
    ]
