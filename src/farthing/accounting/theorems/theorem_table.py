"""The theorems side by side: the few that every price is shown under, and all of them at the same delta."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.accounting.theorems._pool import Pool, read_pool, rounded_down
from farthing.accounting.theorems.basic_and_advanced import advanced_of, pure_advanced_of
from farthing.accounting.theorems.kairouz_oh_viswanath import (
    MOST_CHARGES,
    kov_heterogeneous_of,
    optimum_of_equals,
)
from farthing.accounting.theorems.murtagh_vadhan import (
    dynamic_programme_of,
    enumeration_of,
    rounding_plan,
)
from farthing.accounting.theorems.renyi_dp import renyi_composition_of
from farthing.accounting.theorems.zero_concentrated_dp import epsilon_of_zcdp_improved
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_delta


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem that prices are shown under, wherever they are shown.

    Attributes:
        key: Its name in data and in routes.
        name: Its name in tables and reports.
        label: Its name in the legend of a chart.
        remark: What it says, in one line.

    >>> [theorem.key for theorem in COMPARED]
    ['basic', 'advanced', 'kov', 'optimal', 'own']
    """

    key: str
    name: str
    label: str
    remark: str


COMPARED = (
    Theorem("basic", "plain sum", "basic", "epsilons and deltas add up"),
    Theorem("advanced", "advanced composition", "DRV", "Dwork, Rothblum and Vadhan 2010"),
    Theorem("kov", "KOV bound", "KOV bound", "Kairouz, Oh and Viswanath 2015, closed form"),
    Theorem("optimal", "optimal composition", "optimal", "the best for black boxes of these epsilons"),
    Theorem(
        "own",
        "exact curves",
        "exact curves",
        "what is charged: the noise is known, so its exact curves are composed",
    ),
)
"""What a plan's price is shown under, from the oldest theorem to what is charged."""

BLACK_BOX = COMPARED[:-1]
"""Those that know a mechanism only by its epsilon and delta."""

QUICK_ENUMERATION = 16
"""So many charges are enumerated in the table; `mv_enumeration` itself takes more, and more time."""

QUICK_STEPS = 2e8
"""So many cell additions the table spends on the dynamic programme: about half a second."""

_LEAKS_FIRST = "the leaks are paid first, by MV16 Theorem 1.5"
_LEAKS_TOO_LARGE = "the leaks alone are above delta_g"


@dataclass(frozen=True, slots=True)
class Row:
    """One theorem's answer.

    Attributes:
        name: The theorem's name in tables.
        epsilon: An upper bound on the optimum; inf when the theorem gives none.
        source: Where the theorem stands.
        applies: Whether the theorem says anything about these charges.
        note: Why not, if it does not.

    >>> table([0.5], None, [2], 0.0)[0]
    Row(name='basic sum', epsilon=1.0, source='DKMMN06, DL09', applies=True, note='')
    """

    name: str
    epsilon: float
    source: str
    applies: bool = True
    note: str = ""


def table(epsilons: Any, deltas: Any, counts: Any, delta_g: float, *, eta: float = 0.01) -> list[Row]:
    """Every theorem of this package at `delta_g`, for charges given as `farthing.compose` takes them.

    Args:
        epsilons: The epsilons of the charges.
        deltas: The delta of each; None for pure charges.
        counts: How often each is made; None for once.
        delta_g: The delta of the whole.
        eta: How far above the optimum the dynamic programme may be.

    Returns:
        One row for each theorem; those that do not apply say why.

    Raises:
        InvalidValue: If something is not a charge, or `delta_g` is not a number from 0 to 1.

    Statement:
        The epsilon of every row is at least OptComp(charges, delta_g), the least epsilon that holds for all
        mechanisms of these parameters. Free parameters are spent on it: the slack delta' is all that the leaks
        leave, a Renyi order is the best one found.
    Source: that of each row.
    Assumes: parameters fixed before the first answer. A row with `applies=False` says in its note what else its
        theorem would need, or that it would take too long here; its epsilon is inf.
    Direction: upper bounds, rounded up.
    Checked by: tests/theorems/test_side_by_side.py

    >>> for row in table([0.1], None, [100], 1e-6):
    ...     print(f"{row.name:24}{row.epsilon:10.6f}  {row.source}" if row.applies else f"{row.name}: {row.note}")
    basic sum                10.000000  DKMMN06, DL09
    advanced                  6.308231  DRV10 Theorem III.3
    advanced, pure            5.756522  BS16 Propositions 1.3, 1.4
    KOV closed form           5.756106  KOV15 Theorem 3.4
    zCDP                      5.221534  CKS20 Proposition 12
    Renyi                     5.577053  Mironov17 Proposition 3
    Renyi, improved           5.073106  CKS20 Proposition 12
    MV dynamic programme      4.779064  MV16 Theorem 1.7
    MV enumeration: 2^100 subsets: more than 2^16 are not enumerated here
    KOV exact                 4.774568  KOV15 Theorem 3.3
    """
    pool = read_pool(epsilons, deltas, counts)
    return list(_rows(pool, checked_delta(delta_g, "delta_g"), eta))


