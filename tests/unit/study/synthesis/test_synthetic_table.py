"""Synthetic tables of a study: what they hold, what they cost, and what is said about them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.data.coded_rows import coded_rows
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.study.synthesis.synthetic_quality import GOOD, MarginalQuality, Quality
from farthing.study.synthesis.synthetic_table import Synthetic

ROWS = 3000
SCHEMA: dict[str, Any] = {
    "sex": ["F", "M"],
    "job": ["none", "clerk", "smith", "judge"],
    "age": (18, 27),
    "income": (0, 100_000),
    "smoker": bool,
}


def people() -> pa.Table:
    """Jobs depend on sex, incomes on jobs, and every fifth smoker does not say; nobody's income is missing."""
    luck = np.random.default_rng(7)
    sex = luck.integers(0, 2, ROWS)
    job = np.where(luck.random(ROWS) < 0.6, 1 + sex, luck.integers(0, 4, ROWS))
    income = np.where(job == 0, 0, np.minimum(luck.gamma(3 + 2 * job, 4000), 150_000)).astype(int)
    smoker = [None if luck.random() < 0.2 else bool(luck.random() < 0.3) for _ in range(ROWS)]
    return pa.table(
        {
            "sex": np.array(SCHEMA["sex"])[sex],
            "job": np.array(SCHEMA["job"])[job],
            "age": luck.integers(18, 28, ROWS),
            "income": income,
            "smoker": smoker,
        }
    )


@cache
def the_people() -> ft.Dataset:
    return ft.dataset(people(), schema=SCHEMA)


def study_in(folder: Path, epsilon: float = 8.0, delta: float = 1e-6, **options: Any) -> ft.Study:
    return ft.Study(the_people(), epsilon, delta, ledger=folder / "study.db", account="people", **options)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with_ledger = study_in(tmp_path_factory.mktemp("synthetic"))
    yield with_ledger
    with_ledger.close()


@pytest.fixture(scope="module")
def synthetic(study: ft.Study) -> Synthetic:
    before = study.synthesis_plan(epsilon=4.0)
    assert study.budget.count == 0  # a plan spends nothing
    assert before.cost <= 4.0 and "nothing is spent yet" in str(before)
    return study.synthesise(epsilon=4.0, request_id="first")


def true_error(synthetic: Synthetic, columns: tuple[str, ...], rows: Any = None) -> float:
    """The total variation between the private rows and the synthetic ones."""
    codes, counts = coded_rows(the_people(), synthetic.axes) if rows is None else rows
    places = [synthetic.columns.index(column) for column in columns]
    shape = [len(synthetic.axes[place]) for place in places]
    difference = np.zeros(shape)
    np.add.at(difference, tuple(codes[:, places].T), counts / counts.sum())
    np.subtract.at(difference, tuple(synthetic.codes[:, places].T), 1 / len(synthetic.codes))
    return float(np.abs(difference).sum()) / 2


@pytest.mark.slow
def test_the_table_is_as_the_schema_says(synthetic: Synthetic) -> None:
    table = synthetic.table()
    assert table.schema.names == list(SCHEMA)
    assert [str(field.type) for field in table.schema] == ["string", "string", "int64", "int64", "bool"]
    assert abs(table.num_rows - ROWS) < 50
    for name, domain in SCHEMA.items():
        values = {value for value in table[name].to_pylist() if value is not None}
        if isinstance(domain, list):
            assert values <= set(domain)
        elif isinstance(domain, tuple):
            assert min(values) >= domain[0] and max(values) <= domain[1]


@pytest.mark.slow
def test_missing_values_are_where_they_were(synthetic: Synthetic) -> None:
    nulls = {name: synthetic.table()[name].null_count for name in SCHEMA}
    assert nulls.pop("smoker") == pytest.approx(0.2 * ROWS, rel=0.2)
    assert set(nulls.values()) == {0}  # noise alone does not make anybody's answer missing


def test_columns_that_hang_together_still_do(synthetic: Synthetic) -> None:
    frame = synthetic.to_frame()
    assert (frame[frame.job == "none"].income == 0).mean() > 0.9
    assert ((frame.sex == "M") & (frame.job == "smith")).mean() == pytest.approx(0.375, abs=0.05)


