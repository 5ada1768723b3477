"""Exact samplers for single draws: integers and fractions only, or comparisons decided by ball arithmetic.

No floating-point number decides anything here, so a draw has exactly the distribution it is said to have, given
uniformly random bits. Big vectors go through `farthing.mechanisms.samplers`, which has the same distributions.

Source: Canonne, Kamath & Steinke, "The discrete Gaussian for differential privacy", arXiv:2004.00010v5, Algorithms 1-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import Any

import flint

from farthing.mechanisms.randomness import Source
from farthing.numerics.bounds import precision

_ONE = Fraction(1)


class Bits:
    """Random bits out of a source, fetched in blocks so that small draws do not each ask the system."""

    __slots__ = ("_block", "_left", "_pool", "_source")

    def __init__(self, source: Source, block: int = 64) -> None:
        self._source = source
        self._block = block
        self._pool = 0
        self._left = 0

    def word(self, width: int) -> int:
        """A uniform integer of `width` bits."""
        while self._left < width:
            count = max(self._block, (width - self._left + 7) // 8)
            self._pool |= int.from_bytes(self._source.take(count), "little") << self._left
            self._left += 8 * count
        word = self._pool & ((1 << width) - 1)
        self._pool >>= width
        self._left -= width
        return word

    def bit(self) -> bool:
        """A fair coin: True with probability 1/2."""
        return bool(self.word(1))

    def below(self, limit: int) -> int:
        """A uniform integer in [0, limit): draw enough bits, again if they say `limit` or more."""
        width = (limit - 1).bit_length()
        while True:
            number = self.word(width)
            if number < limit:
                return number


def bernoulli(probability: Fraction, bits: Bits) -> bool:
    """A coin that is True with exactly the given probability."""
    return bits.below(probability.denominator) < probability.numerator


def bernoulli_exp(rate: Fraction, bits: Bits) -> bool:
    """True with probability exactly e^-rate, rate >= 0.

    For a rate up to 1, the series 1 - r + r^2/2 - ... is the chance that the first failure among coins of rate r/1,
    r/2, r/3, ... comes at an odd place. A larger rate is a run of independent coins of rate 1 and a rest.
    """
    for _ in range(rate.numerator // rate.denominator):
        if not _bernoulli_exp_small(1, 1, bits):
            return False
    return _bernoulli_exp_small(rate.numerator % rate.denominator, rate.denominator, bits)


def _bernoulli_exp_small(numerator: int, denominator: int, bits: Bits) -> bool:
    place = 1
    while bits.below(denominator * place) < numerator:
        place += 1
    return place % 2 == 1


def geometric(rate: Fraction, bits: Bits) -> int:
    """n = 0, 1, 2, ... with mass exactly (1 - e^-rate) e^(-rate n), rate > 0.

    With rate = s / t: a geometric of rate 1/t is a remainder below t, accepted with e^(-remainder / t), plus t times a
    geometric of rate 1; dividing by s and rounding down thins it to rate s / t.
    """
    s, t = rate.numerator, rate.denominator
    while True:
        remainder = bits.below(t)
        if _bernoulli_exp_small(remainder, t, bits):
            break
    laps = 0
    while _bernoulli_exp_small(1, 1, bits):
        laps += 1
    return (remainder + t * laps) // s


def discrete_laplace(scale: Fraction, bits: Bits) -> int:
    """n with mass exactly proportional to e^(-|n| / scale), scale > 0."""
    rate = 1 / scale
    while True:
        negative = bits.bit()
        magnitude = geometric(rate, bits)
        if magnitude or not negative:  # zero has one sign only
            return -magnitude if negative else magnitude


def discrete_gaussian(variance: Fraction, bits: Bits) -> int:
    """n with mass exactly proportional to e^(-n^2 / (2 variance)), variance > 0.

    A discrete Laplace of scale t = floor(sqrt(variance)) + 1, accepted with probability
    e^(-(|n| - variance / t)^2 / (2 variance)): completing the square leaves the Gaussian.
    """
    t = isqrt(variance.numerator // variance.denominator) + 1
    centre = variance / t
    while True:
        candidate = discrete_laplace(Fraction(t), bits)
        if bernoulli_exp((abs(candidate) - centre) ** 2 / (2 * variance), bits):
            return candidate


def choose(log_weights: Sequence[Fraction], bits: Bits, counts: Sequence[int] | None = None) -> int:
    """An index i drawn with probability exactly proportional to counts[i] * exp(log_weights[i]).

    `counts` (default: ones) are whole numbers >= 0, at least one of them positive. Inversion with as many bits as the
    decision needs: the drawn prefix names an interval of [0, 1), the weights are balls; while the interval might
    touch a border between two indices, the prefix grows and the balls are taken finer.
    """
    repeats = [1] * len(log_weights) if counts is None else list(counts)
    highest = max(weight for weight, count in zip(log_weights, repeats, strict=True) if count)
    exponents = [weight - highest for weight in log_weights]
    width, prefix = 64, bits.word(64)
    while True:
        with precision(width + 64):
            chosen = _inverted(exponents, repeats, prefix, width)
        if chosen is not None:
            return chosen
        prefix = (prefix << 64) | bits.word(64)
        width += 64


def _inverted(exponents: list[Fraction], repeats: list[int], prefix: int, width: int) -> int | None:
    """The index whose share of [0, total) holds the whole drawn interval; None when that is undecided."""
    cumulative: list[Any] = []
    total = flint.arb(0)
    for exponent, count in zip(exponents, repeats, strict=True):
        if count:
            total += count * flint.arb(flint.fmpq(exponent.numerator, exponent.denominator)).exp()
        cumulative.append(total)
    unit = flint.arb(2) ** -width
    lower, upper = total * prefix * unit, total * (prefix + 1) * unit
    # The first index whose border is not surely at or below the interval; it must surely hold all of it. Nothing lies
    # beyond the last positive weight, so there the interval need not be compared with the total it was made from.
    final = max(index for index, count in enumerate(repeats) if count)
    first, last = 0, final
    while first < last:
        middle = (first + last) // 2
        if cumulative[middle] <= lower:
            first = middle + 1
        else:
            last = middle
    return first if first == final or upper <= cumulative[first] else None
