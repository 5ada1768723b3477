"""Errors that must not be exceeded: weights raised until they hold, and the least epsilon that meets them.

A requirement speaks of the error at a confidence, the search of `Model.squares` (`limits`). The two move together, so
each requirement keeps a bracket around the limit at which its predicted error is just within; where the distribution
of the error has steps (whole numbers), the bracket closes on the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from farthing.errors import InvalidValue
from farthing.planner.allocation_search import MARGIN, Division, Search, Unaffordable
from farthing.planner.design_arrays import Kinds, Model, Shares, noises_of
from farthing.planner.planning_problem import Problem
from farthing.planner.slot_facts import LAPLACE, Floats
from farthing.statistics.measurements import Noise

_TOLERANCE = 1e-3
_JUMP = 4e-3  # an error in whole numbers jumps somewhere between two limits, which are brought so close to each other
_CHOICE_JUMP = 5e-4  # the same for other errors; that of a choice has many small steps
_STRIDE = 1.02  # times a limit that is known to be enough, where nothing says how far it is from one that is not
_MOVES = 3  # how often a bracket is begun anew
_AIM = 3e-4  # below the requirement by so much, relatively, is where the search aims
_ROOT = 2.0  # squared errors go with limits, as a rule
_SLOW = 0.35  # the slope of errors over limits, in logarithms, below which they do not
_STEEPEST = 40.0
_NEXT_TO_NOTHING = 1e-3  # of the target: what costs so little need not cost less
_SAME = 4  # steps, each three times as long as the one before
_ROUNDS = 40
_ORDINARY = (2.0, 8.0)  # epsilons of one measurement
_SETTLED = 1e-3  # by so much errors may still fall when weights follow the noises
_FAR = 1e100  # an error beyond this is no limit, and its square must stay a number
_MOST_PROMISES = 1024  # errors that are remembered


class Unmet(Unaffordable):
    """Requirements that cost more than the target, with the limits they came to."""

    def __init__(self, least: float, limits: Floats) -> None:
        super().__init__(least)
        self.limits = limits


class Unreachable(Exception):
    """A requirement below what held noise, or the narrowest noise a mechanism makes, leaves."""

    def __init__(self, name: str, error: float, held: list[str]) -> None:
        super().__init__(name)
        self.name, self.error, self.held = name, error, held


@dataclass
class _Bracket:
    """Around the limit of one requirement: `low` is known to be enough, `high` is known not to be."""

    within: float
    jump: float = _JUMP
    low: float = 0.0
    high: float = math.inf
    last: float = math.nan
    flat: int = 0
    halved: bool = False
    moves: int = 0
    step: float = math.nan  # where it closed before: where it does so again, the error jumps there
    at: float = math.nan  # the limit of the last error
    enough: float = math.nan  # the error at `low`
    excess: float = math.nan  # the error at `high`
    lines: int = 0  # steps along a line
    power: float = _ROOT  # of the ratio of two errors: that of their limits, if errors go on as they did

    def record(self, limit: float, error: float) -> None:
        """Take note of the error found at a limit."""
        self.flat = self.flat + 1 if error == self.last else 0
        slope = _slope((self.at, self.last), (limit, error))
        # Beside a level that other noises leave, or nearly in whole numbers, an error hardly falls with its limit.
        self.power = min(1 / slope, _STEEPEST) if 0 < slope < _SLOW else _ROOT
        self.last, self.at = error, limit
        # The noise of other statistics has a say in the width of a ratio: what was known may no longer hold.
        moved = self.low >= limit if error > self.within else self.high <= limit
        if moved and self.moves < _MOVES:
            self.low, self.high, self.moves = 0.0, math.inf, self.moves + 1
        if error <= self.within and limit >= self.low:
            self.low, self.enough = limit, error
        elif not error <= self.within and limit <= self.high:
            self.high, self.excess = limit, error
        far = error < self.within * (1 - _TOLERANCE) and not float(error).is_integer()
        again = self.low <= self.step * (1 + self.jump)
        if self.closed and far and not again and self.moves < _MOVES:  # what was too much was so beside other noises
            self.high, self.moves, self.step = math.inf, self.moves + 1, self.low

    @property
    def closed(self) -> bool:
        """Whether what is enough and what is not are as good as one."""
        whole = float(self.enough).is_integer() or float(self.excess).is_integer()
        return self.high < self.low * (1 + (self.jump if whole else _CHOICE_JUMP))

    @property
    def endless(self) -> bool:
        """Whether the error is within and has stayed the same over far wider and wider limits: it has a bound."""
        return self.last <= self.within and math.isinf(self.high) and self.flat >= _SAME

    def met(self, error: float) -> bool:
        """Within, and as close as the distribution of the error lets it come."""
        # An error in whole numbers stays the same over a range of limits, of which the widest is wanted.
        near = error >= self.within * (1 - _TOLERANCE) and not float(error).is_integer()
        return error <= self.within and (near or self.closed)

    def following(self, limit: float, error: float) -> float:
        """The next limit to try: errors grow with the root of the limit, more or less."""
        if self.closed:
            return self.low
        # Whole numbers may have no error at all, at a limit that could still be wider; a line's error may have no end.
        known = min(max(error, self.within / 4), self.within * 8)
        power = self.power if error > self.within and self.low == 0 else _ROOT
        proposed = limit * math.pow(self.within * (1 - _AIM) / known, power)
        if error <= self.within and math.isinf(self.high):  # longer and longer steps while it stays the same
            return limit * math.exp(math.log(max(proposed / limit, _STRIDE)) * math.pow(3.0, min(self.flat, 6)))
        if self.low > 0 and self.high < math.inf:
            slope = _slope((self.low, self.enough), (self.high, self.excess))
            smooth = slope > 0 and not (float(self.enough).is_integer() or float(self.excess).is_integer())
            if smooth:  # two steps along the line through both ends, then one to the middle
                proposed = self.low * math.exp(math.log(self.within * (1 - _AIM) / self.enough) / slope)
                self.lines += 1
                middle = self.lines % 3 == 0
            else:
                middle = not self.halved
            self.halved = middle or not self.low < proposed < self.high
            return math.sqrt(self.low * self.high) if self.halved else proposed
        return proposed / math.pow(4.0, self.flat)


def _slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    """By which power the second of two positive numbers followed the first; NaN where that cannot be said."""
    (limit, error), (other_limit, other_error) = one, other
    if not (limit > 0 and other_limit > 0 and error > 0 and other_error > 0):
        return math.nan
    apart = math.log(other_limit) - math.log(limit)
    return (math.log(other_error) - math.log(error)) / apart if apart else math.nan


@dataclass(frozen=True, eq=False)
class Requirements:
    """The requirements of a problem, and the search they bind.

    `memory` holds what does not change with the target, and `seen` limits that were found to be enough for an error.
    """

    problem: Problem
    model: Model
    search: Search
    memory: dict[str, tuple[Division, dict[str, _Bracket]]] = field(default_factory=dict)
    seen: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def _rows(self) -> dict[str, int]:
        return {name: self.model.outputs.index(name) for name in self.problem.requirements}

    def errors(self, shares: Shares) -> dict[str, float]:
        """The promised error of the worst cell of every output that has a requirement, at its confidence."""
        noises = noises_of(self.model, shares, self.problem.held)
        return {
            name: self._promised(name, requirement.confidence, noises)
            for name, requirement in self.problem.requirements.items()
        }

    def _promised(self, name: str, confidence: float, noises: Mapping[str, Noise]) -> float:
        """The promised error of the worst cell under these noises; offers come back to noises that were tried."""
        known, key = self.model.promises, (name, confidence, *noises.values())
        if key not in known:
            if len(known) >= _MOST_PROMISES:
                known.clear()
            output = next(output for output in self.problem.design.outputs if output.name == name)
            known[key] = float(output.promised(noises).worst(confidence))
        return known[key]

    def hold(self, shares: Shares) -> bool:
        """Whether all are met under these noises."""
        errors = self.errors(shares)
        return all(errors[name] <= asked.within for name, asked in self.problem.requirements.items())

    def met(self, first: Division) -> Division:
        """The best division that meets them all; `first` is the best without any.

        Where it does not meet them, the search begins at the cheapest division that does: its limits are near, and what
        it leaves of the target goes to the others.
        """
        self._check_reach()
        if self.hold(first.shares):
            return first
        cheapest, brackets = self._cheapest()
        squares = self._squares(cheapest.shares)
        known = {name: float(squares[row]) for name, row in self._rows.items()}
        limits = self._limited(known)
        if not cheapest.cost < self.search.target * (1 - 2 * MARGIN):
            raise Unmet(cheapest.cost, self.limits_of(cheapest))

        def solve(limits: Floats, start: Division) -> Division:
            return self._at(limits, start).divided(start)

        if self.model.linked:  # alone, errors may be in whole numbers, and beside others in fractions: other steps
            brackets = self._brackets()
        try:
            division = solve(limits, self._at(limits, cheapest).beside(cheapest))
        except Unaffordable as refused:
            raise Unmet(refused.least, limits) from None
        return self._closed(division, solve, known, brackets)

    def met_near(self, start: Division, same: Iterable[str]) -> Division:
        """The same from a division at which the requirements `same` are met already: their limits are near."""
        self._check_limits()
        squares = self._squares(start.shares)
        known = {name: float(squares[self._rows[name]]) for name in same}
        limits = self._limited(known)
        first = replace(self.search, limits=limits).divided(start if known else None)
        return self._closed(first, lambda limits, near: self._at(limits, near).divided(near), known, self._brackets())

    def least(self) -> Division:
        """The cheapest division that meets them all, which must speak of every measurement."""
        self._check_reach()
        self._check_cover()
        return self._cheapest()[0]

    def lack(self) -> float:
        """What they cost at least, next to nothing for the rest included, as a part of the target."""
        return self.cheapest().cost / self.search.target if self.search.target > 0 else math.inf

    def cheapest(self) -> Division:
        """The cheapest division that meets them all, with next to nothing for what they do not speak of."""
        self._check_reach()
        return self._cheapest()[0]

    def _cheapest(self) -> tuple[Division, dict[str, _Bracket]]:
        """The cheapest division that meets them all, with next to nothing for what they do not speak of."""
        if "cheapest" in self.memory:
            division, brackets = self.memory["cheapest"]
            return division, {name: replace(bracket) for name, bracket in brackets.items()}
        limits = np.full(len(self.model.outputs), math.inf)
        for name, row in self._rows.items():
            # Any start will do; the reference is a scale that errors of this output are measured by.
            within = min(self.problem.requirements[name].within, _FAR)
            limits[row] = (within / 2) ** 2 * self._scale(name)
            if name in self.seen and row not in self.model.curves:
                limit, enough_for = self.seen[name]
                limits[row] = limit * (within / enough_for) ** 2
            if row in self.model.curves:
                limits[row] = self.search.even.strengths[self.model.curves[row][0]] ** -2.0
        first = replace(self.search, limits=limits).cheapest()
        start = {name: float(limits[row]) for name, row in self._rows.items()}
        brackets = self._brackets()
        if len(brackets) == 1:  # nobody else's noise has a say: where it closes, the error jumps
            next(iter(brackets.values())).moves = _MOVES
        division = self._closed(
            first,
            lambda limits, near: self._at(limits, near).least(near),
            start,
            brackets,
            widen=False,
        )
        self.memory["cheapest"] = division, brackets
        ends = {name: one for name, one in brackets.items() if 0 < one.low < one.high < math.inf}
        self.seen.update((name, (one.low, one.within)) for name, one in ends.items())
        return self._cheapest()

    def _brackets(self) -> dict[str, _Bracket]:
        return {
            name: _Bracket(requirement.within, _CHOICE_JUMP if self._rows[name] in self.model.curves else _JUMP)
            for name, requirement in self.problem.requirements.items()
        }

    def _at(self, limits: Floats, division: Division) -> Search:
        """The search under limits, with what outputs weigh at the noises of a division."""
        return replace(self.search.at(division.shares), limits=limits)

    def _squares(self, shares: Shares) -> Floats:
        """What limits speak of, with the weights that belong to these noises."""
        return self.model.at(shares).squares(shares.kinds, shares.strengths)

    def _closed(
        self,
        division: Division,
        solve: Callable[[Floats, Division], Division],
        known: dict[str, float],
        brackets: dict[str, _Bracket],
        widen: bool = True,
    ) -> Division:
        """Move the limits until every requirement is met, and tight where it binds."""
        limits = self._limited(known)
        drawn_near = not widen
        weighed: Model | None = None  # what the limits were about: weights follow the noises, and errors fall with that
        for _ in range(_ROUNDS):
            errors = self.errors(division.shares)
            squares = self._squares(division.shares)
            limited = squares if weighed is None else weighed.squares(division.shares.kinds, division.shares.strengths)
            done = True
            for name, row in self._rows.items():
                bracket, binding = brackets[name], math.isfinite(limits[row])
                slack = binding and limited[row] < limits[row] * (1 - 1e-5)
                slack &= weighed is not None or not self.model.linked
                # An output may be better than its limit for the sake of another, or because there is enough for all.
                if errors[name] <= bracket.within and (not binding or slack):
                    # Slack by weights that belong to other noises may be none by its own.
                    done &= not binding or bool(squares[row] >= limited[row] * (1 - _SETTLED))
                    continue
                now = float(squares[row])
                bracket.record(now, errors[name])
                endless = bracket.endless and division.cost < _NEXT_TO_NOTHING * self.search.target
                if binding and (bracket.met(errors[name]) or endless):
                    continue
                limits[row], done = bracket.following(now, errors[name]), False
            if done:
                return division
            try:
                weighed = self.model.at(division.shares)
                division = solve(limits, division)
            except Unaffordable as refused:
                nearer = None if drawn_near else self._between_limits(limits, division, solve, brackets)
                if nearer is None:
                    raise Unmet(refused.least, limits) from None
                division, drawn_near = nearer, True
        return self._held(division, limits, solve)

    def _limited(self, known: Mapping[str, float]) -> Floats:
        """Limits of all outputs: those that are known, and none."""
        limits = np.full(len(self.model.outputs), math.inf)
        for name, limit in known.items():
            limits[self._rows[name]] = limit
        return limits

    def _held(self, division: Division, limits: Floats, solve: Callable[[Floats, Division], Division]) -> Division:
        """A division that meets them all where no limits were found at which they are just met: tighter than asked.

        What is returned is checked here as everywhere; what still misses is refused.
        """
        limits = limits.copy()
        for turn in range(_ROUNDS):
            errors = self.errors(division.shares)
            missed = {
                name: row
                for name, row in self._rows.items()
                if not errors[name] <= self.problem.requirements[name].within
            }
            if not missed:
                return division
            squares = self._squares(division.shares)
            for name, row in missed.items():
                ratio = max(self.problem.requirements[name].within / errors[name], 0.1)
                less = max(1 - 1e-3 * 1.3**turn, 0.1)
                limits[row] = min(float(squares[row]), limits[row]) * min(ratio, 1.0) ** 2 * less
            try:
                division = solve(limits, division)
            except Unaffordable as refused:
                raise Unmet(refused.least, limits) from None
        raise Unmet(max(division.cost, self.search.target), limits)

    def _between_limits(
        self,
        limits: Floats,
        start: Division,
        solve: Callable[[Floats, Division], Division],
        brackets: Mapping[str, _Bracket],
    ) -> Division | None:
        """An affordable division at limits between those that were tried and those that were seen not to do.

        Errors need not grow with the root of the limit: of few rows they grow faster. A limit that was drawn from one
        far away may be tighter than the requirement asks for, so it is drawn again from nearer before it is refused.
        """
        wider = limits.copy()
        for _ in range(_ROUNDS):
            before = wider.copy()
            for name, row in self._rows.items():
                if math.isfinite(wider[row]) and wider[row] < brackets[name].high < math.inf:
                    wider[row] = math.sqrt(wider[row] * brackets[name].high)
            if np.allclose(wider, before, rtol=_TOLERANCE / 10):  # as near as it comes to what does not do
                return None
            try:
                with np.errstate(over="raise"):
                    return solve(wider, start)
            except (Unaffordable, FloatingPointError):
                continue
        return None

    # --- refusals -----------------------------------------------------------------------------------------------

    def _check_reach(self) -> None:
        """Held noise, or the narrowest noise a mechanism makes, may be too wide already."""
        self._check_limits()
        place, free = np.arange(len(self.model.names)), self.search.divider.free
        kinds = np.where(free, self._strongest_kinds(), self.search.divider.held.kinds)
        strongest = np.where(free, self.model.most[place, kinds], self.search.divider.held.strengths)
        # Errors of very narrow noise take seconds to find, and what the whole budget or an ordinary epsilon gives to
        # each measurement is nearly always enough.
        laplace = free & (kinds == LAPLACE)
        epsilons = [epsilon for epsilon in (self.search.target, *_ORDINARY) if epsilon <= _ORDINARY[-1]]
        ordinary = [np.where(laplace, np.minimum(strongest, epsilon), strongest) for epsilon in epsilons]
        for strengths in (*ordinary, strongest):
            errors = self.errors(Shares(kinds, strengths))
            missed = [name for name, error in errors.items() if not error <= self.problem.requirements[name].within]
            if not missed:
                return
        raise Unreachable(missed[0], errors[missed[0]], self._held_under(missed[0]))

    def _check_limits(self) -> None:
        """An error without a limit, whatever the noise, cannot be required: something must be told first."""
        for output in self.problem.design.outputs:
            if output.name in self.problem.requirements and output.limitless:
                raise Unreachable(output.name, math.inf, [])

    def _strongest_kinds(self) -> Kinds:
        """The first kind that is allowed, which is Laplace noise where there is a choice: it goes furthest."""
        kinds: Kinds = np.argmax(self.model.allowed, axis=1)
        return kinds

    @property
    def cover_everything(self) -> bool:
        """Whether every free slot is read by a statistic that has a requirement."""
        return not self._uncovered()

    def _uncovered(self) -> list[str]:
        """The outputs with a free slot that no requirement speaks of."""
        rows = np.zeros(len(self.model.outputs), dtype=bool)
        rows[list(self._rows.values())] = True
        slots = self.model.slots_of(rows)
        return [
            output.name
            for output in self.problem.design.outputs
            if any(
                self.search.divider.free[self.model.names.index(slot.name)]
                and not slots[self.model.names.index(slot.name)]
                for slot in output.slots
            )
        ]

    def _check_cover(self) -> None:
        """Without a budget to share, a slot that no requirement speaks of has no noise that would be right."""
        missing = self._uncovered()
        if missing:
            raise InvalidValue(
                "require",
                sorted(self.problem.requirements),
                f"must name {listed(missing)} too",
                "the least epsilon is known only when every statistic says how accurate it must be",
            )

    def limits_of(self, division: Division) -> Floats:
        """The limits that are about enough for what is required, seen from a division.

        It may leave a statistic better off than required, for the sake of another one that reads the same slot.
        """
        limits = np.full(len(self.model.outputs), math.inf)
        squares = self._squares(division.shares)
        errors = self.errors(division.shares)
        for name, row in self._rows.items():
            square = float(squares[row])
            # Noise of whole numbers may leave no error at all where it has a deviation.
            deviation = 0.0 if row in self.model.curves else math.sqrt(square / self._scale(name))
            error = max(errors[name], deviation)
            room = max(min(self.problem.requirements[name].within, _FAR) / error, 1.0) if error > 0 else 1.0
            limits[row] = square * room * room
        return limits

    def limits_without(self, name: str) -> Floats:
        """The limits that are about enough for what is required of all statistics but one."""
        others = {other: asked for other, asked in self.problem.requirements.items() if other != name}
        rest = Requirements(replace(self.problem, requirements=others), self.model, self.search)
        with suppress(Unmet):
            if others:
                return rest.limits_of(rest._cheapest()[0])
        return np.full(len(self.model.outputs), math.inf)

    def costs(self, limits: Floats) -> dict[str, float]:
        """What every requirement that binds costs alone."""
        return {
            name: self._with(limits, [row]).cheapest().cost
            for name, row in self._rows.items()
            if math.isfinite(limits[row])
        }

    def closest(self, name: str, limits: Floats) -> float | None:
        """The error of one output when the target, but for what is held and what others require, goes to it."""
        row = self._rows[name]
        other_rows = [other for other in self._rows.values() if other != row and math.isfinite(limits[other])]
        try:
            division = self._with(limits, other_rows).least_error_of(row)
        except Unaffordable:
            return None
        return self.errors(division.shares)[name]

    def _scale(self, name: str) -> float:
        """What a squared error of 1 is in the squares of the model, which are relative."""
        output = next(o for o in self.problem.design.outputs if o.name == name)
        return float(np.mean(1 / np.asarray(output.reference, dtype=float) ** 2))

    def _with(self, limits: Floats, rows: Iterable[int]) -> Search:
        only = np.full(len(limits), math.inf)
        for row in rows:
            only[row] = limits[row]
        return replace(self.search, limits=only)

    def _held_under(self, name: str) -> list[str]:
        output = next(o for o in self.problem.design.outputs if o.name == name)
        return [name] if any(slot.name in self.problem.held for slot in output.slots) else []


def listed(names: Iterable[str]) -> str:
    """At most four quoted names for a sentence; longer lists end in how many more."""
    quoted = [repr(name) for name in names]
    return " and ".join(quoted if len(quoted) <= 4 else [*quoted[:3], f"{len(quoted) - 3} more"])
