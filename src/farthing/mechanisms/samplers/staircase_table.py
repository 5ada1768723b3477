"""What the staircase sampler knows about a law before it draws: whole numbers, each on a proven side of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.numerics.balls import precision


@dataclass(frozen=True)
class Law:
    """Whole numbers n with mass proportional to w(|n|) = exp(-unit * |n|**power), unit > 0, power 1 or 2.

    The exponent is convex, 0 at 0 and rational: that is all the sampler needs to know.
    """

    unit: Fraction
    power: int

    @classmethod
    def laplace(cls, scale: Fraction) -> Law:
        """Mass proportional to exp(-|n| / scale)."""
        return cls(1 / scale, 1)

    @classmethod
    def gaussian(cls, variance: Fraction) -> Law:
        """Mass proportional to exp(-n^2 / (2 variance))."""
        return cls(1 / (2 * variance), 2)

    def exponent(self, n: int) -> Fraction:
        """-log w(n), exactly."""
        power: int = n**self.power
        return self.unit * power

    def reach(self, exponent: Fraction) -> int:
        """The largest n with -log w(n) <= `exponent`."""
        whole = exponent / self.unit
        return isqrt(int(whole)) if self.power == 2 else int(whole)

    def weight(self, n: int) -> Any:
        """w(n) as a ball, at the precision in force."""
        return (-ball(self.unit) * n**self.power).exp()


def ball(value: Fraction) -> Any:
    """A fraction as a ball, at the precision in force."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


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


ONE_BITS = (
    62  # acceptance probabilities are compared as multiples of 2**-62, which leaves room for a sign in int64
)
ONE = 1 << ONE_BITS
_LOG_TWO_UPPER = Fraction(6932, 10000)  # log 2 = 0.69314...


@dataclass(frozen=True, eq=False)
class Table:
    """Blocks of a law with their shares of the proposals and lines below and above their acceptance probabilities.

    Block k holds the magnitudes k * length + j, 0 <= j < length, for k < `blocks`; entry `blocks` is the tail beyond
    them, the entry after it is refused always and only fills up the proposals to 2**selection_bits.
    """

    law: Law
    position_bits: int  # length = 2**position_bits
    blocks: int
    selection_bits: int
    column_bits: int
    factor: Fraction  # M: a magnitude n is proposed and accepted with probability M * copies * w(n) / 2**selection_bits
    shares: list[int]  # c_k, out of 2**selection_bits
    own: NDArray[
        np.uint64
    ]  # slots of a column's own entry, as the low bits of a word whose high bits are the column
    other: NDArray[np.int64]
    # The acceptance probability r_k(j) of block k lies between the two lines, in units of 2**-62.
    lower: NDArray[np.int64]
    lower_fall: NDArray[np.int64]
    upper: NDArray[np.int64]
    upper_fall: NDArray[np.int64]

    @property
    def length(self) -> int:
        """Magnitudes in a block."""
        return 1 << self.position_bits

    @property
    def tail_start(self) -> int:
        """The first magnitude beyond the blocks."""
        return self.blocks << self.position_bits

    @property
    def tail_rate(self) -> Fraction:
        """The rate of the geometric law that proposes in the tail: the exponent's first step there, its least one."""
        return self.law.exponent(self.tail_start + 1) - self.law.exponent(self.tail_start)

    def copies(self, block: int) -> int:
        """How many signed numbers a magnitude stands for: 2, and 1 for a zero that has a block of its own."""
        return 1 if block == 0 and self.position_bits == 0 else 2

    def acceptance(self, block: int, n: int) -> Any:
        """The probability of accepting magnitude n once it is proposed, as a ball at the precision in force."""
        weight = ball(self.factor) * self.law.weight(n) * self.copies(block) / self.shares[block]
        if block < self.blocks:
            return weight * self.length
        rate = ball(self.tail_rate)
        return weight * (rate * (n - self.tail_start)).exp() / (1 - (-rate).exp())


