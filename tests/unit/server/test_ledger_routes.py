"""The ledger over HTTP: sentences, pages, burn-downs, verifications and exports, each to whoever may see it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.errors import BudgetExceeded, RequestRefused
from farthing.ledger import Ledger, Verification, open_ledger
from farthing.server.services.ledger_pages import STATES, request_of, sentence_of
from unit.server.conftest import DATASET, Served, once_a_module, served_in

API = "/api/v1/ledger"


@pytest.fixture(scope=once_a_module, autouse=True)
def spending(served: Served) -> None:
    """Everything that a ledger can say."""
    state, ada = served.state, served.state.ledger(served.caller("ada"))
    bob = state.ledger(served.caller("bob"))
    served.add("carl", "analyst")
    served.add("dora", "analyst")
    ada.grant(DATASET, "carl", 0.5)
    ada.set_budget(DATASET, 4.0, 1e-6)
    ada.set_budget(DATASET, 3.0, 1e-6)
    ada.reserve(DATASET, 0.25, name="next year")
    ada.release(ada.charge(DATASET, 0.125, request_id="ada:one"), "an answer of ada's")
    bob.release(bob.charge(DATASET, 0.25, request_id="bob:one"), "an answer of bob's")
    bob.forfeit(bob.charge(DATASET, 0.125, request_id="bob:two"), "the engine died")
    bob.charge(DATASET, 0.0, request_id=f"bob:session round 7 {16 * 'c'}")
    with pytest.raises(BudgetExceeded):
        bob.charge(DATASET, 0.9, request_id="bob:three")
    carl = state.ledger(_caller(served, "carl"))
    carl.charge(DATASET, 0.25, request_id="carl:secret")
    ada.reserve(DATASET, 0.0, name="next year")


def _caller(served: Served, user: str) -> Any:
    from farthing.server.auth.permissions import Caller

    return Caller(user, "analyst", frozenset(), "session")


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def entries(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{API}/entries", params=query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["entries"])


def test_the_ledger_tells_what_it_is(served: Served, curator: TestClient, analyst: TestClient) -> None:
    for client in (curator, analyst):
        found = client.get(API).json()
        assert found["id"] == served.state.root.id and found["entries"] == served.state.root.last()
        assert found["verified"]["ok"] and found["datasets"] == [DATASET]
    assert served.signed_in("dora").get(API).json()["datasets"] == []


def test_every_kind_of_entry_has_a_plain_sentence(auditor: TestClient) -> None:
    said = [(entry["kind"], entry["sentence"]) for entry in entries(auditor)]
    assert said == [
        ("created", "The ledger was created."),
        ("dataset", "ada opened the account people: epsilon 3 and delta 1e-06 in all."),
        ("grant", "ada lets bob spend at most epsilon 1 and delta 1e-07 of people."),
        ("grant", "ada lets carl spend at most epsilon 0.5 of people."),
        ("budget", "ada raised the budget of people to epsilon 4 and delta 1e-06 in all."),
        ("budget", "ada set the budget of people to epsilon 3 and delta 1e-06 in all."),
        ("reserve", "ada set epsilon 0.25 of people aside as next year."),
        ("charge", "ada was charged epsilon 0.125 for ada:one, before anything was computed."),
        ("released", "The answer of ada:one was recorded; epsilon 0.125 stays spent."),
        ("charge", "bob was charged epsilon 0.25 for bob:one, before anything was computed."),
        ("released", "The answer of bob:one was recorded; epsilon 0.25 stays spent."),
        ("charge", "bob was charged epsilon 0.125 for bob:two, before anything was computed."),
        ("forfeited", "bob:two will never have an answer (the engine died); epsilon 0.125 stays spent."),
        ("charge", "A round of bob's session bob:session began; the session has paid for it."),
        (
            "refused",
            "bob asked for epsilon 0.9 (bob:three) and was refused: epsilon 0.625 was left in the grant of bob in "
            "people.",
        ),
        ("charge", "carl was charged epsilon 0.25 for carl:secret, before anything was computed."),
        ("reserve", "ada freed what was set aside in people as next year."),
    ]


def test_entries_carry_their_numbers_and_states(auditor: TestClient) -> None:
    found = entries(auditor)
    for entry in found:
        assert entry["state"] == STATES.get(entry["kind"])
    by_request = {(entry["request_id"], entry["kind"]): entry for entry in found}
    assert by_request["bob:one", "charge"]["epsilon"] == 0.25
    assert by_request["bob:session round 7", "charge"]["epsilon"] == 0.0
    assert not any("cccc" in json.dumps(entry) for entry in found)  # what keeps others from taking a round


def test_an_analyst_sees_entries_of_the_own_grant_alone(analyst: TestClient) -> None:
    found = entries(analyst)
    assert found and {entry["analyst"] for entry in found} == {"bob"}
    assert "carl" not in json.dumps(found) and "ada:one" not in json.dumps(found)


def test_pages_lead_through_everything_once_in_both_orders(served: Served, auditor: TestClient) -> None:
    for newest in (False, True):
        seen: list[int] = []
        since: int | None = 0
        while since is not None:
            found = auditor.get(f"{API}/entries", params={"since": since, "limit": 3, "newest": newest}).json()
            seen += [entry["sequence"] for entry in found["entries"]]
            since = found["next"]
        expected = list(range(1, served.state.root.last() + 1))
        assert seen == (expected[::-1] if newest else expected)


def test_whoever_begins_far_beyond_the_newest_entry_gets_the_newest_and_holds_nobody_up(
    auditor: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = auditor.get(f"{API}/entries", params={"newest": True}).json()
    reads = []

    def counted(ledger: Ledger, *words: Any, **more: Any) -> Any:
        reads.append(more)
        assert len(reads) < 5, "it reads windows in which nothing can be"
        return entries_of(ledger, *words, **more)

    entries_of = Ledger.entries
    monkeypatch.setattr(Ledger, "entries", counted)
    assert auditor.get(f"{API}/entries", params={"newest": True, "since": 2**53}).json() == newest


def test_a_page_ends_after_so_many_entries_even_if_few_are_ones_own(
    analyst: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.server.services.ledger_pages.MOST_READ", 2)
    found, since, pages = [], 0, 0
    while since is not None:
        page = analyst.get(f"{API}/entries", params={"since": since}).json()
        found += page["entries"]
        since, pages = page["next"], pages + 1
    assert pages > 5 and len(found) == len({entry["sequence"] for entry in found}) == 7


def test_entries_of_a_dataset_that_is_not_there_are_not_found(served: Served, auditor: TestClient) -> None:
    assert code(auditor.get(f"{API}/entries", params={"dataset": "nothing"})) == (404, "not_found")
    assert len(entries(auditor, dataset=DATASET)) == len(entries(auditor)) - 1
    dora = served.signed_in("dora")
    assert code(dora.get(f"{API}/entries", params={"dataset": DATASET})) == (404, "not_found")
    assert entries(dora) == []


def test_a_burn_down_ends_with_what_is_spent_now(served: Served, auditor: TestClient) -> None:
    found = auditor.get(f"{API}/burn-down", params={"dataset": DATASET}).json()
    assert found["total"] == 3.0
    spent = [point["spent"] for point in found["points"]]
    assert spent == sorted(spent) and spent[-1] == served.state.root.budget(DATASET).spent_upper
    before = len(spent)
    served.state.root.charge(DATASET, 0.01, request_id="later")
    again = auditor.get(f"{API}/burn-down", params={"dataset": DATASET}).json()
    assert len(again["points"]) == before + 1 and again["points"][-1]["spent"] > spent[-1]


def test_an_analyst_sees_the_burn_down_of_the_own_grant(served: Served, analyst: TestClient) -> None:
    for query in ({"dataset": DATASET}, {"dataset": DATASET, "analyst": "carl"}):
        found = analyst.get(f"{API}/burn-down", params=query).json()
        assert found["analyst"] == "bob" and found["total"] == 1.0
        assert found["points"][-1]["spent"] == served.state.root.budget(DATASET, "bob").spent_upper
        assert "carl" not in json.dumps(found)
    assert code(served.signed_in("dora").get(f"{API}/burn-down", params={"dataset": DATASET}))[0] == 404


def test_a_curator_may_look_at_one_grant(curator: TestClient) -> None:
    found = curator.get(f"{API}/burn-down", params={"dataset": DATASET, "analyst": "carl"}).json()
    assert found["total"] == 0.5 and found["points"][-1]["spent"] == 0.25
    missing = curator.get(f"{API}/burn-down", params={"dataset": DATASET, "analyst": "nobody"})
    assert code(missing) == (404, "not_found")


@pytest.mark.slow
def test_everybody_may_verify_and_look_for_a_receipt(
    served: Served, curator: TestClient, analyst: TestClient, auditor: TestClient
) -> None:
    receipt = served.state.root.receipt("bob:one")
    assert receipt is not None
    for client in (curator, analyst, auditor):
        assert client.post(f"{API}/verify", json={}).json()["ok"]
        for sent in (receipt.to_json(), receipt.to_dict(), json.dumps({"receipt": receipt.to_json()})):
            found = client.post(f"{API}/verify", json={"receipt": sent}).json()
            assert found["ok"] and found["entries"] == served.state.root.last()


def test_a_receipt_of_something_else_is_told_apart_from_a_bad_ledger(served: Served, analyst: TestClient) -> None:
    receipt = served.state.root.receipt("bob:one")
    assert receipt is not None
    forged = {**receipt.to_dict(), "epsilon": 0.01}
    found = analyst.post(f"{API}/verify", json={"receipt": json.dumps(forged)}).json()
    assert not found["ok"] and found["ledger_ok"] and "not the one of the receipt" in found["problems"][0]
    assert analyst.get(API).json()["verified"]["ok"]  # which is the ledger's
    for nonsense in ("", "{", "[]", "{}", "null", '{"receipt": 3}', "[" * 5000):
        assert code(analyst.post(f"{API}/verify", json={"receipt": nonsense})) == (422, "invalid_value"), nonsense


def test_whoever_asks_while_a_verification_runs_gets_its_result(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    books, found = served.state.history, Verification(True, 3, "ab")
    running: Future[Verification] = Future()
    monkeypatch.setitem(books._running, "", running)
    monkeypatch.setattr(books, "_root", None)  # a second one would fail
    told: list[Verification] = []
    thread = threading.Thread(target=lambda: told.append(books.verify(None)))
    thread.start()
    running.set_result(found)
    thread.join(600)
    assert told == [found]


def test_verifications_run_one_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farthing.server.services.ledger_history.LONGEST", 0.01)
    books = served.state.history
    with books._verifying, pytest.raises(RequestRefused) as refused:
        books.verify(None)
    assert refused.value.code == "rate_limited" and not books._running


def test_a_verification_that_takes_too_long_is_stopped(
    served: Served, analyst: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.server.services.ledger_history.LONGEST", 0.0)
    monkeypatch.setattr("time.monotonic", iter(range(1_000_000)).__next__)
    with pytest.raises(Exception, match="takes more than"):
        served.state.history._verified(None)


def test_an_export_holds_every_entry_and_is_for_curators_and_auditors(
    served: Served, curator: TestClient, auditor: TestClient, analyst: TestClient
) -> None:
    for client in (curator, auditor):
        answer = client.get(f"{API}/export")
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["sequence"] for line in lines] == list(range(1, served.state.root.last() + 1))
        assert answer.headers["content-disposition"].startswith("attachment")
    assert code(analyst.get(f"{API}/export")) == (403, "not_allowed")


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Served]:
    """A server whose ledger somebody has edited behind its back."""
    made = served_in(tmp_path)
    with sqlite3.connect(tmp_path / "study.db") as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')
        (table,) = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%entries%'"
        ).fetchone()
        connection.execute(f"UPDATE {table} SET actor = 'mallory' WHERE sequence = 2")
    connection.close()
    yield made
    made.state.close()


def test_a_ledger_that_was_edited_does_not_verify(damaged: Served) -> None:
    found = damaged.signed_in("eve").post(f"{API}/verify", json={})
    assert found.status_code == 200 and not found.json()["ok"] and found.json()["problems"]
    assert not found.json()["ledger_ok"]
    bob = damaged.signed_in("bob")
    assert bob.post(f"{API}/verify", json={}).json()["problems"] == ["the ledger does not verify; tell its curator"]
    assert not bob.get(API).json()["verified"]["ok"]
    assert code(bob.get(f"{API}/entries")) == (503, "ledger_tampered")


def test_an_epsilon_and_a_delta_stay_spent(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db") as ledger:
        ledger.register("people", 1.0, 1e-6)
        ledger.release(ledger.charge("people", (0.5, 1e-8), request_id="r-1"), "{}")
        ledger.forfeit(ledger.charge("people", (0.25, 1e-8), request_id="r-2"), "gone")
        said = [sentence_of(entry) for entry in ledger.entries() if entry.kind in ("released", "forfeited")]
    assert said[0].endswith("epsilon 0.5 and delta 1e-08 stay spent.")
    assert said[1].endswith("epsilon 0.25 and delta 1e-08 stay spent.")


def test_the_notes_of_a_session_are_told_without_the_letters_that_protect_them(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "study.db", actor="ada") as ledger:
        ledger.register("people", epsilon=1.0)
        ledger.charge("people", 0.0, request_id=f"asking notes 1 {16 * 'c'}")
        *_, entry = ledger.entries()
    kept = "ada's session asking begins to keep free answers, so that they can be asked for again."
    assert sentence_of(entry) == kept and request_of(entry) == "asking notes 1"
