"""`allocate` and `fit`: the noises that make errors least within a budget, and the least budget for given errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from farthing.accounting import compose, sampled_approx_dp
from farthing.errors import Infeasible, InvalidValue
from farthing.numerics import Bounds
from farthing.planner.model import EXPONENTIAL, GAUSSIAN, LAPLACE, Model
from farthing.planner.polish import objective, polished
from farthing.planner.price import Price, price_of
from farthing.planner.problem import Problem
from farthing.planner.requirements import Requirements, noises_of, outer_epsilon
from farthing.planner.search import Division, Search, Unaffordable
from farthing.planner.shares import Divider, Shares
from farthing.privacy import ApproxDP, Composed, Event
from farthing.release.noise import Noise

_SATED = 1e-6  # the weight of a statistic that has what was required of it
_FEW = 12  # so few free slots are also tried with noise of one kind only, whatever the first search says
_COARSE_SIGMA = 2.0  # below, in steps, discrete Gaussian noise costs otherwise than the search believes
_FEW_BLUR = 4


@dataclass(frozen=True, eq=False)
class Allocation:
    """A noise for every slot, what it costs and what it gives. Nothing was spent, and no row was read.

    `order` is the Renyi order at which the cost is decided, `estimate` the cost as the search saw it; `cost` is proven.
    `quick` says that it was found near another one and is only to be looked at.
    """

    problem: Problem
    noises: Mapping[str, Noise]
    order: float
    estimate: float
    division: Division = field(repr=False)
    model: Model = field(repr=False)
    quick: bool = False

    @cached_property
    def laws(self) -> dict[str, Any]:
        """The law of the error of every output."""
        return {output.name: output.predicted(self.noises) for output in self.problem.design.outputs}

    @cached_property
    def measured(self) -> Event:
        """The slots' own events as one fixed plan, before any amplification by sampling."""
        return Composed(tuple((slot.event(self.noises[slot.name]), 1) for slot in self.problem.design.slots))

    @cached_property
    def inner_cost(self) -> Bounds:
        """The proven cost of `measured`, at the delta that goes with it."""
        return compose([self.measured]).epsilon_at(self.problem.inner_delta)

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
        """What a ledger is charged with: the measurements, or with sampling their amplified guarantee."""
        return self.measured if self.problem.sampling_rate is None else self._amplified(self.inner_cost.upper)

    @cached_property
    def price(self) -> Price:
        """The same noises under the composition theorems."""
        return price_of(self.problem, self.noises, self.cost)

    @cached_property
    def quick_price(self) -> Price:
        """The same from estimates, in a few milliseconds: for looking at while a slider moves."""
        estimate = Bounds(self.estimate, self.estimate, proven=False)
        return price_of(self.problem, self.noises, estimate, proof=False)

    @property
    def objective(self) -> float:
        """The weighted sum of mean squared relative errors, by the linear error model."""
        return objective(search_of(self.problem, self.model), self.division)

    def settled(self) -> Allocation:
        """This allocation if its cost is proven to be within the budget, else one with a hair more noise.

        The search leaves a millionth of the budget, which is more than its own error and the width of the proof in all
        cases known, so this returns itself; it is here because only the proof decides.
        """
        made, target = self, self.problem.target
        limit = self.problem.epsilon - self.problem.reserved
        for turn in range(20):
            if made.cost.proven and made.cost.upper <= limit:
                return made
            over = made.inner_cost.upper / self.problem.target
            target = min(target, target / over) * (1 - 2.0**turn * 1e-9) if over < 2 else target / 2
            found = search_of(self.problem, self.model).rescaled(made.division, target)
            made = _made(self.problem, self.model, found)
        raise _held_too_dear(self.problem, made.inner_cost.upper)

    @property
    def doubtful(self) -> bool:
        """Whether some noise is so coarse that the search may have misjudged its cost.

        The search takes discrete Gaussian noise for continuous noise. Narrow noise is not, and where few others blur
        it, the steps of its law show.
        """
        shares, model = self.division.shares, self.model
        exact = (shares.kinds == GAUSSIAN) & (model.wide > 0)
        sigma = model.l2 / shares.strengths
        if (exact & (sigma < _COARSE_SIGMA)).any():
            return True
        strong = shares.strengths > 1e-3 * shares.strengths.max()
        return bool(strong.sum() <= _FEW_BLUR and (exact & (sigma < model.wide)).any())

    def _amplified(self, epsilon: float) -> ApproxDP:
        return sampled_approx_dp(epsilon, self.problem.inner_delta, self.problem.sampling_rate or 1.0)


def allocate(problem: Problem, start: Allocation | None = None, *, quick: bool = False) -> Allocation:
    """The noises with the least weighted relative errors whose composed cost is within the budget.

    A statistic with a required error gets that error, no less: what it does not need is shared by the others, and left
    unspent where there are none. `start` is an allocation of the same design (under another weight or budget): what was
    read off the design is kept, which saves time. The answer does not depend on it, unless `quick` is said: then kinds
    of noise stay those of `start` and one search has to do, which is close to the best near `start`.
    """
    model = _model(problem, start)
    search = search_of(problem, model)
    near = start if quick and start is not None and start.model is model else None
    if near is not None:
        with suppress(Unaffordable):  # then the thorough search says what stands in the way
            return replace(_made(problem, model, _near(problem, search, near)), quick=True)
    try:
        found = best_division(search)
    except Unaffordable as refused:
        raise _held_too_dear(problem, refused.least) from None
    if problem.requirements:
        requirements = Requirements(problem, model, search)
        cheapest = requirements.least() if requirements.cover_everything else None
        affordable = cheapest is not None and cheapest.cost <= search.target
        found = cheapest if cheapest is not None and affordable else requirements.met(found)
    return _settled_if_doubtful(_made(problem, model, found))


