"""One budget for steps that follow each other: whatever a step turns out to measure, its part was fixed before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from farthing.accounting import calibrate, compose
from farthing.errors import InvalidValue
from farthing.matrix.strategies.strategy import Level, Norm, Strategy
from farthing.matrix.strategies.strategy_noise import LevelNoise, NoiseKind, Priced
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.mechanisms.additive import vector_event
from farthing.numerics import Bounds
from farthing.numerics.bounds import rounded_down, rounded_up
from farthing.privacy.events import ApproxDP, Composed, Event, GaussianNoise

# Set aside for what discrete Gaussian noise leaks beyond continuous noise, all steps together.
_LEAK = 2.0**-64
_SMOOTHING = 4  # what discrete Gaussian noise is wider than the continuous noise it is charged as, squared steps
_FINE = 128.0  # steps of the grid in one standard deviation, at least
_SLACK = 1 - 2.0**-40  # of a Gaussian budget, so that rounding never overdraws it


@dataclass(frozen=True)
class Spending:
    """(epsilon, delta), to be spent in parts: of epsilon with Laplace noise, of mu^2 with Gaussian noise.

    `chosen` is the part of epsilon that a private choice takes before any noise is added, such as a partition.

    Statement:
        Let the steps of an interaction be chosen one after the other, each as it likes from the outputs before it.
        (laplace) If step i is epsilon_i-DP given those outputs and the epsilon_i always add up to at most epsilon,
        the whole is epsilon-DP, even where the outputs decide the epsilon_i.
        (gaussian) If step i is dominated by Gaussian noise of multiplier m_i composed with a leak of l_i, the sum of
        1/m_i^2 never exceeds 1/m^2 and that of the l_i never exceeds l, the whole is dominated by one Gaussian noise
        of multiplier m composed with a leak of l.
    Source: (laplace) Rogers, Roth, Ullman & Vadhan, arXiv:1605.08294, Theorem 3.6: the losses of the steps add up.
        (gaussian) Smith & Thakurta, arXiv:2210.17520v1, the theorem on its first page; a leak of l_i is the event,
        independent of the rest, that step i tells everything.
    Assumes: neighbours differ by one row, that is by 1 in one cell; fresh noise in every step.
    Direction: parts are rounded down and noise up; `event` is that of the whole budget, known before the first step.
    Checked by: tests/theorems/test_dawa_spending.py

    >>> budget = Spending(0.1)
    >>> budget.cost.upper <= 0.1, round(budget.noise(Level("total", 1, 1, 1), Fraction(1, 50)).mechanism.epsilon, 6)
    (True, 0.002)
    >>> Spending(1.0, 1e-9, "gaussian").deviation(Fraction(1, 2)).__round__(2)
    7.77
    """

    epsilon: float
    delta: float = 0.0
    kind: NoiseKind = "laplace"
    chosen: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.kind == "gaussian" and not self.delta > 2 * _LEAK:
            raise InvalidValue("delta", self.delta, f"must be above {2 * _LEAK:.1g} for Gaussian noise")

    @property
    def norm(self) -> Norm:
        """The norm in which this noise counts sensitivity."""
        return "l1" if self.kind == "laplace" else "l2"

    @property
    def choosing(self) -> float:
        """The epsilon of the private choice."""
        return self.choice(self.chosen)

    @property
    def event(self) -> Event:
        """What the whole interaction is charged as, however it goes."""
        if self.kind == "laplace":
            return ApproxDP(float(self._total), 0.0)
        return Composed(tuple((event, 1) for event in self._events(self._multiplier)))

    @cached_property
    def cost(self) -> Bounds:
        """The proven epsilon of the whole at `delta`."""
        return compose([self.event]).epsilon_at(self.delta)

    def choice(self, part: Fraction) -> float:
        """The epsilon of a private choice that takes this part of epsilon, rounded down."""
        return rounded_down(part * self._total)

    def deviation(self, part: Fraction) -> float:
        """The standard deviation of the noise of one count, for this part of the budget."""
        return math.sqrt(self.noise(Level("count", 1, 1, 1), part).variance)

    def noise(self, level: Level, part: Fraction) -> LevelNoise:
        """The noise of a level for a part of the budget; parts over the whole interaction add up to at most 1."""
        if self.kind == "laplace":
            epsilon = rounded_down(part * self._total)
            laplace = DiscreteLaplace(epsilon, l1_sensitivity=level.l1, cells=level.size)
            return LevelNoise(level, laplace, laplace.event)
        return self._gaussian_noise(level, part)

    def priced(self, strategy: Strategy, workload: Workload, part: Fraction) -> Priced:
        """A strategy measured for a part of the budget, divided over its levels as is best for the workload."""
        shares = [Fraction(share) for share in strategy.shares(workload, self.norm).tolist()]
        whole = sum(shares)
        noises = tuple(
            None if share == 0 else self.noise(level, part * share / whole)
            for level, share in zip(strategy.levels, shares, strict=True)
        )
        return Priced(strategy, self.kind, noises, self.cost, self.delta)

    def check(self, noises: Sequence[LevelNoise], choices: Sequence[float] = ()) -> None:
        """That all steps together cost no more than `event`: a fault of ours if they do.

        `choices` are the epsilons of private choices beyond `chosen`; Gaussian noise leaves no room for those.
        """
        if self.kind == "laplace":
            spent = Fraction(self.choosing) + sum(map(Fraction, choices))
            for one in noises:
                assert isinstance(one.mechanism, DiscreteLaplace)
                spent += Fraction(one.mechanism.epsilon)
            assert spent <= self._total
            return
        assert not choices
        squares, leaks = Fraction(0), Fraction(0)
        for one in noises:
            assert isinstance(one.event, Composed)
            (continuous, _), (leak, _) = one.event.parts
            assert isinstance(continuous, GaussianNoise)
            assert isinstance(leak, ApproxDP)
            squares += 1 / Fraction(continuous.noise_multiplier) ** 2
            leaks += Fraction(leak.delta)
        assert squares <= 1 / Fraction(self._multiplier) ** 2
        assert leaks <= Fraction(_LEAK)

    @cached_property
    def _total(self) -> Fraction:
        """The sum of all epsilons: some last digits below `epsilon`, so that the account never shows more."""
        if self.kind == "gaussian":
            return Fraction(self.epsilon)
        for digits in range(2, 64):
            total = rounded_down(Fraction(self.epsilon) * (1 - Fraction(digits, 2**52)))
            if compose([ApproxDP(total, 0.0)]).epsilon_at(0.0).upper <= self.epsilon:
                return Fraction(total)
        raise InvalidValue("epsilon", self.epsilon, "cannot be divided into parts")

    @cached_property
    def _multiplier(self) -> float:
        """The multiplier of all Gaussian noise together."""
        return calibrate(self._events, self.epsilon, self.delta, tolerance=1e-7).parameter

    def _events(self, multiplier: float) -> list[Event]:
        events: list[Event] = [GaussianNoise(multiplier), ApproxDP(0.0, _LEAK)]
        return events if self.chosen == 0 else [*events, ApproxDP(self.choosing, 0.0)]

    def _gaussian_noise(self, level: Level, part: Fraction) -> LevelNoise:
        goal = self._multiplier / math.sqrt(part * Fraction(_SLACK))  # of the continuous noise
        finer = 1
        while goal * level.l2 * finer < _FINE:
            finer *= 2
        steps = level.l2 * finer
        wide = rounded_up(Fraction(math.sqrt((goal * steps) ** 2 + _SMOOTHING)) / Fraction(steps))
        multiplier = float(np.nextafter(wide * (1 + 2.0**-45), math.inf))
        mechanism = DiscreteGaussian(multiplier, l2_sensitivity=steps, cells=level.size)
        event = vector_event((Fraction(multiplier) * Fraction(steps)) ** 2, steps, level.size)
        return LevelNoise(level, mechanism, event, finer)
