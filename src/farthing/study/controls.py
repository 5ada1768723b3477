"""The controls of a plan as data: what a request was asked with, and what that changes in the problem to be divided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.errors import Infeasible, InvalidValue
from farthing.numerics.digits import ceiling
from farthing.planner import Problem, Requirement
from farthing.planner.offers import told
from farthing.privacy.events import checked_real
from farthing.study.requests import Control, Request


def with_controls(
    request: Request,
    weights: Mapping[str, float],
    requirements: Mapping[str, Requirement],
    reserve: float | None = None,
) -> Request:
    """The request with several controls at once."""
    for name, weight in weights.items():
        request = request.then("weight", name, weight)
    for name, required in requirements.items():
        request = request.then("require", name, required.within, required.confidence)
    return request.then("reserve", reserve) if reserve else request


def fit_control(requirements: Mapping[str, Requirement]) -> Control:
    """`fit` as a control: each statistic with its required error."""
    return ("fit", *sorted([name, each.within, each.confidence] for name, each in requirements.items()))


def required_by(control: Control) -> dict[str, Requirement]:
    """The errors that `fit` was called with."""
    return {name: Requirement(within, confidence) for name, within, confidence in control[1:]}


def changes_of(request: Request, problem: Problem) -> dict[str, Any]:
    """What the controls of a request change in a problem, but for what is held."""
    weights: dict[str, float] = {}
    requirements: dict[str, Requirement] = {}
    found: dict[str, Any] = {}
    for word, *details in request.controls:
        if word == "weight":
            weights[details[0]] = details[1]
        elif word == "require":
            requirements[details[0]] = Requirement(*details[1:])
        elif word == "fit":
            requirements = required_by((word, *details))
        elif word == "reserve":
            share = 1 - details[0] / problem.epsilon
            found = {"reserved": details[0], "delta": problem.delta * share}
    return {**found, "weights": weights, "requirements": requirements}


def refuse_over(needed: float, limit: float, names: tuple[str, ...]) -> None:
    """Refuse what the least epsilon that meets its requirements is too much for."""
    if needed > limit:
        enough = float(ceiling(needed, 4))  # typed back, it does
        left = (
            f"{told(limit)} is left"
            if limit > 0
            else "that is more than the ledger admits after what was spent"
        )
        raise Infeasible(
            f"the errors required of {' and '.join(map(repr, names))} would cost epsilon={told(enough)}, and {left}; "
            "allow a larger error, or raise the budget.",
            blocking=names, closest=None, epsilon=enough,
        )  # fmt: skip


def checked_weight(weight: Any) -> float:
    """A weight that a statistic may have."""
    number = checked_real(weight, "weight")
    if not 1e-6 <= number <= 1e6:
        raise InvalidValue("weight", weight, "must be between 1e-6 and 1e6", "1 is the usual weight")
    return number
