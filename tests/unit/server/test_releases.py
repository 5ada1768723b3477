"""Releases over HTTP, with a worker in a thread: charged once, answered the same, refused without a trace."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import threading
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.ledger import Receipt
from farthing.server.jobs.job_worker import Worker
from farthing.server.routes import release_routes
from farthing.server.services import job_queue
from farthing.server.store import job_rows as rows
from farthing.server.store.store_tables import jobs, tokens
from unit.server.conftest import DATASET, DECLARATION, Served, once_a_module, people_csv, waited_for

API = "/api/v1/releases"


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served) -> Iterator[Worker]:
    """A worker of this module's server, in this process."""
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.drain()
    thread.join(600)


def draft(epsilon: float | None = 0.01, **changes: Any) -> dict[str, Any]:
    found = {"dataset": DATASET, "statistics": [{"kind": "count", "by": "sex"}], "epsilon": epsilon}
    return {key: value for key, value in {**found, **changes}.items() if value is not None}


def ask(client: TestClient, request_id: str, **changes: Any) -> Any:
    body = {"draft": draft(), "request_id": request_id, "wait": 30, **changes}
    return waited_for(client, API, {key: value for key, value in body.items() if value is not None})


def spent(served: Served) -> tuple[float, int]:
    budget = served.state.root.budget(DATASET)
    return budget.spent_upper, budget.count


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.slow
def test_a_release_is_answered_charged_once_and_stays_the_same(served: Served, analyst: TestClient) -> None:
    before, count = spent(served)
    first = ask(analyst, "once")
    assert first.status_code == 200, first.text
    view = first.json()
    assert (view["request_id"], view["state"], view["progress"]) == ("bob:once", "released", 1.0)
    assert view["charged"]["epsilon"] == pytest.approx(0.01, abs=1e-8) and 0 < view["charged"]["delta"] < 1e-7
    (answer,) = view["answers"]
    assert [cell["label"] for cell in answer["cells"]] == ["F", "M"] and answer["total"] == 2
    assert (view["numbers"], view["warnings"]) == (2, [])
    for cell in answer["cells"]:
        assert cell["lower_at_once"] <= cell["lower"] and cell["upper"] <= cell["upper_at_once"]
        assert cell["lower"] <= cell["value"] <= cell["upper"]
        assert isinstance(cell["raw"], float)
        assert cell["error"] >= cell["value"] - cell["lower"]
    again = [
        ask(analyst, "once").json(),
        analyst.get(f"{API}/once").json(),
        analyst.get(f"{API}/bob:once").json(),
    ]
    assert all(one == view for one in again)
    after, counted = spent(served)
    assert counted == count + 1 and after == pytest.approx(before + 0.01, abs=1e-8)
    assert served.state.root.budget(DATASET, "bob").count >= 1


def test_the_receipt_survives_the_journey(served: Served, analyst: TestClient) -> None:
    view = ask(analyst, "once").json()
    receipt = Receipt.from_json(view["receipt"])
    assert served.state.root.verify(receipt).ok
    assert analyst.get(f"{API}/once/download?format=receipt").text == view["receipt"]


def test_another_draft_under_the_same_id_is_a_conflict_and_free(served: Served, analyst: TestClient) -> None:
    ask(analyst, "once")
    before = spent(served)
    assert code(ask(analyst, "once", draft=draft(0.02))) == (409, "conflict")
    assert spent(served) == before


@pytest.mark.slow
def test_refusals_say_why_and_charge_nothing(served: Served, analyst: TestClient) -> None:
    before = spent(served)
    tight = draft(statistics=[{"kind": "count", "within": 0.001}])
    wrong = draft(statistics=[{"kind": "count", "where": "age <"}])
    for request_id, body, expected in (
        ("too-much", draft(5.0), (409, "budget_exceeded")),
        ("too-tight", tight, (409, "infeasible")),
        ("wrong", wrong, (422, "invalid_expression")),
    ):
        response = ask(analyst, request_id, draft=body)
        assert code(response) == expected, response.text
        found = analyst.get(f"{API}/{request_id}").json()
        assert (found["state"], found["charged"], found["answers"]) == ("refused", None, None)
        assert found["error"] == response.json()["error"]
        assert "nothing was charged" in found["sentence"]
        assert code(analyst.get(f"{API}/{request_id}/download")) == expected
    assert spent(served) == before


