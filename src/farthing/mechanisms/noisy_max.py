"""Report noisy max: whole-number noise on every score, and the index of the largest, with its margin if asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np

from farthing.errors import InvalidValue
from farthing.mechanisms.mechanism import nearest_double
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.single_draws import Bits, bernoulli_exp, geometric
from farthing.mechanisms.selection_scores import (
    Selection,
    checked_candidates,
    checked_confidence,
    least_gap,
    score_steps,
)
from farthing.numerics.bounds import precision
from farthing.privacy import ApproxDP, Event


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    """The index of the first candidate, in random order, whose coin of probability exp(-rate * gap) says yes.

    Args:
        epsilon: The epsilon of one choice, > 0.
        sensitivity: The most that any one score moves between neighbours.
        monotone: Whether all scores move in the same direction. It doubles the rate.
        grid: A power of two to which real scores are rounded down; without it, scores are whole numbers.

    Raises:
        InvalidValue: If a parameter is out of its range.

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

        Args:
            confidence: The probability that the loss is not larger, between 0 and 1.
            candidates: How many candidates there are.

        Returns:
            The largest loss, in units of the score.

        Raises:
            InvalidValue: If an argument is out of range.
        """
        return self._in_units(steps_lost(self.rate, checked_candidates(candidates), checked_confidence(confidence)))

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


class Winner(NamedTuple):
    """The chosen candidate, and how much lower its noisy score could have been without losing.

    Attributes:
        candidate: The index of the chosen candidate.
        margin: How much lower its noisy score could have been without losing, in units of the score.

    >>> Winner(candidate=2, margin=5)
    Winner(candidate=2, margin=5)
    """

    candidate: int
    margin: float


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(Selection):
    """The index of the largest score after one-sided geometric noise; `gap=True` adds the margin it won by.

    Args:
        epsilon: The epsilon of one choice, > 0.
        sensitivity: The most that any one score moves between neighbours.
        monotone: Whether all scores move in the same direction. It doubles the rate.
        grid: A power of two to which real scores are rounded down; without it, scores are whole numbers.
        gap: Whether to add the margin by which the candidate won.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        Let N_i be independent, P(N_i >= n) = q^n for n = 0, 1, ..., q = exp(-rate), rate = epsilon / (2 * sensitivity),
        or epsilon / sensitivity for `monotone` scores. Among equal noisy scores the first candidate wins. Then
        (1) the index of the largest s_i + N_i is epsilon-DP;
        (2) so is the index with its margin, s_i + N_i - M, with M the larger of 1 + (the largest before i) and
            (the largest after i).
    Source: (1) Ding, Kifer et al., arXiv:2105.07260 (exponential noise); (2) Ding, Wang, Zhang & Kifer,
        arXiv:1904.12773, who prove it for two-sided noise. Proof here, for whole numbers. Let D be twice the
        sensitivity, or once if monotone; only differences of scores matter, so keep s_i and let every other score
        (the "+ 1" of a tie is a fixed shift of it) move by at most D: then |M' - M| <= D for the same noise.
        (1) Given the others' noise, i wins if N_i >= r = M - s_i, and P(N_i >= r) = q^max(r, 0) changes by at most
        q^D = e^-epsilon. No tie is special, because q^r is exact at whole numbers.
        (2) P(i, margin = g) = E[h(M)], h(m) = (1 - q) q^(m - a) for m >= a = s_i - g, else 0. To show:
        E[h(M')] >= q^D E[h(M)].
        (2a) If all others fall by the same c: P(M = m + 1) >= q P(M = m), because P(M <= m) = phi(1) with
        phi(t) = prod (1 - t x_j), P(M = m + 1) - q P(M = m) = [phi(q) - phi(1)] - q [phi(1) - phi(1/q)], and phi is
        decreasing and convex while all factors are >= 0 (below that, P(M = m) = 0). Summed c times, E[h(M - c)] >=
        q^c E[h(M)].
        (2b) If some fall by c_j <= D, each in its own way, and none rises: if M' >= a surely, h(M') >= h(M) pointwise.
        Else every new score is below a; lowering the old ones that exceed a to a only raises E[h(M)]. Now E[h] is
        affine in each x_j, so on the box of all falls its least value is at a corner: a part A falls by D, the rest B
        stays. Given the noise of B: if its largest is >= a, pointwise; else only A counts, and (2a) gives q^D.
        (2c) In general, given the noise of those that do not fall: if their largest, after the move, is >= a, then
        M' >= a and M' <= M + D, so h(M') >= q^D h(M) pointwise; else only the falling ones count, and (2b) applies.
    Assumes: the number and the order of candidates are public; real scores are rounded down to the grid, and
        `sensitivity` is rounded up to whole steps of it.
    Direction: exact sampling; charged as any epsilon-DP mechanism, with or without the margin.
    Checked by: tests/theorems/test_noisy_max.py

    >>> mechanism = ReportNoisyMax(epsilon=1.0, sensitivity=1)
    >>> mechanism.release([3, 900, 7])
    1
    >>> ReportNoisyMax(1.0, gap=True).release([3, 900, 7]).candidate
    1
    >>> mechanism.event
    ApproxDP(epsilon=1.0, delta=0.0)
    """

    epsilon: float
    sensitivity: float = 1
    monotone: bool = False
    grid: float | None = None
    gap: bool = False

    def __post_init__(self) -> None:
        Selection.__post_init__(self)
        if not isinstance(self.gap, bool | np.bool_):
            raise InvalidValue("gap", self.gap, "must be True or False")

    @property
    def event(self) -> Event:
        """Priced as the worst of all epsilon-DP mechanisms; the margin costs nothing more."""
        return ApproxDP(self.epsilon)

    def error(self, confidence: float, candidates: int) -> float:
        """A d such that, with this probability, the chosen score is at most d below the best.

        It holds for any scores of so many candidates, and is at most one step more than the smallest such d: rounding
        exponential noise down moves a difference by less than one step, and exponential noise is permute-and-flip.

        Args:
            confidence: The probability that the loss is not larger, between 0 and 1.
            candidates: How many candidates there are.

        Returns:
            The largest loss, in units of the score.

        Raises:
            InvalidValue: If an argument is out of range.

        >>> ReportNoisyMax(epsilon=1.0).error(0.95, candidates=100)
        14
        """
        steps = steps_lost(self.rate, checked_candidates(candidates), checked_confidence(confidence))
        return self._in_units(steps + 1 if candidates > 1 else 0)

    def _answer(self, value: Any, source: Source) -> int | Winner:
        scores, bits = score_steps(value, self.grid, 2 if self.gap else 1).tolist(), Bits(source, 4096)
        rate = self.rate
        # Python's integers: a score of 2^62 and any noise add up without wrapping.
        noisy = [score + geometric(rate, bits) for score in scores]
        index = max(range(len(noisy)), key=noisy.__getitem__)  # the first of the largest
        if not self.gap:
            return index
        rivals = [score + 1 for score in noisy[:index]] + noisy[index + 1 :]
        margin = noisy[index] - max(rivals)
        return Winner(index, margin if self.grid is None else nearest_double(margin * Fraction(self.grid)))
