"""Which questions share their cells: merged when one partition gives all of them smaller errors than several would.

Every question brings its share of the budget along. A group of n of them is measured with noise of 1 / n of the scale
that one would have, in squares 1 / n^2 of the variance (1 / n for Gaussian noise, whose squares add up), and a count
that is the sum of m cells has m times the variance. So a question gains where m < n^2, and groups are merged where the
sum of the logarithms of m / n^2 falls and no question loses: what a plan minimises, without worse than an even share.

Questions that are measured apart still say something about each other: what they have in common is estimated from both.
Of few questions, two groups are merged only if that is better than both apart and estimated together. With Gaussian
noise it hardly ever is: a total and its two parts have 2 times the least variance in geometric mean when merged, and
1.7 times apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from farthing.inference.linked_counts import Link, LinkedCounts
from farthing.statistics.cells.common_cells import common_cells
from farthing.statistics.counts.cell_overlaps import Outline, Rulers, TooLarge, overlaps_of
from farthing.statistics.counts.count_queries import Question
from farthing.statistics.counts.expected_shares import Refinement, completed, expected_counts, joined, own_refinement
from farthing.statistics.public_facts import Facts

Floats = NDArray[np.float64]

FEW = 12
"""Up to so many moments of a plan have Laplace noise as a rule, and more have Gaussian noise."""

_FEW_STATISTICS = 18  # the same for counts, of which several share a measurement

_LEVEL = 1e-9  # no worse than a share of one's own
_BOTH = (False, True)
_MOST_PAIRS = 2_000  # comparisons of groups after all questions are placed
_CLEARLY = 0.05  # in logarithms of variances, for each question: other groups have a word, too
_FEW_QUESTIONS = 24  # up to so many, merging is compared with estimating together
_MOST_CELLS, _MOST_SUMS = 2_000, 200  # of groups that are compared so


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

    @cached_property
    def parts(self) -> float:
        """How many cells of its own refinement a cell of the question is the sum of, on average."""
        return float(self.refinement.parts(0).mean())

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
    rulers: Rulers = field(repr=False)

    @cached_property
    def outline(self) -> Outline:
        """Its cells as overlaps with other groups are found."""
        return Outline.of(self.refinement, self.rulers)

    @cached_property
    def facts(self) -> Floats:
        """For every question its cells, its cells as it refines them alone, and the mean number of the latter."""
        return np.array([(asked.question.cells, asked.refinement.cells, asked.parts) for asked in self.asked]).T

    @cached_property
    def cost(self) -> tuple[float, float]:
        """What the outputs lose per unit of squared l1, and of squared l2 sensitivity over noise."""
        loss = sum(asked.loss * float(self.refinement.parts(number).mean()) for number, asked in enumerate(self.asked))
        # Replacing a row takes one from a cell and puts one into another, where there is another.
        apart = 2.0 if self.replaces and self.refinement.cells > 1 else 1.0
        return loss * apart**2, loss * apart

    @cached_property
    def gains(self) -> dict[bool, Floats]:
        """The logarithm of every question's variance in this group over that of its own share; none above 0.

        For Gaussian noise under False, for Laplace noise under True.
        """
        inside = self.outline.inside.sum(axis=1, dtype=float)
        return {laplace: _gains(self.facts, inside, self.refinement.cells, self.replaces, laplace) for laplace in _BOTH}

    @cached_property
    def gained(self) -> dict[bool, float]:
        """The sums of `gains` over all questions, by the kind of noise."""
        return {laplace: float(gains.sum()) for laplace, gains in self.gains.items()}

    @cached_property
    def sources(self) -> frozenset[str]:
        """The columns and conditions that tell its rows apart."""
        return frozenset().union(*(asked.question.sources for asked in self.asked))

    def share(self, pure: bool) -> float:
        """What groups are compared by; smaller is better, and shares add up."""
        return float(np.cbrt(self.cost[0])) if pure else float(np.sqrt(self.cost[1]))


def _gains(facts: Floats, inside: Floats, cells: int, replaces: bool, laplace: bool) -> Floats:
    """The logarithm of every question's variance over that of its own share, where `inside` cells are added up."""
    asked, own, alone = facts  # alone is below 1 where cells cannot hold rows
    more = np.log(np.maximum(inside / asked / np.maximum(alone, 1e-9), 1e-9))
    power = 2.0 if laplace else 1.0
    # Replacing a row takes one from a cell and puts one into another, where there is another.
    apart = math.log(2.0) * (replaces and cells > 1) * (own == 1)
    gains: Floats = more + power * apart - power * math.log(len(asked))
    return gains


