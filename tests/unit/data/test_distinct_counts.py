"""`DistinctCount`: the integers of a loop, and no unit moves it by more than its sensitivity, by enumeration."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data import Bounded, Categories, DistinctCount, Schema, UnitBound, dataset
from farthing.data.stability import ADD_REMOVE, REPLACE
from farthing.errors import InvalidValue
from farthing.statistics import design_of
from farthing.statistics.coverage import Coverage
from farthing.statistics.measurements import Noise

ROWS = {
    "who": [1, 1, 2, 3, 3],
    "drug": ["x", "y", "x", "?", None],
    "sex": ["F", "F", "M", "M", "F"],
    "day": [1, 2, 2, 9, 3],
}
FACTS = {"drug": ["x", "y", "z"], "sex": ["F", "M"], "day": (1, 5)}


def test_it_counts_the_listed_values_that_a_row_has() -> None:
    rows = dataset(pa.table(ROWS), unit="who", max_rows=5, schema=FACTS)
    asked = {
        "all": DistinctCount("drug"),
        "by": DistinctCount("drug", by="sex"),
        "days": DistinctCount("day"),
        "where": DistinctCount("day", where="sex = 'M'"),
        "nobody": DistinctCount("day", where="day > 5"),
    }
    found = {name: value.tolist() for name, value in rows.exact(asked).items()}
    assert found == {"all": 2, "by": [2, 1], "days": 4, "where": 2, "nobody": 0}


@pytest.mark.parametrize(("groups", "values", "rows"), [(1, 3, 2), (1, 2, 3), (2, 2, 1), (2, 2, 3), (3, 1, 2)])
@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE])
def test_no_unit_moves_it_further_and_one_moves_it_as_far(groups: int, values: int, rows: int, neighbours: str) -> None:
    """Every set of rows of others, every set of rows of the unit: rows are pairs of a group and a value."""
    schema = Schema({"g": Categories(list(range(groups))), "v": Categories(list(range(values)))})
    claim = DistinctCount("v", by=() if groups == 1 else "g").sensitivity(schema, rows, neighbours)
    cells = list(product(range(groups), range(values)))
    units = [own for size in range(rows + 1) for own in combinations_with_replacement(cells, size)]
    worst = {"linf": 0, "l1": 0, "l2_squared": 0, "l0": 0}
    for held in product((False, True), repeat=len(cells)):
        others = {cell for cell, here in zip(cells, held, strict=True) if here}
        numbers = {tuple(sum(g == each for each, _ in others | set(own)) for g in range(groups)) for own in units}
        bare = tuple(sum(g == each for each, _ in others) for g in range(groups))
        for one in numbers:
            for other in numbers if neighbours == REPLACE else {bare}:
                change = [abs(a - b) for a, b in zip(one, other, strict=True)]
                worst["linf"] = max(worst["linf"], *change)
                worst["l1"] = max(worst["l1"], sum(change))
                worst["l2_squared"] = max(worst["l2_squared"], sum(c * c for c in change))
                worst["l0"] = max(worst["l0"], sum(c > 0 for c in change))
    found = {name: getattr(claim, name) for name in worst}
    assert all(worst[name] <= found[name] for name in worst), (worst, found)
    if neighbours == ADD_REMOVE:
        assert worst == found


@pytest.mark.parametrize("neighbours", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize(
    ("groups", "values", "kept", "units"), [(1, 3, 2, 1), (2, 2, 1, 1), (2, 2, 3, 1), (2, 2, 1, 2)]
)
def test_units_that_bring_so_many_values_move_it_no_further(
    groups: int, values: int, kept: int, units: int, neighbours: str
) -> None:
    """Every set of values of others, every choice of at most `kept` pairs for each of the units that change."""
    schema = Schema({"g": Categories(list(range(groups))), "v": Categories(list(range(values)))})
    bounded = Bounded(DistinctCount("v", by=() if groups == 1 else "g"), UnitBound(rows_per_cell=1, max_cells=kept))
    claim = bounded.sensitivity(schema, units, neighbours)
    cells = list(product(range(groups), range(values)))
    one_unit = [set(own) for size in range(kept + 1) for own in combinations(cells, size)]
    brought = {frozenset().union(*each) for each in product(one_unit, repeat=units)}
    worst = {"linf": 0, "l1": 0, "l2_squared": 0, "l0": 0}
    for held in product((False, True), repeat=len(cells)):
        others = {cell for cell, here in zip(cells, held, strict=True) if here}
        numbers = {tuple(sum(g == each for each, _ in others | own) for g in range(groups)) for own in brought}
        bare = tuple(sum(g == each for each, _ in others) for g in range(groups))
        for one in numbers:
            for other in numbers if neighbours == REPLACE else {bare}:
                change = [abs(a - b) for a, b in zip(one, other, strict=True)]
                worst["linf"] = max(worst["linf"], *change)
                worst["l1"] = max(worst["l1"], sum(change))
                worst["l2_squared"] = max(worst["l2_squared"], sum(c * c for c in change))
                worst["l0"] = max(worst["l0"], sum(c > 0 for c in change))
    found = {name: getattr(claim, name) for name in worst}
    assert all(worst[name] <= found[name] for name in worst), (worst, found)
    if neighbours == ADD_REMOVE:
        assert worst == found


def test_no_unit_brings_more_values_than_it_may_and_all_of_its_rows_are_looked_at() -> None:
    """One unit has every value many times: a choice of two rows would miss some of them."""
    table = pa.table({"who": [1] * 300, "v": [row % 3 for row in range(300)], "g": ["a", "b"] * 150})
    rows = dataset(table, unit="who", max_rows=2, schema={"v": [0, 1, 2], "g": ["a", "b"]}).group_privacy(2)
    limits = [1, 2, 3, 6]
    asked = {f"{most}": Bounded(DistinctCount("v"), UnitBound(rows_per_cell=1, max_cells=most)) for most in limits}
    apart = Bounded(DistinctCount("v", by="g"), UnitBound(rows_per_cell=1, max_cells=5))
    found = rows.exact({**asked, "by": apart})
    assert [int(found[f"{most}"]) for most in limits] == [1, 2, 3, 3]
    assert int(found["by"].sum()) == 5 and int(found["by"].max()) == 3
    assert [rows.sensitivity(each).linf for each in asked.values()] == [2, 3, 3, 3]
    assert rows.sensitivity(apart).l1 == 6


def test_the_error_is_never_more_than_the_list_and_says_when_it_is_noise() -> None:
    """As many as 20 rows of a plane and three airports: no answer is off by more than three."""
    table = pa.table({"plane": [1, 1, 2], "origin": ["E", "J", "E"]})
    rows = dataset(table, unit="plane", max_rows=20, schema={"origin": ["E", "J", "L"]})
    (output,) = design_of([ft.count_distinct("origin")], rows).outputs
    (slot,) = output.slots
    assert (slot.sensitivity.linf, slot.sensitivity.l1, slot.sensitivity.l2_squared) == (3, 3, 9)
    rough, fine = ({slot.name: Noise("laplace", epsilon)} for epsilon in (0.01, 10.0))
    assert (output.predicted(rough).error(0.95), output.predicted(fine).error(0.95)) == (3.0, 1.0)
    assert "can be off by all 3 listed values" in output.caution(rough) and output.caution(fine) == ""
    answer = output.answer({slot.name: np.array([450])}, rough)
    numbers = [np.ravel(each).tolist() for each in (answer.values, answer.lower, answer.upper, answer.standard_errors)]
    assert numbers == [[3], [0], [3], [3]]


@pytest.mark.parametrize(
    ("options", "asked", "text", "value"),
    [
        ({}, ft.count_distinct("v"), "different values", "true number of different values"),
        ({"unit": "who", "max_rows": 3}, ft.count_distinct("v"), "different values", "true number of different values"),
        ({"unit": "who", "max_rows": 2}, ft.count_distinct("v"), "different values (at most 2 of each who)", None),
        ({"unit": "who", "max_rows": 9}, ft.count_distinct("v", max_cells=1), "different values (at most 1 of", None),
        ({"unit": "who"}, ft.count_distinct("v", max_cells=3), "different values", "true number of different values"),
    ],
)
def test_it_says_that_it_counts_different_values(
    options: dict[str, Any], asked: ft.Statistic, text: str, value: str | None
) -> None:
    table = pa.table({"who": [1, 1, 2], "v": ["x", "y", "x"]})
    said = Coverage.of(asked, dataset(table, schema={"v": ["x", "y", "z"]}, **options), 1)
    assert said.text.startswith(text) and said.value == (value or f"number of {said.text}")


def test_rows_that_a_step_made_or_a_draw_left_are_named() -> None:
    table = pa.table({"who": [1, 1, 2], "day": [1, 2, 3]})
    rows = dataset(table, unit="who", max_rows=2, schema={"day": (1, 5)})
    people = rows.per_unit(last="max(day)")
    assert Coverage.of(ft.count_distinct("last"), people, 1).text == "different values (in at most 2 rows of each who)"
    sampled = Coverage.of(ft.count_distinct("day"), rows.sample(0.5), 1).text
    assert sampled == "different values (at most 2 of each who, of the sample)"


@pytest.mark.slow
def test_a_plan_answers_within_what_the_list_allows(tmp_path: Path) -> None:
    rows = dataset(pa.table(ROWS), unit="who", max_rows=2, schema=FACTS, name="drugs")
    study = ft.Study(rows, epsilon=200.0, ledger=ft.open_ledger(tmp_path / "ledger.sqlite"))
    plan = study.plan(
        ft.count_distinct("drug"), ft.count_distinct("day", by="sex", name="days"), ft.count_distinct("drug", name="b")
    )
    release = plan.release()
    answers = [np.ravel(release[name].values).tolist() for name in ("number of different values of drug", "b", "days")]
    assert answers == [[2], [2], [3, 2]]
    assert len(plan.design.slots) == 2


def test_a_column_without_a_list_is_refused_in_words() -> None:
    rows = dataset(pa.table({"cost": [1.5]}), schema={"cost": (0.0, 9.0)})
    with pytest.raises(InvalidValue, match="column='cost': must have a finite list of values"):
        design_of([ft.count_distinct("cost")], rows)
