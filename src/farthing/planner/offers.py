"""What could be asked instead of what cannot be met: every offer is accepted by the planner before it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from farthing.errors import Infeasible
from farthing.numerics.bounds import ceiling
from farthing.planner.planning_problem import Problem, Requirement, outer_epsilon
from farthing.planner.requirements import Requirements, Unmet, Unreachable, listed
from farthing.statistics.measurements import EVERY_RELEASE

Lacks = Callable[[Problem], float]
"""What a problem costs at least, as a part of what it may: at most 1 where a plan was found and is proven to fit."""

_MOST = 3  # statistics for which another error is looked for
# Times the estimate that a refusal leaves, until it is accepted.
_MORE = (
    1.0005,
    1.002,
    1.01,
    1.05,
    1.2,
    1.5,
    2.0,
)
_MORE_ANEW = (1.0, 1.002, 1.01, 1.05, 1.2, 1.5)  # times an offer, until it is accepted from the beginning
_HALVINGS = 4  # of a long step from what is refused to what is accepted
_LONG = 1.05
_DESCENTS = 2  # from what is accepted at once
_ROOM = 0.99  # of what is accepted: less is worth a try
_TOO_LARGE = 45.0  # an epsilon that protects nobody is not offered


@dataclass(frozen=True, eq=False)
class Offers:
    """The ways out of a refusal: another error for one statistic, more epsilon, or without what is held."""

    problem: Problem
    requirements: Requirements
    refused: Unmet
    lacks: Lacks
    """With what the ledger still admits."""
    lacks_in_full: Lacks
    """As if nothing had been spent from the ledger."""
    lacks_anew: Lacks
    """With what the ledger still admits, from the beginning: what whoever follows an offer will meet."""

    def refusal(self) -> Infeasible:
        """The refusal in words, with each offer as the number that it says."""
        problem, limits = self.problem, self.refused.limits
        costs = self.requirements.costs(limits)
        target = self.requirements.search.target
        alone = [name for name, cost in costs.items() if not cost < target]
        blocking = alone or list(costs)
        errors = self._errors(sorted(blocking, key=lambda name: -costs[name])[:_MOST])
        hardest = next(iter(errors), None)
        epsilon, held = self._epsilon(self.lacks, problem.most), self._holds_in_the_way()
        in_full = epsilon if epsilon < math.inf else self._epsilon(self.lacks_in_full, math.inf)
        together = "together " * (len(blocking) > 1)
        parts = [
            f"{listed(blocking)} cannot be met {together}with epsilon={exact_text(problem.epsilon)}"
            + (f" ({exact_text(epsilon)} would be enough)" if epsilon < math.inf else self._no_epsilon(in_full))
        ]
        how_often = {name: _how_often(problem, name) for name in errors}
        rest = any(output.name not in problem.requirements for output in problem.design.outputs)
        for name, error in errors.items():
            requirement = problem.requirements[name]
            others = [other for other in problem.requirements if other != name]
            conditions = [f"{listed(others)} as required"] * bool(others) + ["almost nothing for the rest"] * rest
            parts.append(
                f"the closest that fits for {name!r} is within {exact_text(error)}{how_often[name]} "
                f"({100 * requirement.confidence:g}%, not {exact_text(requirement.within)})"
                + f", with {' and '.join(conditions)}"
                * bool(conditions)
            )
        if held:
            parts.append(f"without the hold of {listed(held)} it would fit")
        more = "the budget" if in_full < epsilon else "epsilon"
        parts.append(f"allow a larger error, hold or reserve less, or raise {more}")
        return Infeasible(
            "; ".join(parts) + ".",
            blocking=(*held, *blocking),
            epsilon=epsilon,
            hardest=hardest,
            closest=None if hardest is None else errors[hardest],
            offers=errors,
            holds={name: often.strip() for name, often in how_often.items() if often},
        )

    def _errors(self, names: Iterable[str]) -> dict[str, float]:
        """For each statistic the closest error that is accepted while all else stays as required."""
        errors: dict[str, float] = {}
        for name in names:
            closest = self.requirements.closest(name, self.refused.limits)
            if closest is None:
                continue
            requirement = self.problem.requirements[name]

            def with_error(error: float, name: str = name, requirement: Requirement = requirement) -> Problem:
                requirements = {**self.problem.requirements, name: replace(requirement, within=error)}
                return replace(self.problem, requirements=requirements)

            more = math.nextafter(requirement.within, math.inf)
            # Both functions of this turn are called in it alone.
            error = _accepted(max(closest, more), lambda error: self.lacks(with_error(error)), more)
            error = _accepted_anew(error, lambda error: self.lacks_anew(with_error(error)))
            if error is not None:
                errors[name] = error
        return errors

    def _no_epsilon(self, needed: float) -> str:
        """Why no epsilon is offered, where one of `needed` would do if nothing were spent."""
        if needed < math.inf:
            return f": it takes {exact_text(needed)}, more than the ledger has left for it"
        if math.isfinite(self.problem.most):
            return ", nor with any that is left"
        # A search that found none proves nothing: the sentence is for what is certain.
        return ", nor with any epsilon that protects anyone" * (not self.refused.least < _TOO_LARGE)

    def _epsilon(self, tried: Lacks, most: float) -> float:
        """The epsilon below `most` that would do; infinite where none that protects anybody does."""
        if not self.refused.least < _TOO_LARGE:
            return math.inf
        needed, most = outer_epsilon(self.problem, self.refused.least), min(_TOO_LARGE, most)

        def lacks(epsilon: float) -> float:
            return tried(replace(self.problem, epsilon=epsilon)) if epsilon < most else math.inf

        more = math.nextafter(self.problem.epsilon, math.inf)
        offer = _accepted(max(needed, more), lacks, more)
        return math.inf if offer is None else offer

    def _holds_in_the_way(self) -> list[str]:
        held = self.problem.held
        if not held or not self.lacks(replace(self.problem, held={}, kept={})) <= 1:
            return []
        return sorted({o.name for o in self.problem.design.outputs if any(s.name in held for s in o.slots)})


def unreachable(requirements: Requirements, refused: Unreachable, lacks: Lacks | None) -> Infeasible:
    """The refusal of an error that no noise gives, or not the one that is held; without `lacks`, at any epsilon."""
    problem, name, held = requirements.problem, refused.name, refused.held
    requirement = problem.requirements[name]
    output = next(one for one in problem.design.outputs if one.name == name)
    if math.isinf(refused.error):
        return Infeasible(
            f"{name!r} within {exact_text(requirement.within)} cannot be promised: its error depends on "
            f"{output.depends_on}; {output.limitless}.",
            blocking=(name,),
            closest=None,
            epsilon=math.inf,
            hardest=None,
            offers={},
        )
    least = refused.error
    if lacks is not None:  # what the whole budget gives is a better guess than the narrowest noise
        least = max(least, requirements.closest(name, requirements.limits_without(name)) or least)

    def tried(error: float) -> float:
        instead = {**problem.requirements, name: replace(requirement, within=error)}
        return 1.0 if lacks is None else lacks(replace(problem, requirements=instead))

    narrowest = float(ceiling(refused.error, 4))
    # What is said to be left is the first that is tried.
    closest = narrowest if tried(narrowest) <= 1 else None
    for start in (least, narrowest):
        closest = _accepted(start, tried) if closest is None and start < math.inf else closest
    why = f"the hold of {listed(held)}" if held else "the narrowest noise there is"
    subject = output.assumed_column
    rests = f" {output.condition}" if subject else ""
    ways = [f"say what you expect of {subject}"] * bool(subject) + ["drop the hold"] * bool(held)
    # More epsilon alone does not help below what the narrowest noise leaves, and a larger error alone does.
    often = _how_often(problem, name)
    if closest is None:
        ways.append(f"allow more than {ceiling(least, 4)}")
    else:  # which need not be what the narrowest noise leaves: that may cost more than there is
        dear = f", the closest found that epsilon={exact_text(problem.epsilon)} pays for" * (closest > narrowest)
        ways.append(f"ask for {exact_text(closest)}{dear}")
    return Infeasible(
        f"{name!r} within {exact_text(requirement.within)} cannot be met{rests}: {why} leaves an error of "
        f"{ceiling(refused.error, 4)}{often}; {', or '.join(ways)}.",
        blocking=tuple(held) or (name,),
        closest=closest,
        epsilon=math.inf,
        hardest=None if closest is None else name,
        offers={} if closest is None else {name: closest},
        holds={} if closest is None or not often else {name: often.strip()},
    )


def _accepted_anew(offer: float | None, lacks: Callable[[float], float]) -> float | None:
    """The offer, or a little more, that is also accepted by a search that knows nothing of the refusal."""
    if offer is None:
        return None
    numbers = (float(ceiling(offer * more, 4)) for more in _MORE_ANEW)
    return next((number for number in numbers if lacks(number) <= 1), None)


def _how_often(problem: Problem, name: str) -> str:
    """In how many releases an error that is offered is kept, after a space; empty where it is in every one."""
    (output,) = [one for one in problem.design.outputs if one.name == name]
    return "" if output.holds == EVERY_RELEASE else f" {output.holds}"


def exact_text(number: float) -> str:
    """A number with all of its exact_text: typed back, it is the same.

    >>> exact_text(4.0), exact_text(4.0625), exact_text(1 / 3)
    ('4', '4.0625', '0.3333333333333333')
    """
    text = f"{number:.12g}"
    return text if float(text) == number else repr(number)


def _accepted(least: float, lacks: Callable[[float], float], nothing_below: float = 0.0) -> float | None:
    """A number of few digits, `least` or a little more, that is accepted; less, where there is room.

    A try says by how much the cost exceeds what there is, or falls short of it. Errors and epsilons are about in
    proportion to it: each try begins there, and two to four are enough. Where the last step was a long one, it is
    halved again.
    """
    tried, refused = float(ceiling(least, 4)), math.inf
    for more in _MORE:
        lack = lacks(tried)
        if lack <= 1:
            break
        tried, refused = float(ceiling(tried * min(max(lack, 1.0), 2.0) * more, 4)), tried
    else:
        return None
    for _ in range(_DESCENTS if math.isinf(refused) else 0):
        less = float(ceiling(max(tried * max(lack, 0.5), nothing_below), 4))
        if not less < _ROOM * tried:
            break
        lack = lacks(less)
        if not lack <= 1:
            break
        tried = less
    for _ in range(_HALVINGS):
        between = float(ceiling(math.sqrt(refused * tried), 4))
        if not refused * _LONG < between < tried:
            break
        if lacks(between) <= 1:
            tried = between
        else:
            refused = between
    return tried
