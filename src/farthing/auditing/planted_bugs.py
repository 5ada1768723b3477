"""Planted bugs: mechanisms that claim more than they keep, which an auditor has to catch.

Faults people have shipped: noise too small, noise in floating point, sums that wrap around or turn into NaN, keys that
are shown too early or in the order of the rows, and a ledger that was not charged. The broken sparse-vector variants
are in `planted_sparse_vector`.

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

    discovery = [*_bugs_of_discovery(), *_bugs_of_ranges()]
    return [*_bugs_of_noise(), *sparse_vector_bugs(), *adaptive_bugs(), *_bugs_of_data(), *discovery]


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

    halved = "epsilon = 1 is claimed, the noise has half the scale that this needs"
    tenth = "epsilon = 2 is claimed, the noise is a tenth too small"
    return [
        PlantedBug("scale halved", halved, _with_scale(0.5), 1.0, (0, 1), 20_000),
        PlantedBug("scale x 0.9", tenth, _with_scale(0.45), 2.0, (0, 1), 60_000),
        PlantedBug(
            "naive float Laplace",
            "the inverse of the distribution function in doubles: the low bits reveal the value",
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
            {key: int(numbers[i]) for key, numbers in noisy.items() if numbers[i] > threshold} for i in range(count)
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


Rows = list[tuple[str, str]]  # each a unit and its key


def _discovery(threshold: float, capped: bool = True, by_rows: bool = False) -> Callable[[Rows, int], list[list[str]]]:
    """The keys that enough units share, as (1, 0.01)-DP would have it with one key a unit and a threshold of 6."""

    def batch(rows: Rows, count: int) -> list[list[str]]:
        own: dict[str, list[str]] = {}
        for unit, key in rows:
            own.setdefault(unit, []).append(key)
        keys = list(dict.fromkeys(key for _, key in rows))  # in the order of the rows
        totals = np.zeros((count, len(keys)), dtype=np.int64)
        generator = _generator()
        for choices in own.values():
            places = np.array([keys.index(key) for key in dict.fromkeys(choices)])
            if capped:
                totals[np.arange(count), generator.choice(places, count)] += 1
            else:
                totals[:, places] += 1
        noisy = totals + _integer_laplace(1.0, count * len(keys)).reshape(totals.shape)
        kept = (noisy >= threshold) & (totals > 0)
        lists = [[keys[place] for place in np.flatnonzero(row)] for row in kept]
        return lists if by_rows else [sorted(each) for each in lists]

    return batch


def _bugs_of_discovery() -> list[PlantedBug]:
    many = [(f"unit {number}", "a") for number in range(40)]
    several = [("new", f"rare {number}") for number in range(8)]
    both = [*many, *((f"other {number}", "b") for number in range(40))]
    return [
        PlantedBug(
            "key discovery, threshold too low",
            "a threshold two steps lower than delta allows: a key of one unit is shown too often",
            _discovery(threshold=4.0),
            (1.0, 0.01),
            (many, [*many, ("new", "rare")]),
            12_000,
        ),
        PlantedBug(
            "key discovery, keys in the order of the rows",
            "the list begins with the key that was met first, so that one unit puts its key before the others",
            _discovery(threshold=8.0, by_rows=True),
            (1.0, 0.01),
            (both, [("new", "b"), *both]),
            12_000,
        ),
        PlantedBug(
            "key discovery, bound not applied",
            "a unit counts under each of its eight keys, and one is paid for",
            _discovery(threshold=6.0, capped=False),
            (1.0, 0.01),
            (many, [*many, *several]),
            12_000,
        ),
    ]


Cells = list[tuple[str, int]]  # each a unit and the cell of its value


def _range_search(
    threshold: float, capped: bool = True, every_cell: bool = True, exact: bool = False
) -> Callable[[Cells, int], list[str]]:
    """The ends of a range of cells that reach a threshold: epsilon 1 with one row a unit and noise on every cell."""

    def batch(rows: Cells, count: int) -> list[str]:
        own: dict[str, list[int]] = {}
        for unit, cell in rows:
            own.setdefault(unit, []).append(cell)
        kept = [cell for cells in own.values() for cell in (cells[:1] if capped else cells)]
        totals = np.bincount(kept, minlength=6)
        noisy = totals + _integer_laplace(1.0, count * 6).reshape(count, 6)
        seen = (noisy >= threshold) & (every_cell | (totals > 0))
        ends = (np.flatnonzero(row) for row in seen)
        most = max(kept)
        return [f"{each[0]} to {most if exact else each[-1]}" if len(each) else "none" for each in ends]

    return batch


def _bugs_of_ranges() -> list[PlantedBug]:
    some = [(f"unit {number}", 1) for number in range(20)]
    pair = (some, [*some, ("new", 4)])
    return [
        PlantedBug(
            "range search, threshold too low",
            "cells without rows get no noise, and the threshold is too low for that: one value is an end too often",
            _range_search(threshold=3.0, every_cell=False),
            (1.0, 0.01),
            pair,
            12_000,
        ),
        PlantedBug(
            "range search, bound not applied",
            "a unit counts with each of its eight rows, and one is paid for",
            _range_search(threshold=6.0, capped=False),
            (1.0, 0.0),
            (some, [*some, *(("new", 4) for _ in range(8))]),
            12_000,
        ),
        PlantedBug(
            "range search, bound taken from the data",
            "the upper end is the greatest value itself, once a range is seen",
            _range_search(threshold=6.0, exact=True),
            (1.0, 0.0),
            pair,
            12_000,
        ),
    ]


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

    def start_without_noise(value: Any, count: int) -> Array:
        generator = np.random.default_rng()
        cells = np.asarray(value, dtype=np.float64)
        answers = _laplace(generator, 1.0, (count, 1)) + cells.sum()
        return np.hstack([np.repeat(cells[None, :], count, axis=0), answers])

    return [
        PlantedBug(
            "query session, old threshold",
            "the thresholds' noise is not redrawn after an update: one round is charged, four are run",
            _Rounds(0.5, 0.5, positives=4, refreshed=False, sides=2),
            1.0,
            ([0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]),
            40_000,
        ),
        PlantedBug(
            "query session, free updates",
            "updates are not charged: two rounds are paid for, and it continues without limit",
            _Rounds(0.5, 0.5, positives=None, sides=2),
            2.0,
            ([1] * 12, [0] * 12),
            40_000,
        ),
        PlantedBug(
            "query session, one threshold",
            "both sides share one threshold noise, at the price of one for each",
            _Rounds(0.6, 1.4, positives=1, sides=2, shared=True),
            2.0,
            ([0] * 6 + [-1], [1] * 6 + [0]),
            60_000,
        ),
        PlantedBug(
            "query session, start without noise",
            "the weights begin with the exact cells, and only the answers have noise",
            start_without_noise,
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
            "the threshold's noise is not redrawn after a correction: one round is charged, three are run",
            _Rounds(0.4, 0.3, positives=3, refreshed=False, answer_rate=0.5),
            1.5,
            ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0]),
            40_000,
        ),
        PlantedBug(
            "holdout, free corrections",
            "corrections are not charged: two are paid for, and it continues without limit",
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
    # First column, second column, whether they agree.
    views = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])

    def batch(value: Any, count: int) -> Array:
        generator = np.random.default_rng()
        truth = views @ np.asarray(value, dtype=np.int64)
        model = np.zeros((count, len(views)), dtype=np.int64)
        every = np.arange(count)
        answers = []
        for _ in range(rounds):
            scores = np.abs(truth - model).astype(np.float64)
            if choice_rate is not None:
                scores += generator.gumbel(0.0, 1 / choice_rate, scores.shape)
            choice = np.argmax(scores, axis=1)
            noisy = truth[choice] + _laplace(generator, cell_rate, count)
            model[every, choice] = noisy
            answers += [choice.astype(np.float64), noisy.astype(np.float64)]
        return np.column_stack(answers)

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
