"""`allocate` and `fit`: the noises that make errors least within a budget, and the least budget for given errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from farthing.accounting import Composition, compose, sampled_approx_dp
from farthing.accounting.comparison import charges_of_pairs, clock_epsilon
from farthing.errors import Infeasible, InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import ceiling
from farthing.planner.allocation_search import (
    NOTHING,
    Division,
    Search,
    Unaffordable,
    below,
    merit,
    objective,
    search_of,
    summed_logarithms,
)
from farthing.planner.design_arrays import Model, noises_of
from farthing.planner.division_polish import best_division, level_with_rivals, plain_sum
from farthing.planner.offers import Lacks, Offers, exact_text, unreachable
from farthing.planner.planning_problem import NANO, Problem, outer_epsilon
from farthing.planner.requirements import Requirements, Unmet, Unreachable
from farthing.planner.slot_facts import GAUSSIAN
from farthing.planner.theorem_prices import TheoremPrices, price_of
from farthing.privacy import ApproxDP, Composed, Event, Sampled
from farthing.statistics.measurements import Noise

_FAR_ABOVE = 1.25  # times the target: what costs so much at least is not looked for once more in other ways
_EVEN_FACTORS = (2.0, 1.5, 1.25, 1.1, 1.0, 0.99, 0.95, 0.9, 0.8)  # times the strengths of even shares, until proven
_SAME = 1e-7  # relative difference of two standard errors that are the same
_AIM = 1e-6  # by so much a kept error is put below what it was
_STRIDE = 1.5  # times the step to there: what it takes from others makes them say less once more
_NARROWED = 12  # how often the noise of what is kept is lowered
_CLIMBS = 8  # how often noise is lowered again, until nearly all that the ledger has left is taken
_NEARLY_ALL = 0.999
_TURNS = 24  # how often noise is raised until the proof fits, before a plain sum of epsilons is tried

Usage = Callable[[Event, float], float]
"""The part of what a ledger has left that an event would take, stated at this delta: at most 1 if it is admitted.

