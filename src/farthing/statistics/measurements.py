"""Measurements: a design whose noises are chosen. What a curator charges for and runs, in one pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from farthing.accounting import compose, sampled_approx_dp
from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.privacy import ApproxDP, Composed, Event
from farthing.privacy.events import checked_delta, checked_real
from farthing.statistics.slots import Integers, Noise, Slot

_TRIVIAL_DELTA = 0.1  # as for plans: an inner delta above this would promise next to nothing


def amplified(event: Event, sampling_rate: float, delta: float) -> ApproxDP:
    """The guarantee of `event` at (at most) `delta` for the population that the table is a secret sample of.

    It holds once: everything that is ever computed on one sample is one mechanism, and only the whole is amplified. Two
    releases from the same sample cost more than the sum of what this says of each.

    >>> from farthing.privacy import Composed, LaplaceNoise
    >>> plan = Composed(((LaplaceNoise(2.0), 2),))
    >>> amplified(plan, 0.01, 0.0)
    ApproxDP(epsilon=0.0170..., delta=0.0)
    """
    rate, whole = checked_rate(sampling_rate), checked_delta(delta)
    inner = min(whole / rate * (1 - 2.0**-50), _TRIVIAL_DELTA) if whole else 0.0
    return sampled_approx_dp(compose([event]).epsilon_at(inner).upper, inner, rate)


def checked_rate(sampling_rate: object) -> float:
    """The probability with which a unit came into the sample.

    >>> checked_rate(0.01)
    0.01
    """
    rate = checked_real(sampling_rate, "sampling_rate")
    if not 0 < rate <= 1:
        raise InvalidValue(
            "sampling_rate", sampling_rate, "must be above 0 and at most 1", "0.01 for one in a hundred"
        )
    return rate


@dataclass(frozen=True)
class Measurements:
    """Slots with their noises, and the columns to derive before the engine adds them up.

    The parameters of all of them are fixed before the first is run: one plan.
    """

    derived: tuple[tuple[str, Any], ...]
    slots: tuple[Slot, ...]
    noises: Mapping[str, Noise]

    def __post_init__(self) -> None:
        names = [slot.name for slot in self.slots]
        if len(set(names)) != len(names) or set(names) != set(self.noises):
            raise InvalidValue("noises", sorted(self.noises), "must name every slot once", f"slots: {names}")

    @cached_property
    def event(self) -> Event:
        """Everything together, as one fixed plan."""
        return Composed(tuple((slot.event(self.noises[slot.name]), 1) for slot in self.slots))

    @cached_property
    def digest(self) -> str:
        """A stable fingerprint of what is measured and how: public facts only."""
        facts = {
            "derived": [[name, repr(what)] for name, what in self.derived],
            "slots": [[*slot.facts, *_told(self.noises[slot.name])] for slot in self.slots],
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def run(self, dataset: Dataset, progress: Callable[[float], None] | None = None) -> dict[str, Integers]:
        """The private numbers of every slot, with its noise: call only after the charge."""
        prepared = dataset.derive(**dict(self.derived)) if self.derived else dataset
        wanted = {name: part for slot in self.slots for name, part in slot.aggregates.items()}
        exact = prepared.exact(wanted, progress)
        return {slot.name: slot.measure(slot.own(exact), self.noises[slot.name]) for slot in self.slots}


def _told(noise: Noise) -> tuple[str, str]:
    return noise.kind, noise.parameter.hex()
