"""Sessions over HTTP: priced, opened once, asked in by their owner alone, ended with a way out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from farthing.server.jobs.job_worker import Worker, WorkerProcesses
from farthing.server.services.app_state import State
from farthing.server.services.open_sessions import OpenSessions
from farthing.server.services.session_service import answered, own_session
from farthing.server.store import session_answers as rows
from farthing.study import study_account
from unit.server.conftest import DATASET, Served, once_a_module, people_csv, waited_for

API = "/api/v1/sessions"
ROWS = 4_000
SAID = 40_000  # rows that are said to be there: with so many, a small epsilon will do
SMALL: dict[str, Any] = {
    "dataset": DATASET, "alpha": 0.1, "queries": 50, "columns": ["sex", "age"], "rows": SAID, "epsilon": 0.05,
}  # fmt: skip
COLUMNS = {"age", "sex", "income"}


@pytest.fixture(scope=once_a_module, autouse=True)
def worker(served: Served) -> Iterator[None]:
    """A worker of this module's server, in this process, and more people in the table."""
    (served.settings.data / "people.csv").write_text(people_csv(ROWS), encoding="utf-8")
    served.add("carl", "analyst")
    ada = served.state.ledger(served.caller("ada"))
    for user in ("bob", "carl"):
        ada.grant(DATASET, user, 1.0)  # without a delta, which takes longer to plan with
    made = Worker(served.state, look=0.02)
    thread = threading.Thread(target=made.run)
    thread.start()
    yield
    made.drain()
    thread.join(600)


def opened(client: TestClient, request_id: str, **changes: Any) -> Any:
    return waited_for(client, API, {**SMALL, "request_id": request_id, "wait": 30, **changes})


def asked(client: TestClient, session: str, question: str) -> Any:
    return client.post(f"{API}/{session}/ask", json={"question": question})


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def spent(served: Served, analyst: str | None = None) -> tuple[float, int]:
    budget = served.state.root.budget(DATASET, analyst)
    return budget.spent_upper, budget.count


@pytest.fixture(scope=once_a_module)
def session(analyst: TestClient) -> str:
    """A session of Bob's."""
    found = opened(analyst, "first")
    assert found.status_code == 200, found.text
    return str(found.json()["id"])


@pytest.mark.slow
def test_a_newcomer_is_quoted_a_price_for_a_dataset_alone(served: Served, analyst: TestClient) -> None:
    before = spent(served)
    found = analyst.post(f"{API}/price", json={"dataset": DATASET, "rows": 100_000}).json()
    assert found["epsilon"] == pytest.approx(1.0, rel=0.01) and found["alpha"] == 0.05
    assert found["error"] == 5_000 and "within 5,000 of the true number" in found["promise"]
    assert {column["name"] for column in found["columns"]} == COLUMNS and found["left_out"] == []
    income = next(column for column in found["columns"] if column["name"] == "income")
    assert income["edges"][:3] == [0, 2000, 4000] and income["cells"] == 50
    assert spent(served) == before


@pytest.mark.slow
def test_rows_that_nobody_knows_are_guessed_in_a_price_and_that_is_said(analyst: TestClient) -> None:
    found = analyst.post(f"{API}/price", json={"dataset": DATASET, "columns": ["sex"]}).json()
    assert found["rows_are_a_guess"] and "are assumed" in found["notes"][0]


@pytest.mark.slow
def test_a_promise_that_cannot_be_kept_names_the_nearest_that_can(analyst: TestClient) -> None:
    answer = analyst.post(f"{API}/price", json={**SMALL, "alpha": 1e-6})
    assert code(answer) == (409, "infeasible")
    closest = answer.json()["error"]["fields"]["closest"]
    assert analyst.post(f"{API}/price", json={**SMALL, "alpha": closest * 1.01}).status_code == 200


def test_an_error_that_nobody_names_is_one_that_can_be_kept(analyst: TestClient) -> None:
    wish = {"dataset": DATASET, "columns": ["sex"], "rows": 1_000, "epsilon": 0.5}
    found = analyst.post(f"{API}/price", json=wish).json()
    assert 0.05 < found["alpha"] < 1


