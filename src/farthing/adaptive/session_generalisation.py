"""What the answers of a query session say about the population that the rows were drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from farthing.adaptive.holdout.population_guarantee import log_histories, posterior_shift, sampling_deviation
from farthing.adaptive.query_session import QuerySessionPlan
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_real

_EXACT = 2.0**-40  # of the confidence: a session has no smaller failure to divide


@dataclass(frozen=True)
class PopulationErrors:
    """How far answers of a session may be from the shares in the population; all errors are shares from 0 to 1.

    Attributes:
        route: Which theorem gives them: "descriptions" or "privacy".
        confidence: The probability that all errors hold at once.
        sampling: How far the rows may be from the population, for the questions that were asked.
        free: The bound on every free answer.
        paid: The bound on every paid answer.

    >>> from farthing.adaptive import plan_query_session
    >>> plan = plan_query_session(256, 0.5, 0.0, alpha=0.05, queries=1000, rows=1_000_000, start="none", updates=4)
    >>> print(population_errors(plan))
    free answers within 0.0559 of the population, paid ones within 0.00607, with confidence 0.9
    """

    route: Literal["descriptions", "privacy"]
    confidence: float
    sampling: float
    free: float
    paid: float

    def __str__(self) -> str:
        return (
            f"free answers within {self.free:.3g} of the population, paid ones within {self.paid:.3g}, "
            f"with confidence {self.confidence:.3g}"
        )


def population_errors(plan: QuerySessionPlan, failure: float = 0.05) -> PopulationErrors:
    """How far all answers of a session, free and paid, may be from the population's shares.

    Args:
        plan: The plan of the session; `rows` must be the exact number of rows.
        failure: The probability with which the bound may fail because of sampling, in addition to that of the plan.

    Returns:
        The errors by the better of two theorems.

    Raises:
        InvalidValue: If `failure` is not above 0 and below 1.

    Statement:
        Let n rows be independent draws, and let every answer be within e rows of the rows' own count but for a chance
        b = 1 - `confidence`. Two bounds on the distance of an answer a / n from the population's share p:
        1. Descriptions, for a start from even weights. The course of a session is settled by which of k questions were
           paid for and by those answers, whole numbers from -e' to n + e' (e' the bound on paid answers). So at most N
           questions can come up (`log_histories` with n + 2 e' + 1 levels), and but for a chance b + f all answers have
           |a / n - p| <= e / n + sqrt((ln N + ln(2 / f)) / (2 n)).
        2. Privacy. Replacing a row is removing one and adding one, so the transcript is (2 epsilon, (1 + e^epsilon)
           delta)-DP for it. But for a chance f every answer has |a / n - p| <= e / n + 2 b / f + g, with g from
           `posterior_shift` at f / 2: given the transcript, the mean distance of the answers from the rows is at most
           e / n + 2 b / f, but for a chance f / 2 (Markov; answers cut off at 0 and n are at most 1 away).
    Source: Dwork, Feldman, Hardt, Pitassi, Reingold & Roth, arXiv:1506.02629v2 (description length); Bassily, Nissim,
        Smith, Steinke, Stemmer & Ullman, STOC 2016, and Jung et al., arXiv:1909.03577 (privacy); with constants as in
        `farthing.adaptive.holdout.population_guarantee`.
    Assumes: rows that are independent draws and that nobody has looked at before; one row for each unit; public
        `rows`; a session that was made without `known` releases.
    Direction: upward; at most 1.
    Checked by: tests/theorems/test_session_generalises.py

    >>> from farthing.adaptive import plan_query_session
    >>> plan = plan_query_session(256, 0.5, 0.0, alpha=0.05, queries=1000, rows=1_000_000, start="none", updates=4)
    >>> population_errors(plan).route
    'descriptions'
    """
    share = checked_real(failure, "failure")
    if not 0 < share < 1:
        raise InvalidValue("failure", failure, "must be above 0 and below 1", "0.05 is usual")
    missed = max(1 - plan.confidence, _EXACT)
    routes = [_by_privacy(plan, share, missed)]
    if plan.opening is None:
        levels = plan.rows + 2 * plan.paid_error + 1
        sampling = sampling_deviation(log_histories(plan.queries, plan.updates, levels), plan.rows, share)
        routes.append(_errors(plan, "descriptions", 1 - missed - share, sampling, 0.0))
    return min(routes, key=lambda one: one.free)


def _by_privacy(plan: QuerySessionPlan, failure: float, missed: float) -> PopulationErrors:
    shift = posterior_shift(2 * plan.epsilon, plan.delta * (1 + math.exp(min(plan.epsilon, 700.0))), failure / 2)
    return _errors(plan, "privacy", 1 - failure, shift, min(1.0, 2 * missed / failure))


def _errors(
    plan: QuerySessionPlan,
    route: Literal["descriptions", "privacy"],
    confidence: float,
    sampling: float,
    unproven: float,
) -> PopulationErrors:
    free, paid = (
        min(1.0, math.nextafter(error / plan.rows + sampling + unproven, math.inf))
        for error in (plan.error, plan.paid_error)
    )
    return PopulationErrors(route, max(0.0, confidence), sampling, free, paid)
