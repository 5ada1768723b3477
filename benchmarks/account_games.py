"""Analysts against a ledger's account, by dynamic programming: `python -m benchmarks.account_games [--games N]`.

The games of `benchmarks.clock_games` and of `benchmarks.stream_games`, in turn, against what a ledger runs on: plain
sums and a clock side by side, each with its share of delta, prices written down as spent, and a first charge that may
choose its rule. In half of the games the account begins with a smaller budget, which is raised to the game's after a
few charges. Then the same games against accounts with a planted fault, which must be lost.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

from rich.console import Console

from benchmarks.clock_games import Game, Outcome, Question, drawn_games, played
from benchmarks.stream_games import stream_games
from farthing.accounting.filters.clock_payment import whole_clock
from farthing.ledger.account import Account
from farthing.privacy import ApproxDP, Event


@dataclass(frozen=True)
class Kept:
    """An account as a game asks for it, and the budget that it has after so many charges."""

    account: Account
    epsilon: float
    delta: float
    raised_after: int

    def _after(self, event: Event, count: int) -> Self:
        assert count == 1
        account = self.account
        if account.count == self.raised_after:
            account = account.with_budget(self.epsilon, self.delta)
        return replace(self, account=self.charged(account, event))

    def charged(self, account: Account, event: Event) -> Account:
        """The account with one charge more, whether it fits or not."""
        return account.after(account.priced(event))

    def _fits(self) -> bool:
        return self.account._fits() or self.account._whole_fits()


class AllOfDelta(Kept):
    """A planted fault: plain sums and the clock have all of delta, each of them."""

    def _fits(self) -> bool:
        account = self.account
        sums = account.sum_nano is not None and account.sum_nano <= account.epsilon_nano
        clock = account.clock_units is not None and account.clock_units <= whole_clock(
            account.epsilon_nano, account.delta_units
        )
        return (sums and account.sum_units <= account.delta_units) or (
            clock and account.leak_units <= account.delta_units
        )


class StandingClock(Kept):
    """A planted fault: a charge that only plain sums admit leaves the clock as it was."""

    def charged(self, account: Account, event: Event) -> Account:
        after = super().charged(account, event)
        only_sums = after._plain_fits() and not after._clock_fits()
        return replace(after, clock_units=account.clock_units) if only_sums else after


class FreeRaise(Kept):
    """A planted fault: a raised budget forgets what was charged before."""

    def charged(self, account: Account, event: Event) -> Account:
        if account.count == self.raised_after:
            account = replace(Account.of(self.epsilon, self.delta), count=account.count)
        return super().charged(account, event)


FAULTS: tuple[type[Kept], ...] = (AllOfDelta, StandingClock, FreeRaise)


def kept(kind: type[Kept]) -> Callable[[Game], Kept]:
    """How an account of this kind begins in a game; the same for the same game."""

    def made(game: Game) -> Kept:
        draw = random.Random(repr(game))
        part, charges = draw.choice([(1.0, 0), (draw.uniform(0.3, 0.9), draw.randint(1, 3))])
        begun = Account.of(game.epsilon * part, game.delta * part)
        return kind(begun, game.epsilon, game.delta, charges)

    return made


LUCKY_PATHS = Game(
    1.0,
    0.1,
    0.05,
    0.1,
    (
        Question(ApproxDP(0.3), 3, 3),
        Question(ApproxDP(0.7), 7, 7),
        Question(ApproxDP(0.0, 0.05), 0, 0, 0.05),
    ),
)
"""Go on by the clock where nothing leaked, and leak where plain sums are all that is left."""


def both(seed: int) -> Iterator[Game]:
    """One that shows why delta is shared; then games of the clock and of streams in turn, without end."""
    yield LUCKY_PATHS
    yield from chain.from_iterable(zip(drawn_games(seed), stream_games(seed), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--faulty", type=int, default=500, help="games against each planted fault")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    say, games, real = Console().print, both(options.seed), Outcome(0, 0.0, None)
    while real.games < options.games:
        more = played(games, kept(Kept), min(500, options.games - real.games))
        at = more.at if more.worst > real.worst else real.at
        real = Outcome(real.games + more.games, max(real.worst, more.worst), at)
        say(f"the account: {real.games:,} games, at most {real.worst:.6f} of delta reached")
    say(f"the closest: {real.at}")
    caught = True
    for fault in FAULTS:
        outcome = played(both(options.seed), kept(fault), options.faulty)
        caught = caught and not outcome.holds
        say(f"{fault.__name__}: {outcome.worst:.4f} of delta reached in {outcome.games:,} games")
    if not (real.holds and caught):
        raise SystemExit("a game was lost, or a fault was not caught")


if __name__ == "__main__":
    main()
