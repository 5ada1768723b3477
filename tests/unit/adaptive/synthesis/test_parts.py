"""The parts of the loop against slow twins."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from farthing.adaptive.synthesis.select_measure_fit import (
    CELLS,
    MOST_SETS,
    CandidateTables,
    Growth,
    PrivateRows,
    _filled,
)
from farthing.adaptive.synthesis.value_groups import common_groups, grouped, projected, summed
from farthing.inference.graphical import model_cells


def test_tables_of_rows_count_them_one_by_one() -> None:
    random = np.random.default_rng(1)
    codes, counts = random.integers(0, [3, 4, 2], (50, 3)), random.integers(0, 5, 50)
    rows = PrivateRows(codes, counts, (3, 4, 2))
    twin: Counter[tuple[int, ...]] = Counter()
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        twin[code[2], code[0]] += count
    assert {place: int(n) for place, n in np.ndenumerate(rows.table((2, 0))) if n} == dict(+twin)
    merged = rows.grouped((np.array([0, 0, 1]), np.arange(4), np.arange(2)))
    whole = summed(rows.table((0, 1)), (np.array([0, 0, 1]), np.arange(4)))
    assert np.array_equal(merged.table((0, 1)), whole)


@pytest.mark.parametrize("size", [1, 7, 600, 5000])
def test_groups_are_runs_of_values_and_heavy_values_stay_alone(size: int) -> None:
    counts = np.random.default_rng(size).pareto(1.0, size)
    counts[size // 2] = 10 * counts.sum()
    places = grouped(counts, 16)
    assert places[0] == 0 and set(np.diff(places)) <= {0, 1} and places[-1] < 16
    assert np.sum(places == places[size // 2]) == 1
    assert np.array_equal(grouped(np.zeros(size), 3), grouped(np.zeros(size), 3))


def test_common_groups_are_the_connected_ones() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        one, other = (np.unique(random.integers(0, 8, 20), return_inverse=True)[1] for _ in range(2))
        joined = list(range(int(one.max()) + 1))  # twin: merge whatever shares a value, pair by pair
        for first, second in combinations(range(20), 2):
            if other[first] == other[second]:
                keep, drop = sorted((joined[one[first]], joined[one[second]]))
                joined = [keep if part == drop else part for part in joined]
        twin = np.unique(joined, return_inverse=True)[1]
        assert np.array_equal(common_groups(one, other), twin)


def test_the_projection_is_nearest_among_tables_that_are_not_negative() -> None:
    random = np.random.default_rng(4)
    noisy = random.normal(3, 10, 12)
    best = projected(noisy, 40.0)
    assert best.sum() == pytest.approx(40.0) and best.min() >= 0
    others = random.dirichlet(np.ones(12), 2000) * 40.0
    assert np.all(np.sum((others - noisy) ** 2, axis=1) >= np.sum((best - noisy) ** 2))


def test_room_is_judged_as_the_model_will_need_it() -> None:
    """The quick estimate is never below the tree of the model, and not far above it."""
    random = np.random.default_rng(5)
    sizes = tuple(random.integers(2, 12, 9).tolist())
    for _ in range(30):
        sets = [tuple(random.choice(9, 2, replace=False).tolist()) for _ in range(8)]
        estimate = Growth(sizes, sets, 0)._cells(())
        truth = model_cells(sizes, sets)
        assert 0.5 * truth <= estimate <= 3 * truth + 100


def test_candidates_are_coarse_and_fine_and_never_too_many() -> None:
    few = list(CandidateTables([np.ones(16)] * 5).candidates_of_round(0, Growth([16] * 5, [], 2**20)))
    assert {len(one.columns) for one in few} == {2, 3}
    assert max(one.cells for one in few) <= max(CELLS)
    assert len({one.key for one in few}) == len(few)
    many = CandidateTables([np.ones(2)] * 100)
    assert len(many.sets(0)) == MOST_SETS and many.sets(0) == many.sets(0) != many.sets(1)
    assert CandidateTables([np.ones(1), np.ones(4)]).sets(0) == []


def test_shares_are_filled_up_to_the_last() -> None:
    random = np.random.default_rng(6)
    for _ in range(50):
        given, fair = random.integers(0, 60, 9).astype(float), random.random(9) + 0.1
        shares = _filled(given, fair, 100)
        assert shares.sum() == 100 and shares.min() >= 0
        raised = shares > 1
        levels = (given + shares)[raised] / fair[raised]
        assert levels.max() - levels.min() < 2 / fair.min()
