"""Contribution bounds hold for any number of rows, uniformly; samples are keyed by units and never too likely."""

from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from farthing.data import CellCounts, Count, Sum, dataset
from farthing.data.aggregates.aggregate import aggregate_queries
from farthing.data.engines.duckdb import connection, default_engine, quiet
from farthing.data.engines.engine import columns_of_rows
from farthing.data.stability import Run
from farthing.data.unit_rows import fresh_key, sampled, unit_columns
from farthing.errors import InvalidValue


def visits(rows_of_units: dict[Any, int], max_rows: int = 2) -> Any:
    units = [unit for unit, count in rows_of_units.items() for _ in range(count)]
    numbers = [number for count in rows_of_units.values() for number in range(count)]
    table = pa.table({"person": units, "visit": numbers})
    return dataset(table, unit="person", max_rows=max_rows, schema={"visit": (0, 9)})


def test_at_most_max_rows_of_a_unit_are_kept() -> None:
    """One giant unit, units below the bound, and rows of nobody, which are dropped."""
    people = visits({1: 1, 2: 2, 3: 3, 4: 5000, None: 700})
    assert people.exact({"n": Count()})["n"] == 1 + 2 + 2 + 2


def test_units_of_several_columns_are_told_apart() -> None:
    table = pa.table({"a": ["x", "xy", "x", "x"], "b": ["yz", "z", "yz", None], "v": [1, 1, 1, 1]})
    people = dataset(table, unit=["a", "b"], max_rows=1, schema={"v": (0, 1)})
    assert people.exact({"n": Count()})["n"] == 2  # the row with half a name belongs to nobody


@pytest.mark.slow
def test_the_rows_that_stay_are_chosen_uniformly() -> None:
    """20,000 units with five rows each keep two: every row with probability 2/5, every pair alike.

    Chi-square with 4 degrees of freedom: 36 is exceeded with probability 3e-7. The power: keeping the first row always
    would give thousands.
    """
    units = 20_000
    table = pa.table({"person": np.repeat(np.arange(units), 5), "visit": np.tile(np.arange(5), units)})
    people = dataset(table, unit="person", max_rows=2, schema={"visit": (0, 4)})
    counts = people.exact({"n": CellCounts("visit")})["n"]
    assert counts.sum() == 2 * units
    expected = 2 * units / 5
    # Counts of a sample without replacement vary less than those of independent draws: dividing by 3/4 makes up for it.
    statistic = float(((counts - expected) ** 2 / expected).sum()) / 0.75
    assert statistic < 36
    unfair = np.array([units, units / 4, units / 4, units / 4, units / 4])
    assert float(((unfair - expected) ** 2 / expected).sum()) > 1000


def test_a_unit_is_sampled_by_the_keyed_hash_of_its_name() -> None:
    """The same decision as plain Python takes, for every row of the unit; so a union or a join keeps it whole."""
    key, share = fresh_key(), 0.3
    people = visits({f"person {number}": 3 for number in range(200)}, max_rows=3).sample(share)
    table = people.table(Run(key, Fraction(share), frozenset({"visit"})))
    rows = default_engine().rows(default_engine().sql(table))
    kept = Counter(row[table.columns.index("__farthing_unit_0")] for row in rows)

    def decision(name: str) -> bool:
        digits = name.encode().hex()
        text = f"{key}{len(digits)}:{digits}"
        return int(hashlib.sha256(text.encode()).hexdigest(), 16) < int(Fraction(share) * 2**256)

    names = [f"person {number}" for number in range(200)]
    assert kept == {name.encode(): 3 for name in names if decision(name)}
    assert 20 < len(kept) < 110


def test_rows_without_a_unit_are_sampled_one_by_one() -> None:
    """Equal rows are not sampled together: about half of ten thousand equal rows stay (fails once in 1e9 runs)."""
    people = dataset(pa.table({"v": [1] * 10_000}), schema={"v": (0, 1)}).sample(0.5)
    assert 4_700 < int(people.exact({"n": Count()})["n"]) < 5_300


@pytest.mark.slow
def test_every_aggregate_and_every_run_draws_a_sample_of_its_own() -> None:
    people = dataset(pa.table({"v": [1] * 10_000}), schema={"v": (0, 1)}).sample(0.5)
    counts = [int(n) for _ in range(3) for n in people.exact({"a": Count(), "b": Count()}).values()]
    assert len(set(counts)) > 1
    assert people.explain({"a": Count(), "b": Count()}).count("SELECT\n  SUM") == 2


