"""Several intervals that hold at once: how much more each of them must hold."""

from __future__ import annotations

import math

from farthing.errors import InvalidValue
from farthing.inference.noise_sums import checked_confidence


def level_at_once(confidence: float, numbers: int, *, independent: bool = False) -> float:
    """The confidence that each of so many intervals needs, so that all of them hold at once with `confidence`.

    Statement:
        Let each of k intervals hold with probability at least p. All of them hold at once with probability at least
        1 - k (1 - p), and at least p^k if they are independent. So p = 1 - (1 - c) / k is enough for c, and
        p = c^(1/k) if they are independent; then nothing less is enough for intervals that hold with exactly p.
    Source: Boole's inequality; Sidak 1967, "Rectangular confidence regions for the means of multivariate normal
        distributions", JASA 62(318), section 1, for independent ones.
    Assumes: each interval holds with at least the confidence it is asked for, as all of ours do.
    Direction: rounded up, so that the coverage of all is at least `confidence`.
    Checked by: tests/theorems/test_simultaneous_intervals.py

    >>> round(level_at_once(0.95, 40), 6), round(level_at_once(0.95, 40, independent=True), 6)
    (0.99875, 0.998718)
    >>> level_at_once(0.95, 1)
    0.95
    """
    level = checked_confidence(confidence)
    if not (isinstance(numbers, int) and numbers >= 1):
        raise InvalidValue("numbers", numbers, "must be a whole number, at least 1")
    if numbers == 1:
        return level
    found = math.exp(math.log(level) / numbers) if independent else 1 - (1 - level) / numbers
    for _ in range(4):  # exp, log and the division are each off by a last digit or so
        found = math.nextafter(found, 1.0)
    return min(found, math.nextafter(1.0, 0.0))
