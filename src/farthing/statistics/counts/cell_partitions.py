"""Which questions share their cells: merged when one partition gives all of them smaller errors than several would.

Every question brings its share of the budget along. A group of n of them is measured with noise of 1 / n of the scale
that one would have, in squares 1 / n^2 of the variance (1 / n for Gaussian noise, whose squares add up), and a count
that is the sum of m cells has m times the variance. So a question gains where m < n^2, and groups are merged where the
sum of the logarithms of m / n^2 falls and no question loses: what a plan minimises, without worse than an even share.
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

FEW = 12
"""Up to so many statistics of a plan have Laplace noise as a rule, and more have Gaussian noise."""

_LEVEL = 1e-9  # no worse than a share of one's own
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
    def _logarithms(self) -> tuple[Floats, Floats]:
        """How much more variance every question has than alone, for squared l1 and for squared l2 sensitivity."""
        alone = [asked.refinement.parts(0).mean() for asked in self.asked]  # below 1 where cells cannot hold rows
        parts = np.array([self.refinement.parts(number).mean() / max(own, 1e-9) for number, own in enumerate(alone)])
        more = np.log(np.maximum(parts, 1e-9))
        # Replacing a row takes one from a cell and puts one into another, where there is another.
        own = np.array([asked.refinement.cells for asked in self.asked])
        apart = math.log(2.0) * (self.replaces and self.refinement.cells > 1) * (own == 1)
        return more + 2 * apart, more + apart

    def gains(self, laplace: bool) -> Floats:
        """The logarithm of every question's variance in this group over that of its own share; none above 0."""
        power = 2.0 if laplace else 1.0
        return self._logarithms[0 if laplace else 1] - power * math.log(len(self.asked))

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
    laplace = facts.pure or facts.asked <= FEW
    groups: list[Group] = []
    for asked in questions:
        alone = Group((asked,), asked.refinement, replaces)
        gain, place, merged = 0.0, -1, alone
        for number, group in enumerate(groups):
            candidate = _merged(group, alone, laplace)
            if candidate is not None and candidate[0] > gain:
                (gain, merged), place = candidate, number
        if place >= 0:
            groups[place] = merged
        else:
            groups.append(alone)
    return tuple(_settled(groups, laplace))


def _settled(groups: list[Group], laplace: bool) -> list[Group]:
    """Pairs merged while any pair gains by it; a question placed early may have found better company since."""
    pairs = 0
    number = 0
    while number < len(groups):
        for other in range(number + 1, len(groups)):
            pairs += 1
            merged = _merged(groups[number], groups[other], laplace) if pairs <= _MOST_PAIRS else None
            if merged is not None:
                groups[number] = merged[1]
                del groups[other]
                number = -1
                break
        number += 1
    return groups


def _merged(one: Group, other: Group, laplace: bool) -> tuple[float, Group] | None:
    """What is gained by merging two groups, and the merged one; None if nothing is, or if a question loses."""
    apart = float(one.gains(laplace).sum() + other.gains(laplace).sum())
    if not one.sources & other.sources and _bound(one, other, laplace) >= apart:
        return None
    refinement = joined(one.refinement, other.refinement)
    if refinement is None:
        return None
    merged = Group((*one.asked, *other.asked), refinement, one.replaces)
    gains = merged.gains(laplace)
    gain = apart - float(gains.sum())
    return (gain, merged) if gain > 1e-9 and float(gains.max()) <= _LEVEL else None


def _bound(one: Group, other: Group, laplace: bool) -> float:
    """The least sum of two groups merged that look at different columns: every cell of one meets all of the other."""
    both = len(one.asked) + len(other.asked)
    power = 2.0 if laplace else 1.0
    return sum(
        float(group.gains(laplace).sum())
        + len(group.asked) * (math.log(max(beside.refinement.cells, 1)) - power * math.log(both / len(group.asked)))
        for group, beside in ((one, other), (other, one))
    )
