"""Values that a study has found: used by later plans for nothing, and no reason to pay again for earlier ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as ft
from farthing.adaptive.discovery import KeySearch
from farthing.errors import BudgetExceeded, InvalidValue
from farthing.statistics import design_of

CELLS = [" Flu", "flu", "COLD"] * 400 + ["a rarity"]


def study(folder: Path, delta: float = 1e-6, cells: list[Any] = CELLS, epsilon: float = 40.0) -> ft.Study:
    """At epsilon 40, values of 400 people are found but for a chance below 1e-9, and one person's with 5e-8 at most."""
    table = pa.table({"who": list(range(len(cells))), "diagnosis": cells, "age": [40] * len(cells)})
    schema = {"diagnosis": ft.unknown("text", trim=True, lower=True), "age": (0, 110)}
    people = ft.dataset(table, unit="who", max_rows=1, schema=schema, name="people")
    return ft.Study(people, epsilon=epsilon, delta=delta, ledger=folder / "study.db")


def test_found_values_are_categories_of_later_plans_and_are_paid_for_once(tmp_path: Path) -> None:
    own = study(tmp_path)
    first = own.plan(ft.count(), epsilon=1.0).release()
    plan = own.plan(ft.top("diagnosis", 1), ft.count(by="diagnosis"), epsilon=4.0)
    assert "appears 95 times in 100" in " ".join(str(plan).split())
    assert own.budget.spent.upper == pytest.approx(1.0, abs=1e-3)
    exact = plan.discover()
    paid = own.budget.spent.upper
    assert exact["count by diagnosis"].cells == 2
    release = exact.release()
    assert release["top 1 of diagnosis"].labels == ("flu",)
    # Asked again, nothing is paid: neither for the search, nor for what was released before it.
    assert own.discover("diagnosis").cost == 0
    assert own.plan(ft.count(), epsilon=1.0).release().repeated
    assert own.plan(ft.count(), epsilon=1.0).release().request_id == first.request_id
    rest = own.plan(ft.top("diagnosis", 1), ft.count(by="diagnosis"), epsilon=exact.epsilon)
    assert rest.release().request_id == release.request_id
    assert own.budget.spent.upper < paid + 4.0
    own.close()
    again = study(tmp_path)
    assert list(again.plan(ft.histogram("diagnosis"), epsilon=1.0)["histogram of diagnosis"].output.labels) == [
        "cold",
        "flu",
    ]
    again.close()


def test_free_text_is_paid_for_and_the_plan_says_why_it_cannot_be_made(tmp_path: Path) -> None:
    own = study(tmp_path, cells=[f"note {number}" for number in range(500)])
    with pytest.raises(InvalidValue, match="diagnosis"):
        own.plan(ft.count(by="diagnosis"), epsilon=4.0).discover()
    finding = own.discover("diagnosis").release()["diagnosis"]
    assert not finding.is_usable
    own.close()


def test_no_delta_and_no_budget_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    own = study(tmp_path, delta=0.0)
    with pytest.raises(InvalidValue, match="must be > 0 to find the values of 'diagnosis'"):
        own.plan(ft.count(by="diagnosis"))
    own.close()
    (tmp_path / "poor").mkdir()
    poor = study(tmp_path / "poor")
    with pytest.raises(BudgetExceeded):
        poor.discover("diagnosis", epsilon=41.0).release()
    poor.plan(ft.mean("age"), epsilon=0.1).release()
    with pytest.raises(BudgetExceeded, match=r"cost delta=5e-07 together, and the budget of 'people' has 6.2"):
        poor.discover("diagnosis", epsilon=1.0, delta=5e-7).release()
    with pytest.raises(InvalidValue, match="is too small"):
        poor.discover("diagnosis", epsilon=1e-9, delta=1e-17)
    assert poor.budget.count == 1
    poor.close()