def test_the_probability_of_a_sample_is_never_above_what_is_priced() -> None:
    people = dataset(pa.table({"v": [1]}), schema={"v": (0, 1)}).sample(0.1).sample(0.3)
    exact = Fraction(0.1) * Fraction(0.3)
    threshold = int(exact * 2**256)
    assert Fraction(threshold, 2**256) <= exact <= Fraction(people.probability)
    assert people.probability == pytest.approx(0.03)


def test_a_sample_of_everybody_is_everybody() -> None:
    table = pa.table({"v": [1, 1]})
    assert dataset(table, schema={"v": (0, 1)}).sample(1.0).exact({"n": Count()})["n"] == 2


def test_the_key_is_not_shown() -> None:
    people = visits({1: 1}).sample(0.5)
    assert "a secret key, redrawn for every run" in people.explain(Count())
    assert len(fresh_key()) == 64 and fresh_key() != fresh_key()


@pytest.mark.parametrize("probability", [0, -0.1, 1.5, float("nan"), "half", True])
def test_a_probability_out_of_range_is_refused(probability: Any) -> None:
    with pytest.raises(InvalidValue, match="probability="):
        visits({1: 1}).sample(probability)


def test_samples_that_the_accountant_cannot_price_are_refused() -> None:
    by_row = dataset(pa.table({"v": [1]}), schema={"v": (0, 1)})
    replaced = dataset(pa.table({"v": [1]}), schema={"v": (0, 1)}, neighbours="replace")
    people = visits({1: 1})
    for refused in (
        lambda: replaced.sample(0.5),
        lambda: people.group_privacy(2).sample(0.5),
        lambda: people.sample(0.5).group_privacy(2),
        lambda: by_row.union(by_row).sample(0.5),
        lambda: people.sample(0.5).union(people),
        lambda: people.union(people.sample(0.5)),
    ):
        with pytest.raises(InvalidValue):
            refused()


@pytest.mark.slow
def test_a_unit_outside_the_sample_moves_nothing_in_any_branch() -> None:
    """Union and join open tables again, and explode makes rows of rows: the sample must hold in all of them."""
    kept: set[bool] = set()
    for _ in range(40):
        if kept == {True, False}:
            break
        key, answers = fresh_key(), []
        for units in ([1, 2, 3, 99], [1, 2, 3]):
            table = pa.table(
                {
                    "person": units * 2,
                    "visit": [1] * len(units) + [2] * len(units),
                    "tags": [["a", "b"]] * (2 * len(units)),
                }
            )
            people = dataset(table, unit="person", max_rows=2, schema={"visit": (0, 9), "tags": ["a", "b"]})
            costs = dataset(
                pa.table({"person": units, "cost": [5] * len(units)}),
                unit="person",
                max_rows=1,
                schema={"cost": (0, 9)},
            )
            chain = people.union(people.where("visit > 1")).join(costs, how="left").explode("tags", limit=2).sample(0.5)
            (query,) = aggregate_queries({"n": Count(by="tags"), "s": Sum("cost")}, chain.schema)
            answers.append(query.answers(columns_of_rows(default_engine().rows(chain._sql(query, key)), query.bits)))
        inside = int(hashlib.sha256(f"{key}2:99".encode()).hexdigest(), 16) < 2**255
        kept.add(inside)
        assert (answers[0]["n"].tolist() != answers[1]["n"].tolist()) == inside
        assert (answers[0]["s"].tolist() != answers[1]["s"].tolist()) == inside
    assert kept == {True, False}


@pytest.mark.slow
def test_text_of_several_columns_is_one_to_one() -> None:
    """("a", "bc") and ("ab", "c") have the same letters and must have different hashes."""
    tables = connection()
    names = unit_columns(2)
    tables.con.register("t", pa.table(dict(zip(names, [["a", "ab"] * 64, ["bc", "c"] * 64], strict=True))))
    with quiet():
        table = tables.table("t")
    decisions = set()
    for _ in range(64):
        kept = sampled(table, default_engine(), 2, Fraction(1, 2), fresh_key()).distinct()
        decisions.add(len(tables.con.execute(default_engine().sql(kept)).fetchall()))
    assert decisions == {0, 1, 2}


@pytest.mark.slow
def test_the_bound_of_a_sum_holds_for_a_giant_unit() -> None:
    people = visits({1: 10_000, 2: 1}, max_rows=3)
    claim = people.sensitivity(Sum("visit"))
    for _ in range(5):
        with_giant = int(people.exact({"s": Sum("visit")})["s"])
        without = int(visits({2: 1}, max_rows=3).exact({"s": Sum("visit")})["s"])
        assert abs(with_giant - without) <= claim.linf == 27
