"""How much of a Gaussian clock one event takes: the theorem behind `ClockFilter`, in closed form and rounded up.

The privacy curve of Gaussian noise with squared sensitivity-to-noise ratio s, read at e^-x, is

    V(x, s) = E[(1 - exp(-x - Z))_+] = F((x + s/2) / sqrt(s)) - e^-x F((x - s/2) / sqrt(s)),   Z normal (s/2, s),

with F the normal distribution function. V(0, s) = erf(sqrt(s / 8)) is the total variation distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from flint import arb

from farthing.accounting.bounded_range_cost import checked_level, middle_cost, middle_covers
from farthing.accounting.event_price import price_of
from farthing.accounting.filters.sampled_cost import sampled_cost
from farthing.accounting.gaussian_curves import (
    Distance,
    cost_of,
    envelope_distance,
    even_density,
    gaussian_curve,
    response_distance,
)
from farthing.errors import InvalidValue
from farthing.numerics.bounds import ball, exact, precise_balls, precision, upper_fraction
from farthing.privacy import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    RandomizedResponse,
    Sampled,
)

CLOCK_UNITS = 10**40
"""Clocks are kept in whole numbers of 1e-40."""

MOST_EXCESS = CLOCK_UNITS // 10**6
"""What the excesses of all charges may add up to. Slack is smaller by this share from the start, and e^x (1-x) <= 1."""

_BITS = 320  # the cost of an epsilon of 1e-12 still has 50 digits
_MANTISSA = 6  # bits of a level; the next one is at most a thirty-second lower
_LOWEST = Fraction(1, 2**120)


class ClockCost(NamedTuple):
    """Whole units, rounded up: of the clock, the share by which the event may exceed the curve it pays for, and delta
    that is paid beside the clock."""

    clock: int
    excess: int = 0
    leak: int = 0


def level_below(remaining: Fraction) -> Fraction:
    """The largest level at or below `remaining`: a number of six significant bits, or 0.

    >>> level_below(Fraction(1, 3)), level_below(Fraction(0))
    (Fraction(21, 64), Fraction(0, 1))
    """
    if remaining < _LOWEST:
        return Fraction(0)
    step = Fraction(2) ** (math.frexp(float(remaining))[1] - _MANTISSA)
    return math.floor(remaining / step) * step


@lru_cache(maxsize=65536)
def clock_cost(event: Event, level: Fraction, leak: int = 0) -> ClockCost | None:
    """What a clock that keeps at least `level` pays for `event`, rounded up; None where no finite amount is proven.

    A sample may be cheaper where so many units of delta, `leak`, may be paid beside the clock (`sampled_cost`).

    Statement:
        Let a pair with privacy loss l have no leak, and let M be the measure e^(-l/2) dP of its losses. Write G_s for
        the Gaussian pair with curve V(x, s). If M is symmetric and the signed measure
            e^(-c/8) N(0, c) - M
        changes its sign at most twice on (0, inf) and is positive far out, then for every s' >= 0
            E[V(x + l, s')] <= V(x, s' + c)  for all x     if and only if it holds at x = 0:
        the pair beside G_s' is dominated by G_(s' + c), in both orders, as soon as the total variation distances are
        ordered. So c = 8 erfinv(TV)^2 - s' with TV = E[V(l, s')]. What is enough at s' is enough at every larger one.
        It applies to randomized response (two atoms), to Laplace noise (two atoms and an even density between them),
        to discrete Laplace noise with every atom spread evenly to the middle of its neighbours (a density that rises
        away from 0, which dominates), and to the upper envelope of all pairs of bounded range (an even density); where
        `covers_bounded_range` proves it, bounded range costs what its symmetric pair does, and 1/128 of that. Gaussian
        noise has c = mu^2 exactly. Discrete Gaussian noise of standard deviation sigma, in steps, has
            E[V(x + l, s')] <= (1 + eta) V(x, s' + mu^2),  eta = 2 sum_k exp(-2 pi^2 k^2 sigma^2 s' / (mu^2 + s')),
        and eta is returned as `excess`. A leak means E[V(x + l, s')] <= V(x, s' + c) + leak.
    Source: the proof is on the page docs/clock.md; it was written for farthing. For Gaussian mechanisms alone the
        filter is that of Smith & Thakurta, arXiv:2210.17520.
    Assumes: the event keeps its curve whatever the answers before it; what is left of the clock after it is at least
        `level`.
    Direction: upper: costs come from balls and are rounded up to whole units.
    Checked by: tests/theorems/test_clock_costs.py
    """
    if isinstance(event, Sampled):
        return _sampled_cost(event, level, leak)
    if isinstance(event, GaussianNoise):
        return ClockCost(_units_up(1 / exact(event.noise_multiplier) ** 2))
    if isinstance(event, DiscreteGaussianNoise):
        return _discrete_gaussian_cost(event, level)
    epsilon = price_of(event).epsilon
    assert epsilon is not None  # every other event has a pure part; its own delta is a leak, which filters add up
    if isinstance(event, BoundedRange):
        return _bounded_range_cost(epsilon, level)
    return _pure_cost(_distances(event, epsilon), epsilon, level)


def _distances(event: Event, epsilon: Fraction) -> list[Distance]:
    """The distances of the event, or of pairs that dominate it; the least counts."""

    def laplace(s: Any) -> Any:
        a = ball(epsilon)
        atoms = gaussian_curve(a, s) + (-a).exp() * gaussian_curve(-a, s)
        return atoms / 2 + (-a / 2).exp() / 4 * even_density(a, s)

    def spread_laplace(s: Any) -> Any:
        assert isinstance(event, DiscreteLaplaceNoise)
        a, h = ball(epsilon), ball(epsilon / event.l1_sensitivity)
        kept = (-h).exp()
        density = (-a / 2).exp() / (1 + kept) / (4 * (h / 2).sinh())  # of the end atoms, spread by h on both sides
        inner = density * (1 - kept) * even_density(a - h, s)
        return inner + density * (even_density(a + h, s) - even_density(a - h, s))

    match event:
        case LaplaceNoise():
            return [laplace]
        case DiscreteLaplaceNoise(l1_sensitivity=steps) if steps > 1:
            return [response_distance(epsilon), spread_laplace]
        case ApproxDP() | RandomizedResponse() | DiscreteLaplaceNoise():
            return [response_distance(epsilon)]
    raise InvalidValue("event", event, "must be an event that a clock can price", "see farthing.privacy")


def _pure_cost(distances: list[Distance], epsilon: Fraction, level: Fraction) -> ClockCost | None:
    if epsilon == 0:
        return ClockCost(0)
    costs = [cost for distance in distances if (cost := cost_of(distance, level)) is not None]
    return ClockCost(_units_up(min(costs))) if costs else None


def _discrete_gaussian_cost(event: DiscreteGaussianNoise, level: Fraction) -> ClockCost | None:
    mu_squared = 1 / exact(event.noise_multiplier) ** 2
    sigma = exact(event.noise_multiplier) * event.l2_sensitivity
    width = sigma**2 * level / (mu_squared + level)
    with precision(_BITS):
        first = (-2 * arb.pi() ** 2 * ball(width)).exp()
        # Powers k^2 of it sum to less than powers k.
        excess = upper_fraction(2 * first / (1 - first)) if first < 1 else None
    return None if excess is None else ClockCost(_units_up(mu_squared), _units_up(excess))


def _bounded_range_cost(length: Fraction, level: Fraction, most: float = math.inf) -> ClockCost | None:
    """That of the pair in the middle of the range, if it is checked for the others; that of the upper envelope else.

    What does not save a fiftieth of `most` units is not worth a check.
    """
    envelope = _pure_cost([envelope_distance(length)], length, level)
    checked = checked_level(length, level)
    middle = None if checked is None or not length else middle_cost(length, checked)
    if checked is None or middle is None:
        return envelope
    units = math.ceil(middle * CLOCK_UNITS)
    if 50 * units <= 49 * most and (envelope is None or units < envelope.clock) and middle_covers(length, checked):
        return ClockCost(units)
    return envelope


def _sampled_cost(event: Sampled, level: Fraction, leak: int) -> ClockCost | None:
    """What is checked with the leak, or what holds without one, whichever is less of the clock."""
    # Excesses of later charges multiply a leak by at most e^x, and e^x (1 - x) <= 1.
    checked = sampled_cost(event, level, Fraction(leak, CLOCK_UNITS) * (1 - Fraction(MOST_EXCESS, CLOCK_UNITS)))
    without = _leakless_sampled_cost(event, level, math.inf if checked is None else _units_up(checked))
    if checked is None or (without is not None and without.clock <= _units_up(checked)):
        return without
    return ClockCost(_units_up(checked), 0, leak)


def _leakless_sampled_cost(event: Sampled, level: Fraction, useful: float) -> ClockCost | None:
    """A sample of a pure event has smaller losses, in a shorter range; one of Gaussian noise costs what the whole does.

    A loss l becomes log(1 + p (e^l - 1)), in one order or the other. This is convex in l, so losses within +-epsilon
    end in the range between its two ends, and losses within a range of length epsilon in one from 0 to its upper end.
    """
    most, probability = price_of(event).epsilon, exact(event.probability)
    if probability == 0:
        return ClockCost(0)
    if most is None or probability == 1:
        return clock_cost(event.event, level)
    length = most if isinstance(event.event, BoundedRange) else most + _fall(event.event, probability)
    costs = (_pure_cost([response_distance(most)], most, level), _bounded_range_cost(length, level, useful))
    return min((cost for cost in costs if cost is not None), default=None)


def _fall(event: Event, probability: Fraction) -> Fraction:
    """-log(1 + p (e^-epsilon - 1)), rounded up: by how much a sample's losses can fall."""
    epsilon = price_of(event).epsilon
    assert epsilon is not None
    with precise_balls():
        upper = upper_fraction(-(ball(probability) * (-ball(epsilon)).expm1()).log1p())
    return epsilon if upper is None else min(epsilon, upper)


def _units_up(amount: Fraction) -> int:
    return math.ceil(amount * CLOCK_UNITS)


@lru_cache(maxsize=4096)
def clock_of(epsilon: Fraction, slack: Fraction) -> int:
    """The largest clock, in whole units, with V(-epsilon, S) <= slack.

    >>> clock_of(Fraction(1), Fraction(1, 10**9)) / CLOCK_UNITS
    0.0331...
    """

    def holds(units: int) -> bool:
        return bool(gaussian_curve(-ball(epsilon), ball(Fraction(units, CLOCK_UNITS))) <= ball(slack))

    return _largest(holds)


@lru_cache(maxsize=4096)
def epsilon_of(units: int, slack: Fraction) -> Fraction:
    """The least epsilon, in billionths, with V(-epsilon, s) <= slack: what so much of a clock amounts to.

    >>> epsilon_of(clock_of(Fraction(1), Fraction(1, 10**9)), Fraction(1, 10**9))
    Fraction(1, 1)
    """
    if not units:
        return Fraction(0)

    def exceeds(nano: int) -> bool:
        curve = gaussian_curve(-ball(Fraction(nano, 10**9)), ball(Fraction(units, CLOCK_UNITS)))
        return not curve <= ball(slack)

    return Fraction(_largest(exceeds) + 1, 10**9) if exceeds(0) else Fraction(0)


def _largest(holds: Callable[[int], bool]) -> int:
    """The largest whole number up to which something holds, in balls; it holds at 0."""
    with precision(_BITS):
        low, high = 0, 1
        while holds(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) else (low, middle)
    return low