@pytest.mark.slow
def test_a_refused_request_is_tried_again_when_there_is_more(served: Served) -> None:
    served.add("dora", "analyst")
    dora, ledger = served.signed_in("dora"), served.state.ledger(served.caller("ada"))
    ledger.grant(DATASET, "dora", 0.005)
    assert code(ask(dora, "later")) == (409, "budget_exceeded")
    ledger.grant(DATASET, "dora", 0.1)
    assert ask(dora, "later").status_code == 200


def test_nothing_is_written_down_about_a_dataset_that_is_not_theirs(served: Served, analyst: TestClient) -> None:
    served.add("gus", "analyst")
    for client, body in ((analyst, draft(dataset="elsewhere")), (served.signed_in("gus"), draft())):
        assert code(ask(client, "nowhere", draft=body)) == (404, "not_found")
        assert code(client.get(f"{API}/nowhere")) == (404, "not_found")


@pytest.mark.slow
def test_what_costs_more_than_was_confirmed_is_refused_and_free(served: Served, analyst: TestClient) -> None:
    before = spent(served)
    refused = ask(analyst, "confirmed", confirmed_epsilon=0.005)
    assert code(refused) == (409, "conflict") and "confirmed" in refused.json()["error"]["message"]
    assert spent(served) == before
    assert ask(analyst, "confirmed", confirmed_epsilon=0.01).status_code == 200


@pytest.mark.slow
def test_what_the_price_said_is_enough_to_confirm(served: Served, analyst: TestClient) -> None:
    many = [{"kind": "count"}, {"kind": "mean", "column": "age"}, {"kind": "median", "column": "income"}]
    asked = draft(0.03, statistics=many)
    price = analyst.post("/api/v1/plans/price", json=asked).json()
    response = ask(analyst, "as-priced", draft=asked, confirmed_epsilon=price["cost"]["upper"])
    assert response.status_code == 200, response.text
    assert response.json()["charged"]["epsilon"] <= price["cost"]["upper"] * (1 + 1e-6)


def test_without_waiting_it_is_on_its_way(served: Served, analyst: TestClient) -> None:
    response = ask(analyst, "on-its-way", wait=0)
    assert response.status_code == 202 and response.json()["answers"] is None
    assert ask(analyst, "on-its-way").status_code == 200


