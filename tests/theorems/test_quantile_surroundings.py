"""`QuantileSurroundings`: privacy by enumeration of choices and counts, the law of its noise, and its cells."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, product
from typing import Any

import mpmath
import numpy as np
import pytest

from farthing.mechanisms.counted_quantiles import CountedQuantiles
from farthing.mechanisms.quantile_surroundings import QuantileSurroundings
from farthing.mechanisms.quantiles import decimal
from farthing.privacy import BoundedRange, Composed, DiscreteLaplaceNoise
from theorems.selection_twins import SLACK, Seeded, number, rejected
from theorems.test_quantiles import quantile_distribution

POINTS = 4
PLACES = list(product(range(2), range(POINTS)))

Rows = tuple[tuple[int, int], ...]
"""(group, point) of each row."""


def joint_loss(mechanism: QuantileSurroundings, rows: Rows, others: Rows) -> Any:
    """The largest log ratio of the two laws: over every choice, that of the choice and the most of the noise's."""
    q, (rate,) = decimal(mechanism.probabilities[0]), mechanism.choosing.rates
    distributions = [
        [
            quantile_distribution([point for own, point in table if own == group], q, rate, range(POINTS))
            for group in range(2)
        ]
        for table in (rows, others)
    ]
    most, scale = number(0), mpmath.mpf(mechanism.counting().scale)
    for places in product(range(POINTS), repeat=2):
        ratio = sum(mpmath.log(distributions[0][g][y] / distributions[1][g][y]) for g, y in enumerate(places))
        moved = 0
        for group, place in enumerate(places):
            starts = [0, *(mechanism.last_points(np.array([place]))[:-1] + 1)]
            for start, stop in zip(starts, [*starts[1:], POINTS], strict=True):
                inside = [
                    sum(own == group and start <= point < stop for own, point in table) for table in (rows, others)
                ]
                moved += abs(inside[0] - inside[1])
        most = max(most, abs(ratio) + moved / scale)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.25, 0.5])
@pytest.mark.parametrize(("neighbours", "l1"), [("add-remove", 1), ("replace", 2)])
def test_choice_and_counts_together_stay_within_epsilon(probability: float, neighbours: Any, l1: int) -> None:
    mechanism = QuantileSurroundings((probability,), 0.8, POINTS, groups=2, neighbours=neighbours, l1_sensitivity=l1)
    found = number(0)
    tables = [rows for n in range(2) for rows in combinations_with_replacement(PLACES, n)]
    for rows in [*tables, ((0, 1), (0, 2)), ((0, 0), (1, 3))]:
        changed = [(*rows, place) for place in PLACES] if l1 == 1 else []
        changed += [(*rows[1:], place) for place in PLACES] if l1 == 2 and rows else []
        for others in changed:
            found = max(found, joint_loss(mechanism, rows, others))
    assert found <= number(0.8) + SLACK
    assert found >= number(0.8) * 0.4  # the counts alone reach a fifth


@pytest.mark.slow
def test_noise_of_the_counts_is_that_of_its_scale_and_of_no_other() -> None:
    mechanism = QuantileSurroundings((0.5,), 10.0, points=20_001)
    counts, source = np.zeros(20_001, dtype=np.int64), Seeded(3)
    drawn: Counter[int] = Counter()
    for _ in range(500):  # of an empty column: about 22 noises each
        drawn.update(mechanism._answer(counts, source)[1:].tolist())
    for factor, wrong in ((1.0, False), (0.9, True), (1.1, True)):
        scale = 0.5 * factor
        distribution = {n: np.tanh(0.5 / scale) * np.exp(-abs(n) / scale) for n in range(-60, 61)}
        assert rejected(drawn, distribution, 1e-9) == wrong


def test_the_event_is_a_choice_for_each_level_and_one_noise() -> None:
    quartiles = QuantileSurroundings((0.25, 0.5, 0.75), 2.5, points=9, max_rows=3, l1_sensitivity=3)
    assert quartiles.event == Composed(((BoundedRange(1.0), 2), (DiscreteLaplaceNoise(2.0, 3), 1)))
    assert quartiles.choosing == CountedQuantiles((0.25, 0.5, 0.75), 2.0, 9, max_rows=3)


@pytest.mark.parametrize("points", [1, 2, 3, 7, 111, 20_001])
def test_cells_are_disjoint_cover_the_grid_and_grow_outward(points: int) -> None:
    mechanism = QuantileSurroundings((0.5,), 1.0, points)
    for chosen in {0, points // 3, points - 1}:
        last = mechanism.last_points(np.array([chosen]))
        assert (np.diff(last) > 0).all() and last[-1] == points - 1
        widths = np.diff(last, prepend=-1)
        own = int(np.searchsorted(last, chosen))
        assert widths[own] == 1 and last[own] == chosen
        reaches = [1]  # 1, 2, 6, 15, 39, 97 ...: 2.5^k, rounded down
        while reaches[-1] < points:
            reaches.append(5 ** len(reaches) // 2 ** len(reaches))
        assert [int(reach) for reach in last[own + 1 : -1] - chosen] == reaches[: max(0, len(last) - own - 2)]
        if own:
            assert last[own - 1] == chosen - 1
            assert [int(reach) for reach in chosen - 1 - last[: own - 1][::-1]] == reaches[: own - 1]
        assert len(last) <= 2 * len(reaches) + 3


def test_the_parts_of_an_answer_are_the_counts_of_its_cells() -> None:
    mechanism = QuantileSurroundings((0.25, 0.75), 50.0, points=40, groups=2)
    counts = np.random.default_rng(2).integers(0, 500, (2, 40))
    exact = mechanism.parts(mechanism._answer(counts, Seeded(1)))
    for row, (chosen, last, found) in zip(counts, exact, strict=True):
        assert (np.diff(chosen) >= 0).all()
        sums = [row[a:b].sum() for a, b in zip([0, *(last[:-1] + 1)], last + 1, strict=True)]
        assert np.abs(found - sums).max() <= 2  # noise of scale 1/25


def test_counts_beyond_all_reason_do_not_overflow() -> None:
    mechanism = QuantileSurroundings((0.5,), 1.0, points=3)
    _, _, counts = mechanism.parts(mechanism._answer(np.full(3, 2**62), Seeded(1)))[0]
    assert (counts > 0).all()
