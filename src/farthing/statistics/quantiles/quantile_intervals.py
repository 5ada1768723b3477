"""Intervals of released quantiles: from noisy ranks of public points, whatever the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import ErrorDistribution, Term
from farthing.statistics.answer_records import outside, too_few_rows
from farthing.statistics.public_facts import Assumption, Facts, without_missing
from farthing.statistics.statistic import Statistic

_PULLS = np.geomspace(0.01, 1e10, 385)  # 32 in a decade; a weaker pull is none, all points are alike
_LOG_PULLS = np.log(_PULLS)
_SAMPLES = np.array([NormalDist().inv_cdf((k + 0.5) / 33) for k in range(33)])
_MIXED = (10 * np.arange(33)) % 33  # so that samples and what is passed on do not rise together
_DRIFTS = 9
_ENOUGH = 2048
_MOST_CURVES = 512
_AS_GOOD_AS_RIGHT = 1e-3  # of a step, a standard error
_NEGLIGIBLE = 40.0  # weights below e^-40 of the best are left out of windows


@dataclass(frozen=True, eq=False)
class QuantileDistribution:
    """Where the chosen point lies, from the true quantile, when rows are spread over points as `shares` say.

    `whole`: rows lie on the points themselves, so the true quantile is one of them. Otherwise they lie anywhere within
    half a step. `known` is the true quantile where the expected rows are listed one by one: then `shares` are theirs,
    and nothing is averaged over samples. `passed` says how much of the misses of other choices it has, as multiples of
    its own scale; `cut`: others are chosen beside it, so it is a place in a point, and a point weighs the mean of its
    places.
    """

    values: Floats
    shares: Floats
    probability: float
    step: float
    whole: bool
    known: float | None = None
    passed: tuple[float, ...] = ()
    cut: bool = False

    @cached_property
    def upto(self) -> Floats:
        """The share of rows at or below each point."""
        return np.minimum(np.cumsum(self.shares), 1.0)

    @cached_property
    def below(self) -> Floats:
        """The share of rows below each point."""
        return np.concatenate(([0.0], self.upto[:-1]))

    @cached_property
    def place(self) -> int:
        """The point that holds the wanted rank."""
        return min(int(np.searchsorted(self.upto, self.probability)), len(self.values) - 1)

    @cached_property
    def quantile(self) -> float:
        """The quantile of the expected distribution."""
        if self.known is not None:
            return self.known
        return float(self._quantiles(np.zeros(1))[0])

    @property
    def density(self) -> float:
        """Expected share of rows per unit of the column around the quantile; never nothing."""
        around = slice(max(0, self.place - 2), self.place + 3)
        return max(float(self.shares[around].mean()), 1e-9) / self.step

    @cached_property
    def _squares(self) -> Floats:
        """The mean squared error of an answer at each point."""
        blur = 0.0 if self.whole or self.known is not None else self.step**2 / 12
        return np.asarray((self.values - self.quantile) ** 2 + blur)

    def _weights(self, shifts: Floats, pull: float, window: slice) -> Floats:
        """How likely points are, for each shift of the rank that is chosen by; every row adds up to 1."""
        rank = np.minimum(np.maximum(self.probability + shifts, 0.0), 1.0)[:, None]
        low, high = pull * (self.below[window] - rank), pull * (self.upto[window] - rank)
        near = np.maximum(np.maximum(low, -high), 0.0)
        weights = np.exp(-(near - near.min(axis=1, keepdims=True)))
        if self.cut:
            width = np.maximum(high - low, 1e-9)
            one_side, both = -np.expm1(-width), -np.expm1(np.minimum(low, 0.0)) - np.expm1(-np.maximum(high, 0.0))
            weights *= np.where((low < 0) & (high > 0), both, one_side) / width
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _quantiles(self, shifts: Floats) -> Floats:
        ranks = np.clip(self.probability + shifts, 0.0, 1.0)
        if self.whole:
            places = np.minimum(np.searchsorted(self.upto, ranks), len(self.values) - 1)
            return np.asarray(self.values[places])
        edges = np.append(self.values - self.step / 2, self.values[-1] + self.step / 2)
        return np.asarray(np.interp(ranks, np.append(0.0, self.upto), edges))

    def _coarse(self, pull: float, rows: float) -> bool:
        """Whether it matters, and is not known, where inside its point the wanted rank lies."""
        if self.known is not None:
            return False
        share = float(self.shares[self.place])
        return share * pull > 0.5 and share > 0.25 * self._spread(rows)

    def _spread(self, rows: float) -> float:
        return float(np.sqrt(self.probability * (1 - self.probability) / rows))

    def _window(self, reach: float) -> slice:
        """The points whose ranks come within a distance of the wanted one, and one more on each side."""
        first = int(np.searchsorted(self.upto, self.probability - reach))
        last = int(np.searchsorted(self.below, self.probability + reach, "right"))
        return slice(max(0, first - 1), last + 1)

    def _sampled(self, pull: float, rows: float) -> tuple[Floats, Floats]:
        """Errors and their probabilities over the likely samples, flattened."""
        shifts = self._spread(rows) * _SAMPLES
        passed = np.resize(drifts(self.passed, len(_SAMPLES)), len(_SAMPLES))[_MIXED] / pull
        window = self._window(float(np.abs(shifts + passed).max()) + _NEGLIGIBLE / pull)
        errors = self.values[window] - self._quantiles(shifts)[:, None]
        weights = self._weights(shifts + passed, pull, window) / len(shifts)
        return errors.reshape(-1), weights.reshape(-1)

    def _plain(self, pull: float, enough: int = 0) -> tuple[slice, Floats]:
        """The points that matter (`enough` of them) and their probabilities, when ranks are exactly as expected."""
        passed = (drifts(self.passed, _DRIFTS) if self.passed else np.zeros(1)) / pull
        window = self._window(float(np.abs(passed).max()) + _NEGLIGIBLE / pull)
        if enough:
            window = slice(window.start, window.stop, max(1, (window.stop - window.start) // enough))
        return window, self._weights(passed, pull, window).mean(axis=0)

    def _plain_variance(self, pull: float) -> float:
        # Where thousands of points matter their weights change slowly: a thousand of them tell as much.
        window, weights = self._plain(pull, _ENOUGH)
        return float(weights @ self._squares[window])

    @cached_property
    def _plain_table(self) -> Floats:
        return np.array([self._plain_variance(float(pull)) for pull in _PULLS])

    def curve(self, rows: float) -> VarianceCurve:
        """The variance of the error as a function of the pull, for quick look-ups."""
        if rows not in self._curves:
            if len(self._curves) >= _MOST_CURVES:
                self._curves.clear()
            self._curves[rows] = self._curve(rows)
        return self._curves[rows]

    @cached_property
    def _curves(self) -> dict[float, VarianceCurve]:
        return {}

    def _curve(self, rows: float) -> VarianceCurve:
        logarithms = np.log(np.maximum(self._plain_table, 1e-300))
        coarse = np.array([self._coarse(float(pull), rows) for pull in _PULLS])
        # Samples take longer and change the distribution slowly: an eighth of the pulls tell as much.
        if coarse.any():
            some = np.unique(np.append(np.flatnonzero(coarse)[::8], np.flatnonzero(coarse)[-1]))
            exact = [max(self.variance(float(_PULLS[place]), rows), 1e-300) for place in some]
            logarithms[coarse] = np.interp(np.flatnonzero(coarse), some, np.log(exact))
        # Never nothing: off by a step in one release of a million is as good as right, and no budget is to go there.
        floor = 2 * np.log(_AS_GOOD_AS_RIGHT * self.step)
        return VarianceCurve(np.minimum.accumulate(np.maximum(logarithms, floor)))

    def variance(self, pull: float, rows: float) -> float:
        """The mean squared error of the released quantile."""
        if not self._coarse(pull, rows):
            return self._plain_variance(pull)
        errors, weights = self._sampled(pull, rows)
        return float(weights @ errors**2)

    def likely(self, pull: float, count: int) -> NDArray[np.int64]:
        """Points that stand for the chosen one, evenly by probability."""
        window, weights = self._plain(pull)
        reached = (np.arange(count) + 0.5) / count
        return np.asarray(np.searchsorted(np.cumsum(weights), reached) + window.start, dtype=np.int64)


def distribution_of(
    values: Floats,
    shares: Floats,
    probability: float,
    step: float,
    whole: bool,
    known: float | None,
    passed: tuple[float, ...],
    cut: bool,
) -> QuantileDistribution:
    """The distribution; equal ones are one, so that the tables of a column are made once for all conditions on it."""
    arrays = tuple((array.dtype.str, array.tobytes()) for array in (values, shares))
    return _one_of_its_kind(arrays, probability, step, whole, known, passed, cut)


@lru_cache(maxsize=16)
def _one_of_its_kind(arrays: tuple[tuple[str, bytes], ...], *facts: Any) -> QuantileDistribution:
    values, shares = (np.frombuffer(data, kind) for kind, data in arrays)
    return QuantileDistribution(values, shares, *facts)


@lru_cache(maxsize=1024)
def drifts(passed: tuple[float, ...], count: int) -> Floats:
    """Points that stand for a sum of multiples of standard Laplace noises, evenly by probability; its variance is kept.

    >>> bool(np.isclose(np.mean(drifts((0.5, 0.25), 9) ** 2), 2 * (0.5**2 + 0.25**2)))
    True
    """
    if not passed:
        return np.zeros(1)
    even = (2 * np.arange(count) + 1) / count - 1
    single = -np.sign(even) * np.log1p(-np.abs(even))
    total = sum(
        size * single[(stride * np.arange(count)) % count] for size, stride in zip(passed, _STRIDES, strict=False)
    )
    spread = np.sort(np.asarray(total))
    spread = (spread - spread[::-1]) / 2
    return np.asarray(spread * np.sqrt(2 * np.sum(np.square(passed)) / np.mean(spread**2)))


_STRIDES = (1, 2, 4, 5, 7, 8, 10, 13, 14, 16, 17, 19, 20)


@dataclass(frozen=True, eq=False)
class VarianceCurve:
    """A falling curve, between tabulated points a power law."""

    logarithms: Floats

    def at(self, pull: Floats | float) -> Floats:
        """The variance at a pull."""
        log_pull = np.log(np.maximum(np.asarray(pull, dtype=float), _PULLS[0]))
        return np.asarray(np.exp(np.interp(log_pull, _LOG_PULLS, self.logarithms)))


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
        Checked by: tests/unit/statistics/quantiles/test_quantile_intervals.py
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
        distribution = ErrorDistribution([Term("laplace", self.scale, 1.0, len(self.counts))])
        rows = float(self.counts.sum(dtype=np.float64)) + float(distribution.errors(confidence)[0])
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
    errors = ErrorDistribution(terms, len(rungs)).errors(confidence)
    # More noise is wider, and the variance is a straight line from one end to the other.
    place = np.searchsorted(rungs, every)
    return np.maximum(errors[place], errors[np.maximum(place - (rungs[place] > every), 0)])


def in_order(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Ends that rise along the last axis, moved outward where they do not."""
    return (
        np.minimum.accumulate(lower[:, ::-1], axis=1)[:, ::-1],
        np.maximum.accumulate(upper, axis=1),
    )