What a clock pays grows with the square of how strong noises are; so does this part.
"""


Seen = tuple[tuple[float, float], tuple[float, float]]


class Unadmitted(Unmet):
    """Requirements whose cheapest plan the ledger refuses: no epsilon helps."""


@dataclass(frozen=True, eq=False)
class Allocation:
    """A noise for every slot, what it costs and what it gives. Nothing was spent, and no row was read.

    Attributes:
        problem: The design and its budget.
        noises: The noise of each slot.
        order: The Renyi order at which the cost is decided.
        estimate: The cost as the search saw it; `cost` is proven.
        division: What the search came to, from which another one may start.
        model: The design as arrays.
        quick: Whether it was searched for near another one, and is only to be looked at.
    """

    problem: Problem
    noises: Mapping[str, Noise]
    order: float
    estimate: float
    division: Division = field(repr=False)
    model: Model = field(repr=False)
    quick: bool = False

    @cached_property
    def distributions(self) -> dict[str, Any]:
        """The distribution of the error of every output."""
        return {output.name: output.predicted(self.noises) for output in self.problem.design.outputs}

    @property
    def laws(self) -> dict[str, Any]:
        """`distributions` under their name before 0.1; deprecated, there until 1.0."""
        return self.distributions

    @cached_property
    def measured(self) -> Event:
        """The slots' own events as one fixed plan, before any amplification by sampling."""
        return Composed(tuple((slot.event(self.noises[slot.name]), 1) for slot in self.problem.design.slots))

    @cached_property
    def _composed(self) -> Composition:
        return compose([self.measured])

    @cached_property
    def inner_cost(self) -> Bounds:
        """The proven cost of `measured`, at the delta that goes with it."""
        return self._composed.epsilon_at(self.problem.inner_delta)

    @cached_property
    def inner_upper(self) -> float:
        """The upper end of `inner_cost`, which is found sooner; infinite where nothing is proven."""
        return self._composed.epsilon_upper(self.problem.inner_delta)

    @cached_property
    def upper(self) -> float:
        """The upper end of `cost`, which is charged and found sooner; infinite where nothing is proven."""
        inner = self.inner_upper
        return inner if self.problem.sampling_rate is None or math.isinf(inner) else self._amplified(inner).epsilon

    @cached_property
    def cost(self) -> Bounds:
        """What the plan costs at the problem's delta, proven (when first asked for)."""
        inner, rate = self.inner_cost, self.problem.sampling_rate
        if rate is None:
            return inner
        lower = math.log1p(rate * math.expm1(inner.lower)) * (1 - 2.0**-48)
        upper = self._amplified(inner.upper).epsilon
        return Bounds(min(lower, upper), upper, proven=inner.proven)

    @cached_property
    def event(self) -> Event:
        """What a ledger is charged with: the measurements, or their guarantee as a whole on one sample."""
        rate = self.problem.sampling_rate
        if rate is None:
            return self.measured
        return Sampled(ApproxDP(self.inner_upper, self.problem.inner_delta), rate)

    @cached_property
    def price(self) -> TheoremPrices:
        """The same noises under the composition theorems."""
        return price_of(self.problem, self.noises, self.cost)

    @cached_property
    def adaptive_cost(self) -> float:
        """What the same noises cost if each measurement is chosen after seeing the answers before it; upper.

        Infinite where there are too many kinds of noise to say it in a second or two.
        """
        slots = self.problem.design.slots
        charges = charges_of_pairs([(slot.event(self.noises[slot.name]), 1) for slot in slots])
        alone = clock_epsilon(charges, self.problem.inner_delta, self.inner_upper)
        return alone if self.problem.sampling_rate is None or not alone < 700 else self._amplified(alone).epsilon

    @cached_property
    def quick_price(self) -> TheoremPrices:
        """The same from estimates, in a few milliseconds: for looking at while a slider moves."""
        estimate = Bounds(self.estimate, self.estimate, proven=False)
        return price_of(self.problem, self.noises, estimate, proof=False)

    @property
    def objective(self) -> float:
        """The weighted geometric mean of mean squared relative errors, which is made least; by the linear model."""
        search = search_of(self.problem, self.model)
        return math.exp(objective(search, self.division) / max(float(search.weights.sum()), 1e-300))

    @cached_property
    def even_share(self) -> dict[str, float]:
        """By how much every standard error would be larger if each statistic had an even share of the budget to itself.

        Of epsilon and delta both, with the better of Laplace and Gaussian noise: 1 is the same, 2 twice the error.
        """
        errors = self.model.errors(self.division.shares.kinds, self.division.shares.strengths)
        count = sum(1 for output in self.problem.design.outputs if output.slots)
        shares = np.full(len(errors), 1 / max(count, 1))
        even, _ = self.model.shares_alone(self.problem.target, self.problem.inner_delta, shares)
        known = (errors > 0) & np.isfinite(even)  # and two errors that are as good as none are the same
        ratios = np.sqrt(np.where(known, np.maximum(even, NOTHING) / np.maximum(errors, NOTHING), 1.0))
        return dict(zip(self.model.outputs, ratios.tolist(), strict=True))

    def kept_with(self, name: str) -> dict[str, Mapping[str, Noise]]:
        """What keeps the error of a statistic beyond its own noises: all noises, where others say something about it.

        Args:
            name: The statistic.

        Returns:
            The noises by its name; nothing where its own noises decide its error.
        """
        return {name: self.noises} if self.model.outputs.index(name) in self.model.linked else {}

    @property
    def fits(self) -> bool:
        """Whether the cost is proven and within the budget, in whole billionths as ledgers keep them."""
        upper = self.upper
        return upper < math.inf and math.ceil(Fraction(upper) * NANO) <= self.problem.limit_nano

    def _amplified(self, epsilon: float) -> ApproxDP:
        return sampled_approx_dp(epsilon, self.problem.inner_delta, self.problem.sampling_rate or 1.0)


