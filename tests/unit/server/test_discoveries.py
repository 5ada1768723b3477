"""What nobody knows, on a server: declared, priced, found once for those who may pay, and used by later plans."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import farthing as ft
from farthing.adaptive.discovery.value_search import ValueSearch
from farthing.errors import InvalidValue, RequestRefused
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import HERE, Served, once_a_module, served_in, waited_for

NAME = "visits"
PATH = f"/api/v1/datasets/{NAME}/discoveries"
DRAFT = {"dataset": NAME, "statistics": [{"kind": "mean", "column": "cost"}]}
DECLARATION: dict[str, Any] = {
    "name": NAME,
    "source": "visits.csv",
    "unit": "who",
    "max_rows": "auto",
    "columns": {"cost": {"unknown": "number"}, "drug": {"unknown": "text", "trim": True, "lower": True}},
    "epsilon": 100.0,  # so much that no noise moves what is found
    "delta": 1e-6,
}


def visits_csv() -> str:
    lines = [f"{n // 4},{10 + n % 90},{(' Aspirin', 'ibuprofen ')[n % 2]}" for n in range(4_000)]
    return "\n".join(["who,cost,drug", *lines]) + "\n"


@pytest.fixture(scope=once_a_module)
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = served_in(tmp_path_factory.mktemp("discoveries"))
    (made.settings.data / "visits.csv").write_text(visits_csv(), encoding="utf-8")
    (made.settings.data / "more.csv").write_text(visits_csv().replace("\n", "\r\n"), encoding="utf-8")
    worker = Worker(made.state, look=0.02)
    thread = threading.Thread(target=worker.run)
    thread.start()
    answer = made.signed_in("ada").post("/api/v1/datasets", json=DECLARATION)
    assert answer.status_code in (200, 201), answer.text
    made.add("carl", "analyst")
    made.state.ledger(made.caller("ada")).grant(NAME, "bob", 10.0, 1e-7)
    yield made
    worker.drain()
    thread.join(600)
    made.state.close()


def charges(served: Served, analyst: str | None = None) -> int:
    return served.state.root.budget(NAME, analyst).count


def refusal(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def test_a_client_declares_prices_and_finds_in_the_same_words(served: Served) -> None:
    tested = served.with_token("ada", "read", "plan", "spend", "manage")
    token = tested.headers["Authorization"].removeprefix("Bearer ")
    client = ft.Client(HERE, token, transport=tested._transport)
    schema = {"cost": ft.unknown("whole number"), "drug": ft.unknown("text", trim=True)}
    study = client.register("visits 2", "more.csv", schema=schema, unit="who", max_rows="auto", epsilon=3.0, delta=1e-6)
    with pytest.raises(RequestRefused) as refused:
        study.plan(ft.mean("cost"))
    assert refused.value.code == "undiscovered" and refused.value.fields["columns"] == ["cost", "rows per unit"]
    plan = study.discover("cost", epsilon=0.5)
    assert plan.cost == 0.5 and plan.searches[0].prediction in str(plan).replace("\n    ", " ")
    assert study.budget.count == 0
    (finding,) = plan.release().values()
    assert (finding.name, finding.kind) == ("cost", "whole number") and study.budget.count == 1
    again = study.discover("cost", epsilon=0.9)
    assert again.cost == 0 and again.searches[0].finding == finding == again.release()["cost"]
    with pytest.raises(InvalidValue):
        study.discover("who")


@pytest.mark.draws(false_alarm=1e-12, miss=0)
def test_what_is_unknown_is_declared_priced_found_once_and_used(served: Served) -> None:
    ada = served.signed_in("ada")
    view = ada.get(f"/api/v1/datasets/{NAME}").json()
    assert [one["name"] for one in view["unknown"]] == ["cost", "drug", "rows per unit"]
    assert view["schema"] == [] and all(one["finding"] is None for one in view["unknown"])

    asked = ada.post("/api/v1/plans/price", json=DRAFT)
    assert refusal(asked) == (409, "undiscovered")
    assert asked.json()["error"]["fields"]["columns"] == ["cost", "rows per unit"]
    saved = ada.post("/api/v1/plans", json=DRAFT).json()
    assert saved["error"]["code"] == "undiscovered"

    price = ada.post(f"{PATH}/price", json={"epsilon": 60.0, "delta": 5e-8, "max_keys": 2})
    assert price.status_code == 200, price.text
    assert price.json()["epsilon"] == pytest.approx(60.0) and charges(served) == 0
    assert all(one["prediction"] and one["finding"] is None for one in price.json()["searches"])

    body = {"epsilon": 60.0, "delta": 5e-8, "max_keys": 2, "request_id": "find-1", "wait": 30}
    dear = waited_for(ada, PATH, {**body, "confirmed_epsilon": 59.0})
    assert refusal(dear) == (409, "conflict") and charges(served) == 0
    answer = waited_for(ada, PATH, {**body, "confirmed_epsilon": 60.0})
    assert answer.status_code == 200, answer.text
    findings = {one["name"]: one for one in answer.json()["findings"]}
    assert set(findings) == {"cost", "drug", "rows per unit"} and charges(served) == 3
    assert sum(one["paid"]["epsilon"] for one in findings.values()) == pytest.approx(60.0)
    assert findings["cost"]["request_id"] == f"cost found in {NAME}"

    again = waited_for(ada, PATH, body | {"request_id": "find-2", "epsilon": 1.0})
    assert again.json()["findings"] == answer.json()["findings"] and charges(served) == 3
    assert ada.post(f"{PATH}/price", json={}).json()["epsilon"] == 0

    view = ada.get(f"/api/v1/datasets/{NAME}").json()
    columns = {one["name"]: one for one in view["schema"]}
    assert sorted(columns["drug"]["categories"]) == ["aspirin", "ibuprofen"]
    assert [one["finding"] for one in view["unknown"]] == [findings[one["name"]] for one in view["unknown"]]
    plan = ada.post("/api/v1/plans/price", json=DRAFT)
    assert plan.status_code == 200, plan.text
    released = waited_for(
        ada, "/api/v1/releases", {"draft": {**DRAFT, "epsilon": 5.0}, "request_id": "mean-1", "wait": 30}
    )
    assert released.status_code == 200, released.text


def test_who_may_not_spend_finds_nothing_and_a_finding_is_the_payers_own(served: Served) -> None:
    body = {"columns": ["cost"], "request_id": "find-own", "wait": 30}
    before = charges(served)
    assert refusal(served.signed_in("eve").post(PATH, json=body)) == (403, "not_allowed")
    assert refusal(served.signed_in("carl").post(PATH, json=body)) == (404, "not_found")  # who has no grant
    assert refusal(served.signed_in("carl").post(f"{PATH}/price", json={})) == (404, "not_found")
    assert refusal(served.with_token("bob", "read", "plan").post(PATH, json=body)) == (403, "not_allowed")
    bob = served.signed_in("bob")
    assert refusal(bob.post(PATH, json={**body, "columns": ["who"]})) == (422, "invalid_value")
    too_much = waited_for(bob, PATH, {**body, "epsilon": 11.0, "fresh": True})
    assert refusal(too_much) == (409, "budget_exceeded")
    assert charges(served) == before and charges(served, "bob") == 0
    own = waited_for(bob, PATH, {**body, "request_id": "find-fresh", "epsilon": 5.0, "fresh": True})
    assert own.status_code == 200, own.text
    assert own.json()["findings"][0]["request_id"] == f"cost found in {NAME} for bob"
    assert charges(served, "bob") == 1
    theirs = served.signed_in("ada").get(f"/api/v1/datasets/{NAME}").json()["unknown"][0]["finding"]
    assert theirs is None or theirs["request_id"] == f"cost found in {NAME}"


def test_a_search_that_was_lost_is_not_paid_for_again_by_a_retry(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.add("dora", "analyst")
    served.state.ledger(served.caller("ada")).grant(NAME, "dora", 10.0)
    dora = served.signed_in("dora")
    body = {"columns": ["cost"], "epsilon": 2.0, "fresh": True, "request_id": "lost-1", "wait": 30}

    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(ValueSearch, "run", fails)
        lost = waited_for(dora, PATH, body)
    assert refusal(lost)[1] == "answer_forfeited" and charges(served, "dora") == 1
    assert refusal(waited_for(dora, PATH, body))[1] == "answer_forfeited" and charges(served, "dora") == 1
    anew = waited_for(dora, PATH, {**body, "request_id": "lost-2"})
    assert anew.status_code == 200 and charges(served, "dora") == 2, anew.text


def test_a_declaration_with_something_unknown_is_checked_in_words(served: Served) -> None:
    ada = served.signed_in("ada")
    check = ada.post("/api/v1/datasets/check", json={**DECLARATION, "name": "other"}).json()
    sentences = {one["name"]: one["sentence"] for one in check["columns"]}
    assert "not known" in sentences["cost"] and "to be found" in check["unit_sentence"]
    wrong = ada.post("/api/v1/datasets/check", json={**DECLARATION, "columns": {"cost": {"unknown": "shape"}}})
    assert refusal(wrong) == (422, "invalid_request")
