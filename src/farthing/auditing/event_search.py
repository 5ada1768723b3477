"""Fit every family of events to outputs of both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.auditing.event_scores import (
    Array,
    Atoms,
    BitsAndSize,
    Histogram,
    Linear,
    LowestBit,
    Presence,
    Score,
    SumOfRatios,
    Tail,
    TwoSided,
    bit_codes,
    lowest_bits,
)
from farthing.auditing.output_cells import ABSENT, Cells, Outputs

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
        """The event as a condition that people can read."""
        return self.score.words(self.sign, self.threshold)


def best_events(
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
                at, column = np.unravel_index(int(np.argmax(promise[:, places])), (len(thresholds), len(places)))
                value = float(promise[at, places[int(column)]])
                leader = best[group]
                if leader is None or value > leader.promise + _HABIT:
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


_Keys = TypeVar("_Keys", Array, Cells)

_INTERVALS = 64  # at most
_PER_INTERVAL = 1_000  # outputs in each, so that its ratio is known to a few percent
_SIZES = 15
_MOST_TOGETHER = 64  # fields in one sum


def fitted_scores(first: Outputs, second: Outputs) -> list[Score]:
    """Every score that the outputs of the two sides suggest."""
    wanted = list(dict.fromkeys([*first.columns, *second.columns]))
    # Of events that promise about the same the first is chosen: plain ones stand in front.
    scores: list[Score] = [Presence(field) for field in wanted if _sometimes_absent(field, first, second)]
    for field in wanted:
        scores += _of_numbers(field, first, second)
    together: list[Histogram | Atoms] = []
    for field in wanted:
        ratio = _ratio(field, first, second)
        if isinstance(ratio, Histogram):
            scores += [ratio, _atoms(field, first, second)]
        else:
            scores.append(ratio)
        if _is_part(field):
            together.append(ratio)
    for field in wanted:
        scores += _of_bits(field, first, second)
    if len(together) > 1:
        scores.append(SumOfRatios(tuple(together[:_MOST_TOGETHER])))
        scores += _linear([part.field for part in together[:_MOST_TOGETHER]], first, second)
    return scores


def _is_part(field: str) -> bool:
    """Entries and keys, but no sums of them and not the whole, which would count the same facts twice."""
    return field.startswith(("output[", "key "))


def _sometimes_absent(field: str, first: Outputs, second: Outputs) -> bool:
    return any(bool(np.any(side.cells(field) == np.uint64(ABSENT))) for side in (first, second))


def _of_numbers(field: str, first: Outputs, second: Outputs) -> Iterator[Score]:
    sides = [values[~np.isnan(values)] for values in (first.values(field), second.values(field))]
    pooled = np.concatenate(sides)
    if not len(pooled) or pooled.min() == pooled.max():
        return
    yield Tail(field)
    for centre in dict.fromkeys(float(np.median(side)) for side in sides if len(side)):
        if np.isfinite(centre):
            yield TwoSided(field, centre)


def _of_bits(field: str, first: Outputs, second: Outputs) -> Iterator[Score]:
    sides = [values[~np.isnan(values)] for values in (first.values(field), second.values(field))]
    pooled = np.concatenate(sides)
    bits = lowest_bits(pooled)
    if len(np.unique(bits[~np.isnan(bits)])) > 1:
        yield LowestBit(field)
        edges = np.unique(np.quantile(np.abs(pooled), np.linspace(0, 1, _SIZES + 2)[1:-1], method="nearest"))
        codes = [bit_codes(side, edges) for side in sides]
        yield BitsAndSize(field, edges, *_ratios(codes[0], codes[1], first.count, second.count, least=1))


def _ratio(field: str, first: Outputs, second: Outputs) -> Histogram | Atoms:
    """Exact values while they are few, intervals when they are many."""
    cells = np.concatenate([first.cells(field), second.cells(field)])
    values = cells.view(np.float64)
    numbers = values[~np.isnan(values)]
    if len(np.unique(numbers)) <= _INTERVALS:
        return _atoms(field, first, second)
    intervals = min(_INTERVALS, max(8, len(numbers) // _PER_INTERVAL))
    cuts = np.quantile(numbers, np.linspace(0, 1, intervals + 1)[1:-1], method="nearest")
    edges = np.unique(cuts[np.isfinite(cuts)])
    counts = []
    for side in (first, second):
        mine = side.values(field)
        places = np.searchsorted(edges, mine[~np.isnan(mine)], side="right")
        counts.append(np.bincount(places, minlength=len(edges) + 1))
    ratios = _log_ratio(counts[0], counts[1], first.count, second.count)
    labels = [side.cells(field)[np.isnan(side.values(field))] for side in (first, second)]
    label_ratios = _ratios(labels[0], labels[1], first.count, second.count, least=1)
    return Histogram(field, edges, ratios, *label_ratios, names={**first.names, **second.names})


def _atoms(field: str, first: Outputs, second: Outputs) -> Atoms:
    sides = first.cells(field), second.cells(field)
    # A value seen once says nothing, and where there are very many values a few hits are luck.
    many = len(np.unique(np.concatenate(sides))) > 2 * _INTERVALS
    cells, ratios = _ratios(*sides, first.count, second.count, least=8 if many else 2)
    return Atoms(field, cells, ratios, {**first.names, **second.names})


def _linear(entries: list[str], first: Outputs, second: Outputs) -> Iterator[Score]:
    """Weights by the difference of means over the variance: the best ones for independent entries."""
    columns, weights, lows, highs = [], [], [], []
    for field in entries:
        sides = [np.nan_to_num(side.values(field), nan=0.0, posinf=0.0, neginf=0.0) for side in (first, second)]
        low, high = np.quantile(np.concatenate(sides), [0.01, 0.99])
        clipped = [np.clip(side, low, high) for side in sides]
        variance = float(np.var(clipped[0]) + np.var(clipped[1]))
        if variance > 0 and np.isfinite(variance):
            columns.append(field)
            weights.append(float(np.mean(clipped[0]) - np.mean(clipped[1])) / variance)
            lows.append(float(low))
            highs.append(float(high))
    if len(columns) > 1:
        yield Linear(tuple(columns), np.array(weights), np.array(lows), np.array(highs))


def _ratios(first: _Keys, second: _Keys, trials: int, others: int, least: int) -> tuple[_Keys, Array]:
    """The distinct values seen at least `least` times, sorted, and the log-ratio of their frequencies."""
    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(values)) for part in (codes[: len(first)], codes[len(first) :])]
    often = counts[0] + counts[1] >= least
    return values[often], _log_ratio(counts[0][often], counts[1][often], trials, others)


def _log_ratio(hits: NDArray[np.int64], misses: NDArray[np.int64], trials: int, others: int) -> Array:
    """Smoothed by half a count, so that a rare value is not taken for a strong one."""
    return np.asarray(np.log((hits + 0.5) / (trials + 1.0)) - np.log((misses + 0.5) / (others + 1.0)))
