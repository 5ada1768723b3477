"""Sparse vector written out: the probability of a transcript as one sum over the threshold's noise.

Also the broken variants that Lyu, Su & Li (arXiv:1603.01699) collected, with the same discrete noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Transcript = tuple[object, ...]


@dataclass(frozen=True)
class Twin:
    """Answers "above" if value + N >= R, R and N geometric (N = 0 if it has no rate), at most `positives` times.

    `shows` says what an "above" carries: nothing, its gap value + N - R, or the noisy value value + N (broken).
    """

    threshold_rate: float
    question_rate: float | None
    positives: int
    shows: str = "nothing"
    window: int = 400

    def probability(self, values: Sequence[int], transcript: Transcript) -> float:
        r = np.arange(self.window, dtype=np.float64)
        joint = np.exp(-self.threshold_rate * r) * -math.expm1(-self.threshold_rate)
        for value, answer in zip(values, transcript, strict=False):
            if answer == "below":
                joint = joint * (1 - self._at_least(r - value))
            elif self.shows == "nothing":
                joint = joint * self._at_least(r - value)
            elif self.shows == "gap":
                joint = joint * self._exactly(answer + r - value)  # type: ignore[operator]
            else:
                joint = joint * self._exactly(np.full_like(r, answer) - value) * (answer >= r)  # type: ignore[operator]
        return math.fsum(joint)

    def transcripts(self, length: int, shown: Sequence[int] = ()) -> Iterator[Transcript]:
        """Every transcript of a stream of this length (with shown values from a window only)."""
        symbols = ["below", "above"] if self.shows == "nothing" else ["below", *shown]
        for full in itertools.product(symbols, repeat=length):
            places = [i for i, answer in enumerate(full) if answer != "below"]
            stop = places[self.positives - 1] + 1 if len(places) >= self.positives else length
            if len(places) <= self.positives and stop == length:
                yield full
            elif all(answer == "below" for answer in full[stop:]) and len(places) == self.positives:
                yield full[:stop]

    def loss(self, one: Sequence[int], other: Sequence[int], transcript: Transcript) -> float:
        """ln P / Q at a transcript; -inf where P is 0."""
        p, q = self.probability(one, transcript), self.probability(other, transcript)
        if p == 0:
            return -math.inf
        return math.inf if q == 0 else math.log(p / q)

    def _at_least(self, n: Array) -> Array:
        if self.question_rate is None:
            return np.asarray(n <= 0, dtype=np.float64)
        return np.exp(-self.question_rate * np.maximum(n, 0))

    def _exactly(self, n: Array) -> Array:
        if self.question_rate is None:
            return np.asarray(n == 0, dtype=np.float64)
        return np.where(n >= 0, np.exp(-self.question_rate * np.maximum(n, 0)) * -math.expm1(-self.question_rate), 0)
