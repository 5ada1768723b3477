"""Whatever a refusal offers over HTTP is accepted when it is followed to the letter, with the digits that are shown."""

from __future__ import annotations

import copy
import re
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.data.sources import open_source
from farthing.data.table_identity import pieces_of
from farthing.errors import InvalidValue, RequestRefused
from farthing.server.jobs.job_runner import refuse_dearer
from farthing.server.services.dataset_service import study_of
from farthing.study.sessions.session_defaults import SessionOptions, open_wished_session
from unit.server.conftest import DATASET, DECLARATION, Served, served_in

PLANS, SESSIONS = "/api/v1/plans/price", "/api/v1/sessions/price"
EXPECTED = {"rows": 60, "income": [40_000, 10_000]}


def _fields(answer: Any) -> tuple[dict[str, Any], str]:
    assert answer.status_code in (409, 422), answer.text
    error = answer.json()["error"]
    return error["fields"], error["message"]


@pytest.mark.slow
def test_beside_two_locks_every_offer_of_the_planner_is_accepted(curator: TestClient) -> None:
    """An eighth of an error is asked for; how other shares fare is tried in unit/study/test_offers.py."""
    statistics: list[dict[str, Any]] = [
        {"kind": "count"},
        {"kind": "histogram", "column": "age", "bins": 10},
        {"kind": "mean", "column": "income"},
    ]
    draft = {"dataset": DATASET, "statistics": statistics, "expected": EXPECTED, "epsilon": 1.0}
    seen = curator.post(PLANS, json=draft).json()["statistics"]
    for entry, one in zip(statistics[1:], seen[1:], strict=True):  # two locks at what they are
        entry["within"] = float(f"{1.05 * one['worst_error']:.3g}")
    statistics[0]["within"] = seen[0]["worst_error"] / 8
    fields, message = _fields(curator.post(PLANS, json=draft))
    said = dict(re.findall(r"closest that fits for '([^']+)' is within ([\d.e+-]+) ", message))
    assert said and {name: float(text) for name, text in said.items()}.items() <= fields["offers"].items()
    assert fields["holds"] == {name: "in 999 of 1,000 releases" for name in fields["offers"] if name.startswith("mean")}
    names = [one["name"] for one in seen]
    for name, within in fields["offers"].items():
        followed = copy.deepcopy(draft)
        followed["statistics"][names.index(name)]["within"] = within  # type: ignore[index]
        answer = curator.post(PLANS, params={"proof": name in said}, json=followed)  # what the message names is proven
        assert answer.status_code == 200, (name, within, answer.text)


@pytest.mark.slow
def test_an_offer_is_accepted_from_whoever_asks_anew(curator: TestClient) -> None:
    """The search of an offer began near the refusal, and found a plan that a search from the beginning did not."""
    statistics: list[dict[str, Any]] = [
        {"kind": "mean", "column": "age", "by": ["sex"], "within": 36.7},
        {"kind": "sum", "column": "income", "within": 480_000.0},
        {"kind": "quantile", "column": "income", "probability": 0.9},
    ]
    draft = {"dataset": DATASET, "statistics": statistics, "expected": EXPECTED, "epsilon": 2.0}
    fields, _ = _fields(curator.post(PLANS, json=draft))
    statistics[1]["within"] = fields["offers"]["sum of income"]
    assert curator.post(PLANS, json=draft).status_code == 200


@pytest.mark.slow
def test_an_alpha_that_is_offered_is_kept(curator: TestClient) -> None:
    """It was rounded to the nearest of three digits, and half of the time refused."""
    for queries, epsilon, rows in (
        (50, 0.05, 40_000),
        (333, 0.31, 7_777),
        (1_000, 1.0, 12_345),
        (7, 0.9, None),
    ):
        asked = {
            "dataset": DATASET, "alpha": 1e-5, "queries": queries, "columns": ["sex", "age"], "epsilon": epsilon,
            "rows": rows,
        }  # fmt: skip
        fields, message = _fields(curator.post(SESSIONS, json=asked))
        said = re.search(r"must be at least ([\d.e-]+) for", message)
        assert said is not None and float(said[1]) == fields["closest"]
        answer = curator.post(SESSIONS, json={**asked, "alpha": float(said[1])})
        assert answer.status_code == 200, (asked, answer.text)


@pytest.mark.slow
def test_what_is_said_to_be_left_of_a_budget_or_a_grant_can_be_planned_with(tmp_path: Any) -> None:
    """0.98 was said where 0.979999999 was left."""
    served = served_in(tmp_path)
    try:
        ada, bob = served.signed_in("ada"), served.signed_in("bob")
        served.state.ledger(served.caller("ada")).charge(DATASET, 0.020000004, request_id="before", analyst="bob")
        for client, wanted in ((bob, 1.2), (ada, 3.2)):
            draft = {"dataset": DATASET, "statistics": [{"kind": "count"}], "epsilon": wanted}
            fields, message = _fields(client.post(PLANS, json=draft))
            said = re.search(r"exceeds the ([\d.]+) left of", message)
            assert said is not None and float(said[1]) <= fields["remaining"]["epsilon"] < wanted
            for much in (float(said[1]), fields["remaining"]["epsilon"]):
                answer = client.post(PLANS, json={**draft, "epsilon": much})
                assert answer.status_code == 200, answer.text
        more = {"epsilon": 1.5, "delta": 1e-7}
        assert ada.put(f"/api/v1/datasets/{DATASET}/grants/bob", json=more).status_code == 200
        grown = {"dataset": DATASET, "statistics": [{"kind": "count"}], "epsilon": 1.2}
        assert bob.post(PLANS, json=grown).status_code == 200
    finally:
        served.state.close()


