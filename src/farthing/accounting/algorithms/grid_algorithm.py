"""Composition on a grid of losses: slower than a contour, but it proves its answer for every mix of events.

Each event becomes a distribution on one common grid, once from above and once from below (`grid_cells`); distributions
are tilted towards the answer and added up on a circle (`grid_fourier`); bounds are read off the sums (`grid_curves`).
Where neighbours that add a unit and neighbours that remove one differ (sampled events), all events are composed once in
each direction and the worse direction counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from farthing.accounting.algorithms.dominating_pairs import (
    has_endless_loss,
    is_symmetric,
    loss_pair,
    negligible_loss,
)
from farthing.accounting.algorithms.grid_composition import (
    Curves,
    Part,
    composed_curves,
    delta_between,
    delta_from_logs,
    epsilon_between,
    first_below,
    last_above,
)
from farthing.accounting.algorithms.grid_curves import composed_log_infinite
from farthing.accounting.algorithms.grid_pairs import Direction
from farthing.accounting.algorithms.grid_renyi import renyi_of_pairs
from farthing.accounting.algorithms.grid_saddle import Plan, nodes_of, plan_at, plan_for_delta, plan_for_loss
from farthing.accounting.charges import checked_finite_order
from farthing.accounting.hockey_stick import hockey_stick_divergence
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)
from farthing.privacy.events import checked_count, checked_delta, checked_real

Items = tuple[tuple[Event, int], ...]


class Side:
    """The events in one direction."""

    def __init__(self, items: Items, direction: Direction) -> None:
        """Read off the leak and the largest loss."""
        self.items, self.direction = items, direction
        pairs = [loss_pair(event, direction, 1.0) for event, _ in items]
        counts = [count for _, count in items]
        leaks = [pair.log_infinite for pair in pairs]
        # The logarithm of the mass that has infinite loss whatever is cut, right to _LOG_ERROR of its size.
        self.leak = composed_log_infinite([math.log1p(-math.exp(leak)) for leak in leaks], leaks, counts)
        # The largest finite loss.
        top = math.fsum(count * pair.largest_loss for pair, count in zip(pairs, counts, strict=True))
        self.most = Bounds(top, top) if math.isinf(top) else Bounds(top * (1 - _LOG_ERROR), top * (1 + _LOG_ERROR))

    def parts(self, cut: float) -> list[Part]:
        """The pairs, with losses cut where less than exp(-cut) of all copies together is lost."""
        total = sum(count for _, count in self.items)
        parts = []
        for event, count in self.items:
            pair = loss_pair(event, self.direction, cut + math.log(total))
            parts.append(Part(pair, count, nodes_of(pair, count)))
        return parts


def closed_form(items: Items) -> Event | None:
    """The event, when there is only one and its curve needs no grid."""
    if len(items) != 1 or items[0][1] != 1:
        return None
    event = items[0][0]
    inner = event.event if isinstance(event, Sampled) else event
    return (
        event
        if isinstance(inner, ApproxDP | RandomizedResponse | BoundedRange | LaplaceNoise | GaussianNoise)
        else None
    )


def epsilon_in_closed_form(event: Event, side: Side, log_delta: float) -> Bounds:
    """The smallest epsilon >= 0 of a single event, from its exact curve."""

    def upper(x: float) -> float:
        value = hockey_stick_divergence(event, x, side.direction).upper
        return math.log(value) + 2.0**-50 if value > 0 else -math.inf

    def lower(x: float) -> float:
        value = hockey_stick_divergence(event, x, side.direction).lower
        return math.log(value) - 2.0**-50 if value > 0 else -math.inf

    guess = min(side.most.upper / 2, 1.0)
    high = first_below(upper, log_delta, guess, 1.0, 1e-13)
    high = first_below(upper, log_delta, high, 1.0, 1e-13 * max(1.0, high)) if math.isfinite(high) else high
    guess = high if math.isfinite(high) else guess
    low = max(last_above(lower, log_delta, guess, 1.0, 1e-13 * max(1.0, guess)), 0.0)
    ceiling = side.most.upper if side.leak <= log_delta - _LOG_ERROR * (1 + abs(log_delta)) else math.inf
    return Bounds(min(low, ceiling), min(high, ceiling))


_CUT = 32.0  # log of delta over the mass that may be cut off at high losses
_DEEPEST = 850.0  # -log of the smallest delta worth planning for
_COARSE_CELLS = 1 << 13
_WORTHWHILE = 0.8  # a grid is made finer only while that makes the width at least this much smaller
_WORK = 1 << 23  # cells times distinct events: what a few seconds can do
_LOG_ERROR = 2.0**-44
_NEGLIGIBLE = 1e-40
_FAINT_LEAKS = 2.0**-55  # the pairs' own error is 2^-49 or more, relatively
_MOST_RESCUES = 8


def compose_on_grid(
    items: Sequence[tuple[Event, int]], *, tolerance: float = 1e-6, most_cells: int = 3 << 20
) -> GridComposition:
    """The composition of `count` copies of each event, to be priced on a grid.

    `tolerance` is the width in epsilon to aim at; `most_cells` bounds work and memory, and wins.

    Statement:
        Composed (P, Q) pairs have the products as their pair; n Gaussian pairs of parameters mu_i are one of parameter
        sqrt(sum mu_i^2); a pair whose loss is at most s raises epsilon by at most s; events that leak everything with
        probability delta_i, and nothing else, are one that does so with 1 - prod(1 - delta_i) <= sum delta_i.
    Source: Zhu, Dong & Wang, arXiv:2106.08567, Theorem 10; Dong, Roth & Su, arXiv:1905.02383, Corollary 3.3; basic
        composition.
    Assumes: mechanisms may be chosen adaptively, their events and counts not.
    Direction: charge `upper`; `lower` says how much could be saved at most.
    Checked by: tests/theorems/test_grid_composition.py

    >>> bounds = compose_on_grid([(Sampled(GaussianNoise(1.0), 0.01), 100)], tolerance=1e-4).epsilon_bounds(1e-6)
    >>> bounds.proven, bounds.width < 1e-4
    (True, True)
    """
    counted: dict[Event, int] = {}
    gaussian: list[tuple[float, int]] = []
    leaks: list[tuple[float, int]] = []
    aside, endless = 0.0, False
    for event, count in items:
        number, plain = checked_count(count), _plain(event)
        if not number or plain is None:
            continue
        if number * negligible_loss(plain) <= _NEGLIGIBLE:
            aside += number * negligible_loss(plain)
            endless |= has_endless_loss(plain)
        elif isinstance(plain, GaussianNoise):
            gaussian.append((plain.noise_multiplier, number))
        elif isinstance(plain, ApproxDP) and plain.epsilon == 0.0:
            leaks.append((plain.delta, number))
        else:
            counted[plain] = counted.get(plain, 0) + number
    for event, count in (*_gathered(gaussian), *_gathered_leaks(leaks)):
        counted[event] = counted.get(event, 0) + count
    return GridComposition(tuple(counted.items()), aside * (1 + _LOG_ERROR), endless, tolerance, most_cells)


def _plain(event: Event) -> Event | None:
    """The event without detours; None when it costs nothing."""
    if isinstance(event, Sampled):
        inner = _plain(event.event)
        if inner is None or event.probability == 0.0:
            return None
        return inner if event.probability == 1.0 else Sampled(inner, event.probability)
    if isinstance(event, ApproxDP) and event.delta == 0.0:
        event = RandomizedResponse(event.epsilon)
    if isinstance(event, RandomizedResponse | BoundedRange) and event.epsilon == 0.0:
        return None
    return event


def _gathered(gaussian: list[tuple[float, int]]) -> list[tuple[Event, int]]:
    """Gaussian noises as one, or as they are when that one would have too little noise for an event."""
    if not gaussian:
        return []
    least = min(multiplier for multiplier, _ in gaussian)
    # Relative to the least multiplier nothing overflows; the rounding is far below the error a Gaussian pair allows.
    together = least / math.sqrt(math.fsum(n * (least / m) ** 2 for m, n in gaussian))
    if len(gaussian) == 1 and gaussian[0][1] == 1:
        together = least
    return [(GaussianNoise(together), 1)] if together >= 1e-4 else [(GaussianNoise(m), n) for m, n in gaussian]


def _gathered_leaks(leaks: list[tuple[float, int]]) -> list[tuple[Event, int]]:
    """Leaks as one where they are so small that their sum is that of all of them, but for less than its rounding."""
    total = math.fsum(count * delta for delta, count in leaks)
    if len(leaks) < 2 or not total <= _FAINT_LEAKS:
        return [(ApproxDP(0.0, delta), count) for delta, count in leaks]
    return [(ApproxDP(0.0, total * (1 + 2.0**-50)), 1)]


@dataclass(frozen=True)
class GridComposition:
    """Proven bounds of a composition: `epsilon_bounds(delta)`, `delta_bounds(epsilon)` and `renyi(alpha)`.

    `aside` is a loss that events of next to no loss may add, whatever happens; `endless` says that, with a probability
    too small to be a double, they may add more.
    """

    items: Items
    aside: float = 0.0
    endless: bool = False
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
        if delta == 0.0 and self.endless:
            return Bounds(math.inf, math.inf)
        if self.aside > 0:
            rest = replace(self, aside=0.0).epsilon_bounds(delta * (1 - 2.0**-50))
            upper = rest.upper if math.isinf(rest.upper) else math.nextafter(rest.upper + self.aside, math.inf)
            return Bounds(min(rest.lower * (1 - 2.0**-44), upper), upper, rest.estimate)
        if not self.items:
            return Bounds(0.0, 0.0)
        sides = [Side(self.items, direction) for direction in self.directions]
        if delta == 0.0:
            return _worse([Bounds(math.inf, math.inf) if side.leak > -math.inf else side.most for side in sides])
        log_delta = math.log(delta)
        slack = _LOG_ERROR * (1 + abs(log_delta))
        if any(side.leak > log_delta + slack for side in sides):
            return Bounds(math.inf, math.inf)
        single = closed_form(self.items)
        if single is not None:
            return _worse([epsilon_in_closed_form(single, side, log_delta) for side in sides])
        plans = []
        for side in sides:
            # What is left of delta for finite losses; next to nothing when the leak takes it all.
            target = log_delta + math.log(max(-math.expm1(min(side.leak - log_delta, 0.0)), 1e-15))
            parts = side.parts(_CUT - target)
            nodes = [part.nodes for part in parts]
            plan = plan_for_delta(nodes, target)
            plans.append((side, parts, plan if plan.x >= 0 else plan_for_loss(nodes, 0.0)))
        plans.sort(key=lambda entry: -entry[2].x)
        bounds_by_direction: list[Bounds] = []
        for side, parts, plan in plans:
            ceiling = side.most.upper if side.leak <= log_delta - slack else math.inf

            def priced(curves: Curves, guess: float, ceiling: float = ceiling) -> Bounds:
                bounds = epsilon_between(curves, log_delta, guess, self.tolerance)
                upper = min(bounds.upper, ceiling)
                return Bounds(min(bounds.lower, upper), upper, min(bounds.estimate, upper))

            enough = max((bounds.lower for bounds in bounds_by_direction), default=-math.inf)
            bounds_by_direction.append(self._refined(parts, plan, priced, enough))
        return _worse(bounds_by_direction)

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
        if self.aside > 0:
            # The curve falls by at most 1 per unit of epsilon.
            rest = replace(self, aside=0.0).delta_bounds(epsilon)
            return Bounds(rest.lower, min(1.0, math.nextafter(rest.upper + self.aside, math.inf)), rest.estimate)
        single = closed_form(self.items)
        if single is not None and epsilon < math.inf:
            return _worse([hockey_stick_divergence(single, epsilon, side) for side in self.directions])
        bounds_by_direction = [Bounds(0.0, 0.0)]
        for side in (Side(self.items, direction) for direction in self.directions if self.items):
            if epsilon >= side.most.upper:
                bounds_by_direction.append(delta_from_logs(side.leak, side.leak, _LOG_ERROR * (2 + abs(side.leak))))
                continue
            plan = plan_for_loss([part.nodes for part in side.parts(_DEEPEST)], epsilon)
            parts = side.parts(min(_CUT + 2 - plan.log_delta, _DEEPEST))
            bounds_by_direction.append(
                self._refined(parts, plan, lambda curves, _: delta_between(curves, epsilon), -math.inf)
            )
        return _worse(bounds_by_direction)

    def renyi(self, alpha: float) -> Bounds:
        """The Renyi divergence of order alpha > 1, the larger of both directions.

        >>> round(compose_on_grid([(GaussianNoise(2.0), 8)]).renyi(3.0).upper, 9)
        3.0
        """
        order = checked_finite_order(alpha)
        bounds_by_direction = [renyi_of_pairs(self.items, direction, order) for direction in self.directions]
        worse = _worse(bounds_by_direction)
        # An event whose loss is at most s has divergence at most s.
        return worse if not self.aside else Bounds(worse.lower, math.nextafter(worse.upper + self.aside, math.inf))

    def _refined(
        self, parts: list[Part], plan: Plan, priced: Callable[[Curves, float], Bounds], enough: float
    ) -> Bounds:
        """Bounds on finer and finer grids, until they are tight, or cells run out, or all is below `enough`."""
        work = sum(0.125 if part.is_sparse else 1.0 for part in parts)
        most = max(_COARSE_CELLS, min(self.most_cells, int(_WORK / max(work, 1.0))))
        total = sum(part.count for part in parts)
        # Splitting adds about step^2 / 6 of variance to each loss, which costs (rate + 1) / 2 times that; merging takes
        # half as much away. The factor is a little smaller than that gives. Whatever the tolerance, the curve itself
        # has to be resolved.
        step = math.sqrt(3.2 * self.tolerance / (total * (1 + plan.rate)))
        step = min(step, max(plan.spread, 1 / plan.rate) / 64)
        if enough > -math.inf:
            coarse = priced(composed_curves(parts, plan, step, _COARSE_CELLS, self.tolerance), plan.x)
            if coarse.upper <= enough:
                return coarse
        guess, before, last = plan.x, math.inf, Bounds(0.0, math.inf)
        while True:
            curves = composed_curves(parts, plan, step, most, self.tolerance)
            bounds = priced(curves, guess)
            width = bounds.width if math.isfinite(bounds.upper) else math.inf
            miss, stuck = width / self.tolerance, width > _WORTHWHILE * before
            bounds = last if width > before else bounds
            before, last = min(width, before), bounds
            finest = curves.exact or curves.cells * 1.5 > most or curves.step > step * 1.01
            if miss <= 1 or finest or stuck:
                return self._with_gentler_tilts(bounds, parts, plan, priced, step)
            step = curves.step / min(8.0, 1.3 * math.sqrt(miss))
            guess = bounds.estimate if math.isfinite(bounds.estimate) else guess

    def _with_gentler_tilts(
        self,
        bounds: Bounds,
        parts: list[Part],
        plan: Plan,
        priced: Callable[[Curves, float], Bounds],
        step: float,
    ) -> Bounds:
        """Bounds that came out useless, met with those of gentler tilts.

        The tilt is planned for smooth curves. Where the curve has cliffs (large atoms among small losses), a gentler
        tilt sees the cliff from afar, which is all that is needed.
        """
        nodes = [part.nodes for part in parts]
        rate = plan.rate
        for _ in range(_MOST_RESCUES):
            if not 0.01 * bounds.upper + 100 * self.tolerance < bounds.width < math.inf:
                break
            rate *= 0.2
            other = plan_at(nodes, rate)
            curves = composed_curves(parts, other, step, min(2 * _COARSE_CELLS, self.most_cells), self.tolerance)
            more = priced(curves, max(other.x, 0.0))
            bounds = Bounds(max(bounds.lower, more.lower), min(bounds.upper, more.upper))
        return bounds


def _worse(bounds_by_direction: Sequence[Bounds]) -> Bounds:
    """Bounds on the largest of several numbers."""
    lower = max(bounds.lower for bounds in bounds_by_direction)
    upper = max(bounds.upper for bounds in bounds_by_direction)
    return Bounds(lower, upper, max(bounds.estimate for bounds in bounds_by_direction))
