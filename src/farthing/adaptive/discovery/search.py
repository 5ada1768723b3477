"""One thing to discover: what it costs, what it will find, how it is searched, and what was found.

A search is a question of the curator (`farthing.curator.questions.Question`): it states its event and its digest, it
checks a dataset before anything is charged, it draws noisy whole numbers, and it makes JSON of them. A finding is read
from that JSON alone, so that a ledger is all it takes to know it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from farthing.data import Dataset
from farthing.data.schema import Domain
from farthing.errors import InvalidValue
from farthing.privacy import Event
from farthing.privacy.events import checked_delta, checked_mechanism_epsilon

Progress = Callable[[float], None]

ROWS = "rows per unit"
"""What the search for a bound on the rows of a unit is called."""


@dataclass(frozen=True)
class Finding:
    """What was found, in the words of JSON and of a schema.

    Args:
        name: The column, or "rows per unit".
        kind: "number", "whole number", "date", "text" or "rows".
        is_usable: Whether there is anything to use; a search that finds nothing is paid for, too.
        sentence: What was found and what that means, in one sentence.
        domain: What the column may hold from now on; None where nothing was found, or it is no column.
        facts: All that was recorded.
        note: What everybody who reads a number about the column must know; empty where nothing was found.

    >>> from farthing.data import Reals
    >>> Finding("income", "number", True, "income: 0 to 200,000", Reals(0, 200_000)).domain
    Reals(lower=0.0, upper=200000.0)
    """

    name: str
    kind: str
    is_usable: bool
    sentence: str
    domain: Domain | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    def __str__(self) -> str:
        return self.sentence


class Search(Protocol):
    """A frozen value: one thing to discover, for a price."""

    @property
    def name(self) -> str:
        """The column that is searched, or "rows per unit"."""

    @property
    def epsilon(self) -> float:
        """What it may cost, at its delta."""

    @property
    def delta(self) -> float:
        """The delta of that; 0 where the search has none."""

    @property
    def prediction(self) -> str:
        """What it will find, in a sentence that holds whatever the rows are."""

    @property
    def event(self) -> Event:
        """What it costs, as an event for the accountant."""

    @property
    def digest(self) -> str:
        """A fingerprint of everything public about it."""

    def check(self, dataset: Dataset) -> None:
        """Refuse a dataset for which the noise would be too small, before anything is charged."""

    def run(self, dataset: Dataset, progress: Progress) -> Mapping[str, Any]:
        """Noisy whole numbers by name."""

    def finish(self, answers: Mapping[str, Any]) -> Mapping[str, Any]:
        """{"finding": ...}: what was found, JSON-ready; it is made of the noisy numbers alone."""


def digest_of(facts: Any) -> str:
    """A fingerprint of JSON-ready facts.

    >>> digest_of(["income", 1])[:8]
    'cdd6e639'
    """
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def checked_price(epsilon: float, delta: float) -> tuple[float, float]:
    """The price of a search as plain numbers."""
    return checked_mechanism_epsilon(epsilon), checked_delta(delta)


def checked_confidence(confidence: float) -> float:
    """How often a search keeps its word: above one half and below 1."""
    if not (isinstance(confidence, int | float) and 0.5 < confidence < 1):
        raise InvalidValue("confidence", confidence, "must be above 0.5 and below 1", "0.95 is usual")
    return float(confidence)


def units_word(dataset: Dataset) -> str:
    """What units are called where they are counted: rows, or units.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> units_word(dataset(pyarrow.table({"age": [1]}), schema={"age": (0, 9)}))
    'rows'
    """
    return f"units ({', '.join(dataset.unit)})" if dataset.unit else "rows"


def refuse_beyond_table(dataset: Dataset, epsilon: float, needed: int, way_out: str) -> None:
    """Refuse a price at which a search can find nothing; only public facts decide.

    Args:
        dataset: The table that is searched.
        epsilon: The price.
        needed: How many units something must hold to be found.
        way_out: What to do instead.

    Raises:
        InvalidValue: If the table is known to have fewer units than that, or fewer rows.

    >>> import pyarrow, farthing as ft
    >>> few = ft.dataset(pyarrow.table({"who": [1, 1]}), unit="who", schema={"who": (0, 9)}, people=1)
    >>> refuse_beyond_table(few, 0.1, 370, "raise epsilon")
    Traceback (most recent call last):
    farthing.errors.InvalidValue: epsilon=0.1: is too small: a search needs 370 units (who) alike, and ...
    """
    public = [number for number in (dataset.people, dataset.rows) if number is not None]
    if public and needed > min(public):
        there = f"{dataset.people:,}" if dataset.people is not None else f"{dataset.rows:,} rows"
        rule = f"is too small: a search needs {needed:,} {units_word(dataset)} alike, and the table has {there}"
        raise InvalidValue("epsilon", epsilon, rule, way_out)
