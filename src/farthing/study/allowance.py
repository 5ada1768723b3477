"""How much of a budget one plan may use."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger import Budget
from farthing.ledger.amounts import NANO
from farthing.ledger.charging import command_for_more
from farthing.numerics.digits import shown_down
from farthing.planner import Admits, Allocation, Problem, allocate
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


def allowance_of(budget: Budget, epsilon: float | None = None, whole: Budget | None = None) -> Allowance:
    """All that is left, or `epsilon` of it with the same share of what is left of delta.

    The first plan of an untouched budget may have all of it: nothing was answered yet, so nothing has to be kept for
    choices that depend on answers. Later plans share what the ledger's filters leave. `whole` is the dataset's own
    budget where `budget` is a grant in it: a charge must fit both.
    """
    left, _ = left_of(budget, whole)
    untouched = budget.untouched and not budget.withheld
    if whole is not None:
        untouched = untouched and whole.untouched and not whole.withheld
    aside = _set_aside(budget if whole is None else whole) if _short(budget, whole).analyst == "" else ""
    if epsilon is None and untouched:
        # A grant may be larger than what it is a grant in.
        totals = [budget.total] if whole is None else [budget.total, whole.total]
        return Allowance(min(each.epsilon for each in totals), min(each.delta for each in totals))
    short = _short(budget, whole)
    more = f"ask its curator for more: {command_for_more(short.dataset, short.analyst)}"
    if not left.epsilon > (_CRUMB * budget.total.epsilon if epsilon is None else 0):
        crumb = f" but {left.epsilon:.2g}" if left.epsilon > 0 else ""
        raise BudgetExceeded(
            f"nothing is left of {_called(short)} (epsilon={short.total.epsilon:g}){crumb}; {aside or more}.",
            requested=epsilon,
            remaining=left,
            budget_id=_id(short),
        )
    if epsilon is None:
        return Allowance(left.epsilon, left.delta)
    wanted = checked_epsilon(epsilon)
    if not wanted > 0:
        raise InvalidValue("epsilon", epsilon, "must be > 0", "leave it out for all that is left")
    # A ledger keeps billionths: a third of a budget, or of what is left of it, is wanted as it is kept.
    most = budget.total.epsilon if untouched else left.epsilon
    if 0 < wanted - most < 1 / NANO:
        wanted = most
    if untouched and wanted == budget.total.epsilon:
        return Allowance(wanted, budget.total.delta)
    if not wanted <= left.epsilon:
        raise BudgetExceeded(
            f"a plan of epsilon={wanted:.12g} exceeds the {shown_down(left.epsilon)} left of {_called(short)}; plan "
            f"with no more than that, or "
            f"{aside or more}.",
            requested=wanted,
            remaining=left,
            budget_id=_id(short),
        )
    # Where there is more than one charge plain sums have half of delta, so the parts of a fresh budget share that half.
    delta = budget.total.delta / 2 if untouched else left.delta
    return Allowance(wanted, delta * (wanted / left.epsilon))


def _short(budget: Budget, whole: Budget | None) -> Budget:
    """Which of the two has less left: the grant, or the budget that it is a grant in."""
    if whole is None or budget.remaining.epsilon <= whole.remaining.epsilon:
        return budget
    return whole


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
    return allocate(problem, start, quick=quick, admits=admits)


def _set_aside(budget: Budget) -> str:
    """What reserves keep from plans, and how to free it; nothing where there are none."""
    if not budget.withheld:
        return ""
    kept = sum(amount.epsilon for amount in budget.withheld.values())
    name = next(iter(budget.withheld))
    named = "" if name == "reserve" else f" --name {shlex.quote(name)}"
    return (
        f"free what is set aside by reserves, epsilon={kept:.6g} ({', '.join(map(repr, budget.withheld))}): "
        f"farthing ledger reserve LEDGER {shlex.quote(budget.dataset)}{named} --epsilon 0"
    )
