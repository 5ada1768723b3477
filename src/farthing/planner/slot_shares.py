"""Dividing a budget slot by slot: at one Renyi order and one price of privacy, every slot has a best noise of its own.

The Renyi divergences of a fixed order add, and so do the (weighted, squared) errors. With a Lagrange multiplier
`price` the whole is least when every slot minimises
    importance * variance(noise) + price * divergence(noise)
by itself, over the noises it may have and over their kinds. Gaussian noise has the minimum in closed form;
for Laplace noise logarithms make the equation nearly a straight line, so a few secant steps solve it for all slots
together; a choice by exponential weights is looked up in its table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from farthing.planner.design_arrays import (
    EXPONENTIAL,
    GAUSSIAN,
    GRID,
    LAPLACE,
    Floats,
    Model,
    laplace_log_moment,
    range_log_moment,
)

Kinds = NDArray[np.int64]

_STEP = 1e-20  # of derivatives by a complex step: exact to rounding
_SECANTS = 16
_FAINTEST = 1e-13  # least importance relative to the largest: what no output asks for gets next to nothing


@dataclass(frozen=True, eq=False)
class Shares:
    """Kind and strength of every slot (see `Model`)."""

    kinds: Kinds
    strengths: Floats

    def scaled(self, factor: float, model: Model, free: NDArray[np.bool_]) -> Shares:
        """The free slots' strengths times `factor`, as far as mechanisms go."""
        place = np.arange(len(self.kinds))
        wanted = np.clip(
            self.strengths * factor, model.least[place, self.kinds], model.most[place, self.kinds]
        )
        return Shares(self.kinds, np.where(free, wanted, self.strengths))


@dataclass(frozen=True, eq=False)
class Divider:
    """The best noise of every slot for given weights; `held` stays, and `kinds` may be fixed (-1: to be chosen)."""

    model: Model
    held: Shares
    free: NDArray[np.bool_]
    pure: bool
    kinds: Kinds | None = None

    @property
    def without_gaussian(self) -> Divider | None:
        """The same with kinds that are pure; None where a free slot has none."""
        allowed = self.model.allowed
        if not allowed[self.free][:, [LAPLACE, EXPONENTIAL]].any(axis=1).all():
            return None
        return replace(self, kinds=np.where(allowed[:, EXPONENTIAL], EXPONENTIAL, LAPLACE))

    @property
    def all_gaussian(self) -> Divider | None:
        """The same with Gaussian noise wherever it is allowed; None where it is allowed nowhere."""
        allowed = self.model.allowed
        if self.pure or not allowed[self.free][:, GAUSSIAN].any():
            return None
        rest = np.where(allowed[:, EXPONENTIAL], EXPONENTIAL, LAPLACE)
        return replace(self, kinds=np.where(allowed[:, GAUSSIAN], GAUSSIAN, rest))

    def shares(self, weights: Floats, saddle: float, price: float) -> Shares:
        """Every free slot at its own minimum, at the order saddle + 1 (infinite: pure epsilon)."""
        model, place = self.model, np.arange(len(self.free))
        importance = np.einsum(
            "i,ij->j", weights, model.driving
        )  # small: threads of a product would cost more
        importance = np.maximum(importance, _FAINTEST * _largest(importance * model.l1**2) / model.l1**2)
        objectives = np.full((len(place), 3), np.inf)
        strengths = np.ones((len(place), 3))
        for kind, solve in ((LAPLACE, self._laplace), (GAUSSIAN, self._gaussian)):
            wanted = self._may(kind)
            if wanted.any() and not (kind == GAUSSIAN and math.isinf(saddle)):
                solved, value = solve(wanted, importance[wanted], saddle, price)
                strengths[wanted, kind], objectives[wanted, kind] = solved, value
        if self._may(EXPONENTIAL).any():
            self._choices(weights, saddle, price, strengths, objectives)
        chosen = np.argmin(objectives, axis=1)
        kinds = np.where(self.free, chosen, self.held.kinds)
        return Shares(kinds, np.where(self.free, strengths[place, chosen], self.held.strengths))

    def _may(self, kind: int) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = self.model.allowed[:, kind] & self.free
        if kind == GAUSSIAN and self.pure:
            allowed = allowed & False
        return allowed if self.kinds is None else allowed & (self.kinds == kind)

    def _gaussian(
        self, wanted: NDArray[np.bool_], importance: Floats, saddle: float, price: float
    ) -> tuple[Floats, Floats]:
        """importance (l2^2 / mu^2 + narrowing) + price alpha mu^2 / 2 is least at a fourth root."""
        l2, order = self.model.l2[wanted], saddle + 1
        mu = (2 * importance * l2**2 / (price * order)) ** 0.25
        mu = np.clip(mu, self.model.least[wanted, GAUSSIAN], self.model.most[wanted, GAUSSIAN])
        tau = l2 / mu
        variance = tau**2 + np.where(tau >= self.model.wide[wanted], self.model.narrowing[wanted], 0.0)
        return mu, importance * variance + price * order * mu**2 / 2

    def _laplace(
        self, wanted: NDArray[np.bool_], importance: Floats, saddle: float, price: float
    ) -> tuple[Floats, Floats]:
        """Where the elasticities meet: epsilon dR/depsilon = importance / price * (-epsilon dV/depsilon)."""
        l1, steps = self.model.l1[wanted], self.model.steps[wanted]
        low = np.log(self.model.least[wanted, LAPLACE])
        high = np.log(self.model.most[wanted, LAPLACE])
        ratio = np.log(importance / price)
        # For small epsilon R is alpha epsilon^2 / 2, for large epsilon it is epsilon; the larger solution is close.
        start = ratio + np.log(4 * l1**2)
        u = np.clip(np.maximum((start - math.log1p(saddle)) / 4, start / 3), low, high)
        before_u, before_g = u, np.zeros_like(u)
        for turn in range(_SECANTS):
            gap = _log_pull(np.exp(u), saddle, steps) - ratio - _log_push(np.exp(u), l1)
            # The variance falls with about this power of epsilon (2, until noise is below one step).
            x = np.exp(u) / (2 * l1)
            slope = 1.4 + 2 * x / np.tanh(x)
            if turn:
                moved = u - before_u
                secant = (gap - before_g) / np.where(np.abs(moved) > 1e-9, moved, 1.0)
                slope = np.where((secant > 0.6 * slope) & (secant < 1.7 * slope), secant, slope)
            before_u, before_g = u, gap
            u = np.clip(u - gap / slope, low, high)
            if float(np.abs(u - before_u).max()) < 1e-9:
                break
        epsilon = np.exp(u)
        variance = np.exp(math.log(2.0) - epsilon / l1 - 2 * np.log(-np.expm1(-epsilon / l1)))
        return epsilon, importance * variance + price * _laplace_divergence(epsilon, saddle, steps)

    def _choices(
        self, weights: Floats, saddle: float, price: float, strengths: Floats, objectives: Floats
    ) -> None:
        wanted = self._may(EXPONENTIAL)
        totals = np.zeros((len(wanted), len(GRID)))
        for row, (slot, table) in self.model.curves.items():
            totals[slot] += weights[row] * table
        for slot in np.flatnonzero(wanted).tolist():
            objective = totals[slot] + price * _choice_divergence(saddle, self.model, slot)
            best = int(np.argmin(objective))
            strengths[slot, EXPONENTIAL] = _bottom(objective, best)
            objectives[slot, EXPONENTIAL] = float(objective[best])