def allocate(
    problem: Problem,
    start: Allocation | None = None,
    *,
    quick: bool = False,
    usage: Usage | None = None,
) -> Allocation:
    """The noises with the least weighted geometric mean of errors whose proven cost is within the budget.

    No statistic gets worse than with its share of the budget to itself: even shares, if no weights are given.

    A statistic with a required error gets that error, no less: what it does not need is shared by the others, and left
    unspent where there are none. The answer does not depend on `start`, but for two cases. Where the search finds
    nothing and `start` meets the problem, it is the answer. With `quick`, kinds of noise stay those of `start` and one
    search has to do, which is close to the best near `start`; its cost is an estimate, and it is to be looked at, not
    released.

    A problem that has a part on the clock is divided in both ways, and the one with the smaller errors is the answer;
    near `start`, in the way of `start`.

    Args:
        problem: The design, its budget, weights and requirements.
        start: An allocation of the same design (under another weight or budget): what was read off the design is kept,
            which saves time.
        quick: Whether an estimate near `start` is enough.
        usage: Asks a ledger that has been spent from: what it would refuse is made cheaper until it does not.

    Returns:
        The noises and their cost.

    Raises:
        Infeasible: If no division meets the requirements within the budget.
    """
    if quick and start is not None:
        for way in problem.ways:
            if way.on_clock == start.problem.on_clock and _model(way, start) is start.model:
                with suppress(Unaffordable, Unreachable):  # then the thorough search says what stands in the way
                    division = _near(way, search_of(way, start.model), start)
                    return replace(_made(way, start.model, division), quick=True)
    made: list[Allocation] = []
    refusals: list[Infeasible] = []
    for way in problem.ways:
        try:
            made.append(_thorough(way, start, usage))
        except Infeasible as refusal:
            refusals.append(refusal)
    if not made:
        raise min(refusals, key=lambda each: (math.inf if each.closest is None else each.closest, each.epsilon))
    return made[0] if len(made) == 1 else _better(*made)


def _thorough(problem: Problem, start: Allocation | None, usage: Usage | None) -> Allocation:
    """The best allocation in one way; refused with what could be asked instead."""
    model = _model(problem, start)
    requirements = Requirements(problem, model, search_of(problem, model))
    try:
        return _proven(problem, model, requirements.search, usage, requirements)
    except Unmet as refused:
        if start is not None and _does(start, problem, usage):
            return replace(start, problem=problem, quick=False)
        bare = _bare(requirements, usage)
        if bare is not None:
            return _with_the_rest(bare, requirements, usage)
        lacks = [_lacking(requirements, usage), _lacking(requirements, None), _lacking(requirements, usage, anew=True)]
        raise Offers(problem, requirements, refused, *lacks).refusal() from None
    except Unreachable as refused:
        raise unreachable(requirements, refused, _lacking(requirements, usage)) from None


def _better(one: Allocation, other: Allocation) -> Allocation:
    """The one with the smaller errors, by what is made least; errors count as no smaller than the floors of either."""
    searches = [search_of(each.problem, each.model) for each in (one, other)]
    common = replace(searches[0], floors=np.minimum(*(search.floors for search in searches)))
    errors = [each.model.errors(each.division.shares.kinds, each.division.shares.strengths) for each in (one, other)]
    return other if summed_logarithms(common, errors[1]) < summed_logarithms(common, errors[0]) else one


def _admitted(made: Allocation, usage: Usage | None) -> bool:
    return usage is None or usage(made.event, made.problem.delta) <= 1


def _does(start: Allocation, problem: Problem, usage: Usage | None) -> bool:
    """Whether an allocation that is at hand meets a problem for which the search has found none.

    The search bounds mean squared errors, which say little about the noise in the number of rows; widths depend on it.
    """
    if start.problem.design is not problem.design or start.problem.on_clock != problem.on_clock:
        return False
    outputs = {output.name: output for output in problem.design.outputs}
    met = all(
        outputs[name].promised(start.noises).worst(asked.confidence) <= asked.within
        for name, asked in problem.requirements.items()
    )
    own = {slot.name for name in problem.kept for slot in outputs[name].slots}
    if not met or any(start.noises[slot] != noise for slot, noise in problem.held.items() if slot not in own):
        return False
    made = replace(start, problem=problem)
    return made.fits and _admitted(made, usage) and not _exceeded(problem, start.noises)


def _exceeded(problem: Problem, noises: Mapping[str, Noise]) -> dict[str, float]:
    """How many times as large as kept the error of a statistic is, where it is most too large.

    Compared are the standard errors of its cells, and what plans show: its error at 95% confidence.
    """
    outputs = {output.name: output for output in problem.design.outputs}
    ratios = {}
    for name, then in problem.kept.items():
        now, before = (
            np.append(distribution.standard_errors, distribution.error(0.95))
            for distribution in map(outputs[name].predicted, (noises, then))
        )
        ratio = float(np.max(now / np.maximum(before, 1e-300), initial=0.0))
        if not ratio <= 1 + _SAME:
            ratios[name] = ratio
    return ratios


