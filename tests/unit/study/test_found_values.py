"""Values that a study has found: used by later plans for nothing, and no reason to pay again for earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import farthing as ft
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
