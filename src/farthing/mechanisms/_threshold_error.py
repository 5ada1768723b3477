"""How wrong a stream of noisy comparisons may be, from the exact law of both noises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

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
        Wide laws of R are cut into blocks; the first term falls with r and the second rises, so each block is
        bounded by its ends. What lies beyond the last block counts as wrong.
    Source: the union over both sides is Dwork & Roth 2014, Definition 3.9; the law is summed here, not bounded.
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
