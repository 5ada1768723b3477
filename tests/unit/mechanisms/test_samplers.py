"""The vector sampler beside exact arithmetic: every word it could be given, every line it compares with."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InvalidValue
from farthing.mechanisms.samplers import discrete_gaussian_noise, discrete_laplace_noise, vector_draws
from farthing.mechanisms.samplers.single_draws import Bits
from farthing.mechanisms.samplers.vector_draws import (
    CHUNK,
    ONE,
    Distribution,
    Staircase,
    Table,
    alias_columns,
    table_of,
)
from farthing.numerics.bounds import precision
from sources import TestSource

TWO_THIRDS = Fraction(2, 3)
SMALL = {"selection_bits": 7, "tail_bits": 3, "leading_bits": 3, "more_bits": 2, "resolution": 4}


class Script:
    """A source that hands out what was written down."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def take(self, count: int, /) -> bytes:
        piece = self.pieces.pop(0)
        assert len(piece) == count
        return piece


def every_word(sampler: Staircase) -> tuple[int, Script]:
    """All combinations of the random bits that a trial looks at, once each."""
    used = sampler.table.selection_bits + 1 + sampler.leading_bits
    firsts = np.arange(1 << used, dtype=np.uint64) << np.uint64(64 - used)
    if not sampler.position_bytes:
        return len(firsts), Script(firsts.astype("<u8").tobytes())
    seconds = np.arange(1 << (sampler.table.position_bits + sampler.more_bits))
    count = len(firsts) * len(seconds)
    pair = np.repeat(firsts, len(seconds)), np.tile(seconds, len(firsts))
    return count, Script(pair[0].astype("<u8").tobytes(), pair[1].astype(f"<u{sampler.position_bytes}").tobytes())


@pytest.mark.parametrize(
    "distribution",
    [
        Distribution.laplace(Fraction(3)),
        Distribution.laplace(Fraction(1, 3)),
        Distribution.laplace(Fraction(37, 2)),
        Distribution.gaussian(Fraction(5)),
        Distribution.gaussian(Fraction(150)),
    ],
)
def test_over_every_word_the_law_comes_out_exactly(distribution: Distribution, monkeypatch: pytest.MonkeyPatch) -> None:
    """`Staircase` without chance: every word once; what is left open counts with its exact probability."""
    sampler = Staircase.of(distribution, **SMALL)
    table = sampler.table
    left_open: Counter[tuple[int, int, int]] = Counter()

    def noted(self: Staircase, entry: int, magnitude: int, prefix: int, bits: Bits) -> None:
        left_open[entry, magnitude, prefix] += 1

    monkeypatch.setattr(Staircase, "_decided", noted)
    count, script = every_word(sampler)
    accepted = Counter(sampler._trials(count, script, Bits(TestSource(0))).tolist())
    assert all(accepted[n] == accepted[-n] for n in accepted)

    width = sampler.leading_bits + sampler.more_bits
    per_word = 1 << (1 + width + table.position_bits)  # words for each of the 2**selection_bits proposals
    with precision(200):
        found = [flint.arb(accepted[n] + (accepted[-n] if n else 0)) for n in range(table.tail_start)]
        for (entry, n, prefix), number in left_open.items():
            if entry < table.blocks:
                share = table.acceptance(entry, n) * 2**width - prefix
                sign = flint.arb(1) / 2 if n == 0 and table.copies(entry) == 2 else flint.arb(1)
                found[n] += number * sign * max(flint.arb(0), min(flint.arb(1), share))
        factor = flint.arb(flint.fmpq(table.factor.numerator, table.factor.denominator))
        for n, mass in enumerate(found):
            wanted = factor * distribution.weight(n) * (2 if n else 1) * per_word
            assert abs(mass - wanted) < 1e-30
    tail = sum(number for (entry, *_), number in left_open.items() if entry == table.blocks)
    assert tail == table.shares[table.blocks] * per_word  # all of the tail's words are left to the tail
    assert sum(left_open.values()) > tail


TABLES = [
    (Distribution.laplace(Fraction(3, 10)), {}),
    (Distribution.laplace(Fraction(1, 1000)), {}),
    (Distribution.laplace(Fraction(37, 10)), {}),
    (Distribution.laplace(Fraction(12345, 7)), {}),
    (Distribution.laplace(Fraction(2**56)), {}),
    (Distribution.gaussian(Fraction(9, 100)), {}),
    (Distribution.gaussian(Fraction(10**9, 3)), {}),
    (Distribution.gaussian(Fraction(2**112)), {}),
    (Distribution.laplace(Fraction(40)), {"selection_bits": 8, "tail_bits": 3, "resolution": 4}),
    (Distribution.gaussian(Fraction(900)), {"selection_bits": 9, "tail_bits": 4, "resolution": 4}),
]


def table(distribution: Distribution, settings: dict[str, int]) -> Table:
    return table_of(distribution, **({"selection_bits": 48, "tail_bits": 48, "resolution": 32} | settings))


@pytest.mark.parametrize(("distribution", "settings"), TABLES)
def test_shares_cover_the_weights_and_add_up(distribution: Distribution, settings: dict[str, int]) -> None:
    made = table(distribution, settings)
    assert sum(made.shares) == 1 << made.selection_bits
    assert min(made.shares) >= 0 and len(made.shares) == made.blocks + 2
    with precision(400):
        for block in range(made.blocks + 1):
            assert made.acceptance(block, block * made.length) < 1 + 1e-60  # a ball around 1 may not lie below 1


