"""`DistinctCount`: the integers of a loop, and no unit moves it by more than its sensitivity, by enumeration."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data import Categories, DistinctCount, Schema, dataset
from farthing.data.stability import ADD_REMOVE, REPLACE
from farthing.errors import InvalidValue
from farthing.statistics import design_of

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
