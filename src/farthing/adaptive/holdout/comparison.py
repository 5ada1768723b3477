"""One round of comparisons with a noisy threshold, and how often it is wrong on either side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from farthing.adaptive.holdout.statistics import STEPS
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.sparse_vector import AboveThreshold
from farthing.mechanisms.threshold_session import ThresholdSession


@dataclass(frozen=True)
class Comparison:
    """Rounds of `AboveThreshold` on sums that a row moves by at most STEPS, at `epsilon` each.

    A false alarm costs a correction and no accuracy, for a corrected answer is measured afresh. A miss costs accuracy.
    The two are bounded apart.
    """

    epsilon: float

    def start(self, threshold: int, source: Source) -> ThresholdSession:
        """A round with fresh noise; it ends with its first positive."""
        return self._mechanism._start(source, threshold)

    def miss_steps(self, failure: float, rounds: int) -> float:
        """With probability 1 - failure no value above the threshold by more than this is let through, in any round.

        Statement:
            A value is let through if value + N < T + offset + R, with R and N geometric on 0, 1, 2, ..., R of rate r
            and drawn once a round. Over any number of questions, however chosen, in `rounds` rounds,
                P[some value above T + e is let through] <= rounds exp(-r (e - offset)).
            Proof: N >= 0, so that value > T + e and value + N < T + offset + R imply R > e - offset, and
            P[R > x] <= exp(-r x) for x >= 0. Add up over rounds.
        Source: own; for two-sided noise the number of questions would enter (Dwork & Roth 2014, Theorem 3.24).
        Assumes: 0 < failure < 1; rounds >= 1.
        Direction: upward; reached by long streams of questions at the edge.
        Checked by: tests/theorems/test_holdout_comparison.py

        >>> Comparison(0.5).miss_steps(0.05, rounds=1) / STEPS  # rows
        16.8...
        """
        rate, _ = self._rates
        return max(0, self._offset) + math.log(rounds / failure) / rate * (1 + 1e-9)

    def alarm_steps(self, queries: int, failure: float) -> float:
        """With probability 1 - failure none of `queries` values below the threshold by this is called above.

        Statement:
            With R, N, r as at `miss_steps` and N of rate s: before the first positive,
                P[some value at most T - x is called above] <= queries exp(-s (x + offset)) E[exp(-s R)],
            E[exp(-s R)] = (1 - e^-r) / (1 - e^-(r + s)), for x + offset >= 0.
            Proof: it takes N >= x + offset + R, and P[N >= n] = exp(-s n) for whole n >= 0. Add up over questions.
        Source: own, from the laws of the noise.
        Assumes: 0 < failure < 1; queries >= 1.
        Direction: upward.
        Checked by: tests/theorems/test_holdout_comparison.py

        >>> Comparison(0.5).alarm_steps(1_000, 0.05) / STEPS  # rows
        59.4...
        """
        rate, noise = self._rates
        offset = self._offset
        mixed = math.expm1(-rate) / math.expm1(-(rate + noise))
        return max(-offset, math.log(queries * mixed / failure) / noise * (1 + 1e-9) - offset) + 1

    @cached_property
    def _mechanism(self) -> AboveThreshold:
        return AboveThreshold(self.epsilon, l1_sensitivity=STEPS)

    @cached_property
    def _offset(self) -> int:
        return self._mechanism._offset

    @cached_property
    def _rates(self) -> tuple[float, float]:
        first, second = self._mechanism._rates
        return float(first), float(second)
