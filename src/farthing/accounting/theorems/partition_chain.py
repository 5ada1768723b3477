"""The whole chain of the hardness proof, link by link, and the way back.

#PARTITION <= #T-PARTITION <= SUM-PARTITION <= OptComp: whoever can price a composition can add up differences of
products, whoever can do that can count the splits of integers whose products differ by T, and T = 0 is the counting
problem that is #P-complete. Roots keep the epsilons as small as one likes. The way back is counting too: delta is the
number of witnesses that a quick check accepts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import flint

from farthing.accounting.theorems.hardness import Oracle, checked_integers, exact_optimal_composition
from farthing.errors import InvalidValue
from farthing.numerics.bounds import precision
from farthing.privacy.events import checked_count, checked_real

Weights = tuple[int | Fraction, ...]
Counter = Callable[[tuple[int, ...], Fraction], int]
"""(integers w_i, y) -> the number of witnesses, as `delta_witnesses` defines them."""


def root_below(integers: Iterable[int], epsilon: float) -> int:
    """A D for which charges of ln(w_i) / D have a sum of at most `epsilon`.

    Args:
        integers: Whole numbers > 0, at least one.
        epsilon: A number > 0.

    Returns:
        The root.

    Raises:
        InvalidValue: If `integers` holds something else, or epsilon is not such a number.

    Statement: D = ceil(sum_i ln w_i / epsilon), so that sum_i ln(w_i) / D <= epsilon; equal products have equal roots.
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), section 4 (Theorem 1.6).
    Assumes: whole numbers >= 1.
    Direction: rounded up, beyond the error of the logarithm.
    Checked by: tests/theorems/test_partition_chain.py

    >>> root_below([2, 3, 6], 0.1)                           # (ln 2 + ln 3 + ln 6) / 36 < 0.1
    36
    """
    whole = math.prod(checked_integers(integers))
    most = checked_real(epsilon, "epsilon")
    if not 0 < most < math.inf:
        raise InvalidValue("epsilon", epsilon, "must be a finite number > 0")
    return max(1, math.ceil(math.log(whole) / most * (1 + 1e-12)))


@dataclass(frozen=True)
class TPartitionCount:
    """How many splits have a given difference of products, and what it took to find out.

    Attributes:
        splits: How many subsets S have prod_S w - prod_not_S w = T; for T = 0 a partition is counted from both sides.
        root: The D whose roots were charged.
        epsilon_sum: The sum of the epsilons charged.
        sums: How many instances of SUM-PARTITION were solved.
        oracle_calls: How often the price of a composition was asked for.
        bits: To how many binary digits.

    >>> count_t_partitions([2, 3, 6]).splits
    2
    """

    splits: int
    root: int
    epsilon_sum: float
    sums: int
    oracle_calls: int
    bits: int


def count_t_partitions(
    integers: Iterable[int], difference: int = 0, *, root: int = 1, oracle: Oracle | None = None
) -> TPartitionCount:
    """How many subsets have a product that exceeds the product of the others by T, found by pricing privacy.

    Args:
        integers: Whole numbers > 0, at least one.
        difference: T, a whole number >= 0.
        root: Charges are ln(w_i) / root: with `root_below`, their sum is as small as one likes.
        oracle: Answers what exact optimal composition costs; `exact_optimal_composition` by default.

    Returns:
        The count, and what it took.

    Raises:
        InvalidValue: If an argument is something else, or the oracle contradicts itself.

    Statement:
        Let v_i be the D-th root of w_i, p_S the products of the v_i, R that of all, W that of the w_i, and
            f(y) = sum over S of max(0, p_S - y R / p_S)                                          (SUM-PARTITION).
        f is made of straight lines. It turns at the ratios y = p_S^2 / R, by R / p_S for each S. A subset of product u
        with u - W / u = T has the one ratio r = (u^2 / W)^(1/D), and any other ratio is more than
        h = 1 / (2 D W (u^2 / W + 1)) away: so there are
            N = (f(r + h) - 2 f(r) + f(r - h)) / (h (W / u)^(1/D))
        such subsets. For T = 0, r = 1, and f(1 - h) = h sum_S p_S + (1 - h) f(1 / (1 - h)).
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), section 4: the reductions from
        #PARTITION over #T-PARTITION and SUM-PARTITION to OptComp, with roots that keep the sum of epsilons below any
        constant (Theorem 1.6).
    Assumes: an oracle right to `bits` binary digits, which grow like log2 of W D times the product of the 1 + v_i.
    Direction: exact; refused when the oracle contradicts itself.
    Checked by: tests/theorems/test_partition_chain.py
    Departs from source: the turn of f at one ratio is read off from three of its values.

    >>> count_t_partitions([2, 3, 6], root=36)
    TPartitionCount(splits=2, root=36, epsilon_sum=0.09954..., sums=3, oracle_calls=..., bits=...)
    >>> count_t_partitions([2, 3, 6], difference=5).splits       # 9 - 4 = 5 and 36 = 9 * 4, but no subset has product 9
    0
    >>> count_t_partitions([2, 3, 6], difference=9).splits       # 12 - 3
    1
    """
    given = checked_integers(integers)
    degree, T = checked_count(root, "root"), checked_count(difference, "difference")
    if degree < 1:
        raise InvalidValue("root", root, "must be a whole number >= 1")
    whole = math.prod(given)
    discriminant = T * T + 4 * whole
    total = math.fsum(math.log(w) for w in given) / degree
    if math.isqrt(discriminant) ** 2 != discriminant or (T + math.isqrt(discriminant)) % 2:
        return TPartitionCount(0, degree, total, 0, 0, 0)  # no whole number u is W / u + T
    u = (T + math.isqrt(discriminant)) // 2
    ratio = Fraction(u * u, whole)
    everything = math.prod(1 + w for w in given)
    step = 1 / (2 * degree * whole * (ratio + 1))
    bits = 16 + everything.bit_length() + (1 / step).__ceil__().bit_length() + len(given).bit_length()
    weights = tuple(_root(Fraction(w), degree, bits) for w in given)
    turn, smaller = _root(ratio, degree, bits), _root(Fraction(whole, u), degree, bits)
    asked = _SumPartition(weights, bits, oracle or exact_optimal_composition)
    middle, above = asked.at(turn), asked.at(turn + step)
    if T == 0:
        below = step * asked.everything + (1 - step) * asked.at(1 / (1 - step))
    else:
        below = asked.at(turn - step)
    count = (above - 2 * middle + below) / (step * smaller)
    # Up to the largest ratio, that of the full set, f falls by at least h in each of these steps.
    if abs(count - round(count)) > Fraction(1, 4) or not below - middle >= step / 2:
        raise InvalidValue("oracle", float(count), "must make the count a whole number", "raise its precision")
    return TPartitionCount(round(count), degree, total, 3, asked.calls, bits)


def sum_partition(
    weights: Iterable[int | Fraction], ratio: Fraction = Fraction(1), oracle: Oracle | None = None
) -> Fraction:
    """The sum over all subsets S of max(0, prod_S w - ratio prod_not_S w), found by pricing privacy.

    Args:
        weights: Whole numbers or fractions >= 1, at least one.
        ratio: A number >= 1.
        oracle: Answers what exact optimal composition costs; `exact_optimal_composition` by default.

    Returns:
        The sum, to within 2^-64 of the product of the 1 + w_i.

    Raises:
        InvalidValue: If an argument is something else.

    Statement:
        The sum is prod(1 + w_i) delta, where delta is the least with OptComp(ln w_1, ..., ln w_k; delta) <= ln ratio: a
        binary search, one question for each digit.
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), Theorem 1.5 and section 4.
    Assumes: an oracle right to 64 binary digits.
    Direction: rounded up to the next multiple of 2^-64.
    Checked by: tests/theorems/test_partition_chain.py

    >>> round(sum_partition([2, 3, 6]))                          # (36 - 1) + (18 - 2) + (12 - 3); 6 - 6 adds nothing
    60
    """
    given = tuple(Fraction(w) for w in weights)
    if not given or min(given) < 1:
        raise InvalidValue("weights", [float(w) for w in given], "must be at least one number, each >= 1")
    if not ratio >= 1:
        raise InvalidValue("ratio", ratio, "must be at least 1")
    return _SumPartition(given, 64, oracle or exact_optimal_composition).at(Fraction(ratio))


class _SumPartition:
    """SUM-PARTITION by OptComp, with its questions counted."""

    def __init__(self, weights: Weights, bits: int, oracle: Oracle) -> None:
        self.weights, self.bits, self.oracle = weights, bits, oracle
        self.everything = Fraction(math.prod(1 + w for w in weights))
        self.calls = 0

    def at(self, ratio: Fraction) -> Fraction:
        low, high = -1, 1 << self.bits  # at delta = high / 2^bits = 1 everything is free
        while high - low > 1:
            middle = (low + high) // 2
            self.calls += 1
            good = self.oracle(self.weights, Fraction(middle, 1 << self.bits)) <= ratio
            low, high = (low, middle) if good else (middle, high)
        return self.everything * Fraction(high, 1 << self.bits)


def _root(value: Fraction, degree: int, bits: int) -> Fraction:
    """The root of a number >= 1, to within 2^-bits; exact where it is a whole number."""
    if degree == 1:
        return value
    with precision(bits + 64):
        ball = flint.arb(flint.fmpq(value.numerator, value.denominator)).root(degree)
        mantissa, exponent = (int(part) for part in ball.mid().man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def delta_witnesses(integers: tuple[int, ...], y: Fraction) -> Iterator[tuple[tuple[bool, ...], int]]:
    """The pairs (subset, m) that a quick check accepts: as many as prod(1 + w_i) delta, in units of y's denominator.

    Args:
        integers: The weights w_i = exp(epsilon_i), whole numbers > 0.
        y: exp(epsilon_g), a fraction.

    Returns:
        An iterator of subsets, as a True or False for each integer, and whole numbers m >= 1.

    Statement:
        With y = a / b, the check accepts (S, m) if 1 <= m <= b prod_S w - a prod_not_S w: two products, one
        comparison. The number of accepted pairs is b prod(1 + w_i) delta(ln y).
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), section 4: OptComp is no harder than
        counting.
    Assumes: whole numbers w_i and a fraction y; other epsilons are rounded to some digits first.
    Direction: exact.
    Checked by: tests/theorems/test_partition_chain.py

    >>> sum(1 for _ in delta_witnesses((2, 3), Fraction(1)))      # 12 delta(0) = (6 - 1) + (3 - 2)
    6
    """
    for chosen in product((False, True), repeat=len(integers)):
        inside = math.prod(w for w, taken in zip(integers, chosen, strict=True) if taken)
        outside = math.prod(w for w, taken in zip(integers, chosen, strict=True) if not taken)
        for m in range(1, max(0, y.denominator * inside - y.numerator * outside) + 1):
            yield chosen, m


def optimal_composition_by_counting(
    integers: Iterable[int], delta: Fraction, bits: int = 10, counter: Counter | None = None
) -> Fraction:
    """exp(OptComp) to `bits` binary places, by asking only how many witnesses there are.

    Args:
        integers: The weights w_i = exp(epsilon_i), whole numbers > 0.
        delta: The delta of the whole, at least 0 and below 1.
        bits: How many places after the point.
        counter: Counts the witnesses of `delta_witnesses`; by default, one after the other.

    Returns:
        The least multiple of 2^-bits, at least 1, at which delta is kept: within 2^-bits above the optimum.

    Raises:
        InvalidValue: If an argument is out of its range.

    Statement: the least y = a / 2^bits >= 1 with #witnesses(y) <= 2^bits prod(1 + w_i) delta, by binary search.
    Source: Murtagh & Vadhan, Theory of Computing 14(8), 2018 (arXiv:1507.03113), section 4: OptComp is no harder than
        counting.
    Assumes: whole numbers w_i; other epsilons are rounded to some digits first.
    Direction: an upper bound, by less than 2^-bits.
    Checked by: tests/theorems/test_partition_chain.py

    >>> optimal_composition_by_counting([2, 3], Fraction(1, 4))
    Fraction(3, 1)
    """
    given, places = checked_integers(integers), checked_count(bits, "bits")
    if not 0 <= delta < 1:
        raise InvalidValue("delta", delta, "must be at least 0 and below 1")
    ask = counter or (lambda weights, y: sum(1 for _ in delta_witnesses(weights, y)))
    scale = 1 << places
    allowed = delta * math.prod(1 + w for w in given)
    low, high = scale - 1, math.prod(given) * scale  # at y = W nothing is left
    while high - low > 1:
        middle = (low + high) // 2
        y = Fraction(middle, scale)
        good = ask(given, y) <= y.denominator * allowed
        low, high = (low, middle) if good else (middle, high)
    return Fraction(max(high, scale), scale)
