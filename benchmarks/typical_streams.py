"""How much of random streams a filter could admit: `python -m benchmarks.typical_streams`.

Charges are randomized responses of 0.01 to 0.05, in steps of 0.01, drawn independently. A filter that remembers two
sums, the squares of the charges and how many of the largest size they amount to, admits what lies within a share of the
fixed optimum and, if it is told what streams to expect, in a tube around the line on which they run. The best that an
analyst does who sees every loss and chooses sizes within that is a dynamic programme over both sums and the loss.

Doubles, for the picture only: they say what such a filter could admit at most, not that it would be proven.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy.optimize import brentq
from scipy.special import ndtr

Floats = NDArray[np.float64]

STEP = 0.01
SIZES = (1, 2, 3, 4, 5)
WHOLE = 20
LARGE = {1: 0, 2: 1, 3: 3, 4: 8, 5: WHOLE}
"""How much of a charge of the largest size each of them is, in twentieths: fourth powers."""

_BELOW, _ABOVE = 120, 80  # points of the lattice beyond the start and beyond epsilon


@dataclass(frozen=True)
class Streams:
    """A budget, and streams of such charges."""

    epsilon: float
    delta: float
    count: int = 200

    @cached_property
    def points(self) -> Floats:
        """Losses minus epsilon; the start is the one at _BELOW."""
        return np.asarray(np.arange(-round(self.epsilon / STEP) - _BELOW, _ABOVE + 1) * STEP, dtype=np.float64)

    @cached_property
    def payoff(self) -> Floats:
        return np.asarray(np.maximum(0.0, -np.expm1(-self.points)))

    @cached_property
    def drawn(self) -> list[list[int]]:
        """The same streams every time."""
        draw = random.Random(1)
        return [draw.choices(SIZES, k=200) for _ in range(self.count)]

    @cached_property
    def fixed(self) -> list[int]:
        """How many charges of each stream could have been fixed in advance."""
        return [self._fixed(stream) for stream in self.drawn]

    def _fixed(self, stream: list[int]) -> int:
        reach = sum(stream)
        chances = np.zeros(2 * reach + 1)
        chances[reach] = 1.0
        over = np.maximum(0.0, -np.expm1(self.epsilon - np.arange(-reach, reach + 1) * STEP))
        for count, size in enumerate(stream):
            truth, after = 1 / (1 + math.exp(-size * STEP)), np.zeros_like(chances)
            after[size:] += truth * chances[:-size]
            after[:-size] += (1 - truth) * chances[size:]
            chances = after
            if chances @ over > self.delta:
                return count
        return len(stream)

    @cached_property
    def frontier(self) -> tuple[Floats, Floats]:
        """Both sums of b charges of the largest size and as much Gaussian noise as fits beside them, b = 0, 1, .."""
        squares, larges = [], []

        def reached(noise: float, many: int) -> float:
            values = self._gaussian(noise)
            for _ in range(many):
                values = before(values, SIZES[-1])
            return float(values[_BELOW])

        most = brentq(lambda s: reached(s, 0) - self.delta, 1e-6, 5.0)
        for many in range(200):
            if reached(0.0, many) > self.delta:
                break
            noise = brentq(lambda s, many=many: reached(s, many) - self.delta, 0.0, most * 1.01, xtol=1e-7)
            squares.append(many * SIZES[-1] ** 2 + noise / STEP**2)
            larges.append(many * WHOLE)
        return np.array(squares, dtype=np.float64), np.array(larges, dtype=np.float64)

    def _gaussian(self, s: float) -> Floats:
        x = self.points
        if s <= 0:
            return self.payoff
        root = math.sqrt(s)
        return np.asarray(np.maximum(self.payoff, ndtr((x + s / 2) / root) - np.exp(-x) * ndtr((x - s / 2) / root)))

    def inside(self, square: int, large: Floats, share: float, tube: float) -> NDArray[np.bool_]:
        """Whether sums are within a share of the frontier, and not too far from the line of the streams."""
        ends, larges = self.frontier
        whole = np.interp(large / max(square, 1), larges / ends, ends)
        slope, deviation = self._line
        width = tube * deviation * math.sqrt(square * ends[0]) + WHOLE
        return np.asarray((square <= share * whole) & (np.abs(large - slope * square) <= width))

    @cached_property
    def _line(self) -> tuple[float, float]:
        sums = zip(self.drawn, self.fixed, strict=True)
        slopes = [sum(LARGE[j] for j in stream[:n]) / sum(j * j for j in stream[:n]) for stream, n in sums]
        return float(np.mean(slopes)), float(np.std(slopes))

    def reached(self, share: float, tube: float) -> float:
        """The part of delta that the best analyst reaches."""
        ends, larges = self.frontier
        column = np.arange(int(larges[-1]) + 1, dtype=np.float64)
        rows: dict[int, tuple[Floats, NDArray[np.bool_]]] = {}
        for square in range(int(ends.max()), -1, -1):
            values = np.repeat(self.payoff[None, :], len(column), 0)
            for size in SIZES:
                if square + size**2 in rows:
                    after, may = rows[square + size**2]
                    after, may = after[LARGE[size] :], may[LARGE[size] :]
                    best = np.maximum(values[: len(after)], before(after, size))
                    values[: len(after)] = np.where(may[:, None], best, values[: len(after)])
            rows[square] = values, self.inside(square, column, share, tube)
            rows.pop(square + SIZES[-1] ** 2 + 1, None)
        return float(rows[0][0][0][_BELOW]) / self.delta

    def admitted(self, share: float, tube: float) -> float:
        """The part of what could have been fixed in advance, on average over the streams."""
        return float(np.mean([self._part(s, n, share, tube) for s, n in zip(self.drawn, self.fixed, strict=True)]))

    def _part(self, stream: list[int], fixed: int, share: float, tube: float) -> float:
        square = large = 0
        for count, size in enumerate(stream):
            square, large = square + size**2, large + LARGE[size]
            if not self.inside(square, np.array([large], dtype=np.float64), share, tube)[0]:
                return count / fixed
        return len(stream) / fixed


def before(values: Floats, size: int) -> Floats:
    """What values are worth one randomized response earlier."""
    truth = 1 / (1 + math.exp(-size * STEP))
    up = np.concatenate([values[..., size:], np.repeat(values[..., -1:], size, axis=-1)], -1)
    down = np.concatenate([np.repeat(values[..., :1], size, axis=-1), values[..., :-size]], -1)
    return truth * up + (1 - truth) * down


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=200)
    options = parser.parse_args()
    for epsilon, delta in ((1.0, 1e-9), (1.0, 1e-6)):
        streams = Streams(epsilon, delta, options.streams)
        for share in (0.94, 0.95, 0.96, 0.97):
            for tube in (math.inf, 1.0):
                Console().print(
                    f"({epsilon:g}, {delta:g}), within {share:.0%} of the frontier and a tube of {tube:g}: admits "
                    f"{streams.admitted(share, tube):.1%} of the streams, {streams.reached(share, tube):.2f} of delta"
                )


if __name__ == "__main__":
    main()