def note_of(
    statistic: Statistic, lower: float, upper: float, whole: int, cells: int, rounded_down: bool = False
) -> str:
    """What the interval says and what it does not, and how many of them say nothing.

    >>> from farthing.statistics import median
    >>> note_of(median("cost"), 0.0, 50.0, 0, 1)
    'the interval was measured and holds whatever the data, more often than stated where many rows share a value; ...'
    """
    known = (
        "the interval was measured and holds whatever the data, more often than stated where many rows share a value"
    )
    if statistic.for_population:
        known = "the interval was measured and holds for any population whose units are sampled independently"
    text = f"{known}; values {outside(lower, upper)} count as the nearer bound"
    text += "; fractions are rounded down" * rounded_down
    return f"{text}; {too_few_rows(statistic, whole, cells)}" if whole else text


def is_bell_curve(facts: Facts, column: str) -> bool:
    """Whether a mean and a standard deviation are all that was said of a column."""
    return isinstance(without_missing(column, facts.expected.get(column)), tuple)


def spread_assumptions(statistics: Sequence[Statistic], facts: Facts) -> list[Assumption]:
    """Of which quantiles the predicted error rests on a crude guess at the distribution."""
    crude = [
        each.column for each in statistics if facts.column(each.column).assumed or is_bell_curve(facts, each.column)
    ]
    return [
        Assumption(
            f"the error of quantiles of {column} depends on how {column} is distributed; "
            "a list of public values gives a better prediction"
        )
        for column in dict.fromkeys(crude)
    ]
