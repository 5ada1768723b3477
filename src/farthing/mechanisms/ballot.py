"""Candidates sorted by score, from which winners are drawn by exponential weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.exact import Bits
from farthing.mechanisms.weighted_choice import Group, choose_label


class Ballot:
    """Candidates in groups of equal gap below the best; each winner is taken out before the next is drawn."""

    def __init__(self, gaps: NDArray[np.uint64]) -> None:
        self._members = np.argsort(gaps, kind="stable")
        self._gaps, counts = np.unique(gaps, return_counts=True)
        self._counts = counts.astype(np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._left = len(gaps)
        self._best = 0  # the first group that has a candidate left

    def draw(self, rate: Fraction, bits: Bits) -> int:
        """One of those left, with probability exactly proportional to exp(-rate * gap); it is left no more."""
        place = choose_label(rate, self._groups, self._left, bits)
        # Equal gaps are equally likely. The winner changes places with the last of its group, which then ends earlier.
        start, count = int(self._starts[place]), int(self._counts[place])
        chosen, last = start + bits.below(count), start + count - 1
        winner = int(self._members[chosen])
        self._members[chosen] = self._members[last]
        self._counts[place] -= 1
        self._left -= 1
        while self._left and not self._counts[self._best]:
            self._best += 1
        return winner

    def _groups(self, limit: int) -> tuple[list[Group], int]:
        top: Any = self._gaps[self._best]
        reach = min(int(top) + limit, 2**64 - 1)
        end = int(np.searchsorted(self._gaps, np.uint64(reach), "right"))
        # Groups that have no one left must not be offered: the last group offered takes all that lies beyond it.
        places = self._best + np.flatnonzero(self._counts[self._best : end])
        gaps, counts = (self._gaps[places] - top).tolist(), self._counts[places].tolist()
        return list(zip(gaps, counts, places.tolist(), strict=True)), self._left - sum(counts)
