"""Requests over HTTP: asked, decided and released; and no route that spends without an approval."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.server
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.errors import BudgetExceeded, InvalidValue, NotAllowed
from farthing.server.auth.permissions import PERMISSIONS
from farthing.server.jobs.job_worker import Worker
from farthing.server.services import webhook as webhook_module
from farthing.server.services.webhook import MOMENT, SIGNATURE, Webhook
from farthing.server.settings import WebhookSettings
from unit.server.conftest import DATASET, HERE, Served, once_a_module, people_csv, waited_for

API = "/api/v1"
SECRET = "a secret that is long enough"


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served) -> Iterator[Worker]:
    """A worker of this module's server, and zoe: an analyst with a grant of nothing."""
    served.add("zoe", "analyst")
    served.add("yan", "analyst")
    ada = served.state.ledger(served.caller("ada"))
    ada.grant(DATASET, "zoe", 0.0)
    ada.grant(DATASET, "yan", 0.0)
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.drain()
    thread.join(600)


@pytest.fixture(scope=once_a_module)
def zoe(served: Served) -> TestClient:
    return served.signed_in("zoe")


def remote(served: Served, user: str, *scopes: str) -> ft.Client:
    tested = served.with_token(user, *(scopes or ("read", "plan", "spend")))
    return ft.Client(HERE, tested.headers["Authorization"].removeprefix("Bearer "), transport=tested._transport)


def draft(epsilon: float = 0.05, **changes: Any) -> dict[str, Any]:
    return {"dataset": DATASET, "statistics": [{"kind": "count", "by": "sex"}], "epsilon": epsilon, **changes}


def asked(client: TestClient, **changes: Any) -> dict[str, Any]:
    response = client.post(f"{API}/requests", json={"draft": draft(**changes), "purpose": "the yearbook"})
    assert response.status_code == 201, response.text
    view: dict[str, Any] = response.json()
    return view


def decided(client: TestClient, request: dict[str, Any], word: str, **body: Any) -> Any:
    return client.post(f"{API}/requests/{request['id']}/{word}", json=body)


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


DECISIONS = {"approve": {}, "decline": {"reason": "no"}, "change": {"draft": draft(), "reason": "less"}}


def spent(served: Served) -> tuple[float, int]:
    budget = served.state.root.budget(DATASET)
    return budget.spent_upper, budget.count


def release(client: TestClient, **body: Any) -> Any:
    return waited_for(client, f"{API}/releases", {"wait": 30, **body})


@pytest.mark.slow
def test_a_request_is_asked_seen_approved_and_released_once(
    served: Served, zoe: TestClient, curator: TestClient, auditor: TestClient
) -> None:
    before = spent(served)
    refused = release(zoe, draft=draft(), request_id="early")
    assert code(refused) == (409, "budget_exceeded") and spent(served) == before
    request = asked(zoe, title="counts by sex")
    assert (request["state"], request["title"], request["budget"]) == ("open", "counts by sex", None)
    seen = curator.get(f"{API}/requests/{request['id']}").json()
    assert seen["purpose"] == "the yearbook" and seen["budget"]["remaining"]["epsilon"] > 0
    assert seen["statistics"][0]["name"] == "count by sex" and "at most" in seen["odds"]
    assert seen["history"]["refused"] == 1 and seen["steps"][0]["kind"] == "request"
    assert [each["id"] for each in auditor.get(f"{API}/requests", params={"state": "open"}).json()["requests"]] == [
        request["id"]
    ]
    for who in (zoe, auditor):
        for word, body in (
            ("approve", {}),
            ("decline", {"reason": "no"}),
            ("change", {"draft": draft(), "reason": "x"}),
        ):
            assert code(decided(who, request, word, **body)) == (403, "not_allowed")
    assert decided(curator, request, "approve", version=1).json()["state"] == "approved"
    assert code(decided(curator, request, "approve")) == (409, "conflict")
    answered = release(zoe, draft=draft(), request_id=request["name"])
    assert answered.status_code == 200, answered.text
    assert answered.json()["charged"]["epsilon"] == pytest.approx(request["epsilon"])
    again = release(zoe, request=request["id"], request_id="another-name")
    assert again.json()["answers"] == answered.json()["answers"]
    done = zoe.get(f"{API}/requests/{request['id']}").json()
    assert (done["state"], done["request_id"]) == ("used", answered.json()["request_id"])
    assert spent(served)[1] == before[1] + 1
    assert code(release(zoe, draft=draft(), request_id="fresh")) == (409, "budget_exceeded")
    sentences = [entry["sentence"] for entry in zoe.get(f"{API}/ledger/entries").json()["entries"]]
    assert f"ada approved request {request['id']} of zoe." in sentences
    assert any(f"(request {request['id']}, approved)" in sentence for sentence in sentences)


