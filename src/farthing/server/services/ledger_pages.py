"""The ledger as the server reads it out: pages of entries, burn-downs, and verifications one at a time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING

from farthing.errors import InvalidValue, RequestRefused
from farthing.ledger import Entry, Ledger, Receipt, Verification
from farthing.ledger.ledger_replay import History, Moment
from farthing.server.auth.permissions import Caller
from farthing.server.schemas.entry_schema import (
    BurnDownView,
    EntriesView,
    LedgerView,
    PointView,
    VerificationView,
    VerifiedView,
    entry_view,
    sentence_of,
    when_of,
)

if TYPE_CHECKING:
    from farthing.server.app_state import State

MOST_READ = 20_000  # entries that are looked at for one page
WINDOW = 1_000  # that are read at once where the newest come first
LONGEST = 60.0  # seconds that a verification may take here
READING = 20.0  # seconds that a history is read before somebody is told to come again
POINTS = 250  # of one burn-down, about


class Books:
    """What is kept at hand of the ledger, none of it the only copy."""

    def __init__(self, state: State) -> None:
        self._root = state.root
        self._history = History(POINTS // 2)
        self._reading = threading.Lock()
        self._verifying = threading.Lock()
        self._running: dict[str, Future[Verification]] = {}
        self._changing = threading.Lock()
        self._found = (state.root.opening.ok, time.time())

    @property
    def verified(self) -> VerifiedView:
        """The last verification that this server has seen; opening a ledger is one."""
        ok, moment = self._found
        return VerifiedView(ok=ok, at=_iso(moment))

    def verify(self, receipt: Receipt | None) -> Verification:
        """Read everything again. One at a time; whoever asks for the same meanwhile gets the same result."""
        key = "" if receipt is None else receipt.to_json()
        with self._changing:
            running = self._running.get(key)
            mine = running is None
            if running is None:
                running = self._running[key] = Future()
        if mine:
            try:
                running.set_result(self._verified(receipt))
            except BaseException as problem:
                running.set_exception(problem)
            finally:
                with self._changing:
                    del self._running[key]
        return running.result(timeout=3 * LONGEST)

    def moments(self, dataset: str, analyst: str) -> list[Moment]:
        """How an account came to be what it is, as far as the ledger goes now."""
        if not self._reading.acquire(timeout=READING):
            raise _come_again("the history is being read")
        try:
            deadline = time.monotonic() + READING
            for entry in self._root.entries(since=self._history.sequence):
                self._history.follow(entry)
                if entry.sequence % WINDOW == 0 and time.monotonic() > deadline:
                    raise _come_again(f"the history is read as far as entry {entry.sequence:,}")
            return self._history.moments(dataset, analyst)
        finally:
            self._reading.release()

    def _verified(self, receipt: Receipt | None) -> Verification:
        if not self._verifying.acquire(timeout=LONGEST):
            raise _come_again("another verification is under way")
        try:
            deadline = time.monotonic() + LONGEST

            def watch(_done: int, _all: int) -> None:
                if time.monotonic() > deadline:
                    raise RequestRefused(
                        "too_large",
                        f"reading the ledger again takes more than {LONGEST:g} seconds; its curator can run "
                        "`farthing ledger verify`, which has no such limit.",
                    )

            found = self._root.verify(receipt, watch)
            if receipt is None or found.ok:  # a receipt may be wrong where the ledger is not
                self._found = (found.ok, time.time())
            return found
        finally:
            self._verifying.release()


def summary(state: State, who: Caller) -> LedgerView:
    """The ledger as a whole."""
    ledger = state.ledger(who)
    return LedgerView(
        id=ledger.id,
        entries=ledger.last(),
        verified=state.books.verified,
        datasets=[name for name in ledger.datasets() if _may_see(ledger, who, name)],
    )


def page(state: State, who: Caller, dataset: str | None, since: int, limit: int, newest: bool) -> EntriesView:
    """A page of entries: those after `since` in order, or those before it, the newest first."""
    ledger = state.ledger(who)
    if dataset is not None:
        refuse_unknown(ledger, who, dataset)
    own = who.role == "analyst"
    # All are read and what is somebody else's is left out here, so that a page ends after so many in any case.
    read = _newest(state.root, since) if newest else state.root.entries(since=since)
    found, last, looked = [], None, 0
    for entry in read:
        last, looked = entry.sequence, looked + 1
        mine = not own or entry.analyst == who.name
        if mine and (dataset is None or entry.is_about(dataset)):
            found.append(entry_view(entry, own))
        if len(found) == limit or looked == MOST_READ:
            break
    else:
        last = None
    at_the_end = last is None or (last <= 1 if newest else last >= ledger.last())
    return EntriesView(entries=found, next=None if at_the_end else last)


def _newest(root: Ledger, before: int) -> Iterator[Entry]:
    """Entries before `before` (all of them if it is 0), the newest first, read window by window."""
    last = root.last()
    top = min(before - 1, last) if before else last  # whoever asks from far beyond the end begins at the end
    while top >= 1:
        low = max(0, top - WINDOW)
        yield from reversed(list(islice(root.entries(since=low), top - low)))
        top = low


def burn_down(state: State, who: Caller, dataset: str, analyst: str | None) -> BurnDownView:
    """How a budget or a grant came to be what it is; analysts see their own grant."""
    ledger = state.ledger(who)
    refuse_unknown(ledger, who, dataset)
    whose = who.name if who.role == "analyst" else analyst
    try:
        total = ledger.budget(dataset, whose).total.epsilon
    except InvalidValue:
        raise RequestRefused("not_found", f"there is no grant of that name in {dataset!r}.") from None
    return BurnDownView(
        dataset=dataset,
        analyst=whose,
        total=total,
        points=[_point(moment, whose is not None) for moment in state.books.moments(dataset, whose or "")],
    )


def refuse_unknown(ledger: Ledger, who: Caller, dataset: str) -> None:
    """A dataset that is not there, or that an analyst has no grant in, is not there."""
    if dataset not in ledger.datasets() or not _may_see(ledger, who, dataset):
        raise RequestRefused(
            "not_found", f"there is no dataset {dataset!r} for you; look at the list of datasets."
        )


def _may_see(ledger: Ledger, who: Caller, dataset: str) -> bool:
    if who.role != "analyst":
        return True
    try:
        ledger.budget(dataset, who.name)
    except InvalidValue:
        return False
    return True


def verification_view(found: Verification, who: Caller, ledger_ok: bool) -> VerificationView:
    """What was found, and whether the ledger by itself is intact, whatever a receipt says.

    Analysts are not told the names of others, which problems may hold.
    """
    problems, notes = list(found.problems), list(found.notes)
    if who.role == "analyst":
        problems = [
            text if "receipt" in text else "the ledger does not verify; tell its curator" for text in problems
        ]
        notes = []
    return VerificationView(
        ok=found.ok,
        ledger_ok=ledger_ok,
        entries=found.entries,
        problems=problems,
        notes=notes,
        at=_iso(time.time()),
    )


def read_receipt(text: str) -> Receipt:
    """The receipt in a text: a receipt, or what was downloaded with one in it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    inner = data.get("receipt") if isinstance(data, dict) else None
    if isinstance(inner, str):
        return Receipt.from_json(inner)
    return Receipt.from_json(json.dumps(inner) if isinstance(inner, dict) else text)


def exported(state: State) -> Iterator[str]:
    """All entries as JSON lines; the first page is read before anything is sent, so that a failure is told."""
    entries = state.root.entries()
    first = list(islice(entries, 1_000))
    return (
        json.dumps(entry.to_dict(), sort_keys=True, allow_nan=False) + "\n" for entry in chain(first, entries)
    )


def _point(moment: Moment, own: bool) -> PointView:
    entry, account = moment.entry, moment.holding.account
    spent = account.spent_upper
    return PointView(
        sequence=entry.sequence,
        when=when_of(entry),
        spent=spent if spent < float("inf") else None,
        total=account.budget.epsilon,
        kind=entry.kind,
        sentence=sentence_of(entry, own),
    )


def _come_again(why: str) -> RequestRefused:
    return RequestRefused("rate_limited", f"{why}; ask again in a few seconds.", {"retry_after": 5})


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
