"""What a server has read of its ledger: verifications, one at a time, and the history of every account."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from datetime import UTC, datetime

from farthing.errors import RequestRefused
from farthing.ledger import Ledger, Receipt, Verification
from farthing.ledger.ledger_replay import History, Moment
from farthing.server.schemas.entry_schema import VerifiedView

WINDOW = 1_000  # entries between two looks at the clock
LONGEST = 60.0  # seconds that a verification may take here
READING = 20.0  # seconds that a history is read before somebody is told to come again
POINTS = 250  # of one burn-down, about


class LedgerHistory:
    """The last verification, and how every account came to be what it is; none of it the only copy."""

    def __init__(self, root: Ledger) -> None:
        self._root = root
        self._history = History(POINTS // 2)
        self._reading = threading.Lock()
        self._verifying = threading.Lock()
        self._running: dict[str, Future[Verification]] = {}
        self._changing = threading.Lock()
        self._last_check = (root.opening.ok, time.time())

    @property
    def verified(self) -> VerifiedView:
        """The last verification that this server has seen; opening a ledger is one."""
        ok, moment = self._last_check
        return VerifiedView(ok=ok, at=iso_time(moment))

    def verify(self, receipt: Receipt | None) -> Verification:
        """Read everything again. One at a time; a caller who asks for the same meanwhile gets the same result."""
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
            raise try_later("the history is being read")
        try:
            deadline = time.monotonic() + READING
            for entry in self._root.entries(since=self._history.sequence):
                self._history.follow(entry)
                if entry.sequence % WINDOW == 0 and time.monotonic() > deadline:
                    raise try_later(f"the history is read as far as entry {entry.sequence:,}")
            return self._history.moments(dataset, analyst)
        finally:
            self._reading.release()

    def _verified(self, receipt: Receipt | None) -> Verification:
        if not self._verifying.acquire(timeout=LONGEST):
            raise try_later("another verification is under way")
        try:
            deadline = time.monotonic() + LONGEST

            def watch(_done: int, _all: int) -> None:
                if time.monotonic() > deadline:
                    raise RequestRefused(
                        "too_large",
                        f"reading the ledger again takes more than {LONGEST:g} seconds; its curator can run "
                        "`farthing ledger verify`, which has no such limit.",
                    )

            verification = self._root.verify(receipt, watch)
            if receipt is None or verification.ok:  # a receipt may be wrong where the ledger is not
                self._last_check = (verification.ok, time.time())
            return verification
        finally:
            self._verifying.release()


def try_later(why: str) -> RequestRefused:
    """The refusal of what can be done a little later."""
    return RequestRefused("rate_limited", f"{why}; ask again in a few seconds.", {"retry_after": 5})


def iso_time(moment: float) -> str:
    """Seconds since 1970 as ISO 8601, UTC."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
