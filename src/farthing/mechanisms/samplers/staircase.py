"""The staircase sampler: exact integer noise for whole vectors at once."""

from __future__ import annotations

from dataclasses import dataclass

import flint
import numpy as np
from numpy.typing import NDArray

from farthing.mechanisms.exact_samplers import Bits, geometric
from farthing.mechanisms.randomness import Source
from farthing.mechanisms.samplers.staircase_table import ONE_BITS, Law, Table, table_of
from farthing.numerics.balls import precision

CHUNK = 1 << 15  # cells worked on at once: their arrays stay in the cache of one core
LARGEST = (1 << 63) - 1  # magnitudes beyond are drawn as this one


@dataclass(frozen=True, eq=False)
class Staircase:
    """Independent draws from a symmetric log-concave law on the integers, many at a time.

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
    Direction: exact; magnitudes of 2^63 and more are given as 2^63 - 1. Whoever adds the noise to a value must clamp
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
        law: Law,
        *,
        selection_bits: int = 48,
        tail_bits: int = 48,
        leading_bits: int = 15,
        more_bits: int = 25,
        resolution: int = 32,
    ) -> Staircase:
        """The sampler of a law. Fewer bits and a coarser table give the same law by slower ways, which tests use."""
        table = table_of(law, selection_bits, tail_bits, resolution)
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
            seconds = np.frombuffer(
                source.take(self.position_bytes * count), dtype=f"<u{self.position_bytes}"
            )
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
