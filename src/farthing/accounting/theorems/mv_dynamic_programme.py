"""Murtagh and Vadhan's dynamic programme: close to the optimum, in polynomial time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import flint
import numpy as np

from farthing.accounting.theorems._pool import Array, Pool, read_pool
from farthing.accounting.theorems._rounding import rounded_down, rounded_up
from farthing.errors import InvalidValue
from farthing.numerics.balls import precision
from farthing.privacy.events import checked_delta, checked_real

MOST_STEPS = 4_000_000_000
"""Additions of one table cell that are worth waiting for: some ten seconds."""


def mv_dynamic_programme(
    charges: Any, delta_g: float, eta: float = 0.01, deltas: Any = None, counts: Any = None
) -> float:
    """An epsilon within `eta` of OptComp, in time polynomial in k, the mean epsilon and 1 / eta.

    Statement:
        The returned epsilon_star satisfies
            OptComp(charges, delta_g) <= epsilon_star <= OptComp(charges, exp(-eta / 2) delta_g) + eta.
        With beta = eta / (k (1 + mean epsilon) + 1) and epsilon_0 = ln(1 + beta), each epsilon_i is rounded up to
        a_i epsilon_0, a_i = ceil(epsilon_i (1 / beta + 1)), and the least multiple of epsilon_0 that satisfies
        Theorem 1.5 for the rounded charges is returned. A table over the sums of a_i answers each trial.
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), Theorem 1.7; the table is that of
        Lemmas 5.1 and 5.2.
    Assumes: eta > 0; parameters fixed before the first answer; at most `MOST_STEPS` cell additions.
    Direction: an upper bound, rounded up; charge it. The guarantee's right side holds up to the same rounding.
    Checked by: tests/theorems/test_mv_dynamic_programme.py
    Departs from source: the table holds probabilities and each trial adds positive terms only, where the source
        subtracts two exponentially large sums in exact arithmetic; so floats suffice at any delta, with their
        error added. The table is filled once, not once a trial.

    >>> optimum = 4.774568
    >>> optimum <= mv_dynamic_programme([0.1], 1e-6, eta=0.01, counts=[100]) <= optimum + 0.011
    True
    >>> mv_dynamic_programme([0.1, 0.2], 1e-6, eta=0)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: eta=0: must be a finite number > 0; 0.01 is usual.
    """
    number = checked_real(eta, "eta")
    if not 0 < number < math.inf:
        raise InvalidValue("eta", eta, "must be a finite number > 0", "0.01 is usual")
    pool = read_pool(charges, deltas, counts)
    plan = rounding_plan(pool, number)
    if not plan.steps <= MOST_STEPS:
        raise InvalidValue(
            "eta",
            eta,
            f"must not ask for more than {MOST_STEPS} table steps, here {plan.steps:.3g}",
            "raise eta",
        )
    return dynamic_programme_of(pool, checked_delta(delta_g, "delta_g"), plan)


class RoundingPlan(NamedTuple):
    """The lattice of one run: its step epsilon_0, the a_i, and the work that the table will take."""

    step: float
    multiples: Array
    cells: float
    steps: float


def rounding_plan(pool: Pool, eta: float) -> RoundingPlan:
    """The published rounding of these epsilons at this eta."""
    k, total = pool.active, pool.epsilon_sum()
    beta = eta / (k + total + 1)
    step = math.log1p(beta)
    if not step > 0:
        return RoundingPlan(step, pool.epsilons, math.inf, math.inf)
    with np.errstate(over="ignore"):
        multiples = np.ceil(pool.epsilons * (1 / beta + 1))
        # 1 / ln(1 + beta) < 1 / beta + 1 leaves room for rounding; one more step where a float still fell short.
        multiples += (multiples * step) * (1 - 2.0**-52) < pool.epsilons
        cells = float(multiples @ pool.counts) / 2 + 1
    return RoundingPlan(step, multiples, cells, cells * k)


def dynamic_programme_of(pool: Pool, delta_g: float, plan: RoundingPlan) -> float:
    """The bound for charges already read."""
    with precision(128):
        slack = rounded_down(pool.left_by_product(delta_g))
    if not slack >= 0:
        return math.inf
    if not len(pool.epsilons):
        return 0.0
    multiples = np.repeat(plan.multiples, pool.counts).astype(np.int64).tolist()
    whole = sum(multiples)
    table = _table(multiples, plan.step, whole // 2 + 1)
    # Per cell: 16 roundings for each charge (its two probabilities, two products, a sum), and the rounding of its
    # exponent a_i epsilon_0, which an exponential turns into a relative error. Then the terms and their sum.
    inflation = 1 + (16 * len(multiples) + 2 * whole * plan.step + len(table) + 64) * 2.0**-53
    lost = len(multiples) * len(table) * 2.0**-1073  # what products may have lost to underflow

    def satisfied(a_star: int) -> bool:
        """Whether D(a_star epsilon_0) <= slack; cell j holds the losses (whole - 2 j) epsilon_0."""
        count = min(len(table), (whole - a_star + 1) // 2)
        distances = (whole - a_star) - 2.0 * np.arange(count)
        delta = float(table[:count] @ -np.expm1(-plan.step * distances))
        return delta * inflation + lost <= slack if count else True

    low, high = -1, whole  # D is 0 at the largest loss, and falls everywhere: bisect
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if satisfied(middle) else (middle, high)
    with precision(128):
        return rounded_up(flint.arb(high) * flint.arb(plan.step))


def _table(multiples: list[int], step: float, cells: int) -> Array:
    """Cell j: the probability that the charges whose loss is negative have multiples adding to j.

    One charge after the other, largest last (its shift leaves the fewest cells to move), in place from above.
    """
    table = np.zeros(cells)
    table[0] = 1.0
    reached = 1
    for a in sorted(multiples):
        truth = 1 / (1 + math.exp(-a * step))
        lie = truth * math.exp(-a * step)
        reached = min(cells, reached + a)
        shifted = lie * table[: max(0, reached - a)]
        table[:reached] *= truth
        table[a:reached] += shifted
    return table
