"""The notes of a deposit, kept in the ledger with the release: every machine that shares the ledger finds the dataset.

The versions of a publication share its name (the slug, or what the title gives) and the account that paid. Where an
earlier bundle was named, its receipts lead to its dataset too.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from farthing.errors import FarthingError, RequestRefused
from farthing.ledger import Ledger, Receipt
from farthing.ledger.deposit_records import PATIENCE, DepositRecord
from farthing.ledger.entries import clock
from farthing.publication.deposit import DepositNotes, NotesPlace
from farthing.publication.edition import Edition
from farthing.publication.publication_details import PublicationDetails

_ENDED = ("done", "published")
_SIGN = PATIENCE / 1e9 / 3  # seconds after which one that runs says so again


class LedgerNotes:
    """Notes in the ledger, and in a second place that says what this machine was doing.

    Args:
        ledger: The ledger of the release.
        edition: What is deposited.
        own: Notes of this machine alone, such as a file beside the study.
    """

    def __init__(self, ledger: Ledger, edition: Edition, own: NotesPlace) -> None:
        self._ledger, self._edition, self._own = ledger, edition, own
        self._last: DepositNotes | None = None
        self._said = 0.0  # when that was written into the ledger

    def load(self, server: str) -> DepositNotes:
        """The notes of this machine, with what the ledger knows of the dataset."""
        notes = self._own.load(server)
        notes = replace(notes, attempt=notes.attempt or secrets.token_hex(8))
        said = self._line(self._ledger.deposits.all(), server)
        if said:
            known = [each.persistent_id for each in said if each.persistent_id]
            last = said[-1]
            notes = replace(notes, persistent_id=known[-1] if known else "", digest=last.digest, state=last.state)
        return notes

    def save(self, notes: DepositNotes) -> None:
        """Write the notes down, on this machine first: it must know its own attempt.

        Raises:
            RequestRefused: If somebody else is depositing this publication just now.
        """
        self._own.save(notes)
        if notes == self._last and time.monotonic() - self._said < _SIGN:
            return
        self._keep(notes, running=notes.state not in _ENDED)
        self._last, self._said = notes, time.monotonic()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block of one deposit at a time on this machine; the ledger hears when it ended early."""
        with self._own.alone():
            try:
                yield
            finally:
                last, self._last = self._last, None
                if last is not None and last.state not in _ENDED:
                    self._keep(last, running=False)

    def _keep(self, notes: DepositNotes, running: bool) -> None:
        edition = self._edition
        record = DepositRecord(
            edition.receipt.dataset,
            edition.publication.registry_slug,
            edition.publication.version,
            edition.receipt.sequence,
            notes.server,
            notes.persistent_id,
            notes.digest,
            notes.state,
            notes.attempt,
            running,
        )

        def refuse_another(before: Sequence[DepositRecord]) -> None:
            last = {each.attempt: each for each in self._line(before, notes.server)}
            busy = [each for name, each in last.items() if name != notes.attempt and each.is_under_way(clock())]
            if busy:
                raise _busy(busy[-1])

        self._ledger.deposits.keep(record, refuse_another)

    def _line(self, records: Sequence[DepositRecord], server: str) -> list[DepositRecord]:
        """What is known of this publication in a repository: under its name, or else of its releases."""
        edition = self._edition
        name, account = edition.publication.registry_slug, whole_of(self._ledger, edition.receipt.dataset)
        releases = {edition.receipt.sequence, *(each.sequence for each in edition.earlier)}
        there = [each for each in records if each.server == server]
        named = [each for each in there if each.publication == name and whole_of(self._ledger, each.account) == account]
        return named or [each for each in there if each.release in releases]


def earlier_receipts(ledger: Ledger, publication: PublicationDetails, receipt: Receipt) -> tuple[Receipt, ...]:
    """The receipts of the earlier versions of a publication that were deposited, as the ledger has them.

    Args:
        ledger: The ledger.
        publication: The details of the version that is made now.
        receipt: The receipt of its release.

    Returns:
        Those of a lower version and of an earlier release, oldest first.
    """
    account = whole_of(ledger, receipt.dataset)
    releases = {
        each.release
        for each in ledger.deposits.all()
        if (each.publication, whole_of(ledger, each.account)) == (publication.registry_slug, account)
        and each.state in _ENDED
        and each.version < publication.version
        and each.release < receipt.sequence
    }
    receipts = map(ledger.deposits.receipt, sorted(releases))
    return tuple(each for each in receipts if each is not None)


def whole_of(ledger: Ledger, account: str) -> str:
    """The account without its period, where it is that of one period."""
    try:
        protects = ledger.budget(account).protects
    except FarthingError:
        return account
    renewal = None if protects is None else protects.renewal
    return account if renewal is None or renewal.period is None else account.rpartition(", ")[0]


def _busy(record: DepositRecord) -> RequestRefused:
    until = datetime.fromtimestamp((record.time_ns + PATIENCE) // 10**9 + 60, UTC)
    return RequestRefused(
        "conflict",
        f"somebody else is depositing this publication at {record.server}; wait until that has ended. If it was "
        f"broken off, run the same again after {until:%H:%M} UTC.",
    )
