"""How far the intervals of shares reach on average over releases: more than the first order of their noise says.

The number of rows that a share is one of is noisy too, intervals leave room for a whole step, and a share moves within
its interval where shares are made to rise. So a few fixed noises are released as measured ones would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from farthing.inference import nearest_increasing

Floats = NDArray[np.float64]

_CASES = 128
_MOST_NUMBERS = 1 << 14  # in all cases together
_FEWEST_CASES = 8


@dataclass(frozen=True)
class Spreads:
    """Variances of totals below edges, their covariances with the whole, and the variance of the whole."""

    own: Floats
    both: Floats
    whole: Floats

    def times(self, variance: float | Floats) -> Spreads:
        """The same with so much noise."""
        return Spreads(self.own * variance, self.both * variance, self.whole * variance)

    def of_share(self, share: Floats) -> Floats:
        """The variance of (total below an edge) - share * whole."""
        return np.maximum(self.own - 2 * share * self.both + share**2 * self.whole, 0.0)

    def respread(self, totals: Floats, other: Spreads) -> Floats:
        """Noise of totals that are spread like this (cases x groups x cells), spread like another instead."""
        shape = totals.shape[1:]
        whole = totals[..., -1:]
        residual = totals - whole * _part(self.both, self.whole).reshape(shape)
        grown, left = (_part(one._residual, base) for one, base in ((other, self._residual), (self, self.own)))
        moved = whole * np.sqrt(_part(other.whole, self.whole)).reshape(shape)
        scale = np.where(left > 1e-9, np.sqrt(grown), 0.0)  # the last total is the whole
        return np.asarray(moved * _part(other.both, other.whole).reshape(shape) + residual * scale.reshape(shape))

    @property
    def _residual(self) -> Floats:
        """The variance of a total that the whole does not explain."""
        return np.maximum(self.own - self.both * _part(self.both, self.whole), 0.0)


def _part(one: Floats, of: Floats) -> Floats:
    return np.where(of > 0, one / np.where(of > 0, of, 1.0), 0.0)


@lru_cache(maxsize=64)
def unit_noise(kind: str, numbers: int) -> Floats:
    """Noises of variance 1 and their mirror images, one case a row: fixed, so that predictions are the same."""
    generator, many = np.random.default_rng(numbers), max(_FEWEST_CASES, min(_CASES, _MOST_NUMBERS // max(numbers, 1)))
    shape = (many // 2, numbers)
    half = generator.laplace(0.0, 0.5**0.5, shape) if kind == "laplace" else generator.normal(0.0, 1.0, shape)
    return np.concatenate([half, -half])


@dataclass(frozen=True, eq=False)
class ReleasedShares:
    """Noisy totals up to every edge, one case after the other, and what their intervals are made of."""

    totals: Floats  # cases x groups x cells
    spreads: Spreads
    factors: Floats  # standard errors in an interval
    steps: float  # for which an interval leaves room, beside its noise
    population: float  # times the whole: what a sample of units adds

    def mean_reach(self) -> Floats:
        """How far the interval of every share reaches from it, on average."""
        cases, _, width = self.totals.shape
        flat = self.totals.reshape(cases, -1)
        whole = np.repeat(self.totals[..., -1], width, axis=1)
        rows = np.maximum(whole, 1.0)
        values = self._values(whole)
        errors = self._errors(values, rows)
        room = self.steps / rows / np.where(errors > 0, errors, 1.0) * (errors > 0)
        squares = (self.factors + room) ** 2
        own, both, all_ = (squares * each for each in (self.spreads.own, self.spreads.both, self.spreads.whole))
        low, high = shares_between(flat, whole, own, both, all_, self.population * squares * np.maximum(whole, 0.0))
        return np.asarray(np.maximum(np.maximum(values - low, high - values), 0.0).mean(axis=0))

    def first_order(self, totals: Floats) -> Floats:
        """How far it would reach if the totals, one group a row, were as they are and nothing but noise counted."""
        rows = np.maximum(np.repeat(totals[:, -1], totals.shape[1]), 1.0)
        return self.factors * self._errors(np.clip(totals.reshape(-1) / rows, 0.0, 1.0), rows)

    def _errors(self, shares: Floats, rows: Floats) -> Floats:
        sampled = self.population * shares * (1 - shares) * rows
        return np.asarray(np.sqrt(self.spreads.of_share(shares) + sampled) / rows)

    def _values(self, whole: Floats) -> Floats:
        return rising_shares(self.totals.reshape(-1, self.totals.shape[-1]), whole.reshape(-1))[0].reshape(whole.shape)


def rising_shares(totals: Floats, whole: Floats) -> tuple[Floats, Floats]:
    """Shares of the whole that rise from 0 to 1, and as they are; one group of running totals a row."""
    groups, width = totals.shape
    steps = np.tile(np.arange(1, width + 1) / width, groups)  # where nothing can be said
    plain = np.where(whole > 0, totals.reshape(-1) / np.where(whole > 0, whole, 1.0), steps)
    values = plain.reshape(groups, width).copy()
    for group in np.flatnonzero((np.diff(values, axis=1) < 0).any(axis=1)):
        values[group] = nearest_increasing(values[group], least=0.0, most=1.0)
    return np.clip(values.reshape(-1), 0.0, 1.0), plain


def shares_between(
    totals: Floats, whole: Floats, own: Floats, both: Floats, all_: Floats, population: Floats | float
) -> tuple[Floats, Floats]:
    """All f in [0, 1] with (totals - f whole)^2 <= own - 2 f both + f^2 all_ + population f (1 - f).

    `own`, `both` and `all_` are the variance of the total below an edge, its covariance with the whole, and the
    variance of the whole, times the square of the factor that makes an interval of them.
    """
    square = whole**2 - all_ + population
    middle = totals * whole - both + np.asarray(population) / 2
    rest = totals**2 - own
    root = middle**2 - square * rest
    known = (square > 0) & (root >= 0) & (whole > 0)
    safe = np.where(known, square, 1.0)
    width = np.sqrt(np.where(known, root, 0.0))
    low = np.where(known, (middle - width) / safe, 0.0)
    high = np.where(known, (middle + width) / safe, 1.0)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