@pytest.mark.slow
def test_what_is_said_about_quality_is_true(synthetic: Synthetic) -> None:
    quality = synthetic.quality
    sets = [*((name,) for name in SCHEMA), *combinations(SCHEMA, 2)]
    assert [one.columns for one in quality.marginals] == sets
    rows = coded_rows(the_people(), synthetic.axes)
    truths = [true_error(synthetic, one.columns, rows) for one in quality.marginals]
    # Each is exceeded in one case of a hundred: with 15 of them, four at once would be a chance of 1e-5.
    assert sum(truth > one.at_most for truth, one in zip(truths, quality.marginals, strict=True)) < 4
    noise = quality.noise / (2 * quality.rows)
    for truth, one in zip(truths, quality.marginals, strict=True):
        assert one.error == pytest.approx(truth, abs=3 * noise)
        assert one.at_most <= one.error + noise + 1e-9
    assert quality.of("sex").verdict == GOOD and ("sex",) in quality.good
    assert {one.columns for one in quality.measured} >= {(name,) for name in SCHEMA}


@pytest.mark.slow
def test_the_same_request_is_the_same_table_and_costs_nothing(study: ft.Study, synthetic: Synthetic) -> None:
    before = study.budget.spent_upper
    again = study.synthesise(epsilon=4.0, request_id="first")
    assert again.repeated and again.table().equals(synthetic.table())
    assert study.synthetic("first", rows=100).table().num_rows == 100
    assert study.budget.spent_upper == before and study.budget.count == 1
    assert synthetic.cost <= 4.0


@pytest.mark.slow
def test_another_number_of_rows_is_told_with_the_chance_in_it(synthetic: Synthetic) -> None:
    """The verdicts of the whole table would be wrong about fifty rows of it."""
    rows, whole = coded_rows(the_people(), synthetic.axes), synthetic.quality
    for count in (50, 600, 9000):
        other = replace(synthetic, count=count)
        truths = np.array([true_error(other, one.columns, rows) for one in whole.marginals])
        told = np.array([one.at_most for one in other.quality.marginals])
        before = np.array([one.at_most for one in whole.marginals])
        assert np.sum(truths > told) < 4  # one in a hundred each
        assert np.all(told >= before) and (count > 50 or np.sum(truths > before) > 4)
        assert other.quality.made == count and f"this table has {count:,} rows" in other.quality.sentence
    same = replace(synthetic, count=len(synthetic.codes)).quality
    assert same.records() == whole.records() and same.made is None


@pytest.mark.slow
def test_the_same_request_for_something_else_is_refused(study: ft.Study, synthetic: Synthetic) -> None:
    """Its table is the one that was drawn: it does not stand in for another one."""
    assert study.synthesise(request_id="first", epsilon=4.0).repeated
    assert study.synthesise(request_id="first").repeated
    for other in (
        {"columns": ["sex"]},
        {"bins": {"income": 5}},
        {"missing": False},
        {"columns": list(SCHEMA), "epsilon": 3.0},
        {"epsilon": 0.5},
    ):
        with pytest.raises(InvalidValue, match="charged before for something else"):
            study.synthesise(request_id="first", **other)
    with pytest.raises(InvalidValue, match="must end in"):
        synthetic.save("rows.xlsx")


def test_counts_are_vouched_for_where_pairs_were_checked(synthetic: Synthetic) -> None:
    found = synthetic.query("sex = 'M' and job = 'smith'")
    truth = sum(row["sex"] == "M" and row["job"] == "smith" for row in people().select(["sex", "job"]).to_pylist())
    assert found.error is not None and abs(found.value - truth) <= found.error
    assert synthetic.query({"sex": "M", "job": "smith"}) == found
    assert synthetic.query({"age": (20, 25), "job": ["none", "judge"]}).error is not None
    assert synthetic.query("sex = 'M' and job = 'smith' and smoker").error is None  # three columns
    assert synthetic.query("income < 12345").error is None  # cuts through a cell
    assert synthetic.marginal("sex", "job").shape == (3, 5)
    for wrong in ("height > 3", "age +", "age + 1"):
        with pytest.raises(ft.FarthingError):
            synthetic.query(wrong)
    with pytest.raises(InvalidValue, match="must be a column"):
        synthetic.marginal("height")