@pytest.mark.slow
def test_a_changed_request_is_released_by_its_number(served: Served, zoe: TestClient, curator: TestClient) -> None:
    request = asked(zoe, epsilon=0.06)
    smaller = {**request["draft"], "dataset": DATASET, "epsilon": 0.02}
    changed = decided(curator, request, "change", draft=smaller, reason="less will do").json()
    assert (changed["state"], changed["version"], changed["reason"]) == ("approved", 2, "less will do")
    assert code(release(zoe, draft=draft(epsilon=0.06), request_id=request["name"])) == (409, "budget_exceeded")
    answered = release(zoe, request=request["id"], request_id=changed["name"])
    assert answered.json()["charged"]["epsilon"] == pytest.approx(0.02, rel=1e-6)
    assert code(decided(curator, request, "decline", reason="too late")) == (409, "conflict")


@pytest.mark.slow
def test_a_request_is_its_owners_and_the_version_that_was_looked_at(
    served: Served, zoe: TestClient, curator: TestClient
) -> None:
    request, yan = asked(zoe, epsilon=0.03), served.signed_in("yan")
    assert code(yan.get(f"{API}/requests/{request['id']}")) == (404, "not_found")
    assert code(decided(yan, request, "withdraw")) == (404, "not_found")
    assert yan.get(f"{API}/requests").json()["requests"] == []
    decided(curator, request, "approve")
    assert code(release(yan, request=request["id"], request_id="mine")) == (404, "not_found")
    assert code(release(yan, draft=draft(epsilon=0.03), request_id="mine")) == (409, "budget_exceeded")
    assert code(decided(curator, request, "approve", version=2)) == (409, "conflict")
    assert decided(zoe, request, "withdraw").json()["state"] == "withdrawn"
    assert code(release(zoe, draft=draft(epsilon=0.03), request_id="late")) == (409, "budget_exceeded")
    assert code(curator.post(f"{API}/requests", json={"draft": draft(), "purpose": "x"})) == (403, "not_allowed")
    assert asked(zoe, epsilon=0.03)["id"] != request["id"]


@pytest.mark.slow
def test_a_client_asks_and_decides_in_the_words_of_a_local_ledger(served: Served) -> None:
    zoe, ada = remote(served, "zoe"), remote(served, "ada", "read", "plan", "spend", "manage")
    plan = zoe.study(DATASET).plan(ft.count(by="sex"), ft.mean("age"), epsilon=0.07)
    request = plan.submit("a talk", title="ages")
    assert (request.state, request.title) == ("open", "ages")
    with pytest.raises(BudgetExceeded, match="waits for a curator"):
        plan.release()
    with pytest.raises(NotAllowed):
        zoe.requests.approve(request.id)
    assert ada.requests.approve(request, expires="2035-12-31").state == "approved"
    release = zoe.study(DATASET).plan(ft.count(by="sex"), ft.mean("age"), epsilon=0.07).release()
    assert release.cost == pytest.approx(request.epsilon)
    assert zoe.requests.release(request.id).records() == release.records()
    assert [each.state for each in zoe.requests.all(state="used") if each.id == request.id] == ["used"]
    second = zoe.study(DATASET).plan(ft.count(), epsilon=0.02).submit("more")
    assert ada.requests.decline(second, "not today").reason == "not today"
    bob = remote(served, "bob").study(DATASET)
    more = bob.on_request().plan(ft.count(), epsilon=1.5).submit("more than the grant")
    assert remote(served, "bob").requests.withdraw(more).state == "withdrawn"
    for client in (zoe, ada):
        client.close()


