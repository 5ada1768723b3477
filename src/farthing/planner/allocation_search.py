"""The search for the best division: a price of privacy, a Renyi order and weights that agree with each other.

Cheap saddle-point estimates steer, one contour integral sets the common scale at the end, and where that integral has
not died out the accountant's own estimate corrects it. All of it only proposes noises: what they cost is proven later.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.accounting import compose
from farthing.accounting.cost_estimates import Cost, Losses, composed_cost, saddle_cost
from farthing.errors import InvalidValue
from farthing.planner.design_arrays import Divider, Model, Shares
from farthing.planner.planning_problem import Problem
from farthing.planner.slot_facts import EXPONENTIAL, GAUSSIAN, LAPLACE, Floats

MARGIN = 1e-6
"""How far below the budget the estimated cost is put, relatively, so that the proof lands within it."""

PURE_MARGIN = 2e-10
"""The same where epsilons add up, relative and absolute: what replacing fine noise by real noise may add."""

GRID_MARGIN = 6e-5
"""The same where the proof will need a grid: narrow discrete Gaussian noise beside choices, proven less sharply."""

_NEGLIGIBLE = 0.01  # of the squared error of an even share: a smaller one is as good as none
NOTHING = 1e-18
"""A squared relative error that is as good as none in any case."""

_SATED = 1e-6  # the weight of a statistic that has what was required of it
_BALANCES = 12  # how often weights follow errors
_BALANCED = 1e-2  # a gap between them, in logarithms, that moves errors by a few thousandths
_STRIDE = 2.4  # times the gap between weights and errors: 2 is best for Gaussian noise, 3 for Laplace noise
_OVER = 0.02  # an error so little above its ceiling is left there
_LEVEL = 1 + 1.5 * _OVER  # times its ceiling, where errors count as below
_REWEIGHTINGS = 2  # of linked outputs
_AGREED = 0.02  # how far squared errors may be from what the weights say
_CLIMB = 50.0  # in logarithms, above the price of a division that is near
_DEAREST = 600.0  # logarithm of a price that a number can hold
_HEAVIEST = 1e200  # weight of a limited output
_ROUNDS = 24
_CLOSE = 1e-3
_ORDERLESS = 1e7  # a Renyi order times a cost, beyond which the divergence is the sum of epsilons
_VERY_CLOSE = 2e-6
_ROUGH = 3e-4  # how close limits are met by a search whose answer is only looked at


@dataclass(frozen=True, eq=False)
class Division:
    """Shares, and the weights, the saddle and the price that they are the answer to; `cost` is an estimate."""

    shares: Shares
    weights: Floats
    saddle: float
    price: float
    cost: float


class Unaffordable(Exception):
    """The limits and the held slots cost more than the target; `least` is an estimate of what they cost."""

    def __init__(self, least: float) -> None:
        super().__init__(least)
        self.least = least


@dataclass(frozen=True, eq=False)
class Search:
    """Divide `target` at `delta`: `weights` for the outputs, and `limits` on their `Model.squares` (inf: none).

    `even` are noises with which no output is above its ceiling.

    The weighted sum of the logarithms of mean squared errors is made least. An error counts as no smaller than its
    `floor`, so that none is chased to nothing. An output whose square would be above its `ceiling` (inf: none) gets
    that as its limit.
    `rivals` are squared errors that choices get where even shares of the rest leave room for them (inf: none).
    A `rough` search meets limits to three digits or so; the target it keeps to all the same.
    """

    divider: Divider
    delta: float
    target: float
    weights: Floats
    limits: Floats
    floors: Floats
    ceilings: Floats
    rivals: Floats
    even: Shares
    rough: bool = False

    def at(self, shares: Shares) -> Search:
        """The search with what outputs weigh at these noises: where they are linked, weights follow noises."""
        model = self.divider.model.at(shares)
        return self if model is self.divider.model else replace(self, divider=replace(self.divider, model=model))

    # --- the least that limits cost -----------------------------------------------------------------------------

    @cached_property
    def limited(self) -> bool:
        """Whether any output has a limit."""
        return bool(np.isfinite(self.limits).any())

    def cheapest(self) -> Division:
        """The cheaper of two searches: from the order of Gaussian noise, and from pure epsilons."""
        divisions = [self.least()]
        if self.delta > 0 and self.divider.without_gaussian is not None:
            pure = replace(self, divider=self.divider.without_gaussian)
            divisions += [pure.least(), self.least(replace(divisions[0], saddle=math.inf))]
        return min(divisions, key=lambda each: each.cost)

    def least(self, start: Division | None = None) -> Division:
        """The cheapest shares within the limits; slots that no limit asks for get (next to) nothing."""
        active = np.isfinite(self.limits)
        alone = replace(self if start else self._among(active), weights=np.zeros(len(self.weights)))
        weights = np.where(active, 1.0 if start is None else np.maximum(start.weights, 1e-280), 0.0)
        saddle = self._first_saddle() if start is None else start.saddle
        if start is not None:  # its weights were at its price
            weights = weights / start.price
        cost = 0.0
        for turn in range(_ROUNDS):
            shares, weights = alone._within_limits(weights, saddle, 1.0)
            if turn == _ROUNDS // 2 and self.divider.kinds is None:  # kinds that flip to and fro are kept
                alone = replace(alone, divider=replace(self.divider, kinds=shares.kinds))
            shares = self._without_unasked(shares)
            before, old = cost, saddle
            cost, saddle = saddle_cost(self._losses(shares), self.delta, saddle)
            steady = saddle == old or (math.isfinite(old) and abs(math.log(saddle / old)) < 1e-2)
            if abs(cost - before) < _VERY_CLOSE * cost and steady:
                break
        return Division(shares, weights, saddle, 1.0, self._true_cost(shares, saddle))

    def _among(self, rows: NDArray[np.bool_]) -> Search:
        """The search with what outputs weigh where slots that those in `rows` are not made from say nothing."""
        model, kinds = self.divider.model, self.even.kinds
        asked = model.slots_of(rows) | ~self.divider.free
        least = model.least[np.arange(len(kinds)), kinds]
        return self.at(Shares(kinds, np.where(asked, self.even.strengths, least)))

    def _without_unasked(self, shares: Shares) -> Shares:
        model = self.divider.model
        slots = model.slots_of(np.isfinite(self.limits))
        place = np.arange(len(slots))
        faint = np.where(slots | ~self.divider.free, shares.strengths, model.least[place, shares.kinds])
        return Shares(shares.kinds, faint)

    def least_error_of(self, row: int) -> Division:
        """The least error of one output within the target and the limits of others, everything else given up."""
        rows = np.isfinite(self.limits)
        rows[row] = True
        divider = self._among(rows).divider
        model = divider.model
        involved = model.slots_of(rows) | ~divider.free
        kinds = np.where(divider.free, np.argmax(model.allowed, axis=1), divider.held.kinds)
        least = model.least[np.arange(len(involved)), kinds]
        held = Shares(kinds, np.where(divider.free, least, divider.held.strengths))
        narrowed = replace(divider, held=held, free=divider.free & involved)
        weights = np.zeros(len(self.weights))
        weights[row] = 1.0
        search = replace(self, divider=narrowed, weights=weights)
        divisions = [search.divided()]
        if self.delta > 0 and narrowed.without_gaussian is not None:
            divisions.append(replace(search, divider=narrowed.without_gaussian).divided(pure=True))
        return min(divisions, key=lambda each: float(model.errors(each.shares.kinds, each.shares.strengths)[row]))

    # --- the division of the target -----------------------------------------------------------------------------

    def divided(self, start: Division | None = None, pure: bool = False, like: Division | None = None) -> Division:
        """The best shares that cost the target, from the saddle of `start`, or of pure epsilons, or of a guess.

        Errors are about as in `start`, or `like` another division; by default about as with even shares.
        """
        floor, goal, near = self._floor(start), self.target, start or like
        first = self._linear(self.floors if near is None else self._errors(near.shares))  # a part of even shares
        if start is not None:
            division = first._rounds(start.weights, start.saddle, start.price, floor, goal, _CLOSE)
        else:
            saddle = math.inf if pure or self.delta == 0 else self._first_saddle()
            division = first._rounds(first.weights, saddle, first._first_price(saddle), floor, goal, _CLOSE)
        balanced, division = self._balanced(first, division, floor)
        if self.limited:  # scaling would move what has a limit, so the price itself must be right
            for _ in range(4):
                true = composed_cost(self._losses(division.shares), self.delta, division.saddle).epsilon
                close = _ROUGH if self.rough else _VERY_CLOSE
                if not true > 0 or abs(math.log(true / self.target)) < close:
                    break
                goal *= self.target / true
                division = balanced._rounds(division.weights, division.saddle, division.price, floor, goal, close)
        return self._scaled(division)

    def beside(self, cheapest: Division) -> Division:
        """Where to start beside the cheapest division within the limits: what they do not ask for as with even shares.

        Its weights are at a price of 1.
        """
        asked = self.divider.model.slots_of(np.isfinite(self.limits)) | ~self.divider.free
        shares = Shares(
            np.where(asked, cheapest.shares.kinds, self.even.kinds),
            np.where(asked, cheapest.shares.strengths, self.even.strengths),
        )
        price = self._linear(self.floors)._first_price(cheapest.saddle)
        return replace(cheapest, shares=shares, weights=cheapest.weights * price, price=price)

    def _errors(self, shares: Shares) -> Floats:
        return self.divider.model.errors(shares.kinds, shares.strengths)

    def over(self, division: Division) -> Floats:
        """What outputs have of their ceilings."""
        return self.divider.model.squares(division.shares.kinds, division.shares.strengths) / self.ceilings

    def _linear(self, errors: Floats) -> Search:
        """The search whose weighted sum of errors has the slopes of the sum of logarithms, at these errors."""
        return replace(self, weights=self.weights / np.maximum(errors + self.floors, 1e-280))

    def _balanced(self, search: Search, division: Division, floor: float) -> tuple[Search, Division]:
        """Weights and errors brought to agree: each weight is one over the error that it leads to.

        The same noises are the answer to a sum of logarithms and to the linear sum with its slopes. An error follows
        its weight with a power of a half or so, and steps are made longer than the gap; but not where outputs share
        their slots and only their sum counts: a gap that changes its sign has been stepped over.
        """
        stride = np.full(len(self.weights), _STRIDE)
        last = np.zeros(len(self.weights))
        for _ in range(_BALANCES):
            wanted = self._linear(self._errors(division.shares)).weights
            there = (search.weights > 0) & (wanted > 0)
            gap = np.where(there, np.log(np.where(there, wanted, 1.0) / np.where(there, search.weights, 1.0)), 0.0)
            gap = np.where(there, gap - gap[there].mean(), 0.0)  # one factor for all changes nothing
            if float(np.abs(gap).max(initial=0.0)) < _BALANCED:
                break
            stride = np.where(gap * last < 0, np.maximum(0.6 * stride, 1.0), stride)
            last = gap
            search = replace(search, weights=search.weights * np.exp(np.clip(stride * gap, -8.0, 8.0)))
            division = search._rounds(search.weights, division.saddle, division.price, floor, self.target, _CLOSE)
        return search, division

    def below_ceilings(self, division: Division) -> Division:
        """The division; or a better one, where what is above its ceiling gets a limit there.

        What comes down may take another one up.
        """
        above = (self.over(division) > 1 + _OVER) & np.isinf(self.limits)
        if not (above.any() and division.cost > 0):  # a cost that is lost in rounding cannot be steered by
            return division
        lowered = replace(self, limits=np.where(above, self.ceilings, self.limits))
        with suppress(Unaffordable):
            return min(division, lowered.below_ceilings(lowered.divided(division)), key=lambda each: merit(self, each))
        return division

    def reweighted(self, division: Division) -> Division:
        """The division after the weights of linked outputs and the noises have followed each other.

        Each step only improves it: see `Model.at`.
        """
        search = self
        for _ in range(_REWEIGHTINGS if self.divider.model.linked else 0):
            following = search.at(division.shares)
            old, new = (each._errors(division.shares) for each in (search, following))
            if (np.abs(new - old) <= _AGREED * old).all():
                break
            search = following
            other = search.below_ceilings(search.divided(division))
            division = min(division, other, key=lambda each: merit(following, each))
        return division

    def evenly(self) -> Division:
        """The shares with which no output is worse off than by itself, and what is left shared in proportion.

        No price leads there where an error falls with epsilon faster than privacy costs, as that of a choice may.
        """
        saddle = self._first_saddle() if (self.even.kinds == GAUSSIAN).any() else math.inf
        if self.delta > self.target:  # then costs are lost in rounding, and nothing is known of them
            raise Unaffordable(math.inf)
        return self._scaled(Division(self.even, self.weights, saddle, 1.0, self.target))

    def _floor(self, start: Division | None) -> float:
        """What the held slots and the limits cost by themselves; a refusal when that is too much."""
        if self.limited:
            floor = self.least(start).cost
        elif (~self.divider.free).any():
            floor = self.held_cost
        else:
            return 0.0
        if not floor < self.target * (1 - 2 * MARGIN):
            raise Unaffordable(floor)
        return floor

    @cached_property
    def held_cost(self) -> float:
        """What the held slots cost by themselves."""
        model, held = self.divider.model, self.divider.held
        if self.divider.free.all():
            return 0.0
        place = np.arange(len(self.divider.free))
        faint = np.where(self.divider.free, model.least[place, held.kinds], held.strengths)
        return self._accounted(Shares(held.kinds, faint))

    def _rounds(
        self, weights: Floats, saddle: float, price: float, floor: float, goal: float, tolerance: float
    ) -> Division:
        """Secant steps on the logarithm of the price, the saddle following."""
        low, high = -math.inf, math.inf
        log_price, slope, cost = math.log(price), -0.3, 0.0
        before: tuple[float, float] | None = None
        last_strengths: Floats | None = None
        search = self
        floor = min(floor, 0.999 * goal)
        for turn in range(_ROUNDS):
            if log_price > min(math.log(price) + _CLIMB, _DEAREST):  # limits and what is held take all there is
                raise Unaffordable(max(cost, self.target))
            shares, weights = search._within_limits(weights, saddle, math.exp(log_price))
            cost, fresh = saddle_cost(self._losses(shares), self.delta, saddle)
            gap = math.log(max(cost - floor, 1e-9 * cost) / (goal - floor))
            orderless = math.isinf(saddle) or min(saddle, fresh) * cost > _ORDERLESS  # epsilons just add
            steady = orderless or abs(math.log(fresh / saddle)) < 0.03
            if (abs(gap) < tolerance and steady) or not high - low > 1e-12:
                break
            if steady and last_strengths is not None and np.array_equal(shares.strengths, last_strengths):
                break  # limits alone decide: no price makes it cheaper
            last_strengths = shares.strengths
            if before is not None and abs(log_price - before[0]) > 1e-9:
                secant = (gap - before[1]) / (log_price - before[0])
                slope = secant if -2 < secant < -0.02 else slope
            before = log_price, gap
            if gap > 0:
                low = max(low, log_price)
            else:
                high = min(high, log_price)
            if not steady:  # what was too dear at another order may no longer be
                low, high = -math.inf, math.inf
            step = min(max(-gap / slope, -8.0), 8.0)
            if turn == _ROUNDS // 2 and self.divider.kinds is None:  # kinds that flip to and fro are kept
                search = replace(self, divider=replace(self.divider, kinds=shares.kinds))
                low, high = -math.inf, math.inf
            following = log_price + step
            if not low < following < high:
                following = (low + high) / 2 if math.isfinite(high - low) else log_price + step
            if self.delta > 0 and self.divider.free.any():
                # At another order privacy is measured otherwise: the price follows, so that the strengths stay.
                own = self.divider.model.losses(shares.kinds, shares.strengths, self.divider.free)
                shift = math.log(own.pull(saddle) / own.pull(fresh))
                following, before = following + shift, (before[0] + shift, before[1])
                low, high, saddle = low + shift, high + shift, fresh
            # Capped: where narrow noise leaves a limit no slope, the price climbs without end.
            ratio = math.exp(min(following - log_price, 100.0))
            weights = np.where(weights > self.weights, np.minimum(weights, _HEAVIEST) * ratio, weights)
            log_price = following
        return Division(shares, weights, saddle, math.exp(log_price), cost)

    def _within_limits(self, weights: Floats, saddle: float, price: float) -> tuple[Shares, Floats]:
        """Shares at this price with the weights of limited outputs raised until they are within their limits."""
        if not self.limited:
            return self.divider.shares(self.weights, saddle, price), self.weights
        model, active = self.divider.model, np.isfinite(self.limits)
        least = np.where(self.divider.free, model.strengths_within(self.limits), 0.0)
        active[list(model.curves)] = False  # a choice is as strong as its limit says: no weight has to lead there
        weights = np.where(active, np.maximum(weights, self.weights), self.weights)
        power, last = np.full(int(active.sum()), 1.7), np.zeros(int(active.sum()))
        close, before = _ROUGH if self.rough else 1e-7, np.zeros(len(self.divider.free))
        for _ in range(60):
            shares = self.divider.shares(weights, saddle, price).at_least(least)
            gap = np.log(model.errors(shares.kinds, shares.strengths)[active] / self.limits[active])
            raised = weights[active] > self.weights[active]
            # What others ask for leaves it well within its limit: its weight falls and falls, and moves nothing.
            if (np.abs(shares.strengths - before) < 1e-9 * before).all():
                raised &= ~(power * gap < -0.5)
            if not (np.abs(gap[raised]) > close).any() and not (gap > close).any():
                break
            before = shares.strengths
            # Errors fall as weight^(-1/2) to weight^(-2/3), and faster once noise is below one step.
            power, last = np.where(gap * last < 0, 0.6 * power, power), gap
            more = weights[active] * np.exp(np.clip(power * gap, -12.0, 12.0))
            weights = weights.copy()
            weights[active] = np.clip(more, np.maximum(self.weights[active], 1e-280), 1e250)
        return shares, weights

    # --- the common scale ---------------------------------------------------------------------------------------

    def rescaled(self, division: Division, target: float) -> Division:
        """A division found before, at a smaller target."""
        return replace(self, target=target)._scaled(division)

    def _scaled(self, division: Division) -> Division:
        """Every free strength times one factor, so that the cost meets the target from below."""
        margin, correction = self._margin(division.shares), 1.0
        for _ in range(5):
            shares, cost = self._fitted(division, margin, correction)
            plain = summed(self._losses(shares))
            if cost.reliable or plain <= self.target:
                return replace(division, shares=shares, saddle=cost.saddle, cost=min(cost.epsilon, plain))
            accounted = self._accounted(shares)
            if 1 - 20 * margin < accounted / self.target <= 1 - margin:
                break
            correction = accounted / cost.epsilon * (1 + MARGIN)
        return replace(division, shares=shares, saddle=cost.saddle, cost=accounted)

    def _fitted(self, division: Division, margin: float, correction: float) -> tuple[Shares, Cost]:
        """Shares at the largest factor (nearly) that is affordable: a secant search inside a bracket."""
        divider, factor, slope = self.divider, 1.0, 1.2
        low, high = 0.0, math.inf
        tight = PURE_MARGIN / 8 if self.delta == 0 else MARGIN / 4
        before: tuple[float, float] | None = None
        fitting: tuple[Shares, Cost] | None = None
        for _ in range(60):
            shares = division.shares.scaled(factor, divider.model, divider.free)
            losses = self._losses(shares)
            cost = composed_cost(losses, self.delta, division.saddle)
            effective = min(cost.epsilon * correction / (1 - margin), summed(losses))  # both are bounds, up to margins
            if not effective > 0:  # so little that the estimate is lost in rounding: only the sum is left
                effective = summed(losses)
            gap = math.log(effective / self.target)
            if gap <= 0:
                low, fitting = factor, (shares, cost)
            else:
                high = factor
            if -tight < gap <= 0 or (fitting is not None and high - low < 1e-15 * low):
                break
            if before is not None and factor != before[0]:
                secant = (gap - before[1]) / math.log(factor / before[0])
                slope = secant if 1e-7 < secant < 3 else slope
            before = factor, gap
            following = factor * math.exp(min(max(-(gap + tight / 2) / slope, -3.0), 3.0))
            if not low < following < high:
                following = math.sqrt(low * high) if low > 0 else factor / 4
            stronger = division.shares.scaled(following, divider.model, divider.free)
            if np.array_equal(stronger.strengths, shares.strengths):
                break  # every slot is as strong, or as weak, as its mechanism goes
            factor = following
        if fitting is None:
            raise Unaffordable(effective)
        return fitting

    def _margin(self, shares: Shares) -> float:
        model = self.divider.model
        narrow = (shares.kinds == GAUSSIAN) & (model.l2 / shares.strengths < model.wide)
        return GRID_MARGIN if narrow.any() and (shares.kinds == EXPONENTIAL).any() else MARGIN

    def _true_cost(self, shares: Shares, saddle: float) -> float:
        cost = composed_cost(self._losses(shares), self.delta, saddle)
        return cost.epsilon if cost.reliable else self._accounted(shares)

    def _accounted(self, shares: Shares) -> float:
        """The accountant's own estimate, its margin included, or the sum of pure epsilons where that is less.

        Slots with next to nothing are left out. With few of them the estimate's margin can be wider than epsilon.
        """
        model = self.divider.model
        events = [
            slot.event(model.noise(place, int(shares.kinds[place]), float(shares.strengths[place])))
            for place, slot in enumerate(model.slots)
            if shares.strengths[place] > 2 * model.least[place, shares.kinds[place]]
        ]
        estimate = compose(events).epsilon_at(self.delta, proof=False).upper
        return min(estimate, self._losses(shares).pure)

    def _losses(self, shares: Shares) -> Losses:
        return self.divider.model.losses(shares.kinds, shares.strengths)

    # --- where to start -----------------------------------------------------------------------------------------

    def _first_saddle(self) -> float:
        """That of one Gaussian release of the whole target: epsilon = rho + 2 sqrt(rho log(1/delta))."""
        if self.delta == 0:
            return math.inf
        leak = -math.log(self.delta)
        # sqrt(leak + target) - sqrt(leak), written so that a small target is not lost in rounding
        root = self.target / (math.sqrt(leak + self.target) + math.sqrt(leak))
        return math.sqrt(leak) / root

    def _first_price(self, saddle: float) -> float:
        """A price at which the slots' own divergences add up to about what the target leaves for them."""
        budget = self.target if math.isinf(saddle) else self.target + math.log(self.delta) / saddle
        budget = max(budget - self.held_cost, 0.1 * self.target)
        price, free = 1.0, self.divider.free
        for _ in range(3):
            shares = self.divider.shares(self.weights, saddle, price)
            losses = self.divider.model.losses(shares.kinds, shares.strengths, free)
            total = losses.pure if math.isinf(saddle) else float(losses.log_moment(np.array([saddle]))[0]) / saddle
            price *= min(max(total / budget, 1e-3), 1e3) ** 3.3
        return price