def test_how_many_values_a_unit_counts_for_can_be_said(tmp_path: Path) -> None:
    own = study(tmp_path)
    plan = own.discover("diagnosis", epsilon=1.0, max_keys=3)
    assert "have among the 3 values kept of each, chosen at random, appears 95 times" in " ".join(str(plan).split())
    own.close()


def test_different_values_of_text_under_a_condition_are_those_that_were_found(tmp_path: Path) -> None:
    own = study(tmp_path)
    asked = ft.count_distinct("diagnosis", where="age > 0")
    with pytest.raises(InvalidValue, match=r"column='diagnosis': is declared as unknown.*find it first"):
        design_of([asked], own.dataset)
    exact = own.plan(asked, epsilon=30.0).discover()
    name = asked.name
    assert (exact[name].counts, exact[name].output.most) == (
        "different values (at most 1 of each who)",
        2.0,
    )
    assert float(exact.release()[name].values) == 2.0
    own.close()


def test_a_release_says_that_values_and_ranges_were_found(tmp_path: Path) -> None:
    """On the statistics that use them, wherever a note is shown, and not on the others."""
    table = pa.table({"diagnosis": ["flu", "cold"] * 2_000, "age": [40, 90] * 2_000})
    people = ft.dataset(
        table, schema={"diagnosis": ft.unknown("text"), "age": ft.unknown("whole number")}, name="people"
    )
    own = ft.Study(people, epsilon=90.0, delta=1e-6, ledger=tmp_path / "study.db")
    own.discover("diagnosis", "age", epsilon=40.0).release()
    release = own.plan(ft.count(), ft.count(by="diagnosis"), ft.mean("age", where="diagnosis == 'flu'")).release()
    values = "the values of diagnosis were found in the data: others count as missing; a value that "
    spans = "the range of age was found in the data, not declared: 95 times in 100 "
    assert release["count"].note == ""
    assert values in release["count by diagnosis"].note and spans not in release["count by diagnosis"].note
    assert values in release["mean of age where diagnosis = 'flu'"].note
    assert spans in release["mean of age where diagnosis = 'flu'"].note
    assert "or more rows share is found 95 times in 100" in release["count by diagnosis"].note
    shown = " ".join(str(release).split())
    page = release.report(str(tmp_path / "report.html")).read_text()
    notes = [record["note"] for record in release.records() if record["statistic"] == "count by diagnosis"]
    assert all(values in text for text in (shown, page, release.to_json(), *notes)) and len(notes) == 2
    assert values in own.released(release.request_id)["count by diagnosis"].note
    own.close()


def test_a_top_of_few_found_values_says_that_others_may_be_more_frequent(tmp_path: Path) -> None:
    table = pa.table({"diagnosis": ["flu", "cold"] * 2_000})
    people = ft.dataset(table, schema={"diagnosis": ft.unknown("text")}, name="people")
    own = ft.Study(people, epsilon=90.0, delta=1e-6, ledger=tmp_path / "study.db")
    own.discover("diagnosis", epsilon=40.0).release()
    release = own.plan(ft.top("diagnosis", 5), ft.top("diagnosis", 2)).release()
    words = "only 2 values were found: others may be more frequent than these"
    assert words in release["top 5 of diagnosis"].note and words not in release["top 2 of diagnosis"].note
    own.close()


def test_a_count_that_finds_its_values_says_so(tmp_path: Path) -> None:
    own = study(tmp_path)
    answer = own.plan(ft.count(by="diagnosis", of="people", max_cells=1)).release()["count of people by diagnosis"]
    assert "the values of diagnosis were found in the data: others count as missing" in answer.note
    own.close()


def numbered(tmp_path: Path) -> ft.Study:
    table = pa.table({"ward": [str(1 + n % 12) for n in range(6_000)], "sex": ["F", "M"] * 3_000})
    people = ft.dataset(table, schema={"ward": ft.unknown("text"), "sex": ["F", "M"]}, name="people")
    return ft.Study(people, epsilon=90.0, delta=1e-6, ledger=tmp_path / "study.db")


