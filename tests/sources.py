"""Sources of bytes that tests hand to samplers and mechanisms. Production has one source, and it takes no seed."""

from __future__ import annotations

import threading

import numpy as np


class Buffered:
    """The bytes that a generator gives, asked for in few large pieces: a call for eight of them takes its time."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._ready, self._at = b"", 0
        self._turn = threading.Lock()  # threads share a source, and no byte is given twice

    def take(self, count: int, /) -> bytes:
        """As `generator.bytes(count)`, which takes four bytes at a time, at least once, and drops what is left."""
        with self._turn:
            end = self._at + (max(count, 1) + 3) // 4 * 4
            if end > len(self._ready):
                more = min(max(64, end - len(self._ready), 2 * len(self._ready)), max(4096, end))
                self._ready = self._ready[self._at :] + self._generator.bytes((more + 3) // 4 * 4)
                self._at, end = 0, end - self._at
            found = self._ready[self._at : self._at + count]
            self._at = end
            return found


class TestSource:
    """The same uniform bytes on every run with the same seed: a statistical test that passes keeps passing."""

    __test__ = False  # not a test case, whatever its name begins with

    def __init__(self, seed: int) -> None:
        self.take = Buffered(np.random.default_rng(seed)).take  # this way, for `--seed-offset` of tests/draws.py
