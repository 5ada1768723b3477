"""The staircase sampler: exact integer noise for whole vectors at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidValue
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.single_draws import Bits, geometric
from farthing.numerics.bounds import precision


@dataclass(frozen=True)
class Distribution:
    """Whole numbers n with mass proportional to w(|n|) = exp(-unit * |n|**power), unit > 0, power 1 or 2.

    The exponent is convex, 0 at 0 and rational: that is all the sampler needs to know.
    """

    unit: Fraction
    power: int

    @classmethod
    def laplace(cls, scale: Fraction) -> Distribution:
        """Mass proportional to exp(-|n| / scale)."""
        return cls(1 / scale, 1)

    @classmethod
    def gaussian(cls, variance: Fraction) -> Distribution:
        """Mass proportional to exp(-n^2 / (2 variance))."""
        return cls(1 / (2 * variance), 2)

    def exponent(self, n: int) -> Fraction:
        """The exponent -log w(n) of the weight of n, exactly."""
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


ONE_BITS = 62  # acceptance probabilities are compared as multiples of 2**-62, which leaves room for a sign in int64
ONE = 1 << ONE_BITS
_LOG_TWO_UPPER = Fraction(6932, 10000)  # log 2 = 0.69314...


@dataclass(frozen=True, eq=False)
class Table:
    """Blocks of a distribution, their shares of the proposals, and lines around their acceptance probabilities.

    Block k holds the magnitudes k * length + j, 0 <= j < length, for k < `blocks`; entry `blocks` is the tail beyond
    them, the entry after it is refused always and only fills up the proposals to 2**selection_bits.
    """

    distribution: Distribution
    position_bits: int  # length = 2**position_bits
    blocks: int
    selection_bits: int
    column_bits: int
    factor: Fraction  # M: a magnitude n is proposed and accepted with probability M * copies * w(n) / 2**selection_bits
    shares: list[int]  # c_k, out of 2**selection_bits
    # Slots of a column's own entry, as the low bits of a word whose high bits are the column.
    own: NDArray[np.uint64]
    other: NDArray[np.int64]
    # The acceptance probability r_k(j) of block k lies between the two lines, in units of 2**-62.
    lower: NDArray[np.int64]
    lower_fall: NDArray[np.int64]
    upper: NDArray[np.int64]
    upper_fall: NDArray[np.int64]

    @property
    def length(self) -> int:
        """How many magnitudes one block of the table holds."""
        return 1 << self.position_bits

    @property
    def tail_start(self) -> int:
        """The first magnitude beyond the blocks."""
        return self.blocks << self.position_bits

    @property
    def tail_rate(self) -> Fraction:
        """The rate of the geometric proposals in the tail: the exponent's first step there, its least one."""
        return self.distribution.exponent(self.tail_start + 1) - self.distribution.exponent(self.tail_start)

    def copies(self, block: int) -> int:
        """How many signed numbers a magnitude stands for: 2, and 1 for a zero that has a block of its own."""
        return 1 if block == 0 and self.position_bits == 0 else 2

    def acceptance(self, block: int, n: int) -> Any:
        """The probability of accepting magnitude n once it is proposed, as a ball at the precision in force."""
        weight = ball(self.factor) * self.distribution.weight(n) * self.copies(block) / self.shares[block]
        if block < self.blocks:
            return weight * self.length
        rate = ball(self.tail_rate)
        return weight * (rate * (n - self.tail_start)).exp() / (1 - (-rate).exp())


