"""Which questions share their cells: merged when one partition gives all of them smaller errors than several would.

A slot measured with noise of variance v gives a cell that is the sum of m of its cells the variance m v. Let c be what
the outputs of a slot lose per unit of v (squared, relative errors, as a planner weighs them). At best, slots that pay
in epsilon lose (sum of c^(1/3))^3 / epsilon^2 in all, and slots that pay in squares of it (sum of c^(1/2))^2 / rho; so
two groups are better merged exactly when c^(1/3), or c^(1/2), of the merged one is less than the sum of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.statistics.counts.count_queries import Question
from farthing.statistics.counts.expected_shares import Refinement, expected_counts, joined, own_refinement
from farthing.statistics.public_facts import Facts

Floats = NDArray[np.float64]

_MOST_PAIRS = 2_000  # comparisons of groups after all questions are placed


@dataclass(frozen=True, eq=False)
class RefinedQuestion:
    """A question with its own cells, the rows expected in them, and what an error in it is worth.

    `reference` is what relative error is relative to: the mean expected count of the cells, for shares one half. It is
    one number for all cells of a statistic, so that a rare cell does not draw the whole budget to itself. `loss` is
    the squared relative error per unit of variance in one cell.
    """

    question: Question
    refinement: Refinement
    expected: Floats
    reference: Floats
    loss: float

    @classmethod
    def of(cls, facts: Facts, question: Question) -> RefinedQuestion:
        """The question, weighed by what is expected."""
        refinement = own_refinement(question)
        expected = expected_counts(facts, question, refinement)
        if question.statistic.kind == "cdf":
            # Shares are sums over half of the cells or so, divided by all rows.
            scale = max(1.0, float(expected.sum())) / math.sqrt(max(1, question.shape[-1]))
            return cls(question, refinement, expected, np.full(question.cells, 0.5), 1.0 / scale**2)
        scale = max(1.0, float(expected.mean()))
        return cls(question, refinement, expected, np.full(question.cells, scale), 1.0 / scale**2)


@dataclass(frozen=True, eq=False)
class Group:
    """Questions answered from one partition."""

    asked: tuple[RefinedQuestion, ...]
    refinement: Refinement
    replaces: bool

    @cached_property
    def cost(self) -> tuple[float, float]:
        """What the outputs lose per unit of squared l1, and of squared l2 sensitivity over noise."""
        loss = sum(asked.loss * float(self.refinement.parts(number).mean()) for number, asked in enumerate(self.asked))
        # Replacing a row takes one from a cell and puts one into another, where there is another.
        apart = 2.0 if self.replaces and self.refinement.cells > 1 else 1.0
        return loss * apart**2, loss * apart

    @cached_property
    def sources(self) -> frozenset[str]:
        """The columns and conditions that tell its rows apart."""
        return frozenset().union(*(asked.question.sources for asked in self.asked))

    def share(self, pure: bool) -> float:
        """What groups are compared by; smaller is better, and shares add up."""
        return float(np.cbrt(self.cost[0])) if pure else float(np.sqrt(self.cost[1]))


def groups_of(facts: Facts, questions: Sequence[RefinedQuestion]) -> tuple[Group, ...]:
    """The questions in groups, each question placed where it helps most, then groups merged while that helps."""
    replaces = facts.dataset.neighbours == "replace"
    groups: list[Group] = []
    for asked in questions:
        alone = Group((asked,), asked.refinement, replaces)
        gain, place, merged = 0.0, -1, alone
        for number, group in enumerate(groups):
            candidate = _merged(group, alone, facts.pure)
            if candidate is not None and candidate[0] > gain:
                (gain, merged), place = candidate, number
        if place >= 0:
            groups[place] = merged
        else:
            groups.append(alone)
    return tuple(_settled(groups, facts.pure))


def _settled(groups: list[Group], pure: bool) -> list[Group]:
    """Pairs merged while any pair gains by it; a question placed early may have found better company since."""
    pairs = 0
    number = 0
    while number < len(groups):
        for other in range(number + 1, len(groups)):
            pairs += 1
            merged = _merged(groups[number], groups[other], pure) if pairs <= _MOST_PAIRS else None
            if merged is not None:
                groups[number] = merged[1]
                del groups[other]
                number = -1
                break
        number += 1
    return groups


def _merged(one: Group, other: Group, pure: bool) -> tuple[float, Group] | None:
    """What is gained by merging two groups, and the merged one; None if nothing is."""
    apart = one.share(pure) + other.share(pure)
    if not one.sources & other.sources and _bound(one, other, pure) >= apart:
        return None
    refinement = joined(one.refinement, other.refinement)
    if refinement is None:
        return None
    merged = Group((*one.asked, *other.asked), refinement, one.replaces)
    gain = apart - merged.share(pure)
    return (gain, merged) if gain > 1e-12 * apart else None


def _bound(one: Group, other: Group, pure: bool) -> float:
    """The least share of two groups merged that look at different columns: every cell of one meets all of the other."""
    exponent, place = (1 / 3, 0) if pure else (1 / 2, 1)
    loss = one.cost[place] * other.refinement.cells + other.cost[place] * one.refinement.cells
    return float(loss**exponent)
