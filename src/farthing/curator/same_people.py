"""Are these the same people? What a steward is told when a table that holds an account's people gets another account.

PRIVATE: computed from rows without noise, for a curator alone. Nobody else is told, nothing of it enters a plan or a
release. Whether a release runs does not depend on it, but for one of a curator who was not asked (`--yes`), names no
account and would open a second one for the same people.
"""

from __future__ import annotations

import os
import sys
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

NOT_PRIVATE = "(Computed from rows, for the steward only: not private.)"
MOST_BYTES = 2**28  # of files that are read for this without being asked for
_LEAST_SHARE = 0.1  # of the people, below which nothing is said
_ALIKE = 0.9  # of the largest share: of accounts that have so much of the people, the oldest is theirs
SAME = 0.9  # of the people, from which on a second account needs a word of its own


@dataclass(frozen=True)
class Overlap:
    """How many of a table's people an account protects already.

    Args:
        table: What the table is called.
        account: The account.
        share: The share of the table's units that are units of the account's tables.
        budgets: All accounts that have many of these people, the oldest first.
        is_own: Whether the table's own account is one of them.

    >>> print(Overlap("visits-2026.parquet", "patients", Share(3_900, 4_000)))
    97.5% (97.0% to 97.9%) of the units of visits-2026.parquet are in the account 'patients'
    """

    table: str
    account: str
    share: Share
    budgets: tuple[str, ...] = ()
    is_own: bool = False

    def __str__(self) -> str:
        return f"{self.share} of the units of {self.table} are in the account {self.account!r}"

    @property
    def advice(self) -> str:
        """The same with what to do about it, for the steward."""
        return f"{self}. If they are the same people, {self.way_out}. {NOT_PRIVATE}"

    @property
    def way_out(self) -> str:
        """What to do if they are the same people; a table's own account is never advised against.

        >>> print(Overlap("may.csv", "copy.csv", Share(9, 10), ("patients", "copy.csv"), True).way_out)
        they have 2 budgets, which add up: 'patients' (oldest) and 'copy.csv'; spend from one of them only
        """
        pay = f"let that account pay: account={self.account!r}"
        if len(self.budgets) < 2:
            return pay
        oldest, *others = map(repr, self.budgets)
        names = " and ".join([", ".join([f"{oldest} (oldest)", *others[:-1]]), others[-1]])
        pay = "spend from one of them only" if self.is_own else f"let one of them pay: account={self.account!r}"
        return f"they have {len(self.budgets)} budgets, which add up: {names}; {pay}"


def same_people(
    ledger: Ledger, dataset: Dataset, account: str, *, is_registered: bool, is_news: bool = False
) -> list[Overlap]:
    """The accounts that protect many of a table's people already, besides its own; one pass over its rows.

    Args:
        ledger: The ledger, opened by a curator.
        dataset: The table with its public facts.
        account: The table's own account.
        is_registered: Whether the table is registered to it. Only then is what is needed to know these people again
            kept with the account: a table that was named by mistake leaves nothing there.
        is_news: Whether it was registered just now, without a word about whose people it holds.

    Returns:
        The overlaps that can be told, the largest first, of those that are about as large the oldest account; nothing
        where the engine fails.

    Raises:
        NotAllowed: If the ledger was not opened by a curator.
    """
    by_account = ledger.people.all()
    try:
        sketch = UnitSketch.of(dataset)
    except FarthingError:  # the next reader will say so
        return []
    source = source_name(dataset.home.sources()[0])
    if is_registered:
        ledger.people.keep(account, source, sketch.to_bytes(), _version(dataset))
    shares = {}
    for name, tables in by_account.items():
        (itself,) = ledger.source_signatures([source]) if name == account else ("",)
        sketches = [UnitSketch.of_bytes(kept) for table, kept in tables.items() if table != itself]
        share = sketch.share_in(reduce(UnitSketch.with_units_of, sketches)) if sketches else Share(0, 0)
        if share.is_telling and share.value >= _LEAST_SHARE:
            shares[name] = share
    is_own = account in shares or (is_registered and not is_news)
    ages = ledger.people.oldest_first()
    budgets = tuple(name for name in ages if name in shares or (name == account and is_own))
    others = [name for name in budgets if name != account]
    alike = _ALIKE * max((shares[name].value for name in others), default=0.0)
    others.sort(key=lambda name: (0, 0.0) if shares[name].value >= alike else (1, -shares[name].value))
    return [Overlap(dataset.name, name, shares[name], budgets, is_own) for name in others]


def are_known(ledger: Ledger, dataset: Dataset, account: str) -> bool:
    """Whether the people of a table, as it is now, were looked at already; or it is too large to look unasked.

    Or nobody may look: who is no curator, and a server, whose logs must not say what is computed from rows.
    """
    return (
        ledger.role != "curator"
        or ledger.is_lent
        or not is_small(dataset)
        or ledger.people.has(account, source_name(dataset.home.sources()[0]), _version(dataset))
    )


def warn_of_same_people(overlaps: list[Overlap], is_news: bool) -> None:
    """Warn the steward of the first overlap, where a table is news to the ledger."""
    if is_news and overlaps:
        warn_caller(overlaps[0].advice, SamePeople)


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn with the line from which farthing was called, however deep in it this is."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "farthing":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def is_small(dataset: Dataset) -> bool:
    """Whether one more pass over its rows costs little: files that are not large."""
    files = dataset.home.sources()[0].files
    try:
        return bool(files) and sum(os.stat(path).st_size for path in files) <= MOST_BYTES
    except OSError:
        return False


def _version(dataset: Dataset) -> str:
    """Which files it has, how large they are and when they were written."""
    facts = sorted((path, os.stat(path)) for path in dataset.home.sources()[0].files)
    return "\n".join(f"{path} {each.st_size} {each.st_mtime_ns}" for path, each in facts)
