"""Nobody takes all the threads: of one person's requests only a few are worked on at a time, the others wait.

Routes that may take seconds, and wait for each other, run in a pool of some forty threads that everybody shares,
signing in included. Whoever waits here holds none of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

AT_A_TIME = 8  # requests of one person


class Turns:
    """Who is being served, by name; what it counts is forgotten when the last request has ended."""

    def __init__(self, at_a_time: int = AT_A_TIME) -> None:
        self._at_a_time = at_a_time
        self._rooms: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Semaphore] = {}
        self._inside: Counter[tuple[asyncio.AbstractEventLoop, str]] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """The turn of one request of somebody."""
        key = asyncio.get_running_loop(), name  # a lock belongs to the loop that made it
        room = self._rooms.setdefault(key, asyncio.Semaphore(self._at_a_time))
        self._inside[key] += 1
        try:
            async with room:
                yield
        finally:
            self._inside[key] -= 1
            if not self._inside[key]:
                del self._inside[key], self._rooms[key]

    def __len__(self) -> int:
        return len(self._rooms)
