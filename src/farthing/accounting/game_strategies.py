"""Strategies for the composition game, and competitions between them.

A strategy sees the game so far and names the next charge. Here are some that are worth beating, and what many games of
one show: how often it guesses right, and how much of delta it uses. As in the game, no data are involved.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, pstdev

from farthing.accounting.composition_game import Budget, CompositionGame, FixedCharges, Strategy, right_at_most
from farthing.accounting.event_price import Charge
from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count


def steady(charge: Charge) -> Strategy:
    """The same charge again and again, until it is refused.

    Args:
        charge: The charge.

    Returns:
        The strategy.

    >>> game = CompositionGame(seed=1)
    >>> outcome = game.play(steady(0.1))
    >>> game.rounds[-1].refused, len(game.rounds) > 10
    (True, True)
    """

    def next_charge(game: CompositionGame) -> Charge | None:
        return None if game.rounds and game.rounds[-1].refused else charge

    return next_charge


def pressing(charge: float, factor: float = 2.0) -> Strategy:
    """Raises the charge while the answers agree, and begins again with the first one when they do not.

    Args:
        charge: The first epsilon.
        factor: By how much the next epsilon grows after an answer that agrees with the others.

    Returns:
        The strategy; it stops when not even the first charge is admitted.

    >>> game = CompositionGame(seed=2)
    >>> outcome = game.play(pressing(0.1))
    >>> len({played.event for played in game.rounds}) > 2
    True
    """

    def next_charge(game: CompositionGame) -> Charge | None:
        if not game.budget.admits(charge):
            return None
        if not game.rounds:
            return charge
        last = game.rounds[-1]
        wanted = factor * getattr(last.event, "epsilon", charge) if last.loss * last.total > 0 else charge
        return min(wanted, max(charge, game.remaining))

    return next_charge


def planned(budget: FixedCharges) -> Strategy:
    """All charges of a list that was fixed in advance, one after the other.

    Args:
        budget: The list.

    Returns:
        The strategy.

    >>> budget = FixedCharges([0.2] * 5, 0.01)
    >>> game = CompositionGame(budget, seed=1)
    >>> outcome = game.play(planned(budget))
    >>> len(game.rounds), game.spent == outcome.epsilon
    (5, True)
    """
    return lambda game: budget.charges[len(game.rounds)] if len(game.rounds) < len(budget.charges) else None


def at_once(game: CompositionGame) -> Charge | None:
    """The strategy that asks once, for all that the filter admits.

    Args:
        game: The game.

    Returns:
        The largest epsilon that is left, or None after the first round.

    >>> game = CompositionGame(seed=1)
    >>> outcome = game.play(at_once)
    >>> [played.event.epsilon for played in game.rounds]
    [1.0]
    """
    return None if game.rounds or not game.remaining > 0 else game.remaining


@dataclass(frozen=True)
class Tally:
    """Many games of one strategy.

    Attributes:
        games: How many.
        right: The share of right guesses.
        right_at_most: What no strategy can beat on average.
        delta_reached: The mean of (1 - e^(epsilon - loss))_+, which delta bounds on average.
        standard_error: That of `delta_reached`.
        delta: The delta of the budget.
    """

    games: int
    right: float
    right_at_most: float
    delta_reached: float
    standard_error: float
    delta: float


def tally(strategy: Strategy, budget: Budget, games: int = 1000, *, seed: int | None = None) -> Tally:
    """Play many games with one strategy: how often it guesses right, and how much of delta it reaches.

    Args:
        strategy: From the game so far to the next charge, or None to stop.
        budget: The filter, or the fixed charges, that every game starts with.
        games: How many games.
        seed: Repeats them.

    Returns:
        The shares, beside what bounds them on average.

    Raises:
        InvalidValue: If `games` is not a whole number above 0.

    >>> from farthing.accounting.filters import ClockFilter
    >>> result = tally(steady(0.2), ClockFilter(1.0, 0.05, leak=0), games=100, seed=1)
    >>> 0.5 < result.right < 0.9, round(result.right_at_most, 3)
    (True, 0.745)
    """
    if not checked_count(games, "games") >= 1:
        raise InvalidValue("games", games, "must be at least 1")
    seeds = random.Random(seed)
    outcomes = [CompositionGame(budget, seed=seeds.getrandbits(63)).play(strategy) for _ in range(games)]
    reached = [-math.expm1(min(0.0, budget.epsilon - outcome.loss)) for outcome in outcomes]
    return Tally(
        games,
        sum(outcome.right for outcome in outcomes) / games,
        right_at_most(budget.epsilon, budget.delta),
        fmean(reached),
        pstdev(reached) / math.sqrt(games),
        budget.delta,
    )


def compete(
    strategies: Mapping[str, Strategy], budget: Budget, games: int = 1000, *, seed: int | None = None
) -> dict[str, Tally]:
    """Let strategies compete, all with the same secrets and the same random draws.

    Args:
        strategies: Names and strategies.
        budget: The filter, or the fixed charges, that every game starts with.
        games: How many games each of them plays.
        seed: Repeats the competition.

    Returns:
        Their tallies, the one that reaches most of delta first.

    Raises:
        InvalidValue: If `games` is not a whole number above 0.

    >>> from farthing.accounting.filters import BasicFilter
    >>> table = compete({"at once": at_once, "steady": steady(0.2)}, BasicFilter(1.0), 100, seed=1)
    >>> sorted(table), all(one.right < 0.9 for one in table.values())
    (['at once', 'steady'], True)
    """
    number = random.SystemRandom().getrandbits(63) if seed is None else seed
    tallies = {name: tally(strategy, budget, games, seed=number) for name, strategy in strategies.items()}
    return dict(sorted(tallies.items(), key=lambda one: (one[1].delta_reached, one[1].right), reverse=True))
