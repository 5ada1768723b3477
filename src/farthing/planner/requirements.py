"""Errors that must not be exceeded: weights raised until they hold, and the least epsilon that meets them.

A requirement speaks of the error at a confidence, the search of mean squared errors (`limits`). The two move together,
so each requirement keeps a bracket around the limit at which its predicted error is just within; where the distribution
of the error has steps (whole numbers), the bracket closes on the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import InvalidValue
from farthing.planner.allocation_search import Division, Search, Unaffordable
from farthing.planner.design_arrays import Floats, Kinds, Model, Shares, noises_of
from farthing.planner.planning_problem import Problem

_TOLERANCE = 1e-3
_AIM = 3e-4  # below the requirement by so much, relatively, is where the search aims
_ROUNDS = 40
_FAR = 1e100  # an error beyond this is no limit, and its square must stay a number


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
    low: float = 0.0
    high: float = math.inf
    best: float = 0.0

    def record(self, limit: float, error: float) -> None:
        """Take note of the error found at a limit."""
        if error <= self.within:
            self.low, self.best = max(self.low, limit), max(self.best, error)
        else:
            self.high = min(self.high, limit)

    def met(self, error: float) -> bool:
        """Within, and as close as the distribution of the error lets it come."""
        closed = self.high < self.low * (1 + _TOLERANCE / 2)
        return error <= self.within and (error >= self.within * (1 - _TOLERANCE) or closed)

    def following(self, limit: float, error: float) -> float:
        """The next limit to try: errors grow with the root of the limit, more or less."""
        # Whole numbers may have no error at all, at a limit that could still be wider; a line's error may have no end.
        known = min(max(error, self.within / 4), self.within * 8)
        proposed = limit * (self.within * (1 - _AIM) / known) ** 2
        if not self.low < proposed < self.high or self.high < self.low * 1.2:
            proposed = math.sqrt(self.low * self.high) if self.low > 0 and self.high < math.inf else proposed
        return self.low if self.high < self.low * (1 + _TOLERANCE / 2) else proposed


@dataclass(frozen=True, eq=False)
class Requirements:
    """The requirements of a problem, and the search they bind."""

    problem: Problem
    model: Model
    search: Search

    @property
    def _rows(self) -> dict[str, int]:
        return {name: self.model.outputs.index(name) for name in self.problem.requirements}

    def errors(self, shares: Shares) -> dict[str, float]:
        """The promised error of the worst cell of every output that has a requirement, at its confidence."""
        noises = noises_of(self.model, shares, self.problem.held)
        outputs = {output.name: output for output in self.problem.design.outputs}
        return {
            name: float(outputs[name].promised(noises).worst(requirement.confidence))
            for name, requirement in self.problem.requirements.items()
        }

    def met(self, first: Division) -> Division:
        """The best division that meets them all; `first` is the best without any."""
        self._check_reach()
        return self._closed(first, lambda limits, start: replace(self.search, limits=limits).divided(start), {})

    def met_near(self, start: Division, same: Iterable[str]) -> Division:
        """The same from a division at which the requirements `same` are met already: their limits are near."""
        self._check_limits()
        squares = self.model.errors(start.shares.kinds, start.shares.strengths)
        known = {name: float(squares[self._rows[name]]) for name in same}
        limits = np.full(len(self.model.outputs), math.inf)
        for name, limit in known.items():
            limits[self._rows[name]] = limit
        first = replace(self.search, limits=limits).divided(start if known else None)
        return self._closed(first, lambda limits, noises: replace(self.search, limits=limits).divided(noises), known)

    def least(self) -> Division:
        """The cheapest division that meets them all."""
        self._check_reach()
        self._check_cover()
        limits = np.full(len(self.model.outputs), math.inf)
        for name, row in self._rows.items():
            # Any start will do; the reference is a scale that errors of this output are measured by.
            limits[row] = (min(self.problem.requirements[name].within, _FAR) / 2) ** 2 * self._scale(name)
        first = replace(self.search, limits=limits).cheapest()
        start = {name: float(limits[row]) for name, row in self._rows.items()}
        return self._closed(
            first, lambda limits, noises: replace(self.search, limits=limits).least(noises), start, widen=False
        )

    def _closed(
        self,
        division: Division,
        solve: Callable[[Floats, Division], Division],
        known: dict[str, float],
        widen: bool = True,
    ) -> Division:
        """Move the limits until every requirement is met, and tight where it binds."""
        brackets = {name: _Bracket(requirement.within) for name, requirement in self.problem.requirements.items()}
        limits = np.full(len(self.model.outputs), math.inf)
        for name, limit in known.items():
            limits[self._rows[name]] = limit
        drawn_near = not widen
        for _ in range(_ROUNDS):
            errors = self.errors(division.shares)
            squares = self.model.errors(division.shares.kinds, division.shares.strengths)
            done = True
            for name, row in self._rows.items():
                bracket, binding = brackets[name], math.isfinite(limits[row])
                slack = binding and squares[row] < limits[row] * (1 - 1e-5)
                # An output may be better than its limit for the sake of another, or because there is enough for all.
                if errors[name] <= bracket.within and (not binding or slack):
                    continue
                now = float(squares[row])
                bracket.record(now, errors[name])
                if binding and bracket.met(errors[name]):
                    continue
                limits[row], done = bracket.following(now, errors[name]), False
            if done:
                return division
            try:
                division = solve(limits, division)
            except Unaffordable as refused:
                nearer = None if drawn_near else self._between_limits(limits, division, solve, brackets)
                if nearer is None:
                    raise Unmet(refused.least, limits) from None
                division, drawn_near = nearer, True
        return self._held(division, limits, solve)

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
            squares = self.model.errors(division.shares.kinds, division.shares.strengths)
            for name, row in missed.items():
                ratio = max(self.problem.requirements[name].within / errors[name], 0.1)
                limits[row] = min(float(squares[row]), limits[row]) * min(ratio, 1.0) ** 2 * (1 - 1e-3 * 1.3**turn)
            if not (limits > 0).all():
                break
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
        for name, error in self.errors(Shares(kinds, strongest)).items():
            within = self.problem.requirements[name].within
            if error <= within:
                continue
            raise Unreachable(name, error, self._held_under(name))

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
        """The mean squared errors that are about enough for what is required, seen from a division.

        It may leave a statistic better off than required, for the sake of another one that reads the same slot.
        """
        limits = np.full(len(self.model.outputs), math.inf)
        squares = self.model.errors(division.shares.kinds, division.shares.strengths)
        errors = self.errors(division.shares)
        for name, row in self._rows.items():
            square = float(squares[row])
            # Noise of whole numbers may leave no error at all where it has a deviation.
            error = max(errors[name], math.sqrt(square / self._scale(name)))
            room = max(min(self.problem.requirements[name].within, _FAR) / error, 1.0) if error > 0 else 1.0
            limits[row] = square * room * room
        return limits

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
