"""How much of a budget one plan may use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.errors import BudgetExceeded, Infeasible, InvalidValue
from farthing.ledger import Budget
from farthing.ledger.charge_lifecycle import all_of, command_for_more, command_to_free
from farthing.numerics.bounds import shown_down
from farthing.planner import Admits, Allocation, Problem, allocate
from farthing.planner.planning_problem import NANO
from farthing.privacy import ApproxDP
from farthing.privacy.events import checked_epsilon

if TYPE_CHECKING:
    from farthing.study.plan import Plan
    from farthing.study.study import Study

_CRUMB = 1e-5  # of a budget: what a plan of all of it leaves for rounding is not worth another plan


@dataclass(frozen=True)
class Allowance:
    """Epsilon and delta for one plan."""

    epsilon: float
    delta: float


def spender(study: Study) -> str:
    """Whose grant pays; nobody's where it is the budget itself."""
    return study.analyst or ""


def left_of(budget: Budget, whole: Budget | None = None) -> tuple[ApproxDP, bool]:
    """The largest charge that would be admitted now, and whether that is next to nothing.

    `whole` is the dataset's own budget where `budget` is a grant in it: a charge must fit both.
    """
    left = budget.remaining
    if whole is not None:
        rest = whole.remaining
        left = ApproxDP(min(left.epsilon, rest.epsilon), min(left.delta, rest.delta))
    return left, not left.epsilon > _CRUMB * budget.total.epsilon


def allowances_of(
    budgets: Iterable[tuple[Budget, Budget | None]], epsilon: float | None = None
) -> list[Allowance]:
    """What each account that pays allows; all that allow too little are named in one refusal."""
    found = [_allowance(budget, epsilon, whole) for budget, whole in budgets]
    short = {_id(each): each for part in found if isinstance(part, list) for each in part}
    if short:
        raise _exceeded(list(short.values()), epsilon)
    return [part for part in found if isinstance(part, Allowance)]


def _allowance(budget: Budget, epsilon: float | None, whole: Budget | None) -> Allowance | list[Budget]:
    """All that is left, or `epsilon` of it with the same share of what is left of delta.

    The first plan of an untouched budget may have all of it: nothing was answered yet, so nothing has to be kept for
    choices that depend on answers. Later plans share what the ledger's filters leave. `whole` is the dataset's own
    budget where `budget` is a grant in it: a charge must fit both. Those of the two that have too little, if one does.
    """
    wanted = 0.0 if epsilon is None else checked_epsilon(epsilon)
    if epsilon is not None and not wanted > 0:
        raise InvalidValue("epsilon", epsilon, "must be > 0", "leave it out for all that is left")
    left, _ = left_of(budget, whole)
    both = [budget] if whole is None else [budget, whole]
    untouched = budget.untouched and not budget.withheld
    if whole is not None:
        untouched = untouched and whole.untouched and not whole.withheld
    if epsilon is None and untouched:
        # A grant may be larger than what it is a grant in.
        totals = [budget.total] if whole is None else [budget.total, whole.total]
        return Allowance(min(each.epsilon for each in totals), min(each.delta for each in totals))
    crumb = _CRUMB * budget.total.epsilon if epsilon is None else 0
    if not left.epsilon > crumb:
        return [each for each in both if not each.remaining.epsilon > max(crumb, wanted - 1 / NANO)]
    if epsilon is None:
        return Allowance(left.epsilon, left.delta)
    # A ledger keeps billionths: a third of a budget, or of what is left of it, is wanted as it is kept.
    most = budget.total.epsilon if untouched else left.epsilon
    if 0 < wanted - most < 1 / NANO:
        wanted = most
    if untouched and wanted == budget.total.epsilon:
        return Allowance(wanted, budget.total.delta)
    if not wanted <= left.epsilon:
        return [each for each in both if not wanted <= each.remaining.epsilon]
    # Where there is more than one charge plain sums have half of delta, so the parts of a fresh budget share that half.
    delta = budget.total.delta / 2 if untouched else left.delta
    return Allowance(wanted, delta * (wanted / left.epsilon))


def _exceeded(short: list[Budget], epsilon: float | None) -> BudgetExceeded:
    """What is in the way of a plan, all of it, and how much in all each would have to be."""
    least = min(short, key=lambda each: each.remaining.epsilon)
    left = least.remaining
    ways = all_of(_way_out(each, epsilon) for each in short)
    if epsilon is None or not any(each.remaining.epsilon > 0 for each in short):
        crumb = f" but {left.epsilon:.2g}" if left.epsilon > 0 else ""
        spent = " and ".join(f"{_called(each)} (epsilon={each.total.epsilon:g})" for each in short)
        told = f"nothing is left of {spent}{crumb}; {ways}."
    else:
        lefts = " and ".join(
            f"the {shown_down(each.remaining.epsilon)} left of {_called(each)}" for each in short
        )
        most = "that" if len(short) == 1 else shown_down(left.epsilon)
        lower = f"plan with no more than {most}, or " if left.epsilon > 0 else ""
        told = f"a plan of epsilon={epsilon:.12g} exceeds {lefts}; {lower}{ways}."
    return BudgetExceeded(told, requested=epsilon, remaining=left, budget_id=_id(least))


def _way_out(budget: Budget, epsilon: float | None) -> str:
    """How a budget that has too little comes to have enough: for the plan that was asked for, or for as much again."""
    wanted = budget.total.epsilon or 1.0 if epsilon is None else epsilon
    more = command_for_more(
        budget.place, budget.dataset, budget.analyst, budget.total_for(wanted), budget.total
    )
    kept = sum(amount.epsilon for amount in budget.withheld.values())
    enough = kept > 0 if epsilon is None else budget.remaining.epsilon + kept >= epsilon
    if not (kept and enough):
        return more
    return f"{command_to_free(budget.place, budget.dataset, budget.withheld, kept)}, or {more}"


def _called(budget: Budget) -> str:
    if budget.analyst:
        return f"the grant of {budget.analyst!r} in {budget.dataset!r}"
    return f"the budget of {budget.dataset!r}"


def _id(budget: Budget) -> str:
    return f"{budget.dataset}/{budget.analyst}" if budget.analyst else budget.dataset


def admitting(study: Study, delta: float) -> Admits | None:
    """What the ledger says to a charge at this delta; None where nothing was spent, and the budget says it all."""
    budgets = [study.budget] if study.analyst is None else [study.budget, study.ledger.budget(study.name)]
    if all(budget.untouched and not budget.withheld for budget in budgets):
        return None
    return lambda event: study.ledger.admits(study.name, event, delta=delta, analyst=study.analyst)


def allocated(
    plan: Plan, problem: Problem, start: Allocation | None = None, *, quick: bool = False
) -> Allocation:
    """The noises that the ledger would admit now; it is not asked about what was released, or is only looked at."""
    new = plan.earlier is None and not quick
    admits = admitting(plan.study, problem.delta) if new else None
    try:
        return allocate(problem, start, quick=quick, admits=admits)
    except Infeasible:
        if admits is not None:  # where others have spent meanwhile, that is the reason
            plan.study.allowance(plan.epsilon)
        raise