def test_found_numbers_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    own, order = numbered(tmp_path), tuple(str(number) for number in range(1, 13))
    counted = own.plan(ft.count(by="ward"), epsilon=20.0).release()
    assert counted["count by ward"].labels == order
    finding = own.discover("ward", epsilon=20.0).release()["ward"]
    assert tuple(finding.facts["values"]) == order and "(1, 2, 3, 4, 5, 6, ...)" in finding.sentence
    assert own.plan(ft.count(by=["ward", "sex"]), epsilon=20.0).release()["count by ward and sex"].labels[:4] == (
        ("1", "F"),
        ("1", "M"),
        ("2", "F"),
        ("2", "M"),
    )
    own.close()


def test_values_that_an_older_version_found_are_shown_in_the_order_of_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema keeps the order of the finding, by which requests are known: the same request costs nothing."""
    own = numbered(tmp_path)
    with monkeypatch.context() as older:
        older.setattr(sys.modules[KeySearch.__module__], "natural_key", lambda values: str)
        own.discover("ward", epsilon=20.0).release()
        older.setattr("farthing.study.release.in_natural_order", lambda answer: answer)
        first = own.plan(ft.count(by="ward"), epsilon=20.0).release()
        assert first["count by ward"].labels[:3] == ("1", "10", "11")
    again = own.plan(ft.count(by="ward"), epsilon=20.0).release()
    answer, then = again["count by ward"], first["count by ward"]
    assert again.repeated and again.request_id == first.request_id
    assert answer.labels == tuple(str(number) for number in range(1, 13))
    assert [float(answer[ward].values) for ward in answer] == [float(then[ward].values) for ward in answer]
    assert [record["cell"] for record in again.records()][:3] == ["1", "2", "3"]
    assert own.discover("ward").cost == 0
    own.close()


def test_a_number_of_found_values_is_never_more_than_were_found(tmp_path: Path) -> None:
    """In every face, whatever the noise; without groups it counts those that were not found too, and says so."""
    own = numbered(tmp_path)
    own.discover("ward", epsilon=20.0).release()
    asked = ft.count_distinct("ward", by="sex"), ft.count_distinct("ward", name="all wards")
    release = own.plan(*asked, epsilon=0.001).release()
    groups = [record for record in release.records() if record["cell"]]
    assert len(groups) == 2
    for record in groups:
        assert 0 <= record["lower"] <= record["value"] <= record["upper"] <= 12
        assert record["lower_at_once"] >= 0 and record["upper_at_once"] <= 12
    form = release.to_dict()["answers"][0]
    assert max(*form["values"], *form["upper"], *(max(ends[1]) for ends in form["intervals"].values())) <= 12
    assert "12 listed values" in str(own.plan(*asked, epsilon=0.001))
    assert release.counts["all wards"] == "different values (found or not)"
    own.close()


def test_what_was_searched_in_vain_is_refused_with_a_way_out_and_promises_no_errors(tmp_path: Path) -> None:
    """A plan after it showed errors "if this is found", and its discover() returned the same nothing for ever."""
    own = study(tmp_path, cells=[f"text {number}" for number in range(1_200)])
    words = r"at a cost of epsilon 1, and cannot be used: no value found; .*study.discover\('diagnosis', epsilon=..., "
    asked = ft.mean("age", by="diagnosis")
    with pytest.raises(InvalidValue, match=words):
        own.plan(asked, epsilon=10.0).discover()
    paid = own.budget.spent.upper
    for again in (asked, ft.count(by="diagnosis", of="people", max_cells=1), ft.top("diagnosis", 3)):
        with pytest.raises(InvalidValue, match=words):
            own.plan(again, epsilon=10.0)
    assert own.budget.spent.upper == paid and own.budget.count == 1
    assert "To be found first" in str(own.discover("diagnosis", epsilon=5.0, fresh=True))
    own.close()
