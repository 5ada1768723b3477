"""What no filter can promise for streams of different charges: `python -m benchmarks.stream_limits`.

Charges have one of two sizes. A stream is an order of them, and some number of its first charges could have been fixed
in advance. Suppose that a filter admits at least a share of that number, rounded down, of every stream. Then an analyst
who sees every loss may choose the next charge within this promise, and what it reaches must not exceed delta. The best
strategy is found by dynamic programming: where it exceeds delta, there is no such filter, whatever it keeps in mind.

All losses are whole multiples of the smaller size, so nothing is rounded but doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

Floats = NDArray[np.float64]

CLEAR = 1 + 1e-6
"""What is reached must exceed delta by so much; errors of the sums are about 1e-12."""


@dataclass(frozen=True)
class TwoSizes:
    """A budget, the smaller size, and how many times as large the other one is."""

    epsilon: float
    delta: float
    small: float
    times: int

    @cached_property
    def payoff(self) -> Floats:
        """(1 - e^(epsilon - loss))_+ at the losses from -reach to reach small steps."""
        losses = np.arange(-self.reach, self.reach + 1) * self.small
        return np.asarray(np.maximum(0.0, -np.expm1(self.epsilon - losses)))

    @cached_property
    def reach(self) -> int:
        """More steps than charges within any budget of this kind can sum up to."""
        return math.ceil(8 * self.epsilon / self.small)

    def before(self, values: Floats, steps: int) -> Floats:
        """What values are worth one randomized response earlier; no path from 0 leads beyond the ends."""
        truth = 1 / (1 + math.exp(-steps * self.small))
        up = np.concatenate([values[steps:], np.repeat(values[-1:], steps)])
        down = np.concatenate([np.repeat(values[:1], steps), values[:-steps]])
        return truth * up + (1 - truth) * down

    @cached_property
    def fixed(self) -> list[int]:
        """How many small charges could have been fixed in advance beside 0, 1, .. large ones."""
        counts: list[int] = []
        large = self.payoff
        while large[self.reach] <= self.delta:
            small, count = self.before(large, 1), 0
            while small[self.reach] <= self.delta:
                small, count = self.before(small, 1), count + 1
            counts.append(count)
            large = self.before(large, self.times)
        return counts

    def reached(self, share: float) -> float:
        """The part of delta that an analyst reaches against any filter that admits this share of every stream.

        A list of charges is promised if some way to go on makes it short enough; small charges make streams longest.
        """
        promised = [math.floor(share * (n + most) + 1e-9) - n for n, most in enumerate(self.fixed)]
        ahead: list[Floats] = []
        for most in reversed(promised):
            values: list[Floats] = []
            for count in range(most, -1, -1):
                best = self.payoff
                if values:
                    best = np.maximum(best, self.before(values[-1], 1))
                if count < len(ahead):
                    best = np.maximum(best, self.before(ahead[count], self.times))
                values.append(best)
            ahead = values[::-1]
        return float(ahead[0][self.reach]) / self.delta

    def most_promised(self) -> float:
        """The largest share, in hundredths, that this does not exclude."""
        shares = (percent / 100 for percent in range(100, 0, -1))
        return next(share for share in shares if self.reached(share) <= CLEAR)


def main() -> None:
    for epsilon, delta in ((1.0, 1e-9), (1.0, 1e-6)):
        for small, times in ((0.01, 5), (0.02, 2), (0.01, 3)):
            game = TwoSizes(epsilon, delta, small, times)
            most = game.most_promised()
            Console().print(
                f"({epsilon:g}, {delta:g}), {times * small:g} and {small:g}: 95% of every stream would reach "
                f"{game.reached(0.95):.2f} of delta; no filter promises more than {most:.0%}"
            )


if __name__ == "__main__":
    main()
