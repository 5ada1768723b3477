"""Where noise comes from: the operating system's generator, and nothing that could be seeded.

A `Source` hands out uniformly random bytes. Production code uses `SYSTEM`. Tests write their own source and hand it to
the underscored method of a mechanism; no public signature takes a source or a seed.
"""

from __future__ import annotations

import os
from typing import Protocol


class Source(Protocol):
    """Uniformly random bytes, independent of everything drawn before."""

    def take(self, count: int, /) -> bytes:
        """Return `count` fresh random bytes that nobody else gets."""
        ...


class _System:
    """The operating system's cryptographic generator; a fork has nothing to copy, for no state is kept here."""

    __slots__ = ()

    def take(self, count: int, /) -> bytes:
        return os.urandom(count)

    def __repr__(self) -> str:
        return "SYSTEM"


SYSTEM: Source = _System()