@pytest.mark.slow
def test_a_policy_covers_what_it_names_over_http_too(served: Served, zoe: TestClient, curator: TestClient) -> None:
    path = f"{API}/datasets/{DATASET}/policies/zoe"
    words = {"epsilon": 0.05, "delta": 1e-8, "statistics": ["histogram"], "columns": ["age"]}
    assert code(zoe.put(path, json=words)) == (403, "not_allowed")
    view = curator.put(path, json=words).json()
    assert view["left"] == 0.05 and "per quarter" in view["sentence"]
    histogram = {"statistics": [{"kind": "histogram", "column": "age", "bins": 5}]}
    assert release(zoe, draft=draft(0.04, **histogram), request_id="in-policy").status_code == 200
    assert code(release(zoe, draft=draft(0.04, **histogram), request_id="too-much")) == (409, "budget_exceeded")
    assert code(release(zoe, draft=draft(0.001), request_id="a-count")) == (409, "budget_exceeded")
    assert zoe.get(f"{API}/policies").json()["policies"][0]["left"] == pytest.approx(0.01, abs=1e-4)
    assert served.signed_in("yan").get(f"{API}/policies").json()["policies"] == []
    assert curator.put(path, json={"epsilon": 0.0}).json()["epsilon"] == 0.0
    assert zoe.get(f"{API}/policies").json()["policies"] == []
    assert code(curator.put(f"{API}/datasets/nowhere/policies/zoe", json=words)) == (404, "not_found")
    assert code(curator.put(path, json={"epsilon": 0.1, "expires": "2020-01-01"})) == (422, "invalid_value")


@pytest.mark.slow
def test_a_request_for_a_dataset_with_another_account_is_asked_changed_and_released(
    served: Served, zoe: TestClient, curator: TestClient
) -> None:
    (served.settings.data / "clinic.csv").write_text(people_csv(), encoding="utf-8")
    columns = {"sex": {"categories": ["F", "M"]}}
    new = {"name": "clinic", "source": "clinic.csv", "account": "patients", "columns": columns, "epsilon": 1.0}
    assert curator.post(f"{API}/datasets", json=new).status_code == 201
    curator.put(f"{API}/datasets/clinic/grants/zoe", json={"epsilon": 0.0})
    request = asked(zoe, dataset="clinic")
    assert (request["dataset"], request["draft"]["dataset"]) == ("clinic", "clinic")
    assert not any("expected=" in each for each in request["assumptions"])
    listed = curator.get(f"{API}/requests", params={"dataset": "clinic"}).json()["requests"]
    assert [each["id"] for each in listed] == [request["id"]]
    other = {**request["draft"], "dataset": DATASET}
    assert code(decided(curator, request, "change", draft=other, reason="elsewhere")) == (409, "conflict")
    changed = decided(curator, request, "change", draft={**request["draft"], "epsilon": 0.02}, reason="less will do")
    assert changed.json()["state"] == "approved", changed.text
    done = release(zoe, request=request["id"], request_id=changed.json()["name"])
    assert done.status_code == 200 and served.state.root.budget("patients").count == 1
    policy = curator.put(f"{API}/datasets/clinic/policies/zoe", json={"epsilon": 0.05})
    assert policy.status_code == 200 and policy.json()["dataset"] == "patients"
    assert len(zoe.get(f"{API}/policies", params={"dataset": "clinic"}).json()["policies"]) == 1
    assert curator.put(f"{API}/datasets/patients/policies/zoe", json={"epsilon": 0.0}).status_code == 200


