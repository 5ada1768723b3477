"""A folder of monthly files on a server: one table, one account, whatever month arrives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import Served, once_a_module, waited_for

API = "/api/v1"
NEW: dict[str, Any] = {
    "name": "visits", "source": "visits/*.csv", "account": "patients", "columns": {"age": {"range": [0, 110]}},
    "epsilon": 2.0,
}  # fmt: skip


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served) -> Iterator[None]:
    (served.settings.data / "visits").mkdir()
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield
    made.drain()
    thread.join(600)


def released(client: TestClient, name: str) -> Any:
    draft = {"dataset": "visits", "statistics": [{"kind": "count"}], "epsilon": 0.5}
    return waited_for(client, f"{API}/releases", {"draft": draft, "request_id": name, "wait": 20.0})


@pytest.mark.slow
def test_a_month_that_arrives_belongs_to_the_table_and_brings_no_budget(served: Served, curator: TestClient) -> None:
    """A count of 3,000 rows at epsilon 0.5 is within 60 of it but for once in 10^13."""
    folder = served.settings.data / "visits"
    for month in (1, 2):
        (folder / f"2024-0{month}.csv").write_text("age\n" + "30\n" * 1_000, encoding="utf-8")
    assert "visits/*.csv" in [each["name"] for each in curator.get(f"{API}/sources").json()["files"]]
    assert curator.post(f"{API}/datasets", json=NEW).status_code == 201
    first = released(curator, "two-months").json()
    (folder / "2024-03.csv").write_text("age\n" + "40\n" * 1_000, encoding="utf-8")
    again = released(curator, "two-months").json()  # the same request: the stored answer, and no second charge
    assert again["answers"] == first["answers"]
    assert curator.get(f"{API}/releases/ada:two-months/table").json()["changed"] is True
    second = released(curator, "three-months").json()
    for view, rows in ((first, 2_000), (second, 3_000)):
        assert abs(view["answers"][0]["cells"][0]["value"] - rows) <= 60
    assert round(served.state.root.budget("patients").spent_upper, 6) == 1.0
    alone = {**NEW, "name": "march", "source": "visits/2024-03.csv", "account": "march", "epsilon": 1.0}
    refused = curator.post(f"{API}/datasets", json=alone)  # the file is the pattern's, and so are its people
    assert refused.status_code in (409, 422) and "patients" in refused.json()["error"]["message"]
    assert "march" not in served.state.root.datasets()
