"""Why the optimum is hard: an algorithm for it can count partitions of integers into equal products.

Counting the ways to split integers w_1, ..., w_k into two parts of equal product is #P-complete. The reduction of
Murtagh and Vadhan turns a function for optimal composition into a counter: charge epsilon_i = ln w_i, and look at
how steeply delta falls at epsilon_g = 0. This module is that reduction, in exact arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count

Oracle = Callable[[tuple[int | Fraction, ...], Fraction], Fraction]
"""(weights w_i, delta_g) -> exp(epsilon_g), where epsilon_g is OptComp of epsilon_i = ln w_i at delta_g."""


@dataclass(frozen=True)
class PartitionCount:
    """How many equal-product partitions there are, and what it took to find out.

    Attributes:
        partitions: In how many ways the integers split into two parts of equal product.
        oracle_calls: How often the price of a composition was asked for.
        bits: How many bits the prices had to have.
        subsets: How many subsets a search by hand would visit.

    >>> count_equal_product_partitions([2, 2])
    PartitionCount(partitions=1, oracle_calls=5, bits=10, subsets=4)
    """

    partitions: int
    oracle_calls: int
    bits: int
    """Binary digits of the longest number handed to the oracle or back."""
    subsets: int
    """What each call of the enumerating oracle visits: 2^k."""


def count_equal_product_partitions(integers: Iterable[int], oracle: Oracle | None = None) -> PartitionCount:
    """The number of ways to split `integers` into two parts of equal product, found by pricing privacy.

    Args:
        integers: Whole numbers > 0, at least one.
        oracle: Answers what exact optimal composition costs; `exact_optimal_composition` by default.

    Returns:
        The number of partitions, and what it took to find it.

    Raises:
        InvalidValue: If `integers` is empty or holds something else.

    Statement:
        Write W for the product of the w_i, G for that of the (1 + w_i), and with epsilon_i = ln w_i, y = exp(epsilon_g)
            f(y) = G delta(epsilon_g) = sum over S of max(0, prod_{S} w - y prod_{not S} w).
        f is convex, made of straight lines that meet where y is a ratio of products; the first ratio above 1 is at
        least 1 + 1/W. So on [1, 1 + 1/W] it is one line, f(1) - b (y - 1), where b adds up the smaller products of
        all unequal splits. Larger products add to f(1) + b. All 2^k products add to G. What is missing is due to
        the N ordered equal splits, each of product sqrt(W):
            N sqrt(W) = G - f(1) - 2 b,
        and there are N / 2 partitions. f(1) is a whole number: a binary search for the least n with
        OptComp(n / G) = 0 finds it; then OptComp at (f(1) - 1/W) / G is a point on the line, and gives b.
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), section 4 (Theorem 1.6).
    Assumes: integers >= 1, at least one; an oracle right to a few more than log2(W G^2) binary digits.
    Direction: exact; refused when the oracle contradicts itself.
    Checked by: tests/theorems/test_hardness.py
    Departs from source: OptComp knows only the side y >= 1 of the kink at y = 1. That the other side follows by
        symmetry, the complement of a set having the inverse ratio, and that the binary search needs only whole
        numbers, is our way to put it into code.

    >>> count_equal_product_partitions([2, 3, 6])
    PartitionCount(partitions=1, oracle_calls=7, bits=24, subsets=8)
    >>> count_equal_product_partitions([2, 3, 5]).partitions
    0
    >>> count_equal_product_partitions([2, 2, 2, 2, 3, 3]).partitions
    6
    """
    weights = checked_integers(integers)
    ask = _Counted(weights, oracle or exact_optimal_composition)
    whole, everything = math.prod(weights), math.prod(1 + w for w in weights)
    at_one = _least_free_numerator(ask, everything)
    smaller = _slope(ask, whole, everything, at_one)
    # If W is not a square the numerator is 0, and the integer part of the root will do as well.
    equal = _rounded((everything - at_one - 2 * smaller) / math.isqrt(whole))
    return PartitionCount(equal // 2, ask.calls, ask.bits, 1 << len(weights))


def exact_optimal_composition(weights: tuple[int | Fraction, ...], delta: Fraction) -> Fraction:
    """exp(OptComp) for epsilon_i = ln w_i, exactly: the oracle itself, which has to visit all 2^k subsets.

    Args:
        weights: The w_i = exp(epsilon_i), whole numbers or fractions.
        delta: The delta of the whole, as a fraction.

    Returns:
        exp(epsilon) of the whole, as a fraction.

    Statement:
        The least y >= 1 with sum over S of max(0, prod_{S} w - y prod_{not S} w) <= delta prod(1 + w_i).
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), Theorem 1.5, without leaks and with
        y = exp(epsilon_g).
    Assumes: weights >= 1; 0 <= delta < 1.
    Direction: exact, in rational numbers.
    Checked by: tests/theorems/test_hardness.py

    >>> exact_optimal_composition((2, 3), Fraction(0))
    Fraction(6, 1)
    >>> exact_optimal_composition((2, 3), Fraction(1, 4))
    Fraction(3, 1)
    """
    whole, everything = Fraction(math.prod(weights)), math.prod(1 + w for w in weights)
    products: list[int | Fraction] = [1]
    for w in weights:
        products += [w * product for product in products]
    # max(0, p - y W/p) over all products p: lines, taken from the largest ratio p^2 / W down.
    height, fall = Fraction(0), Fraction(0)
    budget = delta * everything
    for place, product in enumerate(ordered := sorted(products, reverse=True)):
        height += product
        fall += whole / product
        crossing = (height - budget) / fall
        below = ordered[place + 1] ** 2 / whole if place + 1 < len(ordered) else Fraction(0)
        if crossing >= below:  # the next line is not met before the budget is
            return max(Fraction(1), crossing)
    return Fraction(1)


class _Counted:
    """The oracle, with its calls counted and its answers checked."""

    def __init__(self, weights: tuple[int, ...], oracle: Oracle) -> None:
        self.weights, self.oracle = weights, oracle
        self.calls = self.bits = 0

    def __call__(self, delta: Fraction) -> Fraction:
        answer = Fraction(self.oracle(self.weights, delta))
        self.calls += 1
        for number in (delta, answer):
            self.bits = max(self.bits, number.numerator.bit_length() + number.denominator.bit_length())
        return answer


def _least_free_numerator(ask: _Counted, everything: int) -> int:
    """f(1): the least whole n such that delta_g = n / G costs no epsilon at all."""
    low, high = -1, everything
    # f falls by at most G a unit, so one unit above f(1) is told from it by y - 1 >= 1 / G.
    tolerance = Fraction(1, 2 * everything)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ask(Fraction(middle, everything)) - 1 < tolerance else (middle, high)
    return high


def _slope(ask: _Counted, whole: int, everything: int, at_one: int) -> Fraction:
    """b: how fast f falls from y = 1, by one question a little below f(1)."""
    if at_one == 0:  # nothing to tell apart: every integer is 1
        return Fraction(0)
    drop = Fraction(1, whole)  # small enough to stay on the first line, because b >= 1
    y = ask((at_one - drop) / everything)
    if not y > 1:
        raise InvalidValue("oracle", float(y), "must answer above 1 below the free delta", "raise its precision")
    return drop / (y - 1)


def _rounded(count: Fraction) -> int:
    """The whole even number that `count` is, up to the oracle's error."""
    nearest = 2 * round(count / 2)
    if abs(count - nearest) > Fraction(1, 2):
        raise InvalidValue("oracle", float(count), "must make the count a whole even number", "raise its precision")
    return nearest


def checked_integers(values: Iterable[int]) -> tuple[int, ...]:
    """Whole numbers >= 1, at least one of them."""
    try:
        listed = tuple(values)
    except TypeError:
        raise InvalidValue("integers", values, "must be a list of whole numbers >= 1") from None
    integers = tuple(map(_checked_integer, listed))
    if not integers:
        raise InvalidValue("integers", [], "must not be empty")
    return integers


def _checked_integer(value: object) -> int:
    number = checked_count(value, "integers")
    if number < 1:
        raise InvalidValue("integers", value, "must be whole numbers >= 1")
    return number
