"""A count by a column whose values nobody listed, on a server: planned, released and read like any other plan."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import farthing as ft
from farthing.adaptive.discovery.key_search import KeySearch
from farthing.errors import InvalidValue, RequestRefused
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import HERE, Served, once_a_module, served_in, waited_for

COUNT = {"kind": "count", "by": "drug", "of": "people", "max_cells": 1}
STATISTIC = ft.count(by="drug", of="people", max_cells=1)
NAME = "count of people by drug"
DECLARATION: dict[str, Any] = {
    "unit": "who",
    "max_rows": 4,
    "columns": {"drug": {"unknown": "text", "trim": True, "lower": True}, "age": {"range": [0, 99]}},
    "epsilon": 100.0,  # so much that no noise moves what is found
    "delta": 1e-6,
}
pytestmark = pytest.mark.draws(false_alarm=1e-12, miss=0)


@pytest.fixture(scope=once_a_module)
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = served_in(tmp_path_factory.mktemp("found counts"))
    worker = Worker(made.state, look=0.02)
    thread = threading.Thread(target=worker.run)
    thread.start()
    made.add("carl", "analyst")
    yield made
    worker.drain()
    thread.join(600)
    made.state.close()


def declared(served: Served, name: str, **changes: Any) -> dict[str, Any]:
    """A table of its own, and the draft of a count by its drugs."""
    lines = [f"{n},{(' Aspirin', 'ibuprofen ', 'aspirin')[n % 3]},{n % 90}" for n in range(900)]
    text = "\n".join(["who,drug,age", *lines, f"900,{name},1"]) + "\n"
    (served.settings.data / f"{name}.csv").write_text(text, encoding="utf-8")
    body = {**DECLARATION, "name": name, "source": f"{name}.csv", **changes}
    answer = served.signed_in("ada").post("/api/v1/datasets", json=body)
    assert answer.status_code in (200, 201), answer.text
    return {"dataset": name, "statistics": [COUNT], "epsilon": 40.0}


def released(client: Any, draft: dict[str, Any], request_id: str, **more: Any) -> Any:
    return waited_for(client, "/api/v1/releases", {"draft": draft, "request_id": request_id, "wait": 30, **more})


def refusal(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def charges(served: Served, name: str, analyst: str | None = None) -> int:
    return served.state.root.budget(name, analyst).count


def test_it_is_planned_released_once_and_read_with_what_was_paid(served: Served) -> None:
    ada, draft = served.signed_in("ada"), declared(served, "planned")
    plans = [ada.post(f"/api/v1/plans/price?proof={proof}", json=draft).json() for proof in ("true", "false")]
    for plan in plans:
        (one,) = plan["statistics"]
        assert "kept of each, chosen at random, appears 95 times in 100, with a count within" in one["sentence"]
        assert plan["assumed"] == plan["assumptions"] == []
        assert (plan["finds"], plan["cost"]["upper"], one["labels"], one["cells"]) == ("drug", 40.0, [], 1)
        assert plan["released"] is None and 0 < plan["delta"] <= 1e-6 / 64
    saved = ada.post("/api/v1/plans", json=draft).json()
    assert saved["error"] is None and charges(served, "planned") == 0
    assert refusal(released(ada, draft, "dear", confirmed_epsilon=39.0)) == (409, "conflict")

    answer = released(ada, draft, "r-1", confirmed_epsilon=40.0)
    assert answer.status_code == 200, answer.text
    view = answer.json()
    cells = view["answers"][0]["cells"]
    assert [(cell["label"], cell["value"]) for cell in cells] == [("aspirin", 600.0), ("ibuprofen", 300.0)]
    assert view["charged"]["epsilon"] == 40.0 and view["receipt"] and charges(served, "planned") == 1
    assert "epsilon 40 was charged, once" in view["sentence"]
    listed = ada.get("/api/v1/releases?dataset=planned").json()["releases"]
    assert listed[0]["charged"] == view["charged"] and listed[0]["request_id"] == "ada:r-1"
    for form in ("csv", "json", "html", "python", "receipt"):
        assert ada.get("/api/v1/releases/r-1/download", params={"format": form}).status_code == 200
    # The same id, another id and the saved plan return the same answer for nothing.
    assert released(ada, draft, "r-1").json()["answers"] == view["answers"]
    other = released(ada, draft, "r-2").json()
    assert (other["answers"], other["receipt"]) == (view["answers"], view["receipt"])
    assert charges(served, "planned") == 1
    again = ada.post("/api/v1/plans/price", json=draft).json()
    assert again["released"] in ("ada:r-1", "ada:r-2")
    # Its values are known to every later plan, with what was paid for them.
    (unknown,) = ada.get("/api/v1/datasets/planned").json()["unknown"]
    assert unknown["finding"]["paid"]["epsilon"] == 40.0
    later = ada.post("/api/v1/plans/price", json={**draft, "epsilon": 20.0}).json()
    assert later["finds"] is None and later["statistics"][0]["labels"] == ["aspirin", "ibuprofen"]


def test_a_client_plans_and_releases_it_in_the_same_words(served: Served) -> None:
    draft = declared(served, "remote")
    tested = served.with_token("ada", "read", "plan", "spend", "manage")
    token = tested.headers["Authorization"].removeprefix("Bearer ")
    study = ft.Client(HERE, token, transport=tested._transport).study("remote")
    plan = study.plan(STATISTIC, epsilon=draft["epsilon"])
    assert "with a count within" in plan[NAME].sentence and "found and counted at once" in str(plan)
    with pytest.raises(InvalidValue):
        plan.release(fresh=True)
    release = plan.release()
    assert dict(zip(release[NAME].labels, release[NAME].values, strict=True)) == {"aspirin": 600, "ibuprofen": 300}
    assert release.cost == 40.0 == release.receipt.epsilon
    repeated = study.plan(STATISTIC, epsilon=draft["epsilon"])
    assert "It was released before" in str(repeated)
    assert repeated.release().to_dict() == release.to_dict() and charges(served, "remote") == 1


def test_other_statistics_stand_beside_it_in_one_charge(served: Served) -> None:
    ada, draft = served.signed_in("ada"), declared(served, "beside")
    mean = {"kind": "mean", "column": "age"}
    draft["statistics"] = [{**COUNT, "weight": 8.0}, mean]
    plans = [ada.post(f"/api/v1/plans/price?proof={proof}", json=draft).json() for proof in ("true", "false")]
    for plan in plans:
        assert (plan["finds"], [one["name"] for one in plan["statistics"]]) == ("drug", [NAME, "mean of age"])
        assert plan["cost"]["upper"] <= 40.0 and plan["statistics"][0]["weight"] == 8.0
        assert plan["statistics"][0]["epsilon"] == pytest.approx(80 / 3, rel=1e-3)
    answer = released(ada, draft, "b-1", confirmed_epsilon=plans[0]["cost"]["upper"])
    assert answer.status_code == 200, answer.text
    cells = {one["name"]: one["cells"] for one in answer.json()["answers"]}
    assert [(cell["label"], cell["value"]) for cell in cells[NAME]] == [("aspirin", 600.0), ("ibuprofen", 300.0)]
    assert abs(cells["mean of age"][0]["value"] - 44.5) < 1 and charges(served, "beside") == 1
    assert released(ada, draft, "b-2").json()["answers"] == answer.json()["answers"]
    assert charges(served, "beside") == 1

    declared(served, "beside-2")
    tested = served.with_token("ada", "read", "plan", "spend", "manage")
    token = tested.headers["Authorization"].removeprefix("Bearer ")
    study = ft.Client(HERE, token, transport=tested._transport).study("beside-2")
    plan = study.plan(STATISTIC, ft.mean("age"), epsilon=40.0).weight(NAME, 8.0)
    release = plan.release()
    assert list(release) == [NAME, "mean of age"] and release[NAME].labels == ("aspirin", "ibuprofen")
    again = study.plan(STATISTIC, ft.mean("age"), epsilon=40.0).weight(NAME, 8.0).release()
    assert again.to_dict() == release.to_dict() and charges(served, "beside-2") == 1


def test_different_values_are_counted_though_nobody_listed_them(served: Served) -> None:
    ada, draft = served.signed_in("ada"), declared(served, "different")
    draft["statistics"] = [{"kind": "count_distinct", "column": "drug", "max_cells": 1}]
    for proof in ("true", "false"):
        plan = ada.post(f"/api/v1/plans/price?proof={proof}", json=draft).json()
        assert plan["statistics"][0]["counts"] == "different values (at most 1 of each who)" and plan["finds"] is None
    draft["statistics"].append(COUNT)
    assert ada.post("/api/v1/plans/price?proof=false", json=draft).json()["finds"] == "drug"
    answer = released(ada, draft, "d-1").json()["answers"]
    assert answer[0]["cells"][0]["value"] == 3.0 and len(answer[1]["cells"]) == 2
    assert charges(served, "different") == 1


def test_an_analyst_pays_from_a_grant_and_a_request_is_refused_with_the_way_out(served: Served) -> None:
    draft = declared(served, "granted")
    assert refusal(released(served.signed_in("eve"), draft, "r-1")) == (403, "not_allowed")
    assert refusal(released(served.signed_in("carl"), draft, "r-1")) == (404, "not_found")
    served.state.ledger(served.caller("ada")).grant("granted", "bob", 45.0, 1e-7)
    bob = served.signed_in("bob")
    assert refusal(served.with_token("bob", "read", "plan").post("/api/v1/releases", json={})) == (403, "not_allowed")
    assert refusal(released(bob, {**draft, "epsilon": 46.0}, "r-0")) == (409, "budget_exceeded")
    asked = bob.post("/api/v1/requests", json={"draft": draft, "purpose": "to know"})
    assert refusal(asked) == (409, "undiscovered")
    assert "find it first" in asked.json()["error"]["message"]
    assert charges(served, "granted") == 0
    answer = released(bob, draft, "r-1")
    assert answer.status_code == 200, answer.text
    assert charges(served, "granted", "bob") == 1 and answer.json()["charged"]["epsilon"] == 40.0
    assert bob.get("/api/v1/releases/r-1").json()["answers"] == answer.json()["answers"]
    # It is bob's: others neither read it nor know its values.
    assert refusal(served.signed_in("carl").get("/api/v1/releases/bob:r-1")) == (404, "not_found")
    assert served.signed_in("ada").get("/api/v1/datasets/granted").json()["unknown"][0]["finding"] is None
    assert served.signed_in("ada").post("/api/v1/plans/price", json=draft).json()["finds"] == "drug"


@pytest.mark.parametrize(
    "change",
    [
        {"statistics": [COUNT, {"kind": "mean", "column": "age", "by": "drug"}]},
        {"statistics": [{**COUNT, "within": 3.0}, {"kind": "mean", "column": "age"}]},
        {"statistics": [{**COUNT, "where": "age > 3"}]},
        {"statistics": [{**COUNT, "weight": 2.0}]},
        {"statistics": [{"kind": "count", "by": "drug"}]},
        {"reserve": 1.0},
    ],
)
def test_what_is_no_count_of_people_is_found_first(served: Served, change: dict[str, Any]) -> None:
    name = "other"
    if served.signed_in("ada").get(f"/api/v1/datasets/{name}").status_code != 200:
        declared(served, name)
    draft = {"dataset": name, "statistics": [COUNT], "epsilon": 40.0, **change}
    assert refusal(served.signed_in("ada").post("/api/v1/plans/price", json=draft)) == (409, "undiscovered")


def test_a_run_that_was_lost_or_found_nothing_stays_paid_and_is_not_paid_for_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, draft = served.signed_in("ada"), declared(served, "lost")

    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(KeySearch, "run", fails)
        assert refusal(released(ada, draft, "lost-1"))[1] == "answer_forfeited"
    assert refusal(released(ada, draft, "lost-1"))[1] == "answer_forfeited" and charges(served, "lost") == 1
    view = ada.get("/api/v1/releases/lost-1").json()
    assert view["charged"]["epsilon"] == 40.0 and "was charged epsilon 40" in view["sentence"]
    anew = released(ada, draft, "lost-2")
    assert anew.status_code == 200 and charges(served, "lost") == 2, anew.text

    # So little epsilon that no value can be shown.
    draft = {**declared(served, "rare"), "epsilon": 0.02}
    nothing = released(ada, draft, "rare-1")
    assert refusal(nothing)[1] == "answer_forfeited" and charges(served, "rare") == 1, nothing.text
    assert "no value of drug is shared by enough units" in nothing.json()["error"]["message"]
    assert ada.get("/api/v1/releases/rare-1").json()["charged"]["epsilon"] == 0.02
    assert refusal(released(ada, draft, "rare-1"))[1] == "answer_forfeited" and charges(served, "rare") == 1
    with pytest.raises(RequestRefused, match="find it first"):
        tested = served.with_token("ada", "read", "plan", "spend", "manage")
        token = tested.headers["Authorization"].removeprefix("Bearer ")
        ft.Client(HERE, token, transport=tested._transport).study("rare").plan(STATISTIC, epsilon=0.02)
