"""Composition on a grid of losses: slower than a contour, but it proves its answer for every mix of events.

Each event becomes a law on one common grid, once from above and once from below (`grid_cells`); laws are tilted
towards the answer and added up on a circle (`grid_fourier`); bounds are read off the sums (`grid_curves`). Where
neighbours that add a unit and neighbours that remove one differ (sampled events), all events are composed once in each
direction and the worse direction counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from farthing.accounting.engines.grid_compose import Curves, Part, composed_curves
from farthing.accounting.engines.grid_curves import composed_log_infinite
from farthing.accounting.engines.grid_events import is_symmetric, loss_pair
from farthing.accounting.engines.grid_pairs import Direction
from farthing.accounting.engines.grid_saddle import Plan, nodes_of, plan_for_delta, plan_for_loss
from farthing.accounting.engines.grid_search import epsilon_between
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.privacy import ApproxDP, Event, RandomizedResponse, Sampled
from farthing.privacy.events import checked_count, checked_delta, checked_real

_CUT = 32.0  # log of delta over the mass that may be cut off at high losses
_DEEPEST = 850.0  # -log of the smallest delta worth planning for
_COARSE_CELLS = 1 << 13
_WORK = 1 << 23  # cells times distinct events: what a few seconds can do
_LOG_ERROR = 2.0**-44


def compose_on_grid(
    items: Sequence[tuple[Event, int]], *, tolerance: float = 1e-6, most_cells: int = 3 << 20
) -> GridComposition:
    """The composition of `count` copies of each event, to be priced on a grid.

    `tolerance` is the width in epsilon to aim at; `most_cells` bounds work and memory, and wins.

    >>> from farthing.privacy import GaussianNoise
    >>> bounds = compose_on_grid([(Sampled(GaussianNoise(1.0), 0.01), 100)], tolerance=1e-4).epsilon_bounds(1e-6)
    >>> bounds.proven, bounds.width < 1e-4
    (True, True)
    """
    counted: dict[Event, int] = {}
    for event, count in items:
        number, plain = checked_count(count), _plain(event)
        if number and plain is not None:
            counted[plain] = counted.get(plain, 0) + number
    return GridComposition(tuple(counted.items()), tolerance, most_cells)


def _plain(event: Event) -> Event | None:
    """The event without detours; None when it costs nothing."""
    if isinstance(event, Sampled):
        inner = _plain(event.event)
        if inner is None or event.probability == 0.0:
            return None
        return inner if event.probability == 1.0 else Sampled(inner, event.probability)
    if isinstance(event, ApproxDP) and event.delta == 0.0:
        event = RandomizedResponse(event.epsilon)
    if isinstance(event, RandomizedResponse) and event.epsilon == 0.0:
        return None
    return event


@dataclass(frozen=True)
class GridComposition:
    """Proven bounds of a composition: `epsilon_bounds(delta)` and `delta_bounds(epsilon)`."""

    items: tuple[tuple[Event, int], ...]
    tolerance: float = 1e-6
    most_cells: int = 3 << 20

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions to price: one is enough when adding and removing a unit cost the same."""
        return ("remove",) if all(is_symmetric(event) for event, _ in self.items) else ("remove", "add")

    def epsilon_bounds(self, delta: float) -> Bounds:
        """The smallest epsilon >= 0 at which the composition is (epsilon, delta)-DP; inf when there is none.

        >>> compose_on_grid([(ApproxDP(0.5, 1e-3), 2)]).epsilon_bounds(1e-3)
        Bounds(lower=inf, upper=inf, estimate=inf, proven=True)
        """
        delta = checked_delta(delta)
        if not self.items:
            return Bounds(0.0, 0.0)
        sides = [_Side(self.items, direction) for direction in self.directions]
        if delta == 0.0:
            return _worse(
                [Bounds(math.inf, math.inf) if side.leak > -math.inf else side.most for side in sides]
            )
        log_delta = math.log(delta)
        slack = _LOG_ERROR * (1 + abs(log_delta))
        if any(side.leak > log_delta + slack for side in sides):
            return Bounds(math.inf, math.inf)
        plans = []
        for side in sides:
            # What is left of delta for finite losses; next to nothing when the leak takes it all.
            share = max(-math.expm1(min(side.leak - log_delta, 0.0)), 1e-15)
            target = log_delta + math.log(share)
            parts = side.parts(_CUT - target)
            plans.append((side, parts, plan_for_delta([part.nodes for part in parts], target)))
        plans.sort(key=lambda entry: -entry[2].x)
        found: list[Bounds] = []
        for side, parts, plan in plans:
            ceiling = side.most.upper if side.leak <= log_delta - slack else math.inf

            def priced(curves: Curves, guess: float, ceiling: float = ceiling) -> Bounds:
                bounds = epsilon_between(curves, log_delta, guess, self.tolerance)
                upper = min(bounds.upper, ceiling)
                return Bounds(min(bounds.lower, upper), upper, min(bounds.estimate, upper))

            enough = max((bounds.lower for bounds in found), default=-math.inf)
            found.append(self._refined(parts, plan, priced, enough))
        return _worse(found)

    def delta_bounds(self, epsilon: float) -> Bounds:
        """The smallest delta at which the composition is (epsilon, delta)-DP, for any real epsilon.

        >>> compose_on_grid([(RandomizedResponse(1.0), 1)]).delta_bounds(0.0).upper
        0.46211715726...
        """
        epsilon = checked_real(epsilon, "epsilon")
        if math.isnan(epsilon):
            raise InvalidValue("epsilon", epsilon, "must be a real number")
        if epsilon < 0:
            # H_-e(P || Q) = 1 - exp(-e) + exp(-e) H_e(Q || P); the worse of both directions has no direction.
            mirror = self.delta_bounds(-epsilon)
            base, factor = -math.expm1(epsilon), math.exp(epsilon)
            low, high = base + factor * mirror.lower, base + factor * mirror.upper
            return Bounds(low * (1 - 2.0**-50), min(1.0, high * (1 + 2.0**-50)))
        found = []
        for side in (_Side(self.items, direction) for direction in self.directions if self.items):
            if epsilon >= side.most.upper:
                found.append(_from_logs(side.leak, side.leak, _LOG_ERROR * (2 + abs(side.leak))))
                continue
            plan = plan_for_loss([part.nodes for part in side.parts(_DEEPEST)], epsilon)
            parts = side.parts(min(_CUT + 2 - plan.log_delta, _DEEPEST))
            found.append(self._refined(parts, plan, lambda curves, _: _delta_on(curves, epsilon), -math.inf))
        return _worse(found) if found else Bounds(0.0, 0.0)

    def _refined(
        self, parts: list[Part], plan: Plan, priced: Callable[[Curves, float], Bounds], enough: float
    ) -> Bounds:
        """Bounds on finer and finer grids, until they are tight, or the cells run out, or they stay below `enough`."""
        most = max(_COARSE_CELLS, min(self.most_cells, _WORK // len(parts)))
        total = sum(part.count for part in parts)
        # Splitting adds about step^2 / 6 of variance to each loss, which costs (rate + 1) / 2 times that; merging
        # takes half as much away. The factor is a little smaller than that gives.
        # Whatever the tolerance, the curve itself has to be resolved.
        scale = max(plan.spread, 1 / plan.rate)
        step = min(math.sqrt(3.2 * self.tolerance / (total * (1 + plan.rate))), scale / 64)
        if enough > -math.inf:
            coarse = priced(composed_curves(parts, plan, step, _COARSE_CELLS, self.tolerance), plan.x)
            if coarse.upper <= enough:
                return coarse
        guess = plan.x
        while True:
            curves = composed_curves(parts, plan, step, most, self.tolerance)
            bounds = priced(curves, guess)
            # A width in delta is worth (1 + rate) times less in epsilon.
            miss = (bounds.width if math.isfinite(bounds.upper) else math.inf) / self.tolerance
            if miss <= 1 or curves.exact or curves.cells * 1.5 > most or curves.step < step * 0.99:
                return bounds
            step = curves.step / min(8.0, 1.3 * math.sqrt(miss))
            guess = bounds.estimate if math.isfinite(bounds.estimate) else guess


class _Side:
    """All events in one direction."""

    def __init__(self, items: tuple[tuple[Event, int], ...], direction: Direction) -> None:
        self.items, self.direction = items, direction
        pairs = [loss_pair(event, direction, 1.0) for event, _ in items]
        counts = [count for _, count in items]
        masses = [pair.infinite for pair in pairs]
        # The logarithm of the mass that has infinite loss whatever is cut, to a relative _LOG_ERROR.
        self.leak = composed_log_infinite(
            [math.log1p(-mass) for mass in masses],
            [math.log(mass) if mass > 0 else -math.inf for mass in masses],
            counts,
        )
        # The largest finite loss.
        top = math.fsum(count * pair.largest_loss for pair, count in zip(pairs, counts, strict=True))
        self.most = (
            Bounds(top * (1 - _LOG_ERROR), top * (1 + _LOG_ERROR)) if top < math.inf else Bounds(top, top)
        )

    def parts(self, cut: float) -> list[Part]:
        """The pairs, with losses cut where less than exp(-cut) of all copies together is lost."""
        total = sum(count for _, count in self.items)
        parts = []
        for event, count in self.items:
            pair = loss_pair(event, self.direction, cut + math.log(total))
            parts.append(Part(pair, count, nodes_of(pair, count)))
        return parts


def _delta_on(curves: Curves, epsilon: float) -> Bounds:
    return _from_logs(curves.lower.log_delta(epsilon), curves.upper.log_delta(epsilon), 2.0**-50)


def _from_logs(low: float, high: float, slack: float) -> Bounds:
    lower = math.exp(min(low - slack, 0.0)) * (1 - 2.0**-50) if low > -math.inf else 0.0
    upper = min(1.0, math.exp(min(high + slack, 0.0)) * (1 + 2.0**-50)) if high > -math.inf else 0.0
    if high > -math.inf:
        upper = max(upper, 5e-324)
    return Bounds(min(lower, upper), upper, lower + (upper - lower) / 3)


def _worse(found: Sequence[Bounds]) -> Bounds:
    """The bounds of the largest of several numbers."""
    lower = max(bounds.lower for bounds in found)
    upper = max(bounds.upper for bounds in found)
    return Bounds(lower, upper, max(bounds.estimate for bounds in found))
