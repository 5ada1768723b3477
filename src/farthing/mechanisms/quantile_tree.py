"""In which order several quantiles are chosen, from which rows, and how the miss of one passes to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Node(NamedTuple):
    """One choice: place `middle` of the probabilities, between the places `left` and `right`, at a depth."""

    middle: int
    left: int
    right: int
    depth: int


def tree_of(probabilities: Sequence[Fraction]) -> tuple[Node, ...]:
    """A middle one first, then both sides of it: no deeper than floor(log2 m) + 1, each after the two that bound it.

    Where several could be the middle without making the tree deeper, it is the one nearest to halfway between its
    bounds (the later of two as near): the closer to half, the less a row moves the distance in rank.

    >>> [node.middle for node in tree_of([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])]
    [1, 2, 0]
    >>> [node.middle for node in tree_of([Fraction(1, 2), Fraction(99, 100)])]
    [0, 1]
    """
    return tuple(_nodes(probabilities))


def _nodes(probabilities: Sequence[Fraction]) -> Iterator[Node]:
    waiting = [(-1, len(probabilities), 0)]
    while waiting:
        left, right, depth = waiting.pop()
        inside = right - left - 1
        if inside:
            most = (1 << (inside.bit_length() - 1)) - 1  # so many may lie on one side
            low, high = bounds_of(probabilities, left, right)
            could = range(max(left + 1, right - 1 - most), min(right, left + 2 + most))
            middle = min(could, key=lambda place: (abs(2 * probabilities[place] - low - high), -place))
            yield Node(middle, left, right, depth)
            waiting += [(left, middle, depth + 1), (middle, right, depth + 1)]


def all_apart(many: int) -> tuple[Node, ...]:
    """Every choice from all rows."""
    return tuple(Node(place, -1, many, place) for place in range(many))


def bounds_of(probabilities: Sequence[Fraction], left: int, right: int) -> tuple[Fraction, Fraction]:
    """The probabilities at two places; 0 before the first and 1 after the last."""
    low = probabilities[left] if left >= 0 else Fraction(0)
    return low, probabilities[right] if right < len(probabilities) else Fraction(1)


def place_in(probabilities: Sequence[Fraction], node: Node) -> Fraction:
    """The wanted probability within the rows of the node."""
    low, high = bounds_of(probabilities, node.left, node.right)
    return (probabilities[node.middle] - low) / (high - low)


def moved_in(probabilities: Sequence[Fraction], node: Node) -> Fraction:
    """How far a row that joins or leaves moves the distance in rank of a choice, at the most."""
    place = place_in(probabilities, node)
    return max(place, 1 - place)


def passed_on(probabilities: Sequence[Fraction], nodes: Sequence[Node]) -> NDArray[np.float64]:
    """Of each quantile (rows), how much of the miss in rank of each choice (columns) it has.

    A choice at place q' between two others misses by its own miss, 1 - q' times that of the left one and q' times that
    of the right one, because its rank lies between theirs in proportion.
    """
    many = len(probabilities)
    passed = np.zeros((many + 2, many))  # the ends, last, miss nothing
    for node in nodes:
        place = float(place_in(probabilities, node))
        left, right = node.left if node.left >= 0 else many, node.right if node.right < many else many + 1
        passed[node.middle] = (1 - place) * passed[left] + place * passed[right]
        passed[node.middle, node.middle] += 1.0
    return np.asarray(passed[:many])


def best_order(probabilities: Sequence[Fraction]) -> tuple[Node, ...]:
    """The tree, unless choices from all rows miss by less in geometric mean, with equal shares of epsilon.

    That is so for quantiles close to each other: what bounds a choice then has most of its miss.

    >>> len({node.depth for node in best_order([Fraction(k, 4) for k in (1, 2, 3)])})
    2
    >>> len({node.depth for node in best_order([Fraction(49, 100), Fraction(51, 100)])}), best_order([Fraction(1, 2)])
    (2, (Node(middle=0, left=-1, right=1, depth=0),))
    """
    return _best_order(tuple(probabilities))


@lru_cache(maxsize=1024)
def _best_order(probabilities: tuple[Fraction, ...]) -> tuple[Node, ...]:
    tree, apart = tree_of(probabilities), all_apart(len(probabilities))
    return min((tree, apart), key=lambda nodes: float(np.log(misses(probabilities, nodes)).sum()))


def misses(
    probabilities: Sequence[Fraction], nodes: Sequence[Node], weights: Sequence[int] = ()
) -> NDArray[np.float64]:
    """Standard deviations of the ranks of smoothly spread rows at epsilon = 1, in rows, if each unit has one.

    Levels share epsilon by their weights, or evenly. A choice by exponential weights of rate r misses by r^-1 with
    either sign, exponentially: a variance of 2 / r^2.
    """
    shares = shares_of(nodes, weights)
    scales = np.empty(len(probabilities))
    for node in nodes:
        scales[node.middle] = 2 * float(moved_in(probabilities, node) / shares[node.depth])
    return np.sqrt(2 * (passed_on(probabilities, nodes) ** 2) @ scales**2)


def shares_of(nodes: Sequence[Node], weights: Sequence[int] = ()) -> list[Fraction]:
    """The share of epsilon that each level has."""
    levels = len({node.depth for node in nodes})
    given = list(weights) or [1] * levels
    return [Fraction(weight, sum(given)) for weight in given]


def weights_of(nodes: Sequence[Node], sets: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Of each level, how many of several sets of places have one there: what more of them ask for gets more.

    A median and quartiles: both have the first level, quartiles alone the second.

    >>> weights_of(tree_of([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]), [[1], [0, 1, 2]])
    (2, 1)
    """
    depth = {node.middle: node.depth for node in nodes}
    reached = [{depth[place] for place in places} for places in sets]
    return tuple(sum(level in own for own in reached) for level in sorted({node.depth for node in nodes}))
