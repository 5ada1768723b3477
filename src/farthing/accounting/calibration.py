"""The least noise for a budget: search in estimates, answer only with a proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from farthing.accounting.compose import Composition, compose
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.privacy.events import checked_delta, checked_epsilon, checked_real

__all__ = ["Calibration", "calibrate"]

_FARTHEST = 2.0**40  # how far from 1 a parameter is looked for when no bracket is given
_LONGEST_STEP = math.log(16)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A parameter that is proven to be within budget, and what it costs.

    Attributes:
        parameter: The parameter, as `make_charges` was given it.
        cost: What its charges cost together; `cost.upper` is within the budget.
        evaluations: How many parameters were tried.

    >>> calibration = Calibration(parameter=2.0, cost=Bounds(0.9, 1.0), evaluations=12)
    >>> float(calibration)
    2.0
    """

    parameter: float
    cost: Bounds
    evaluations: int

    def __float__(self) -> float:
        return self.parameter


def calibrate(
    make_charges: Callable[[float], Any],
    epsilon: float,
    delta: float,
    *,
    direction: Literal["noise", "epsilon"] = "noise",
    bracket: tuple[float, float] | None = None,
    tolerance: float = 1e-9,
    progress: Callable[[int, float, float], None] | None = None,
) -> Calibration:
    """The least noise, or the largest epsilon per query, whose charges together cost at most (epsilon, delta).

    Args:
        make_charges: Maps a parameter > 0 to anything `compose` takes, or to a Composition.
        epsilon: The epsilon that all charges together may cost.
        delta: The delta at which they may.
        direction: "noise" if a larger parameter is more private (a noise multiplier), "epsilon" if a smaller one is (an
            epsilon per query).
        bracket: Limits the search to [low, high].
        tolerance: How far, relatively, the parameter may be from the best one, beside what the width of the proven
            interval costs.
        progress: Called with (evaluations, parameter, epsilon).

    Returns:
        The parameter and its cost. It is checked: `cost.upper <= epsilon`, proven, at that very float.

    Raises:
        InvalidValue: If an argument has the wrong form, or no parameter meets the target.

    >>> from farthing.privacy import GaussianNoise
    >>> ten = calibrate(lambda m: [GaussianNoise(m)] * 10, epsilon=1.0, delta=1e-6)
    >>> ten.parameter, ten.cost.upper <= 1.0, ten.cost.proven
    (13.359..., True, True)
    >>> each = calibrate(lambda e: [e] * 100, epsilon=1.0, delta=1e-6, direction="epsilon")
    >>> each.parameter                       # plain sums would allow 0.01
    0.024...
    >>> calibrate(lambda m: [GaussianNoise(m), (0.1, 1e-5)], epsilon=1.0, delta=1e-6)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: delta=1e-06: must be at least what the charges leak by themselves, 1e-05; lower
    their own deltas or ask for a larger delta.
    """
    search = _Search(make_charges, _checked_target(epsilon), checked_delta(delta), direction, bracket, progress)
    if not 0 < checked_real(tolerance, "tolerance") < 1:
        raise InvalidValue("tolerance", tolerance, "must be > 0 and < 1")
    return search.proven(search.narrowed(tolerance), tolerance)


@dataclass(frozen=True, slots=True)
class _Point:
    """One evaluation. `privacy` is the log of the parameter, signed so that more is more private."""

    privacy: float
    excess: float
    """log(cost / epsilon): positive when too expensive, infinite when no epsilon exists."""
    cost: Bounds