def table_of(law: Law, selection_bits: int, tail_bits: int, resolution: int) -> Table:
    """The table with blocks about 1/resolution of the law's width, out to where w falls below 2**-tail_bits."""
    length_bits = max(1, law.reach(Fraction(1)) // resolution).bit_length() - 1
    length = 1 << length_bits
    blocks = law.reach(tail_bits * _LOG_TWO_UPPER) // length + 1
    column_bits = max(1, (blocks + 1).bit_length())
    fraction_bits = tail_bits + 80  # the smallest weight in the table still has 80 bits
    with precision(fraction_bits + 64):
        # Integers at or above 2**fraction_bits * w at the start of each block and of the tail, by less than 2.
        unit, one = -ball(law.unit), flint.arb(2) ** fraction_bits
        starts = [_ceiling((unit * (k * length) ** law.power).exp() * one) for k in range(blocks + 1)]
        step = law.exponent(blocks * length + 1) - law.exponent(blocks * length)
        spread = int((1 / (1 - (-ball(step)).exp()) * 2**32).upper().ceil().unique_fmpz())
    areas = [2 * length * start for start in starts]
    if length == 1:
        areas[0] //= 2
    areas[-1] = ((2 * starts[-1] * spread) >> 32) + 1  # all that the geometric law of the tail could propose
    # M as a whole number of 2**-factor_bits. Rounding each share up adds less than 1, so one is kept back for each.
    factor_bits = 64 + max(0, sum(areas).bit_length() - fraction_bits)
    shift = factor_bits + fraction_bits
    factor = (((1 << selection_bits) - len(areas)) << shift) // sum(areas)
    shares = [-((-factor * area) >> shift) for area in areas]
    shares.append((1 << selection_bits) - sum(shares))
    own, other = alias_columns(shares, 1 << column_bits)

    # r(0) of each block is at most high / 2**shift / share, and less by no more than the error of its start.
    scaled = [((factor * area) << ONE_BITS, (4 * factor * length) << ONE_BITS) for area in areas[:-1]]
    lines = [
        _lines(law, k, length, ((high - error) >> shift) // share, -((-high >> shift) // share))
        for k, (high, error), share in zip(range(blocks), scaled, shares, strict=False)
    ]
    lines += [(0, 0, ONE, 0), (0, 0, 0, 0)]  # the tail: neither line decides; the filling: refused at once
    lower, lower_fall, upper, upper_fall = np.array(lines, dtype=np.int64).T.copy()
    return Table(
        law=law,
        position_bits=length_bits,
        blocks=blocks,
        selection_bits=selection_bits,
        column_bits=column_bits,
        factor=Fraction(factor, 1 << factor_bits),
        shares=shares,
        own=np.array(own, dtype=np.uint64) << np.uint64(64 - selection_bits),
        other=np.array(other, dtype=np.int64),
        lower=lower,
        lower_fall=lower_fall,
        upper=upper,
        upper_fall=upper_fall,
    )


def _lines(law: Law, block: int, length: int, low: int, high: int) -> tuple[int, int, int, int]:
    """Lines below and above r(j) * 2**62, as (value at 0, fall per j), given low <= r(0) * 2**62 <= high.

    The exponent h(j) beyond the block's start is convex with h(0) = 0, so j h(1) <= h(j) <= j h(length) / length, and
    1 - y <= e^-y <= 1 - y + y^2 / 2 for y >= 0. Hence, with r(0) <= 1,
        r(0) - j h(length) / length  <=  r(j)  <=  r(0) (1 - j h(1)) + ((length - 1) h(1))^2 / 2.
    """
    if length == 1:
        return low, 0, high, 0
    numerator, denominator, start = law.unit.numerator, law.unit.denominator, block * length
    whole_step = numerator * ((start + length) ** law.power - start**law.power)
    first_step = numerator * ((start + 1) ** law.power - start**law.power)
    fall = -((-whole_step << ONE_BITS) // (denominator * length))
    bend = -((-(((length - 1) * first_step) ** 2) << ONE_BITS) // (2 * denominator**2))
    assert fall * length < 2 * ONE  # no product of a fall and a position leaves int64
    return low, fall, min(high + bend, 2 * ONE - 1), low * first_step // denominator


def _ceiling(value: Any) -> int:
    """The least integer known to be at or above the ball, which must be thinner than 1/4."""
    assert value.rad() < 0.125
    return int(value.upper().ceil().unique_fmpz())