def _narrowed(problem: Problem, made: Allocation, exceeded: Mapping[str, float]) -> Problem:
    """The problem with less noise held for what is kept and came out too large because others say less about it.

    An error falls with its own strength to the power of the part that its own noise has in its square.
    """
    shares, held = made.division.shares, dict(problem.held)
    squares = made.model.linear * made.model.variances(shares.kinds, shares.strengths)
    for name, ratio in exceeded.items():
        row = made.model.outputs.index(name)
        own = made.model.read[row]
        part = float(squares[row, own].sum() / max(float(squares[row].sum()), 1e-300))
        factor = (ratio * (1 + _AIM)) ** (_STRIDE / max(part, 0.1))
        for place in np.flatnonzero(own).tolist():
            slot = made.model.names[place]
            kind, strength = made.model.strength(place, held.get(slot, made.noises[slot]))
            held[slot] = made.model.noise(place, kind, strength * factor)
    return replace(problem, held=held)


def _lacking(first: Requirements, usage: Usage | None, *, anew: bool = False) -> Lacks:
    """What problems of the same design cost beside what they may use: more than all of it where they have no plan.

    What meets the same requirements most cheaply was found when they were refused at `first`, and is not looked for
    again; other requirements begin near it. With `anew`, nothing is known before: as for somebody who asks for it next,
    whose search may end elsewhere.
    """
    model, unadmitted = first.model, list[Problem]()

    def lacks(problem: Problem) -> float:
        if any(problem.epsilon >= other.epsilon for other in unadmitted if _alike(problem, other)):
            return math.inf
        own = model.for_clock(problem.held) if problem.on_clock else model
        search = search_of(problem, own)
        same = not anew and own is model and search.delta == first.search.delta and _alike(problem, first.problem)
        requirements = Requirements(problem, own, search, first.memory if same else {}, {} if anew else first.seen)
        try:
            lack = requirements.lack() if problem.requirements else 1.0
            if lack > 1 or _bare(requirements, usage) is not None:
                return lack
            _proven(problem, own, search, usage, requirements)
        except Unadmitted:
            unadmitted.append(problem)
            return math.inf
        except Unaffordable as refused:
            return max(refused.least / search.target, 1 + 1e-9) if search.target > 0 else math.inf
        except (Unreachable, Infeasible):
            return math.inf
        return min(lack, 1.0)

    return lacks


def _alike(one: Problem, other: Problem) -> bool:
    """Whether two offers to one problem differ in nothing but epsilon."""
    return one.requirements == other.requirements and one.held == other.held and one.kept == other.kept


def _proven(
    problem: Problem, model: Model, search: Search, usage: Usage | None, requirements: Requirements | None = None
) -> Allocation:
    """The best division whose cost is proven to fit and in which what is kept is no larger than it was."""
    made = _fitting(problem, model, search, usage, requirements)
    narrower = problem
    for _ in range(_NARROWED):
        exceeded = _exceeded(problem, made.noises)
        if not exceeded:  # the problem itself does not depend on the way there
            return made if narrower is problem else replace(made, problem=problem)
        narrower = _narrowed(narrower, made, exceeded)
        made = _fitting(narrower, model, search_of(narrower, model), usage)
    raise _too_dear(problem, math.inf)


def _bare(requirements: Requirements, usage: Usage | None) -> Allocation | None:
    """What meets the requirements most cheaply, with next to nothing for the rest; None where it is not proven to fit.

    It is the answer where no search finds how the rest could share what is left. So whatever it meets is accepted, and
    an offer needs no other proof.
    """
    problem, search = requirements.problem, requirements.search
    if not problem.requirements or requirements.cover_everything:  # then any search ends there
        return None
    with suppress(Unaffordable, Unreachable):
        least = requirements.cheapest()
        made = _made(problem, requirements.model, least)
        if least.cost <= search.target and made.fits and _admitted(made, usage):
            return None if _exceeded(problem, made.noises) else made
    return None


def _with_the_rest(bare: Allocation, requirements: Requirements, usage: Usage | None) -> Allocation:
    """The same with what is left shared by the slots that say nothing about what is required; or as it is.

    Whatever a slot says about a count in whole numbers makes its error a fraction, which may be a hair too large.
    """
    search, required = requirements.search, np.isin(bare.model.outputs, list(bare.problem.requirements))
    held, even = bare.division.shares, search.even
    linked = (requirements.model.at(even).linear[required] > 0).any(axis=0) | requirements.model.slots_of(required)
    divider = replace(search.divider, held=held, free=search.divider.free & ~linked)
    if divider.free.any() and not bare.problem.kept:
        with suppress(Unaffordable):
            made = _made(bare.problem, requirements.model, replace(search, divider=divider).divided())
            if made.fits and _admitted(made, usage) and requirements.hold(made.division.shares):
                return made
    return bare


