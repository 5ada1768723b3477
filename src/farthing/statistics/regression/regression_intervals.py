"""Intervals of a least-squares line from noisy normal equations: what the noise does not exclude, ends or no ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LADDER = np.geomspace(0.25, 1e5, 57)  # distances from the line, in its standard errors
_TURNS = 3  # of finding the likeliest line at a distance; each rung of the ladder starts from the one before
_OUTWARD = 1.005  # between two rungs


@dataclass(frozen=True, eq=False)
class NoisyLine:
    """Normal equations with noise, and what is asked of their solution.

    One unit of noise number e moves the matrix by `matrices[e]` and the right-hand side by `vectors[e]`; its standard
    deviation is `deviations[e]`. The coefficients asked for are `to_data` times the solution, and `sampling` are
    further variances that each of them has. `slopes` are the places of those that belong to numbers, not to flags.
    """

    gram: Floats
    right: Floats
    matrices: Floats
    vectors: Floats
    deviations: Floats
    to_data: Floats
    sampling: Floats
    slopes: tuple[int, ...] = ()

    @cached_property
    def inverse(self) -> Floats:
        """Of the noisy matrix; where it has none, of one that is next to it."""
        try:
            return np.asarray(np.linalg.inv(self.gram))
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.pinv(self.gram))

    @cached_property
    def theta(self) -> Floats:
        """The solution of the noisy normal equations."""
        return np.asarray(self.inverse @ self.right)

    def weights(self, theta: Floats) -> Floats:
        """What one unit of each noise moves the coefficients by if `theta` solves the true equations."""
        return np.asarray(self.to_data @ self.inverse @ (self.vectors - self.matrices @ theta).T)

    def reaches(self, errors: Floats) -> tuple[Floats, Floats]:
        """How far below and above its noisy value each coefficient may lie; infinite where nothing can be excluded.

        Statement:
            With A theta = b the true equations and A' = A + dA, b' = b + db the noisy ones, theta' - theta is
            A'^-1 (db - dA theta), exactly. Let v(theta) be the variance of its coefficient c for noise that is drawn
            independently of A'. The interval holds the values t for which |t - c(theta')| <= k sqrt(v(theta_t)),
            theta_t being the likeliest line with the coefficient t, and k the exact error at the confidence over the
            standard error at theta'. `errors` are k sqrt(v(theta')).
        Source: Fieller (1954), "Some problems in interval estimation", for one coefficient; for several the subset
            Anderson-Rubin statistic (Guggenberger, Kleibergen, Mavroeidis & Chen, 2012, Econometrica 80(6)): with
            M = A'^-1 Sigma(theta_t) A'^-T, theta_t = theta' + (t - c') M c / (c M c), found by iteration.
        Departs from source: that the other coefficients of theta_t are estimates adds to v (`_unknown`). Where the
            slope of a number has no end, no coefficient has: a line steep enough in it agrees with any value of the
            others, and the iteration, which starts at theta', need not find it. Flags are left out: their coefficients
            are differences of means, which the bounds of the target limit.
        Assumes: the noise is small beside the eigenvalues of A', or the interval is long: to first order v does not
            depend on dA. An interval that always had ends would hold a true line that is steep, and of a feature that
            hardly varies, less often than any confidence (Gleser & Hwang, 1987, Annals of Statistics 15(4)).
        Direction: approximate; between rungs outward. Coverage is measured.
        Checked by: tests/unit/statistics/regression/test_regression_intervals.py
        """
        deviations, ratios = self._profile
        with np.errstate(invalid="ignore", divide="ignore"):
            targets = np.where(deviations > 0, errors / deviations, np.inf)
        reaches = np.empty((2, len(errors)))
        for side in range(2):
            for place in range(len(errors)):
                own = ratios[side, place]
                inside = np.flatnonzero(~(own > targets[place]))
                if deviations[place] == 0:
                    reaches[side, place] = 0.0
                elif len(inside) and inside[-1] == len(_LADDER) - 1:
                    reaches[side, place] = np.inf
                else:
                    rung = int(inside[-1]) if len(inside) else -1
                    reaches[side, place] = deviations[place] * _between(own, rung, float(targets[place]))
        if np.isinf(reaches[:, list(self.slopes)]).any():
            reaches[:, deviations > 0] = np.inf
        return reaches[0], reaches[1]

    @cached_property
    def _profile(self) -> tuple[Floats, Floats]:
        """Standard errors of the coefficients, and for both sides how many of them each rung is away at its line."""
        return self.deviations_of_line, self._ratios(_LADDER, _TURNS)

    @cached_property
    def deviations_of_line(self) -> Floats:
        """The standard errors of the coefficients, to first order at the noisy solution."""
        moved = self.weights(self.theta) * self.deviations
        return np.asarray(np.sqrt(np.square(moved).sum(axis=1) + self.sampling))

    def endless(self, ratio: float) -> NDArray[np.bool_]:
        """Which coefficients have an interval without an end, where it reaches so many standard errors at first."""
        return np.asarray(~(self._ratios(_LADDER[-1:], 2 * _TURNS)[:, :, 0] > ratio).all(axis=0))

    @cached_property
    def _unknown(self) -> Floats:
        """What the other coefficients, which are not known either, add to the variance of each.

        The variance is a quadratic form of the line; its mean over the lines that share the coefficient is added to it.
        """
        moved = (self.vectors - self.matrices @ self.theta) @ self.inverse.T * self.deviations[:, None]
        covariance = moved.T @ moved
        rows = np.einsum("ci,eij->cej", self.to_data @ self.inverse, self.matrices) * self.deviations[:, None]
        along = self.to_data @ covariance
        own = np.maximum(np.einsum("ci,ci->c", along, self.to_data), 1e-300)
        conditional = covariance - np.einsum("ci,cj,c->cij", along, along, 1 / own)
        return np.asarray(np.maximum(np.einsum("cei,cij,cej->c", rows, conditional, rows), 0.0))

    def _ratios(self, ladder: Floats, turns: int) -> Floats:
        size = len(self.to_data)
        signs = np.repeat([-1.0, 1.0], size)
        asked = np.tile(self.to_data, (2, 1))
        extra, start = np.tile(self.sampling + self._unknown, 2), np.tile(self.deviations_of_line, 2)
        lines = np.tile(self.theta, (2 * size, 1))
        ratios = np.empty((2 * size, len(ladder)))
        # What each noise moves the solution by is linear in the line: `still` less `turned` times the line.
        still = self.vectors @ self.inverse.T * self.deviations[:, None]
        turned = (self.inverse @ self.matrices * self.deviations[:, None, None]).reshape(-1, len(self.theta)).T
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for rung, factor in enumerate(ladder):
                distance = factor * start
                for _ in range(turns):
                    moved = still - (lines @ turned).reshape(-1, *still.shape)
                    along = moved @ asked[:, :, None]
                    variances = np.square(along).sum(axis=(1, 2))
                    steps = (moved.transpose(0, 2, 1) @ along)[:, :, 0] / variances[:, None]
                    steps[~np.isfinite(steps)] = 0.0
                    lines = self.theta + (signs * distance)[:, None] * steps
                ratios[:, rung] = distance / np.sqrt(variances + extra)
        return ratios.reshape(2, size, len(ladder))


def _between(ratios: Floats, rung: int, ratio: float) -> float:
    """The distance at which the ratio passes what is wanted, after a rung; outward."""
    if rung < 0:
        return float(min(_LADDER[0], ratio) * _OUTWARD)
    low, high = float(ratios[rung]), float(ratios[rung + 1])
    share = (ratio - low) / (high - low) if high > low else 1.0
    return float(_LADDER[rung] * (_LADDER[rung + 1] / _LADDER[rung]) ** min(max(share, 0.0), 1.0) * _OUTWARD)