def search_of(problem: Problem, model: Model) -> Search:
    """The search that belongs to a problem, without limits on errors."""
    held = model.shares_of(problem.held)
    free = np.array([name not in problem.held for name in model.names])
    pure = problem.inner_delta == 0
    for place, name in enumerate(model.names):
        can = model.allowed[place, [LAPLACE, EXPONENTIAL]].any() if free[place] else held.kinds[place] != GAUSSIAN
        if pure and not can:
            raise InvalidValue(
                "delta",
                problem.delta,
                f"must be > 0 for the Gaussian noise of {name!r}",
                "give the study a small delta such as 1e-9, or do not hold that noise",
            )
    # What is required of a statistic is its limit's business; beyond it, the others come first.
    own = np.cbrt([problem.weight_of(name) for name in model.outputs])
    weights = own * np.array([_SATED if name in problem.requirements else 1.0 for name in model.outputs])
    limits = np.full(len(model.outputs), math.inf)
    share, even = model.shares_alone(problem.target, problem.inner_delta, own / own.sum())
    known = np.isfinite(share)
    floors = np.maximum(_NEGLIGIBLE * np.where(known, share, 1.0), NOTHING)
    # What is nothing already needs no ceiling. What is required or held was taken from the others on purpose.
    bound = known & (share > NOTHING) & (not problem.requirements and not problem.held)
    ceilings = np.minimum(
        model.squares_within(np.where(bound, share, math.inf), even), model.kept_squares(problem.kept)
    )
    wished = bool(problem.requirements or problem.held) or problem.inner_delta > problem.target
    rivals = np.full(len(own), math.inf)
    if not wished:
        rivals = model.choices_alone(problem.target, problem.inner_delta, own / own.sum())
    first = even
    if problem.kept:  # what others say about them is kept from a plan in which these had a share
        first = model.shares_alone(problem.target, problem.inner_delta, np.full(len(own), 1 / len(own)))[1]
    even, first = (
        Shares(np.where(free, each.kinds, held.kinds), np.where(free, each.strengths, held.strengths))
        for each in (even, first)
    )
    divider = Divider(model.at(first), held, free, pure)
    return Search(divider, problem.inner_delta, problem.target, weights, limits, floors, ceilings, rivals, even)


def summed(losses: Losses) -> float:
    """The sum of pure epsilons with its margin: no proof lands above it."""
    return losses.pure / (1 - PURE_MARGIN) + PURE_MARGIN


def objective(search: Search, division: Division) -> float:
    """The weighted sum of the logarithms of mean squared relative errors, none counted as below its floor."""
    return summed_logarithms(search, search.divider.model.errors(division.shares.kinds, division.shares.strengths))


def merit(search: Search, division: Division) -> tuple[float, float]:
    """What divisions are compared by, less is better: how far errors are above their ceilings, then the objective."""
    return max(float(search.over(division).max(initial=0.0)), _LEVEL), objective(search, division)


def below(search: Search, division: Division) -> bool:
    """Whether no error is above its ceiling, but for a little."""
    return merit(search, division)[0] <= _LEVEL


def summed_logarithms(search: Search, errors: Floats) -> float:
    """The objective at these errors."""
    return float(search.weights @ np.log(np.maximum(errors + search.floors, 1e-280)))
