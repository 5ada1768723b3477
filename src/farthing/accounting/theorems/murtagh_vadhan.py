"""Murtagh and Vadhan's dynamic programme: close to the optimum, in polynomial time.

Theorem 1.7, Lemmas 5.1 and 5.2 and the steps of the grid were compared with published code by J. Murtagh; see
docs/theorems.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import flint
import numpy as np

from farthing.accounting.theorems._pool import Array, Pool, read_pool, rounded_down, rounded_up
from farthing.errors import InvalidValue
from farthing.numerics import Bounds
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_delta, checked_real

MOST_CHARGES = 20
"""Enumeration visits 2^k subsets; this many take about a second."""

_MOST_BITS = 1 << 28  # of all masses together: beyond it a wider interval is better than a full memory


def mv_enumeration(charges: Any, delta_g: float, deltas: Any = None, counts: Any = None) -> Bounds:
    """OptComp of any charges at `delta_g`, by visiting every subset of them.

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        delta_g: The delta of the whole.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        Bounds that hold the optimum.

    Raises:
        InvalidValue: If something is not a charge, or there are too many subsets to visit.

    Statement:
        OptComp((epsilon_1, delta_1), ..., (epsilon_k, delta_k), delta_g), the least epsilon_g for which every
        adaptive composition of such mechanisms is (epsilon_g, delta_g)-DP, is the least epsilon_g >= 0 with
            sum over S of max(0, exp(sum_{i in S} epsilon_i) - exp(epsilon_g + sum_{i not in S} epsilon_i))
                <= prod(1 + exp(epsilon_i)) (1 - (1 - delta_g) / prod(1 - delta_i)).
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), Theorem 1.5.
    Assumes: parameters fixed before the first answer; at most `MOST_CHARGES` positive epsilons, because the sum has
        2^k terms and computing it is #P-complete (the same paper, Theorem 1.6).
    Direction: charge `upper`; `lower` is for tests and reports only.
    Checked by: tests/theorems/test_mv_enumeration.py

    >>> bounds = mv_enumeration([0.3, 0.5, 0.7, 1.1], 0.01)
    >>> round(bounds.estimate, 9), bounds.width < 1e-14
    (2.542596626, True)
    >>> mv_enumeration([1.0, 2.0], 1e-9, deltas=[1e-9, 0.0]).upper
    3.0
    """
    pool = read_pool(charges, deltas, counts)
    return enumeration_of(pool, checked_delta(delta_g, "delta_g"))


def enumeration_of(pool: Pool, delta_g: float) -> Bounds:
    """The optimum of charges already read."""
    if pool.active > MOST_CHARGES:
        raise InvalidValue(
            "k",
            pool.active,
            f"must be at most {MOST_CHARGES}: 2^k subsets are visited",
            "use farthing.compose",
        )
    epsilons = pool.expanded()
    with precision(128):
        left = pool.left_by_product(delta_g)
        if left < 0:
            return Bounds(math.inf, math.inf)
        if not left >= 0:  # more leaks than are multiplied exactly, and their product too close to call
            return Bounds(0.0, math.inf)
        if not len(epsilons):
            return Bounds(0.0, 0.0)
        if left.is_zero():
            total = sum((flint.arb(e) for e in epsilons.tolist()), flint.arb(0))
            return Bounds(rounded_down(total), rounded_up(total))
        log_slack = rounded_down(left.log())
    if not (total_upper := pool.epsilon_sum()) < 1e300:  # sums of such losses leave the range of floats
        return Bounds(0.0, total_upper)
    atoms = _Atoms(epsilons, log_slack)
    bits, digits = 128, -1
    while True:
        with precision(bits):
            bounds = atoms.bounds(left := pool.left_by_product(delta_g))
        # Losses are known to `error`, so more digits in the masses cannot make the interval thinner than that.
        # Nor is there more to learn from a slack that was added up in floats.
        former, digits = digits, left.rel_accuracy_bits()
        stuck = digits < bits and digits <= former
        if bounds.width <= 8 * atoms.error or (bits << len(epsilons)) >= _MOST_BITS or stuck:
            return bounds
        bits *= 2


class _Atoms:
    """Every subset S as an atom: loss L = sum of +-epsilon_i, mass P, and mass Q = exp(-L) P on the other side."""

    def __init__(self, epsilons: Array, log_slack: float) -> None:
        losses, masses = np.zeros(1), np.ones(1)
        for epsilon in epsilons.tolist():
            truth = 1 / (1 + math.exp(-epsilon))
            losses = np.concatenate([losses + epsilon, losses - epsilon])
            masses = np.concatenate([masses * truth, masses * (truth * math.exp(-epsilon))])
        self.epsilons = epsilons.tolist()
        self.order = np.argsort(-losses, kind="stable")
        self.losses = losses[self.order]
        # k additions, each rounded by at most half a unit in the last place of the largest sum.
        self.error = 1.01 * 2.0**-53 * len(epsilons) * float(losses[0])
        self.start = self._cell(masses[self.order], log_slack)

    def _cell(self, masses: Array, log_slack: float) -> int:
        """How many atoms lie above the answer, in floats: the least j with D(L[j]) > slack."""
        low, high = 0, len(masses)
        while high - low > 1:
            j = (low + high) // 2
            delta = masses[:j] @ -np.expm1(self.losses[j] - self.losses[:j])
            low, high = (j, high) if delta <= 0 or math.log(delta) <= log_slack else (low, j)
        return high

    def bounds(self, slack: Any) -> Bounds:
        """The optimum at `slack`, in the working precision."""
        sums = self._sums()
        place, visited = self.start, set()
        while place not in visited:
            # Newton's method on a convex function made of lines (in exp(x)): it ends on the right line.
            visited.add(place)
            a, b = sums(place)
            crossing = ((a - slack) / b).log() if a > slack else flint.arb(0)
            place = max(1, self._above(max(0.0, float(crossing.mid()))))
        # By any set of atoms D is at least A - exp(x) B, so the crossing of any such line is a lower bound.
        upper = self._least_good(max(0.0, rounded_up(crossing)), slack, sums)
        return Bounds(min(max(0.0, rounded_down(crossing)), upper), upper)

    def _least_good(self, start: float, slack: Any, sums: Callable[[int], tuple[Any, Any]]) -> float:
        """The first float from `start` on, in growing steps, where D is surely at most the slack."""
        top = rounded_up(sum((flint.arb(e) for e in self.epsilons), flint.arb(0)))
        doubt = flint.arb(self.error).expm1()
        step = max(self.error, math.ulp(start))
        while start < top:
            a, b = sums(self._above(start))
            # An atom whose loss is within `error` of x may stand on the wrong side of it, by that much.
            near = sums(self._above(start - 2 * self.error))[0] - sums(self._above(start + 2 * self.error))[0]
            if a - flint.arb(start).exp() * b + doubt * near <= slack:
                return start
            start, step = start + step, 2 * step
        return top  # D is 0 from the largest loss on

    def _above(self, x: float) -> int:
        return int(np.searchsorted(-self.losses, -x, side="left"))

    def _sums(self) -> Callable[[int], tuple[Any, Any]]:
        """A(n), B(n): the masses P and Q of the n atoms of largest loss, moved from the last n asked for."""
        masses = [flint.arb(1)]
        for epsilon in self.epsilons:
            truth = 1 / (1 + (-flint.arb(epsilon)).exp())
            lie = truth * (-flint.arb(epsilon)).exp()
            masses = [mass * truth for mass in masses] + [mass * lie for mass in masses]
        order, last = self.order.tolist(), len(masses) - 1
        state = (0, flint.arb(0), flint.arb(0))

        def sums(n: int) -> tuple[Any, Any]:
            nonlocal state
            have, a, b = state
            for atom in order[have:n]:
                a += masses[atom]
                b += masses[last - atom]  # the complement: Q of a set is P of the other side
            for atom in order[n:have]:
                a -= masses[atom]
                b -= masses[last - atom]
            state = (n, a, b)
            return a, b

        return sums


MOST_STEPS = 4_000_000_000
"""Additions of one table cell that are worth waiting for: some ten seconds."""


def mv_dynamic_programme(
    charges: Any, delta_g: float, eta: float = 0.01, deltas: Any = None, counts: Any = None
) -> float:
    """An epsilon within `eta` of OptComp, in time polynomial in k, the mean epsilon and 1 / eta.

    Args:
        charges: Epsilons or (epsilon, delta) pairs, as `farthing.compose` takes them.
        delta_g: The delta of the whole.
        eta: How far above the optimum the answer may be, > 0.
        deltas: The delta of each charge, where `charges` are epsilons.
        counts: How often each charge is made; once by default.

    Returns:
        The epsilon, rounded up.

    Raises:
        InvalidValue: If something is not a charge, or `eta` is so small that the table would not fit.

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
            f"must not need more than {MOST_STEPS} table steps, here {plan.steps:.3g}",
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
