"""Running series over HTTP: every error known first, one charge, and each period released once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidValue, NotAllowed, RequestRefused
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import HERE, Served, once_a_module, waited_for

API = "/api/v1"
ASKED: dict[str, Any] = {
    "dataset": "registry", "date": "admitted", "first": "2024-01", "steps": 12, "append_only": True, "epsilon": 0.5,
}  # fmt: skip
NEW: dict[str, Any] = {
    "name": "registry",
    "source": "registry.csv",
    "account": "patients",
    "unit": "person",
    "max_rows": 1,
    "columns": {"admitted": {"range": ["2024-01-01", "2033-12-31"]}, "sex": {"categories": ["f", "m"]}},
    "epsilon": 2.0,
    "delta": 1e-8,
}


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served, curator: TestClient) -> Iterator[None]:
    """A worker, and a registry of 100 people a month."""
    rows = [f"p{n},2024-{n % 12 + 1:02d}-15,{'fm'[n % 2]}" for n in range(1_200)]
    text = "\n".join(["person,admitted,sex", *rows, ""])
    (served.settings.data / "registry.csv").write_text(text, encoding="utf-8")
    assert curator.post(f"{API}/datasets", json=NEW).status_code == 201
    served.add("zoe", "analyst")
    served.state.ledger(served.caller("ada")).grant("patients", "bob", 1.0, 1e-9)
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield
    made.drain()
    thread.join(600)


def remote(served: Served, user: str, *scopes: str) -> ft.Client:
    tested = served.with_token(user, *scopes)
    return ft.Client(HERE, tested.headers["Authorization"].removeprefix("Bearer "), transport=tested._transport)


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def spent(served: Served) -> float:
    return served.state.root.budget("patients").spent_upper


def opened(client: TestClient, request_id: str, **changes: Any) -> dict[str, Any]:
    response = waited_for(client, f"{API}/series", {**ASKED, **changes, "request_id": request_id, "wait": 30})
    assert response.status_code == 200, response.text
    view: dict[str, Any] = response.json()
    return view


@pytest.mark.slow
@pytest.mark.draws(false_alarm=1e-12, miss=0)
def test_a_series_is_planned_opened_once_and_released_period_by_period(
    served: Served, curator: TestClient, auditor: TestClient
) -> None:
    before = spent(served)
    plan = auditor.post(f"{API}/series/price", json=ASKED).json()
    assert [one["period"] for one in plan["errors"]][::11] == ["2024-01", "2024-12"]
    assert plan["errors"][-1]["total"] < 0.5 * plan["errors"][-1]["separate"]
    assert any("rests on rows only being added" in sentence for sentence in plan["sentences"])
    assert spent(served) == before
    dear = waited_for(curator, f"{API}/series", {**ASKED, "request_id": "dear", "confirmed_epsilon": 0.4, "wait": 30})
    assert code(dear) == (409, "conflict") and spent(served) == before
    series = opened(curator, "registry-2024", confirmed_epsilon=0.5)
    assert spent(served) - before == pytest.approx(0.5, abs=1e-6)
    assert (series["id"], series["steps"], series["next"]) == ("ada:registry-2024", [], "2024-01")
    assert len(series["over"]) == 12 and series["plan"]["errors"] == plan["errors"]
    path = f"{API}/series/registry-2024"
    first = curator.post(f"{path}/release", json={"until": "2024-01"}).json()
    assert [step["period"] for step in first["steps"]] == ["2024-01"] and first["next"] == "2024-02"
    again = curator.post(f"{path}/release", json={"until": "2024-01"}).json()
    assert again["steps"] == first["steps"]
    every = curator.post(f"{path}/release", json={}).json()
    assert every["next"] is None and every["over"] == [] and every["steps"][0] == first["steps"][0]
    (cell,) = every["steps"][-1]["cells"]
    assert abs(cell["total"] - 1_200) < 60 * cell["total_error"]  # far beyond any noise that is drawn
    assert spent(served) - before == pytest.approx(0.5, abs=1e-6)
    seen = auditor.get(f"{API}/series/ada:registry-2024").json()
    assert seen["steps"] == every["steps"]
    lines = auditor.get(f"{API}/series", params={"dataset": "registry"}).json()["series"]
    assert [line["id"] for line in lines if line["state"] == "released"] == ["ada:registry-2024"]
    assert opened(curator, "registry-2024")["steps"] == every["steps"]


@pytest.mark.slow
def test_a_series_is_continued_by_whom_it_belongs_to(
    served: Served, curator: TestClient, analyst: TestClient, auditor: TestClient
) -> None:
    opened(analyst, "bobs", by=["sex"], epsilon=0.3)
    zoe = served.signed_in("zoe")
    assert code(zoe.post(f"{API}/series/price", json=ASKED)) == (404, "not_found")  # she has no grant
    assert code(zoe.post(f"{API}/series", json={**ASKED, "request_id": "hers"})) == (404, "not_found")
    served.state.ledger(served.caller("ada")).grant("patients", "zoe", 0.0)  # she may ask, and spend nothing
    before = spent(served)
    refused = waited_for(zoe, f"{API}/series", {**ASKED, "request_id": "hers", "wait": 30})
    assert code(refused) == (409, "budget_exceeded") and spent(served) == before
    assert zoe.post(f"{API}/series/hers/release", json={}).status_code == 409
    for who in (zoe, auditor):
        refused = who.post(f"{API}/series/bob:bobs/release", json={})
        assert refused.status_code in (403, 404)
    assert code(zoe.get(f"{API}/series/bob:bobs")) == (404, "not_found")
    assert [line["id"] for line in zoe.get(f"{API}/series").json()["series"]] == ["zoe:hers"]
    assert code(auditor.post(f"{API}/series", json={**ASKED, "request_id": "x"})) == (403, "not_allowed")
    assert code(curator.post(f"{API}/series/bob:bobs/release", json={})) == (403, "not_allowed")
    steps = analyst.post(f"{API}/series/bobs/release", json={"until": "2024-02"}).json()["steps"]
    assert [cell["label"] for cell in steps[0]["cells"]] == ["f", "m"]
    served.add("mia", "curator")  # a colleague goes on with a curator's series
    opened(curator, "shared", epsilon=0.01)
    mia = served.signed_in("mia")
    assert mia.post(f"{API}/series/ada:shared/release", json={"until": "2024-01"}).status_code == 200
    for wrong in ({"date": "sex"}, {"steps": 0}, {"first": "2024-13"}, {"every": "hour"}, {"by": ["admitted"]}):
        assert curator.post(f"{API}/series/price", json={**ASKED, **wrong}).status_code == 422
    assert code(curator.post(f"{API}/series/shared/release", json={"until": "2031-01"})) == (422, "invalid_value")
    late = {**ASKED, "first": "2031-01", "epsilon": 0.01}
    assert waited_for(curator, f"{API}/series", {**late, "request_id": "late", "wait": 30}).json()["over"] == []
    assert code(curator.post(f"{API}/series/late/release", json={"until": "2031-01"})) == (422, "invalid_value")
    assert curator.post(f"{API}/series/late/release", json={}).json()["steps"] == []


def test_a_client_continues_a_series_in_the_words_of_a_local_study(served: Served) -> None:
    bob, eve = remote(served, "bob", "read", "plan", "spend"), remote(served, "eve", "read", "plan")
    study = bob.study("registry")
    words: dict[str, Any] = {"date": "admitted", "steps": 12, "first": "2024-01", "epsilon": 0.05}
    plan = study.series_plan(ft.count(by="sex"), **words)
    assert plan.periods[0] == "2024-01" and len(plan.total_errors) == 12 and "charged once" in str(plan)
    series = study.series(ft.count(by="sex"), **words)
    assert series.next == "2024-01" and series.plan.total_errors == plan.total_errors
    (january,) = series.update(until="2024-01")
    assert january.period == "2024-01" and january.count.labels == ("f", "m") and "±" in str(january.total)
    assert series.update(until="2024-01") == () and series.next == "2024-02"
    assert study.series(ft.count(by="sex"), **words).steps == (january,)
    with pytest.raises(InvalidValue):
        series.update(until="1999-01")
    with pytest.raises((BudgetExceeded, RequestRefused)):
        study.series(**{**words, "epsilon": 5.0})
    with pytest.raises(NotAllowed):
        eve.study("registry").series(**words)
    bob.close()
    eve.close()


MONTHS: dict[str, Any] = {
    **NEW,
    "name": "months 2024-01",
    "source": "months.csv",
    "account": "people by month",
    "renews": {"every": "month", "date": "admitted", "period": "2024-01"},
    "epsilon": 0.1,
    "delta": 1e-9,
}


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
@pytest.mark.parametrize("grant", [0.0, 0.01])
def test_a_series_is_asked_for_approved_and_opened_once(served: Served, grant: float) -> None:
    name = "yan" if grant else "zoe"
    if grant:
        served.add("yan", "analyst")
    served.state.ledger(served.caller("ada")).grant("patients", name, grant, 1e-12 if grant else 0.0)
    hers, ada = remote(served, name, "read", "plan", "spend"), remote(served, "ada", "read", "manage")
    words: dict[str, Any] = {"date": "admitted", "first": "2024-01", "steps": 6, "append_only": True, "epsilon": 0.3}
    study, before = hers.study("registry"), spent(served)
    assert study.on_request().series_plan(**words).epsilon == pytest.approx(0.3)
    with pytest.raises(BudgetExceeded):
        study.series(**words)
    request = study.submit_series("beds for the winter", **words)
    assert (request.document["kind"], request.dataset, request.state) == ("series", "registry", "open")
    assert "running" in request.document["words"] and request.document["draft"]["date"] == "admitted"
    assert spent(served) == before
    ada.requests.approve(request)
    with pytest.raises(BudgetExceeded):
        study.series(**{**words, "steps": 7})
    series = study.series(**words)
    assert len(series.update(until="2024-06")) == 6
    assert hers.requests.one(request.id).request_id == series.request_id
    with pytest.raises((BudgetExceeded, InvalidValue)):
        study.series(**words, request_id="another")
    assert spent(served) == pytest.approx(before + 0.3, rel=1e-6)
    hers.close()
    ada.close()


@pytest.mark.slow
def test_an_account_that_renews_has_a_dataset_and_a_budget_for_each_period(
    served: Served, curator: TestClient, analyst: TestClient
) -> None:
    rows = [f"p{n % 60},2024-{n % 12 + 1:02d}-15,{'fm'[n % 2]}" for n in range(240)]
    (served.settings.data / "months.csv").write_text("\n".join(["person,admitted,sex", *rows, ""]), encoding="utf-8")
    checked = curator.post(f"{API}/datasets/check", json=MONTHS).json()
    assert checked["ok"] and not checked["account_open"], checked
    assert checked["account_sentence"].startswith("Opens the account 'people by month, 2024-01' (protects person")
    whole_year = "somebody in all 12 months of a year is protected by epsilon"
    assert whole_year in checked["account_sentence"]
    made = curator.post(f"{API}/datasets", json=MONTHS)
    assert made.status_code == 201, made.text
    view = made.json()
    assert view["account"] == "people by month, 2024-01" and view["renews"]["period"] == "2024-01"
    assert view["budget"]["total"]["epsilon"] == 0.1 and whole_year in view["budget"]["lifetime"]
    assert curator.post(f"{API}/datasets", json=MONTHS).status_code == 201  # the same again
    path = f"{API}/datasets/months 2024-01/periods"
    february = {"name": "months 2024-02", "period": "2024-02"}
    assert code(analyst.post(path, json=february)) == (403, "not_allowed")
    following = curator.post(path, json=february).json()
    assert (following["account"], following["budget"]["total"]["epsilon"]) == ("people by month, 2024-02", 0.1)
    assert curator.post(path, json=february).status_code == 201
    assert code(curator.post(f"{API}/datasets/registry/periods", json=february)) == (422, "invalid_value")
    twice = {**MONTHS, "name": "twice", "renews": None}
    assert curator.post(f"{API}/datasets", json=twice).status_code in (409, 422)  # no second budget for its rows
    dearer = {**MONTHS, "name": "dearer", "renews": {**MONTHS["renews"], "period": "2024-03"}, "epsilon": 5.0}
    assert code(curator.post(f"{API}/datasets", json=dearer)) == (409, "conflict")
    assert curator.put(f"{API}/datasets/months 2024-01/budget", json={"epsilon": 9.0}).status_code == 422
    for month in ("2024-01", "2024-02"):
        draft = {"dataset": f"months {month}", "statistics": [{"kind": "count"}], "epsilon": 0.05}
        planned = curator.post(f"{API}/plans/price", json=draft).json()
        assert whole_year in planned["budget"]["lifetime"]
        body = {"draft": draft, "request_id": f"count-{month}", "wait": 30}
        assert waited_for(curator, f"{API}/releases", body).status_code == 200
        assert served.state.root.budget(f"people by month, {month}").spent_upper == pytest.approx(0.05, abs=1e-6)
    ledger = served.state.ledger(served.caller("ada"))
    assert ledger.budget("people by month").spent_upper == 0.0
