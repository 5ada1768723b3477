"""Publications over HTTP: a curator previews and takes away what anybody can verify; nothing is spent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from farthing.publication.verification import verify_publication
from farthing.server.jobs.job_worker import Worker
from publications import FORM
from unit.server.conftest import DATASET, Served, once_a_module, waited_for

API = "/api/v1/releases"
pytestmark = pytest.mark.slow


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served) -> Iterator[Worker]:
    """A worker of this module's server, in this process."""
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.drain()
    thread.join(600)


def released(client: TestClient, request_id: str) -> str:
    draft = {"dataset": DATASET, "statistics": [{"kind": "count", "by": "sex"}], "epsilon": 0.01}
    answer = waited_for(client, API, {"draft": draft, "request_id": request_id, "wait": 30})
    assert answer.json()["state"] == "released"
    return str(answer.json()["request_id"])


def test_a_curator_takes_a_release_away_that_verifies(
    served: Served, analyst: TestClient, curator: TestClient, tmp_path: Path
) -> None:
    name = released(analyst, "published")
    before = served.state.root.budget(DATASET).count
    first = curator.post(f"{API}/{name}/publication/preview", json={"title": "People"})
    assert first.status_code == 200 and first.json()["landing_page"] is None
    assert first.json()["missing"][:2] == ["description", "purpose"]
    seen = curator.post(f"{API}/{name}/publication/preview", json=FORM).json()
    assert seen["missing"] == [] and "Health of people who do not exist &amp; others" in seen["landing_page"]
    files = curator.post(f"{API}/{name}/publication", json=FORM)
    assert files.status_code == 200 and files.headers["content-type"] == "application/zip"
    assert files.headers["content-disposition"].endswith('-v1.zip"')
    (tmp_path / "bundle.zip").write_bytes(files.content)
    found = verify_publication(tmp_path / "bundle.zip", seen["public_key"])
    assert found.ok, found.findings
    assert curator.post(f"{API}/{name}/publication", json=FORM).content == files.content
    assert served.state.root.budget(DATASET).count == before


def test_only_curators_publish_and_only_what_is_released(
    analyst: TestClient, auditor: TestClient, curator: TestClient, stranger: TestClient
) -> None:
    name = released(analyst, "kept")
    for path in (f"{API}/{name}/publication", f"{API}/{name}/publication/preview"):
        assert [client.post(path, json=FORM).status_code for client in (analyst, auditor)] == [403, 403]
        assert stranger.post(path, json=FORM).status_code == 401
    assert curator.post(f"{API}/none/publication", json=FORM).status_code == 404
    assert curator.post(f"{API}/{name}/publication", json={}).status_code == 422
    assert curator.post(f"{API}/{name}/publication", json={**FORM, "colour": "red"}).status_code == 422
    assert curator.post(f"{API}/{name}/publication", json={**FORM, "licence": "mine"}).status_code == 422
