"""A sorted private column seen as intervals of a public grid, each as far from a wanted rank as all its points are."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.weighted_choice import Group, choose_label


def drawn_point(
    keys: NDArray[np.int64], first: int, last: int, probability: Fraction, rate: Fraction, bits: Bits
) -> int:
    """The same as `drawn_point_of_counts`, from one key for each row; they lie in first .. last."""
    distinct, counts = np.unique(keys, return_counts=True)
    return drawn_point_of_counts(distinct, counts, first, last, probability, rate, bits)


def drawn_point_of_counts(
    distinct: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: int,
    last: int,
    probability: Fraction,
    rate: Fraction,
    bits: Bits,
) -> int:
    """A point y of first .. last, drawn with probability exactly proportional to exp(-rate * loss(y)).

    `distinct` are the points that hold rows, rising, inside first .. last, and `counts` how many each of them holds.
    With n rows, loss(y) is the distance, in rows, from probability * n to the ranks that y holds, which run from the
    rows below y to those at or below y. It is constant on each distinct point and on each stretch between two of them,
    so only those are weighed. Some y has loss 0: the ranks of first .. last cover 0 .. n without a hole.
    """
    ranks = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])  # ranks[i] rows lie below distinct[i]
    a, b, n = probability.numerator, probability.denominator, int(ranks[-1])
    target = a * n  # all losses are in units of 1 / b rows, so that they are whole numbers
    widths: dict[int, int] = {}

    def groups(limit: int) -> tuple[list[Group], int]:
        lowest = max(0, -((limit - target) // b))  # ranks within the limit
        highest = min(n, (target + limit) // b)
        intervals: list[Group] = []
        # Python's integers from here on: b may be large, and only the rows near the wanted rank are touched.
        start = int(np.searchsorted(ranks[1:], lowest, "left"))
        stop = int(np.searchsorted(ranks[:-1], highest, "right"))
        borders = ranks[start : stop + 1].tolist()
        for key, below, upto in zip(distinct[start:stop].tolist(), borders[:-1], borders[1:], strict=True):
            intervals.append((max(0, b * below - target, target - b * upto), 1, key))
            widths[key] = 1
        start = int(np.searchsorted(ranks, lowest, "left"))
        stop = int(np.searchsorted(ranks, highest, "right"))
        ends = distinct[max(start - 1, 0) : stop].tolist()
        ends = [first - 1] * (start == 0) + ends + [last + 1] * (stop == len(ranks))
        for (left, right), rank in zip(pairwise(ends), ranks[start:stop].tolist(), strict=True):
            if right - left > 1:  # there are points between the two
                intervals.append((abs(b * rank - target), right - left - 1, left + 1))
                widths[left + 1] = right - left - 1
        intervals.sort(key=itemgetter(0, 2))
        return intervals, last - first + 1 - sum(count for _, count, _ in intervals)

    label = choose_label(rate / b, groups, last - first + 1, bits)
    return label + bits.below(widths[label])
