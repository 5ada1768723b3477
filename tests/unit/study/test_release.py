"""A release: charged once, stored as it was told, and found again without a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.inference import Answer, ErrorDistribution, Term
from farthing.statistics.answer_records import label_texts, plain, records_of, restored, stored_form
from farthing.study.release import quantile_ranks

Make = Callable[..., ft.Study]


@pytest.fixture
def study(make_study: Make) -> ft.Study:
    return make_study()


@pytest.fixture
def release(study: ft.Study) -> ft.study.Release:
    return study.plan(ft.count(by="sex"), ft.histogram("age", bins=50), ft.mean("age")).release()


def test_the_ledger_is_charged_what_the_plan_costs(study: ft.Study) -> None:
    plan = study.plan(ft.count(by="sex"), ft.mean("age"), epsilon=0.5)
    release = plan.release()
    assert release.cost == plan.cost.upper
    assert study.budget.spent_upper == pytest.approx(plan.cost.upper, abs=2e-9)
    assert release.receipt.epsilon == pytest.approx(plan.cost.upper, abs=2e-9)


def test_a_mean_of_which_nothing_was_known_is_as_exact_as_was_predicted(study: ft.Study) -> None:
    """The mean is 40,000 between 0 and 250,000: a plan that took it to be in the middle would be far off."""
    plan = study.plan(ft.mean("income"), epsilon=0.9, expected={"rows": 400})
    answer = plan.release()["mean of income"]
    assert answer.error() < 1.5 * plan["mean of income"].error()


def test_raw_counts_are_released_beside_the_ones_that_were_moved(make_study: Make) -> None:
    """100 cells, nearly all of them empty: some come out negative, and the total stays that of the noise."""
    study = make_study()
    plan = study.plan(ft.histogram("income", bins=400), epsilon=0.05)
    release = plan.release()
    answer = release["histogram of income"]
    assert np.min(answer.raw) < 0 <= np.min(answer.values)
    assert np.sum(answer.values) == pytest.approx(max(0.0, float(np.sum(answer.raw))))
    again = study.released(release.request_id)["histogram of income"]
    assert np.asarray(again.raw).tolist() == np.asarray(answer.raw).tolist()
    assert [row["raw"] for row in release.records()] == np.asarray(answer.raw).tolist()
    assert json.loads(release.to_json())["answers"][0]["raw"] == np.asarray(answer.raw).tolist()


def test_a_plan_is_answered_once(study: ft.Study) -> None:
    plan = study.plan(ft.count(by="sex"), epsilon=0.5)
    first, again = plan.release(), plan.release()
    assert not first.repeated and again.repeated
    assert first["count by sex"].values.tolist() == again["count by sex"].values.tolist()  # type: ignore[union-attr]
    assert study.budget.count == 1


def test_a_request_id_belongs_to_one_plan(study: ft.Study) -> None:
    study.plan(ft.count(), epsilon=0.25).release("mine")
    with pytest.raises(InvalidValue, match="request"):
        study.plan(ft.mean("age"), epsilon=0.25).release("mine")
    assert study.budget.count == 1


def test_two_plans_for_the_same_budget_are_not_both_released(study: ft.Study) -> None:
    first, second = study.plan(ft.count()), study.plan(ft.mean("age"))
    first.release()
    with pytest.raises(BudgetExceeded):
        second.release()
    assert study.budget.count == 1


@pytest.mark.slow
def test_a_release_is_a_mapping_of_answers(release: ft.study.Release) -> None:
    assert list(release) == ["count by sex", "histogram of age", "mean of age"] and len(release) == 3
    counts = release["count by sex"]
    assert counts.labels == ("F", "M") and abs(float(counts["F"].values) - 200) < 150
    with pytest.raises(InvalidValue, match="there are: count by sex, histogram of age, mean of age"):
        release["median"]


@pytest.mark.slow
def test_a_release_prints_every_cell_or_says_how_many_more(release: ft.study.Release) -> None:
    lines = str(release).splitlines()
    assert lines[0].split() == ["statistic", "cell", "answer", "(95%)"]
    assert lines[2].startswith("count by sex") and lines[3].split()[0] == "M"
    assert any(line.strip() == "... and 10 more" for line in lines)
    assert lines[-3].startswith("mean of age") and lines[-2] == ""
    assert lines[-1].startswith("note: mean of age: values outside 0 to ")


def test_notes_are_printed_below_the_table(study: ft.Study) -> None:
    release = study.plan(ft.count(), ft.median("age")).release()
    _, _, notes = str(release).partition("\n\n")
    assert " ".join(notes.split()) == f"note: median of age: {release['median of age'].note}"
    assert "holds whatever the data" in release["median of age"].note
    assert max(map(len, notes.splitlines())) <= 100


@pytest.mark.slow
def test_a_release_is_tidy_data(release: ft.study.Release) -> None:
    frame = release.to_frame()
    assert len(frame) == 53
    assert {"statistic", "cell", "value", "standard_error", "lower", "upper"} <= set(frame.columns)
    assert (frame.lower <= frame.value).all() and (frame.value <= frame.upper).all()
    told = json.loads(release.to_json())
    assert [answer["name"] for answer in told["answers"]] == list(release)
    assert told["receipt"]["request_id"] == release.request_id
    assert release.plot().to_dict()["title"]["text"].startswith("3 statistics")


def test_progress_is_told(study: ft.Study) -> None:
    told: list[float] = []
    study.plan(ft.count()).release(progress=told.append)
    assert told and told == sorted(told) and 0 <= told[0] <= told[-1] <= 1


ANSWERS = [
    Answer.around("one", 41_230.4, ErrorDistribution([Term("normal", 245.0)])),
    Answer.around("many", [1.0, 2.0], ErrorDistribution([Term("laplace", 2.0)]), ("F", "M"), least=0),
    Answer.around("bins", [1.0, 2.0], ErrorDistribution([Term("laplace", 2.0)]), ((0, 5), (5, 9))),
    Answer.around(
        "days",
        [1.0, 2.0],
        ErrorDistribution([Term("laplace", 2.0)]),
        (date(2020, 1, 1), ("F", date(2021, 1, 1))),
    ),
    Answer.around("flags", [1.0, 2.0], ErrorDistribution([Term("laplace", 2.0)]), (False, True)),
    Answer.within("noted", [1.0], [1.0], lambda _: (np.array([0.0]), np.array([2.0])), note="rests on a guess"),
    Answer.within("lost", [np.nan], [np.inf], lambda _: (np.array([-np.inf]), np.array([np.inf]))),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer.name for answer in ANSWERS])
def test_an_answer_survives_being_stored(answer: Answer) -> None:
    found = restored(json.loads(json.dumps(plain(stored_form(answer)))))
    assert found.labels == answer.labels and found.name == answer.name and found.note == answer.note
    assert {record["note"] for record in records_of(found)} == {answer.note}
    np.testing.assert_array_equal(found.values, answer.values)
    for level in (0.5, 0.9, 0.95, 0.99):
        np.testing.assert_allclose(found.at(level).lower, answer.at(level).lower)
        np.testing.assert_allclose(found.at(level).upper, answer.at(level).upper)
    # Between stored levels the interval is wider, never narrower.
    assert np.all(~(found.at(0.93).upper < answer.at(0.93).upper))
    assert not np.any(np.isfinite(found.at(0.99999).upper))


def test_labels_are_written_for_people() -> None:
    assert label_texts([(0, 5), (5, 10)]) == ["0 to 5", "5 to 10"]
    assert label_texts([(1, 1), (1, 2), (2, 1), (2, 2)]) == ["1, 1", "1, 2", "2, 1", "2, 2"]
    assert label_texts([("F", (10.0, 80 / 3))]) == ["F, 10 to 26.666667"]
    assert label_texts([(date(2020, 1, 1), date(2021, 1, 1))]) == ["2020-01-01 to 2021-01-01"]
    assert label_texts([(False, True)]) == ["False, True"]
    assert [record["cell"] for record in records_of(ANSWERS[0])] == [""]


@pytest.mark.slow
def test_a_secret_sample_costs_less_or_tells_more(make_study: Make, tmp_path: Any) -> None:
    """At the same epsilon the errors are smaller; the ledger is charged the amplified cost, once."""
    whole = make_study(delta=1e-9)
    sampled = ft.Study(whole.dataset, 1.0, 1e-9, account="people", ledger=tmp_path / "sample.db", sampling_rate=0.1)
    asked = ft.count(by="sex"), ft.histogram("age", bins=5)
    before, after = whole.plan(*asked), sampled.plan(*asked)
    for one, other in zip(before.statistics, after.statistics, strict=True):
        assert other.standard_error < 0.6 * one.standard_error
    assert after.cost.upper <= 1.0 and after.allocation.inner_cost.upper > 2.0
    release = after.release()
    budget = sampled.budget
    assert release.cost == after.cost.upper <= 1.0
    assert budget.count == 1 and budget.spent_upper <= 1.0
    assert release.receipt.epsilon == pytest.approx(after.cost.upper, rel=1e-6)


def test_a_secret_sample_is_released_once_and_not_planned_again(make_study: Make) -> None:
    study = make_study(sampling_rate=0.1)
    first, second = study.plan(ft.count(), epsilon=0.25), study.plan(ft.mean("age"), epsilon=0.25)
    first.release()
    for again in (second.release, lambda: first.release(fresh=True)):
        with pytest.raises(InvalidValue, match="put all statistics into one plan"):
            again()
    with pytest.raises(InvalidValue, match=r"study\.released\(study\.releases\(\)\[0\]\) has its answers"):
        study.plan(ft.mean("age"), epsilon=0.25)
    assert study.plan(ft.count(), epsilon=0.25).release().repeated
    assert study.budget.count == 1
    assert study.released(study.releases()[0]).cost == first.release().cost


def test_a_sampled_study_cannot_be_taken_for_the_table_itself(make_study: Make) -> None:
    """The ledger knows whom the budget protects: the population, not the rows."""
    make_study(sampling_rate=0.1).register()
    for rate in (None, 0.2):
        with pytest.raises(InvalidValue, match=r"population it is a sample of; pass sampling_rate=0\.1\."):
            make_study(sampling_rate=rate)
    assert make_study(sampling_rate=0.1).budget.count == 0


def test_a_table_cannot_be_taken_for_a_sample_later(make_study: Make) -> None:
    make_study().register()
    with pytest.raises(InvalidValue, match=r"sampling_rate=0\.1: must be left out: the budget of 'people'"):
        make_study(sampling_rate=0.1)


def test_a_failed_run_is_charged_and_says_so(tmp_path: Any) -> None:
    from farthing.errors import AnswerForfeited

    broken = ft.dataset(pa.table({"age": [1.0, 2.0]}), schema={"age": (0.0, 3.0)})
    study = ft.Study(broken, 1.0, ledger=tmp_path / "study.db", account="broken")
    plan = study.plan(ft.count(), epsilon=0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(broken), "exact", lambda *_, **__: 1 / 0)
        with pytest.raises(AnswerForfeited, match="the charge stays"):
            plan.release()
    assert study.budget.count == 1
    with pytest.raises(AnswerForfeited):  # noise is drawn once for a request, or never
        plan.release()
    assert study.budget.count == 1


@pytest.mark.slow
def test_a_release_says_which_rows_it_is_about(tmp_path: Path) -> None:
    visits = pa.table({"person": [1, 1, 1, 2], "age": [30, 31, 32, 45]})
    schema = {"age": (0, 110)}
    dataset = ft.dataset(visits, unit="person", max_rows=2, schema=schema)
    study = ft.Study(dataset, 1.0, ledger=tmp_path / "study.db", account="visits")
    plan = study.plan(ft.count())
    release = plan.release()
    assert plan.about is not None and "at most 2 rows of each person" in plan.about
    assert release.about == plan.about == study.released(release.request_id).about
    for told in (" ".join(str(plan).split()), " ".join(str(release).split())):
        assert plan.about in told
    assert plan.about in release.report(str(tmp_path / "page.html")).read_text()
    study.close()
    every = ft.Study(ft.dataset(visits, schema=schema), 1.0, ledger=tmp_path / "rows.db", name="rows")
    assert every.plan(ft.count()).about is None
    every.close()


@pytest.mark.slow
def test_intervals_at_once_are_kept_with_the_release(study: ft.Study) -> None:
    plan = study.plan(ft.histogram("age", bins=50), ft.count(by="sex"))
    release = plan.release()
    again = study.released(release.request_id)
    together = again.at_once()
    for name, answer in again.items():
        wide, predicted = together[name], plan.at_once().errors[name]
        assert np.all(wide.lower <= answer.lower) and np.all(answer.upper < wide.upper)
        assert np.all(np.isfinite(wide.upper)) and np.all(wide.upper <= np.asarray(answer.raw) + predicted + 1e-9)
    alone = again.at_once("count by sex")["count by sex"]
    assert np.all(alone.upper <= together["count by sex"].upper)
    assert {"lower_at_once", "upper_at_once"} <= set(again.records()[0])


@pytest.mark.slow
def test_ranks_of_quantiles_are_values_whatever_the_statistic_is_called(study: ft.Study) -> None:
    asked = ft.quantiles("age", [0.25, 0.5], by="sex", name="quarters"), ft.count(name="quantiles of age")
    release = study.released(study.plan(*asked).release().request_id)
    assert quantile_ranks(release, "quarters") == [("F", 0.25), ("F", 0.5), ("M", 0.25), ("M", 0.5)]
    assert quantile_ranks(release, "quantiles of age") == []


@pytest.mark.slow
def test_how_far_a_cell_reaches_is_kept_where_an_error_is_required_and_only_there(study: ft.Study) -> None:
    plan = study.plan(ft.count(by="sex"), ft.mean("age"), epsilon=0.5)
    plan = plan.require("count by sex", within=1.5 * plan["count by sex"].worst_error())
    kept = {one["name"]: one for one in plan.release().plan["statistics"]}
    assert kept["count by sex"]["worst_error"] == plan["count by sex"].worst_error()
    assert "worst_error" not in kept["mean of age"]
    assert {**plan["mean of age"].to_dict(), **kept["mean of age"]} == plan["mean of age"].to_dict()


@pytest.mark.slow
def test_marginals_are_plain_lists_in_json_and_say_which_rows_they_leave_out(make_study: Make) -> None:
    """Also when they are read back: by programs from the JSON, and by farthing from the same."""
    study = make_study(1.0)
    release = study.plan(ft.count(), ft.marginals(["sex", "age"], bins={"age": 4}, name="tables")).release()
    answer = release["tables"]
    assert "left out of all tables" in answer.note
    form = next(each for each in json.loads(release.to_json())["answers"] if each["name"] == "tables")
    cells = form["plain"]
    assert cells["values"] == pytest.approx(np.ravel(answer.values))
    assert cells["standard_errors"] == pytest.approx(np.ravel(answer.standard_errors))
    assert (cells["lower"], cells["upper"]) == (pytest.approx(np.ravel(answer.lower)), pytest.approx(answer.upper))
    assert cells["labels"][0] == answer.labels[0] and len(cells["labels"]) == len(answer.labels)
    again = restored(form)
    assert again.labels == answer.labels
    assert np.ravel(again.upper) == pytest.approx(np.ravel(answer.upper), rel=1e-6)


def test_a_table_says_what_does_not_add_up(make_study: Make) -> None:
    study = make_study(1.0)
    shared = str(study.plan(ft.count(), ft.count(by="sex")))
    assert "share a measurement each show its whole epsilon" in " ".join(shared.split())
    assert "may have different totals" in " ".join(shared.split())
    apart = str(study.plan(ft.count(by="sex"), ft.mean("age")))
    assert "share a measurement" not in apart and "different totals" not in " ".join(apart.split())
