"""The law of a private quantile's error, predicted from the expected distribution of its column.

The mechanism picks point y with probability proportional to exp(-rate * loss(y)), the loss being the distance in rows
from the wanted rank to those that y holds. With n expected rows the loss is n times a distance in shares, so for one
distribution everything depends on `pull` = rate * n alone.

Real rows are a sample: their ranks lie about sqrt(n q (1 - q)) off the expected ones. Where points are so fine that a
point holds far fewer rows than that, it makes no difference. Where they are coarse (whole numbers, many rows), how far
the wanted rank lies from the border of its point decides everything; then the law is averaged over the sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PULLS = np.geomspace(0.01, 1e10, 385)  # 32 in a decade; a weaker pull is none, all points are alike
_SAMPLES = np.array([NormalDist().inv_cdf((k + 0.5) / 33) for k in range(33)])
_ENOUGH = 2048
_NEGLIGIBLE = 40.0  # weights below e^-40 of the best are left out of windows


@dataclass(frozen=True, eq=False)
class QuantileLaw:
    """Where the chosen point lies, from the true quantile, when rows are spread over points as `shares` say.

    `whole`: rows lie on the points themselves, so the true quantile is one of them. Otherwise they lie anywhere within
    half a step. `known` is the true quantile where the expected rows are listed one by one: then `shares` are theirs,
    and nothing is averaged over samples.
    """

    values: Floats
    shares: Floats
    probability: float
    step: float
    whole: bool
    known: float | None = None

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
        """The expected quantile."""
        if self.known is not None:
            return self.known
        return float(self._quantiles(np.zeros(1))[0])

    @property
    def density(self) -> float:
        """Expected share of rows per unit of the column around the quantile; never nothing."""
        around = slice(max(0, self.place - 2), self.place + 3)
        return max(float(self.shares[around].mean()), 1e-9) / self.step

    @cached_property
    def _distances(self) -> Floats:
        return self._distances_at(0.0, slice(None))

    @cached_property
    def _squares(self) -> Floats:
        """The mean squared error of an answer at each point."""
        blur = 0.0 if self.whole or self.known is not None else self.step**2 / 12
        return np.asarray((self.values - self.quantile) ** 2 + blur)

    def _distances_at(self, shift: float, window: slice) -> Floats:
        wanted = min(max(self.probability + shift, 0.0), 1.0)
        return np.maximum(np.maximum(self.below[window] - wanted, wanted - self.upto[window]), 0.0)

    def _quantiles(self, shifts: Floats) -> Floats:
        wanted = np.clip(self.probability + shifts, 0.0, 1.0)
        if self.whole:
            places = np.minimum(np.searchsorted(self.upto, wanted), len(self.values) - 1)
            return np.asarray(self.values[places])
        edges = np.append(self.values - self.step / 2, self.values[-1] + self.step / 2)
        return np.asarray(np.interp(wanted, np.append(0.0, self.upto), edges))

    def _coarse(self, pull: float, rows: float) -> bool:
        """Whether it matters, and is not known, where inside its point the wanted rank lies."""
        if self.known is not None:
            return False
        held = float(self.shares[self.place])
        return held * pull > 0.5 and held > 0.25 * self._spread(rows)

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
        window = self._window(float(shifts[-1]) + _NEGLIGIBLE / pull)
        errors = self.values[window] - self._quantiles(shifts)[:, None]
        weights = np.exp(-pull * np.stack([self._distances_at(float(shift), window) for shift in shifts]))
        weights /= weights.sum(axis=1, keepdims=True) * len(shifts)
        return errors.reshape(-1), weights.reshape(-1)

    def _plain(self, pull: float) -> tuple[slice, Floats]:
        """The points that matter and their probabilities, when ranks are exactly as expected."""
        window = self._window(_NEGLIGIBLE / pull)
        weights = np.exp(-pull * self._distances[window])
        return window, weights / weights.sum()

    def _plain_variance(self, pull: float) -> float:
        window = self._window(_NEGLIGIBLE / pull)
        # Where thousands of points matter their weights change slowly: a thousand of them tell as much.
        window = slice(window.start, window.stop, max(1, (window.stop - window.start) // _ENOUGH))
        weights = np.exp(-pull * self._distances[window])
        return float(weights @ self._squares[window] / weights.sum())

    @cached_property
    def _plain_table(self) -> Floats:
        return np.array([self._plain_variance(float(pull)) for pull in _PULLS])

    def curve(self, rows: float) -> VarianceCurve:
        """The variance of the error as a function of the pull, for quick look-ups."""
        found = np.log(np.maximum(self._plain_table, 1e-300))
        coarse = np.array([self._coarse(float(pull), rows) for pull in _PULLS])
        if coarse.any():  # samples take longer and change the law slowly: an eighth of the pulls tell as much
            some = np.unique(np.append(np.flatnonzero(coarse)[::8], np.flatnonzero(coarse)[-1]))
            exact = [max(self.variance(float(_PULLS[place]), rows), 1e-300) for place in some]
            found[coarse] = np.interp(np.flatnonzero(coarse), some, np.log(exact))
        # Never nothing: a point that is surely right today may be wrong by a step on other rows.
        floor = 2 * np.log(1e-6 * self.step)
        return VarianceCurve(np.minimum.accumulate(np.maximum(found, floor)))

    def variance(self, pull: float, rows: float) -> float:
        """The mean squared error."""
        if not self._coarse(pull, rows):
            return self._plain_variance(pull)
        errors, weights = self._sampled(pull, rows)
        return float(weights @ errors**2)

    def likely(self, pull: float, count: int) -> NDArray[np.int64]:
        """Points that stand for the chosen one, evenly by probability."""
        window, weights = self._plain(pull)
        reached = (np.arange(count) + 0.5) / count
        return np.asarray(np.searchsorted(np.cumsum(weights), reached) + window.start, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class VarianceCurve:
    """A falling curve, between tabulated points a power law."""

    logarithms: Floats

    def at(self, pull: Floats | float) -> Floats:
        """The variance at a pull."""
        wanted = np.log(np.maximum(np.asarray(pull, dtype=float), _PULLS[0]))
        return np.asarray(np.exp(np.interp(wanted, np.log(_PULLS), self.logarithms)))
