"""What a clock pays for a charge when so much of it is left: level by level, and beyond its end."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from farthing.accounting.filters.clock_costs import (
    CLOCK_UNITS,
    MOST_EXCESS,
    ClockCost,
    clock_cost,
    clock_of,
    epsilon_of,
)
from farthing.accounting.filters.sampled_cost import Spare
from farthing.accounting.gaussian_curves import gaussian_curve
from farthing.numerics.bounds import ball, lower_fraction, precise_balls
from farthing.privacy import Composed, Event

_MANTISSA = 6  # bits of a level; the next one is at most a thirty-second lower
_LOWEST = 10**4  # units; below, levels are 0
_NOTHING = Spare()
_TOLERATED = MOST_EXCESS // 10**3  # of one charge: where less of the clock is kept it could be anything


@lru_cache(maxsize=4096)
def whole_clock(epsilon_nano: int, slack_units: int) -> int:
    """The clock, in units, of a budget with so many billionths of epsilon and 1e-40ths of slack; -1 where none runs.

    >>> whole_clock(10**9, 10**31) / CLOCK_UNITS, whole_clock(10**9, 0)
    (0.0331..., -1)
    """
    if not slack_units:
        return -1
    return clock_of(Fraction(epsilon_nano, 10**9), _reduced(slack_units))


def _reduced(slack_units: int) -> Fraction:
    return Fraction(slack_units, CLOCK_UNITS) * (1 - Fraction(MOST_EXCESS, CLOCK_UNITS))


@lru_cache(maxsize=4096)
def whole_clock_epsilon(clock: int, slack_units: int) -> int:
    """The least epsilon, in billionths, whose clock is so long: `whole_clock` read the other way.

    >>> whole_clock_epsilon(whole_clock(10**9, 10**31), 10**31)
    1000000000
    """
    return int(epsilon_of(clock, _reduced(slack_units)) * 10**9)


@lru_cache(maxsize=4096)
def largest_payable(left: int) -> int:
    """The largest epsilon, in billionths, of a black-box charge that so much of a clock pays.

    With nothing left after it, that is where tanh(epsilon / 2) <= V(0, s).

    >>> largest_payable(whole_clock(10**9, 10**31))
    145249624
    """
    if left <= 0:
        return 0
    with precise_balls():
        far = gaussian_curve(ball(Fraction(0)), ball(Fraction(left, CLOCK_UNITS)))
        epsilon = lower_fraction(2 * far.atanh()) if far < 1 else None
    return 0 if epsilon is None else math.floor(epsilon * 10**9)


def clock_payment(event: Event, left: int, spare: Spare = _NOTHING) -> ClockCost | None:
    """What is added to a spent clock for `event` when `left` units remain, which may be 0 or less; None is infinite.

    A sample may use some of what is `spare` of delta; if that is not left, it is charged without.

    Statement:
        Let `cost` be what the event costs where a level is kept (`clock_cost`). While cost and level together fit into
        what is left, that is the payment. Else it is the cost at level 0, or the cost at a level with the level on top:
        both exceed what is left. In each case, under every budget whose clock is at least what is spent after the
        payment, what remains after the true cost is at least the level. So the payment is valid under all of them.
        A plan pays its parts one after the other.
    Source: Theorem 3 on the page docs/clock.md: what is enough at a level is enough above it. Units of a clock may
        always be given away, because V(x, s) grows with s.
    Assumes: `left` is at most what is left under the budget for which the claim is made.
    Direction: upper.
    Checked by: tests/theorems/test_account_runs_on_the_clock.py

    >>> from farthing.privacy import GaussianNoise
    >>> clock_payment(GaussianNoise(10.0), 10**39).clock == 10**38
    True
    """
    if isinstance(event, Composed):
        return _plan_payment(event, left, spare)
    step = _affordable(event, left, spare.leak(event))
    return _beyond(event) if step is None else step[1]


def _plan_payment(plan: Composed, left: int, spare: Spare) -> ClockCost | None:
    clock = excess = leak = 0
    for part, count in plan.parts:
        for times, cost in _payments(part, count, left - clock, spare.without(leak)):
            if cost is None:
                return None
            clock, excess, leak = clock + times * cost.clock, excess + times * cost.excess, leak + times * cost.leak
    return ClockCost(clock, excess, leak)


def _payments(event: Event, count: int, left: int, spare: Spare) -> Iterator[tuple[int, ClockCost | None]]:
    """The event so often, as long as a level is kept at one price."""
    while count:
        step = _affordable(event, left, spare.leak(event))
        if step is None:
            yield count, _beyond(event)
            return
        cost = step[1]
        times = min(count, _times(step, left, spare)) if cost.clock else count
        yield times, cost
        count, left, spare = count - times, left - times * cost.clock, spare.without(times * cost.leak)


def _times(step: tuple[int, ClockCost], left: int, spare: Spare) -> int:
    """How often a level is kept at one price, and delta is left for it."""
    kept, cost = step
    times = (left - kept) // max(1, cost.clock)
    return min(times, spare.left // cost.leak) if cost.leak else times


def payments_within(event: Event, left: int, spare: Spare = _NOTHING) -> int:
    """How often so much of a clock pays for `event`.

    >>> from farthing.privacy import ApproxDP
    >>> payments_within(ApproxDP(0.01), whole_clock(10**9, 10**31))
    329
    """
    many, before = 0, left + 1
    while left < before:  # an event of no cost is paid for as often as anybody likes
        before = left
        if isinstance(event, Composed):
            cost = clock_payment(event, left, spare)
            times = int(cost is not None and cost.clock <= left)
        else:
            step = _affordable(event, left, spare.leak(event))
            cost = None if step is None else step[1]
            times = 0 if step is None else _times(step, left, spare)
        if cost is not None:
            many, left, spare = many + times, left - times * cost.clock, spare.without(times * cost.leak)
    return many


def _affordable(event: Event, left: int, leak: int) -> tuple[int, ClockCost] | None:
    """The highest level that is kept after paying for the event, and what is paid."""
    highest = left
    while left > 0:
        level = _level_below(highest)
        cost = _cost(event, level, leak)
        if cost is None or cost.clock > left or cost.excess > _TOLERATED:
            return None
        if left - cost.clock >= level:
            return level, cost
        # A lower level costs at least as much, so it must lie at or below what this cost would leave.
        highest = min(left - cost.clock, level - 1)
    return None


def _level_below(units: int) -> int:
    """The largest number of six significant bits at or below `units`, or 0."""
    if units < _LOWEST:
        return 0
    shift = units.bit_length() - _MANTISSA
    return units >> shift << shift


@lru_cache(maxsize=65536)
def _cost(event: Event, level: int, leak: int = 0) -> ClockCost | None:
    return clock_cost(event, Fraction(level, CLOCK_UNITS), leak)


@lru_cache(maxsize=4096)
def _beyond(event: Event) -> ClockCost | None:
    """What an event costs that the clock cannot pay any more: that counts if the budget is raised."""
    cost = _cost(event, 0)
    if cost is not None and cost.excess <= _TOLERATED:
        return cost
    for shift in range(8, 160):  # of a few: discrete Gaussian noise needs something to be kept
        level = 1 << shift
        cost = _cost(event, level)
        if cost is not None and cost.excess <= _TOLERATED:
            return ClockCost(cost.clock + level, cost.excess)
    return None
