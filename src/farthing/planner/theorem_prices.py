"""What a plan's noises would cost if the composition theorems were all one knew, and by their own exact curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.accounting import compose, sampled_approx_dp
from farthing.accounting.cost_estimates import REAL_LAPLACE, Losses, saddle_cost
from farthing.accounting.theorems import COMPARED, advanced_composition, basic_composition, kov_heterogeneous_bound
from farthing.numerics import Bounds
from farthing.numerics.bounds import rounded_text, rounded_up_text
from farthing.planner.gaussian_release import gaussian_delta
from farthing.planner.planning_problem import Problem
from farthing.privacy import BoundedRange, Event, GaussianNoise, LaplaceNoise
from farthing.statistics.measurements import CHOICE_SHARE, Noise

_HARDLY = 0.01  # a gain below one percent is called none


@dataclass(frozen=True, slots=True)
class TheoremPrices:
    """Epsilons at one delta: the theorems', raw (they may exceed the sum), and the mechanisms' own.

    For the theorems every measurement is a black box known by an (epsilon, delta) of its own: the pure epsilon of
    Laplace noise and of choices; for Gaussian noise its exact epsilon at an equal share of half the delta.

    Attributes:
        basic: The sum of the epsilons.
        advanced: Advanced composition.
        kov: The closed form of Kairouz, Oh and Viswanath.
        optimal: The optimum for black boxes.
        own: What the mechanisms cost together by their own curves.
        delta: The delta of all of them.
        count: How many measurements there are.

    >>> print(TheoremPrices(basic=1.0, advanced=4.4, kov=1.0, optimal=1.0, own=0.99, delta=1e-9, count=3).sentence)
    With 3 measurements composition gains nothing yet: the optimum for black boxes is the plain sum, epsilon = 1.
    """

    basic: float
    advanced: float
    kov: float
    optimal: float
    own: float
    delta: float
    count: int

    @property
    def sentence(self) -> str:
        """What composing gains here, in words; that it gains nothing, where it does not."""
        measurements = f"{self.count} measurements"
        gained = self.own < self.optimal * (1 - _HARDLY)
        ratio = self.optimal / self.own if self.own > 0 else math.inf
        if self.count == 1:
            return "With 1 measurement there is nothing to compose."
        if self.delta == 0:
            black = f"With {measurements} at delta = 0 composition gains nothing: epsilons add up to {self.basic:.3g}"
        elif self.optimal > self.basic * (1 - _HARDLY) and gained:
            return (
                f"Composing black boxes optimally would gain nothing here (epsilon = {self.basic:.3g}, the plain sum "
                f"of {measurements}); because the noise is known, its exact curves bring it to {self.own:.3g}: "
                f"{ratio:.3g} times less."
            )
        elif self.optimal > self.basic * (1 - _HARDLY):
            black = (
                f"With {measurements} composition gains nothing yet: the optimum for black boxes is the plain sum, "
                f"epsilon = {self.basic:.3g}"
            )
        else:
            black = (
                f"With {measurements} optimal composition of black boxes costs epsilon = {self.optimal:.3g}, "
                f"the plain sum {self.basic:.3g}"
            )
        if gained:
            return f"{black}; the mechanisms' exact curves bring it to {self.own:.3g}, {ratio:.3g} times less."
        return f"{black}."

    def to_dict(self) -> dict[str, float]:
        """The epsilons, the delta and the count as plain data."""
        return {theorem.key: getattr(self, theorem.key) for theorem in COMPARED}


def adaptivity_sentence(own: float, adaptive: float, count: int) -> str:
    """What it would cost to choose each measurement after seeing the answers before it; empty where nothing is known.

    Args:
        own: What the measurements cost if they are fixed in advance.
        adaptive: What the same noises cost under the clock.
        count: How many measurements there are.

    Returns:
        A sentence.

    >>> print(adaptivity_sentence(1.0, 1.012, 30))
    Choosing each measurement after seeing the answers before it would cost 1.2% more: epsilon 1.02.
    >>> print(adaptivity_sentence(1.0, 1.0, 3))
    Choosing each measurement after seeing the answers before it would cost nothing more.
    """
    if count < 2 or not 0 < own <= adaptive < math.inf:
        return ""
    more = 100 * (adaptive / own - 1)
    start = "Choosing each measurement after seeing the answers before it would cost"
    if more < 0.01:
        return f"{start} nothing more."
    much = "less than 0.1%" if more < 0.1 else f"{rounded_text(more, 2)}%"
    return f"{start} {much} more: epsilon {rounded_up_text(adaptive, 3)}."


def price_of(problem: Problem, noises: Mapping[str, Noise], cost: Bounds, *, proof: bool = True) -> TheoremPrices:
    """The theorems at the problem's delta; `cost` is the proven cost by the mechanisms' own transforms.

    Without `proof` the epsilons of Gaussian noise and the optimum are estimates: for looking at, at once.
    """
    slots = problem.design.slots
    delta = problem.inner_delta
    gaussian = [slot for slot in slots if noises[slot.name].kind == "gaussian"]
    share = delta / (2 * len(gaussian)) if gaussian else 0.0
    epsilons = [
        _alone(slot.event(noises[slot.name]), share)
        if proof and noises[slot.name].kind == "gaussian"
        else own_epsilon([noises[slot.name]], share, quick=True)
        if noises[slot.name].kind == "gaussian"
        else noises[slot.name].parameter
        for slot in slots
    ]
    deltas = [share if noises[slot.name].kind == "gaussian" else 0.0 for slot in slots]

    def outer(epsilon: float) -> float:
        if problem.sampling_rate is None or not epsilon < 700:
            return epsilon
        return sampled_approx_dp(epsilon, delta, problem.sampling_rate).epsilon

    # At delta = 0 every theorem says the sum, but the closed forms divide by delta.
    everything = basic_composition(epsilons, deltas=deltas)[0]
    advanced = advanced_composition(epsilons, delta, deltas=deltas) if delta > 0 else everything
    kov = kov_heterogeneous_bound(epsilons, delta, deltas=deltas) if delta > 0 else everything
    if proof:
        optimal = compose(epsilons, deltas=deltas).epsilon_at(delta).upper
    else:
        optimal = min(everything, _to_first_order(epsilons, [], [], delta - sum(deltas), steps=1.0))
    return TheoremPrices(
        outer(everything), outer(advanced), outer(kov), outer(optimal), cost.upper, problem.delta, len(slots)
    )


def proven_cost(event: Event, delta: float) -> Bounds:
    """What an event costs at a delta, proven.

    Args:
        event: One event, or several that were fixed before the first was run.
        delta: The delta of all of it.

    Returns:
        An interval that holds the least epsilon; charge its upper end.

    >>> from farthing.privacy import ApproxDP, Composed
    >>> proven_cost(Composed(((ApproxDP(0.5, 1e-7), 1), (LaplaceNoise(4.0), 1))), 2e-7).upper <= 0.75
    True
    """
    return compose([event]).epsilon_at(delta)


def own_epsilon(noises: Iterable[Noise], delta: float, *, quick: bool = False) -> float:
    """What a few noises cost by themselves at `delta`, by their exact curves: for tables, not for charging.

    Args:
        noises: The noises.
        delta: The delta of all of them.
        quick: Whether an estimate to first order, off by a percent or so, is enough.

    Returns:
        The epsilon.

    >>> own_epsilon([Noise("laplace", 0.25), Noise("laplace", 0.5)], 0.0)
    0.75
    >>> both = [Noise("laplace", 0.25), Noise("gaussian", 20.0)]
    >>> abs(own_epsilon(both, 1e-6, quick=True) / own_epsilon(both, 1e-6) - 1) < 0.02
    True
    """
    if quick:
        of: dict[str, list[float]] = {"laplace": [], "gaussian": [], "exponential": []}
        for noise in noises:
            of[noise.kind].append(noise.parameter)
        if not of["exponential"] and len(of["laplace"]) + len(of["gaussian"]) == 1:
            return (
                _laplace_alone(of["laplace"][0], delta) if of["laplace"] else _gaussian_alone(of["gaussian"][0], delta)
            )
        chosen = float(CHOICE_SHARE)  # the rest of the epsilon of a choice is Laplace noise
        beside = [(1 - chosen) * epsilon for epsilon in of["exponential"]]
        ranges = [chosen * epsilon for epsilon in of["exponential"]]
        return _to_first_order([*of["laplace"], *beside], of["gaussian"], ranges, delta)
    return _composed(tuple(sorted((noise.kind, noise.parameter) for noise in noises)), delta)


@lru_cache(maxsize=4096)
def _composed(noises: tuple[tuple[str, float], ...], delta: float) -> float:
    """An estimate of what noises of these kinds and parameters cost; many statistics have the same ones."""
    events: list[Event] = []
    for kind, parameter in noises:
        match kind:
            case "laplace":
                events.append(LaplaceNoise(1 / parameter))
            case "gaussian":
                events.append(GaussianNoise(parameter))
            case "exponential":
                events += _choice_events(parameter)
    return compose(events).epsilon_at(delta, proof=False).estimate


def _choice_events(epsilon: float) -> list[Event]:
    """A choice by exponential weights and the noisy counts around it."""
    chosen = float(CHOICE_SHARE) * epsilon
    return [BoundedRange(chosen), LaplaceNoise(1 / (epsilon - chosen))]


def _laplace_alone(epsilon: float, delta: float) -> float:
    """delta = 1 - exp((x - epsilon) / 2), solved for x."""
    return max(0.0, epsilon + 2 * math.log1p(-delta)) if delta < 1 else 0.0


def _gaussian_alone(multiplier: float, delta: float) -> float:
    """The epsilon at which one Gaussian release leaks delta, by bisection."""
    if delta == 0:
        return math.inf
    # The first-order epsilon, 1 / 2m^2 + sqrt(2 log(1/delta)) / m, is above it.
    low, high = 0.0, 0.5 / multiplier**2 + math.sqrt(2 * math.log(1 / delta)) / multiplier
    if gaussian_delta(low, 1 / multiplier) <= delta:
        return 0.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, 1 / multiplier) <= delta else (middle, high)
    return high


def _to_first_order(
    laplace: Sequence[float],
    gaussian: Sequence[float],
    ranges: Sequence[float],
    delta: float,
    steps: float = REAL_LAPLACE,
) -> float:
    """What steers the search, by itself; Laplace noise of one step is a black box."""
    shared = sum(multiplier**-2.0 for multiplier in gaussian)
    losses = Losses(shared, np.array(laplace), np.full(len(laplace), steps), np.array(ranges), np.ones(len(ranges)))
    return saddle_cost(losses, delta)[0] if losses.pure > 0 else 0.0


@lru_cache(maxsize=1024)
def _alone(event: Event, delta: float) -> float:
    """The epsilon of one release at `delta`, by its own curve."""
    return compose([event]).epsilon_at(delta).upper
