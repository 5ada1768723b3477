"""A long stream of questions "is it above?", paid for by the few that are.

One noisy threshold is held against many noisy answers. Questions answered "below" cost nothing; after a stated number
of answers "above" the session stops. The whole session is one event, charged before the first answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.mechanisms.mechanism import Mechanism, checked_integers, checked_reals, nearest_double
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.threshold_session import Above, Below, ThresholdSession
from farthing.numerics.bounds import rounded_up
from farthing.privacy.events import (
    ApproxDP,
    Composed,
    Event,
    checked_count,
    checked_mechanism_epsilon,
    checked_real,
)

_BLOCKS = 4096


def threshold_error(
    threshold_rate: Fraction, question_rate: Fraction, offset: int, queries: int, failure: float
) -> int:
    """The least e (in whole steps) such that some answer is wrong by more than e with at most this probability.

    Statement:
        "Above" is answered if value + N >= T + offset + R, with R and N geometric of the given rates, R drawn once.
        Given R = r, a question is answered wrongly by more than e with probability at most
            m(r) = max(P[N >= e + 1 + r + offset], P[N <= r + offset - e - 2]),
        the larger of a false "above" at T - e - 1 and a false "below" at T + e + 1, whatever its value is. Over all
        questions the probability is at most the sum over r of P[R = r] (1 - (1 - m(r))^queries).
        Wide distributions of R are cut into blocks; the first term falls with r and the second rises, so each block is
        bounded by its ends. What lies beyond the last block counts as wrong.
    Source: the union over both sides is Dwork & Roth 2014, Definition 3.9; the distribution is summed here, not
        bounded.
    Assumes: rates > 0; queries >= 1; the questions may depend on earlier answers.
    Direction: upward; exact, up to the rounding of doubles, if R has fewer than 4096 likely values.
    Checked by: tests/theorems/test_threshold_error.py

    >>> threshold_error(Fraction(1), Fraction(1), 0, 1, 0.05)
    2
    """
    first, second = float(threshold_rate), float(question_rate)
    reach = math.ceil(60 / first) + 1  # P[R >= reach] <= e^-60
    width = -(-reach // _BLOCKS)
    starts = np.arange(0, reach, width, dtype=np.float64)
    mass = np.exp(-first * starts) * -np.expm1(-first * width)
    ends = starts + (width - 1)

    def wrong(e: int) -> float:
        above = np.exp(-second * np.maximum(e + 1 + starts + offset, 0))
        below = -np.expm1(-second * np.maximum(ends + offset - e - 1, 0))
        worst = np.minimum(np.maximum(above, below), 1.0)
        with np.errstate(divide="ignore"):
            some = -np.expm1(queries * np.log1p(-worst))
        return float(math.fsum(mass * some) * (1 + 1e-12) + math.exp(-60))

    low, high = -1, 1
    while not wrong(high) <= failure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong(middle) <= failure else (middle, high)
    return high


_PARTS = 2**16  # the budget is divided into so many parts, so that rates stay short fractions
_LEAST_RATE = 2.0**-200  # noise wider than that is of no use, and its mean might not be a double


@dataclass(frozen=True, slots=True)
class AboveThreshold(Mechanism):
    """The first question of a stream whose answer is above a threshold; all before it are known to be below.

    The guarantee is proven at `SparseVector`, of which this is the case of one positive.

    Args:
        epsilon: The epsilon of the whole stream, > 0.
        l1_sensitivity: The most that any one answer moves between neighbours.
        monotone: Whether all answers move in the same direction (counts when a row is added). It makes the noise
            smaller.
        threshold: What an answer is compared with.
        with_gap: Whether to add by how much an answer was above, at no extra cost.
        grid: A power of two to which real answers are rounded down; without one, answers are whole numbers.

    Raises:
        InvalidValue: If a parameter is out of its range, or `l1_sensitivity` is not whole and there is no grid.

    >>> mechanism = AboveThreshold(epsilon=1.0, threshold=1000)
    >>> mechanism.event
    ApproxDP(epsilon=1.0, delta=0.0)
    >>> mechanism.release([3, -20, 5000, 7000])
    [Below(), Below(), Above(gap=None)]
    >>> mechanism.error(confidence=0.95, queries=100)
    22
    """

    epsilon: float
    l1_sensitivity: float = 1
    monotone: bool = False
    threshold: float = 0
    with_gap: bool = False
    grid: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_mechanism_epsilon(self.epsilon))
        for name in ("monotone", "with_gap"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidValue(name, getattr(self, name), "must be True or False")
        if self.grid is None:
            steps = checked_count(self.l1_sensitivity, "l1_sensitivity")
            if not steps >= 1:
                raise InvalidValue("l1_sensitivity", steps, "must be a whole number >= 1", "or give a grid")
            object.__setattr__(self, "l1_sensitivity", steps)
        else:
            grid = checked_real(self.grid, "grid")
            if not (0 < grid < math.inf and math.frexp(grid)[0] == 0.5):
                raise InvalidValue("grid", self.grid, "must be a power of two", "for example 2**-10")
            reach = checked_real(self.l1_sensitivity, "l1_sensitivity")
            if not 0 < reach < math.inf:
                raise InvalidValue("l1_sensitivity", self.l1_sensitivity, "must be a finite number > 0")
            # Plain numbers from here on: a fraction made of NumPy's integers wraps around like them.
            object.__setattr__(self, "grid", grid)
            object.__setattr__(self, "l1_sensitivity", reach)
        self._steps_of_threshold(self.threshold)
        if not all(float(rate) >= _LEAST_RATE for rate in self._rates):
            raise InvalidValue(
                "epsilon",
                self.epsilon,
                "makes the noise wider than 2^200 steps",
                "raise epsilon or use a coarser grid",
            )

    @property
    def positives(self) -> int:
        """How many answers may be "above" before the session stops."""
        return 1

    @property
    def event(self) -> Event:
        """What one session costs, however many questions it takes: charge it before `start` or `release`."""
        return ApproxDP(self.epsilon)

    def start(self, threshold: float | None = None) -> ThresholdSession:
        """An interactive session: `session.ask(value)` until it stops. Each start is another release.

        Args:
            threshold: A threshold for this session; that of the mechanism by default.

        Returns:
            The session, to be asked one value after another.

        Raises:
            InvalidValue: If the threshold is not a number (a whole one, without a grid).

        >>> session = AboveThreshold(1.0).start(threshold=1000)
        >>> session.ask(5), session.ask(4000), session.stopped
        (Below(), Above(gap=None), True)
        """
        return self._start(SYSTEM, threshold)

    def error(self, confidence: float = 0.95, queries: int = 1) -> float:
        """The least e such that, with this probability, no answer to `queries` questions is wrong by more than e.

        Every value reported above is at least threshold - e and every value reported below is at most threshold + e,
        whatever the values are and even if questions depend on earlier answers. From the exact distribution of the
        noise.

        Args:
            confidence: The probability that no answer is wrong by more, between 0 and 1.
            queries: How many questions are asked, at least 1.

        Returns:
            The error, in units of the value.

        Raises:
            InvalidValue: If `confidence` or `queries` is out of range.

        >>> AboveThreshold(1.0).error(0.95, queries=1), AboveThreshold(1.0, monotone=True).error(0.95)
        (8, 5)
        """
        level = checked_real(confidence, "confidence")
        if not 0 < level < 1:
            raise InvalidValue("confidence", confidence, "must be above 0 and below 1")
        count = checked_count(queries, "queries")
        if not count >= 1:
            raise InvalidValue("queries", queries, "must be a whole number >= 1")
        rounds = min(count, self._rounds)
        steps = threshold_error(*self._rates, self._offset, count, (1 - level) / rounds)
        # Rounding to the grid moves the value by less than one step and the threshold by less than one.
        return steps if self.grid is None else (steps + 2) * self.grid

    @property
    def variance(self) -> float:
        """The variance of the gap's noise: that of the question plus that of the threshold.

        >>> AboveThreshold(1.0, with_gap=True).variance
        17.156...
        """
        unit = 1.0 if self.grid is None else self.grid
        return unit**2 * sum(1 / (2 * math.sinh(float(rate) / 2)) ** 2 for rate in self._rates)

    @property
    def standard_error(self) -> float:
        """The square root of `variance`."""
        return math.sqrt(self.variance)

    @property
    def _rounds(self) -> int:
        """How often the threshold's noise is drawn at most."""
        return 1

    @property
    def _rates(self) -> tuple[Fraction, Fraction]:
        """The rates of the threshold's and of a question's geometric noise; see the proof at `SparseVector`."""
        budget = Fraction(self.epsilon) / self._rounds
        positives = self.positives // self._rounds
        shifts = positives if self.monotone else 2 * positives
        # Dividing epsilon 1 : shifts^(2/3) makes the variance of the difference least; any division is private.
        parts = min(max(round(_PARTS / (1 + shifts ** (2 / 3))), 1), _PARTS - 1)
        first = budget * Fraction(parts, _PARTS)
        return first / self._steps, (budget - first) / (shifts * self._steps)

    @property
    def _steps(self) -> int:
        """The sensitivity in whole steps: rounding down moves two values apart by less than one step more."""
        if self.grid is None:
            return int(self.l1_sensitivity)
        return math.ceil(Fraction(self.l1_sensitivity) / Fraction(self.grid))

    @property
    def _offset(self) -> int:
        """A public shift of the threshold that takes the mean of the one-sided noises out."""
        threshold, question = (1 / math.expm1(float(rate)) for rate in self._rates)
        return round(question - threshold)

    def _steps_of_threshold(self, threshold: object) -> int:
        number = checked_real(threshold, "threshold")
        if not -math.inf < number < math.inf:
            raise InvalidValue("threshold", threshold, "must be a finite number")
        if self.grid is not None:
            return math.ceil(Fraction(number) / Fraction(self.grid))
        if number != math.floor(number):
            raise InvalidValue("threshold", threshold, "must be a whole number", "or give a grid")
        return int(threshold)  # type: ignore[call-overload,no-any-return]

    def _start(self, source: Source, threshold: float | None = None) -> ThresholdSession:
        steps = self._steps_of_threshold(self.threshold if threshold is None else threshold)
        rates = self._rates
        return ThresholdSession(
            threshold=steps + self._offset,
            rates=rates,
            positives=self.positives,
            fresh=self._rounds > 1,
            read=self._one_value,
            show_gap=self._gap_reader(),
            source=source,
        )

    def _gap_reader(self) -> Callable[[int], float] | None:
        if not self.with_gap:
            return None
        grid = self.grid
        return (lambda steps: steps) if grid is None else (lambda steps: nearest_double(steps * Fraction(grid)))

    def _values(self, value: object) -> NDArray[Any]:
        """Private values in whole steps, as Python integers."""
        if self.grid is None:
            return checked_integers(value).astype(object)
        reals = checked_reals(value)
        grid = Fraction(self.grid)
        steps = [math.floor(Fraction(float(real)) / grid) for real in reals.flat]
        return np.array(steps, dtype=object).reshape(reals.shape)

    def _one_value(self, value: object) -> int:
        steps = self._values(value)
        if steps.shape != ():
            raise InvalidData("value", "must be a single number", "ask one question at a time")
        return int(steps[()])

    def _answer(self, value: object, source: Source) -> list[Above | Below]:
        """The answers to a whole stream, up to and including the last positive that may be given."""
        steps = self._values(value)
        if steps.ndim != 1:
            raise InvalidData("value", "must be a list of numbers", "for one question at a time use start()")
        session = self._start(source)
        answers: list[Above | Below] = []
        for step in steps:
            if session.stopped:
                break
            answers.append(session._ask_steps(int(step)))
        return answers


