"""Are these the same people? What a steward is told when a table that holds an account's people gets another account.

PRIVATE: computed from rows without noise, for a curator alone. Nobody else is told, nothing of it enters a plan or a
release, and whether a release runs does not depend on it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.data.table_identity import pieces_of
from farthing.data.unit_sketch import Share, UnitSketch
from farthing.errors import FarthingError

if TYPE_CHECKING:
    from farthing.data import Dataset
    from farthing.ledger import Ledger

MOST_BYTES = 2**28  # of files that are read for this without being asked for
_LEAST_SHARE = 0.1  # of the people, below which nothing is said


@dataclass(frozen=True)
class Overlap:
    """How many of a table's people an account protects already.

    Args:
        table: What the table is called.
        account: The account.
        share: The share of the table's units that are units of the account's tables.

    >>> print(Overlap("visits-2026.parquet", "patients", Share(3_900, 4_000)))
    97.5% (97.0% to 97.9%) of the units of visits-2026.parquet are in the account 'patients'
    """

    table: str
    account: str
    share: Share

    def __str__(self) -> str:
        return f"{self.share} of the units of {self.table} are in the account {self.account!r}"

    @property
    def advice(self) -> str:
        """The same with what to do about it, for the steward."""
        return (
            f"{self}. If they are the same people, let that account pay: account={self.account!r}. "
            "(Computed from rows, for the steward only: not private.)"
        )


def overlaps_of(ledger: Ledger, dataset: Dataset, sketch: UnitSketch, own: str) -> list[Overlap]:
    """The accounts other than `own` that protect many of these people, the nearest first; for a curator alone."""
    overlaps = []
    for account, tables in ledger.sketches().items():
        if account == own:
            continue
        people = None
        for data in tables.values():
            other = UnitSketch.of_bytes(data)
            people = other if people is None else people.with_units_of(other)
        if people is not None:
            overlaps.append(Overlap(dataset.name, account, sketch.share_in(people)))
    telling = [each for each in overlaps if each.share.is_telling and each.share.value >= _LEAST_SHARE]
    return sorted(telling, key=lambda each: -each.share.value)


def keep_people(ledger: Ledger, dataset: Dataset, sketch: UnitSketch, account: str) -> None:
    """Keep the sketch of a table with its account, so that later tables can be compared with it."""
    texts = [text for piece in pieces_of(dataset.sources()[0]) for text in piece.known_by[:1]]
    ledger.keep_sketch(account, " ".join(sorted(texts)) or f"frame {dataset.name}", sketch.to_bytes())


def is_small(dataset: Dataset) -> bool:
    """Whether one more pass over its rows costs little: a frame, or files that are not large."""
    source = dataset.sources()[0]
    if source.frame is not None:
        return True
    try:
        return bool(source.files) and sum(os.stat(path).st_size for path in source.files) <= MOST_BYTES
    except OSError:
        return False


def sketch_of(dataset: Dataset) -> UnitSketch | None:
    """The sketch of a table's units; None where the engine fails, which is nobody's loss."""
    try:
        return UnitSketch.of(dataset)
    except FarthingError:
        return None
