"""How much of a budget one plan may use."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.errors import BudgetExceeded, InvalidValue
from farthing.ledger import Budget
from farthing.privacy.events import checked_epsilon

_CRUMB = 1e-5  # of a budget: what a plan of all of it leaves for rounding is not worth another plan


@dataclass(frozen=True)
class Allowance:
    """Epsilon and delta for one plan."""

    epsilon: float
    delta: float


def allowance_of(budget: Budget, epsilon: float | None = None) -> Allowance:
    """All that is left, or `epsilon` of it with the same share of what is left of delta.

    The first plan of an untouched budget may have all of it: nothing was answered yet, so nothing has to be kept for
    choices that depend on answers. Later plans share what the ledger's filters leave.
    """
    left = budget.remaining
    untouched = budget.count == 0 and not budget.withheld
    if epsilon is None and untouched:
        return Allowance(budget.total.epsilon, budget.total.delta)
    if not left.epsilon > (_CRUMB * budget.total.epsilon if epsilon is None else 0):
        crumb = f" but {left.epsilon:.2g}" if left.epsilon > 0 else ""
        raise BudgetExceeded(
            f"nothing is left of the budget of {budget.dataset!r} (epsilon={budget.total.epsilon:g}){crumb}; "
            "ask its curator for more: farthing ledger budget set.",
            requested=epsilon,
            remaining=left,
        )
    if epsilon is None:
        return Allowance(left.epsilon, left.delta)
    wanted = checked_epsilon(epsilon)
    if not wanted > 0:
        raise InvalidValue("epsilon", epsilon, "must be > 0", "leave it out for all that is left")
    if untouched and wanted == budget.total.epsilon:
        return Allowance(wanted, budget.total.delta)
    if not wanted <= left.epsilon:
        raise BudgetExceeded(
            f"a plan of epsilon={wanted:g} exceeds the {left.epsilon:.6g} left of the budget of {budget.dataset!r}; "
            "plan with less, or ask its curator for more.",
            requested=wanted,
            remaining=left,
        )
    return Allowance(wanted, left.delta * (wanted / left.epsilon))
