"""Analysts against the clock, by dynamic programming: `python -m benchmarks.clock_games [--games N] [--seed N]`.

A game is a budget and a menu of questions. The analyst sees the privacy loss of every answer, asks whatever the filter
admits, in any order, and stops when it likes; the largest delta that any strategy reaches is found by recursion. It
must not exceed the budget's. The same games are then played against filters with a planted fault, which must exceed it.

Every question is a pair of distributions with two outcomes whose losses are whole multiples of a step, so that paths
meet; it is charged as an event that dominates it: any mechanism of its epsilon, a choice of bounded range and a sample
(skewed pairs, in both orders), or Gaussian noise (a threshold on it). Some questions leak.

What is left of a clock depends a little on the order of charges, so that paths meet less often than their losses would
allow. A game with more than MOST_STATES states is drawn again.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from farthing.accounting.event_price import price_of
from farthing.accounting.filters import ClockFilter
from farthing.accounting.filters.clock_costs import CLOCK_UNITS, clock_cost, epsilon_of, level_below
from farthing.numerics.bounds import exact
from farthing.privacy import ApproxDP, BoundedRange, Event, GaussianNoise, RandomizedResponse, Sampled

ROUNDING = 1 + 1e-12
"""Values are sums of at most a few hundred positive products of doubles."""


MOST_STATES = 300
STEPS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class Question(NamedTuple):
    """A pair with two outcomes: losses `up` and `-down`, in steps; charged as `charge`, which dominates it."""

    charge: Event
    up: int
    down: int
    leak: float = 0.0

    def chance(self, step: float) -> float:
        """The probability of the loss `up` under P, so that Q adds up to 1 as well."""
        if not self.up and not self.down:
            return 1.0  # nothing but its leak tells anything
        return math.expm1(self.down * step) / (math.exp(self.down * step) - math.exp(-self.up * step))


@dataclass(frozen=True)
class Game:
    """A budget, and what may be asked within it."""

    epsilon: float
    delta: float
    leak: float
    step: float
    menu: tuple[Question, ...]

    def reached(self, start: Any) -> float:
        """The largest delta at `epsilon` that any strategy reaches before the filter `start` stops it."""
        kinds = list(dict.fromkeys(question.charge for question in self.menu))
        moves, depth = _moves(start, kinds)
        reach = depth * max(max(question.up, question.down) for question in self.menu)
        payoff = -np.expm1(np.minimum(0.0, self.epsilon - np.arange(-reach, reach + 1) * self.step))
        values: list[Any] = [payoff] * len(moves)
        for at in reversed(range(len(moves))):  # a state comes before every state that it leads to
            for question in self.menu:
                after = moves[at].get(kinds.index(question.charge))
                if after is not None:
                    p = question.chance(self.step)
                    hidden = p * _moved(values[after], question.up) + (1 - p) * _moved(values[after], -question.down)
                    values[at] = np.maximum(values[at], question.leak + (1 - question.leak) * hidden)
        return float(values[0][reach])


def _moves(start: Any, kinds: list[Event]) -> tuple[list[dict[int, int]], int]:
    """For every state that can be reached, numbered layer by layer: where each kind of charge leads. And how deep."""
    moves: list[dict[int, int]] = []
    layer, depth = {start: 0}, 0
    while layer:
        moves += [{} for _ in layer]
        if len(moves) > MOST_STATES:
            raise TooManyStates
        following: dict[Any, int] = {}
        for state, at in layer.items():
            for kind, event in enumerate(kinds):
                after = state._after(event, 1)
                if after._fits():
                    moves[at][kind] = following.setdefault(after, len(moves) + len(following))
        layer, depth = following, depth + 1
    return moves, depth


class TooManyStates(Exception):
    """The game is too large to be played whole."""


def _moved(values: NDArray[np.float64], by: int) -> NDArray[np.float64]:
    """values[k + by] at k. The ends repeat; no path from the start leads beyond them."""
    if by >= 0:
        return np.concatenate([values[by:], np.repeat(values[-1:], by)])
    return np.concatenate([np.repeat(values[:1], -by), values[:by]])


def dominating_noise(up: int, down: int, step: float) -> GaussianNoise:
    """Gaussian noise of which the pair is a threshold: its one corner of testing errors lies on the noise's curve."""
    p = Question(ApproxDP(0.0), up, down).chance(step)
    normal = NormalDist()
    mu = normal.inv_cdf(p) - normal.inv_cdf(p * math.exp(-up * step))
    return GaussianNoise(1 / (mu * (1 + 1e-9)))


