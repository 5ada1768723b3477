"""A count by an unknown column: one charge, values and counts of one noise, and the same answer when asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.study import findings
from farthing.study.key_count_plan import KeyCountPlan
from farthing.study.staged_plan import StagedPlan

CELLS = [" Flu", "flu", "COLD"] * 400 + ["a rarity"]
NAME = "count of people by diagnosis"
COUNT = ft.count(by="diagnosis", of="people", max_cells=1)


def study(folder: Path, cells: list[Any] = CELLS, epsilon: float = 40.0, delta: float = 1e-6, **more: Any) -> ft.Study:
    """At epsilon 40, values of 400 people are found and counted exactly, but for a chance below 1e-9."""
    table = pa.table({"who": list(range(len(cells))), "diagnosis": cells, "age": [40] * len(cells)})
    schema = {"diagnosis": ft.unknown("text", trim=True, lower=True), "age": (0, 110)}
    people = ft.dataset(table, unit="who", max_rows=1, schema=schema, name="people", **more)
    return ft.Study(people, epsilon=epsilon, delta=delta, ledger=folder / "study.db")


def test_values_and_counts_come_in_one_charge_and_the_same_request_returns_them(tmp_path: Path) -> None:
    own = study(tmp_path)
    plan = own.plan(COUNT)
    assert isinstance(plan, KeyCountPlan) and own.budget.count == 0
    release = plan.release()
    answer = release[NAME]
    assert answer.labels == ("cold", "flu")
    assert np.asarray(answer.values).tolist() == np.asarray(answer.raw).tolist() == [400.0, 800.0]
    assert (own.budget.count, release.repeated, release.cost) == (1, False, 40.0)
    assert (release.receipt.epsilon, release.receipt.delta) == (40.0, 1e-6)
    # Asked again, here, in another process or from the ledger alone, it is the same answer and costs nothing.
    own.close()
    again = study(tmp_path)
    plan = again.plan(COUNT)
    assert plan.earlier is not None and "released before" in str(plan)
    repeated = plan.release()
    assert repeated.repeated and repeated.to_dict() == release.to_dict()
    assert again.released(release.request_id).to_dict() == release.to_dict()
    assert again.releases() == [release.request_id]
    assert again.budget.count == 1
    # Its values are categories of every later plan.
    assert again.dataset.schema["diagnosis"].values == ("cold", "flu")  # type: ignore[union-attr]
    assert again.discover("diagnosis").cost == 0
    with pytest.raises(BudgetExceeded):
        again.plan(ft.histogram("diagnosis", of="people", max_cells=1))
    again.close()


def test_the_whole_of_a_fresh_budget_is_used_and_of_a_part_a_small_share_of_delta(tmp_path: Path) -> None:
    own = study(tmp_path)
    assert (own.plan(COUNT).cost.upper, own.plan(COUNT).delta) == (40.0, 1e-6)
    part = own.plan(COUNT, epsilon=10.0)
    assert part.cost.upper == 10.0 and part.delta <= 1e-6 / 64
    part.release()
    rest = own.plan(ft.mean("age", by="diagnosis"), epsilon=20.0)
    assert not isinstance(rest, StagedPlan) and len(rest["mean of age by diagnosis"].output.labels) == 2
    assert own.plan(COUNT, epsilon=10.0).release().repeated
    # Another request for the same count finds the values known, and is measured with noise of its own.
    other = own.plan(COUNT, epsilon=5.0)
    assert not isinstance(other, KeyCountPlan) and other.earlier is None
    own.close()


def test_what_is_no_count_of_units_is_planned_in_two_stages(tmp_path: Path) -> None:
    own = study(tmp_path)
    staged = [
        [ft.count(by="diagnosis")],  # rows of units
        [ft.count(by=["diagnosis", "age"], of="people", max_cells=2)],
        [ft.top("diagnosis", 1, of="people", max_cells=1)],
        [ft.count(by="diagnosis", of="people", max_cells=1, where="age > 3")],
        [ft.count(by="diagnosis", of="people", max_cells=1, for_population=True)],
    ]
    for statistics in staged:
        assert type(own.plan(*statistics, epsilon=10.0)) is not KeyCountPlan
    assert isinstance(own.plan(ft.histogram("diagnosis", of="people", max_cells=1)), KeyCountPlan)
    own.close()


def test_rows_are_counted_in_one_step_where_the_unit_is_a_row(tmp_path: Path) -> None:
    table = ft.dataset(pa.table({"town": ["A", "B"] * 300}), schema={"town": ft.unknown("text")}, name="towns")
    own = ft.Study(table, epsilon=40.0, delta=1e-6, ledger=tmp_path / "study.db")
    plan = own.plan(ft.count(by="town", rounded=True))
    assert isinstance(plan, KeyCountPlan)
    assert np.asarray(plan.release()["count by town"].values).tolist() == [300.0, 300.0]
    own.close()


def test_predictions_are_those_of_the_noise_in_words_and_numbers(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=1.0)
    plan = own.plan(COUNT)
    sentence = (
        "a value that 17 or more units (who) have as the one value kept of each, chosen at random, appears 95 times "
    )
    sentence += "in 100, with a count within ±4"
    assert plan[NAME].sentence == sentence and plan[NAME].error() == 4
    assert plan[NAME].shown_error == "± 4 (values with 17 or more)"
    assert sentence in plan.explain() and "reaches 15" in plan.explain()
    assert "a value that only one has appears with probability 1e-06 at most" in " ".join(str(plan).split())
    assert plan.to_dict()["statistics"][0]["sentence"] == sentence
    assert plan.assumptions == ()
    own.close()


def test_intervals_of_a_release_hold_at_once_too_and_the_page_and_table_have_them(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=2.0)
    release = own.plan(COUNT).release(title="table 4")
    at_once = release.at_once()[NAME]
    assert np.all(at_once.upper >= release[NAME].upper) and np.all(at_once.lower <= release[NAME].lower)
    records = release.records()
    assert [one["cell"] for one in records] == ["cold", "flu"]
    assert all(one["lower_at_once"] <= one["lower"] <= 800 for one in records)
    assert "a value is shown only if its noisy count reaches" in str(release)
    page = release.report(str(tmp_path / "page.html")).read_text()
    assert "table 4" in page and "cold" in page
    own.close()


def test_nothing_found_is_paid_for_and_said(tmp_path: Path) -> None:
    own = study(tmp_path, cells=[f"note {number}" for number in range(500)])
    with pytest.raises(InvalidValue, match=r"no value found.*it was paid for"):
        own.plan(COUNT).release()
    assert own.budget.count == 1 and own.releases() == []
    own.close()


def test_controls_and_request_ids_are_refused_with_the_way_out(tmp_path: Path) -> None:
    own = study(tmp_path)
    plan = own.plan(COUNT)
    for refused in (
        lambda: plan.require(NAME, within=3),
        lambda: plan.reserve(0.5),
        lambda: plan.submit("for a paper"),
        lambda: plan.release("mine"),
    ):
        with pytest.raises(InvalidValue, match=r"study\.discover"):
            refused()
    assert own.budget.count == 0
    own.close()


def test_values_that_somebody_found_meanwhile_are_not_paid_for_twice(tmp_path: Path) -> None:
    own, other = study(tmp_path), study(tmp_path)
    plan = own.plan(COUNT, epsilon=10.0)
    other.discover("diagnosis", epsilon=5.0).release()
    with pytest.raises(InvalidValue, match="was found meanwhile by somebody else"):
        plan.release()
    assert own.budget.count == 1
    assert own.plan(COUNT, epsilon=10.0).release()[NAME].labels == ("cold", "flu")
    own.close()
    other.close()


def test_a_search_that_starts_between_a_look_and_a_charge_is_the_same_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process charges just after this one saw that nothing was found: they share one charge."""
    quick, slow = study(tmp_path), study(tmp_path)
    plans = [own.plan(COUNT, epsilon=15.0) for own in (quick, slow)]
    looked, answers = findings.paid_finding, []

    def late(*given: Any, **more: Any) -> Any:
        seen = looked(*given, **more)
        monkeypatch.setattr(findings, "paid_finding", looked)
        answers.append(plans[0].release())
        return seen

    monkeypatch.setattr(findings, "paid_finding", late)
    answers.append(plans[1].release())
    assert answers[0].request_id == answers[1].request_id and answers[0].to_dict() == answers[1].to_dict()
    assert slow.ledger.budget("people").count == 1
    quick.close()
    slow.close()


