"""What is to be compared: guarantees as arrays, so that a million of them stay fast, and other events one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.compose import Composition, compose
from farthing.privacy import ApproxDP, Event

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Charges:
    """(epsilon, delta, count) rows as arrays, and the remaining events.

    >>> from farthing.privacy import GaussianNoise
    >>> charges = charges_of_pairs([(ApproxDP(0.1), 100), (GaussianNoise(4.0), 10)])
    >>> charges.k, charges.epsilons, charges.events
    (110, array([0.1]), ((GaussianNoise(noise_multiplier=4.0), 10),))
    """

    epsilons: Floats
    deltas: Floats
    counts: Integers
    events: tuple[tuple[Event, int], ...] = ()

    @property
    def k(self) -> int:
        """How many mechanisms run."""
        counts: list[int] = self.counts.tolist()
        return sum(counts) + sum(count for _, count in self.events)

    def without_leaks(self) -> Charges:
        """The same charges with every delta of a guarantee set to 0."""
        return Charges(self.epsilons, np.zeros_like(self.deltas), self.counts, self.events)

    def composition(self) -> Composition:
        """All of them composed."""
        composed = compose(self.epsilons, self.deltas, self.counts)
        if not self.events:
            return composed
        return composed.plus([event for event, _ in self.events], counts=[count for _, count in self.events])


def charges_of_pairs(pairs: Sequence[tuple[Event, int]]) -> Charges:
    """Events with counts, the plain guarantees among them as arrays.

    >>> charges_of_pairs([(ApproxDP(1.0), 2)])
    Charges(epsilons=array([1.]), deltas=array([0.]), counts=array([2]), events=())
    """
    rows = [(event.epsilon, event.delta, count) for event, count in pairs if isinstance(event, ApproxDP)]
    return Charges(
        np.array([row[0] for row in rows], dtype=np.float64),
        np.array([row[1] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], dtype=np.int64),
        tuple((event, count) for event, count in pairs if not isinstance(event, ApproxDP)),
    )


def joined(parts: Sequence[Charges]) -> Charges:
    """Several lists of charges as one.

    >>> joined([charges_of_pairs([(ApproxDP(0.1), 1)]), charges_of_pairs([(ApproxDP(0.3), 2)])]).k
    3
    """
    empty = np.zeros(0)
    return Charges(
        np.concatenate([empty, *(part.epsilons for part in parts)]),
        np.concatenate([empty, *(part.deltas for part in parts)]),
        np.concatenate([empty.astype(np.int64), *(part.counts for part in parts)]),
        tuple(pair for part in parts for pair in part.events),
    )
