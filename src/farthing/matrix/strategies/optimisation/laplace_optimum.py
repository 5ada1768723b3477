"""The p-Identity strategy of least error for Laplace noise: several starts, the best one carried to the end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from farthing.matrix.strategies.optimisation.initial_weights import starting_points
from farthing.matrix.strategies.optimisation.p_identity_error import (
    GramTimes,
    LaplaceError,
    Progress,
    Windows,
    descended,
)
from farthing.matrix.strategies.strategy import Floats, Integers

_FEW_CELLS = 256  # a search over so few takes a second or two, whatever it was given
_TRIAL_STEPS = 20
_STEPS = 300
_STEPS_OF_MANY = 160  # above 1,024 cells: what is left to gain is below a tenth of a percent
_OWN_PART = 1 / 32  # what cells keep for themselves when whole segments of them are asked for together


@dataclass(frozen=True, eq=False)
class Weighted:
    """A = [I; T] up to the scale of its columns: T by its windows and weights, and the error at unit l1 norm."""

    windows: Windows
    weights: Floats
    error: float


def best_for_laplace(
    gram_times: GramTimes,
    diagonal: Floats,
    neighbours: Floats,
    *,
    seconds: float = 30.0,
    progress: Progress = lambda fraction: None,
) -> Weighted:
    """The best strategy found within about `seconds`, of which few cells need no account; at worst the cells alone.

    `diagonal` is W'W's, `neighbours` the entries beside it (cell j and j + 1). Cells that every query holds together
    are joined first, as long as that helps.
    """
    cells = len(diagonal)
    until = math.inf if cells <= _FEW_CELLS else time.monotonic() + seconds
    alone = Weighted(Windows(cells, *(np.zeros(0, dtype=np.int64),) * 2), np.zeros(0), float(diagonal.sum()))
    candidates = [alone]
    firsts = _segments(diagonal, neighbours)
    if len(firsts) <= min(cells // 2, 1024):
        candidates.append(_joined(gram_times, diagonal, firsts, until, progress))
    if len(firsts) > cells // 4:
        candidates.append(_optimised(gram_times, diagonal, until, progress))
    progress(1.0)
    return min(candidates, key=lambda candidate: candidate.error)


def _optimised(gram_times: GramTimes, diagonal: Floats, until: float, progress: Progress) -> Weighted:
    trials = []
    starts = list(starting_points(len(diagonal)))
    for windows, weights in starts:
        error = LaplaceError(gram_times, diagonal, windows)
        value, place = descended(error.value_and_gradient, weights, steps=_TRIAL_STEPS, until=until)
        trials.append((value, windows, place))
        progress(0.25 * len(trials) / len(starts))
    if not trials:
        empty = Windows(len(diagonal), *(np.zeros(0, dtype=np.int64),) * 2)
        return Weighted(empty, np.zeros(0), float(diagonal.sum()))
    value, windows, place = min(trials, key=lambda trial: trial[0])
    error = LaplaceError(gram_times, diagonal, windows)
    value, place = descended(
        error.value_and_gradient,
        place,
        steps=_STEPS if len(diagonal) <= 1024 else _STEPS_OF_MANY,
        until=until,
        progress=lambda fraction: progress(0.25 + 0.75 * fraction),
    )
    return Weighted(windows, place, value)


def _segments(diagonal: Floats, neighbours: Floats) -> Integers:
    """The first cell of every run of neighbours that no query tells apart: |w_j - w_(j+1)|^2 = 0."""
    apart = diagonal[:-1] + diagonal[1:] - 2.0 * neighbours
    scale = np.maximum(diagonal[:-1], diagonal[1:])
    return np.concatenate([[0], 1 + np.flatnonzero(~(apart <= 1e-9 * scale))])


def _joined(gram_times: GramTimes, diagonal: Floats, firsts: Integers, until: float, progress: Progress) -> Weighted:
    """The best strategy over segments, with a small part of every cell's weight kept for the cell itself.

    Without that part nothing could be said about a query that cuts a segment.
    """
    cells = len(diagonal)

    def segment_gram_times(vectors: Floats) -> Floats:
        spread = np.zeros((cells, vectors.shape[1]))
        spread[firsts] = vectors
        return np.asarray(gram_times(spread)[firsts])

    inner = _optimised(segment_gram_times, diagonal[firsts], until, progress)
    table = np.vstack([np.eye(len(firsts)), inner.windows.dense(inner.weights)])
    table /= table.sum(axis=0)
    lengths = np.diff(np.append(firsts, cells))
    edges = np.append(firsts, cells)
    columns = [np.flatnonzero(row) for row in table]
    starts = np.array([edges[segments_of_row[0]] for segments_of_row in columns if len(segments_of_row)])
    stops = np.array([edges[segments_of_row[-1] + 1] for segments_of_row in columns if len(segments_of_row)])
    windows = Windows(cells, starts, stops)
    wide = np.repeat(table[[len(segments_of_row) > 0 for segments_of_row in columns]], lengths, axis=1)
    weights = windows.flat_weights(wide) * (1.0 - _OWN_PART) / _OWN_PART
    value = LaplaceError(gram_times, diagonal, windows).value(weights)
    return Weighted(windows, weights, value if np.isfinite(value) and value > 0 else np.inf)