def questions_of(kind: str, size: int, skew: int, step: float, leak: float) -> list[Question]:
    """Questions of about `size` steps: one, or a skewed pair in both orders."""
    if kind == "response":
        return [Question(ApproxDP(round(size * step, 12), leak), size, size, leak)]
    up, down = size + skew, max(1, size - skew)
    if kind == "sample":
        rise, fall = math.expm1(up * step), -math.expm1(-down * step)
        if not rise * fall < rise - fall:  # no sample is as skewed as that
            return questions_of("range", size, skew, step, leak)
        charge: Event = Sampled(RandomizedResponse(math.log(rise / fall) * (1 + 1e-9)), rise * fall / (rise - fall))
        return [Question(charge, up, down), Question(charge, down, up)]
    if kind == "range":
        charge = BoundedRange(round((up + down) * step, 12))
    else:
        charge = dominating_noise(up, down, step)
    return [Question(charge, up, down), Question(charge, down, up)]


def drawn_game(draw: random.Random) -> Game:
    """A menu, and a budget whose clock is worth a few of its questions: where a filter has most to get wrong.

    Steps are few, so that prices are computed once for many games.
    """
    step = draw.choice(STEPS)
    delta = float(f"{0.3 * 10 ** (-11.5 * draw.random() ** 2):.3g}")
    leak = float(f"{delta * draw.choice([0, 0, 0, 0.25, 0.5]):.3g}")
    menu: list[Question] = []
    for first in [True, *[False] * draw.randint(0, 1)]:
        kind = draw.choice(["response", "response", "range", "noise", "sample"])
        size = draw.randint(1, 3) if first else draw.randint(2, 8)
        own = float(f"{leak * draw.choice([0, 0.3, 1]):.2g}") if kind == "response" else 0.0
        menu += questions_of(kind, size, draw.randint(0, size - 1), step, own)
    least = min(exact_square(question.charge) for question in menu)
    # So many that their losses can exceed epsilon at all: the square root of twice ln(1/delta) times their number.
    number = 1 + draw.uniform(0.3, 1.5 if len(menu) > 2 else 4) * 2 * math.log(1 / delta)
    if delta > 0.01:  # or so few that one takes all that is left
        number = draw.uniform(1.0, 3.0)
    clock = math.ceil(Fraction(number) * least * CLOCK_UNITS)
    epsilon = float(epsilon_of(clock, exact(delta) - exact(leak)))
    return Game(max(epsilon, step / 2), delta, leak, step, tuple(dict.fromkeys(menu)))


def drawn_games(seed: int) -> Iterator[Game]:
    """Games without end, the same for the same seed."""
    draw = random.Random(seed)
    while True:
        yield drawn_game(draw)


def exact_square(event: Event) -> Fraction:
    """What an event takes of an endless clock: its squared sensitivity-to-noise ratio, or that of its epsilon."""
    square = price_of(event).twice_rho
    assert square is not None
    return square


# Planted faults.


@dataclass(frozen=True, repr=False)
class PlainSquares(ClockFilter):
    """A charge takes what it would of an endless clock: no correction for how little is left."""

    def _spend(self, event: Event, count: int) -> None:
        cost = math.ceil(exact_square(event) * count * CLOCK_UNITS)
        if self._clock is not None:
            self._set(_clock=self._clock - cost if cost <= self._clock else None)


@dataclass(frozen=True, repr=False)
class CostBefore(ClockFilter):
    """A charge is priced at the level before it, not at the one that is kept."""

    def _spend(self, event: Event, count: int) -> None:
        for _ in range(count):
            if self._clock is not None:
                cost = clock_cost(event, level_below(Fraction(self._clock, CLOCK_UNITS)))
                left = -1 if cost is None else self._clock - cost.clock
                self._set(_clock=left if left >= 0 else None)


@dataclass(frozen=True, repr=False)
class StaleClock(ClockFilter):
    """A charge that only plain sums admit leaves the clock as it was."""

    def _spend(self, event: Event, count: int) -> None:
        before = self._clock
        super()._spend(event, count)
        if self._clock is None and self._plain_sum_fits():
            self._set(_clock=before)


@dataclass(frozen=True, repr=False)
class ClockAfterSums(ClockFilter):
    """The clock starts when plain sums end."""

    def _spend(self, event: Event, count: int) -> None:
        if not self._plain_sum_fits():
            super()._spend(event, count)


@dataclass(frozen=True, repr=False)
class OneOrder(ClockFilter):
    """A sample is priced in one order of its pair: by the points x <= 0 with the longer of its losses below 0."""

    def _spend(self, event: Event, count: int) -> None:
        if not isinstance(event, Sampled):
            super()._spend(event, count)
        for _ in range(count if isinstance(event, Sampled) else 0):
            if self._clock is not None:
                half = 2.0 ** (math.frexp(self._clock / CLOCK_UNITS)[1] - 2)  # a power of two that may well be kept
                left = self._clock - math.ceil(_cost_of_one_order(event, half) * CLOCK_UNITS)
                self._set(_clock=left if left >= 0 else None)


