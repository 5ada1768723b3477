"""The noise a budget buys for a strategy: one mechanism for each level, and what all of them cost together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from farthing.accounting import calibrate, compose
from farthing.errors import InvalidValue
from farthing.matrix.strategies.strategy import Estimator, Floats, Integers, Level, Norm, Strategy
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.additive import vector_event
from farthing.mechanisms.mechanism import SATURATION
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.numerics import Bounds
from farthing.numerics.bounds import rounded_down
from farthing.privacy.events import (
    MAX_EPSILON,
    Composed,
    Event,
    GaussianNoise,
    checked_delta,
    checked_mechanism_epsilon,
)

NoiseKind = Literal["laplace", "gaussian"]

_WIDE = 128  # Gaussian noise on a grid this fine costs a ten-thousandth more than continuous noise
_TOLERANCE = 1e-7


@dataclass(frozen=True)
class LevelNoise:
    """The noise of one level: numbers are multiplied by `finer`, so that narrow noise has steps enough."""

    level: Level
    mechanism: DiscreteLaplace | DiscreteGaussian
    event: Event
    finer: int = 1

    @property
    def variance(self) -> float:
        """The variance of each number's noise, in squared steps of the level; exact for the discrete distribution."""
        return self.mechanism.distribution.variance / self.finer**2


@dataclass(frozen=True, eq=False)
class Priced:
    """A strategy with its noise: what it costs, how far off it will be, and how it is measured.

    `noises` holds None for a level that is not measured. `cost` is the proven epsilon at `delta`.
    """

    strategy: Strategy
    kind: NoiseKind
    noises: tuple[LevelNoise | None, ...]
    cost: Bounds
    delta: float

    @property
    def event(self) -> Event:
        """What a ledger is charged: the composition of the levels."""
        return _together([noise.event for noise in self.noises if noise is not None])

    @property
    def variances(self) -> Floats:
        """The variance of every number, level by level; infinite for a level that is not measured."""
        return np.array([np.inf if noise is None else noise.variance for noise in self.noises])

    @cached_property
    def estimator(self) -> Estimator:
        """Least squares for this noise."""
        return self.strategy.fit(self.variances)

    def total_variance(self, workload: Workload) -> float:
        """The expected sum of squared errors over the workload (weighted, where its parts have weights)."""
        return self.estimator.total_variance(workload)

    def measure(self, cells: Integers, source: Source = SYSTEM) -> list[Floats]:
        """The private step: the numbers of every level with their noise. Each call is another release.

        Cells are clamped so that no sum overflows, which moves no two neighbours further apart.
        """
        finest = max(noise.finer for noise in self.noises if noise is not None)
        most = SATURATION // (self.strategy.reach * finest)
        if not most >= 1:
            raise InvalidValue("strategy", self.strategy.name, "has coefficients too large to add up exactly")
        exact = self.strategy.exact(np.clip(cells, -most, most))
        return [
            np.zeros(0)
            if noise is None
            else np.asarray(noise.mechanism._answer(numbers * noise.finer, source), float) / noise.finer
            for noise, numbers in zip(self.noises, exact, strict=True)
        ]


def priced(
    strategy: Strategy,
    workload: Workload,
    epsilon: float,
    delta: float = 0.0,
    kind: NoiseKind | None = None,
) -> Priced:
    """The noise of least expected error on `workload` that costs at most (epsilon, delta).

    Without a delta the noise is Laplace, and the epsilons of the levels add up to at most `epsilon`. With one, the
    levels are composed by their exact curves, Gaussian noise is tried too, and the smaller error wins; a strategy that
    was made for one of the two (`Strategy.made_for`) gets that one.

    Statement:
        Let level l of a strategy move by at most l1_l in l1 (or l2_l in l2) when a row is added or removed, and let
        its numbers get independent discrete Laplace noise of scale l1_l / epsilon_l (or discrete Gaussian noise of
        multiplier m_l). Then the release of all levels, and everything computed from it, costs no more than the
        composition of the levels' events; without delta that is the sum of the epsilon_l.
    Source: Li, Miklau, Hay, McGregor & Rastogi, VLDB Journal 24 (2015), Proposition 4 (the matrix mechanism, one
        level); the levels are non-adaptive releases on the same rows, so they compose. Vectors of discrete noise
        are dominated by one number: see farthing.mechanisms.additive and gaussian_domination.
    Assumes: neighbours differ by one row, that is by 1 in one cell; noise independent of everything.
    Direction: noise is rounded up until `cost.upper <= epsilon` is proven; the expected error is exact.
    Checked by: tests/theorems/test_strategy_pricing.py

    >>> from farthing.matrix.strategies.tree_strategies import hierarchical
    >>> from farthing.matrix.workloads import prefix
    >>> price = priced(hierarchical(200, 16), prefix(200), epsilon=0.1)
    >>> price.cost.upper <= 0.1, [noise and noise.level.name for noise in price.noises]
    (True, [None, 'blocks of 16', 'cells'])
    >>> round((price.total_variance(prefix(200)) / 200) ** 0.5, 1)
    80.7
    """
    budget, leak = checked_mechanism_epsilon(epsilon), checked_delta(delta)
    if kind not in (None, "laplace", "gaussian"):
        raise InvalidValue("kind", kind, 'must be "laplace", "gaussian" or None')
    if kind == "gaussian" and leak == 0:
        raise InvalidValue("kind", kind, "needs a delta > 0", "pass delta=1e-9, or use Laplace noise")
    if kind is None and leak > 0 and strategy.made_for is not None:
        fitting: NoiseKind = "laplace" if strategy.made_for == "l1" else "gaussian"
        with suppress(InvalidValue):  # noise too narrow to be proven private: there is Laplace noise
            return priced(strategy, workload, budget, leak, fitting)
    candidates: list[Priced] = []
    if kind != "gaussian":
        candidates += [_laplace(strategy, shares, budget, leak) for shares in _divisions(strategy, workload, leak)]
    if kind != "laplace" and leak > 0:
        try:
            candidates.append(_gaussian(strategy, strategy.shares(workload, "l2"), budget, leak))
        except InvalidValue:  # noise too narrow to be proven private: there is Laplace noise
            if kind == "gaussian":
                raise
    return min(candidates, key=lambda one: one.total_variance(workload))