def test_fresh_searches_again_and_is_charged_again(tmp_path: Path) -> None:
    own = study(tmp_path)
    first = own.plan(COUNT, epsilon=10.0).release()
    second = own.plan(COUNT, epsilon=10.0).release(fresh=True)
    assert second.request_id != first.request_id and own.budget.count == 2
    assert own.plan(COUNT, epsilon=10.0).release().request_id == second.request_id
    own.close()


def test_a_grant_pays_for_its_holder_alone(tmp_path: Path) -> None:
    own = study(tmp_path)
    own.register()
    own.ledger.grant("people", "ada", epsilon=10.0, delta=1e-7)
    table = own.declared
    own.close()
    with ft.open_ledger(tmp_path / "study.db", actor="ada", role="analyst") as ledger:
        theirs = ft.Study(table, epsilon=40.0, delta=1e-6, ledger=ledger, account="people")
        plan = theirs.plan(COUNT)
        assert isinstance(plan, KeyCountPlan) and plan.cost.upper <= 10.0
        release = plan.release()
        assert release[NAME].labels == ("cold", "flu") and release.receipt.analyst == "ada"
        assert theirs.plan(COUNT).release().repeated
    whole = study(tmp_path)
    assert "diagnosis" in whole.dataset.unknown  # what ada has paid for is hers
    whole.close()


def test_where_a_policy_withholds_small_cells_values_are_found_first(tmp_path: Path) -> None:
    own = study(tmp_path)
    own.register()
    own.ledger.grant("people", "ada", epsilon=10.0, delta=1e-7)
    own.ledger.requests.grant_policy("people", "ada", 1.0, 1e-8, cell=50)
    table = own.declared
    own.close()
    with ft.open_ledger(tmp_path / "study.db", actor="ada", role="analyst") as ledger:
        theirs = ft.Study(table, epsilon=40.0, delta=1e-6, ledger=ledger, account="people")
        with pytest.raises(InvalidValue, match="would show small cells, which a policy withholds from you; find"):
            theirs.plan(COUNT).release()
        assert ledger.budget("people").count == 0


def test_neighbours_that_replace_a_unit_need_twice_the_noise(tmp_path: Path) -> None:
    own = study(tmp_path, epsilon=1.0, neighbours="replace")
    plan = own.plan(COUNT)
    assert isinstance(plan, KeyCountPlan) and plan.search is not None
    assert plan.search.counts.max_keys_per_unit == 2 and plan.search.counts.kind == "laplace"
    own.close()
