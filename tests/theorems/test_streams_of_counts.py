"""Neighbouring streams of tables, as `Watched` states them: one unit at every look, and what it moves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing.adaptive.monitor import watched
from farthing.data import Dataset, dataset
from farthing.mechanisms.sparse_vector import AboveThreshold
from farthing.statistics.constructors import count
from theorems.threshold_twin import Twin

SCHEMA = {"region": ["n", "s"], "week": (1, 3)}
ASKED = [count(by=["region", "week"]), count(by="region"), count(where="week >= 2"), count()]


def stream(seed: int, looks: int = 3) -> list[list[tuple[int, str, int]]]:
    """Tables that grow, with rows that are corrected and dropped on the way: (person, region, week)."""
    rng = np.random.default_rng(seed)
    tables: list[list[tuple[int, str, int]]] = [[]]
    for _ in range(looks):
        kept = [row for row in tables[-1] if rng.random() < 0.8]
        new = [
            (int(rng.integers(4)), "ns"[rng.integers(2)], int(rng.integers(1, 4))) for _ in range(rng.integers(1, 7))
        ]
        tables.append(kept + new)
    return tables[1:]


def read(rows: list[tuple[int, str, int]], max_rows: int | None, neighbours: str) -> Dataset:
    person, region, week = zip(*rows, strict=True) if rows else ((), (), ())
    columns: Any = {
        "person": pa.array(person, pa.int64()),
        "region": pa.array(region, pa.string()),
        "week": pa.array(week, pa.int64()),
    }
    whose: dict[str, Any] = {} if max_rows is None else {"unit": "person", "max_rows": max_rows}
    return dataset(pa.table(columns), schema=SCHEMA, neighbours=neighbours, **whose)


def moves(one: list[list[Any]], other: list[list[Any]], max_rows: int, neighbours: str) -> list[int]:
    """What every single count of every look moves by."""
    found = []
    for here, there in zip(one, other, strict=True):
        tables = [read(rows, max_rows, neighbours) for rows in (here, there)]
        seen = watched(ASKED, tables[0])
        first, second = (seen.values(table.exact(seen.counts)) for table in tables)
        found += [b - a for a, b in zip(first, second, strict=True)]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_unit_added_to_every_look_moves_each_count_by_its_bound_at_most_and_one_way(seed: int) -> None:
    """Rows are bounded by a random choice; where nobody has more than max_rows of them the moves are exact."""
    for max_rows in (2, 50):
        seen = watched(ASKED, read([(1, "n", 1)], max_rows, "add-remove"))
        assert (seen.l1_sensitivity, seen.monotone) == (max_rows, True)
        tables = stream(seed)
        if max_rows == 2:  # the choice would be drawn anew for everybody; keep two rows of each at every look
            tables = [_first_rows(rows, 2) for rows in tables]
        without = [[row for row in rows if row[0] != 0] for rows in tables]
        found = moves(without, tables, max_rows, "add-remove")
        assert all(0 <= move <= max_rows for move in found)
        assert any(found)


@pytest.mark.slow
def test_a_replaced_unit_moves_counts_both_ways_and_is_not_called_monotone() -> None:
    tables = [[(0, "n", 1), (1, "s", 2)], [(0, "n", 1), (0, "n", 2), (1, "s", 2)]]
    other = [[(9, "s", 3), (1, "s", 2)], [(9, "s", 3), (9, "s", 3), (1, "s", 2)]]
    seen = watched(ASKED, read(tables[0], 2, "replace"))
    found = moves(tables, other, 2, "replace")
    assert min(found) < 0 < max(found)
    assert max(map(abs, found)) <= seen.l1_sensitivity
    assert not seen.monotone


def test_groups_and_replacements_are_not_called_monotone() -> None:
    """Of a group one member may come while another goes."""
    alone = read([(0, "n", 1)], 1, "add-remove")
    assert not watched(ASKED, alone.group_privacy(2)).monotone
    assert watched(ASKED, alone.group_privacy(2)).l1_sensitivity == 2


@pytest.mark.parametrize("monotone", [True, False])
def test_moving_every_series_at_every_look_costs_no_more_than_moving_one(monotone: bool) -> None:
    """The loss of whole transcripts, for a unit that is in all of them and for one that is in one of them."""
    mechanism = AboveThreshold(1.0, monotone=monotone)
    first, second = mechanism._rates
    twin = Twin(float(first), float(second), 1)
    steps = (0, 1) if monotone else (-1, 0, 1)
    worst = 0.0
    for length in (1, 4, 60):
        all_below, last_above = ("below",) * length, ("below",) * (length - 1) + ("above",)
        for low, move, last in itertools.product((-2, 0), steps, steps):
            one = [low] * length
            other = [low + move] * (length - 1) + [low + last]
            for transcript in (all_below, last_above):
                loss = max(twin.loss(one, other, transcript), twin.loss(other, one, transcript))
                assert loss <= 1.0 + 1e-9
                worst = max(worst, loss)
    assert 0.5 < worst < math.inf


def _first_rows(rows: list[tuple[int, str, int]], most: int) -> list[tuple[int, str, int]]:
    seen: dict[int, int] = {}
    kept = []
    for row in rows:
        seen[row[0]] = seen.get(row[0], 0) + 1
        if seen[row[0]] <= most:
            kept.append(row)
    return kept
