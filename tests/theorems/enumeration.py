"""The slow twin of the engines: all 2^k losses in whole numbers, so fast enough to judge thousands of compositions.

Losses are sums of doubles, hence exact as integers over a power of two. Probabilities are integers over 2^bits, each
rounded by less than 2^k units, which is added to the balls that come out. Nothing here is shared with the engines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import flint

from theorems.transcripts import many_digits

_LEAK_BITS = 2400  # leaks may differ from each other by 600 orders of magnitude


@dataclass(frozen=True)
class Enumeration:
    """Losses from the largest down, with prefix sums of their probabilities under both hypotheses."""

    losses: list[int]
    unit: Fraction
    tails: list[int]
    others: list[int]
    bits: int
    kept: Any

    @classmethod
    def of(cls, epsilons: Sequence[float], deltas: Sequence[float] = (), smallest: float = 1e-300) -> Enumeration:
        """Enumerate; answers are good for delta_g (or delta) down to `smallest`, with some forty digits."""
        exact = [Fraction(e) for e in epsilons if e > 0]
        unit = Fraction(1, max((e.denominator for e in exact), default=1))
        bits = 160 + 2 * len(exact) + math.ceil(-math.log2(smallest)) + math.ceil(1.5 * float(sum(exact)))
        with many_digits(bits + 64):
            losses, masses = [0], [1 << bits]
            for e in exact:
                step, ball = int(e / unit), flint.arb(flint.fmpq(e.numerator, e.denominator))
                told = _whole((1 << bits) / (1 + (-ball).exp()))
                rest = (1 << bits) - told
                losses = [loss + step for loss in losses] + [loss - step for loss in losses]
                masses = [m * told >> bits for m in masses] + [m * rest >> bits for m in masses]
            order = sorted(range(len(losses)), key=losses.__getitem__, reverse=True)
            # Turning every answer around swaps the hypotheses, and transcript i with the one opposite.
            last = len(masses) - 1
            tails = list(accumulate((masses[i] for i in order), initial=0))
            others = list(accumulate((masses[last - i] for i in order), initial=0))
        with many_digits(_LEAK_BITS):
            kept = flint.arb(1)
            for delta in deltas:
                kept *= 1 - flint.arb(delta)
        return cls([losses[i] for i in order], unit, tails, others, bits, kept)

    def epsilon_at(self, delta: float) -> Any:
        """The least epsilon as a ball, or None when the leaks are above `delta`."""
        with many_digits(_LEAK_BITS):
            room = 1 - (1 - flint.arb(delta)) / self.kept
            if room < 0:
                return None
        with many_digits(self.bits + 64):
            low, high = 0, len(self.losses) - 1
            while low < high:  # the first loss at which the curve is above what may be
                middle = (low + high) // 2
                if self._curve(middle, _arb(self.losses[middle] * self.unit)) > room:
                    high = middle
                else:
                    low = middle + 1
            above = high if self._curve(high, _arb(self.losses[high] * self.unit)) > room else high + 1
            if above == 0:
                return flint.arb(0)
            # Between two losses the curve is tail - e^x other.
            root = ((self._ball(self.tails[above]) - room) / self._ball(self.others[above])).log()
            return root.max(flint.arb(0))

    def delta_at(self, epsilon: float) -> Any:
        """The least delta as a ball."""
        curve = self.curve_at(epsilon)
        with many_digits(_LEAK_BITS):
            return 1 - self.kept * (1 - curve)

    def curve_at(self, epsilon: float) -> Any:
        """D(epsilon), leaks left out, as a ball."""
        with many_digits(self.bits + 64):
            place = Fraction(epsilon) / self.unit
            low, high = 0, len(self.losses)
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if self.losses[middle] <= place else (middle + 1, high)
            return self._curve(low, flint.arb(epsilon))

    def _curve(self, above: int, x: Any) -> Any:
        """D(x) when the first `above` losses are larger than x."""
        if above == 0:
            return flint.arb(0)
        return self._ball(self.tails[above]) - x.exp() * self._ball(self.others[above])

    def _ball(self, mass: int) -> Any:
        error = flint.arb(2) ** (2 * (len(self.losses).bit_length()) - self.bits)
        return flint.arb(mass) / flint.arb(2) ** self.bits + flint.arb(0, 1) * error


def _whole(ball: Any) -> int:
    return int(ball.mid().floor().unique_fmpz())


def _arb(value: Fraction) -> Any:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))
