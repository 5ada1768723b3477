"""Deposits over HTTP: to allowed servers only, once, continued after a failure, and the token is kept nowhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dataverse_server import TOKEN, State, launch_link, serving
from farthing.errors import InvalidValue
from farthing.publication import PublicationDetails
from farthing.publication.bundle_reader import read_bundle
from farthing.publication.form_fields import FORM_FIELDS
from farthing.publication.verification import edition_in, verify_publication
from farthing.server import Settings
from farthing.server.jobs.job_worker import Worker
from farthing.server.schemas.publication_schema import PublicationForm
from farthing.server.services import deposit_service
from farthing.server.store import deposit_rows
from publications import FORM
from unit.server.conftest import DATASET, Served, once_a_module, served_in, waited_for

API = "/api/v1/releases"
pytestmark = pytest.mark.slow
Deposits = tuple[Served, State, str]


@pytest.fixture(scope=once_a_module)
def deposits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deposits]:
    """A server that may deposit in a Dataverse, which is there too."""
    folder = tmp_path_factory.mktemp("deposits")
    state = State()
    with serving(state) as url:
        served = served_in(folder, dataverses=(url + "/",))
        worker = Worker(served.state, look=0.02)
        thread = threading.Thread(target=worker.run)
        thread.start()
        yield served, state, url
        worker.drain()
        thread.join(600)
        served.state.close()


@pytest.fixture
def ada(deposits: Deposits) -> TestClient:
    return deposits[0].signed_in("ada")


def released(deposits: Deposits, request_id: str) -> str:
    draft = {"dataset": DATASET, "statistics": [{"kind": "count", "by": "sex"}], "epsilon": 0.01}
    bob = deposits[0].signed_in("bob")
    answer = waited_for(bob, API, {"draft": draft, "request_id": request_id, "wait": 30})
    assert answer.json()["state"] == "released"
    return str(answer.json()["request_id"])


def asked(url: str, **changes: Any) -> dict[str, Any]:
    return {"publication": FORM, "dataverse": url, "collection": "birds", "token": TOKEN, **changes}


def ended(client: TestClient, name: str) -> dict[str, Any]:
    """The deposit when it does not run any more."""
    for _ in range(3_000):
        (one,) = client.get(f"{API}/{name}/deposits").json()
        if one["state"] != "running":
            return dict(one)
        time.sleep(0.1)
    raise AssertionError("the deposit does not end")


def holds(folder: Path, word: str) -> list[str]:
    """The files below a folder that hold a word."""
    return [one.name for one in folder.rglob("*") if one.is_file() and word.encode() in one.read_bytes()]


def test_a_curator_deposits_with_a_token_that_is_kept_nowhere(
    deposits: Deposits, ada: TestClient, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    served, state, url = deposits
    name = released(deposits, "deposited")
    begun = ada.post(f"{API}/{name}/deposits", json=asked(url, original=7))
    assert begun.status_code == 202, begun.json()
    done = ended(ada, name)
    assert (done["state"], done["error"]) == ("done", None)
    assert done["url"] == f"{url}/dataset.xhtml?persistentId={done['persistent_id']}"
    assert any(step.startswith("uploaded tables/") for step in done["steps"])
    assert PublicationDetails.of(done["publication"]).title == FORM["title"]
    assert state.faults == [] and len(state.datasets) == 1 and len(state.auxiliary) == 2
    (dataset,) = state.datasets.values()
    assert dataset["state"] == "DRAFT"  # nobody said that it is to be published
    changing = [call.name for call in state.calls if call.method != "GET"]
    again = ada.post(f"{API}/{name}/deposits", json=asked(url, original=7, publish="major"))
    assert again.status_code == 202 and ended(ada, name)["state"] == "published"
    assert dataset["published"] == 1
    more = [call.name for call in state.calls if call.method != "GET"][len(changing) :]
    assert not [one for one in more if one.endswith(("/add", "/datasets"))]
    spoken = capfd.readouterr()
    assert TOKEN not in begun.text + str(done) + spoken.out + spoken.err + caplog.text
    assert holds(served.settings.data.parent, TOKEN) == []
    assert holds(served.settings.data.parent, "birds")  # the search finds what is kept


def test_a_deposit_that_failed_is_continued(deposits: Deposits, ada: TestClient) -> None:
    _, state, url = deposits
    name = released(deposits, "failed")
    before = len(state.datasets)
    words = asked(url, publication={**FORM, "title": "Another"})
    state.trouble = {state.heard + 8: "403"}
    assert ada.post(f"{API}/{name}/deposits", json=words).status_code == 202
    failed = ended(ada, name)
    assert failed["state"] == "failed" and "refused with 403" in failed["error"]["message"]
    assert TOKEN not in str(failed) and failed["persistent_id"] is not None
    assert ada.post(f"{API}/{name}/deposits", json=words).status_code == 202
    done = ended(ada, name)
    assert (done["state"], done["persistent_id"]) == ("done", failed["persistent_id"])
    assert state.faults == [] and len(state.datasets) == before + 1


def test_two_requests_at_once_make_one_dataset(deposits: Deposits, ada: TestClient) -> None:
    _, state, url = deposits
    name = released(deposits, "twice")
    before = len(state.datasets)
    words = asked(url, publication={**FORM, "title": "Of two at once"})
    answers: list[int] = []
    send = lambda: answers.append(ada.post(f"{API}/{name}/deposits", json=words).status_code)  # noqa: E731
    threads = [threading.Thread(target=send) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert answers == [202] * 4
    assert ended(ada, name)["state"] == "done"
    assert len(state.datasets) == before + 1 and state.faults == []


def test_a_later_release_finds_its_dataset_and_has_the_earlier_receipts(deposits: Deposits, ada: TestClient) -> None:
    served, state, url = deposits
    before = len(state.datasets)
    first, second = (released(deposits, name) for name in ("of-2026", "of-2027"))
    form = {**FORM, "title": "Every year"}
    assert ada.post(f"{API}/{first}/deposits", json=asked(url, publication=form, publish="major")).status_code == 202
    one = ended(ada, first)
    assert one["state"] == "published", one
    later = {**form, "version": 2}
    assert ada.post(f"{API}/{second}/deposits", json=asked(url, publication=later)).status_code == 202
    two = ended(ada, second)
    assert (two["state"], two["persistent_id"]) == ("done", one["persistent_id"]), two
    assert len(state.datasets) == before + 1 and state.faults == []
    content = ada.post(f"{API}/{second}/publication", json=later).content
    bundle = served.settings.data.parent / "of-2027.zip"
    bundle.write_bytes(content)
    edition = edition_in(read_bundle(bundle))
    noted = {
        each.version: each.release for each in served.state.root.deposits.all() if each.publication == "every-year"
    }
    assert ([each.sequence for each in edition.earlier], edition.receipt.sequence) == ([noted[1]], noted[2])
    assert verify_publication(bundle).ok
    assert served.state.root.verify().ok
    said = ada.get("/api/v1/ledger/entries").text
    assert f"deposited every-year, version 2 (entry {noted[2]}): {one['persistent_id']} at {url}, a draft" in said


def test_another_deposit_of_a_release_waits_for_the_one_that_runs(deposits: Deposits, ada: TestClient) -> None:
    served, _, url = deposits
    name = released(deposits, "busy")
    kept = {"publication": FORM, "collection": "birds", "dataset": "", "original": None, "ingest": False, "publish": ""}
    assert deposit_rows.begin(served.state.store, name, url, "ada", kept, "another server")
    refused = ada.post(f"{API}/{name}/deposits", json=asked(url, collection="fish"))
    assert refused.status_code == 409 and "is running" in refused.json()["error"]["message"]


def test_what_nobody_runs_any_more_is_taken_over(
    deposits: Deposits, ada: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, state, url = deposits
    name = released(deposits, "left")
    kept = {"publication": FORM, "collection": "birds", "dataset": "", "original": None, "ingest": False, "publish": ""}
    assert deposit_rows.begin(served.state.store, name, url, "ada", kept, "a server that was killed")
    monkeypatch.setattr(deposit_rows, "PATIENCE", 0)
    assert ended(ada, name)["state"] == "interrupted"
    monkeypatch.undo()
    monkeypatch.setattr(deposit_rows, "PATIENCE", -(10**9))  # of the row as it is now, and not of later ones
    assert ada.post(f"{API}/{name}/deposits", json=asked(url)).status_code == 202
    monkeypatch.undo()
    assert ended(ada, name)["state"] == "done"
    assert not deposit_rows.change(served.state.store, name, url, "a server that was killed", state="failed")
    assert state.faults == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "https://169.254.169.254",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "HERE@evil.example.org",
        "HERE/../other",
        "HERE?x=",
        "",
    ],
)
def test_no_other_address_is_asked(url: str, deposits: Deposits, ada: TestClient) -> None:
    name = released(deposits, "elsewhere")
    refused = ada.post(f"{API}/{name}/deposits", json=asked(url.replace("HERE", deposits[2])))
    assert refused.status_code == 422 and "may deposit in" in refused.json()["error"]["message"]
    assert ada.get(f"{API}/{name}/deposits").json() == []


@pytest.mark.parametrize(
    "change",
    [
        {"token": ""},
        {"token": "no token, with blanks"},
        {"collection": "../admin"},
        {"dataset": "x"},
        {"original": 0},
        {"publish": "huge"},
        {"publication": {**FORM, "title": ""}},
        {"colour": "red"},
    ],
)
def test_what_cannot_be_done_is_refused_at_once(change: dict[str, Any], deposits: Deposits, ada: TestClient) -> None:
    name = released(deposits, "elsewhere")
    refused = ada.post(f"{API}/{name}/deposits", json=asked(deposits[2], **change))
    assert refused.status_code == 422 and "no token, with" not in refused.text
    assert ada.get(f"{API}/{name}/deposits").json() == []


def test_only_curators_deposit(deposits: Deposits) -> None:
    served, _, url = deposits
    name = released(deposits, "kept")
    for user in ("bob", "eve"):
        client = served.signed_in(user)
        assert client.post(f"{API}/{name}/deposits", json=asked(url)).status_code == 403
        assert client.get(f"{API}/{name}/deposits").status_code == 403
        assert client.get("/api/v1/publishing").status_code == 403
    assert served.stranger().post(f"{API}/{name}/deposits", json=asked(url)).status_code == 401
    assert served.with_token("ada", "read", "spend").get("/api/v1/publishing").status_code == 403


def test_the_server_may_have_a_token_of_its_own(
    deposits: Deposits, ada: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _, url = deposits
    assert ada.get("/api/v1/publishing").json()["dataverses"] == [{"url": url, "has_token": False}]
    monkeypatch.setenv("DATAVERSE_API_TOKEN", TOKEN)
    assert ada.get("/api/v1/publishing").json()["dataverses"] == [{"url": url, "has_token": True}]
    name = released(deposits, "own-token")
    assert ada.post(f"{API}/{name}/deposits", json=asked(url, token="")).status_code == 202
    assert ended(ada, name)["state"] == "done"
    # With two servers nobody knows whose token it is: it must not reach the wrong one.
    two = Settings(ledger="study.db", dataverses=(url, "https://other.example.org"))
    assert not deposit_service._has_token(two)
    held = tmp_path / "token"
    held.write_text(TOKEN)
    with pytest.raises(InvalidValue, match="is for one Dataverse"):
        Settings(ledger="study.db", dataverses=(url, "https://other.example.org"), dataverse_token_file=held)
    held.chmod(0o644)
    file_setting = Settings(ledger="study.db", dataverses=(url,), dataverse_token_file=held)
    with pytest.raises(Exception, match="cannot be read") as refused:
        deposit_service._own_token(file_setting)
    assert str(held) not in str(refused.value)
    assert served.state.settings.dataverse_token_file is None


def test_a_setting_names_a_server() -> None:
    with pytest.raises(InvalidValue):
        Settings(ledger="study.db", dataverses=("http://dataverse.example.org",))


def test_the_form_asks_for_every_field_once(ada: TestClient) -> None:
    names = [field.name for field in FORM_FIELDS]
    assert sorted(names) == sorted(PublicationDetails.__dataclass_fields__) == sorted(PublicationForm.model_fields)
    assert {field.name for field in FORM_FIELDS if field.required} == set(PublicationDetails().missing)
    for name, schema in (("authors", "AuthorForm"), ("contact", "ContactForm")):
        (field,) = (one for one in FORM_FIELDS if one.name == name)
        assert schema in str(PublicationForm.model_fields[name].annotation)
        assert {part.name for part in field.parts} == {"name", *({"affiliation", "orcid"} if field.row else {"email"})}
    seen = ada.get("/api/v1/publishing").json()["fields"]
    assert [one["name"] for one in seen] == names
    assert next(one for one in seen if one["name"] == "licence")["choices"][0] == ["CC0-1.0", "CC0 1.0"]


def test_a_launch_is_read_from_an_allowed_dataverse_by_curators(deposits: Deposits, ada: TestClient) -> None:
    served, _, url = deposits
    said = ada.post("/api/v1/launches", json={"callback": launch_link(url)})
    assert said.status_code == 200 and said.json()["file"] == 7
    assert said.json()["url"] == f"{url}/dataset.xhtml?persistentId=doi:10.5072/FK2/ORIGINAL"
    hostile = ada.post("/api/v1/launches", json={"callback": launch_link("https://evil.example.org")})
    assert hostile.status_code == 422 and "evil" not in hostile.text
    bob = served.signed_in("bob").post("/api/v1/launches", json={"callback": launch_link(url)})
    assert bob.status_code == 403
