"""Overlaps of cells, beside the common refinement that is made cell by cell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from farthing.data.schema import Schema
from farthing.statistics import contingency, count, histogram
from farthing.statistics.counts.cell_overlaps import Outline, Rulers, TooLarge, overlaps_of
from farthing.statistics.counts.count_queries import question_of
from farthing.statistics.counts.expected_shares import Refinement, joined, own_refinement
from farthing.statistics.statistic import Statistic

SCHEMA = Schema.read(
    {"age": (0, 9), "weight": (0.0, 100.0), "sex": ["M", "F", "A"], "old": bool, "name": ["x", "b", "y", "a"]}
)
ASKED = (
    count(),
    count(where="age > 3"),
    count(where="age > 3 and sex = 'F'"),
    count(where="age <= 6 or weight < 50"),
    count(where="weight > 20 and weight <= 50"),
    count(where="weight = 50"),
    count(where="age + weight > 40"),
    count(where="age + weight > 40 and old"),
    count(where="age is null"),
    count(where="sex in ('M', 'A') and not old"),
    count(by="sex"),
    count(by=("sex", "old"), where="weight > 50"),
    count(by="name"),
    contingency(("name", "sex")),
    histogram("age"),
    histogram("weight", bins=4),
    histogram("weight", bins=5, by="sex", where="age < 5"),
)


def refinements(asked: tuple[Statistic, ...] = ASKED) -> list[Refinement]:
    return [own_refinement(question_of(statistic, SCHEMA)) for statistic in asked]


def agree(one: Refinement, other: Refinement, rulers: Rulers) -> None:
    outlines = Outline.of(one, rulers), Outline.of(other, rulers)
    overlaps, both = overlaps_of(*outlines), joined(one, other)
    assert overlaps is not None
    assert both is not None
    assert overlaps.cells == both.cells
    parts = [both.parts(number).sum() for number in range(len(both.questions))]
    divided = [*(outlines[0].inside @ overlaps.first), *(outlines[1].inside @ overlaps.second)]
    assert divided == parts


@pytest.mark.slow
def test_overlaps_of_two_questions_are_the_cells_of_their_common_refinement() -> None:
    own = refinements()
    rulers = Rulers(own)
    for one, other in itertools.product(own, own):
        agree(one, other, rulers)


@pytest.mark.slow
def test_overlaps_of_groups_are_the_cells_of_their_common_refinement() -> None:
    own = refinements()
    rulers = Rulers(own)
    random = np.random.default_rng(5)
    tried = 0
    for _ in range(60):
        places = random.permutation(len(own))[: random.integers(3, 7)]
        groups = []
        for part in (places[: len(places) // 2], places[len(places) // 2 :]):
            group: Refinement | None = own[part[0]]
            for place in part[1:]:
                group = None if group is None else joined(group, own[place])
            groups.append(group)
        one, other = groups
        if one is None or other is None or joined(one, other) is None:
            continue
        agree(one, other, rulers)
        tried += 1
    assert tried > 40


def test_what_has_too_many_cells_together_has_no_overlaps() -> None:
    wide = Schema.read({"one": (0, 999), "other": (0, 999)})
    own = [own_refinement(question_of(histogram(name), wide)) for name in ("one", "other")]
    rulers = Rulers(own)
    assert joined(*own) is None
    assert overlaps_of(*(Outline.of(refinement, rulers) for refinement in own)) is None


@pytest.mark.slow
def test_tables_that_are_too_large_are_not_made() -> None:
    wide = Schema.read({"one": (0, 9_999)})
    own = own_refinement(question_of(count(by="one"), wide))
    outline = Outline.of(own, Rulers([own]))
    with pytest.raises(TooLarge):
        overlaps_of(outline, outline)
