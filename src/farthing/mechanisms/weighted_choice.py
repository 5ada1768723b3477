"""An exact draw among very many candidates with exponential weights, looking only at those that matter.

`exact.choose` takes every weight. Here candidates come in groups of equal weight, best first, and those so far below
the best that their share is smaller than the drawn bits can show are only counted. The law is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import flint

from farthing.mechanisms.exact import Bits
from farthing.numerics.balls import precision

_WORD = 32  # few bits first: they decide almost always, and let the limit be near

Group = tuple[int, int, int]
"""(gap below the best, how many candidates share it, a label)."""

Groups = Callable[[int], tuple[Sequence[Group], int]]
"""For a limit: all groups whose gap is <= limit, ordered by gap, and how many candidates were left out.

The order must not depend on the limit: a larger one only adds groups at the end. The first gap is 0.
"""


def choose_label(rate: Fraction, groups: Groups, candidates: int, bits: Bits) -> int:
    """The label of a group drawn with probability exactly proportional to count * exp(-rate * gap).

    Inversion: the drawn prefix names an interval of [0, 1), the groups lie side by side in [0, total). While that
    interval might touch a border, or reach into what was left out, the prefix grows, the balls get finer and the
    limit moves out. What is left out weighs at most candidates * exp(-rate * limit) < 2^-(width + 16), next to at
    least 1 for the best, so a draw is seldom undecided.
    """
    width, prefix = _WORD, bits.word(_WORD)
    while True:
        # 0.7 is above log 2.
        limit = int(Fraction(7, 10) * (width + 16 + candidates.bit_length()) / rate) + 1
        inside, outside = groups(limit)
        with precision(width + 64):
            found = _inverted(rate, inside, outside, limit, prefix, width)
        if found is not None:
            return inside[found][2]
        prefix = (prefix << _WORD) | bits.word(_WORD)
        width += _WORD


def _inverted(
    rate: Fraction, inside: Sequence[Group], outside: int, limit: int, prefix: int, width: int
) -> int | None:
    slope = -flint.arb(flint.fmpq(rate.numerator, rate.denominator))
    borders: list[Any] = []
    total = flint.arb(0)
    for gap, count, _ in inside:
        total += count * (slope * gap).exp()
        borders.append(total)
    if outside:  # a weight between 0 and the most it can be, as one ball
        most = outside * (slope * limit).exp()
        total += most / 2 + most * flint.arb(0, 0.5)
    unit = flint.arb(2) ** -width
    lower, upper = total * prefix * unit, total * (prefix + 1) * unit
    # The first group whose border is not surely at or below the interval must surely hold all of it.
    first = bisect_left(borders, True, key=lambda border: not border <= lower)
    if first == len(borders):
        return None
    # Nothing lies beyond the last group, so there the interval need not be compared with the total it was made from.
    surely = upper <= borders[first] or (not outside and first == len(borders) - 1)
    return first if surely else None