@cache
def _cost_of_one_order(event: Sampled, level: float) -> float:
    """The least cost for which the condition holds at x <= 0 in the milder order, by bisection in doubles."""
    epsilon = price_of(event.event).epsilon
    assert epsilon is not None
    long = math.log1p(event.probability * math.expm1(float(epsilon)))
    short = -math.log1p(event.probability * math.expm1(-float(epsilon)))
    p = math.expm1(long) / (math.exp(long) - math.exp(-short))  # of the loss `short`, when the two orders are exchanged
    xs = [-k * (long + math.sqrt(level)) / 5 for k in range(15)]
    reached = [p * _curve(x + short, level) + (1 - p) * _curve(x - long, level) for x in xs]

    def enough(cost: float) -> bool:
        return all(value <= _curve(x, level + cost) for x, value in zip(xs, reached, strict=True))

    low, high = 0.0, 2 * math.pi * math.tanh(long / 2) ** 2 + long**2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _curve(x: float, s: float) -> float:
    if s <= 0:
        return max(0.0, -math.expm1(-x))
    root, normal = math.sqrt(s), NormalDist()
    return normal.cdf((x + s / 2) / root) - math.exp(-x) * normal.cdf((x - s / 2) / root)


@dataclass(frozen=True)
class NaturalRule:
    """Goes on while the optimal composition of the charges so far fits: not a filter (arXiv:2602.15815).

    A skewed pair counts in the order that is worse for the charges before it.
    """

    game: Game
    atoms: tuple[tuple[int, float], ...] = ((0, 1.0),)

    def _after(self, event: Event, count: int) -> NaturalRule:
        asked = [question for question in self.game.menu if question.charge == event]
        return max((self._with(question) for question in asked), key=lambda rule: rule.delta())

    def _fits(self) -> bool:
        return self.delta() <= self.game.delta

    def delta(self) -> float:
        over = ((p, self.game.epsilon - loss * self.game.step) for loss, p in self.atoms)
        return sum(p * -math.expm1(short) for p, short in over if short < 0)

    def _with(self, question: Question) -> NaturalRule:
        p, atoms = question.chance(self.game.step), defaultdict[int, float](float)
        for loss, mass in self.atoms:
            atoms[loss + question.up] += mass * p
            atoms[loss - question.down] += mass * (1 - p)
        return NaturalRule(self.game, tuple(sorted(atoms.items())))


class Outcome(NamedTuple):
    """How many games were played, and the largest share of a game's delta that was reached, with that game."""

    games: int
    worst: float
    at: Game | None

    @property
    def holds(self) -> bool:
        return self.worst <= ROUNDING


def played(games: Iterable[Game], make: Callable[[Game], Any], count: int) -> Outcome:
    """The first `count` games that can be played whole, each against the filter made for it."""
    number, worst, at = 0, 0.0, None
    for game in games:
        try:
            share = game.reached(make(game)) / game.delta
        except TooManyStates:
            continue
        number += 1
        if share > worst:
            worst, at = share, game
        if number == count:
            break
    return Outcome(number, worst, at)


def with_filter(kind: type[ClockFilter]) -> Callable[[Game], ClockFilter]:
    """The filter of this kind for a game's budget."""
    return lambda game: kind(game.epsilon, game.delta, leak=game.leak)


FAULTS: dict[str, Callable[[Game], Any]] = {
    **{kind.__name__: with_filter(kind) for kind in (PlainSquares, CostBefore, StaleClock, ClockAfterSums, OneOrder)},
    "NaturalRule": NaturalRule,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--faulty", type=int, default=500, help="games against each planted fault")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    say = Console().print

    games, real = drawn_games(options.seed), Outcome(0, 0.0, None)
    while real.games < options.games:
        more = played(games, with_filter(ClockFilter), min(500, options.games - real.games))
        at = more.at if more.worst > real.worst else real.at
        real = Outcome(real.games + more.games, max(real.worst, more.worst), at)
        say(f"the clock: {real.games:,} games, at most {real.worst:.6f} of delta reached")
    say(f"the closest: {real.at}")
    caught = True
    for name, make in FAULTS.items():
        outcome = played(drawn_games(options.seed), make, options.faulty)
        caught = caught and not outcome.holds
        say(f"{name}: {outcome.worst:.4f} of delta reached in {outcome.games:,} games")
    if not (real.holds and caught):
        raise SystemExit("a game was lost, or a fault was not caught")


if __name__ == "__main__":
    main()
