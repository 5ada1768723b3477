"""Choose the event to test: the one whose bound promises to exceed the claim by most.

The choice is made on outputs that the bound never sees, so that nothing has to be paid for having looked at thousands
of events. Promise is measured with cautious bounds of both rates, not with the rates: an event that was hit five times
against none is luck, not evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.cells import Outputs
from farthing.auditing.scores import Array, Score

# Standard errors allowed for when promise is measured. Among thousands of events, fewer would let luck choose.
_CAUTION = 3.5
_HABIT = 0.01  # by so much an event has to promise more than a plainer one
_EVEN = 48  # thresholds spread evenly, beside a few far out on both ends


@dataclass(frozen=True, eq=False)
class Candidate:
    """An event of one pair in one direction: {sign * score >= sign * threshold} on side `over` against the other."""

    pair: int
    over: int  # 0: the first table of the pair should hit more often; 1: the second
    score: Score
    sign: int
    threshold: float
    thresholds: Array  # of the whole family, for the region
    promise: float
    point: int  # of the claim

    def hits(self, scores: Array) -> int:
        """How many of the scores belong to the event."""
        with np.errstate(invalid="ignore"):
            return int(np.count_nonzero(self.sign * scores >= self.sign * self.threshold))

    @property
    def words(self) -> str:
        """The event in words."""
        return self.score.words(self.sign, self.threshold)


def promising(
    pair: int,
    sides: tuple[Outputs, Outputs],
    scores: Sequence[Score],
    points: Sequence[tuple[float, float]],
    wanted: Sequence[Sequence[int]],
) -> list[Candidate | None]:
    """The most promising event of one pair for each group of claimed points in `wanted`."""
    best: list[Candidate | None] = [None] * len(wanted)
    for score in scores:
        measured = [np.sort(part[~np.isnan(part)]) for part in (score.of(side) for side in sides)]
        thresholds = _thresholds(np.concatenate(measured))
        if not len(thresholds):
            continue
        for over, sign, rates in _rates(measured, thresholds, sides):
            promise = _promise(*rates, sides[over].count, sides[1 - over].count, points)
            for group, places in enumerate(wanted):
                at, column = np.unravel_index(
                    int(np.argmax(promise[:, places])), (len(thresholds), len(places))
                )
                value = float(promise[at, places[int(column)]])
                held = best[group]
                if held is None or value > held.promise + _HABIT:
                    best[group] = Candidate(
                        pair, over, score, sign, float(thresholds[at]), thresholds, value, places[int(column)]
                    )
    return best


def _rates(
    measured: list[Array], thresholds: Array, sides: tuple[Outputs, Outputs]
) -> Iterator[tuple[int, int, tuple[Array, Array]]]:
    """(side that should hit more, sign, both rates at every threshold)."""
    for sign in (1, -1):
        rates = []
        for values, side in zip(measured, sides, strict=True):
            if sign > 0:
                hits = len(values) - np.searchsorted(values, thresholds, side="left")
            else:
                hits = np.searchsorted(values, thresholds, side="right")
            rates.append(hits / side.count)
        yield 0, sign, (rates[0], rates[1])
        yield 1, sign, (rates[1], rates[0])


def _thresholds(pooled: Array) -> Array:
    """Values that occurred: all when they are few, else evenly spread ones and some far out."""
    values = np.unique(pooled)
    if len(values) <= 2 * _EVEN:
        return values
    count = len(pooled)
    even = np.linspace(0, count - 1, _EVEN).astype(np.int64)
    far = np.unique(np.geomspace(1, count / 4, 24).astype(np.int64))
    ranks = np.concatenate([even, far, count - 1 - far])
    return np.unique(np.sort(pooled)[ranks])


def _promise(
    rates: Array, others: Array, trials: int, other_trials: int, points: Sequence[tuple[float, float]]
) -> NDArray[np.float64]:
    """How far the epsilon of cautious bounds exceeds each claimed point, for every threshold."""
    low, _ = _wilson(rates, trials)
    _, high = _wilson(others, other_trials)
    epsilons, deltas = (np.array(part) for part in zip(*points, strict=True))
    gap = np.maximum(low[:, None] - deltas[None, :], 1e-300)
    return np.asarray(np.log(gap / high[:, None]) - epsilons[None, :])


def _wilson(rates: Array, trials: int) -> tuple[Array, Array]:
    """Wilson's score interval: close to the exact one, and quick for many events at once."""
    z2 = _CAUTION**2
    centre = rates + z2 / (2 * trials)
    spread = _CAUTION * np.sqrt(rates * (1 - rates) / trials + z2 / (4 * trials**2))
    scale = 1 + z2 / trials
    return np.maximum((centre - spread) / scale, 0.0), (centre + spread) / scale
