"""What a session has answered free of charge, in its ledger: for a script that is run again.

A note is a charge of nothing whose answer holds a few answers. The first are written at once, one by one; later ones
wait until they are a sixteenth of what is written, so that ten thousand questions make about a hundred notes. The rest
is written when a study is closed or the process ends; if it is killed, at most that sixteenth is lost, and asking it
again begins a round. Nothing here is secret, and privacy does not depend on it: what is noted has been shown.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from farthing.adaptive.session_journal import checked_record
from farthing.curator.questions import record
from farthing.errors import FarthingError

if TYPE_CHECKING:
    from farthing.ledger import Charge, Ledger

MOST = 100_000  # answers of one session; later ones are not kept
_SHARE = 16


class SessionNotes:
    """The notes of one session: `add` keeps an answer, `read` has those in the ledger, by whichever process.

    Args:
        ledger: Where they are kept.
        request: The request id of a note, by its number from 1 on.
        charge: Charges nothing under such a request id.

    >>> import tempfile
    >>> from farthing.ledger import open_ledger
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = open_ledger(f"{folder.name}/study.db")
    >>> _ = ledger.register("survey", epsilon=1.0)
    >>> def notes():
    ...     name = "monday notes {}".format
    ...     return SessionNotes(ledger, name, lambda request: ledger.charge("survey", 0.0, request_id=request))
    >>> notes().add({"value": 3}); notes().add({"value": 5})
    >>> notes().read()
    [{'value': 3}, {'value': 5}]
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, ledger: Ledger, request: Callable[[int], str], charge: Callable[[str], Charge]) -> None:
        self.ledger = ledger
        self._request, self._charge = request, charge
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._waiting: list[Mapping[str, Any]] = []
        self._answers: list[Mapping[str, Any]] = []  # those in the ledger
        self._number = 0  # the last note that is known to be there
        self._open: list[int] = []  # notes whose answers were not seen yet

    def add(self, answer: Mapping[str, Any]) -> None:
        """Keep an answer; whether the ledger is there just now is nobody's concern."""
        checked_record(answer)
        with self._lock:
            if len(self._answers) + len(self._waiting) >= MOST:
                return
            self._waiting.append(answer)
            _WAITING.add(self)
            _written_at_exit()
            if len(self._waiting) * _SHARE > len(self._answers):
                self.write()

    def write(self) -> None:
        """Write down what waits; what cannot be written waits on."""
        with self._lock:
            if not self._waiting or os.getpid() != self._process:
                return
            try:
                self._look()
                charge = self._charge(self._request(self._number + 1))
                while charge.repeated:  # of another process
                    self._look()
                    charge = self._charge(self._request(self._number + 1))
                record(self.ledger, charge, checked_record({"answers": self._waiting}))
            except FarthingError:
                return
            self._waiting = []
            _WAITING.discard(self)

    def read(self) -> list[Mapping[str, Any]]:
        """The answers in the ledger, in the order of the notes; it only grows at its end."""
        for other in list(_WAITING):  # the same session, opened twice in this process
            if other is not self and other._request(1) == self._request(1):
                other.write()
        with self._lock:
            self._look()
            return list(self._answers)

    def _look(self) -> None:
        """Read what was written since the last look."""
        while (stored := self.ledger.stored(self._request(self._number + 1))) is not None:
            self._number += 1
            self._open.append(self._number)
        for number in list(self._open):
            stored = self.ledger.stored(self._request(number))
            assert stored is not None
            if stored.answer is not None:
                self._answers += json.loads(stored.answer)["answers"]
            if stored.state != "reserved":
                self._open.remove(number)


_WAITING: set[SessionNotes] = set()


@cache
def _written_at_exit() -> None:
    atexit.register(write_notes)


def write_notes(ledger: Ledger | None = None) -> None:
    """Write down what waits, of all sessions or those of one ledger.

    Args:
        ledger: The ledger that is about to be closed; by default all of them.

    >>> write_notes()
    """
    for notes in list(_WAITING):
        if ledger is None or notes.ledger is ledger:
            notes.write()
