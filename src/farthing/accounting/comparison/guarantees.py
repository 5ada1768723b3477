"""What the classic theorems see of an event: a plain (epsilon, delta) guarantee.

They were proved for black boxes, so noise enters by the guarantee it gives. Laplace noise has a pure one. Gaussian
noise has one for every delta > 0, so a share of the target delta is set aside for it, split evenly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.accounting.comparison.charges import Charges, Floats, Integers
from farthing.accounting.compose import compose
from farthing.accounting.filters.prices import price_of
from farthing.privacy import Event

MOST_PRICED = 200  # distinct noises; pricing each of more would take longer than the optimum itself


@dataclass(frozen=True)
class Guarantees:
    """The charges as the theorems see them; `shared` counts the noises that were given a share of delta."""

    epsilons: Floats
    deltas: Floats
    counts: Integers
    shared: int = 0


def guarantee_of(event: Event) -> tuple[float, float] | None:
    """(epsilon, delta) of one event, rounded up; None where epsilon is infinite unless delta is given away.

    >>> from farthing.privacy import GaussianNoise, LaplaceNoise
    >>> guarantee_of(LaplaceNoise(4.0)), guarantee_of(GaussianNoise(4.0))
    ((0.25, 0.0), None)
    """
    price = price_of(event)
    return None if price.epsilon is None else (_float_upper(price.epsilon), _float_upper(price.leak))


def guarantees_of(charges: Charges, delta: float, share: float) -> Guarantees | None:
    """Every charge as a guarantee; noise without a pure one takes an equal part of `share * delta`.

    None when no part of delta can be given away, or when there are too many kinds of noise to price each.

    >>> from farthing.accounting.comparison import charges_of_pairs
    >>> from farthing.privacy import ApproxDP, GaussianNoise, LaplaceNoise
    >>> charges = charges_of_pairs([(ApproxDP(0.1), 9), (LaplaceNoise(2.0), 1), (GaussianNoise(4.0), 5)])
    >>> seen = guarantees_of(charges, 1e-6, share=0.5)
    >>> seen.counts, seen.shared, seen.deltas[-1] <= 1e-7
    (array([9, 1, 5]), 5, np.True_)
    """
    seen = [(guarantee_of(event), event, count) for event, count in charges.events]
    open_ended = [(event, count) for guarantee, event, count in seen if guarantee is None]
    shared = sum(count for _, count in open_ended)
    part = math.nextafter(share * delta / shared, 0.0) if shared else 0.0
    if shared and (not part > 0 or len(open_ended) > MOST_PRICED):
        return None
    rows = [
        (guarantee or (compose([event]).epsilon_at(part).upper, part), count)
        for guarantee, event, count in seen
    ]
    return Guarantees(
        np.concatenate([charges.epsilons, np.array([pair[0] for pair, _ in rows], dtype=np.float64)]),
        np.concatenate([charges.deltas, np.array([pair[1] for pair, _ in rows], dtype=np.float64)]),
        np.concatenate([charges.counts, np.array([count for _, count in rows], dtype=np.int64)]),
        shared,
    )


def _float_upper(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