def _session(**changes: Any) -> dict[str, Any]:
    asks = {"dataset": DATASET, "alpha": 0.4, "queries": 5, "columns": ["sex"], "rows": 100_000, "epsilon": 0.5}
    return {**asks, **changes}


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
@pytest.mark.parametrize("who", ["zoe", "bob"])  # a grant of nothing, and one that is too small
def test_a_query_session_is_asked_for_approved_and_opened_once(served: Served, curator: TestClient, who: str) -> None:
    hers, asks = served.signed_in(who), _session(epsilon=1.2 if who == "bob" else 0.5)
    opening = {**asks, "request_id": "asked-for", "confirmed_epsilon": asks["epsilon"], "wait": 30}
    if who == "bob":
        served.state.ledger(served.caller("ada")).grant(DATASET, "bob", 1.0, 1e-9)
        assert code(hers.post(f"{API}/sessions/price", json=asks)) == (409, "budget_exceeded")
        price = hers.post(f"{API}/sessions/price", json={**asks, "on_request": True}).json()
        assert price["epsilon"] == pytest.approx(1.2)
    before = spent(served)
    assert code(waited_for(hers, f"{API}/sessions", {**opening, "request_id": "session-early"})) == (
        409,
        "budget_exceeded",
    )
    body = {"session": asks, "purpose": "who is how old", "title": "sexes"}
    request = hers.post(f"{API}/requests", json=body).json()
    assert (request["kind"], request["title"], request["statistics"]) == ("session", "sexes", [])
    assert request["draft"] == {**asks, "confidence": 0.95} and "query session over 2 cells" in request["words"]
    assert hers.post(f"{API}/requests", json=body).json()["id"] == request["id"] and spent(served) == before
    changed = decided(curator, request, "change", draft=draft(), reason="a plan will do")
    assert code(changed) == (409, "conflict") and "and no plan" in changed.json()["error"]["message"]
    assert decided(curator, request, "approve").json()["state"] == "approved"
    other = {**opening, "queries": 6, "request_id": "session-other"}
    assert code(waited_for(hers, f"{API}/sessions", other)) == (409, "budget_exceeded")
    session = waited_for(hers, f"{API}/sessions", opening)
    assert session.status_code == 200, session.text
    done = hers.get(f"{API}/requests/{request['id']}").json()
    assert (done["state"], done["request_id"]) == ("used", session.json()["id"])
    assert hers.post(f"{API}/sessions/asked-for/ask", json={"question": "sex = 'F'"}).status_code == 200
    assert spent(served)[0] <= before[0] + asks["epsilon"] + 1e-6
    assert code(waited_for(hers, f"{API}/sessions", {**opening, "request_id": "session-again"})) == (
        409,
        "budget_exceeded",
    )


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_a_session_asked_for_without_alpha_is_opened_as_it_was_shown(served: Served, curator: TestClient) -> None:
    """The server finds the error that the price affords; what was approved is that session and no other."""
    zoe = served.signed_in("zoe")
    asks = {name: value for name, value in _session(epsilon=0.3).items() if name != "alpha"}
    price = zoe.post(f"{API}/sessions/price", json={**asks, "on_request": True}).json()
    before = spent(served)
    request = zoe.post(f"{API}/requests", json={"session": asks, "purpose": "as exact as it gets"}).json()
    assert request["draft"]["alpha"] == price["alpha"] and request["epsilon"] == pytest.approx(0.3, abs=1e-6)
    assert decided(curator, request, "approve").json()["state"] == "approved"
    opening = {**asks, "request_id": "no-alpha", "confirmed_epsilon": 0.3, "wait": 30}
    session = waited_for(zoe, f"{API}/sessions", opening)
    assert session.status_code == 200 and session.json()["plan"]["alpha"] == price["alpha"], session.text
    assert spent(served)[0] <= before[0] + 0.3 + 1e-6
    again = waited_for(zoe, f"{API}/sessions", {**opening, "request_id": "no-alpha-again"})
    assert code(again) == (409, "budget_exceeded")


