"""A word on the terminal when something takes longer than a moment: what it is, and how far it is."""

from __future__ import annotations

import sys
import time

_SILENT_SECONDS = 1.0


class Notice:
    """Progress for people who wait: silent for a second, then one line; on a terminal it counts up and goes away.

    It tells of public things only: how far a search over strategies is.

    >>> notice = Notice("looking for a strategy")
    >>> notice(0.5)
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self._told = ""

    def __call__(self, fraction: float) -> None:
        """Say how far it is; 1.0 is the end."""
        stream = sys.stderr
        if stream is None or (not self._told and time.monotonic() - self._began < _SILENT_SECONDS):
            return
        if not stream.isatty():
            if not self._told and fraction < 1:
                self._told = f"farthing: {self._what}"
                print(self._told, file=stream, flush=True)
            return
        line = "" if fraction >= 1 else f"farthing: {self._what} ({100 * min(fraction, 1.0):.0f}%)"
        print(f"\r{line:<{len(self._told)}}", end="\r" if not line else "", file=stream, flush=True)
        self._told = line