def _largest(values: Floats) -> float:
    largest = float(values.max(initial=0.0))
    return largest if largest > 0 else 1.0


def _laplace_divergence(epsilon: Floats, saddle: float, steps: Floats) -> Floats:
    if math.isinf(saddle):
        return epsilon
    value: Floats = laplace_log_moment(saddle, epsilon, steps) / saddle
    return value


def _log_pull(epsilon: Floats, saddle: float, steps: Floats) -> Floats:
    """log of epsilon dR / depsilon."""
    if math.isinf(saddle):
        pulled: Floats = np.log(epsilon)
    else:
        moved = laplace_log_moment(saddle, epsilon * (1 + 1j * _STEP), steps).imag / (_STEP * saddle)
        pulled = np.log(np.maximum(moved, 1e-300))
    return pulled


def _log_push(epsilon: Floats, l1: Floats) -> Floats:
    """log of -epsilon dV / depsilon for discrete Laplace noise: V 2 x coth x with x = epsilon / (2 l1)."""
    x = epsilon / (2 * l1)
    log_variance = math.log(2.0) - 2 * x - 2 * np.log(-np.expm1(-2 * x))
    value: Floats = log_variance + np.log(2 * x / np.tanh(x))
    return value


def _choice_divergence(saddle: float, model: Model, slot: int) -> Floats:
    if math.isinf(saddle):
        return GRID
    parts, chosen, beside = (float(facts[slot]) for facts in (model.parts, model.chosen, model.beside))
    value: Floats = parts * range_log_moment(saddle, GRID * chosen / parts)
    if beside > 0:
        value = value + laplace_log_moment(saddle, GRID * (1 - chosen), beside)
    return value / saddle


def _bottom(objective: Floats, best: int) -> float:
    """The epsilon at the bottom of the parabola through the least point and its neighbours."""
    if not 0 < best < len(GRID) - 1:
        return float(GRID[best])
    left, middle, right = objective[best - 1 : best + 2]
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / bend if bend > 0 else 0.0
    stride = math.log(GRID[1] / GRID[0])
    return float(GRID[best] * math.exp(stride * min(max(float(shift), -0.5), 0.5)))