@pytest.mark.slow
def test_an_auditor_may_look_at_prices_and_open_nothing(auditor: TestClient) -> None:
    assert auditor.post(f"{API}/price", json=SMALL).status_code == 200
    assert opened(auditor, "mine").status_code == 403
    assert asked(auditor, "bob:first", "age < 30").status_code == 403
    assert auditor.get(API).json() == {"sessions": []}


@pytest.mark.slow
def test_opening_is_charged_once_however_often_it_is_asked_for(
    served: Served, analyst: TestClient, session: str
) -> None:
    before = spent(served, "bob")
    again = opened(analyst, "first").json()
    assert again["id"] == session == "bob:first" and again["state"] == "released"
    assert spent(served, "bob") == before
    assert again["plan"]["epsilon"] == pytest.approx(0.05) and again["updates_left"] == again["plan"]["updates"]
    assert {column["name"] for column in again["columns"]} == {"sex", "age"}
    assert code(opened(analyst, "first", alpha=0.2)) == (409, "conflict")


@pytest.mark.slow
def test_the_same_question_in_other_words_has_the_same_answer(analyst: TestClient, session: str) -> None:
    first = asked(analyst, session, "age >= 65").json()
    again = asked(analyst, session, " not age < 65 ").json()
    assert (first["value"], first["error"]) == (again["value"], again["error"])
    assert again["repeated"] and again["number"] == first["number"]
    assert first["questions_left"] == again["questions_left"]
    assert 0 <= first["value"] <= ROWS + first["error"] and first["sentence"].startswith("About ")


def test_the_history_holds_each_question_once(analyst: TestClient, session: str) -> None:
    asked(analyst, session, "sex = 'F'")
    asked(analyst, session, "sex = 'F'")
    view = analyst.get(f"{API}/first").json()
    questions = [one["question"] for one in view["history"]]
    assert questions.count("sex = 'F'") == 1 and [one["number"] for one in view["history"]] == list(
        range(1, len(questions) + 1)
    )
    assert view["asked"] == len(questions) and view["questions_left"] == 50 - len(questions)
    listed = analyst.get(API, params={"dataset": DATASET}).json()["sessions"]
    assert session in [one["id"] for one in listed] and all(one["history"] == [] for one in listed)
    assert analyst.get(API, params={"dataset": "another"}).json() == {"sessions": []}


def test_a_condition_that_cannot_be_read_says_where_and_uses_nothing_up(analyst: TestClient, session: str) -> None:
    before = analyst.get(f"{API}/{session}").json()
    answer = asked(analyst, session, "age >= 50 and height > 180")
    assert code(answer) == (422, "invalid_expression")
    assert answer.json()["error"]["fields"]["position"] == 14
    for bad in ("age <", "age < 'x'", "income > 3", "1 + 1", "age is null", "sex = 'X", "age" * 3000):
        assert asked(analyst, session, bad).status_code == 422, bad
    after = analyst.get(f"{API}/{session}").json()
    assert (after["asked"], after["updates_left"]) == (before["asked"], before["updates_left"])


@pytest.mark.parametrize("question", [None, 3, "", "x" * 20_001, ["age < 3"], True])
def test_a_question_that_is_no_text_is_refused(analyst: TestClient, session: str, question: Any) -> None:
    answer = analyst.post(f"{API}/{session}/ask", json={"question": question})
    assert code(answer) == (422, "invalid_request")


def test_nobody_else_sees_a_session_its_questions_or_its_answers(
    served: Served, curator: TestClient, auditor: TestClient, session: str
) -> None:
    carl = served.signed_in("carl")
    for other in (carl, curator):
        assert code(asked(other, session, "age >= 65")) == (404, "not_found")
        assert session not in [one["id"] for one in other.get(API).json()["sessions"]]
    for other in (carl, curator, auditor):
        assert code(other.get(f"{API}/{session}")) == (404, "not_found")
    missing = carl.get(f"{API}/bob:never").json()
    assert missing == carl.get(f"{API}/{session}").json()


def test_the_ledger_shows_curators_that_a_session_exists_and_what_it_cost(served: Served, session: str) -> None:
    (charge,) = [
        entry for entry in served.state.root.entries(DATASET) if entry.kind == "charge" and entry.request_id == session
    ]
    assert charge.analyst == "bob" and charge.body["nano"] > 0