def test_files_and_the_report_hold_the_table(synthetic: Synthetic, tmp_path: Path) -> None:
    from pyarrow import csv, parquet

    saved = parquet.read_table(synthetic.save(str(tmp_path / "rows.parquet")))
    assert saved.equals(synthetic.table())
    assert csv.read_csv(synthetic.save(str(tmp_path / "rows.CSV"))).num_rows == saved.num_rows
    page = synthetic.report(str(tmp_path / "quality.html")).read_text()
    assert "sex and job" in page and "people" in page and "<script" not in page
    told = json.loads(synthetic.to_json())
    assert told["rows"] == saved.num_rows and len(told["quality"]["marginals"]) == 15
    assert "fit for a first look" in page and 'class="verdict unvouched"' in page  # the legend
    for write in (synthetic.save, synthetic.report):
        with pytest.raises(InvalidValue, match="cannot be written"):
            write(str(tmp_path / "nowhere" / "file"))


@pytest.mark.slow
def test_earlier_releases_help_and_cost_nothing(tmp_path: Path) -> None:
    study = study_in(tmp_path, epsilon=5.0)
    release = study.plan(ft.contingency(["sex", "job"]), epsilon=4.5).release()
    plan = study.synthesis_plan(columns=["sex", "job"], epsilon=0.1, known=release)
    assert [table.columns for table in plan.question.plan.known] == [("sex", "job")]
    found = plan.release()
    assert true_error(found, ("sex", "job")) < 0.04  # without it, twice that
    assert found.cost <= 0.1
    study.close()


@pytest.mark.slow
def test_refusals_come_before_anything_is_spent(study: ft.Study, tmp_path: Path) -> None:
    before = study.budget.spent_upper
    for words, told in (
        ({"columns": ["name"]}, "free text"),
        ({"rows": -1}, "rows"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"known": ["first"]}, "must be releases"),
        ({"known": "first"}, "must be releases"),
        ({"known": 5}, "must be releases"),
        ({"bins": 5}, "must say which column"),
        ({"bins": {"sex": 2}}, "categories"),
    ):
        with pytest.raises(InvalidValue, match=told):
            study.synthesise(**words)
    with pytest.raises(BudgetExceeded):
        study.synthesise(epsilon=100.0)
    with pytest.raises(InvalidValue, match="request_id"):
        study.synthetic("never made")
    assert study.budget.spent_upper == before
    sampled = study_in(tmp_path, sampling_rate=0.1)
    with pytest.raises(InvalidValue, match="sampling_rate"):
        sampled.synthesis_plan()
    other = sampled.plan(ft.count(), epsilon=1.0).release()
    with pytest.raises(InvalidValue, match="must be that of a synthesis"):
        sampled.synthetic(other.request_id)
    sampled.close()


@pytest.mark.slow
def test_no_table_is_made_that_no_memory_holds(study: ft.Study, synthetic: Synthetic) -> None:
    """Neither by wish nor because the noise of a tiny budget has counted so many rows."""
    before = study.budget.count
    for rows in (10**9, 10**18, 10**30):
        with pytest.raises(InvalidValue, match="must be at most"):
            study.synthesise(rows=rows, epsilon=1.0)
        with pytest.raises(InvalidValue, match="must be at most"):
            study.synthetic("first", rows=rows)
    assert study.budget.count == before
    model = replace(synthetic.model, graph=replace(synthetic.model.graph, total=1e12))
    assert synthetic.question.rows(model) == synthetic.question.most_rows < 10**8


def test_verdicts_follow_from_the_largest_error() -> None:
    found = [MarginalQuality(("a",), 0.0, at_most, measured=True).verdict for at_most in (0.05, 0.051, 0.15, 0.2, 1.0)]
    assert found == ["good", "rough", "rough", "not vouched for", "not vouched for"]


