"""Synthetic tables over HTTP: a price, one charge for the same words, rows and verdicts for whoever may see them."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import BudgetExceeded, RequestRefused
from farthing.server.jobs.job_worker import Worker
from farthing.server.services.dataset_service import study_of
from unit.server.conftest import HERE, Served, waited_for

API = "/api/v1"
ASKED: dict[str, Any] = {"dataset": "members", "epsilon": 0.25, "columns": ["sex", "joined"], "missing": False}
BINS = {"joined": ["2010-01-01", "2020-01-01"]}
NEW: dict[str, Any] = {
    "name": "members",
    "source": "members.csv",
    "account": "club",
    "unit": "person",
    "max_rows": 1,
    "columns": {
        "joined": {"range": ["2000-01-01", "2029-12-31"]},
        "sex": {"categories": ["=f", "m"]},
        "age": {"range": [0, 99]},
    },
    "epsilon": 2.0,
    "delta": 1e-8,
}


@pytest.fixture(scope="module", autouse=True)
def worker(served: Served, curator: TestClient) -> Iterator[None]:
    """A worker, and a club of 600 members."""
    rows = [f"p{n},{2000 + n % 30}-06-15,{('=f', 'm')[n % 2]},{n % 90}" for n in range(600)]
    (served.settings.data / "members.csv").write_text("\n".join(["person,joined,sex,age", *rows, ""]), encoding="utf-8")
    assert curator.post(f"{API}/datasets", json=NEW).status_code == 201
    served.add("zoe", "analyst")
    served.state.ledger(served.caller("ada")).grant("club", "bob", 0.0)
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
    return served.state.root.budget("club").spent_upper


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_a_table_is_priced_made_once_and_downloaded(
    served: Served, curator: TestClient, auditor: TestClient, analyst: TestClient
) -> None:
    body, before = {**ASKED, "bins": BINS}, spent(served)
    plan = auditor.post(f"{API}/synthetic-tables/price", json=body).json()
    assert [(one["name"], one["cells"]) for one in plan["columns"]] == [("sex", 2), ("joined", 3)]
    assert 0.24 < plan["epsilon"] <= 0.25 and plan["made"] is False and spent(served) == before
    dear = waited_for(
        curator, f"{API}/synthetic-tables", {**body, "request_id": "dear", "confirmed_epsilon": 0.1, "wait": 30}
    )
    assert code(dear) == (409, "conflict") and spent(served) == before
    made = waited_for(curator, f"{API}/synthetic-tables", {**body, "request_id": plan["request_id"], "wait": 30})
    assert made.status_code == 200, made.text
    view, after = made.json(), spent(served)
    assert 0 < after - before <= plan["epsilon"] + 1e-8
    assert [one["columns"] for one in view["quality"]] == [["sex"], ["joined"], ["sex", "joined"]]
    assert view["epsilon"] == plan["epsilon"] and view["columns"] == ["sex", "joined"] and view["receipt"]
    again = curator.post(f"{API}/synthetic-tables", json={**body, "request_id": plan["request_id"], "wait": 30})
    assert again.json() == view and spent(served) == after
    assert curator.post(f"{API}/synthetic-tables/price", json=body).json()["made"] is True
    path = f"{API}/synthetic-tables/{view['id']}"
    rows = parquet.read_table(io.BytesIO(auditor.get(f"{path}/download?format=parquet&rows=40").content))
    assert rows.num_rows == 40 and set(rows.column("sex").to_pylist()) <= {"=f", "m"}
    text = auditor.get(f"{path}/download?rows=40").text
    assert len(text.splitlines()) == 41 and '"=f"' not in text  # what a spreadsheet would run
    assert "verdict" in auditor.get(f"{path}/download?format=html").text
    assert code(auditor.get(f"{path}/download?rows=10000000")) == (422, "invalid_value")
    listed = auditor.get(f"{API}/synthetic-tables", params={"dataset": "members"}).json()["tables"]
    assert [one["id"] for one in listed if one["state"] == "released"] == [view["id"]]
    for unseen in (path, f"{path}/download"):
        assert code(analyst.get(unseen)) == (404, "not_found")  # a colleague's
    assert code(auditor.post(f"{API}/synthetic-tables", json={**body, "request_id": "x"})) == (403, "not_allowed")
    for wrong in ({"columns": ["nobody"]}, {"bins": {"joined": ["soon"]}}, {"known": ["never"]}, {"epsilon": -1}):
        assert curator.post(f"{API}/synthetic-tables/price", json={**body, **wrong}).status_code in (404, 422)


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_an_analyst_without_a_grant_asks_for_a_table_and_makes_it_once(served: Served, curator: TestClient) -> None:
    bob = remote(served, "bob", "read", "plan", "spend").study("members")
    words: dict[str, Any] = {"epsilon": 0.3, "columns": "sex", "missing": False}
    before = spent(served)
    with pytest.raises(BudgetExceeded):
        bob.synthesise(**words)
    with pytest.raises(RequestRefused):
        remote(served, "zoe", "read", "plan", "spend").study("members").synthesis_plan(**words)
    plan = bob.on_request().synthesis_plan(**words)
    asked = plan.submit("data for a lesson")
    view = curator.get(f"{API}/requests/{asked.id}").json()
    assert view["kind"] == "table" and view["draft"]["columns"] == ["sex"] and "sure" in view["odds"]
    with pytest.raises(BudgetExceeded):
        bob.synthesise(**words)
    assert spent(served) == before
    assert curator.post(f"{API}/requests/{asked.id}/approve", json={"version": 1}).status_code == 200
    with pytest.raises(BudgetExceeded):
        bob.synthesise(**{**words, "columns": "age"})  # another table than was approved
    table = bob.synthesise(**words, rows=50)
    assert table.table().num_rows == 50 and {one.verdict for one in table.quality} and "sex" in str(table.columns)
    after = spent(served)
    assert before < after <= before + plan.cost + 1e-8
    again = bob.synthesise(**words)
    assert again.request_id == table.request_id == f"bob:{plan.request_id}"
    with pytest.raises(BudgetExceeded):
        bob.synthesise(**words, request_id="another-draw")
    assert spent(served) == after
    assert curator.get(f"{API}/requests/{asked.id}").json()["request_id"] == table.request_id
    with pytest.raises(ft.FarthingError, match="epsilon"):
        bob.on_request().synthesis_plan(columns="sex").submit("all of it")


@pytest.mark.draws(false_alarm=0, miss=0)
def test_a_table_that_a_script_made_is_the_same_on_the_server(served: Served, tmp_path: Path) -> None:
    ada = remote(served, "ada", "read", "plan", "spend", "manage").study("members")
    plan = ada.synthesis_plan(epsilon=0.05, columns="sex", missing=False)
    made = study_of(served.state, served.caller("ada"), "members").synthesise(
        epsilon=0.05, columns=["sex"], missing=False
    )
    before = spent(served)
    assert made.request_id == plan.request_id
    table = ada.synthesise(epsilon=0.05, columns="sex", missing=False, rows=30)
    assert spent(served) == before
    saved = table.save(str(tmp_path / "rows.csv")).read_text().splitlines()
    assert len(saved) == 31 and table.report(str(tmp_path / "quality.html")).exists()
    assert table.to_frame().shape == (30, 1) and ada.synthetic(table.request_id).cost == table.cost