def fit(problem: Problem, start: Allocation | None = None) -> Allocation:
    """The least epsilon (at the problem's delta) that meets all requirements, and the noises that do it.

    The problem of the answer has that epsilon, whatever the one it was asked with. Weights have no say: nothing is left
    to be shared.
    """
    if not problem.requirements:
        raise InvalidValue(
            "require", {}, "must hold at least one requirement to fit",
            'say how exact a statistic must be, such as require("count", within=50)',
        )  # fmt: skip
    model = _model(problem, start)
    found = Requirements(problem, model, search_of(problem, model)).least()
    room = found.cost * (1 + 2e-6)  # the search's own error, and the width of the proof
    least = outer_epsilon(problem, room)
    fitted = replace(
        problem, epsilon=least if least > problem.reserved else math.nextafter(problem.reserved, 1)
    )
    made = _made(fitted, model, found)
    if made.cost.upper <= fitted.epsilon - fitted.reserved:
        return made
    needed = made.cost.upper + problem.reserved
    return _made(replace(problem, epsilon=needed * (1 + 2.0**-50)), model, found)


def search_of(problem: Problem, model: Model) -> Search:
    """The search that belongs to a problem, without limits on errors."""
    held = Shares(np.zeros(len(model.names), dtype=np.int64), np.ones(len(model.names)))
    free = np.ones(len(model.names), dtype=bool)
    for place, name in enumerate(model.names):
        if name in problem.held:
            held.kinds[place], held.strengths[place] = model.strength(place, problem.held[name])
            free[place] = False
    pure = problem.inner_delta == 0
    for place, name in enumerate(model.names):
        can = (
            model.allowed[place, [LAPLACE, EXPONENTIAL]].any()
            if free[place]
            else held.kinds[place] != GAUSSIAN
        )
        if pure and not can:
            raise InvalidValue(
                "delta", problem.delta, f"must be > 0 for the Gaussian noise of {name!r}",
                "give the study a small delta such as 1e-9, or do not hold that noise",
            )  # fmt: skip
    # What is required of a statistic is its limit's business; beyond it, the others come first.
    weights = np.array(
        [
            problem.weight_of(name) * (_SATED if name in problem.requirements else 1.0)
            for name in model.outputs
        ]
    )
    limits = np.full(len(model.outputs), math.inf)
    return Search(Divider(model, held, free, pure), problem.inner_delta, problem.target, weights, limits)


def best_division(search: Search) -> Division:
    """The best of a few searches: kinds chosen freely, from two ends; and all of one kind."""
    divider = search.divider
    first = search.divided()
    if divider.pure or int(divider.free.sum()) > _FEW:
        return first
    # With few slots the order at which the cost is decided depends on the kinds, and there may be several answers.
    found = [first]
    for other, pure in ((divider.without_gaussian, True), (divider, True), (divider.all_gaussian, False)):
        if other is not None and not (pure and divider.without_gaussian is None):
            with suppress(Unaffordable):  # beside what is held, not every kind fits
                found.append(replace(search, divider=other).divided(pure=pure))
    return polished(search, min(found, key=lambda each: objective(search, each)))


def _near(problem: Problem, search: Search, start: Allocation) -> Division:
    """The best division with the kinds of noise of `start`; what was required there has its limit at once."""
    kinds = start.division.shares.kinds
    divider = search.divider
    if divider.pure and (kinds[divider.free] == GAUSSIAN).any():
        raise Unaffordable(math.inf)
    alike = replace(search, divider=replace(divider, kinds=kinds), rough=True)
    if not problem.requirements:
        return alike.divided()
    same = [
        name for name, asked in problem.requirements.items() if start.problem.requirements.get(name) == asked
    ]
    return Requirements(problem, start.model, alike).met_near(start.division, same)


def _model(problem: Problem, start: Allocation | None) -> Model:
    same = start is not None and start.problem.design is problem.design
    return start.model if same and start is not None else Model.of(problem.design)


def _made(problem: Problem, model: Model, found: Division) -> Allocation:
    noises = noises_of(model, found.shares, problem.held)
    cost = outer_epsilon(problem, found.cost) - problem.reserved
    return Allocation(problem, noises, found.saddle + 1, cost, found, model)


def _settled_if_doubtful(made: Allocation) -> Allocation:
    over = made.estimate > made.problem.epsilon - made.problem.reserved
    return made.settled() if made.doubtful or over else made


def _held_too_dear(problem: Problem, cost: float) -> Infeasible:
    names = sorted({o.name for o in problem.design.outputs if any(s.name in problem.held for s in o.slots)})
    needed = outer_epsilon(problem, cost)
    if not names:
        return Infeasible(
            f"all measurements together, each with as much noise as there is, cost epsilon={needed:.4g}, reserve "
            f"included, and the plan has {problem.epsilon:.4g}; raise epsilon, or ask for fewer statistics.",
            blocking=(), closest=None, epsilon=needed,
        )  # fmt: skip
    shown = " and ".join(map(repr, names))
    return Infeasible(
        f"the noise held for {shown} alone costs epsilon={needed:.4g}, reserve included, and the plan has "
        f"{problem.epsilon:.4g}; hold less, reserve less, or raise epsilon.",
        blocking=tuple(names), closest=None, epsilon=needed,
    )  # fmt: skip
