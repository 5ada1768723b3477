"""The threads in which deposits run, a few at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from farthing.errors import RequestRefused

MOST = 4  # deposits at a time
_LAST = 5.0  # seconds that they have to end when the server stops


class DepositThreads:
    """Runs deposits, and waits for them for a moment when the server stops.

    >>> ran = []
    >>> threads = DepositThreads()
    >>> with threads.room():
    ...     threads.start(lambda: ran.append("one"))
    >>> threads.close(); ran
    ['one']
    """

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    @contextmanager
    def room(self) -> Iterator[None]:
        """A block that may start one more; refused while there are enough."""
        with self._lock:
            self._threads = [one for one in self._threads if one.is_alive()]
            if len(self._threads) >= MOST:
                words = f"{MOST} deposits are running on this server already; ask again when one of them has ended."
                raise RequestRefused("rate_limited", words, {"retry_after": 10})
            yield

    def start(self, work: Callable[[], None]) -> None:
        """Run a deposit in a thread; only where there is room."""
        thread = threading.Thread(target=work, name="farthing-deposit", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self) -> None:
        """Give those that run a moment; what is cut off can be continued."""
        for one in self._threads:
            one.join(_LAST)
