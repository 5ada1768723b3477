"""How many equal charges fit: a clock that knows that every charge so far was the same admits a few more of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LONGEST_PATH = 600
"""Beyond so many charges the clock alone is within a hair of the optimum for charges fixed in advance."""

_MARGIN = 1e-6  # far above the error of a sum of positive doubles and of erfc, where it matters about 1e-9
_LARGEST = 600.0  # e to the power of it is still a double


def equal_charges(epsilon: float, slack: float, charge: float, clocks: Sequence[float]) -> int:
    """How many charges of an epsilon-DP mechanism fit if all are the same; at least as many as the clock pays for.

    Args:
        epsilon: The epsilon of the budget.
        slack: The delta of the budget that is not set aside for leaks.
        charge: The epsilon of each charge.
        clocks: What is left of the clock before the first charge, after one, after two, until it cannot pay.

    Returns:
        The largest number that is proven.

    >>> equal_charges(3.0, 1e-6, 0.1, [0.0])        # beside no clock at all: the optimum for charges fixed in advance
    46

    Statement:
        Let n equal charges leave the clock at s_n, n = 0..K, and let T be the step of randomized response:
        (T f)(x) = E[f(x + l)]. Put W_N(x) = max((1 - e^-x)_+, V(x, s_N) if N <= K) and
            W_n(x) = max((1 - e^-x)_+, V(x, s_n) if n <= K, (T W_(n+1))(x)),   n = N-1..0.
        If V(-epsilon, s_0) <= slack and (T W_1)(-epsilon) <= slack, then a filter may admit up to N equal charges
        beside all that the clock and plain sums admit: all answers together are still (epsilon, slack)-DP.
    Source: the proof is on the page docs/clock.md ("Equal charges"); it was written for farthing.
    Assumes: the clock's state after n equal charges is s_n or less, whatever comes after; once a different charge is
        made, only the clock and plain sums count.
    Direction: values are sums of positive doubles; a millionth is added to them.
    Checked by: tests/theorems/test_equal_charges.py
    """
    paid = len(clocks) - 1
    most = 2 * paid + 50
    if paid > LONGEST_PATH or not epsilon + most * charge <= _LARGEST:
        return paid
    rows = [_curve(_points(n, charge) - epsilon, s) for n, s in enumerate(clocks)]

    def fits(number: int) -> bool:
        return bool(_reached(number, epsilon, charge, rows) * (1 + _MARGIN) <= slack)

    low, high = paid, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _reached(number: int, epsilon: float, charge: float, rows: list[NDArray[np.float64]]) -> float:
    """(T W_1)(-epsilon), row by row; row n has the n + 1 losses that n charges can end in."""
    truth = 1 / (1 + math.exp(-charge))
    values = np.zeros(0)
    for n in range(number, -1, -1):
        after = truth * values[1:] + (1 - truth) * values[:-1]
        if n == 0:
            return float(after[0])
        values = rows[n] if n < len(rows) else -np.expm1(np.minimum(0.0, epsilon - _points(n, charge)))
        if n < number:
            values = np.maximum(values, after)
    return 0.0


def _points(n: int, charge: float) -> NDArray[np.float64]:
    points: NDArray[np.float64] = np.arange(-n, n + 1, 2, dtype=np.float64) * np.float64(charge)
    return points


def _curve(x: NDArray[np.float64], s: float) -> NDArray[np.float64]:
    """V(x, s), and (1 - e^-x)_+ where rounding would put it below that."""
    payoff: NDArray[np.float64] = -np.expm1(np.minimum(0.0, -x))
    if s <= 0:
        return payoff
    root = math.sqrt(2 * s)
    return np.maximum(payoff, (_erfc(-(x + s / 2) / root) - np.exp(-x) * _erfc(-(x - s / 2) / root)) / 2)


def _erfc(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([math.erfc(each) for each in x])
