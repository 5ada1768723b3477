"""A script that runs again through a server: free while nothing else is asked, and a changed table is said aloud."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import TableChanged
from farthing.server.jobs.job_worker import Worker
from unit.server.conftest import HERE, Served

API = "/api/v1"
NEW: dict[str, Any] = {
    "name": "visits",
    "source": "visits-*.csv",
    "account": "patients",
    "unit": "person",
    "max_rows": 2,
    "columns": {"age": {"range": [0, 110]}},
    "epsilon": 2.0,
    "delta": 1e-8,
}

pytestmark = pytest.mark.draws(false_alarm=0, miss=0)


def _month(first: int) -> str:
    return "\n".join(["person,age", *(f"p{n},{20 + n % 60}" for n in range(first, first + 300)), ""])


@pytest.fixture(scope="module", autouse=True)
def worker(served: Served, curator: TestClient) -> Iterator[None]:
    """A worker, and the visits of one month."""
    (served.settings.data / "visits-01.csv").write_text(_month(1_000), encoding="utf-8")
    assert curator.post(f"{API}/datasets", json=NEW).status_code == 201
    served.state.ledger(served.caller("ada")).grant("patients", "bob", 0.5, 1e-9)
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield
    made.drain()
    thread.join(600)


def _plan(served: Served, user: str) -> Any:
    tested = served.with_token(user, "read", "plan", "spend")
    token = tested.headers["Authorization"].removeprefix("Bearer ")
    return ft.Client(HERE, token, transport=tested._transport).study("visits").plan(ft.count(), epsilon=0.2)


def _spent(served: Served) -> float:
    return served.state.root.budget("patients").spent_upper


@pytest.mark.slow
def test_a_script_through_the_client_pays_once_and_hears_of_a_new_month(served: Served) -> None:
    first, bobs = _plan(served, "ada").release(), _plan(served, "bob").release()
    spent = _spent(served)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = _plan(served, "ada").release()  # nothing has changed: no word
    assert again.repeated and again.records() == first.records() and _spent(served) == spent
    february = served.settings.data / "visits-02.csv"
    february.write_text(_month(2_000), encoding="utf-8")
    with pytest.warns(TableChanged, match=r"the table of 'patients' has changed .* release\(fresh=True\)"):
        again = _plan(served, "ada").release()
    assert again.records() == first.records() and _spent(served) == spent
    fresh = _plan(served, "ada").release(fresh=True)
    assert not fresh.repeated and _spent(served) > spent
    spent = _spent(served)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _plan(served, "ada").release().records() == fresh.records()  # the newest that was paid for
        assert _plan(served, "bob").release().records() == bobs.records()  # an analyst is told nothing
    size, times = february.stat().st_size, (february.stat().st_atime_ns, february.stat().st_mtime_ns)
    february.write_text(february.read_text(encoding="utf-8").replace("p2000,", "p9000,"), encoding="utf-8")
    os.utime(february, ns=times)
    assert february.stat().st_size == size
    with pytest.warns(TableChanged):
        assert _plan(served, "ada").release().records() == fresh.records()
    assert _spent(served) == spent
    latest = _plan(served, "ada").release(fresh=True)
    assert _plan(served, "ada").release().records() == latest.records()