def norm_of(kind: NoiseKind) -> Norm:
    """The norm in which a kind of noise counts sensitivity."""
    return "l1" if kind == "laplace" else "l2"


def _divisions(strategy: Strategy, workload: Workload, delta: float) -> list[Floats]:
    """Shares of epsilon worth trying: those of pure sums, and where many levels compose, those of squared sums."""
    sums = strategy.shares(workload, "l1")
    if delta == 0 or len(strategy.levels) == 1:
        return [sums]
    roots = np.sqrt(strategy.shares(workload, "l2"))
    return [sums, roots / np.sum(roots)]


def _laplace(strategy: Strategy, shares: Floats, epsilon: float, delta: float) -> Priced:
    whole = sum(map(Fraction, shares.tolist()))
    exact = [Fraction(share) / whole for share in shares.tolist()]

    def noises(total: Fraction) -> list[LevelNoise | None]:
        return [
            None if share == 0 else _laplace_noise(level, rounded_down(share * total))
            for level, share in zip(strategy.levels, exact, strict=True)
        ]

    total = _pure_total(noises, epsilon)
    most = rounded_down(Fraction(MAX_EPSILON) / max(exact))
    # One level gains about twice delta by its own curve: not worth the time unless delta is large.
    if most > epsilon and delta > (0 if len(_events(noises(total))) > 1 else 1e-5 * epsilon):
        # Levels that compose may cost less than their sum: as much more noise is taken away as is proven.
        composed = calibrate(
            lambda scale: _events(noises(Fraction(scale))),
            epsilon,
            delta,
            direction="epsilon",
            bracket=(epsilon * (1 - 1e-9), most),
            tolerance=_TOLERANCE,
        )
        total = max(total, Fraction(composed.parameter))
    chosen = tuple(noises(total))
    return Priced(strategy, "laplace", chosen, _cost(chosen, delta), delta)


def _pure_total(noises: Callable[[Fraction], list[LevelNoise | None]], epsilon: float) -> Fraction:
    """The sum of epsilons, a hair below `epsilon` where need be, that is proven to cost no more."""
    for slack in (Fraction(0), *(Fraction(1, 2**power) for power in range(51, 19, -1))):
        total = Fraction(epsilon) * (1 - slack)
        if _cost(noises(total), 0.0).upper <= epsilon:
            return total
    raise InvalidValue("epsilon", epsilon, "cannot be divided over the levels of this strategy")


def _laplace_noise(level: Level, epsilon: float) -> LevelNoise:
    mechanism = DiscreteLaplace(epsilon, l1_sensitivity=level.l1, cells=level.size)
    return LevelNoise(level, mechanism, mechanism.event)


def _gaussian(strategy: Strategy, shares: Floats, epsilon: float, delta: float) -> Priced:
    rough = calibrate(lambda m: [GaussianNoise(m)], epsilon, delta, tolerance=1e-3).parameter

    def multiplier(scale: float, share: float) -> float:
        return float(scale / np.sqrt(share))

    finer = [
        0 if share == 0 else _finer(multiplier(rough, share) * level.l2)
        for level, share in zip(strategy.levels, shares.tolist(), strict=True)
    ]

    def noises(scale: float) -> list[LevelNoise | None]:
        return [
            None if fine == 0 else _gaussian_noise(level, multiplier(scale, share), fine)
            for level, share, fine in zip(strategy.levels, shares.tolist(), finer, strict=True)
        ]

    calibration = calibrate(
        lambda scale: _events(noises(scale)),
        epsilon,
        delta,
        bracket=(rough / 1.1, rough * 1.1),
        tolerance=_TOLERANCE,
    )
    return Priced(strategy, "gaussian", tuple(noises(calibration.parameter)), calibration.cost, delta)


def _gaussian_noise(level: Level, noise_multiplier: float, finer: int) -> LevelNoise:
    steps = level.l2 * finer
    mechanism = DiscreteGaussian(noise_multiplier, l2_sensitivity=steps, cells=level.size)
    # Priced as a vector even where it is one number: continuous noise composes at once, lattices do not.
    event = vector_event((Fraction(noise_multiplier) * Fraction(steps)) ** 2, steps, level.size)
    return LevelNoise(level, mechanism, event, finer)


def _finer(sigma: float) -> int:
    """The power of two that makes noise of `sigma` steps wide enough."""
    finer = 1
    while sigma * finer < _WIDE:
        finer *= 2
    return finer


def _events(noises: list[LevelNoise | None] | tuple[LevelNoise | None, ...]) -> list[Event]:
    return [noise.event for noise in noises if noise is not None]


def _cost(noises: list[LevelNoise | None] | tuple[LevelNoise | None, ...], delta: float) -> Bounds:
    return compose(_events(noises)).epsilon_at(delta)


def _together(events: list[Event]) -> Event:
    return events[0] if len(events) == 1 else Composed(tuple((event, 1) for event in events))