@pytest.mark.slow
def test_an_opening_beyond_the_grant_is_refused_and_nothing_is_spent(served: Served, analyst: TestClient) -> None:
    before = spent(served, "bob")
    assert code(opened(analyst, "too-much", epsilon=1.01)) == (409, "budget_exceeded")
    assert code(opened(analyst, "dearer", confirmed_epsilon=0.01)) == (409, "conflict")
    assert code(opened(analyst, "nowhere", dataset="nothing")) == (404, "not_found")
    assert spent(served, "bob") == before
    assert analyst.get(f"{API}/too-much").json()["state"] == "refused"


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": 0}, {"alpha": True}, {"alpha": 1e308}, {"queries": 0}, {"queries": 2.5}, {"epsilon": -1},
        {"epsilon": "1"}, {"columns": []}, {"columns": ["x" * 300]}, {"rows": 0}, {"bins": {"age": 0}},
        {"request_id": "a b"}, {"request_id": "ada:x"}, {"wait": 31}, {"surprise": 1}, {"dataset": "../x"},
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_refused_before_anything_is_kept(analyst: TestClient, changes: dict[str, Any]) -> None:
    answer = analyst.post(API, json={**SMALL, "request_id": "rules", **changes})
    assert code(answer) == (422, "invalid_request")
    assert analyst.get(f"{API}/rules").status_code == 404


def test_columns_and_cuts_that_do_not_fit_the_schema_are_refused(analyst: TestClient) -> None:
    for changes in ({"columns": ["height"]}, {"bins": {"sex": 2}}, {"bins": {"age": ["2026-01-01"]}}):
        answer = analyst.post(f"{API}/price", json={**SMALL, **changes})
        assert code(answer) == (422, "invalid_value"), changes


def second(served: Served) -> State:
    """Another server on the same ledger and store."""
    return State.open(replace(served.settings, workers=0), WorkerProcesses)