class _Search:
    """The evaluations of one calibration, and the rules for the next one."""

    def __init__(
        self,
        make_charges: Callable[[float], Any],
        epsilon: float,
        delta: float,
        direction: str,
        bracket: tuple[float, float] | None,
        progress: Callable[[int, float, float], None] | None,
    ) -> None:
        if not callable(make_charges):
            raise InvalidValue("make_charges", make_charges, "must be a function from a parameter to charges")
        if direction not in ("noise", "epsilon"):
            raise InvalidValue("direction", direction, 'must be "noise" or "epsilon"')
        self.make_charges, self.epsilon, self.delta, self.progress = make_charges, epsilon, delta, progress
        self.sign = 1 if direction == "noise" else -1
        self.points: list[_Point] = []
        self.evaluations = 0
        self.given = bracket
        low, high = (1 / _FARTHEST, _FARTHEST) if bracket is None else _checked_bracket(bracket)
        # The ends themselves, so that they can be returned as they were given.
        self.least_private, self.most_private = (low, high) if direction == "noise" else (high, low)

    def narrowed(self, tolerance: float) -> _Point:
        """The least private point found to be affordable, next to one that is not."""
        low, high = sorted((self._privacy(self.least_private), self._privacy(self.most_private)))
        here = self._at(min(max(0.0, low), high) if self.given is None else (low + high) / 2)
        dear = cheap = None
        while dear is None or cheap is None:  # step outwards until both sides are known
            dear, cheap = (here, cheap) if here.excess > 0 else (dear, here)
            if dear is not None and cheap is not None:
                break
            step = min(max(1.25 * abs(here.excess), 0.25), _LONGEST_STEP)
            ahead = here.privacy + step if here.excess > 0 else here.privacy - step
            if here.excess > 0 and here.privacy >= high:
                raise self._unaffordable(here)
            if not here.excess > 0 and here.privacy <= low:
                return self._everything_affordable(here)
            here = self._at(min(max(ahead, low), high))
        return self._between(dear, cheap, tolerance)

    def _between(self, dear: _Point, cheap: _Point, tolerance: float) -> _Point:
        """Regula falsi in logarithms with a bisection whenever it drags."""
        left, right = dear.excess, cheap.excess
        side = 0
        while cheap.privacy - dear.privacy > tolerance:
            width = cheap.privacy - dear.privacy
            share = left / (left - right) if math.isfinite(left - right) and left > right else 0.5
            # Never closer to an end than half the tolerance: that pins the answer from the other side.
            margin = min(0.5, tolerance / 2 / width)
            here = self._at(dear.privacy + width * min(max(share, margin), 1 - margin))
            if here.excess > 0:
                dear, left = here, here.excess
                right = right / 2 if side == 1 else right
                side = 1
            else:
                cheap, right = here, here.excess
                left = left / 2 if side == -1 else left
                side = -1
            if cheap.privacy - dear.privacy > width / 2:
                middle = self._at((dear.privacy + cheap.privacy) / 2)
                if middle.excess > 0:
                    dear, left, side = middle, middle.excess, 0
                else:
                    cheap, right, side = middle, middle.excess, 0
        return cheap

    def proven(self, start: _Point, tolerance: float) -> Calibration:
        """The least private parameter found, from `start` on, whose proven cost is within epsilon."""
        limit, privacy, step = self._privacy(self.most_private), start.privacy, tolerance / 4
        dear, cheap = None, self._proven_at(privacy)
        while cheap.excess > 0:
            if not privacy < limit:
                raise self._unaffordable(cheap)
            # Costs fall about as fast as the parameter grows, so a step of the overshoot's size mostly suffices.
            overshoot = cheap.excess if cheap.excess < _LONGEST_STEP else 0.0
            privacy, step = min(limit, privacy + max(step, 1.1 * overshoot)), 2 * step
            dear, cheap = cheap, self._proven_at(privacy)
        for _ in range(8):  # only when the estimates misled: come back towards the last refusal
            if dear is None or not cheap.privacy - dear.privacy > 4 * tolerance:
                break
            share = dear.excess / (dear.excess - cheap.excess) if dear.excess < math.inf else 0.5
            here = self._proven_at(dear.privacy + (cheap.privacy - dear.privacy) * min(max(share, 0.1), 0.99))
            dear, cheap = (here, cheap) if here.excess > 0 else (dear, here)
        return Calibration(self._parameter(cheap.privacy), cheap.cost, self.evaluations)

    def _proven_at(self, privacy: float) -> _Point:
        """A point by proof; too dear unless it is proven to be within epsilon."""
        cost = self._cost(self._parameter(privacy), proof=True)
        if cost.proven and cost.upper <= self.epsilon:
            ratio = cost.upper / self.epsilon
            return _Point(privacy, math.log(ratio) if ratio > 0 else -_LONGEST_STEP, cost)
        over = math.log(cost.upper / self.epsilon) if cost.upper < math.inf else math.inf
        return _Point(privacy, max(over, 1e-16), cost)

    def _at(self, privacy: float) -> _Point:
        cost = self._cost(self._parameter(privacy), proof=False)
        point = _Point(privacy, math.log(cost.estimate / self.epsilon) if cost.estimate > 0 else -math.inf, cost)
        self._refuse_disorder(point)
        self.points.append(point)
        return point

    def _cost(self, parameter: float, proof: bool) -> Bounds:
        charges = self.make_charges(parameter)
        composed = charges if isinstance(charges, Composition) else compose(charges)
        cost = composed.epsilon_at(self.delta, proof=proof)
        self.evaluations += 1
        if self.progress is not None:
            self.progress(self.evaluations, parameter, cost.estimate)
        return cost

    def _refuse_disorder(self, new: _Point) -> None:
        """A cost that rises towards more privacy: the function is not monotone, or the direction is wrong."""
        for old in self.points:
            less, more = (old, new) if old.privacy < new.privacy else (new, old)
            if more.cost.lower > less.cost.upper * (1 + 1e-3):  # wiggles do no harm: the answer is proven
                costs = ", ".join(
                    f"epsilon={p.cost.estimate:.6g} at {self._parameter(p.privacy):.6g}" for p in (less, more)
                )
                raise InvalidValue(
                    "make_charges",
                    self.make_charges,
                    f"must cost less the {'larger' if self.sign > 0 else 'smaller'} its parameter, but found {costs}",
                    f'pass direction="{"epsilon" if self.sign > 0 else "noise"}" if it is the other way round',
                )

    def _unaffordable(self, at: _Point) -> InvalidValue:
        charges = self.make_charges(self.most_private)
        leak = (charges if isinstance(charges, Composition) else compose(charges)).leak
        if leak.lower > self.delta:
            return InvalidValue(
                "delta",
                self.delta,
                f"must be at least what the charges leak by themselves, {leak.lower:.3g}",
                "lower their own deltas or ask for a larger delta",
            )
        return InvalidValue(
            "epsilon",
            self.epsilon,
            f"must be at least the cost at parameter={self.most_private:.3g}, {at.cost.lower:.3g}",
            "ask for more, charge less, or widen the bracket",
        )

    def _everything_affordable(self, at: _Point) -> _Point:
        if self.given is not None:
            return at
        raise InvalidValue(
            "make_charges",
            self.make_charges,
            f"must cost more than epsilon={self.epsilon:g} for some parameter, but costs {at.cost.estimate:.3g} "
            f"even at {self._parameter(at.privacy):.3g}",
            "give a bracket whose least private end you would accept",
        )

    def _privacy(self, parameter: float) -> float:
        return self.sign * math.log(parameter)

    def _parameter(self, privacy: float) -> float:
        """The parameter at `privacy`, kept inside the bracket, and its ends met exactly."""
        if privacy >= self._privacy(self.most_private):
            return self.most_private
        if privacy <= self._privacy(self.least_private):
            return self.least_private
        return math.exp(self.sign * privacy)


def _checked_target(epsilon: float) -> float:
    number = checked_epsilon(epsilon)
    if not number > 0:
        raise InvalidValue("epsilon", epsilon, "must be a finite number > 0")
    return number


def _checked_bracket(bracket: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(bracket, tuple | list) or len(bracket) != 2:
        raise InvalidValue("bracket", bracket, "must be a pair (low, high)")
    low, high = checked_real(bracket[0], "bracket[0]"), checked_real(bracket[1], "bracket[1]")
    if not 0 < low < high < math.inf:
        raise InvalidValue("bracket", bracket, "must have 0 < low < high, both finite")
    return low, high
