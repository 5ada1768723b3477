"""The strongest adaptive analyst, found by exhaustion.

Every (epsilon, delta)-DP mechanism is a processing of leaky randomized response, so an analyst who may ask only
leaky randomized responses, with parameters chosen from a menu after seeing all earlier answers, is the worst case
for that menu. A state is (filter, privacy loss so far); the best next question is found by recursion over *all*
strategies, which are far too many to list but have few states. Losses are kept as whole numbers of `unit`, so that
equal states meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol, Self

Question = tuple[int, float]  # (epsilon in units, delta)


class Refusing(Protocol):
    """The part of a filter that the adversary sees."""

    def admits(self, charge: tuple[float, float]) -> bool: ...
    def charge(self, charge: tuple[float, float]) -> Self: ...


@dataclass(frozen=True)
class Adversary:
    """An analyst with a menu of questions against the guarantee at `epsilon`."""

    menu: tuple[Question, ...]
    epsilon: float
    unit: float = 0.1

    def delta(self, budget: Refusing) -> float:
        """The largest delta at `epsilon` that any strategy reaches before the filter stops it."""
        return self._solver()(budget, 0)[0]

    def strategy(self, budget: Refusing) -> Strategy | None:
        """A strategy that reaches it, as a tree; None is to stop."""
        solve = self._solver()

        def tree(state: Refusing, loss: int) -> Strategy | None:
            question = solve(state, loss)[1]
            if question is None:
                return None
            after, step = state.charge(self.priced(question)), question[0]
            return Strategy(question, tree(after, loss + step), tree(after, loss - step))

        return tree(budget, 0)

    def priced(self, question: Question) -> tuple[float, float]:
        """The question as an (epsilon, delta) charge."""
        return round(question[0] * self.unit, 12), question[1]

    def _solver(self) -> Callable[[Refusing, int], tuple[float, Question | None]]:
        states: dict[Refusing, int] = {}  # filters are compared once, numbers ever after
        moves: list[list[tuple[Question, Refusing]]] = []

        def number(state: Refusing) -> int:
            if state not in states:
                states[state] = len(moves)
                asked = [(question, self.priced(question)) for question in self.menu]
                moves.append([(question, state.charge(charge)) for question, charge in asked if state.admits(charge)])
            return states[state]

        @cache
        def solve(at: int, loss: int) -> tuple[float, Question | None]:
            best, choice = max(0.0, -math.expm1(self.epsilon - loss * self.unit)), None
            for question, after in moves[at]:
                epsilon, delta = self.priced(question)
                truth, there = 1 / (1 + math.exp(-epsilon)), number(after)
                hidden = truth * solve(there, loss + question[0])[0]
                hidden += (1 - truth) * solve(there, loss - question[0])[0]
                value = delta + (1 - delta) * hidden  # a leak gives everything away
                if value > best + 1e-15:
                    best, choice = value, question
            return best, choice

        return lambda state, loss: solve(number(state), loss)


@dataclass(frozen=True)
class Strategy:
    """A question, and what to do after an answer that points to the truth or away from it."""

    question: Question
    after_truth: Strategy | None
    after_lie: Strategy | None

    def transcripts(self, unit: float = 0.1) -> Iterator[tuple[str, float, float]]:
        """Every transcript with its probability under either of two neighbours, leaf by leaf."""
        yield from _transcripts(self, unit, "", 1.0, 1.0)


def _transcripts(
    node: Strategy | None, unit: float, said: str, p: float, q: float
) -> Iterator[tuple[str, float, float]]:
    if node is None:
        yield said, p, q
        return
    epsilon, delta = node.question[0] * unit, node.question[1]
    truth = 1 / (1 + math.exp(-epsilon))
    if delta:
        yield said + "!", p * delta, 0.0
        yield said + "?", 0.0, q * delta
    keep = 1 - delta
    yield from _transcripts(node.after_truth, unit, said + "1", p * keep * truth, q * keep * (1 - truth))
    yield from _transcripts(node.after_lie, unit, said + "0", p * keep * (1 - truth), q * keep * truth)


def hockey_stick(transcripts: list[tuple[str, float, float]], epsilon: float) -> float:
    """sum over transcripts of max(0, P - e^epsilon Q): what (epsilon, delta)-DP bounds by delta."""
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for _, p, q in transcripts)


def optimal_delta(epsilons: tuple[float, ...], epsilon: float) -> float:
    """delta at `epsilon` of the optimal composition of pure charges fixed in advance, by enumeration."""
    outcomes = [(1.0, 1.0)]
    for e in epsilons:
        truth = 1 / (1 + math.exp(-e))
        outcomes = [(p * a, q * b) for p, q in outcomes for a, b in ((truth, 1 - truth), (1 - truth, truth))]
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in outcomes)


@dataclass(frozen=True)
class NaturalFilter:
    """The rule that is *not* a filter: go on while the optimal composition of the epsilons so far fits."""

    epsilon: float
    limit: float
    asked: tuple[float, ...] = ()

    def admits(self, charge: tuple[float, float]) -> bool:
        return charge[1] == 0 and optimal_delta((*self.asked, charge[0]), self.epsilon) <= self.limit

    def charge(self, charge: tuple[float, float]) -> NaturalFilter:
        return NaturalFilter(self.epsilon, self.limit, tuple(sorted((*self.asked, charge[0]))))
