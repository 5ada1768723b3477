"""Analysts against `StreamFilter`, by dynamic programming: `python -m benchmarks.stream_games [--games N] [--seed N]`.

The games of `benchmarks.clock_games`, and games of this filter's own: two sizes of randomized response that are large
beside the budget, and a threshold on Gaussian noise. The tables have few units, which the theorem allows, so that they
are quick. Then the same games against filters with a planted fault, which must be lost.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from rich.console import Console

from benchmarks.clock_games import Game, drawn_games, played, questions_of
from farthing.accounting.event_price import price_of
from farthing.accounting.filters import StreamFilter
from farthing.accounting.filters.clock_costs import CLOCK_UNITS, epsilon_of
from farthing.numerics.bounds import exact
from farthing.privacy import Event


@dataclass(frozen=True, repr=False)
class Coarse(StreamFilter):
    """The filter with few units."""

    PARTS: ClassVar[int] = 250


@dataclass(frozen=True, repr=False)
class MoreUnits(Coarse):
    """A planted fault: an eighth more units than are proven."""

    def __post_init__(self) -> None:
        super().__post_init__()
        more = self._units // 8
        assert self._clock is not None
        self._set(_units=self._units + more, _clock=self._clock + more * self._table.unit)
        self._set(_table=replace(self._table, menus=self._table.menus + self._table.menus[-1:] * more))


@dataclass(frozen=True, repr=False)
class HalfExchange(Coarse):
    """A planted fault: units that are exchanged for Gaussian noise are only half taken."""

    def _gaussian(self, event: Event, count: int, leak: int) -> int:
        before = self._units
        pocket = super()._gaussian(event, count, leak)
        back = (before - self._units) // 2
        assert self._clock is not None
        self._set(_units=self._units + back, _clock=self._clock + back * self._table.unit)
        return pocket


@dataclass(frozen=True, repr=False)
class SmallerSizes(Coarse):
    """A planted fault: a charge takes what one of nine tenths of its epsilon would."""

    def __post_init__(self) -> None:
        super().__post_init__()
        menus = [menu._replace(sizes=tuple(size / 0.9 for size in menu.sizes)) for menu in self._table.menus]
        self._set(_table=replace(self._table, menus=tuple(menus)))


FAULTS: tuple[type[Coarse], ...] = (MoreUnits, HalfExchange, SmallerSizes)


def for_game(kind: type[StreamFilter]) -> Callable[[Game], StreamFilter]:
    """The filter of this kind for a game, whose largest charge it knows."""

    def made(game: Game) -> StreamFilter:
        epsilons = [float(price_of(question.charge).epsilon or 0) for question in game.menu]
        largest = min(game.epsilon, max(epsilons)) or game.epsilon / 20
        return kind(game.epsilon, game.delta, leak=game.leak, largest=largest)

    return made


def stream_game(draw: random.Random) -> Game:
    """Two sizes, the larger a fifth to a half of a standard deviation of the clock, and perhaps Gaussian noise."""
    step, large = 0.02, draw.randint(3, 6)
    delta = float(f"{0.05 * 10 ** (-10.7 * draw.random()):.3g}")
    sizes = [large, draw.randint(large // 2, large - 1)]
    menu = [question for size in sizes for question in questions_of("response", size, 0, step, 0.0)]
    if draw.random() < 0.5:
        menu[1:] = questions_of("noise", draw.randint(1, large), 0, step, 0.0)[:1]
    clock = (large * step / draw.uniform(0.2, 0.5)) ** 2
    epsilon = float(epsilon_of(math.ceil(Fraction(clock) * CLOCK_UNITS), exact(delta)))
    return Game(max(epsilon, large * step), delta, 0.0, step, tuple(dict.fromkeys(menu)))


def stream_games(seed: int) -> Iterator[Game]:
    """Games without end, the same for the same seed."""
    draw = random.Random(seed)
    while True:
        yield stream_game(draw)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--faulty", type=int, default=100, help="games against each planted fault")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    say, sound = Console().print, True
    for name, games in (("the clock's", drawn_games(options.seed)), ("its own", stream_games(options.seed))):
        outcome = played(games, for_game(Coarse), options.games)
        sound = sound and outcome.holds
        say(f"{name} games: at most {outcome.worst:.6f} of delta reached in {outcome.games:,}, at {outcome.at}")
    for fault in FAULTS:
        outcome = played(stream_games(options.seed), for_game(fault), options.faulty)
        sound = sound and not outcome.holds
        say(f"{fault.__name__}: {outcome.worst:.4f} of delta reached in {outcome.games:,} games")
    if not sound:
        raise SystemExit("a game was lost, or a fault was not caught")


if __name__ == "__main__":
    main()
