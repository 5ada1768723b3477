"""Sessions that are open in this process, a few at a time.

Nothing is remembered here alone: whatever was paid for stands in the ledger, whatever was answered in the store, and
any server takes a session up from there. What is lost with a process is the secret noise of a round that is under way,
and with it one of the session's updates; so sessions without one are put away first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from farthing.errors import RequestRefused
from farthing.server.store import Store
from farthing.server.store import asked as rows
from farthing.server.store.asked import Asked

if TYPE_CHECKING:
    from farthing.study.asking import Conversation

MOST = 64  # sessions
MOST_CELLS = 2**24  # of all of them: a few hundred megabytes
PATIENCE = 30.0  # seconds to wait for the questions before

Key = tuple[str, str, str]  # session, owner, role


class Kept:
    """One open session, the turn of whoever asks, and what is known to be answered."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.waiting = 0
        self.conversation: Conversation | None = None
        self.answered: dict[str, Asked] = {}
        self.last = 0

    @property
    def cells(self) -> int:
        """How much room it takes."""
        return 0 if self.conversation is None else self.conversation.plan.cells

    @property
    def running(self) -> bool:
        """Whether a round is under way here, which would be lost."""
        return self.conversation is not None and self.conversation.running

    def catch_up(self, store: Store, session: str) -> None:
        """Read what was answered since the last look, here or at another server."""
        for one in rows.after(store, session, self.last):
            self.answered.setdefault(one.key, one)
            self.last = one.number


class Conversations:
    """The open sessions of one server."""

    def __init__(self, most: int = MOST, most_cells: int = MOST_CELLS, patience: float = PATIENCE) -> None:
        self._most, self._most_cells, self._patience = most, most_cells, patience
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._changing = threading.Lock()

    @contextmanager
    def turn(self, key: Key, take_up: Callable[[], Conversation]) -> Iterator[tuple[Kept, Conversation]]:
        """The session, for one question at a time; `take_up` opens it if it is not open here."""
        with self._changing:
            kept = self._kept.setdefault(key, Kept())
            self._kept.move_to_end(key)
            kept.waiting += 1
        try:
            if not kept.turn.acquire(timeout=self._patience):
                raise RequestRefused(
                    "rate_limited",
                    "this session is busy with other questions; ask again in a moment.",
                    {"retry_after": 5},
                )
            try:
                if kept.conversation is None:
                    kept.conversation = take_up()
                yield kept, kept.conversation
            finally:
                kept.turn.release()
        finally:
            with self._changing:
                kept.waiting -= 1
                self._put_away()

    def is_running(self, key: Key) -> bool:
        """Whether a round of this session is under way here."""
        with self._changing:
            kept = self._kept.get(key)
        return kept is not None and kept.running

    def __len__(self) -> int:
        with self._changing:
            return len(self._kept)

    def _put_away(self) -> None:
        """Make room: those that were never opened, then those without a round, then the one longest unused."""
        idle = [(key, kept) for key, kept in self._kept.items() if not kept.waiting]
        idle.sort(key=lambda item: (item[1].conversation is not None, item[1].running))
        for key, kept in idle:
            crowded = len(self._kept) > self._most or self._cells() > self._most_cells
            if kept.conversation is not None and not crowded:
                return
            del self._kept[key]

    def _cells(self) -> int:
        return sum(kept.cells for kept in self._kept.values())