def groups_of(facts: Facts, questions: Sequence[RefinedQuestion]) -> tuple[Group, ...]:
    """The questions in groups, each question placed where it helps most, then groups merged while that helps."""
    replaces = facts.dataset.neighbours == "replace"
    laplace = facts.pure or facts.asked <= _FEW_STATISTICS
    few = len(questions) <= _FEW_QUESTIONS
    rulers = Rulers(asked.refinement for asked in questions)
    groups: list[Group] = []
    for asked in questions:
        alone = Group((asked,), asked.refinement, replaces, rulers)
        best, place = 0.0, -1
        for number, group in enumerate(groups):
            gain = _gain(group, alone, laplace, few)
            if gain > best:
                best, place = gain, number
        if place >= 0:
            groups[place] = _merged(groups[place], alone)
        else:
            groups.append(alone)
    return tuple(_settled(groups, laplace, few))


def _settled(groups: list[Group], laplace: bool, few: bool) -> list[Group]:
    """Pairs merged while any pair gains by it; a question placed early may have found better company since."""
    pairs = 0
    number = 0
    known: dict[tuple[Group, Group], float] = {}
    while number < len(groups):
        for other in range(number + 1, len(groups)):
            pair = groups[number], groups[other]
            pairs += 1
            if pairs <= _MOST_PAIRS and pair not in known:
                known[pair] = _gain(*pair, laplace, few)
            if pairs <= _MOST_PAIRS and known[pair] > 0:
                groups[number] = _merged(*pair)
                del groups[other]
                number = -1
                break
        number += 1
    return groups


def _gain(one: Group, other: Group, laplace: bool, few: bool = False) -> float:
    """What is gained by merging two groups; 0 if nothing is, or if a question loses."""
    apart = one.gained[laplace] + other.gained[laplace]
    if not one.sources & other.sources and _bound(one, other, laplace) >= apart:
        return 0.0
    try:
        overlaps = overlaps_of(one.outline, other.outline)
        if overlaps is None:
            return 0.0
        inside = [one.outline.inside @ overlaps.first, other.outline.inside @ overlaps.second]
        cells = overlaps.cells
    except TooLarge:
        refinement = joined(one.refinement, other.refinement)
        if refinement is None:
            return 0.0
        inside, cells = [Outline.of(refinement, one.rulers).inside.sum(axis=1, dtype=float)], refinement.cells
    facts = np.concatenate([one.facts, other.facts], axis=1)
    gains = _gains(facts, np.concatenate(inside).astype(float), cells, one.replaces, laplace)
    gain = apart - float(gains.sum())
    if not (gain > 1e-9 and float(gains.max()) <= _LEVEL):
        return 0.0
    clearly = _CLEARLY * len(gains)
    return 0.0 if few and float(gains.sum()) > _estimated_together(one, other, laplace) + clearly else gain


def _merged(one: Group, other: Group) -> Group:
    """Two groups of which `_gain` says that they gain."""
    refinement = joined(one.refinement, other.refinement)
    assert refinement is not None
    return Group((*one.asked, *other.asked), refinement, one.replaces, one.rulers)


def _estimated_together(one: Group, other: Group, laplace: bool) -> float:
    """The sum of the logarithms when both are measured apart and estimated together; infinite where they cannot be."""
    wholes = [completed(group.refinement) for group in (one, other)]
    if one.replaces or wholes[0] is None or wholes[1] is None:
        return math.inf  # cells for other rows are not free where rows are replaced
    sizes = (wholes[0].cells, wholes[1].cells)
    if max(sizes) > _MOST_CELLS:
        return math.inf
    *labels, sums = common_cells(wholes[0].partition, wholes[1].partition, one.asked[0].question.schema)
    if sums > _MOST_SUMS:
        return math.inf
    linked = LinkedCounts(sizes, (Link((0, 1), (labels[0], labels[1]), sums),))
    variances = np.array([float(len(group.asked)) ** -(2.0 if laplace else 1.0) for group in (one, other)])
    estimate = linked.at(variances.tolist())
    total = 0.0
    for vector, (group, whole) in enumerate(zip((one, other), wholes, strict=True)):
        for number, asked in enumerate(group.asked):
            assert whole is not None
            crossed = linked.crossed(vector, whole.members[number], asked.question.cells)
            parts = whole.parts(number).astype(np.float64)
            variance = float(np.mean(estimate.square_weights(vector, crossed, parts) @ variances))
            total += math.log(max(variance / max(float(asked.refinement.parts(0).mean()), 1e-9), 1e-9))
    return total


def _bound(one: Group, other: Group, laplace: bool) -> float:
    """The least sum of two groups merged that look at different columns: every cell of one meets all of the other."""
    both = len(one.asked) + len(other.asked)
    power = 2.0 if laplace else 1.0
    return sum(
        group.gained[laplace]
        + len(group.asked) * (math.log(max(beside.refinement.cells, 1)) - power * math.log(both / len(group.asked)))
        for group, beside in ((one, other), (other, one))
    )
