"""The adaptive composition game: choose the next charge after seeing the last answer, and watch a filter hold.

A secret bit is drawn, every answer says a little about it, and a filter decides how much may be asked. The bit is made
up and protects nobody, so a game may have a seed. Nothing here takes data, and no mechanism draws from here.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Protocol

from farthing.accounting.compose import Composition, compose
from farthing.accounting.event_price import Charge, as_event
from farthing.accounting.filters import ClockFilter
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.numerics.bounds import number_text
from farthing.privacy import ApproxDP, Event, GaussianNoise, LaplaceNoise, RandomizedResponse
from farthing.privacy.events import checked_delta

_MOST = 10_000  # rounds of one game: a strategy that never ends is stopped


@dataclass(frozen=True)
class Round:
    """One question and its answer.

    Attributes:
        event: What was asked for.
        answer: The noisy bit, or the bit with noise added; None if the filter refused.
        loss: How much the answer speaks for a secret of 1, as the logarithm of a likelihood ratio.
        total: The losses so far.
        remaining: The largest epsilon that the filter would admit next.
        spent: The running bound: what the filter, or the optimum of fixed charges, reads after it.
    """

    event: Event
    answer: float | None
    loss: float
    total: float
    remaining: float
    spent: float

    @property
    def refused(self) -> bool:
        """Whether the filter refused: then nothing was answered, and nothing was charged."""
        return self.answer is None


@dataclass(frozen=True)
class Outcome:
    """How a game ended.

    Attributes:
        secret: The bit.
        guess: The better guess, from all answers.
        loss: The losses in favour of the secret: what the answers gave away.
        epsilon: The epsilon of the budget.
        delta: The delta of the budget.
    """

    secret: int
    guess: int
    loss: float
    epsilon: float
    delta: float

    @property
    def right(self) -> bool:
        """Whether the guess is right."""
        return self.guess == self.secret

    @property
    def right_at_most(self) -> float:
        """How often any guess can be right under this budget, if both bits are equally likely."""
        return right_at_most(self.epsilon, self.delta)

    @property
    def sentence(self) -> str:
        """The secret, the guess and its odds, whether the filter held, and what bounds every guess."""
        most = math.exp(min(self.epsilon, 700.0))
        limit = f"Epsilon {number_text(self.epsilon)} allows odds of {number_text(most)} to 1"
        more = "" if self.loss <= self.epsilon else "; more is rare, and delta pays for it"
        odds = math.exp(min(abs(self.loss), 700.0))
        return (
            f"The secret was {self.secret}, and the answers say {self.guess} with odds of {number_text(odds)} to 1: "
            f"{'right' if self.right else 'wrong'}. {limit}{more}. "
            f"Whatever you ask, a guess is right at most {math.ceil(1000 * self.right_at_most) / 10:g}% of the time."
        )


def right_at_most(epsilon: float, delta: float) -> float:
    """The largest chance that a guess between two equally likely neighbours is right under (epsilon, delta)-DP.

    Args:
        epsilon: The epsilon of all answers.
        delta: The delta of all answers.

    Returns:
        (e^epsilon + delta) / (1 + e^epsilon).

    >>> round(right_at_most(1.0, 1e-6), 4), right_at_most(0.0, 0.0)
    (0.7311, 0.5)
    """
    return (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))


class Budget(Protocol):
    """What decides how much may be asked: any filter, or `FixedCharges`."""

    @property
    def epsilon(self) -> float:
        """No guess about the secret gains more than a factor e^epsilon in its odds, but for delta."""

    @property
    def delta(self) -> float:
        """How often the promise about all answers together may fail."""

    @property
    def spent(self) -> ApproxDP:
        """What the charges so far add up to."""

    @property
    def remaining(self) -> ApproxDP:
        """The largest charge that would be admitted next."""

    def admits(self, charge: Any) -> bool:
        """Whether a charge would be admitted."""

    def charge(self, charge: Any) -> Any:
        """The budget after a charge, or BudgetExceeded."""


@dataclass(frozen=True)
class FixedCharges:
    """Parameters fixed before the first answer: only the mechanisms may depend on answers, and the optimum holds.

    Args:
        charges: What will be asked for, in this order: epsilons, (epsilon, delta) pairs or events.
        delta: The delta of all of them together.

    Raises:
        InvalidValue: If something is not a charge, or delta is out of its range.

    >>> budget = FixedCharges([0.1] * 30, 1e-6)
    >>> round(budget.epsilon, 4), round(30 * 0.1, 4)
    (2.3459, 3.0)
    >>> budget.admits(0.1), budget.admits(0.2)
    (True, False)
    """

    charges: tuple[Event, ...]
    delta: float
    played: int = 0
    _composed: Composition = field(init=False, repr=False, compare=False)

    def __init__(self, charges: Iterable[Charge], delta: float) -> None:
        events = tuple(as_event(charge) for charge in charges)
        object.__setattr__(self, "charges", events)
        object.__setattr__(self, "delta", checked_delta(delta))
        object.__setattr__(self, "played", 0)
        object.__setattr__(self, "_composed", compose(events))

    @property
    def epsilon(self) -> float:
        """The optimum of all charges at delta, rounded up: whatever the answers make somebody ask."""
        return self._composed.epsilon_at(self.delta).upper

    @property
    def spent(self) -> ApproxDP:
        """The optimum of the charges so far. After stopping early, the guarantee is still that of the whole list."""
        return ApproxDP(_optimum(self.charges[: self.played], self.delta), self.delta)

    @property
    def remaining(self) -> ApproxDP:
        """The next charge of the list as an (epsilon, delta) pair; nothing after the last."""
        if self.played >= len(self.charges):
            return ApproxDP(0.0)
        event = self.charges[self.played]
        return ApproxDP(getattr(event, "epsilon", 0.0), getattr(event, "delta", 0.0))

    def admits(self, charge: Charge) -> bool:
        """Whether this is the next charge of the list, or any mechanism that is as private as the next pair.

        Args:
            charge: An epsilon, an (epsilon, delta) pair or an event.

        Returns:
            True if it is.

        >>> budget = FixedCharges([(0.2, 0.001)], 0.01)
        >>> budget.admits(LaplaceNoise(5.0)), budget.admits(LaplaceNoise(4.0)), budget.admits(GaussianNoise(15.0))
        (True, False, True)
        """
        if self.played >= len(self.charges):
            return False
        event, wanted = self.charges[self.played], as_event(charge)
        return _is_within(wanted, event) if isinstance(event, ApproxDP) else wanted == event

    def charge(self, charge: Charge) -> FixedCharges:
        """The list with one more charge made.

        Args:
            charge: An epsilon, an (epsilon, delta) pair or an event.

        Returns:
            The list to go on with.

        Raises:
            BudgetExceeded: If it is not the next one.
        """
        if not self.admits(charge):
            event, left = as_event(charge), self.remaining
            raise BudgetExceeded(
                f"charge of {event!r} is not what was fixed: charge {self.played + 1} of {len(self.charges)} may have "
                f"at most epsilon={left.epsilon!r}, delta={left.delta!r}; ask for that, or play under a filter.",
                requested=event,
                remaining=left,
            )
        after = copy.copy(self)
        object.__setattr__(after, "played", self.played + 1)
        return after


@lru_cache(maxsize=1024)
def _optimum(charges: tuple[Event, ...], delta: float) -> float:
    """Rounded up; remembered, since many games have the same charges."""
    return compose(charges).epsilon_at(delta).upper


def _is_within(event: Event, pair: ApproxDP) -> bool:
    """Whether a mechanism is proven to be (epsilon, delta)-DP."""
    if isinstance(event, ApproxDP | RandomizedResponse):
        return event.epsilon <= pair.epsilon and getattr(event, "delta", 0.0) <= pair.delta
    if isinstance(event, LaplaceNoise) and 1 / Fraction(event.noise_multiplier) <= Fraction(pair.epsilon):
        return True  # exactly, where a curve would be rounded up
    return compose([event]).delta_at(pair.epsilon).upper <= pair.delta


class CompositionGame:
    """A game against a filter: choose every question after the last answer; the filter refuses what would be too much.

    Args:
        budget: A filter, or `FixedCharges`; by default a clock of epsilon 1 at delta 0.01.
        seed: Repeats a game. The secret is made up, so this is no risk; nothing that protects a person takes a seed.

    >>> game = CompositionGame(ClockFilter(1.0, 0.01, leak=0), seed=3)
    >>> game.ask(0.4).answer, round(game.total, 3)
    (1.0, 0.4)
    >>> game.ask(GaussianNoise(4.0)).refused, game.ask(2.0).refused
    (False, True)
    >>> len(game.rounds), game.finish().right_at_most < 0.735
    (3, True)
    """

    def __init__(self, budget: Budget | None = None, *, seed: int | None = None) -> None:
        self.budget: Budget = ClockFilter(1.0, 0.01, leak=0) if budget is None else budget
        self.rounds: list[Round] = []
        self._draws = random.Random(seed)
        self._secret = int(self._draws.random() < 0.5)
        self._coin = int(self._draws.random() < 0.5)  # the guess where the answers say nothing

    @property
    def total(self) -> float:
        """The losses so far: above 0 they speak for a secret of 1, below for 0."""
        return self.rounds[-1].total if self.rounds else 0.0

    @property
    def remaining(self) -> float:
        """The largest epsilon that the filter would admit next."""
        return self.budget.remaining.epsilon

    @property
    def spent(self) -> float:
        """The running bound: what the filter, or the optimum of fixed charges, reads for all charges so far.

        >>> game = CompositionGame(FixedCharges([0.2] * 6, 0.01), seed=1)
        >>> _ = game.ask(0.2), game.ask(0.2)
        >>> game.spent < 0.4 < game.budget.epsilon
        True
        """
        return self.budget.spent.epsilon

    @property
    def view(self) -> tuple[tuple[Event, float | None], ...]:
        """All that the adversary has seen: what was asked for, and the answers; None where it was refused.

        >>> game = CompositionGame(seed=3)
        >>> _ = game.ask(0.4), game.ask(5.0)
        >>> [answer for _, answer in game.view]
        [1.0, None]
        """
        return tuple((played.event, played.answer) for played in self.rounds)

    def ask(self, charge: Charge) -> Round:
        """Charge the filter, then answer; a refusal answers nothing and costs nothing.

        Args:
            charge: An epsilon (a randomized response), an (epsilon, delta) pair, which tells the secret outright with
                probability delta, RandomizedResponse, LaplaceNoise or GaussianNoise.

        Returns:
            The round: the answer, what it gave away, and what is left.

        Raises:
            InvalidValue: If `charge` is none of these.
        """
        event = as_event(charge)
        if not isinstance(event, ApproxDP | RandomizedResponse | LaplaceNoise | GaussianNoise):
            raise InvalidValue(
                "charge", event, "is not played here", "ask with an epsilon, Laplace noise or Gaussian noise"
            )
        try:
            self.budget = self.budget.charge(event)
        except BudgetExceeded:
            answer, loss = None, 0.0
        else:
            answer, loss = self._answer(event)
        total = round(self.total + loss, 12)  # 0.1 + 0.2 - 0.3 is nothing
        played = Round(event, answer, loss, total, self.remaining, self.spent)
        self.rounds.append(played)
        return played

    def play(self, strategy: Strategy) -> Outcome:
        """Let a strategy choose until it stops.

        Args:
            strategy: From the game so far to the next charge, or None to stop.

        Returns:
            How it ended.

        Raises:
            InvalidValue: If the strategy asks for something that is not played here.

        >>> CompositionGame(seed=1).play(lambda game: None if game.rounds else 1.0).loss in (-1.0, 1.0)
        True
        """
        for _ in range(_MOST):
            charge = strategy(self)
            if charge is None:
                break
            self.ask(charge)
        return self.finish()

    def finish(self) -> Outcome:
        """The secret, and the better guess from the answers so far.

        Returns:
            How the game ended.
        """
        guess = int(self.total > 0) if self.total else self._coin
        gained = self.total if self._secret else -self.total
        return Outcome(self._secret, guess, gained, self.budget.epsilon, self.budget.delta)

    def _answer(self, event: Event) -> tuple[float, float]:
        """A draw of the event at the secret, and its loss: one uniform number a round, so that games repeat."""
        uniform = self._draws.random()
        if isinstance(event, GaussianNoise):
            scale = event.noise_multiplier
            answer = self._secret + scale * NormalDist().inv_cdf(min(max(uniform, 1e-16), 1 - 1e-16))
            return answer, (answer - 0.5) / scale**2
        if isinstance(event, LaplaceNoise):
            scale, side = event.noise_multiplier, uniform - 0.5
            answer = self._secret - math.copysign(scale, side) * math.log(max(1 - 2 * abs(side), 1e-300))
            return answer, (abs(answer) - abs(answer - 1)) / scale
        assert isinstance(event, ApproxDP | RandomizedResponse)
        leak = event.delta if isinstance(event, ApproxDP) else 0.0
        if uniform < leak:  # the pair may fail: then it tells the secret
            return float(self._secret), math.inf if self._secret else -math.inf
        truth = (uniform - leak) / (1 - leak) < 1 / (1 + math.exp(-event.epsilon))
        answer = float(self._secret if truth else 1 - self._secret)
        return answer, event.epsilon * (2 * answer - 1)


Strategy = Callable[[CompositionGame], Charge | None]
"""From the game so far to the next charge; None stops."""
