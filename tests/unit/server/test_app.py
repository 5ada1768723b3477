"""The skeleton holds: who is let in, what a refusal looks like, which headers every answer carries."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from farthing.server import app as warming
from unit.server.conftest import Served


def test_health_needs_nobody(stranger: TestClient) -> None:
    assert stranger.get("/healthz").json() == {"ok": True}
    assert stranger.get("/readyz").json() == {"ok": True}


def test_metrics_are_for_curators_and_auditors(
    curator: TestClient, auditor: TestClient, analyst: TestClient, stranger: TestClient
) -> None:
    assert [client.get("/metrics").status_code for client in (curator, auditor, analyst, stranger)] == [
        200, 200, 403, 401,
    ]  # fmt: skip
    assert 'farthing_requests_total{route="/metrics",method="GET",status="200"}' in curator.get("/metrics").text


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/static/../settings.py", "/static/%2e%2e/x"])
def test_an_unknown_address_has_the_envelope(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_a_wrong_method_has_the_envelope(stranger: TestClient) -> None:
    answer = stranger.post("/healthz")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")


def test_what_is_made_ready_at_the_start_spends_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = list(served.state.root.entries())
    plans: list[bool] = []
    monkeypatch.setattr(warming, "priced", lambda *_, proof: plans.append(proof))
    warming.warm_up(served.state)
    assert plans == [False, True]
    monkeypatch.setattr(warming, "priced", lambda *_, proof: 1 // 0)
    warming.warm_up(served.state)  # whoever wants a plan is told, the start is not held up
    assert list(served.state.root.entries()) == entries
