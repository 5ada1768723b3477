"""Permute-and-flip: go through the candidates in random order and take the first whose coin says yes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint

from farthing.mechanisms.exact import Bits, bernoulli_exp
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.scores import Selection, checked_candidates, checked_confidence, least_gap
from farthing.numerics.balls import precision
from farthing.privacy import ApproxDP, Event


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    """The index of the first candidate, in random order, whose coin of probability exp(-rate * gap) says yes.

    Statement:
        With rate = epsilon / (2 * sensitivity), or epsilon / sensitivity for `monotone` scores, the choice is
        epsilon-DP. Its chosen score is never stochastically below that of the exponential mechanism with the same
        epsilon.
    Source: McKenna & Sheldon, arXiv:2010.12603, Sections 3 and 4.
    Assumes: the number of candidates is public; real scores are rounded down to the grid, and `sensitivity` is
        rounded up to whole steps of it.
    Direction: exact sampling: every coin is `bernoulli_exp`. It is not epsilon-bounded-range, so it is charged as any
        epsilon-DP mechanism: alone it beats the exponential mechanism, in long compositions it costs more.
    Checked by: tests/theorems/test_permute_and_flip.py

    >>> mechanism = PermuteAndFlip(epsilon=1.0, sensitivity=1)
    >>> mechanism.release([3, 900, 7])
    1
    >>> mechanism.event
    ApproxDP(epsilon=1.0, delta=0.0)
    >>> mechanism.error(0.95, candidates=100)
    13
    """

    epsilon: float
    sensitivity: float = 1
    monotone: bool = False
    grid: float | None = None

    @property
    def event(self) -> Event:
        """Priced as the worst of all epsilon-DP mechanisms."""
        return ApproxDP(self.epsilon)

    def error(self, confidence: float, candidates: int) -> float:
        """The smallest d such that, with this probability, the chosen score is at most d below the best.

        It holds for any scores of so many candidates, and some scores attain it; on a grid it includes the rounding.
        """
        return self._in_units(
            steps_lost(self.rate, checked_candidates(candidates), checked_confidence(confidence))
        )

    def _answer(self, value: Any, source: Source) -> int:
        gaps, bits = self._gaps(value).tolist(), Bits(source)
        rate = self.rate
        order = list(range(len(gaps)))
        while True:  # the best candidate's coin always says yes, so this ends before the order does
            place = bits.below(len(order))
            order[place], order[-1] = order[-1], order[place]
            candidate = order.pop()
            if bernoulli_exp(rate * gaps[candidate], bits):
                return candidate


def steps_lost(rate: Fraction, candidates: int, confidence: Fraction) -> int:
    """The smallest d >= 0 such that permute-and-flip loses more than d steps with probability <= 1 - confidence.

    Statement:
        Among n candidates, more than d steps are lost with probability at most
            1 - (1 - (1 - w)^n) / (n w),   w = exp(-rate (d + 1)),
        and exactly that when one candidate is best and all the others lie d + 1 below it.
    Source: direct. Give each candidate a uniform time and its coin; the first success wins. A likelier coin for a
        candidate more than d below can only turn the outcome to that candidate, and making any other than the best
        worse can only turn it away from there; so the worst case is as stated. There, k candidates come before the
        best one, k uniform on 0 .. n - 1, and all their coins fail with probability (1 - w)^k.
    Assumes: rate > 0, candidates >= 1, 0 < confidence < 1.
    Direction: undecided comparisons take the larger d.
    Checked by: tests/theorems/test_selection_error.py
    """
    # The exponential mechanism loses at least as much, so its error is a place to search down from.
    high = max(0, math.ceil(least_gap(rate, candidates - 1, confidence)) - 1)
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        if _surely_at_most(rate, candidates, middle, 1 - confidence):
            high = middle
        else:
            low = middle
    return high


def _surely_at_most(rate: Fraction, candidates: int, lost: int, beta: Fraction) -> bool:
    with precision(256 + candidates.bit_length()):
        exponent = rate * (lost + 1)
        coin = (-flint.arb(flint.fmpq(exponent.numerator, exponent.denominator))).exp()
        never = (candidates * (-coin).log1p()).expm1()  # (1 - w)^n - 1
        return bool(1 + never / (candidates * coin) <= flint.fmpq(beta.numerator, beta.denominator))