def _rows(pool: Pool, delta_g: float, eta: float) -> Iterator[Row]:
    with precision(128):
        left = pool.left_by_product(delta_g)
        slack = rounded_down(left)
    leaky = bool(len(pool.leaks))
    too_large = _LEAKS_TOO_LARGE if not slack >= 0 else ""
    paid_first = too_large or (_LEAKS_FIRST if leaky else "")
    unequal = "sums in place of k times" if not pool.alike else ""

    by_sum = pool.left_by_sum(delta_g)
    adds = "" if by_sum >= 0 else "the deltas add to more than delta_g"
    yield Row("basic sum", pool.epsilon_sum() if by_sum >= 0 else math.inf, "DKMMN06, DL09", note=adds)
    no_slack = "" if by_sum > 0 else "the deltas leave nothing of delta_g"
    yield Row("advanced", advanced_of(pool, delta_g), "DRV10 Theorem III.3", note=no_slack or unequal)
    none_left = too_large or ("nothing of delta_g is left" if slack == 0 and len(pool.epsilons) else "")
    yield Row(
        "advanced, pure",
        pure_advanced_of(pool, delta_g),
        "BS16 Propositions 1.3, 1.4",
        note=none_left or paid_first,
    )
    closed = "KOV15 Theorem 3.4" if pool.alike else "KOV15 Theorem 3.5"
    yield Row("KOV closed form", kov_heterogeneous_of(pool, delta_g), closed, note=too_large)
    yield Row("zCDP", _by_zcdp(pool, slack), "CKS20 Proposition 12", note=none_left or paid_first)
    for name, improved, source in (
        ("Renyi", False, "Mironov17 Proposition 3"),
        ("Renyi, improved", True, "CKS20 Proposition 12"),
    ):
        yield Row(name, renyi_composition_of(pool, delta_g, improved), source, note=paid_first)
    yield _dynamic_programme(pool, delta_g, eta, too_large)
    yield _enumeration(pool, delta_g, too_large)
    yield _equals(pool, delta_g, too_large)


def _by_zcdp(pool: Pool, slack: float) -> float:
    if not slack >= 0:
        return math.inf
    rho = pool.sum_of(np.square) / 2
    return epsilon_of_zcdp_improved(rho, slack) if math.isfinite(rho) else math.inf


def _dynamic_programme(pool: Pool, delta_g: float, eta: float, note: str) -> Row:
    name, source = "MV dynamic programme", "MV16 Theorem 1.7"
    for wider in (1, 10):
        plan = rounding_plan(pool, wider * eta)
        # The table is scanned some thirty times at the end, whatever the number of charges.
        if plan.steps * max(1.0, 30 / max(1, pool.active)) <= QUICK_STEPS:
            remark = note or f"eta = {wider * eta:g}"
            return Row(name, dynamic_programme_of(pool, delta_g, plan), source, note=remark)
    needed = f"about {plan.steps:.0e} steps even at eta = {10 * eta:g}: not run here"
    return Row(name, math.inf, source, applies=False, note=needed)


def _enumeration(pool: Pool, delta_g: float, note: str) -> Row:
    name, source = "MV enumeration", "MV16 Theorem 1.5"
    if pool.active > QUICK_ENUMERATION:
        many = f"2^{pool.active} subsets: more than 2^{QUICK_ENUMERATION} are not enumerated here"
        return Row(name, math.inf, source, applies=False, note=many)
    return Row(name, enumeration_of(pool, delta_g).upper, source, note=note)


def _equals(pool: Pool, delta_g: float, note: str) -> Row:
    name, source = "KOV exact", "KOV15 Theorem 3.3"
    if len(pool.epsilons) > 1:
        return Row(name, math.inf, source, applies=False, note="the charges have different epsilons")
    if pool.active > MOST_CHARGES:
        return Row(name, math.inf, source, applies=False, note=f"more than {MOST_CHARGES:.0e} charges")
    epsilon = float(pool.epsilons[0]) if len(pool.epsilons) else 0.0
    bounds = optimum_of_equals(epsilon, pool.active, lambda: pool.left_by_product(delta_g))
    return Row(name, bounds.upper, source, note=note or ("" if pool.alike else _LEAKS_FIRST))
