"""The alias method in whole numbers: a choice among many in constant time, without any rounding."""

from __future__ import annotations

from collections.abc import Sequence


def alias_columns(counts: Sequence[int], columns: int) -> tuple[list[int], list[int]]:
    """Per column, how many of its slots belong to the entry of the same number, and which entry owns the others.

    The counts (at most `columns` of them) must add up to columns * height for a whole height. A uniform choice of a
    column and of a slot below `height` then falls to entry i in exactly counts[i] of the columns * height cases.

    >>> own, other = alias_columns([5, 1, 2], columns=4)
    >>> own, other
    ([2, 1, 2, 0], [0, 0, 2, 0])
    >>> [sum(own[i:i + 1]) + sum(2 - own[c] for c in range(4) if other[c] == i) for i in range(3)]
    [5, 1, 2]
    """
    height, remainder = divmod(sum(counts), columns)
    assert remainder == 0 and len(counts) <= columns
    left = list(counts) + [0] * (columns - len(counts))
    own, other = [height] * columns, list(range(columns))
    poor = [i for i, count in enumerate(left) if count < height]
    rich = [i for i, count in enumerate(left) if count > height]
    while poor:
        taker, giver = poor.pop(), rich[-1]  # while somebody is poor somebody is rich: the mean is the height
        own[taker], other[taker] = left[taker], giver
        left[giver] -= height - left[taker]
        if left[giver] <= height:
            rich.pop()
            if left[giver] < height:
                poor.append(giver)
    return own, other
