"""What the command line was asked to compose: guarantees as arrays, other events one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from farthing.cli.words import charge_of
from farthing.privacy import ApproxDP, Event

if TYPE_CHECKING:
    from farthing.accounting import Composition

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Charges:
    """(epsilon, delta, count) rows as arrays, so that a million lines stay fast, and the remaining events.

    >>> charges = charges_of_words(["0.1x100", "0.05,1e-7x20", "gaussian:4x10"])
    >>> charges.k, charges.epsilons, charges.events
    (130, array([0.1 , 0.05]), ((GaussianNoise(noise_multiplier=4.0), 10),))
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
        from farthing.accounting import compose

        composed = compose(self.epsilons, self.deltas, self.counts)
        if not self.events:
            return composed
        return composed.plus([event for event, _ in self.events], counts=[count for _, count in self.events])


def charges_of_words(words: Iterable[str]) -> Charges:
    """The charges a list of words stands for.

    >>> charges_of_words(["0.5x3", "0.5"]).counts
    array([3, 1])
    """
    return charges_of_pairs([charge_of(word) for word in words])


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

    >>> joined([charges_of_words(["0.1"]), charges_of_words(["rr:0.2", "0.3x2"])]).k
    4
    """
    empty = np.zeros(0)
    return Charges(
        np.concatenate([empty, *(part.epsilons for part in parts)]),
        np.concatenate([empty, *(part.deltas for part in parts)]),
        np.concatenate([empty.astype(np.int64), *(part.counts for part in parts)]),
        tuple(pair for part in parts for pair in part.events),
    )
