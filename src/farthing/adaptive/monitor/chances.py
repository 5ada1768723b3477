"""How often a monitor cries wolf, and how often it sleeps: from the exact law of both noises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_BLOCKS = 4096
_BEYOND = math.exp(-60)  # what lies further out is counted as wrong


def chance_above(
    threshold_rate: Fraction, question_rate: Fraction, offset: int, distance: int, queries: int
) -> float:
    """The chance that some of `queries` counts, all at `distance` below the threshold or lower, is called above.

    Statement:
        "Above" is answered if value + N >= T + offset + R with R and N geometric of the given rates. For
        value = T - d the chance given R = r is P[N >= d + offset + r], and values further below have a smaller one;
        so the chance that any of k questions is answered "above" in one round is at most
            sum over r of P[R = r] (1 - (1 - P[N >= d + offset + r])^k),
        with equality if all k values lie at T - d.
    Source: the law of the noise, as `threshold_error` has it.
    Assumes: rates > 0, queries >= 1; questions may depend on earlier answers.
    Direction: upward; exact up to rounding if R has fewer than 4096 likely values.
    Checked by: tests/theorems/test_monitor_chances.py

    >>> round(chance_above(Fraction(1), Fraction(1), 0, 5, 1), 4)
    0.0049
    """
    starts, mass, _ = _blocks(float(threshold_rate))
    each = np.exp(-float(question_rate) * np.maximum(distance + offset + starts, 0.0))
    with np.errstate(divide="ignore"):
        some = -np.expm1(queries * np.log1p(-np.minimum(each, 1.0)))
    return min(1.0, math.fsum(mass * some) * (1 + 1e-12) + _BEYOND)


def chance_below(threshold_rate: Fraction, question_rate: Fraction, offset: int, distance: int) -> float:
    """The chance that one question about a count at `distance` above the threshold, or higher, is answered "below".

    Statement:
        With the notation of `chance_above`: in a given round the chance that a given question is reached, is about a
        value >= T + d and is answered "below" is at most
            sum over r of P[R = r] P[N <= offset + r - d - 1],
        with equality for a round's first question at T + d. (That event implies N < offset + R - d, and the N of
        the question is independent of R, whatever was answered before.)
    Source: the law of the noise, as `threshold_error` has it.
    Assumes: rates > 0; questions may depend on earlier answers.
    Direction: upward; exact up to rounding if R has fewer than 4096 likely values.
    Checked by: tests/theorems/test_monitor_chances.py

    >>> round(chance_below(Fraction(1), Fraction(1), 0, 5), 4)
    0.0018
    """
    _, mass, ends = _blocks(float(threshold_rate))
    missed = -np.expm1(-float(question_rate) * np.maximum(offset + ends - distance, 0.0))
    return min(1.0, math.fsum(mass * missed) * (1 + 1e-12) + _BEYOND)


def _blocks(rate: float) -> tuple[Floats, Floats, Floats]:
    """Blocks of the threshold's noise: where each begins, how likely it is, and where it ends."""
    reach = math.ceil(60 / rate) + 1
    width = -(-reach // _BLOCKS)
    starts = np.arange(0, reach, width, dtype=np.float64)
    return starts, np.exp(-rate * starts) * -np.expm1(-rate * width), starts + (width - 1)