@pytest.mark.slow
def test_two_servers_give_one_answer_and_never_more_rounds_than_were_paid(served: Served, analyst: TestClient) -> None:
    job_id = opened(analyst, "shared").json()["id"]
    bob, other = served.caller("bob"), second(served)
    found: dict[tuple[int, int], Any] = {}

    def ask(place: int, state: State) -> None:
        for number in range(12):
            job = own_session(state, bob, job_id)
            found[place, number] = answered(state, bob, job, f"age < {20 + 5 * number}")

    try:
        threads = [
            threading.Thread(target=ask, args=pair) for pair in enumerate((served.state, other, served.state, other))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        other.close()
    assert len(found) == 48
    for number in range(12):
        told = {(one.value, one.error, one.number) for (_, n), one in found.items() if n == number}
        assert len(told) == 1, number
    history = rows.after(served.state.store, job_id, 0)
    assert [one.number for one in history] == list(range(1, 13))
    assert len({one.key for one in history}) == 12
    view = analyst.get(f"{API}/shared").json()
    assert 0 <= view["updates_left"] <= view["plan"]["updates"]


@pytest.mark.slow
def test_a_server_that_starts_again_keeps_every_answer(served: Served, analyst: TestClient) -> None:
    before = analyst.get(f"{API}/shared").json()["history"]
    served.state.sessions._sessions.clear()
    again = [asked(analyst, "shared", one["question"]).json() for one in before]
    assert [(one["number"], one["value"], one["error"]) for one in again] == [
        (one["number"], one["value"], one["error"]) for one in before
    ]


@pytest.mark.slow
def test_a_session_is_asked_until_it_ends_and_then_says_what_is_left(served: Served) -> None:
    carl = served.signed_in("carl")
    wish = {**SMALL, "columns": ["age", "sex", "income"], "epsilon": 0.9, "updates": 2, "rows": ROWS}
    wish["bins"] = {"income": 50}
    refusal = carl.post(f"{API}/price", json={**wish, "alpha": 1e-6})
    alpha = refusal.json()["error"]["fields"]["closest"] * 1.01
    session = opened(carl, "short", **{**wish, "alpha": alpha})
    assert session.status_code == 200, session.text
    name, first, before = session.json()["id"], None, spent(served, "carl")
    for number in range(300):
        answer = asked(carl, name, f"age < {1 + number % 80} and income >= {2_000 * (number // 80 + number % 7)}")
        if answer.status_code != 200:
            break
        first = first or answer.json()
    assert code(answer) == (409, "session_ended")
    fields = answer.json()["error"]["fields"]
    assert fields["rounds"] == 2 and fields["answered"]
    assert "open another session" in fields["way_out"] and isinstance(fields["estimate"], int)
    again = asked(carl, name, first["question"]).json()
    assert again["value"] == first["value"] and again["updates_left"] == 0
    epsilon, charges = spent(served, "carl")
    assert epsilon == before[0] and charges >= before[1] + 2  # rounds and notes are charges of nothing
    assert "used up" in carl.get(f"{API}/{name}").json()["sentence"]


def test_sessions_without_a_round_are_put_away_first() -> None:
    class Plan:
        cells = 10

    class Talk:
        plan = Plan()

        def __init__(self, running: bool) -> None:
            self.running = running

    kept = OpenSessions(most=2)
    for name, running in (("a", True), ("b", False), ("c", True)):
        with kept.turn((name, "bob", "analyst"), lambda running=running: Talk(running)):  # type: ignore[misc]
            pass
    assert len(kept) == 2
    assert [kept.is_running((name, "bob", "analyst")) for name in "abc"] == [True, False, True]


@pytest.mark.slow
def test_rows_are_counted_once_for_whoever_pays_and_plans_follow(served: Served) -> None:
    """Each person's grant pays for a count of its own; a retry, and another request, spend nothing more."""
    carl, bob = served.signed_in("carl"), served.signed_in("bob")
    draft = {"dataset": DATASET, "statistics": [{"kind": "mean", "column": "income"}]}
    before = carl.post("/api/v1/plans/price", json=draft).json()
    assert (before["assumed_rows"], before["counting"], before["sized"]) == (10_000, 0.02, ["mean of income"])
    path, body = f"/api/v1/datasets/{DATASET}/rows", {"request_id": "rows-1", "wait": 30}
    start = spent(served, "carl")
    dear = waited_for(carl, path, {**body, "confirmed_epsilon": 0.01})
    assert code(dear) == (409, "conflict") and spent(served, "carl") == start
    told = waited_for(carl, path, {**body, "confirmed_epsilon": 0.02})
    assert told.status_code == 200, told.text
    counted = told.json()
    assert counted["lower"] < counted["rows"] < counted["upper"] and counted["epsilon"] == pytest.approx(0.02)
    again = waited_for(carl, path, {**body, "request_id": "rows-2", "share": 0.5})
    assert again.json()["rows"] == counted["rows"] and spent(served, "carl")[1] == start[1] + 1
    after = carl.post("/api/v1/plans/price", json=draft).json()
    assert after["assumed_rows"] is after["opening"] is after["counting"] is None
    assert after["counted"]["lower"] == int(counted["lower"])
    quote = carl.post(f"{API}/price", json={**SMALL, "rows": None, "alpha": 0.5}).json()
    assert quote["rows"] == round(counted["rows"]) and not quote["rows_are_a_guess"]
    assert bob.post("/api/v1/plans/price", json=draft).json()["assumed_rows"] == 10_000
    assert code(served.signed_in("eve").post(path, json=body)) == (403, "not_allowed")


@pytest.mark.slow
def test_a_count_that_was_lost_is_not_paid_for_again_by_a_retry(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.add("dora", "analyst")
    served.state.ledger(served.caller("ada")).grant(DATASET, "dora", 1.0)
    dora, path = served.signed_in("dora"), f"/api/v1/datasets/{DATASET}/rows"

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(study_account._RowCountQuestion, "run", fails)
        lost = dora.post(path, json={"request_id": "rows-1", "wait": 30})
    assert code(lost)[1] == "answer_forfeited" and spent(served, "dora")[1] == 1
    again = dora.post(path, json={"request_id": "rows-1", "wait": 30})
    assert code(again)[1] == "answer_forfeited" and spent(served, "dora")[1] == 1
    anew = dora.post(path, json={"request_id": "rows-2", "wait": 30})
    assert anew.status_code == 200 and spent(served, "dora")[1] == 2, anew.text
