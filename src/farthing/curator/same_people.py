"""Are these the same people? What a steward is told when a table that holds an account's people gets another account.

PRIVATE: computed from rows without noise, for a curator alone. Nobody else is told, nothing of it enters a plan or a
release, and whether a release runs does not depend on it.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from farthing.data.table_identity import source_name
from farthing.data.unit_sketch import Share, UnitSketch
from farthing.errors import FarthingError, SamePeople

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


def same_people(ledger: Ledger, dataset: Dataset, account: str, *, is_registered: bool) -> list[Overlap]:
    """The accounts that protect many of a table's people already, besides its own; one pass over its rows.

    Args:
        ledger: The ledger, opened by a curator.
        dataset: The table with its public facts.
        account: The table's own account.
        is_registered: Whether the table is registered to it. Only then is what is needed to know these people again
            kept with the account: a table that was named by mistake leaves nothing there.

    Returns:
        The overlaps that can be told, the largest first; nothing where the engine fails.

    Raises:
        NotAllowed: If the ledger was not opened by a curator.
    """
    by_account = ledger.people.all()
    try:
        sketch = UnitSketch.of(dataset)
    except FarthingError:  # the next reader will say so
        return []
    if is_registered:
        ledger.people.keep(account, source_name(dataset.sources()[0]), sketch.to_bytes(), _version(dataset))
    overlaps = []
    for other, tables in by_account.items():
        if other != account:
            people = reduce(UnitSketch.with_units_of, map(UnitSketch.of_bytes, tables.values()))
            overlaps.append(Overlap(dataset.name, other, sketch.share_in(people)))
    telling = [each for each in overlaps if each.share.is_telling and each.share.value >= _LEAST_SHARE]
    return sorted(telling, key=lambda each: -each.share.value)


def are_known(ledger: Ledger, dataset: Dataset, account: str) -> bool:
    """Whether the people of a table, as it is now, were looked at already; or it is too large to look unasked.

    Or nobody may look: who is no curator, and a server, whose logs must not say what is computed from rows.
    """
    return (
        ledger.role != "curator"
        or ledger.is_lent
        or not is_small(dataset)
        or ledger.people.has(account, source_name(dataset.sources()[0]), _version(dataset))
    )


def warn_of_same_people(overlaps: list[Overlap], is_news: bool) -> None:
    """Warn the steward of the largest overlap, where a table is news to the ledger."""
    if is_news and overlaps:
        warnings.warn(overlaps[0].advice, SamePeople, stacklevel=4)


def is_small(dataset: Dataset) -> bool:
    """Whether one more pass over its rows costs little: files that are not large."""
    files = dataset.sources()[0].files
    try:
        return bool(files) and sum(os.stat(path).st_size for path in files) <= MOST_BYTES
    except OSError:
        return False


def _version(dataset: Dataset) -> str:
    """Which files it has, how large they are and when they were written."""
    facts = sorted((path, os.stat(path)) for path in dataset.sources()[0].files)
    return "\n".join(f"{path} {each.st_size} {each.st_mtime_ns}" for path, each in facts)
