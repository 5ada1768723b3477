"""A study of twelve statistics from end to end: the same plan on every engine, and answers as good as predicted.

The rows are made up. Set FARTHING_ADULT to the path of the Adult table (a CSV with its usual columns) to study that
instead.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import farthing as ft
from backends.engine_under_test import EngineUnderTest

SEXES = ["Female", "Male"]
INCOMES = ["<=50K", ">50K"]
SCHEMA = {
    "age": (17, 90),
    "education_num": (1, 16),
    "sex": SEXES,
    "hours_per_week": (1, 99),
    "capital_gain": (0, 20_000),
    "income": INCOMES,
}
ASKED = [
    ft.count(),
    ft.count(by="sex"),
    ft.count(where="income = '>50K'", by="sex"),
    ft.histogram("age", bins=[17, 25, 35, 45, 55, 65, 90]),
    ft.cdf("hours_per_week", bins=[1, 20, 35, 40, 45, 60, 99]),
    ft.contingency(["sex", "income"]),
    ft.mean("age"),
    ft.mean("hours_per_week", by="sex"),
    ft.std("education_num"),
    ft.sum("capital_gain", by="income"),
    ft.median("age", by="income"),
    ft.linear_regression("hours_per_week", ["age", "education_num"]),
]


def rows() -> pa.Table:
    path = os.environ.get("FARTHING_ADULT")
    if path:
        found = pc.read_csv(Path(path))
        named = found.rename_columns([name.strip().replace("-", "_").replace(".", "_") for name in found.column_names])
        return named.select(list(SCHEMA))
    draw, n = np.random.default_rng(1994), 6_000
    school = draw.integers(1, 17, n)
    rich = draw.random(n) < 1 / (1 + np.exp(4.0 - 0.3 * school))
    return pa.table(
        {
            "age": np.clip(draw.normal(38 + 6 * rich, 12), 17, 90).astype(int),
            "education_num": school,
            "sex": draw.choice(SEXES, n, p=[0.33, 0.67]),
            "hours_per_week": np.clip(draw.normal(40 + school / 4, 11), 1, 99).astype(int),
            "capital_gain": np.where(draw.random(n) < 0.08, draw.integers(1_000, 20_000, n), 0),
            "income": np.where(rich, INCOMES[1], INCOMES[0]),
        }
    )


# Of the session, as the engines are: the tests of one engine follow each other, whatever module they are in.
@pytest.fixture(scope="session")
def table() -> pa.Table:
    return rows()


def planned(source: Any, size: int, ledger: Path) -> ft.study.Plan:
    people = ft.dataset(source, schema=SCHEMA, rows=size)
    study = ft.Study(people, epsilon=2.0, delta=1e-9, ledger=ledger, account="adult")
    return study.plan(*ASKED, expected={"age": (38, 13), "hours_per_week": (41, 12), "education_num": (9, 4)})


@pytest.fixture(scope="session")
def predicted(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plan for the rows themselves, which every engine's plan has to equal: planning takes seconds."""
    return planned(table, table.num_rows, tmp_path_factory.mktemp("twin") / "twin.db").to_dict()


@pytest.mark.slow
def test_a_study_is_the_same_on_every_engine(
    engine: EngineUnderTest, table: pa.Table, predicted: dict[str, Any], tmp_path: Path
) -> None:
    size = table.num_rows
    plan = planned(engine.load(table), size, tmp_path / "study.db")
    told = plan.to_dict()
    own = {key: told[key] for key in ("request_id", "account_news")}  # every table has releases and a name of its own
    assert told == {**predicted, **own}
    release = plan.release()
    assert list(release) == [statistic.name for statistic in ASKED]
    assert plan.study.ledger.verify().ok
    assert plan.study.budget.spent.upper <= 2.0

    def near(name: str, truth: Any) -> bool:
        answer = release[name]
        return bool(np.all(np.abs(np.asarray(answer.values) - truth) <= 12 * np.asarray(answer.standard_errors) + 1e-9))

    sex, income = table["sex"].to_numpy(zero_copy_only=False), table["income"].to_numpy(zero_copy_only=False)
    hours, age = table["hours_per_week"].to_numpy(), table["age"].to_numpy()
    assert near("count", size)
    assert near("count by sex", [(sex == one).sum() for one in SEXES])
    assert near("mean of age", age.mean())
    assert near("mean of hours_per_week by sex", [hours[sex == one].mean() for one in SEXES])
    assert near("std of education_num", table["education_num"].to_numpy().std())
    assert near("contingency of sex and income", [((sex == s) & (income == i)).sum() for s in SEXES for i in INCOMES])