def test_a_request_is_for_one_thing_at_a_stated_price(zoe: TestClient) -> None:
    for body in ({}, {"draft": draft(), "session": _session()}, {"session": _session(), "series": {}}):
        response = zoe.post(f"{API}/requests", json={**body, "purpose": "x"})
        assert code(response) == (422, "invalid_request"), response.text
    session = {name: value for name, value in _session().items() if name != "epsilon"}
    refused = zoe.post(f"{API}/requests", json={"session": session, "purpose": "x"})
    assert code(refused) == (422, "invalid_value") and "what the session may cost" in refused.text


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_a_client_asks_for_a_session_in_the_words_of_a_local_study(served: Served) -> None:
    zoe, ada = remote(served, "zoe"), remote(served, "ada", "read", "plan", "spend", "manage")
    words: dict[str, Any] = {"alpha": 0.3, "queries": 5, "columns": "sex", "rows": 100_000, "epsilon": 0.4}
    study = zoe.study(DATASET)
    assert study.query_session_plan(**words).epsilon == pytest.approx(0.4)
    request = study.submit_query_session("a talk", **words, title="sexes")
    assert (request.document["kind"], request.title) == ("session", "sexes")
    with pytest.raises(BudgetExceeded):
        study.query_session(**words)
    ada.requests.approve(request)
    session = study.query_session(**words)
    assert session.request_id == zoe.requests.one(request.id).request_id
    assert study.query_session(**words).request_id == session.request_id
    for client in (zoe, ada):
        client.close()


WALK: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("POST", f"{API}/releases"): [
        {"draft": draft(0.01), "request_id": "walk-1", "wait": 30},
        {"draft": draft(0.01, on_request=True), "request_id": "walk-2", "wait": 30},
        {"draft": draft(0.01, fit=False, reserve=0.001), "request_id": "walk-3", "wait": 30},
        {"draft": {"dataset": DATASET, "statistics": [{"kind": "count"}]}, "request_id": "walk-4", "wait": 30},
        {"request": 1, "request_id": "walk-5", "wait": 30},
        {"plan": "0" * 16, "request_id": "walk-6", "wait": 30},
    ],
    ("POST", f"{API}/datasets/{{name}}/rows"): [{"request_id": "walk-rows", "wait": 30, "share": 0.5}],
    ("POST", f"{API}/datasets/{{name}}/parts"): [{"by": "sex", "epsilon": 0.01}],
    ("POST", f"{API}/datasets/{{name}}/discoveries"): [
        {"request_id": "walk-find", "wait": 30, "rows_per_unit": True},
        {"request_id": "walk-find-all", "wait": 30, "epsilon": 0.01},
    ],
    ("POST", f"{API}/sessions"): [{**_session(), "request_id": "walk-session", "wait": 30}],
    ("POST", f"{API}/sessions/{{id}}/ask"): [{"question": "sex = 'F'"}],
    # test_series.py has the same of a table with dates.
    ("POST", f"{API}/series"): [
        {"dataset": DATASET, "date": "age", "steps": 12, "request_id": "walk-series", "wait": 30}
    ],
    ("POST", f"{API}/series/{{id}}/release"): [{}],
    ("POST", f"{API}/synthetic-tables"): [
        {"dataset": DATASET, "epsilon": 0.01, "columns": ["sex"], "request_id": "walk-table", "wait": 30},
        {"dataset": DATASET, "epsilon": 0.01, "columns": ["sex"], "on_request": True, "request_id": "walk-own"},
        {"dataset": DATASET, "request_id": "walk-all", "wait": 30},
    ],
}


@pytest.mark.slow
def test_no_route_spends_for_an_analyst_without_an_approval(served: Served) -> None:
    """Every route whose scope is `spend` is walked; one that is added must be added here."""
    spending = {route for route, rule in PERMISSIONS.items() if rule.scope == "spend"}
    assert spending == set(WALK)
    yan, before = served.signed_in("yan"), spent(served)
    for (method, path), bodies in WALK.items():
        for body in bodies:
            response = yan.request(method, path.format(name=DATASET, id="walk-session"), json=body)
            while response.status_code == 202:
                response = yan.request(method, path.format(name=DATASET, id="walk-session"), json=body)
            assert response.status_code in (403, 404, 409, 422), (path, body, response.text)
    for method, path in PERMISSIONS:
        if PERMISSIONS[method, path].scope == "manage":
            called = path.format(name=DATASET, user="yan", label="x", id=1, request_id="ada:first")
            assert yan.request(method, called, json={}).status_code == 403, path
    assert spent(served) == before
    assert served.state.root.budget(DATASET, "yan").count == 0