@pytest.mark.slow
def test_events_tell_until_it_is_done(served: Served, analyst: TestClient) -> None:
    ask(analyst, "told", wait=0)
    response = analyst.get(f"{API}/told/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store" and response.headers["x-accel-buffering"] == "no"
    events = [
        dict(line.split(": ", 1) for line in block.splitlines())
        for block in response.text.split("\n\n")
        if "event: " in block
    ]
    assert all(event["event"] == "progress" for event in events[:-1])
    assert events[-1]["event"] == "done"
    assert json.loads(events[-1]["data"]) == {"state": "released", "progress": 1.0}


def test_silence_is_filled_with_signs_of_life(
    served: Served, analyst: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "STILL_HERE", 0.02)
    row = {"id": "bob:waits", "owner": "bob", "role": "analyst", "kind": "release", "state": "running"}
    body = rows.body_text(DATASET, "0", {}, {})
    with served.state.store.begin() as connection:
        connection.execute(
            jobs.insert().values(**row, body=body, worker="nobody", heartbeat=1, progress=0.5, created=1, changed=1)
        )
    job = rows.job_of(served.state.store, "bob:waits")
    assert job is not None

    async def heard() -> list[str]:
        """Until three signs of life were sent, however long a busy machine takes for them."""
        texts: list[str] = []
        async with aclosing(job_queue.event_texts(served.state, job, lambda: True)) as stream:
            async for text in stream:
                texts.append(text)
                if texts.count(": still here\n\n") == 3:
                    break
        return texts

    assert not any("event: done" in text for text in asyncio.run(heard()))
    monkeypatch.setattr(job_queue, "LONGEST_STREAM", 0.3)
    text = analyst.get(f"{API}/waits/events").text
    assert "event: progress" in text and "event: done" not in text  # the stream's time was over
    rows.end(served.state.store, "bob:waits", "nobody", "failed")


def test_downloads_hold_what_was_released(served: Served, analyst: TestClient) -> None:
    view = ask(analyst, "once").json()
    files = {kind: analyst.get(f"{API}/once/download?format={kind}") for kind in ("csv", "json", "html", "python")}
    for kind, response in files.items():
        ending = {"python": "py"}.get(kind, kind)
        assert response.status_code == 200
        assert response.headers["content-disposition"] == f'attachment; filename="{DATASET}-once.{ending}"'
    table = list(csv.DictReader(io.StringIO(files["csv"].text)))
    assert [float(row["value"]) for row in table] == [cell["value"] for cell in view["answers"][0]["cells"]]
    assert files["json"].json()["request_id"] == "bob:once"
    assert files["html"].text.startswith("<!DOCTYPE html>") and "<script" not in files["html"].text
    compile(files["python"].text, "code.py", "exec")
    assert "released('bob:once')" in files["python"].text and "# plan = study.plan(" in files["python"].text


@pytest.mark.slow
def test_nobody_sees_or_uses_the_release_of_another_analyst(served: Served, analyst: TestClient) -> None:
    ask(analyst, "once")
    served.add("carl", "analyst")
    served.state.ledger(served.caller("ada")).grant(DATASET, "carl", 0.1)
    carl = served.signed_in("carl")
    for address in ("bob:once", "once", "bob:once/events", "bob:once/download"):
        assert code(carl.get(f"{API}/{address}")) == (404, "not_found")
    assert all(one["owner"] == "carl" for one in carl.get(API).json()["releases"])
    own = ask(carl, "once").json()
    assert own["request_id"] == "carl:once" and own["receipt"] != ask(analyst, "once").json()["receipt"]


def test_curators_and_auditors_see_all_and_auditors_spend_nothing(
    served: Served, analyst: TestClient, curator: TestClient, auditor: TestClient
) -> None:
    view = ask(analyst, "once").json()
    before = spent(served)
    for client in (curator, auditor):
        assert client.get(f"{API}/bob:once").json() == view
        listed = client.get(f"{API}?dataset={DATASET}").json()["releases"]
        assert "bob:once" in [one["request_id"] for one in listed]
        assert all(one["answers"] is None for one in listed)
    assert client.get(f"{API}?dataset=elsewhere").json() == {"releases": []}
    assert code(ask(auditor, "mine")) == (403, "not_allowed")
    assert spent(served) == before


@pytest.mark.slow
def test_a_saved_plan_is_released_also_after_it_is_gone(served: Served, analyst: TestClient) -> None:
    saved = analyst.post("/api/v1/plans", json=draft()).json()
    first = ask(analyst, "saved", draft=None, plan=saved["id"])
    assert first.status_code == 200, first.text
    assert analyst.delete(f"/api/v1/plans/{saved['id']}").status_code in (200, 204)
    assert ask(analyst, "saved", draft=None, plan=saved["id"]).json() == first.json()
    assert code(ask(analyst, "another", draft=None, plan=saved["id"])) == (404, "not_found")


@pytest.mark.parametrize(
    "changes",
    [
        {"request_id": "a:b"},
        {"request_id": ""},
        {"request_id": "x" * 101},
        {"wait": 31},
        {"wait": True},
        {"wait": "1"},
        {"confirmed_epsilon": -1},
        {"confirmed_epsilon": "1"},
        {"plan": "p"},
        {"draft": None},
        {"more": 1},
    ],
)
def test_what_breaks_its_rule_reaches_no_row(served: Served, analyst: TestClient, changes: dict[str, Any]) -> None:
    before = rows.counted(served.state.store)
    assert ask(analyst, **{"request_id": "broken", **changes}).status_code == 422
    assert rows.counted(served.state.store) == before


def test_numbers_that_are_none_are_refused(analyst: TestClient) -> None:
    text = json.dumps({"draft": draft(), "request_id": "nan", "confirmed_epsilon": 1.0}).replace("1.0}", "NaN}")
    response = analyst.post(API, content=text, headers={"Content-Type": "application/json"})
    assert response.status_code == 422


def test_an_answer_is_seen_though_nobody_wrote_down_that_it_is_there(served: Served, analyst: TestClient) -> None:
    """Its worker died between recording it and saying so."""
    view = ask(analyst, "once").json()
    with served.state.store.begin() as connection:
        connection.execute(
            jobs.update().where(jobs.c.id == "bob:once").values(state="running", worker="dead", heartbeat=1)
        )
    assert ask(analyst, "once", wait=0).json() == view
    assert "event: done" in analyst.get(f"{API}/once/events").text
    assert rows.end(served.state.store, "bob:once", "dead", "released")


def test_events_end_for_whoever_is_shut_out_meanwhile(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "STILL_HERE", 0.05)
    monkeypatch.setattr(job_queue, "LONGEST_STREAM", 20.0)
    row = {"id": "bob:never", "owner": "bob", "role": "analyst", "kind": "release", "state": "running"}
    more = {"worker": "nobody", "heartbeat": 1, "progress": 0.5, "created": 1, "changed": 1}
    with served.state.store.begin() as connection:
        connection.execute(jobs.insert().values(**row, **more, body=rows.body_text(DATASET, "0", {}, {})))
    token, begun, found = served.with_token("bob", "read"), threading.Event(), release_routes.event_stream

    def begins(*told: Any) -> Any:
        begun.set()
        return found(*told)

    monkeypatch.setattr(release_routes, "event_stream", begins)
    texts: list[str] = []
    listening = threading.Thread(target=lambda: texts.append(token.get(f"{API}/never/events").text))
    listening.start()
    assert begun.wait(600)
    with served.state.store.begin() as connection:
        connection.execute(tokens.update().where(tokens.c.user == "bob").values(revoked=1))
    listening.join(600)
    ended = bool(texts)
    forgotten(served, "bob:never")
    listening.join(600)
    assert ended and texts[0].startswith("retry:") and "event: done" not in texts[0]


def forgotten(served: Served, *names: str) -> None:
    """Lose the rows of these jobs, as a store that was lost has, or one that was restored from before."""
    with served.state.store.begin() as connection:
        connection.execute(jobs.delete().where(jobs.c.id.in_(names)))


@pytest.mark.slow
def test_a_store_that_was_lost_does_not_pass_an_old_answer_off_as_another(
    served: Served, curator: TestClient, analyst: TestClient
) -> None:
    first = ask(analyst, "kept")
    assert first.status_code == 200
    session = {"dataset": DATASET, "columns": ["age"], "rows": 100_000, "epsilon": 0.05, "wait": 30}
    assert waited_for(analyst, "/api/v1/sessions", {**session, "request_id": "talk"}).status_code == 200
    ada = served.state.ledger(served.caller("ada"))
    (served.settings.data / "second.csv").write_text(people_csv(), encoding="utf-8")
    second = {**DECLARATION, "name": "second", "source": "second.csv"}
    assert curator.post("/api/v1/datasets", json=second).status_code == 201
    ada.grant("second", "bob", 1.0, 1e-7)
    # Somebody at the machine has used an id that looks like bob's.
    ada.release(ada.charge(DATASET, 0.001, request_id="bob:not-his"), "{}")
    forgotten(served, "bob:kept", "bob:talk")
    before = spent(served)
    for request_id, other in (
        ("kept", draft(dataset="second")),
        ("kept", draft(statistics=[{"kind": "mean", "column": "age"}])),
        ("talk", draft()),
        ("not-his", draft()),
    ):
        assert code(ask(analyst, request_id, draft=other)) == (409, "conflict"), other
    for request_id, words in (("kept", session), ("talk", {**session, "columns": ["sex"]})):
        refused = analyst.post("/api/v1/sessions", json={**words, "request_id": request_id})
        assert code(refused) == (409, "conflict")
    # Whoever asks the same again is told the same, as ever.
    assert ask(analyst, "kept").json()["answers"] == first.json()["answers"]
    again = analyst.post("/api/v1/sessions", json={**session, "request_id": "talk"})
    assert (again.status_code, again.json()["state"]) == (200, "released")
    assert spent(served) == before


@pytest.mark.slow
def test_a_table_for_a_spreadsheet_has_no_formula_in_it(
    served: Served, analyst: TestClient, curator: TestClient
) -> None:
    names = ['=HYPERLINK("http://evil")', "@SUM(1)", "+cmd|' /C calc'!A0", "-2+cmd|' /C calc'!A0"]
    asked = draft(statistics=[{"kind": "count", "name": name} for name in names] + [{"kind": "count", "by": "sex"}])
    assert ask(analyst, "formulas", draft=asked).status_code == 200
    table = list(csv.reader(io.StringIO(curator.get(f"{API}/bob:formulas/download").text)))
    assert [line[0] for line in table[1:5]] == [f"'{name}" for name in names]
    assert [line[0] for line in table[5:]] == ["count by sex"] * 2
    assert not any(cell[:1] in ("=", "@", "+") for line in table for cell in line)


@pytest.mark.slow
def test_a_curator_is_told_that_the_table_has_changed_and_an_analyst_is_not(
    served: Served, analyst: TestClient, curator: TestClient
) -> None:
    assert ask(analyst, "before-the-change").status_code == 200
    assert "changed" not in analyst.get(f"{API}/bob:before-the-change").text
    where = f"{API}/bob:before-the-change/table"
    assert curator.get(where).json() == {
        "request_id": "bob:before-the-change",
        "changed": False,
        "sentence": "",
    }
    people = served.state.settings.data / "people.csv"
    text = people.read_text(encoding="utf-8")
    try:
        people.write_text(text.rsplit("\n", 2)[0] + "\n", encoding="utf-8")
        told = curator.get(where).json()
        assert told["changed"] is True and "a new request id" in told["sentence"]
        assert code(analyst.get(where)) == (403, "not_allowed")
    finally:
        people.write_text(text, encoding="utf-8")
    assert code(curator.get(f"{API}/bob:never/table")) == (404, "not_found")


@pytest.mark.slow
def test_the_ledger_lists_releases_with_titles_versions_and_the_way_to_them(
    served: Served, analyst: TestClient, curator: TestClient, auditor: TestClient
) -> None:
    assert ask(analyst, "titled", draft=draft(0.011, title="table 4 of the yearbook")).status_code == 200
    assert ask(analyst, "titled", draft=draft(0.011, title="another title")).status_code == 200  # the same release
    assert ask(curator, "curators", draft=draft(0.012)).status_code == 200
    path = "/api/v1/ledger/releases"
    seen = auditor.get(path, params={"dataset": DATASET, "limit": 2}).json()["releases"]
    assert [one["request_id"] for one in seen] == ["ada:curators", "bob:titled"]
    last, first = seen
    assert (first["title"], first["statistics"]) == ("table 4 of the yearbook", ["count by sex"])
    assert (first["who"], first["kind"], first["dataset"]) == ("bob", "release", DATASET)
    assert last["version"]["text"] == "version 1 of people.csv" and last["title"] == "count by sex"
    own = analyst.get(path).json()["releases"]
    assert own[0]["request_id"] == "bob:titled" and own[0]["version"] is None
    assert {one["who"] for one in own} == {"bob"}
    assert code(auditor.get(path, params={"dataset": "nowhere"})) == (404, "not_found")
