"""The last percent where slots are few: kinds tried one by one, and exact slopes in place of one order's.

With many slots the saddle speaks for all of them. With a handful, and a delta so large that they compose to less than
their sum, each slot pulls the saddle towards itself, and the best kinds depend on each other.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from farthing.planner.order import composed_cost
from farthing.planner.search import Division, Search, Unaffordable
from farthing.planner.shares import Shares

MOST_SLOTS = 6
LEAST_DELTA = 1e-6
"""Below, so few slots (almost) add up, and the search alone was within a thousandth of the best."""

_STEP = 0.01
_ROUNDS = 4
_WORTHWHILE = (
    1e-4  # of the sum of pure epsilons: where composing saves less, the cube-root law is the answer already
)


def objective(search: Search, found: Division) -> float:
    """The weighted sum of mean squared relative errors."""
    errors = search.divider.model.errors(found.shares.kinds, found.shares.strengths)
    return float(search.weights @ errors)


def polished(search: Search, found: Division) -> Division:
    """`found`, or something better close to it."""
    divider = search.divider
    if search.delta < LEAST_DELTA or int(divider.free.sum()) > MOST_SLOTS:
        return found
    if (
        not found.cost > 0
    ):  # so little beside delta that the estimate is lost in rounding: nothing to compare by
        return found
    pure = divider.model.losses(found.shares.kinds, found.shares.strengths).pure
    if found.cost > pure * (1 - _WORTHWHILE):
        return found
    for place in np.flatnonzero(divider.free & (divider.model.allowed.sum(axis=1) > 1)).tolist():
        for kind in np.flatnonzero(divider.model.allowed[place]).tolist():
            kinds = found.shares.kinds.copy()
            kinds[place] = kind
            if kind != found.shares.kinds[place]:
                with suppress(Unaffordable):  # beside what is held, not every kind fits
                    other = replace(search, divider=replace(divider, kinds=kinds)).divided()
                    found = min(found, other, key=lambda each: objective(search, each))
    return _levelled(search, found)


def _levelled(search: Search, found: Division) -> Division:
    """Strengths moved until every slot buys as much exactness for the same cost."""
    model, free = search.divider.model, np.flatnonzero(search.divider.free)
    best = now = found
    for _ in range(_ROUNDS):
        kinds, strengths = now.shares.kinds, now.shares.strengths
        cost = composed_cost(model.losses(kinds, strengths), search.delta, now.saddle).epsilon
        if not cost > 0:
            break
        before = objective(search, now)
        bought, paid = np.empty(len(free)), np.empty(len(free))
        for number, place in enumerate(free.tolist()):
            more = strengths.copy()
            more[place] *= 1 + _STEP
            bought[number] = before - float(search.weights @ model.errors(kinds, more))
            dearer = composed_cost(model.losses(kinds, more), search.delta, now.saddle).epsilon
            paid[number] = max(dearer / cost - 1, 1e-12)
        if not (bought > 0).all():
            break
        uneven = np.log(bought / paid)
        # Exactness falls, and cost rises, with a power of the strength: about 3.5 between the two.
        moved = strengths.copy()
        moved[free] *= np.exp(np.clip((uneven - uneven.mean()) / 3.5, -0.5, 0.5))
        now = search.rescaled(replace(now, shares=Shares(kinds, moved)), search.target)
        best = min(best, now, key=lambda each: objective(search, each))
        if float(np.abs(uneven - uneven.mean()).max()) < 1e-3:
            break
    return best