class Inbox(http.server.BaseHTTPRequestHandler):
    """An address that keeps what it is sent, and refuses as often as it is told to."""

    received: list[tuple[dict[str, str], bytes]]
    failures: int
    arrived: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        inbox = type(self)
        if inbox.failures > 0:
            inbox.failures -= 1
            self.send_response(503 if inbox.failures else 307)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        else:
            inbox.received.append((dict(self.headers), body))
            self.send_response(204)
        self.end_headers()
        if inbox.received:
            inbox.arrived.set()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def inbox() -> Iterator[tuple[str, type[Inbox]]]:
    kept = type("Kept", (Inbox,), {"received": [], "failures": 0, "arrived": threading.Event()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kept)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", kept
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_webhook_is_told_ids_and_titles_signed_and_retried(
    served: Served, zoe: TestClient, inbox: tuple[str, type[Inbox]]
) -> None:
    address, kept = inbox
    kept.failures = 2  # one refusal, one redirect, which is not followed
    told = Webhook(WebhookSettings(address, SECRET), pauses=(0.01, 0.01, 0.01))
    before = served.state.webhook
    object.__setattr__(served.state, "webhook", told)
    try:
        request = asked(zoe, epsilon=0.011, title="a title")
        assert kept.arrived.wait(600)
    finally:
        object.__setattr__(served.state, "webhook", before)
        told.close()
    ((headers, body),) = kept.received
    facts = json.loads(body)
    assert (facts["event"], facts["request"], facts["title"]) == ("request.submitted", request["id"], "a title")
    assert set(facts) == {
        "event", "id", "at", "request", "title", "dataset", "analyst", "actor", "state", "version",
    }  # fmt: skip
    assert b"yearbook" not in body and b"statistics" not in body
    signed = hmac.new(SECRET.encode(), headers[MOMENT].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE] == f"sha256={signed}"


@pytest.mark.parametrize("drip", [b"HTTP/1.1 100 Continue\r\n\r\n", b"H"], ids=["interim answers", "bytes"])
def test_an_address_that_never_finishes_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, drip: bytes) -> None:
    """Each piece comes in time; a limit for one read would wait for ever, and no later message would be sent."""
    monkeypatch.setattr(webhook_module, "TIMEOUT", 0.3)
    ended = threading.Event()

    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            while not ended.wait(0.02):
                connection.sendall(drip)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        told = Webhook(WebhookSettings(f"http://127.0.0.1:{listening.getsockname()[1]}/", SECRET), pauses=())
        problems: list[str | None] = []
        sending = threading.Thread(target=lambda: problems.append(told._sent(b"{}")))
        sending.start()
        sending.join(60)
        given_up = not sending.is_alive()
        ended.set()
        thread.join(60)
    assert given_up and problems != [None]


def test_an_address_that_does_not_answer_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = threading.Event()
    monkeypatch.setattr(Webhook, "_sent", lambda self, body: "no answer" if stuck.wait(30) else None)
    monkeypatch.setattr(webhook_module, "TIMEOUT", 0.01)
    told = Webhook(WebhookSettings("http://127.0.0.1:1/", SECRET), pauses=())
    for number in range(3 * webhook_module.MOST_WAITING):
        told.tell("request.submitted", request=number)  # the queue is full long before, and nobody waits
    told.close()
    stuck.set()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://x/",
        "http://",
        "gopher://x",
        "https://a:b@c/",
        "",
        "http://x:99999/",
        "http://x:port/",
        "http://x/ y",
        "http://x/\r\nHost: y",
    ],
)
def test_a_webhook_is_an_http_address(url: str) -> None:
    with pytest.raises(InvalidValue):
        WebhookSettings(url, SECRET)
    with pytest.raises(InvalidValue):
        WebhookSettings("https://hooks.example.org", "short")
    assert "hooks" not in repr(WebhookSettings("https://hooks.example.org/T0KEN", SECRET))
