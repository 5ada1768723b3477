"""All events of a composition in one direction: leak, largest loss, pairs; and single events in closed form."""

from __future__ import annotations

import math

from farthing.accounting.engines.grid_compose import Part
from farthing.accounting.engines.grid_curves import composed_log_infinite
from farthing.accounting.engines.grid_events import loss_pair
from farthing.accounting.engines.grid_pairs import Direction
from farthing.accounting.engines.grid_saddle import nodes_of
from farthing.accounting.engines.grid_search import first_below, last_above
from farthing.accounting.hockey_stick import hockey_stick_divergence
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

Items = tuple[tuple[Event, int], ...]

_LOG_ERROR = 2.0**-44


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
        self.most = (
            Bounds(top, top) if math.isinf(top) else Bounds(top * (1 - _LOG_ERROR), top * (1 + _LOG_ERROR))
        )

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
