"""What earlier releases say about the cells of a domain."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.adaptive.prior_releases import KnownTable, known_tables
from farthing.errors import InvalidValue
from farthing.statistics.cells.cell_axes import Axis

ROWS = 1200
DRAWN = np.random.default_rng(3)
TABLE: dict[str, Any] = {
    "age": DRAWN.integers(0, 100, ROWS),
    "sex": DRAWN.choice(["F", "M"], ROWS, p=[0.7, 0.3]),
    "bmi": DRAWN.uniform(10, 60, ROWS),
    "day": [date(2020, 1, 1 + int(day)) for day in DRAWN.integers(0, 10, ROWS)],
}
SCHEMA = {
    "age": (0, 99),
    "sex": ["F", "M"],
    "bmi": (10.0, 60.0),
    "day": (date(2020, 1, 1), date(2020, 1, 10)),
}
AXES = {
    "age": Axis("age", range(100)),
    "sex": Axis("sex", ["M", "F", None]),
    "bmi": Axis("bmi", edges=np.linspace(10, 60, 11).tolist()),
    "day": Axis("day", [date(2020, 1, day) for day in range(1, 11)]),
}


def codes(column: str) -> Any:
    """Which cell of its axis each row lies in, found one by one."""
    axis = AXES[column]
    if axis.edges is not None:
        found = np.searchsorted(np.array(axis.edges), TABLE[column], side="right") - 1
        return np.minimum(found, len(axis) - 1)
    places = {label: place for place, label in enumerate(axis.labels or ())}
    return np.array([places[value] for value in TABLE[column]])


@pytest.fixture(scope="module")
def release(tmp_path_factory: Any) -> Any:
    """Everything that a study can count, with next to no noise, as the ledger has it."""
    people = ft.dataset(pyarrow.table(TABLE), schema=SCHEMA)
    study = ft.Study(people, epsilon=10_000.0, account="people", ledger=tmp_path_factory.mktemp("known") / "study.db")
    plan = study.plan(
        ft.count(),
        ft.count(by="sex", name="women and men"),
        ft.count(where="age < 30"),
        ft.histogram("age", bins=[0, 18, 65, 99]),
        ft.histogram("bmi", bins=20, by="sex"),
        ft.contingency(["day", "sex"]),
        ft.cdf("age", bins=5),
        ft.ranges("age"),
        ft.marginals(["sex", "age", "bmi"], way=2, bins={"age": 4, "bmi": 5}),
        ft.mean("age"),
    )
    yield study.released(plan.release().request_id)
    study.close()


@pytest.mark.slow
def test_every_table_is_what_the_rows_add_up_to(release: Any) -> None:
    tables = known_tables(release, list(AXES.values()))
    assert [table.columns for table in tables] == [
        (), ("sex",), ("age",), ("sex", "bmi"), ("day", "sex"), ("age",), ("age",),
        ("sex", "age"), ("sex", "bmi"), ("age", "bmi"),
    ]  # fmt: skip
    for table in tables:
        shape = tuple(len(AXES[column]) for column in table.columns)
        index = np.zeros(ROWS, dtype=np.int64)
        for column in table.columns:
            index = index * len(AXES[column]) + codes(column)
        cells = np.bincount(index, minlength=int(np.prod(shape))).astype(float).reshape(shape)
        assert table.summed(cells) == pytest.approx(table.values, abs=1.5), table.columns
        assert 0 < table.standard_error < 0.5


def test_cells_that_differ_are_added_up_to_common_ones(release: Any) -> None:
    coarse = [Axis("age", edges=(0, 65, 99)), Axis("bmi", edges=(10.0, 12.5, 33.3, 60.0)), AXES["sex"]]
    table = known_tables(release, coarse)[3]
    assert table.columns == ("sex", "bmi")
    assert table.values.shape == (2, 2)
    assert [part.tolist() for part in table.groups] == [[1, 0, -1], [0, 1, 1]]
    assert table.standard_error > known_tables(release, list(AXES.values()))[3].standard_error


def test_other_categories_say_nothing(release: Any) -> None:
    assert [table.columns for table in known_tables(release, [Axis("sex", ["F", "M", "X"])])] == [()]


def test_a_release_of_an_older_ledger_says_nothing(release: Any) -> None:
    assert known_tables(dict(release), list(AXES.values())) == ()


@pytest.mark.parametrize(
    ("columns", "values", "error", "groups"),
    [
        (("sex",), [[1.0]], 1.0, ()),
        (("sex",), [np.nan], 1.0, ()),
        (("sex",), [1.0], float("nan"), ()),
        (("sex",), [1.0], 1.0, ([0, 1],)),
        (("sex",), [1.0], 1.0, ([0], [0])),
    ],
)
def test_malformed_tables_are_refused(columns: Any, values: Any, error: float, groups: Any) -> None:
    with pytest.raises(InvalidValue):
        KnownTable(columns, values, error, groups)