def table_of(distribution: Distribution, selection_bits: int, tail_bits: int, resolution: int) -> Table:
    """The table with blocks about 1/resolution of the noise's width, out to where w falls below 2**-tail_bits."""
    length_bits = max(1, distribution.reach(Fraction(1)) // resolution).bit_length() - 1
    length = 1 << length_bits
    blocks = distribution.reach(tail_bits * _LOG_TWO_UPPER) // length + 1
    column_bits = max(1, (blocks + 1).bit_length())
    fraction_bits = tail_bits + 80  # the smallest weight in the table still has 80 bits
    with precision(fraction_bits + 64):
        # Integers at or above 2**fraction_bits * w at the start of each block and of the tail, by less than 2.
        unit, one = -ball(distribution.unit), flint.arb(2) ** fraction_bits
        starts = [_ceiling((unit * (k * length) ** distribution.power).exp() * one) for k in range(blocks + 1)]
        step = distribution.exponent(blocks * length + 1) - distribution.exponent(blocks * length)
        spread = int((1 / (1 - (-ball(step)).exp()) * 2**32).upper().ceil().unique_fmpz())
    areas = [2 * length * start for start in starts]
    if length == 1:
        areas[0] //= 2
    # All that the geometric distribution of the tail could propose.
    areas[-1] = ((2 * starts[-1] * spread) >> 32) + 1
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
        _lines(distribution, k, length, ((high - error) >> shift) // share, -((-high >> shift) // share))
        for k, (high, error), share in zip(range(blocks), scaled, shares, strict=False)
    ]
    lines += [(0, 0, ONE, 0), (0, 0, 0, 0)]  # the tail: neither line decides; the filling: refused at once
    lower, lower_fall, upper, upper_fall = np.array(lines, dtype=np.int64).T.copy()
    return Table(
        distribution=distribution,
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


def _lines(distribution: Distribution, block: int, length: int, low: int, high: int) -> tuple[int, int, int, int]:
    """Lines below and above r(j) * 2**62, as (value at 0, fall per j), given low <= r(0) * 2**62 <= high.

    The exponent h(j) beyond the block's start is convex with h(0) = 0, so j h(1) <= h(j) <= j h(length) / length, and
    1 - y <= e^-y <= 1 - y + y^2 / 2 for y >= 0. Hence, with r(0) <= 1,
        r(0) - j h(length) / length  <=  r(j)  <=  r(0) (1 - j h(1)) + ((length - 1) h(1))^2 / 2.
    """
    if length == 1:
        return low, 0, high, 0
    numerator, denominator, start = distribution.unit.numerator, distribution.unit.denominator, block * length
    whole_step = numerator * ((start + length) ** distribution.power - start**distribution.power)
    first_step = numerator * ((start + 1) ** distribution.power - start**distribution.power)
    fall = -((-whole_step << ONE_BITS) // (denominator * length))
    bend = -((-(((length - 1) * first_step) ** 2) << ONE_BITS) // (2 * denominator**2))
    assert fall * length < 2 * ONE  # no product of a fall and a position leaves int64
    return low, fall, min(high + bend, 2 * ONE - 1), low * first_step // denominator


def _ceiling(value: Any) -> int:
    """The least integer known to be at or above the ball, which must be thinner than 1/4."""
    assert value.rad() < 0.125
    return int(value.upper().ceil().unique_fmpz())


CHUNK = 1 << 15  # cells worked on at once: their arrays stay in the cache of one core
LARGEST = (1 << 63) - 1  # magnitudes beyond are drawn as this one


@dataclass(frozen=True, eq=False)
class Staircase:
    """Independent draws from a symmetric log-concave distribution on the integers, many at a time.

    Statement:
        Let w(n) = exp(-unit |n|^power), blocks k = 0, 1, ..., K - 1 of magnitudes [k m, (k + 1) m), and a tail
        n >= t = K m. Let c_k be whole numbers with sum 2^B and M > 0 with
            c_k >= M copies m w(k m),   c_K >= M 2 w(t) / (1 - e^-a),   a = -log(w(t + 1) / w(t)),
        where copies = 2 (1 for a block that is {0}). Repeat: choose entry k with probability c_k / 2^B; in a
        block take n = k m + j with j uniform below m, in the tail n = t + geometric(a); accept n with probability
            r_k(n) = M copies w(n) m / c_k,   r_K(n) = M 2 w(n) e^(a (n - t)) / ((1 - e^-a) c_K);
        give n a fair sign, refuse "minus zero" where copies = 2. Each number that comes out has exactly the
        mass w(|n|) / sum of w, whatever B, m, K and M were, and is independent of all others and of how
        often something was refused before it.
    Source: rejection from a histogram (Devroye, "Non-Uniform Random Variate Generation", 1986, II.3), in the spirit of
        Canonne, Kamath & Steinke, arXiv:2004.00010v5, Algorithm 3, who propose from a discrete Laplace. Proof: every r
        is at most 1, since w falls and log w is concave. A signed z with |z| = n in block k is proposed and accepted
        with probability (c_k / 2^B) (1 / m) r_k(n) / 2 = M w(n) / 2^B if copies = 2 (for z = 0 one of two signs is
        left, so the same holds); with copies = 1 it is (c_0 / 2^B) r_0(0) = M w(0) / 2^B; in the tail it is
        (c_K / 2^B) (1 - e^-a) e^(-a (n - t)) r_K(n) / 2 = M w(n) / 2^B. So the mass is proportional to w, with the same
        factor everywhere. Trials are independent, so the number of trials says nothing about the number accepted.
    Assumes: the source's bytes are uniform and independent. Everything else is decided in whole numbers: c_k are
        whole, the alias method shares out 2^B without rounding, m is a power of two, and "U < r" is decided for a U
        whose first bits are drawn and whose other bits are drawn only if they matter, by lines on proven sides of r
        (see `table`) or else by balls as thin as it takes. No floating-point number is compared with anything.
    Direction: exact; magnitudes of 2^63 and more are given as 2^63 - 1. Callers that add the noise to a value clamp
        the sum so that such a one ends at the same place for every value (`noise.with_noise`).
    Checked by: tests/statistical/test_vector_noise.py, tests/unit/mechanisms/test_samplers.py
    """

    table: Table
    leading_bits: int  # bits of U that come with the word that chooses the block
    more_bits: int  # bits of U that come with the word that chooses the position
    position_bytes: int

    @classmethod
    def of(
        cls,
        distribution: Distribution,
        *,
        selection_bits: int = 48,
        tail_bits: int = 48,
        leading_bits: int = 15,
        more_bits: int = 25,
        resolution: int = 32,
    ) -> Staircase:
        """The sampler of a distribution; fewer bits and a coarser table only make it slower, for tests."""
        table = table_of(distribution, selection_bits, tail_bits, resolution)
        # A word holds the block, the sign and the leading bits of U; a second one the position and more bits of U.
        assert table.column_bits <= selection_bits and selection_bits + 1 + leading_bits <= 64
        size = 0 if table.position_bits == 0 else 4 if table.position_bits <= 20 else 8
        more = min(more_bits, 8 * size - table.position_bits)
        return cls(table, leading_bits, more, size)

    def draw(self, size: int, source: Source) -> NDArray[np.int64]:
        """`size` independent numbers: the first that are accepted, in order."""
        numbers, bits = np.empty(size, dtype=np.int64), Bits(source)
        filled = 0
        while filled < size:
            wanted = size - filled
            # A little more than wanted, so that one round nearly always is enough; what is left over is thrown away.
            accepted = self._trials(min(CHUNK, wanted + wanted // 32 + 8), source, bits)[:wanted]
            numbers[filled : filled + len(accepted)] = accepted
            filled += len(accepted)
        return numbers

    def _trials(self, count: int, source: Source, bits: Bits) -> NDArray[np.int64]:
        """The accepted numbers among `count` trials. Every cell goes through the same operations on whole arrays."""
        table = self.table
        words = np.frombuffer(source.take(8 * count), dtype="<u8")
        # From the highest bit down: column, slot in the column, sign, leading bits of U.
        column = (words >> np.uint64(64 - table.column_bits)).view(np.int64)
        slot = words & np.uint64((1 << (64 - table.column_bits)) - 1)
        entry = np.where(slot < table.own[column], column, table.other[column])
        negative = (words >> np.uint64(63 - table.selection_bits)).view(np.int64) & 1
        uniform = (words >> np.uint64(63 - table.selection_bits - self.leading_bits)).view(np.int64)
        uniform = (uniform & ((1 << self.leading_bits) - 1)) << (ONE_BITS - self.leading_bits)
        floor = table.lower[entry]
        if table.position_bits:
            seconds = np.frombuffer(source.take(self.position_bytes * count), dtype=f"<u{self.position_bytes}")
            seconds = seconds.astype(np.int64)
            position = seconds & (table.length - 1)
            more = (seconds >> table.position_bits) & ((1 << self.more_bits) - 1)
            uniform |= more << (ONE_BITS - self.leading_bits - self.more_bits)
            floor -= table.lower_fall[entry] * position
            magnitude = (entry << table.position_bits) | position
        else:
            position = np.zeros_like(entry)
            magnitude = entry
        # U lies in [uniform, uniform + gap): all of it must be below the line to be accepted at once.
        gap = 1 << (ONE_BITS - self.leading_bits - self.more_bits)
        accepted = uniform + gap <= floor
        open_cells = np.flatnonzero(~accepted)
        which = entry[open_cells]
        ceiling = table.upper[which] - table.upper_fall[which] * position[open_cells]
        for cell in open_cells[uniform[open_cells] < ceiling].tolist():
            decided = self._decided(int(entry[cell]), int(magnitude[cell]), int(uniform[cell]) // gap, bits)
            if decided is not None:
                accepted[cell], magnitude[cell] = True, decided
        if table.position_bits:
            # Zero shares its block with others, so it comes with two signs: one is refused.
            accepted &= (magnitude | (negative ^ 1)) != 0
        return ((magnitude ^ -negative) + negative)[accepted]

    def _decided(self, entry: int, magnitude: int, prefix: int, bits: Bits) -> int | None:
        """The magnitude if it is accepted, None if it is refused, when the lines could not say."""
        table = self.table
        if entry == table.blocks:
            magnitude = table.tail_start + geometric(table.tail_rate, bits)
        width = self.leading_bits + self.more_bits
        while True:
            with precision(width + 96):
                probability = table.acceptance(entry, magnitude) * flint.arb(2) ** width
                below, above = probability >= prefix + 1, probability <= prefix
            if below or above:
                return min(magnitude, LARGEST) if below else None
            prefix = prefix << 64 | bits.word(64)
            width += 64


LARGEST_SCALE = 1 << 56  # beyond, the noise would not fit into int64 with all but vanishing probability


def discrete_laplace_noise(scale: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent whole numbers n with mass exactly proportional to e^(-|n| / scale).

    Args:
        scale: The scale, > 0.
        size: How many numbers.
        source: Where random bits come from.

    Returns:
        The numbers; one beyond +-(2^63 - 1) is cut there.

    Raises:
        InvalidValue: If `scale` or `size` is out of range.

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> noise = discrete_laplace_noise(Fraction(1000), 10_000, SYSTEM)
    >>> noise.dtype, noise.shape, bool(1200 < noise.std() < 1650)
    (dtype('int64'), (10000,), True)
    """
    if not 0 < scale <= LARGEST_SCALE:
        raise InvalidValue("scale", scale, "must be > 0 and <= 2**56", "use a coarser grid")
    return _sampler(Distribution.laplace(Fraction(scale))).draw(_checked_size(size), source)


def discrete_gaussian_noise(variance: Fraction, size: int, source: Source) -> NDArray[np.int64]:
    """`size` independent whole numbers n with mass exactly proportional to e^(-n^2 / (2 variance)).

    Args:
        variance: The variance of the continuous distribution of this shape.
        size: How many numbers.
        source: Where random bits come from.

    Returns:
        The numbers; one beyond +-(2^63 - 1) is cut there.

    Raises:
        InvalidValue: If `variance` or `size` is out of range.

    >>> from farthing.mechanisms.randomness import SYSTEM
    >>> noise = discrete_gaussian_noise(Fraction(10**6), 10_000, SYSTEM)
    >>> noise.dtype, noise.shape, bool(900 < noise.std() < 1100)
    (dtype('int64'), (10000,), True)
    """
    if not 0 < variance <= LARGEST_SCALE**2:
        raise InvalidValue("variance", variance, "must be > 0 and <= 2**112", "use a coarser grid")
    return _sampler(Distribution.gaussian(Fraction(variance))).draw(_checked_size(size), source)


@lru_cache(maxsize=32)
def _sampler(distribution: Distribution) -> Staircase:
    """Tables are made of public parameters only, and are reused: a mechanism draws from one distribution many times."""
    return Staircase.of(distribution)


def _checked_size(size: int) -> int:
    if not size >= 0:
        raise InvalidValue("size", size, "must be >= 0")
    return size
