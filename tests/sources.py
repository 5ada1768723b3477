"""Sources of bytes that tests hand to samplers and mechanisms. Production has one source, and it takes no seed."""

from __future__ import annotations

import numpy as np


class TestSource:
    """The same uniform bytes on every run with the same seed: a statistical test that passes keeps passing."""

    __test__ = False  # not a test case, whatever its name begins with

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)  # this way, for `--seed-offset` of tests/draws.py

    def take(self, count: int, /) -> bytes:
        return self._generator.bytes(count)
