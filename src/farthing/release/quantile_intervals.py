"""Intervals of released quantiles: from noisy ranks of public points, whatever the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from farthing.inference import ErrorLaw, Term
from farthing.release.bounds import outside, too_few_rows
from farthing.release.expectations import without_missing
from farthing.release.facts import Facts
from farthing.release.statistic import Statistic

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_RUNGS = 9  # errors of ranks are found at so many cells and taken from the wider neighbour between them
_ROUNDING = 1e-9  # of ranks, relatively: outward
_LEAST = 1e-6  # an interval of half confidence or less is that of the signs of the ranks


@dataclass(frozen=True, eq=False)
class NoisyRanks:
    """The noisy counts of one group's cells, and the points that end them.

    `scale` is that of the discrete Laplace noise in each count; `spread` is how many rows come and go together where
    the rows are a sample (0: the interval speaks of the rows themselves).
    """

    last_points: Integers
    counts: Integers
    scale: float
    spread: float = 0.0

    def interval(self, probability: float, errors: Floats, choice: int) -> tuple[int, int]:
        """The first and the last point that the quantile may be, given the errors of ranks from `rank_errors`.

        Statement:
            Let F(x) be the number of rows at or below point x, N the number of all rows and Q the least x with
            F(x) >= q N (the lower empirical quantile of the rows as they lie on the grid). Let the points
            x_1 < ... < x_m end the cells, T_i be the noisy F(x_i) - q N, and P[T_i - (F(x_i) - q N) >= e_i] <= a with
            noise that is symmetric. Let L be the point after the last x_i before the first with T_i >= -e_i, and U the
            first x_i after the last with T_i < e_i. Let y be any point, and [l, u] the least interval that holds L, U
            and y. Then P[l <= Q <= u] >= 1 - a. Of [L, U] alone it is 1 - 2 a.
        Source: inversion of a test, own derivation. L > Q only if every x_i below L has T_i < -e_i, and among them
            is the first x_i >= Q, for which F(x_i) - q N >= 0: one fixed point, so one tail, a. U < Q likewise only
            if the last x_i < Q has T_i >= e_i though F(x_i) - q N < 0. Where y < Q, [l, u] misses Q only if U < Q;
            where y > Q, only if L > Q; where y = Q, never. So whatever y is, one tail decides and not two. No further
            assumption on the rows is made.
        Assumes: the points, and y among them, were fixed before the noise of the counts was drawn (they may depend on
            the rows and on noise of their own).
        Direction: never too narrow; ties in the noise and rounding go outward.
        Checked by: tests/unit/release/test_quantile_intervals.py
        """
        below = np.cumsum(self.counts, dtype=np.float64)[:-1]
        above = float(self.counts.sum(dtype=np.float64)) - below
        ranks = (1 - probability) * below - probability * above
        slack = errors + _ROUNDING * (np.abs(below) + np.abs(above))
        low, high = np.flatnonzero(ranks >= -slack), np.flatnonzero(ranks < slack)
        first = int(low[0]) if len(low) else len(ranks)
        last = int(high[-1]) + 1 if len(high) else 0
        start = int(self.last_points[first - 1]) + 1 if first else 0
        end = int(self.last_points[last])
        return min(start, end, choice), max(start, end, choice)

    def rank_errors(self, probability: float, confidence: float) -> Floats:
        """How far the noisy rank of each cell's end may be off, in rows; the last cell ends with all rows."""
        sampling = self.sampling(probability, confidence) if self.spread > 0 else 0.0
        central = both_tails(confidence, self.spread > 0)
        return _rank_errors(len(self.counts), self.scale, sampling, probability, central)

    def sampling(self, probability: float, confidence: float) -> float:
        """The deviation of a sample's rank at the population's quantile, sqrt(m N q (1 - q)); N rows at the most."""
        law = ErrorLaw([Term("laplace", self.scale, 1.0, len(self.counts))])
        rows = float(self.counts.sum(dtype=np.float64)) + float(law.errors(confidence)[0])
        return float(np.sqrt(self.spread * max(rows, 1.0) * probability * (1 - probability)))


def both_tails(confidence: float, sampled: bool) -> float:
    """The chance that an error stays within both its ends, when one of them may be passed with 1 - confidence.

    The choice follows the sample, so of a population both tails may make the interval miss, and each has half.
    """
    return confidence if sampled else max(2 * confidence - 1, _LEAST)


@lru_cache(maxsize=4096)  # groups whose cells are as many have the same errors
def _rank_errors(cells: int, scale: float, sampling: float, probability: float, confidence: float) -> Floats:
    if cells == 1:
        return np.zeros(0)
    every = np.arange(1, cells)
    rungs = np.unique(np.linspace(1, cells - 1, _RUNGS).astype(np.int64))
    terms = [
        Term("laplace", scale, 1 - probability, rungs),
        Term("laplace", scale, probability, cells - rungs),
        Term("normal", sampling),
    ]
    found = ErrorLaw(terms, len(rungs)).errors(confidence)
    # More noise is wider, and the variance is a straight line from one end to the other.
    place = np.searchsorted(rungs, every)
    return np.maximum(found[place], found[np.maximum(place - (rungs[place] > every), 0)])


def in_order(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Ends that rise along the last axis, moved outward where they do not."""
    return (
        np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1],
        np.maximum.accumulate(upper, axis=1),
    )


def note_of(statistic: Statistic, lower: float, upper: float, whole: int, cells: int) -> str:
    """What the interval says and what it does not, and how many of them say nothing.

    >>> from farthing.release import median
    >>> note_of(median("cost"), 0.0, 50.0, 0, 1)
    'the interval was measured and holds whatever the data; values outside 0 to 50 count as the nearer bound'
    """
    known = "the interval was measured and holds whatever the data"
    if statistic.for_population:
        known = "the interval was measured and holds for any population whose units are sampled independently"
    text = f"{known}; values {outside(lower, upper)} count as the nearer bound"
    return f"{text}; {too_few_rows(statistic, whole, cells)}" if whole else text


def is_bell_curve(facts: Facts, column: str) -> bool:
    """Whether a mean and a standard deviation are all that was said of a column."""
    return isinstance(without_missing(column, facts.expected.get(column)), tuple)


def spread_assumptions(statistics: Sequence[Statistic], facts: Facts) -> list[str]:
    """Of which quantiles the predicted error rests on a crude guess at the distribution."""
    crude = [
        each.column
        for each in statistics
        if facts.column(each.column).assumed or is_bell_curve(facts, each.column)
    ]
    return [
        f"the error of quantiles of {column} rests on how {column} is spread; "
        "a list of public values predicts it better"
        for column in dict.fromkeys(crude)
    ]
