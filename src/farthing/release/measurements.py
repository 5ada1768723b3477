"""Measurements: a design whose noises are chosen. What a curator charges for and runs, in one pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from farthing.data import Dataset
from farthing.errors import InvalidValue
from farthing.privacy import Composed, Event
from farthing.release.noise import Noise
from farthing.release.slots import Integers, Slot


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
