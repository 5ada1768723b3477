"""One round: questions answered "near" for free, until the first that is not near, which ends it.

The hypothesis says b, the rows say a: a question is far if |a - b| is large. Both sides are watched at once, each with
a noisy threshold of its own.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from farthing.errors import FarthingError, InvalidValue
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.samplers.single_draws import Bits, geometric
from farthing.privacy.events import ApproxDP, checked_count, checked_mechanism_epsilon

_PARTS = 2**16  # the budget is divided into so many parts, so that rates stay short fractions


@dataclass(frozen=True, slots=True)
class Exceedance:
    """The question that ended a round: on which side (+1: the rows say more), and how far beyond the threshold.

    >>> Exceedance(side=-1, gap=12)
    Exceedance(side=-1, gap=12)
    """

    side: int
    gap: int


@dataclass(frozen=True, slots=True)
class TwoSidedThreshold:
    """The first question of a stream that is far from what was expected, on either side; all before it are near.

    `threshold_parts` of 2^16 parts of epsilon go to the thresholds' noise, the rest to the questions'.

    Statement:
        Cells of neighbours differ by at most L in l1. Questions are sums of cells minus public whole numbers, v_1,
        v_2, ...; they may depend on earlier answers. Draw R and R' from the geometric distribution on 0, 1, 2, ... of
        rate r1 and, for each question, N and N' of rate r2. If v + N >= T + R answer "far above" with the gap v + N - T
        - R and stop; else if -v + N' >= T + R' answer "far below" with its gap and stop; else answer "near". The
        transcript is epsilon-DP with epsilon = L (r1 + r2).
        Proof: as at SparseVector, with a threshold for each side. From P to Q let cells grow by u and shrink by w in
        all, u + w <= L: then v_P - w <= v_Q <= v_P + u. Couple R_Q = R + u and R'_Q = R' + w, which costs
        r1 (u + w) in all. "Near" is then at least as likely under Q: v_P + N < T + R implies v_Q + N < T + R + u,
        and -v_P + N' < T + R' implies -v_Q + N' < T + R' + w. "Far above" with gap g needs N larger under Q by
        u + v_P - v_Q, and "far below" needs N' larger by w - v_P + v_Q; both lie in 0..u + w, so the one question
        that stops the round costs at most r2 (u + w). A geometric distribution has P[N = n] <= e^(r s) P[N = n + s] for
        every integer n and s >= 0.
    Source: own derivation after Dwork & Roth 2014, Algorithm 1, and the free gap of Ding, Wang, Zhang & Kifer,
        arXiv:1904.12773. One threshold for both sides, as two questions of one AboveThreshold, needs r1 + 2 r2.
    Assumes: questions count every cell zero times or once; T and what is subtracted are public.
    Direction: epsilon is an upper bound, reached in the limit of long streams.
    Checked by: tests/theorems/test_multiplicative_weights_round.py

    >>> round_ = TwoSidedThreshold(epsilon=1.0, threshold=1000)
    >>> asking = round_.start()
    >>> asking.ask(3), asking.ask(-20), asking.ask(-9000).side, asking.over
    (None, None, -1, True)
    >>> round_.event
    ApproxDP(epsilon=1.0, delta=0.0)
    """

    epsilon: float
    threshold: int
    l1_sensitivity: int = 1
    threshold_parts: int = _PARTS // 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        sensitivity = checked_count(self.l1_sensitivity, "l1_sensitivity")
        if not sensitivity >= 1:
            raise InvalidValue("l1_sensitivity", sensitivity, "must be a whole number >= 1")
        if not 0 < checked_count(self.threshold_parts, "threshold_parts") < _PARTS:
            raise InvalidValue("threshold_parts", self.threshold_parts, f"must be from 1 to {_PARTS - 1}")

    @property
    def event(self) -> ApproxDP:
        """What the round costs, however many questions it takes: charge it before `start`."""
        return ApproxDP(self.epsilon)

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The rates of the thresholds' and of the questions' noise."""
        budget = Fraction(self.epsilon) / self.l1_sensitivity
        first = budget * Fraction(self.threshold_parts, _PARTS)
        return first, budget - first

    def start(self) -> OpenRound:
        """Draw the thresholds' noise; each start is another round."""
        return self._start(SYSTEM)

    def _start(self, source: Source) -> OpenRound:
        return OpenRound(self.threshold, self.rates, source)


class OpenRound:
    """A round that is under way. It holds secret noise: it cannot be copied or carried into another process.

    >>> TwoSidedThreshold(1.0, threshold=1000).start()
    OpenRound(over=False)
    """

    __slots__ = ("_bits", "_over", "_process", "_question_rate", "_thresholds")

    def __init__(self, threshold: int, rates: tuple[Fraction, Fraction], source: Source) -> None:
        self._bits = Bits(source)
        self._process = os.getpid()
        self._question_rate = rates[1]
        self._thresholds = tuple(threshold + geometric(rates[0], self._bits) for _ in range(2))
        self._over = False

    @property
    def over(self) -> bool:
        """Whether a question was far: from then on `ask` refuses."""
        return self._over

    @property
    def here(self) -> bool:
        """Whether this is the process that drew the noise."""
        return os.getpid() == self._process

    def ask(self, difference: int) -> Exceedance | None:
        """None if this private difference is near, else the answer that ends the round."""
        if self._over or not self.here:
            raise FarthingError("this round is over or belongs to another process; start and pay for another.")
        for side, threshold in zip((1, -1), self._thresholds, strict=True):
            gap = side * difference + geometric(self._question_rate, self._bits) - threshold
            if gap >= 0:
                self._over = True
                return Exceedance(side, gap)
        return None

    def __repr__(self) -> str:
        return f"OpenRound(over={self._over})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a round cannot be copied or pickled: a copy would answer with the same noise")


def reach_of_noise(rate: Fraction, draws: int, failure: float) -> int:
    """The least t such that the largest of so many geometric draws is above t with at most this probability.

    Statement: P[max of m draws > t] = 1 - (1 - e^(-rate (t + 1)))^m, solved for t.
    Source: the distribution of a maximum of independent draws.
    Assumes: rate > 0; draws >= 1; 0 < failure < 1. Draws that are never made only help.
    Direction: t is rounded up.
    Checked by: tests/theorems/test_multiplicative_weights_error.py

    >>> reach_of_noise(Fraction(1), 1, 0.05), reach_of_noise(Fraction(1, 10), 20_000, 0.05)
    (2, 128)
    """
    each = -math.expm1(math.log1p(-failure) / draws)  # what a single draw may fail with
    return max(0, math.ceil(-math.log(each) / float(rate) * (1 + 1e-12)) - 1)