def _fitting(
    problem: Problem, model: Model, search: Search, usage: Usage | None, requirements: Requirements | None = None
) -> Allocation:
    """The best division whose cost is proven to fit.

    The search takes discrete Gaussian noise for continuous noise and knows nothing of the width of a proof, so what it
    finds may cost a hair more than it believes (and with few, narrow noises a percent). Only the proof decides: the
    target is lowered until it fits.
    """
    limit, target = problem.limit_nano / NANO, search.target
    division: Division | None = None
    refused = math.inf, math.inf  # the least target that the ledger did not admit, and what it would take
    requirements = requirements or Requirements(problem, model, search)
    for turn in range(_TURNS):
        lower = replace(search, target=target)
        division, is_cheapest = _divided(replace(requirements, search=lower), division)
        made = _made(problem, model, division)
        taken = usage(made.event, problem.delta) if usage is not None and made.fits else 1.0
        if made.fits and taken <= 1:
            made = _as_much_as_admitted(made, lower, usage, ((target, taken), refused))
            division = made.division
            seen = search.delta <= search.target or below(search, division)
            return made if seen else _at_least_even(made, search, usage)
        if made.fits and is_cheapest:
            raise Unadmitted(division.cost, requirements.limits_of(division))
        over = made.upper / limit if limit > 0 else math.inf
        refused = (target, taken) if made.fits else refused
        if not over < 2:
            target /= 2
        elif over > 1:
            target = min(target, target / over) * (1 - 2.0**turn * 1e-9)
        elif problem.on_clock and taken < math.inf:  # costs are about as strong as noises, and what they take squared
            target *= taken**-0.5 * (1 - min(2.0**turn * 1e-9, 0.5))
        else:  # within the budget but for the ledger's rounding, or not within what it has left
            target *= 1 - min(2.0**turn * (1e-9 if usage is None else 1e-3), 0.5)
    plain = None if problem.requirements else plain_sum(search)
    if plain is not None:
        made = _made(problem, model, plain)
        if made.fits and _admitted(made, usage):
            return made
    raise _too_dear(problem, made.inner_upper)


def _as_much_as_admitted(made: Allocation, search: Search, usage: Usage | None, seen: Seen) -> Allocation:
    """The allocation, or the same shares of a larger target, below the one that was refused.

    What a clock takes grows faster than the square where little of it is left, so that the way down goes too far.
    `seen` has the targets that were admitted and refused, and what they take, or would.
    """
    (low, taken), (high, wanted) = seen
    if usage is None or not made.problem.on_clock or made.problem.requirements:
        return made
    for _ in range(_CLIMBS):
        if not (taken < _NEARLY_ALL and low < _NEARLY_ALL * high and wanted < math.inf):
            break
        place = math.log(_NEARLY_ALL / taken) / math.log(wanted / taken)
        target = low * (high / low) ** min(max(place, 0.05), 0.95)
        other = _made(made.problem, made.model, search.rescaled(made.division, target))
        more = usage(other.event, other.problem.delta)
        if more <= 1 and other.fits:
            made, low, taken = other, target, more
        elif more > 1:
            high, wanted = target, more
        else:
            break
    return made


def _at_least_even(made: Allocation, search: Search, usage: Usage | None) -> Allocation:
    """The allocation, or even shares where these are better and proven to fit.

    A delta that is large beside epsilon makes costs a step that no search sees; each share fits by itself, and so do
    all of them, by basic composition.
    """
    divider = search.divider
    for factor in _EVEN_FACTORS:
        shares = search.even.scaled(factor, divider.model, divider.free)
        division = Division(shares, search.weights, made.division.saddle, 1.0, search.target)
        if not merit(search, division) < merit(search, made.division):
            break
        other = _made(made.problem, made.model, division)
        if other.fits and _admitted(other, usage):
            return other
    return made


