"""The best division of a few searches; that of few slots is moved to the best one close to it.

There, other kinds of noise are tried, and strengths made equal. The search takes its cost from one Renyi order; with
few slots and a large delta the exact cost has its least elsewhere. Quantiles are made level with those of other tools.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from farthing.accounting.cost_estimates import composed_cost
from farthing.planner.allocation_search import (
    Division,
    Search,
    Unaffordable,
    below,
    merit,
    objective,
    summed,
    summed_logarithms,
)
from farthing.planner.design_arrays import Shares
from farthing.planner.slot_facts import Floats

MOST_SLOTS = 6
LEAST_DELTA = 1e-6
"""Below, so few slots (almost) add up, and the search alone was within a thousandth of the best."""

_FEW = 12  # so few free slots are also tried with noise of one kind only, whatever the first search says
_STEP = 0.01
_POLISH_ROUNDS = 4
_WEAKER = 0.01  # a choice so little weaker than a rival's is left as it is
_FAR_BEHIND = 16.0  # times a rival's squared error: choices are not compared beyond it
_HALVES = (0.5 ** np.arange(1, 11)).tolist()  # how closely the room beside choices is used, before all is scaled
_WORTHWHILE = 1e-4  # of the sum of pure epsilons: where composing saves less, the cube-root law is the answer already


def best_division(search: Search) -> Division:
    """The best of a few searches: kinds chosen freely, from two ends; and all of one kind."""
    divider = search.divider
    divisions: list[Division] = []
    refusals: list[Unaffordable] = []

    def tried(other: Search, *, pure: bool = False) -> None:
        try:
            divisions.append(other.divided(pure=pure, like=divisions[0] if divisions else None))
        except Unaffordable as refused:  # beside what is held, not every kind fits
            refusals.append(refused)

    tried(search)
    few = not divider.pure and int(divider.free.sum()) <= _FEW
    # With few slots the order at which the cost is decided depends on the kinds, and there may be several answers.
    for other, pure in ((divider.without_gaussian, True), (divider, True), (divider.all_gaussian, False)):
        if few and other is not None and not (pure and divider.without_gaussian is None):
            tried(replace(search, divider=other), pure=pure)
    if not all(each.cost > 0 for each in divisions) or not divisions:  # an estimate was lost in rounding
        plain = plain_sum(search)
        divisions += [] if plain is None else [plain]
    if not divisions:
        raise min(refusals, key=lambda refused: refused.least)
    best = search.below_ceilings(min(divisions, key=lambda each: merit(search, each)))
    if not below(search, best):
        with suppress(Unaffordable):
            best = min(best, search.evenly(), key=lambda each: merit(search, each))
    return polished(search, best) if few else best


def plain_sum(search: Search) -> Division | None:
    """Pure noises whose epsilons add up to the target: always affordable, unless even the faintest are not.

    A delta that is large beside epsilon makes the composed cost a step that no search finds; the sum is found always.
    """
    pure = search.divider.without_gaussian
    if pure is None:
        return None
    with suppress(Unaffordable):
        return replace(search, delta=0.0, divider=replace(pure, pure=True)).divided(pure=True)
    return None


def polished(search: Search, division: Division) -> Division:
    """`division`, or something better close to it."""
    divider = search.divider
    # A cost so little beside delta that the estimate is lost in rounding is nothing to compare by.
    if search.delta < LEAST_DELTA or int(divider.free.sum()) > MOST_SLOTS or not division.cost > 0:
        return division
    pure = divider.model.losses(division.shares.kinds, division.shares.strengths).pure
    if division.cost > pure * (1 - _WORTHWHILE):
        return division
    for place in np.flatnonzero(divider.free & (divider.model.allowed.sum(axis=1) > 1)).tolist():
        for kind in np.flatnonzero(divider.model.allowed[place]).tolist():
            kinds = division.shares.kinds.copy()
            kinds[place] = kind
            if kind != division.shares.kinds[place]:
                with suppress(Unaffordable):  # beside what is held, not every kind fits
                    other = replace(search, divider=replace(divider, kinds=kinds)).divided()
                    division = min(division, other, key=lambda each: merit(search, each))
    return _equalised(search, division)


def _equalised(search: Search, division: Division) -> Division:
    """Strengths moved until every slot buys as much exactness for the same cost."""
    model, free = search.divider.model, np.flatnonzero(search.divider.free)
    best = now = division
    for _ in range(_POLISH_ROUNDS):
        kinds, strengths = now.shares.kinds, now.shares.strengths
        cost = composed_cost(model.losses(kinds, strengths), search.delta, now.saddle).epsilon
        if not cost > 0:
            break
        before = objective(search, now)
        bought, paid = np.empty(len(free)), np.empty(len(free))
        for number, place in enumerate(free.tolist()):
            more = strengths.copy()
            more[place] *= 1 + _STEP
            bought[number] = before - summed_logarithms(search, model.errors(kinds, more))
            dearer = composed_cost(model.losses(kinds, more), search.delta, now.saddle).epsilon
            paid[number] = max(dearer / cost - 1, 1e-12)
        if not (bought > 0).all():
            break
        uneven = np.log(bought / paid)
        # What a percent of strength buys stays the same; what it costs rises with a power of about 1.5.
        moved = strengths.copy()
        moved[free] *= np.exp(np.clip((uneven - uneven.mean()) / 1.5, -0.5, 0.5))
        try:
            now = search.rescaled(replace(now, shares=Shares(kinds, moved)), search.target)
        except Unaffordable:  # beside a large delta costs are steps, and no factor meets the target
            break
        best = min(best, now, key=lambda each: merit(search, each))
        if float(np.abs(uneven - uneven.mean()).max()) < 1e-3:
            break
    return best


def level_with_rivals(search: Search, division: Division) -> Division:
    """The division; or one with values as accurate as rivals', and the rest in proportion, none below even.

    That costs little where others are far ahead of their even shares, as statistics with common measurements are.
    Where there is not enough room for it, the largest error over that of its rival is made as small as there is.
    """
    kinds, strengths, free = division.shares.kinds, division.shares.strengths, search.divider.free
    model = search.divider.model
    level = model.choices_within(search.rivals)
    weaker = free & (level > strengths * (1 + _WEAKER))
    if not (weaker.any() and division.cost > 0):
        return division
    least = np.where(free, np.minimum(model.strengths_as(kinds, search.even), strengths), strengths)

    def shares(level: Floats, part: float) -> Shares:
        return Shares(kinds, np.maximum(np.where(free, np.maximum(least, level), least), part * strengths))

    def fits(level: Floats, part: float = 0.0) -> bool:
        own = shares(level, part)
        losses = search.divider.model.losses(own.kinds, own.strengths)
        return min(composed_cost(losses, search.delta, division.saddle).epsilon, summed(losses)) <= search.target

    part, times = 0.0, _FAR_BEHIND
    if fits(level):
        for step in _HALVES:
            part += step * fits(level, part + step)
    else:
        level = model.choices_within(search.rivals * times)
        if not fits(level):
            return division
        for step in _HALVES:
            closer = model.choices_within(search.rivals * times * _FAR_BEHIND**-step)
            if fits(closer):
                level, times = closer, times * _FAR_BEHIND**-step
    other = search.rescaled(replace(division, shares=shares(level, part)), search.target)
    # By weights that follow the noises: with those from before, linked outputs would count as worse than they are.
    return other if merit(search.at(other.shares), other)[0] <= merit(search, division)[0] else division
