"""The number of different values that nobody listed: one unit moves it by no more than it may keep, whatever it writes.

A loop over the rows in Python is the twin.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from contracts.test_key_neighbours import CELLS, KINDS, keys_of
from farthing.data.aggregates.distinct_keys import DistinctKeys
from farthing.errors import InvalidValue

EXAMPLES = int(os.environ.get("FARTHING_CHAINS", "15"))
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(1, 4)), st.sampled_from(CELLS)), max_size=12)
NAME = "number of different values of diagnosis"


def table_of(rows: list[Any]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], []]
    return pa.table(dict(zip(KINDS.names, columns, strict=True)), schema=KINDS)


def number(rows: list[Any], most: int, trim: bool = False, lower: bool = False, **more: Any) -> int:
    rules = ft.unknown("text", trim=trim, lower=lower)
    people = ft.dataset(table_of(rows), unit="person", max_rows=2, schema={"diagnosis": rules}, **more)
    return int(people.exact({"n": DistinctKeys("diagnosis", most, rules)})["n"])


@pytest.mark.slow
@given(ROWS, st.booleans(), st.booleans(), st.integers(1, 3))
@settings(max_examples=EXAMPLES, deadline=None)
def test_it_counts_what_units_keep_and_none_moves_it_further(
    rows: list[Any], trim: bool, lower: bool, most: int
) -> None:
    own = keys_of(rows, trim, lower)
    whole = number(rows, most, trim, lower)
    every = len(set().union(*own.values())) if own else 0
    assert whole <= min(every, sum(min(most, len(keys)) for keys in own.values()))
    assert whole >= max((min(most, len(keys)) for keys in own.values()), default=0)
    if all(len(keys) <= most for keys in own.values()):  # then nothing is left to chance
        assert whole == every
        for person in own:
            rest = [row for row in rows if row[0] != person]
            assert 0 <= whole - number(rest, most, trim, lower) <= most


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_sensitivity_is_attained_and_grows_with_groups(neighbours: str) -> None:
    rules = ft.unknown("text")
    rows = [(person, f"{person} has {n}") for person in range(1, 4) for n in range(3)]
    people = ft.dataset(table_of(rows), unit="person", max_rows=2, schema={"diagnosis": rules}, neighbours=neighbours)
    aggregate = DistinctKeys("diagnosis", 3, rules)
    assert people.sensitivity(aggregate).l1 == 3 == number(rows, 3) - number(rows[3:], 3)
    assert people.group_privacy(2).sensitivity(aggregate).l1 == 6 == number(rows, 3) - number(rows[6:], 3)


@pytest.mark.draws(false_alarm=1e-30, miss=1e-30)
def test_of_many_values_some_are_kept_at_random_and_not_by_the_order_of_rows() -> None:
    """Each of 2,000 units keeps one of ten: the chance that nobody keeps one of these is 10 * 0.9^2000."""
    rows = [(person, f"value {n}") for person in range(2_000) for n in range(10)]
    assert number(rows, 1) == 10
    assert number(rows[:10], 4) == 4


def test_rows_are_units_where_none_is_named() -> None:
    rules = ft.unknown("text")
    towns = ft.dataset(pa.table({"town": ["A", "B", "A", None]}), schema={"town": rules})
    assert towns.exact({"n": DistinctKeys("town", 1, rules)})["n"].tolist() == 2
    assert towns.sensitivity(DistinctKeys("town", 1, rules)).l1 == 1
    with pytest.raises(InvalidValue, match="must be 1 where the unit is one row"):
        towns.sensitivity(DistinctKeys("town", 2, rules))


def test_only_the_table_itself_is_counted() -> None:
    rules = ft.unknown("text")
    people = ft.dataset(
        table_of([(1, "flu")]), unit="person", max_rows=2, schema={"diagnosis": rules, "person": (0, 9)}
    )
    aggregate = DistinctKeys("diagnosis", 1, rules)
    derived = people.derive(twice="person * 2")  # adds a column, and no row
    assert derived.exact({"n": aggregate})["n"].tolist() == 1 and derived.sensitivity(aggregate).l1 == 1
    for changed in (people.where("person > 1"), people.sample(0.5), people.derive(diagnosis="person * 2")):
        for asked in (changed.sensitivity, lambda each, changed=changed: changed.exact({"n": each})):
            with pytest.raises(InvalidValue, match="must be in the table itself"):
                asked(aggregate)


def test_a_study_counts_them_before_and_after_they_are_found_and_charges_once(tmp_path: Path) -> None:
    rows = [(person, ("flu", "cold", f"rare {person}")[n]) for person in range(300) for n in range(3)]
    rules = ft.unknown("text")
    people = ft.dataset(table_of(rows), unit="person", max_rows=3, schema={"diagnosis": rules}, name="people")
    study = ft.Study(people, epsilon=300.0, delta=1e-6, ledger=tmp_path / "study.db")
    plan = study.plan(ft.count_distinct("diagnosis"), epsilon=45.0)
    assert "different values (at most 3 of each person)" in str(plan)
    release = plan.release()
    assert float(release[NAME].values) == 302.0 and release.counts[NAME].endswith("(at most 3 of each person)")
    assert study.discover("diagnosis", epsilon=40.0).release()["diagnosis"].facts["values"] == ["cold", "flu"]
    again = study.plan(ft.count_distinct("diagnosis"), epsilon=45.0).release()
    assert again.repeated and study.budget.count == 2
    # All values, and not only those that were found; also beside what needs these.
    both = study.plan(ft.count_distinct("diagnosis", max_cells=3), ft.count(by="diagnosis"), epsilon=90.0).release()
    assert float(both[NAME].values) == 302.0 and both["count by diagnosis"].labels == ("cold", "flu")
    assert both[NAME].note == "" and "found in the data" in both["count by diagnosis"].note
    # Under a condition it is of the values that were found.
    known = study.plan(ft.count_distinct("diagnosis", where="diagnosis == 'flu'", name="known"), epsilon=45.0).release()
    assert float(known["known"].values) == 1.0 and "found in the data" in known["known"].note
    study.close()


def test_its_interval_is_that_of_noise_made_for_what_a_unit_keeps(tmp_path: Path) -> None:
    """Discrete Laplace noise of scale k / epsilon: in 95 of 100 cases it is within 3 k / epsilon."""
    people = ft.dataset(
        table_of([(1, "flu")]), unit="person", max_rows=5, schema={"diagnosis": ft.unknown("text")}, name="people"
    )
    study = ft.Study(people, epsilon=1.0, ledger=tmp_path / "study.db")
    errors = [study.plan(ft.count_distinct("diagnosis", max_cells=k))[NAME].error() for k in (1, 5)]
    assert errors[0] == 3 and np.isclose(errors[1], 15, atol=1)
    study.close()