@pytest.mark.parametrize(("distribution", "settings"), TABLES)
def test_in_the_tail_nothing_is_accepted_with_more_than_certainty(
    distribution: Distribution, settings: dict[str, int]
) -> None:
    made = table(distribution, settings)
    with precision(400):
        for beyond in (0, 1, 2, 10, made.length, 10 * made.length, 3 * made.tail_start):
            assert made.acceptance(made.blocks, made.tail_start + beyond) < 1 + 1e-60


@pytest.mark.parametrize(("distribution", "settings"), TABLES)
def test_lines_are_on_their_sides(distribution: Distribution, settings: dict[str, int]) -> None:
    made = table(distribution, settings)
    last = made.length - 1
    with precision(400):
        for block in {*range(0, made.blocks, 1 + made.blocks // 60), made.blocks - 1}:
            for j in {0, min(1, last), last // 3, last // 2, last}:
                exact = made.acceptance(block, block * made.length + j) * ONE
                assert int(made.lower[block]) - int(made.lower_fall[block]) * j <= exact + 1e-60
                assert int(made.upper[block]) - int(made.upper_fall[block]) * j >= exact - 1e-60


def test_lines_decide_nearly_always() -> None:
    """Close lines are what makes the sampler fast: on average less than 1/500 apart, in the middle of the law."""
    for distribution in (Distribution.laplace(Fraction(10**6)), Distribution.gaussian(Fraction(10**12))):
        made = table(distribution, {})
        blocks = slice(0, distribution.reach(Fraction(1)) // made.length)
        top = made.upper[blocks] - made.lower[blocks]
        bottom = top + (made.lower_fall[blocks] - made.upper_fall[blocks]) * (made.length - 1)
        assert float(np.mean((top + bottom) / 2)) < ONE / 500


@pytest.mark.slow
@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_the_alias_table_shares_out_exactly(counts: list[int]) -> None:
    columns = 32
    counts.append(-sum(counts) % columns)
    height = sum(counts) // columns
    own, other = alias_columns(counts, columns)
    shared = Counter({i: own[i] for i in range(columns)})
    for column in range(columns):
        shared[other[column]] += height - own[column]
    assert [shared[i] for i in range(columns)] == counts + [0] * (columns - len(counts))
    assert all(0 <= slots <= height for slots in own)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2), st.integers(-3, 3), st.data())
def test_a_comparison_is_decided_by_the_first_bit_that_differs(words: int, step: int, data: st.DataObject) -> None:
    """U agrees with the acceptance probability for some words of 64 bits, then goes below or above it."""
    sampler = Staircase.of(Distribution.gaussian(Fraction(10**6)), leading_bits=8, more_bits=0)
    block = data.draw(st.integers(1, sampler.table.blocks - 1))
    n = block * sampler.table.length + data.draw(st.integers(0, sampler.table.length - 1))
    width = 8 + 64 * words
    with precision(600):
        digits = int((sampler.table.acceptance(block, n) * flint.arb(2) ** width).floor().unique_fmpz())
    uniform = digits + step
    if step == 0 or not 0 <= uniform < 1 << width:
        return
    pieces = [(uniform >> (64 * (words - 1 - i))) & (2**64 - 1) for i in range(words)]
    bits = Bits(Script(b"".join(piece.to_bytes(8, "little") for piece in pieces)), block=8 * max(words, 1))
    decided = sampler._decided(block, n, uniform >> (64 * words), bits)
    assert decided == (n if step < 0 else None)


def test_noise_too_large_for_the_array_is_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_draws, "geometric", lambda rate, bits: 1 << 80)
    short = Staircase.of(Distribution.laplace(Fraction(10)), selection_bits=12, tail_bits=1)
    drawn = short.draw(2_000, TestSource(5))
    assert set(np.abs(drawn[np.abs(drawn) >= short.table.tail_start]).tolist()) == {2**63 - 1}
    assert drawn.min() == 1 - 2**63 and drawn.max() == 2**63 - 1


@pytest.mark.parametrize("size", [0, 1, 7, CHUNK - 1, CHUNK, 2 * CHUNK + 5])
@pytest.mark.parametrize("scale", [TWO_THIRDS, Fraction(10**5)])
def test_exactly_as_many_numbers_as_asked_for(scale: Fraction, size: int) -> None:
    for noise in (
        discrete_laplace_noise(scale, size, TestSource(1)),
        discrete_gaussian_noise(scale, size, TestSource(1)),
    ):
        assert noise.shape == (size,)
        assert noise.dtype == np.int64


def test_the_same_bytes_give_the_same_noise_and_others_do_not() -> None:
    draws = [discrete_laplace_noise(Fraction(1000), 500, TestSource(seed)).tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_memory_does_not_grow_with_the_request() -> None:
    """Whatever is asked for, the source is never asked for more than a chunk at once."""

    class Watched(TestSource):
        most = 0

        def take(self, count: int, /) -> bytes:
            self.most = max(self.most, count)
            return super().take(count)

    source = Watched(1)
    discrete_gaussian_noise(Fraction(10**20), 10 * CHUNK, source)
    assert source.most <= 8 * CHUNK


@pytest.mark.parametrize("bad", [0, -1, Fraction(2**56) + 1, float("nan"), float("inf")])
def test_scales_outside_their_range_are_refused(bad: Fraction) -> None:
    with pytest.raises(InvalidValue, match=r"scale=.*must be > 0 and <= 2\*\*56"):
        discrete_laplace_noise(bad, 1, TestSource(0))
    with pytest.raises(InvalidValue, match=r"variance=.*must be > 0 and <= 2\*\*112"):
        discrete_gaussian_noise(bad**2 if bad > 1 else bad, 1, TestSource(0))


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"size=-1: must be >= 0\."):
        discrete_laplace_noise(Fraction(1), -1, TestSource(0))
