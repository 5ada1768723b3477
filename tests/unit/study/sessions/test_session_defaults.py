"""Ranges and marginals in studies: controls, files and reports take them, and stored answers can still be asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import farthing as ft
from farthing.curator.questions import PlanQuestion
from farthing.errors import Infeasible, InvalidValue
from farthing.study.documents.study_file import read_study
from study_people import SCHEMA, table

RANGES, PAIRS = "ranges of age", "2-way marginals of sex, age and income"
ASKED = (
    ft.ranges("age"),
    ft.cdf("income", bins=60),
    ft.marginals(["sex", "age", "income"], bins={"age": 4, "income": 3}),
    ft.count(by="sex"),
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ft.Study:
    people = ft.dataset(table(), schema=SCHEMA)
    return ft.Study(people, 4.0, 1e-9, ledger=tmp_path_factory.mktemp("asking") / "study.db", account="people")


@pytest.fixture(scope="module")
def release(study: ft.Study) -> Any:
    return study.plan(*ASKED, expected={"rows": 400}).release()


@pytest.mark.slow
def test_stored_answers_are_asked_as_before(study: ft.Study, release: Any) -> None:
    again = study.released(release.request_id)
    for name, what in ((RANGES, "10 <= age < 25"), (RANGES, (40, 80)), (PAIRS, "sex = 'F' and age < 55")):
        one, other = release[name].query(what), again[name].query(what)
        assert (one.name, one.values, one.lower, one.upper) == (
            other.name,
            other.values,
            other.lower,
            other.upper,
        )
        assert 0 <= one.values < 500 and one.standard_errors > 0
    assert again[PAIRS].labels[0] == "sex = F, age = 0 to 27"
    assert list(again[RANGES].values) == list(release[RANGES].values)
    assert again[RANGES].at(0.5).error(0.5).max() < again[RANGES].error(0.95).max()
    assert study.budget.count == 1  # all of it was free


@pytest.mark.slow
def test_a_question_keeps_the_confidence_of_its_answer(release: Any) -> None:
    wide = release[RANGES].at(0.99).query("age < 30")
    assert wide.confidence == 0.99 and wide.error() > release[RANGES].query("age < 30").error()


def test_other_statistics_say_that_they_cannot_be_asked(release: Any) -> None:
    with pytest.raises(InvalidValue, match="cannot be asked of 'count by sex'; ranges and marginals can be asked"):
        release["count by sex"].query("sex = 'F'")


@pytest.mark.slow
def test_frames_json_pictures_and_reports_show_them(release: Any, tmp_path: Path) -> None:
    frame = release.to_frame()
    assert {RANGES, PAIRS, "cdf of income"} <= set(frame["statistic"])
    assert frame[frame["statistic"] == RANGES]["cell"].tolist()[:3] == ["0", "1", "2"]
    told = json.loads(release.to_json())
    assert len(told["answers"]) == len(ASKED)
    assert "sex = F, age = 0 to 27" in release.report(tmp_path / "report.html").read_text()
    assert release.plot().to_dict()["vconcat"]
    assert "... and 71 more" in str(release)


def test_stored_answers_are_short(study: ft.Study, release: Any) -> None:
    from farthing.statistics.answer_records import stored_form

    form = stored_form(release[PAIRS])
    assert form["labels"] is None and form["values"] is None
    # What other measurements take off the errors is kept with them.
    assert len(json.dumps(form)) < 30 * len(release[PAIRS]) + 3000


@pytest.mark.slow
def test_plans_hold_weigh_and_require_them(make_study: Callable[..., ft.Study]) -> None:
    plan = make_study(2.0, 1e-9).plan(*ASKED, expected={"rows": 400})
    assert plan.weight(PAIRS, 50)[PAIRS].standard_error < plan[PAIRS].standard_error
    held = plan.hold(RANGES).weight("count by sex", 30)
    # What it reads of others may say less, and then its own measurement gets a little less noise than it needs.
    assert 0.9 < held[RANGES].standard_error / plan[RANGES].standard_error <= 1 + 1e-6
    exact = plan.require(PAIRS, within=0.8 * plan[PAIRS].worst_error())
    assert 0.998 < exact[PAIRS].worst_error() / (0.8 * plan[PAIRS].worst_error()) <= 1
    assert "a cell  " in str(plan).split(RANGES)[1].splitlines()[0] and "a cell" not in str(plan).split(PAIRS)[1]
    told = plan.explain()
    quarter = float(re.search(r"a quarter of its cells is within ±([\d.]+)", told)[1])  # type: ignore[index]
    assert 1.2 * plan[RANGES].error() < quarter < 5 * plan[RANGES].error()  # far from the 5.2 of 27 noises
    assert "any range of its cells has a standard error of" in told and "of marginals)" in told
    assert [one.cells for one in plan.statistics] == [111, 60, 8 + 6 + 12, 2]


@pytest.mark.slow
def test_a_file_may_ask_for_them(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "people.parquet")
    (tmp_path / "study.toml").write_text(
        '[dataset]\nsource = "people.parquet"\n[schema]\nsex = { categories = ["F", "M"] }\n'
        "age = { range = [0, 110] }\nincome = { range = [0, 250_000] }\n[study]\nepsilon = 1.0\nledger = 'study.db'\n"
        '[[statistics]]\nkind = "ranges"\ncolumn = "age"\nranges = [[0, 18], [18, 65]]\nby = "sex"\n'
        '[[statistics]]\nkind = "marginals"\ncolumns = ["sex", "age"]\nway = 2\nbins = { age = 5 }\nweight = 2.0\n'
        '[[statistics]]\nkind = "cdf"\ncolumn = "income"\nbins = 100\nstrategy = "hierarchical-10"\n'
    )
    asked = read_study(tmp_path / "study.toml")
    plan = asked.plan()
    assert [one.name for one in plan.statistics] == [
        "ranges of age by sex",
        "2-way marginals of sex and age",
        "cdf of income",
    ]
    assert plan["ranges of age by sex"].output.labels[:2] == (("F", (0, 18)), ("F", (18, 65)))
    assert "hierarchical-10" in plan.explain()
    release = plan.release(asked.request_id)
    assert release["ranges of age by sex"].query("age < 65").values >= 0


def test_a_plan_for_single_rows_is_refused_by_a_table_of_persons(make_study: Callable[..., ft.Study]) -> None:
    """Sums of cells move much further than cells; what is compared is how far cells move."""
    plan = make_study().plan(ft.ranges("age"))
    rows = table().append_column("person", [[place // 3 for place in range(400)]])
    persons = ft.dataset(rows, schema=SCHEMA, unit="person", max_rows=3)
    with pytest.raises(InvalidValue, match="sensitivity of 'ranges 1"):
        PlanQuestion(plan.measurements).check(persons)
    PlanQuestion(plan.measurements).check(plan.study.dataset)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-12, 1e-16])
def test_next_to_no_epsilon_is_planned_or_refused_in_words(make_study: Callable[..., ft.Study], epsilon: float) -> None:
    study = make_study(2.0, 1e-9)
    try:
        plan = study.plan(ft.ranges("age"), epsilon=epsilon)
    except Infeasible as refusal:
        assert epsilon < 1e-9 and "raise epsilon" in str(refusal)
    else:
        assert 0 < plan.cost.upper <= epsilon


def test_a_question_about_all_rows_needs_no_column(release: Any) -> None:
    everybody = release[PAIRS].query("true")
    assert everybody.values == pytest.approx(release[PAIRS].query("age >= 0").values)
    assert release[PAIRS].query("1 = 2").values == 0
    assert release[RANGES].query("true").values == pytest.approx(release[RANGES].values.sum())