@pytest.mark.slow
def test_a_price_that_is_said_is_enough_to_confirm(curator: TestClient, served: Served) -> None:
    """0.123457 was said of 0.1234574, and refused when it was confirmed."""
    plan: Any = SimpleNamespace(cost=SimpleNamespace(upper=0.1234574))
    with pytest.raises(RequestRefused) as refused:
        refuse_dearer(plan, 0.1)
    said = re.search(r"would cost epsilon=([\d.]+) now", str(refused.value))
    assert said is not None
    refuse_dearer(plan, float(said[1]))
    wish = SessionOptions(alpha=0.9, queries=2, columns=("sex",), rows=40_000, epsilon=0.1234574)
    study = study_of(served.state, served.caller("ada"), DATASET)
    with pytest.raises(InvalidValue) as dearer:
        open_wished_session(study, wish, "a session", confirmed=0.1)
    said = re.search(r"must be at least ([\d.]+), which", str(dearer.value))
    assert said is not None
    open_wished_session(study, wish, "a session", confirmed=float(said[1]))


@pytest.mark.slow
def test_after_many_charges_a_plan_may_use_what_the_clock_has_room_for(tmp_path: Any) -> None:
    """Its slider ended at the largest single charge, a seventh of that."""
    served = served_in(tmp_path)
    try:
        ada, bob = served.signed_in("ada"), served.signed_in("bob")
        ledger = served.state.ledger(served.caller("ada"))
        for number in range(110):
            ledger.charge(DATASET, 0.01, request_id=f"before {number}", analyst="bob")
        draft: dict[str, Any] = {
            "dataset": DATASET, "expected": EXPECTED,
            "statistics": [{"kind": "histogram", "column": column} for column in ("age", "sex")],
        }  # fmt: skip
        for client in (bob, ada):
            budget = client.get(f"/api/v1/datasets/{DATASET}/budget", params={"odometer": True}).json()
            left, room = budget["remaining"]["epsilon"], budget["room"]["epsilon"]
            assert budget["would_fit"][1]["count"] * budget["would_fit"][1]["epsilon"] > left
            assert 0.01 < budget["odometer"] < 1.2 and "may claim epsilon" in budget["odometer_sentence"]
            if client is bob:
                assert room > 3 * left and f"may cost up to {str(room)[:5]}." in budget["sentence"]
                assert f"one plan of epsilon {str(room)[:5]}" in budget["would_fit_sentence"]
            draft["epsilon"] = 9.0
            fields, message = _fields(client.post(PLANS, json=draft))
            said = re.search(r"exceeds the ([\d.]+) left of", message)
            assert said is not None and fields["remaining"]["epsilon"] == room
            for much in (float(said[1]), room, 0.6 * room, None):
                for proof in (True, False):
                    answer = client.post(PLANS, params={"proof": proof}, json={**draft, "epsilon": much})
                    assert answer.status_code == 200, answer.text
                    view = answer.json()
                    assert (
                        view["cost"]["upper"] <= (much or room) * (1 + 1e-9)
                        and view["budget"]["room"]["epsilon"] == room
                    )
                    assert (
                        sum(view["bar"][part] for part in ("spent", "plan", "waiting", "free"))
                        <= 1.001 * view["bar"]["total"]
                    )
    finally:
        served.state.close()


def test_a_budget_that_another_one_of_the_same_table_limits_says_so(tmp_path: Any) -> None:
    served = served_in(tmp_path)
    try:
        ada = served.signed_in("ada")
        again = {**DECLARATION, "name": "people again", "epsilon": 5.0}
        # Earlier versions opened a second budget for a table, and charged both.
        served.state.root.register("people again", 5.0, 1e-6, unit="row, add-remove")
        served.state.root.attach("people", texts := pieces_of(open_source(served.settings.data / "people.csv"))[0].kept)
        served.state.root.attach("people again", texts)
        assert ada.post("/api/v1/datasets", json={**again, "account": "people again"}).status_code == 201
        draft = {"dataset": "people again", "statistics": [{"kind": "count"}]}
        budget = ada.post(PLANS, json=draft).json()["budget"]
        assert (budget["total"]["epsilon"], budget["remaining"]["epsilon"]) == (5.0, 3.0)
        assert budget["limited_by"] == DATASET
        assert "The budget of people pays for this table too, and has only epsilon 3 left" in budget["sentence"]
        assert ada.get("/api/v1/datasets/people again").json()["budget"] == budget
    finally:
        served.state.close()
