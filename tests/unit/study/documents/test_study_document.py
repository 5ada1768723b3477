"""Words of a study.toml as values: one division for all controls, dates from texts, and the way back to a file."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.errors import FarthingError, Infeasible
from farthing.privacy import ApproxDP
from farthing.study import Plan, Study
from farthing.study.documents.study_document import (
    PlanDescription,
    client_code,
    dated,
    entry_of,
    expected_values,
    local_code,
    plan_description,
    plan_of,
    statistic_of,
    study_toml,
)
from farthing.study.documents.study_file import read_study
from farthing.study.reports.plan_summary import Outlook
from study_people import table

ENTRIES = [
    {"kind": "count", "by": "sex", "weight": 3.0},
    {"kind": "mean", "column": "income", "within": 9000.0, "confidence": 0.9},
    {"kind": "median", "column": "age"},
    {"kind": "histogram", "column": "age", "bins": 5},
]
SCHEMA = {"sex": ["F", "M"], "age": (0, 110), "income": (0, 250_000)}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    people = ft.dataset(table(), schema=SCHEMA)
    return Study(people, 1.0, 1e-6, account="people", ledger=str(tmp_path_factory.mktemp("described") / "study.db"))


@pytest.fixture(scope="module")
def asked() -> PlanDescription:
    return replace(plan_description(ENTRIES), expected={"rows": 400, "income": (40_000.0, 12_000.0)}, epsilon=0.5)


@pytest.mark.slow
def test_all_controls_at_once_are_the_controls_one_by_one(study: Study, asked: PlanDescription) -> None:
    at_once = plan_of(study, replace(asked, reserve=0.1))
    one_by_one = (
        study.plan(*asked.statistics, epsilon=0.5, expected=asked.expected)
        .weight("count by sex", 3.0)
        .require("mean of income", 9000.0, 0.9)
        .reserve(0.1)
    )
    assert at_once.allocation.noises == one_by_one.allocation.noises
    assert at_once.problem.delta == one_by_one.problem.delta
    assert at_once.code == one_by_one.code
    assert at_once["mean of income"].error(0.9) <= 9000


@pytest.mark.slow
def test_a_known_plan_changes_the_time_and_not_the_answer(study: Study, asked: PlanDescription) -> None:
    first = plan_of(study, asked)
    assert plan_of(study, asked, first).allocation.noises == first.allocation.noises
    other = replace(asked, expected={"rows": 900})
    assert plan_of(study, other, first).allocation.noises == plan_of(study, other).allocation.noises


@pytest.mark.slow
def test_a_quick_plan_is_close_and_never_above_what_it_may_use(study: Study) -> None:
    plan = plan_of(study, replace(plan_description(ENTRIES[:1] + ENTRIES[2:]), expected={"rows": 400}))
    for weight in (0.2, 1.0, 5.0, 40.0):
        moved = [{**ENTRIES[0], "weight": weight}, *ENTRIES[2:]]
        asked = replace(plan_description(moved), expected={"rows": 400})
        plan = plan_of(study, asked, plan, quick=True)
        thorough = plan_of(study, asked)
        assert plan.allocation.quick and not thorough.allocation.quick
        assert plan.allocation.objective <= thorough.allocation.objective * 1.02
        assert Outlook(plan, proof=False).cost.upper <= 1.0
        assert plan.cost.upper <= 1.0 * (1 + 1e-6)  # the proof agrees, though nobody waits for it


@pytest.mark.slow
def test_a_quick_plan_keeps_its_locks(study: Study, asked: PlanDescription) -> None:
    plan = plan_of(study, asked)
    moved = plan_description([{**ENTRIES[0], "weight": 9.0}, *ENTRIES[1:]])
    quick = plan_of(study, replace(asked, controls=moved.controls), plan, quick=True)
    assert quick.allocation.quick
    for name, asked_for in quick.problem.requirements.items():
        assert quick[name].worst_error(asked_for.confidence) <= asked_for.within


@pytest.mark.slow
def test_a_quick_plan_that_cannot_be_is_refused_as_a_thorough_one(study: Study, asked: PlanDescription) -> None:
    plan = plan_of(study, asked)
    controls = ({}, {"within": 1.0}, {}, {})
    with pytest.raises(Infeasible) as refusal:
        plan_of(study, replace(asked, controls=controls), plan, quick=True)
    assert refusal.value.blocking == ("mean of income",)


@pytest.mark.slow
def test_fit_takes_the_least_epsilon_and_needs_requirements(study: Study) -> None:
    asked = plan_description([{"kind": "count", "within": 50}, {"kind": "mean", "column": "age", "within": 20}])
    fitted = plan_of(study, replace(asked, fit=True))
    assert fitted.problem.epsilon < 0.9 and fitted["count"].error() <= 50
    with pytest.raises(FarthingError, match="needs a required error"):
        plan_of(study, replace(plan_description([{"kind": "count"}]), fit=True))


def test_an_entry_is_the_statistic_and_back() -> None:
    for entry in ENTRIES:
        statistic, control = statistic_of(entry)
        assert statistic_of(entry_of(statistic, control)) == (statistic, control)


def test_dates_may_be_texts_where_the_column_holds_dates() -> None:
    days = ft.dataset(pa.table({"day": [date(2020, 1, 1)]}), schema={"day": (date(2020, 1, 1), date(2020, 12, 31))})
    read = statistic_of({"kind": "histogram", "column": "day", "bins": ["2020-01-01", "2020-07-01"]})[0]
    assert dated(read, days).bins == (("day", (date(2020, 1, 1), date(2020, 7, 1))),)
    ranged = statistic_of({"kind": "ranges", "column": "day", "ranges": [["2020-01-01", "2020-07-01"]]})[0]
    assert dated(ranged, days).ranges == ((date(2020, 1, 1), date(2020, 7, 1)),)
    plain = statistic_of({"kind": "count"})[0]
    assert dated(plain, days) is plain


def test_what_is_expected_is_read_as_the_column_means_it() -> None:
    people = ft.dataset(pa.table({"n": [1], "f": [True], "age": [3]}), schema={"n": [1, 2], "f": bool, "age": (0, 9)})
    told = {"n": {"1": 0.5}, "f": {"true": 0.1}, "age": [4.0, 1.0], "rows": 7}
    assert expected_values(told, people) == {"n": {1: 0.5}, "f": {True: 0.1}, "age": (4.0, 1.0), "rows": 7}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"kind": ["count"]}, "statistics[0].kind=['count']: must be a kind"),
        ({"kind": "mean"}, "statistics[0].column=None: must be given for a mean"),
        ({"kind": "count", "confidence": 0.9}, "must be given with within"),
        ({"kind": "count", "columm": "x"}, "statistics[0].columm='x': is not known"),
    ],
)
def test_a_fault_is_named_with_its_place(entry: dict[str, object], message: str) -> None:
    with pytest.raises(FarthingError) as refusal:
        plan_description([entry])
    assert message in str(refusal.value)


@pytest.mark.slow
def test_the_file_that_is_written_asks_for_the_same_plan(study: Study, asked: PlanDescription, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "people.parquet")
    told = replace(asked, reserve=0.1)
    text = study_toml(told, study.dataset, {"epsilon": 1.0, "delta": 1e-6}, "people.parquet", "study.db")
    tomllib.loads(text)
    (tmp_path / "study.toml").write_text(text)
    again = read_study(tmp_path / "study.toml").plan()
    assert again.allocation.noises == plan_of(study, told).allocation.noises
    again.study.close()


@pytest.mark.slow
def test_the_code_that_is_written_runs(study: Study, asked: PlanDescription, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "people.parquet")
    text = local_code(asked, study.dataset, "people", {"epsilon": 1.0, "delta": 1e-6})
    text = text.replace("your-file.csv", str(tmp_path / "people.parquet"))
    text = text.replace('"study.db"', repr(str(tmp_path / "own.db"))).replace("print(plan)", "")
    names: dict[str, object] = {}
    exec(text, names)
    plan = names["plan"]
    assert isinstance(plan, Plan) and plan.allocation.noises == plan_of(study, asked).allocation.noises
    plan.study.close()
    compile(client_code(asked, "people", "http://127.0.0.1:8642"), "client", "exec")


@pytest.mark.slow
def test_parts_of_the_bar_add_up_whatever_was_spent(study: Study, asked: PlanDescription) -> None:
    outlook = Outlook(plan_of(study, asked), proof=False)
    standing = study.budget
    for spent, waiting, kept in ((0.0, 0.0, 0.0), (0.3, 0.1, 0.2), (0.9, 0.9, 0.5), (7.0, 1.0, 9.0)):
        reserves = {"later": ApproxDP(kept)} if kept else {}
        budget = replace(standing, spent_upper=spent, reserved=waiting, withheld=reserves)
        bar = outlook.bar(budget)
        total = bar.pop("total")
        assert all(part >= 0 for part in bar.values())
        assert sum(bar.values()) == pytest.approx(total, rel=1e-15)
