"""A plan that is asked for, approved, changed and released: what was shown is what is charged, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidValue, NotAllowed
from farthing.ledger import open_ledger
from farthing.study import Study
from farthing.study.documents.requested_plan import requested_plan
from farthing.study.plan_contents import contents_of, least_in_cell

ROWS = 2_000


@dataclass
class Place:
    """A ledger with a curator, and an analyst whose grant is 0."""

    people: ft.data.Dataset
    ada: Study

    def bob(self) -> Study:
        ledger = self.ada.ledger.acting("bob", "analyst")
        return Study(self.people, 1.0, 1e-9, ledger=ledger, name="people")

    @property
    def spent(self) -> float:
        return self.ada.budget.spent_upper


def _columns(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        "sex": rng.choice(["F", "M"], rows),
        "age": rng.integers(0, 100, rows),
        "income": rng.random(rows) * 1000,
        "day": [date(2025, 1 + n % 3, 3) for n in range(rows)],
    }


SCHEMA = {
    "sex": ["F", "M"],
    "age": (0, 99),
    "income": (0.0, 1000.0),
    "day": (date(2025, 1, 1), date(2025, 12, 31)),
}


def _dataset(**words: Any) -> ft.data.Dataset:
    return ft.dataset(pyarrow.table(_columns(ROWS)), schema=SCHEMA, name="people", **words)


@contextmanager
def _opened(people: ft.data.Dataset, folder: Path) -> Iterator[Place]:
    with open_ledger(folder / "study.db", actor="ada") as ledger:
        study = Study(people, 1.0, 1e-9, ledger=ledger, name="people")
        study.register()
        ledger.grant("people", "bob", 0.0)
        yield Place(people, study)
        assert ledger.verify().ok


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with _opened(_dataset(), tmp_path) as made:
        yield made


@pytest.fixture
def sized(tmp_path: Path) -> Iterator[Place]:
    """A table whose number of rows is public."""
    with _opened(_dataset(rows=ROWS, neighbours="replace"), tmp_path) as made:
        yield made


def asked(study: Study) -> ft.study.Plan:
    plan = study.plan(ft.count(by="sex"), ft.mean("income", by="sex"), epsilon=0.3)
    return plan.require("count by sex", within=30).weight("mean of income by sex", 2.0)


@pytest.mark.slow
def test_a_script_that_asks_and_runs_again_after_the_approval_pays_once(place: Place) -> None:
    plan = asked(place.bob())
    with pytest.raises(BudgetExceeded, match="the grant of 'bob'"):
        plan.release()
    request = plan.submit("the yearbook")
    shown = {name: plan[name].error() for name in ("count by sex", "mean of income by sex")}
    place.ada.plan(ft.count(), epsilon=0.2).release()  # which moves what every later plan would be made of
    place.ada.ledger.requests.approve(request.id)
    release = asked(place.bob()).release()
    assert release.cost == plan.cost.upper and release.receipt.epsilon == request.epsilon
    assert {each["name"]: each["error"] for each in release.plan["statistics"]} == shown
    again = asked(place.bob()).release()
    assert again.request_id == release.request_id and again.records() == release.records()
    assert place.ada.ledger.requests.one(request.id).state == "used"
    assert place.ada.ledger.budget("people").count == 2
    with pytest.raises(BudgetExceeded):
        asked(place.bob()).release(fresh=True)
    with pytest.raises(InvalidValue, match="was released before"):
        asked(place.bob()).submit("once more")


@pytest.mark.slow
def test_a_plan_of_the_same_price_that_differs_in_anything_is_refused(place: Place) -> None:
    request = asked(place.bob()).submit("the yearbook")
    place.ada.ledger.requests.approve(request.id)
    bob = place.bob()
    for other in (
        bob.plan(ft.count(by="sex"), ft.mean("income", by="sex"), epsilon=0.3),
        bob.plan(ft.count(by="age"), epsilon=0.1),
        asked(Study(place.people.where("age < 3"), 1.0, 1e-9, ledger=bob.ledger, name="people")),
    ):
        with pytest.raises(BudgetExceeded, match=f"request {request.id} is approved, but for a different plan"):
            other.release()
    assert place.spent == 0


@pytest.mark.slow
def test_a_curator_changes_a_request_and_the_analyst_releases_the_new_version(place: Place) -> None:
    request = asked(place.bob()).submit("the yearbook")
    hers = Study(place.people, 1.0, 1e-9, ledger=place.ada.ledger, name="people", analyst="bob")
    less = hers.plan(ft.count(by="sex"), epsilon=0.1)
    changed = less.change_request(request.id, "counts will do")
    assert (changed.version, changed.state, changed.reason) == (2, "approved", "counts will do")
    with pytest.raises(BudgetExceeded):
        asked(place.bob()).release()
    plan = requested_plan(place.bob(), request.id)
    assert plan.cost.upper == less.cost.upper and list(plan.release()) == ["count by sex"]
    assert place.spent == pytest.approx(0.1, abs=1e-6)


@pytest.mark.slow
def test_a_request_made_by_hand_or_of_somebody_else_has_no_plan_here(place: Place) -> None:
    request = asked(place.bob()).submit("the yearbook")
    with pytest.raises(InvalidValue, match="is that of 'bob'"):
        requested_plan(place.ada, request.id)
    eve = Study(place.people, 1.0, 1e-9, ledger=place.ada.ledger, name="people", analyst="bob").plan(
        ft.count(), epsilon=0.1
    )
    place.ada.ledger.grant("people", "eve", 0.0)
    others = place.ada.ledger.acting("eve", "analyst").requests.submit("people", 0.1, digest="d", purpose="p")
    with pytest.raises(InvalidValue, match="is that of 'eve'"):
        eve.change_request(others.id, "mine")
    with pytest.raises(InvalidValue, match="a curator can release without a request"):
        place.ada.plan(ft.count(), epsilon=0.1).submit("me")


def test_without_a_grant_a_plan_needs_an_epsilon_and_with_one_a_request_is_asked_for(place: Place) -> None:
    with pytest.raises(InvalidValue, match="what a curator is asked for"):
        place.bob().plan(ft.count())
    with pytest.raises(BudgetExceeded, match="left of the budget of 'people'"):
        place.bob().plan(ft.count(), epsilon=1.5)
    place.ada.ledger.grant("people", "bob", 0.1)
    with pytest.raises(BudgetExceeded, match="grant of 'bob'"):
        place.bob().plan(ft.count(), epsilon=0.3)
    request = place.bob().on_request().plan(ft.count(), epsilon=0.3).submit("more than the grant")
    assert request.epsilon == pytest.approx(0.3, abs=1e-6)


@pytest.mark.slow
def test_a_plan_within_a_policy_needs_no_request(sized: Place) -> None:
    requests = sized.ada.ledger.requests
    requests.grant_policy(
        "people", "bob", 0.1, 1e-10, per="quarter", statistics=["count", "histogram"], columns=["sex", "age"], cell=100
    )
    bob = sized.bob()
    bob.plan(ft.count(by="sex"), epsilon=0.06).release()
    for beyond, reason in (
        (bob.plan(ft.mean("age"), epsilon=0.01), "mean is not one of the statistics"),
        (bob.plan(ft.count(where="income < 10"), epsilon=0.01), "'income' is not one of the columns"),
        (bob.plan(ft.histogram("age", bins=10), epsilon=0.06), "this quarter has epsilon=0.04"),
    ):
        with pytest.raises(BudgetExceeded, match=reason):
            beyond.release()
    bob.plan(ft.histogram("age", bins=10), epsilon=0.04).release()
    assert requests.policies()[0].left < 1e-6 and sized.ada.ledger.budget("people").count == 2


@pytest.mark.slow
def test_cells_of_few_people_are_withheld_whatever_the_analyst_declares(place: Place) -> None:
    """About 60 of 2,000 people are 97 or older, 1,000 are younger than 50. The noise moves a count by some ten, and by
    a hundred never. The rows that bob declares play no part."""
    place.ada.ledger.requests.grant_policy("people", "bob", 0.9, 1e-10, per="year", cell=200)
    ledger = place.ada.ledger.acting("bob", "analyst")
    boast = _dataset(rows=10**9)
    bob = Study(boast, 1.0, 1e-9, ledger=ledger, name="people")
    ages, means = ft.histogram("age", bins=[0, 50, 97, 99]), ft.mean("income", by="sex")
    for lacking in (bob.plan(means, epsilon=0.1), bob.plan(means, ft.count(), epsilon=0.1)):
        with pytest.raises(BudgetExceeded, match="add a count by the same columns"):
            lacking.release()
    release = bob.plan(ages, means, ft.count(by="sex"), ft.count(where="age >= 98"), epsilon=0.9).release()
    shown = release["histogram of age"]
    assert np.isfinite(shown.values).tolist() == [True, True, False]
    assert not np.isfinite([shown.lower[2], shown.upper[2]]).any() and "1 of 3 cells is withheld" in shown.note
    assert (
        np.isnan(release["count where age >= 98"].values) and np.isfinite(release["mean of income by sex"].values).all()
    )
    stored = ledger.stored(release.request_id)
    assert stored is not None and stored.answer is not None
    recorded = json.loads(stored.answer)  # which does not have it either
    kept = {one["name"]: one for one in recorded["finished"]["answers"]}["histogram of age"]
    assert recorded["answers"] == {} and kept["values"][2] is None and kept["raw"][2] is None
    assert "97 to 99" in str(release) and release.to_json() and release.records()[2]["statistic"]
    place.ada.ledger.requests.grant_policy("people", "bob", 0.0)
    again = bob.plan(ages, means, ft.count(by="sex"), ft.count(where="age >= 98"), epsilon=0.9).release()
    assert again.repeated and np.isnan(again["histogram of age"].values[2])


def test_a_plan_that_was_approved_shows_what_the_curator_saw(sized: Place) -> None:
    sized.ada.ledger.requests.grant_policy("people", "bob", 0.1, 1e-10, cell=10**6)
    plan = sized.bob().plan(ft.count(by="sex"), epsilon=0.3)
    sized.ada.ledger.requests.approve(plan.submit("the yearbook").id)
    assert plan.withheld is None and np.isfinite(plan.release()["count by sex"].values).all()
    planned = sized.bob().plan(ft.count(by="sex"), epsilon=0.05)
    said = "cells of fewer than 1,000,000 people may be withheld, as the policy of bob says"
    assert said in str(planned).replace("\n  ", " ") and json.loads(planned.to_json())["withheld"].startswith(said)
    assert sized.ada.plan(ft.count(by="sex"), epsilon=0.05).withheld is None
    covered = planned.release()
    assert sized.bob().plan(ft.count(by="sex"), epsilon=0.05).withheld is None  # the answers are what they are
    assert np.isnan(covered["count by sex"].values).all()
    filtered = Study(sized.people.where("age < 50"), 1.0, 1e-9, ledger=sized.bob().ledger, name="people")
    narrow = filtered.plan(ft.count(), epsilon=0.01)
    assert contents_of(narrow, narrow.asked, 0).columns is None and least_in_cell(narrow) is None


SPENDING = {
    "plan": lambda study: study.plan(ft.count(), epsilon=0.1).release(),
    "fit": lambda study: study.plan(ft.count(), epsilon=0.5).release(request_id="mine"),
    "rows": lambda study: study.count_rows(),
    "session": lambda study: study.query_session(0.1, 20, columns="age", rows=10**6, epsilon=0.5),
    "monitor": lambda study: study.monitor("age >= 65", threshold=100, alerts=2, epsilon=0.2),
    "holdout": lambda study: study.holdout(study.dataset, queries=5, corrections=1, epsilon=0.8),
    "series": lambda study: study.series(date="day", first="2025-01", steps=3, epsilon=0.5, append_only=True),
    "split": lambda study: study.split("sex", 0.2),
    "synthesis": lambda study: study.synthesise(epsilon=0.5),
    "charge": lambda study: study.ledger.charge("people", 0.1, request_id="by hand"),
    "reserve": lambda study: study.ledger.charge("people", 0.1, request_id="by hand", use_reserve="kept"),
    "grant": lambda study: study.ledger.grant("people", "bob", 1.0),
    "policy": lambda study: study.ledger.requests.grant_policy("people", "bob", 1.0),
    "approval": lambda study: study.ledger.requests.approve(study.plan(ft.count(), epsilon=0.1).submit("let me").id),
    "actor": lambda study: study.ledger.acting("ada", "curator"),
    "budget": lambda study: study.ledger.register("another", 5.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", SPENDING)
def test_without_grant_policy_or_approval_nothing_is_spent_in_any_way(request: Any, way: str) -> None:
    place: Place = request.getfixturevalue("sized" if way == "holdout" else "place")  # which needs a public number
    place.ada.ledger.reserve("people", 0.2, name="kept")
    refused = (
        InvalidValue if way == "split" else (BudgetExceeded, NotAllowed)
    )  # which is for curators, with a grant too
    with pytest.raises(refused):
        SPENDING[way](place.bob())
    budget = place.ada.ledger.budget("people")
    assert (budget.count, budget.spent_upper, place.ada.ledger.datasets()) == (0, 0.0, ["people"])


@pytest.mark.slow
def test_an_approval_is_for_one_table_of_the_account(place: Place) -> None:
    number = asked(place.bob()).submit("yearbook").id
    place.ada.ledger.requests.approve(number)
    other = ft.dataset(pyarrow.table(_columns(ROWS // 2)), schema=SCHEMA, name="others")
    Study(other, 1.0, 1e-9, ledger=place.ada.ledger, account="people").register()
    bob = place.ada.ledger.acting("bob", "analyst")
    with pytest.raises(BudgetExceeded, match="left in the grant"):
        asked(Study(other, 1.0, 1e-9, ledger=bob, account="people")).release()
    assert place.ada.ledger.requests.one(number).state == "approved"
    asked(place.bob()).release()
    assert place.ada.ledger.requests.one(number).state == "used"


def test_a_policy_sees_that_rows_of_some_days_are_chosen(place: Place) -> None:
    place.ada.ledger.requests.grant_policy("people", "bob", 0.5, 1e-10, columns=["sex"])
    ledger = place.ada.ledger.acting("bob", "analyst")
    for chosen in (place.people.during("day", "day", "2025-01-03"), place.people.earliest("day", date(2025, 2, 1))):
        with pytest.raises(BudgetExceeded):
            Study(chosen, 1.0, 1e-9, ledger=ledger, name="people").plan(ft.count(by="sex"), epsilon=0.1).release()