@dataclass(frozen=True, slots=True)
class SparseVector(AboveThreshold):
    """Up to `positives` answers above a threshold, out of a stream as long as one likes.

    Args:
        epsilon: The epsilon of the whole stream, > 0.
        l1_sensitivity: The most that any one answer moves between neighbours.
        monotone: Whether all answers move in the same direction (counts when a row is added). It makes the noise
            smaller.
        threshold: What an answer is compared with.
        with_gap: Whether to add by how much an answer was above, at no extra cost.
        grid: A power of two to which real answers are rounded down; without one, answers are whole numbers.
        positives: After how many answers above the threshold the stream ends.
        fresh_threshold: Whether to draw the threshold's noise again after each positive, which makes it a composition.

    Raises:
        InvalidValue: If a parameter is out of its range.

    Statement:
        Values are integers that move by at most D between neighbours. Draw R from the geometric distribution on 0, 1,
        2, ... of rate r1 = epsilon1 / D; for each question draw N of rate r2 = epsilon2 / (2 c D). Answer "above" if
        value + N >= T + R and "below" otherwise; stop after c answers "above". The transcript is (epsilon1 +
        epsilon2)-DP, also if each "above" shows its gap value + N - T - R, and also if the questions and thresholds are
        chosen in view of earlier answers. If all values move in the same direction, c D in place of 2 c D is enough.
        With `fresh_threshold`, R is redrawn after each positive, and the session is the adaptive composition of c
        mechanisms with one positive and epsilon / c each.
        Proof: let P, Q be neighbours and fix R = r under P. (a) If value_Q <= value_P + D, then value_P + N < T + r
        implies value_Q + N < T + r + D for the same N: given R = r + D under Q, "below" is at least as likely, and
        P[R = r] = e^(r1 D) P[R = r + D] for r >= 0. (b) "above" with gap g needs N = g + T + r - value_P under P
        and N = g + T + r + D - value_Q under Q, larger by s = D + value_P - value_Q, and 0 <= s <= 2 D. A geometric
        distribution has P[N = n] <= e^(r2 s) P[N = n + s] for every integer n and s >= 0 (the left side is 0 for n <
        0), ties included. At most c questions pay (b). Add up over r: the ratio is at most e^(r1 D + 2 c r2 D). Without
        the gap: add up over g >= 0. If values move up from P to Q, s <= D; if they move down, take R = r under both:
        "below" is at least as likely under Q, and s = value_P - value_Q lies in 0..D.
    Source: Lyu, Su & Li, "Understanding the sparse vector technique", arXiv:1603.01699, Algorithms 1 and 7
        (one threshold noise, the split of epsilon, monotone queries); Dwork & Roth 2014, Algorithms 1 and 2
        (fresh threshold); Ding, Wang, Zhang & Kifer, "Free gap information", arXiv:1904.12773 (the gap).
    Departs from source: the noise is one-sided and discrete; the proof above stands by itself. It has half the
        variance of Laplace noise of the same rate.
    Assumes: the sensitivity holds for every single question; thresholds are public.
    Direction: epsilon is an upper bound, reached in the limit of long streams.
    Checked by: tests/theorems/test_sparse_vector_is_private.py

    >>> mechanism = SparseVector(epsilon=2.0, positives=3, threshold=1000, with_gap=True)
    >>> answers = mechanism.release([0, 9000, 2, 8000, 9000, 3, 4])
    >>> [bool(answer) for answer in answers]  # the third positive was the last
    [False, True, False, True, True]
    >>> abs(1000 + answers[1].gap - 9000) < 200
    True
    >>> SparseVector(epsilon=2.0, positives=4, fresh_threshold=True).event
    Composed(parts=((ApproxDP(epsilon=0.5, delta=0.0), 4),))
    """

    positives: int = 1
    fresh_threshold: bool = False

    def __post_init__(self) -> None:
        count = checked_count(self.positives, "positives")
        if not 1 <= count <= 2**20:
            raise InvalidValue("positives", self.positives, "must be from 1 to 2^20")
        object.__setattr__(self, "positives", count)
        if not isinstance(self.fresh_threshold, bool):
            raise InvalidValue("fresh_threshold", self.fresh_threshold, "must be True or False")
        AboveThreshold.__post_init__(self)

    @property
    def event(self) -> Event:
        """epsilon for the session; with `fresh_threshold` the parts, which compose to less than their sum."""
        if self._rounds == 1:
            return ApproxDP(self.epsilon)
        return Composed(((ApproxDP(rounded_up(Fraction(self.epsilon) / self.positives)), self.positives),))

    @property
    def _rounds(self) -> int:
        return self.positives if self.fresh_threshold else 1