def test_a_number_of_rows_that_is_noise_is_told() -> None:
    rough = MarginalQuality(("a",), 0.1, 0.2, measured=True)
    few = Quality((rough,), (), rows=45.0, noise=80.0, rows_error=45.0)
    assert "45 were measured, and that may be off by 45" in few.warnings[1] and len(few.warnings) == 3
    assert not any("noise itself" in told for told in replace(few, rows=46.0).warnings)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "columns"), [(people().slice(0, 0), None), (people().slice(0, 3), ["age"])])
def test_tables_of_no_or_few_rows_are_not_vouched_for(table: pa.Table, columns: Any, tmp_path: Path) -> None:
    study = ft.Study(ft.dataset(table, schema=SCHEMA), 1.0, 1e-6, ledger=tmp_path / "study.db", name="few")
    found = study.synthesise(columns=columns, rows=20)
    assert found.table().num_rows == 20
    assert GOOD not in {one.verdict for one in found.quality.marginals}
    assert "not one column of this table is good" in found.quality.warnings[0]
    assert "Warning:" in found.report(str(tmp_path / "page.html")).read_text()
    study.close()


@pytest.mark.slow
def test_pure_budgets_and_units_of_several_rows(tmp_path: Path) -> None:
    table = people().append_column("person", pa.array(np.arange(ROWS) // 2))
    persons = ft.dataset(table, unit="person", max_rows=2, schema=SCHEMA)
    study = ft.Study(persons, 2.0, ledger=tmp_path / "study.db", account="persons")
    found = study.synthesise(columns=["sex", "job"], missing=False)
    assert found.cost <= 2.0 and found.question.plan.prices.sensitivity.l1 == 2
    assert study.budget.remaining.epsilon < 1e-3
    assert true_error_of(found) < 0.1
    study.close()


def true_error_of(found: Synthetic) -> float:
    exact = np.zeros((2, 4))
    for row in people().select(["sex", "job"]).to_pylist():
        exact[SCHEMA["sex"].index(row["sex"]), SCHEMA["job"].index(row["job"])] += 1 / ROWS
    made = np.zeros((2, 4))
    np.add.at(made, tuple(found.codes.T), 1 / len(found.codes))
    return float(np.abs(exact - made).sum() / 2)


@pytest.mark.slow
def test_the_same_words_pay_once_and_other_words_pay_again(tmp_path: Path) -> None:
    study = ft.Study(ft.dataset(people(), schema=SCHEMA), 4.0, 1e-6, ledger=tmp_path / "study.db", name="people")
    words: dict[str, Any] = {"columns": ["sex"], "epsilon": 0.5, "missing": False}
    first = study.synthesise(**words)
    spent = study.budget.spent_upper
    again = study.synthesise(**words, rows=7)
    assert again.request_id == first.request_id and again.table().num_rows == 7
    assert study.synthesise(**words).table().equals(first.table())
    assert study.synthesis_plan(**words).release().repeated and study.budget.spent_upper == spent
    assert study.synthesise(**{**words, "columns": ["job"]}).request_id != first.request_id
    assert study.budget.spent_upper > spent
    for none in (0, -1):
        with pytest.raises(InvalidValue, match="rows"):
            study.synthesise(columns=["smoker"], epsilon=0.5, rows=none)
    study.close()


@pytest.mark.slow
def test_a_plan_of_what_was_made_before_costs_nothing_when_nothing_is_left(make_study: Any, people: Any) -> None:
    words: dict[str, Any] = {"columns": ["sex", "age"], "epsilon": 0.4}
    first = make_study(delta=1e-9).synthesis_plan(**words).release()
    study = make_study(delta=1e-9)
    young = ft.Study(people.where("age < 50"), 1.0, 1e-9, ledger=study.ledger, account="people")
    assert not young.synthesis_plan(**words).made_before  # it is not the table of everybody
    study.plan(ft.count()).release()
    plan = study.synthesis_plan(**words)
    assert plan.made_before and "cost: nothing. It was made before" in str(plan)
    assert plan.release().table().equals(first.table()) and study.budget.count == 2
    with pytest.raises(BudgetExceeded):
        young.synthesis_plan(**words)