def _divided(requirements: Requirements, before: Division | None) -> tuple[Division, bool]:
    """The best division of the search's target, and whether nothing cheaper meets what is required.

    `before` is that of a target which proved too large.
    """
    problem, search = requirements.problem, requirements.search
    try:
        if before is not None and not problem.requirements:
            return search.rescaled(before, search.target), False
        division = search.reweighted(best_division(search))
        division = level_with_rivals(search.at(division.shares), division)
    except Unaffordable as refused:
        raise _too_dear(problem, refused.least) from None
    if not problem.requirements:
        return division, False
    cheapest = requirements.least() if requirements.cover_everything else None
    if cheapest is not None and cheapest.cost <= search.target:
        return cheapest, True
    if cheapest is not None and cheapest.cost > _FAR_ABOVE * search.target:
        raise Unmet(cheapest.cost, requirements.limits_of(cheapest))
    return requirements.met(division), False


def fit(problem: Problem, start: Allocation | None = None) -> Allocation:
    """The least epsilon (at the problem's delta) that meets all requirements, and the noises that do it.

    The problem of the answer has that epsilon, whatever the one it was asked with. Weights have no say: nothing is left
    to be shared.

    Args:
        problem: The design and its requirements; its epsilon does not count.
        start: An allocation of the same design, to save time.

    Returns:
        The noises, with a problem that has the least epsilon.

    Raises:
        Infeasible: If no epsilon meets the requirements.
    """
    if not problem.requirements:
        raise InvalidValue(
            "require",
            {},
            "must hold at least one requirement to fit",
            'say how accurate a statistic must be, such as require("count", within=50)',
        )
    model = _model(problem, start)
    requirements = Requirements(problem, model, search_of(problem, model))
    try:
        division = requirements.least()
    except Unreachable as refused:
        raise unreachable(requirements, refused, None) from None
    made = _made(problem, model, division)
    if not made.upper < math.inf:
        raise _too_dear(problem, division.cost)
    return _made(replace(problem, epsilon=problem.epsilon_of(made.upper)), model, division)


def _near(problem: Problem, search: Search, start: Allocation) -> Division:
    """The best division with the kinds of noise of `start`; what was required there has its limit at once."""
    kinds = start.division.shares.kinds
    if problem.on_clock and start.estimate > 0:  # what the ledger would not admit is as much less as it was there
        part = min(start.estimate / (start.problem.epsilon - start.problem.reserved), 1.0)
        search = replace(search, target=part * search.target)
    divider = search.divider
    if divider.pure and (kinds[divider.free] == GAUSSIAN).any():
        raise Unaffordable(math.inf)
    alike = replace(search, divider=replace(divider, kinds=kinds), rough=True)
    if not problem.requirements:
        alike = alike.at(start.division.shares)
        return level_with_rivals(alike, alike.below_ceilings(alike.divided()))
    same = [name for name, asked in problem.requirements.items() if start.problem.requirements.get(name) == asked]
    return Requirements(problem, start.model, alike).met_near(start.division, same)


def _model(problem: Problem, start: Allocation | None) -> Model:
    if start is None or start.problem.design is not problem.design:
        model = Model.of(problem.design)
        return model.for_clock(problem.held) if problem.on_clock else model
    if problem.on_clock:
        same = start.problem.on_clock and start.problem.held == problem.held
        return start.model if same else start.model.for_clock(problem.held)
    return start.model.for_sums() if start.problem.on_clock else start.model


def _made(problem: Problem, model: Model, division: Division) -> Allocation:
    noises = noises_of(model, division.shares, problem.held)
    cost = outer_epsilon(problem, division.cost) - problem.reserved
    return Allocation(problem, noises, division.saddle + 1, cost, division, model.at(division.shares))


def _too_dear(problem: Problem, cost: float) -> Infeasible:
    names = sorted({o.name for o in problem.design.outputs if any(s.name in problem.held for s in o.slots)})
    needed = float(ceiling(outer_epsilon(problem, cost), 4)) if cost < 700 else math.inf
    if not names:
        return Infeasible(
            f"all measurements together, each with as much noise as there is, cost epsilon={exact_text(needed)}, "
            f"reserve included, and the plan has {exact_text(problem.epsilon)}; raise epsilon, or ask for fewer "
            "statistics.",
            blocking=(),
            closest=None,
            epsilon=needed,
        )
    quoted_names = " and ".join(map(repr, names))
    return Infeasible(
        f"the noise held for {quoted_names} alone costs epsilon={exact_text(needed)}, reserve included, and the plan "
        f"has {exact_text(problem.epsilon)}; hold less, reserve less, or raise epsilon.",
        blocking=tuple(names),
        closest=None,
        epsilon=needed,
    )
