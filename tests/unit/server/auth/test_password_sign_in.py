"""Signing in and out with a password: what the cookie is, what ends a session, how often somebody may try."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher, extract_parameters
from fastapi import FastAPI
from starlette.testclient import TestClient

from farthing.server.auth.api_tokens import secret_hash
from farthing.server.auth.password_sign_in import PER_ADDRESS, PER_USER, WINDOW, counted_attempt
from farthing.server.auth.user_rules import add_user, change_user
from farthing.server.routes import people_routes
from farthing.server.store import Store, login_rows, now, user_rows
from farthing.server.store import store_tables as t

API = "/api/v1"
GOOD, OTHER = "four words are enough", "five other words are better"
PEOPLE = {"ada": "curator", "bob": "analyst", "eve": "auditor"}


@pytest.fixture(scope="module")
def app(serve: Any) -> FastAPI:
    return serve()  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def state(app: FastAPI) -> Any:
    """The people as they were, and no attempts."""
    state = app.state.farthing
    with state.store.begin() as connection:
        for table in (t.users, t.logins, t.attempts, t.tokens):
            connection.execute(table.delete())
    for name, role in PEOPLE.items():
        add_user(state.store, state.passwords, name, role, by="a test", password=GOOD)
    return state


def sign_in(client: TestClient, user: str = "bob", password: str = GOOD) -> Any:
    answer = client.post(f"{API}/login", json={"user": user, "password": password})
    if answer.status_code == 200:
        client.headers["X-CSRF-Token"] = answer.json()["csrf"]
    return answer


def rows(state: Any, table: sa.Table) -> list[Any]:
    with state.store.reading() as connection:
        return list(connection.execute(sa.select(table)))


def test_signing_in_says_who_it_is_and_gives_a_cookie_that_scripts_and_sites_cannot_use(
    app: FastAPI, browser: Any
) -> None:
    client = browser(app)
    answer = sign_in(client)
    me = answer.json()
    assert (answer.status_code, me["name"], me["role"], me["via"]) == (200, "bob", "analyst", "session")
    assert me["scopes"] == ["read", "plan", "spend"]
    assert client.get(f"{API}/me").json() == me
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("farthing_session=")
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {
        "httponly", "samesite=strict", "path=/", "max-age=43200",
    }  # fmt: skip


def test_over_tls_the_cookie_is_for_tls_only(serve: Any, browser: Any) -> None:
    app = serve(public_url="https://farthing.example.org", proxy=True)
    add_user(app.state.farthing.store, app.state.farthing.passwords, "bob", "analyst", by="a test", password=GOOD)
    answer = sign_in(browser(app, here="https://farthing.example.org"))
    assert "secure" in answer.headers["set-cookie"].lower()


def test_the_store_has_marks_and_not_the_words(app: FastAPI, state: Any, browser: Any) -> None:
    client = browser(app)
    csrf = sign_in(client).json()["csrf"]
    session = client.cookies["farthing_session"]
    (row,) = rows(state, t.logins)
    assert (row.hash, row.csrf_hash, row.user) == (secret_hash(session), secret_hash(csrf), "bob")
    assert session not in str(row) and csrf not in str(row)
    assert 11.9 * 3600 < (row.expires - now()) / 10**9 <= 12 * 3600


def test_all_that_can_be_wrong_gets_the_same_words(app: FastAPI, state: Any, browser: Any) -> None:
    change_user(state.store, state.passwords, "eve", by="a test", disabled=True)
    add_user(state.store, state.passwords, "amy", "analyst", by="a test")  # has no password
    tried = [("bob", OTHER), ("nobody", GOOD), ("eve", GOOD), ("amy", GOOD), ("bob", GOOD + " ")]
    answers = [sign_in(browser(app), *each) for each in tried]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert not any("set-cookie" in answer.headers for answer in answers)


def test_a_phone_may_begin_a_name_with_a_capital(app: FastAPI, browser: Any) -> None:
    assert sign_in(browser(app), "Bob").json()["name"] == "bob"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"user": "bob"},
        {"user": "bob", "password": 5},
        {"user": "bob", "password": ""},
        {"user": "bob", "password": "x" * 201},
        {"user": "bob", "password": ["a canary in a list"]},
        {"user": "b\0b", "password": GOOD},
        {"user": "bob", "password": GOOD, "role": "curator"},
        {"user": {"name": "a canary as a name"}, "password": "a canary as a password"},
        [],
        "a canary alone",
    ],
)
def test_a_body_of_another_shape_is_refused_and_not_repeated(app: FastAPI, browser: Any, body: Any) -> None:
    answer = browser(app).post(f"{API}/login", json=body)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_request"
    assert "canary" not in answer.text and GOOD not in answer.text


def test_a_password_that_no_text_can_be_is_refused(app: FastAPI, browser: Any) -> None:
    body = b'{"user": "bob", "password": "\\ud800\\ud800\\ud800"}'
    answer = browser(app).post(f"{API}/login", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (401, 422)


def test_signing_out_makes_a_copied_cookie_worthless(app: FastAPI, browser: Any) -> None:
    client, thief = browser(app), browser(app)
    sign_in(client)
    thief.cookies.set("farthing_session", client.cookies["farthing_session"])
    assert thief.get(f"{API}/me").status_code == 200
    answer = client.post(f"{API}/logout")
    assert answer.status_code == 204 and "max-age=0" in answer.headers["set-cookie"].lower()
    assert [each.get(f"{API}/me").status_code for each in (client, thief)] == [401, 401]


def test_signing_in_again_ends_the_session_that_the_browser_had(app: FastAPI, state: Any, browser: Any) -> None:
    client = browser(app)
    sign_in(client)
    first = client.cookies["farthing_session"]
    sign_in(client, "eve")
    assert client.cookies["farthing_session"] != first
    assert [row.user for row in rows(state, t.logins)] == ["eve"]


def test_a_cookie_planted_before_signing_in_is_not_taken_over(app: FastAPI, browser: Any) -> None:
    client = browser(app)
    client.cookies.set("farthing_session", "planted")
    answer = sign_in(client)
    assert "farthing_session=planted" not in answer.headers["set-cookie"]


def test_a_session_ends_after_its_hours(app: FastAPI, state: Any, browser: Any) -> None:
    client = browser(app)
    sign_in(client)
    with state.store.begin() as connection:
        connection.execute(t.logins.update().values(expires=now()))
    assert client.get(f"{API}/me").status_code == 401
    sign_in(browser(app), "eve")
    assert [row.user for row in rows(state, t.logins)] == ["eve"]  # what has ended is swept away


def test_a_lowered_role_holds_in_open_sessions_at_once(app: FastAPI, state: Any, browser: Any) -> None:
    add_user(state.store, state.passwords, "abe", "curator", by="a test", password=GOOD)
    client = browser(app)
    sign_in(client, "abe")
    assert client.get(f"{API}/users").status_code == 200
    change_user(state.store, state.passwords, "abe", by="a test", role="analyst")
    assert client.get(f"{API}/users").status_code == 403
    change_user(state.store, state.passwords, "abe", by="a test", disabled=True)
    assert client.get(f"{API}/me").status_code == 401


def test_a_new_password_ends_the_other_sessions_and_keeps_this_one(app: FastAPI, browser: Any) -> None:
    client, other, eve = browser(app), browser(app), browser(app)
    sign_in(client), sign_in(other), sign_in(eve, "eve")
    answer = client.post(f"{API}/password", json={"old": GOOD, "new": OTHER})
    assert (answer.status_code, answer.content) == (204, b"")
    assert [each.get(f"{API}/me").status_code for each in (client, other, eve)] == [200, 401, 200]
    assert sign_in(browser(app), password=GOOD).status_code == 401
    assert sign_in(browser(app), password=OTHER).status_code == 200


def test_a_password_that_changes_while_it_is_checked_opens_no_session(
    app: FastAPI, state: Any, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = people_routes.begin

    def too_late(*told: Any) -> str:
        change_user(state.store, state.passwords, "bob", by="ada", password=OTHER)  # which ends all sessions
        return begin(*told)

    monkeypatch.setattr(people_routes, "begin", too_late)
    client = browser(app)
    assert sign_in(client).status_code == 401 and rows(state, t.logins) == []
    monkeypatch.undo()
    assert sign_in(client, "bob", OTHER).status_code == 200


def test_a_new_password_needs_the_old_one(app: FastAPI, browser: Any) -> None:
    client = browser(app)
    sign_in(client)
    for body, status in (
        ({"old": OTHER, "new": OTHER}, 401),
        ({"new": OTHER}, 422),
        ({"old": GOOD, "new": "x"}, 422),
    ):
        assert client.post(f"{API}/password", json=body).status_code == status
    assert client.get(f"{API}/me").status_code == 200
    assert sign_in(browser(app)).status_code == 200


def test_guessing_the_old_password_in_an_open_session_is_limited_too(app: FastAPI, browser: Any) -> None:
    client = browser(app)
    sign_in(client)
    seen = [client.post(f"{API}/password", json={"old": OTHER, "new": OTHER}).status_code for _ in range(7)]
    assert seen == [401] * PER_USER + [429, 429]


def test_a_password_kept_with_weak_parameters_is_kept_better_at_the_next_sign_in(
    app: FastAPI, state: Any, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stronger = PasswordHasher(time_cost=2, memory_cost=16, parallelism=1)
    monkeypatch.setattr(state.passwords, "_hasher", stronger)
    assert sign_in(browser(app)).status_code == 200
    with state.store.reading() as connection:
        kept = user_rows.password_hash(connection, "bob")
    assert kept is not None and extract_parameters(kept).time_cost == 2
    assert sign_in(browser(app)).status_code == 200


def test_the_ways_to_sign_in_are_public(app: FastAPI, state: Any, browser: Any) -> None:
    assert browser(app).get(f"{API}/sign-in").json() == {"local": True, "oidc": None}
    with state.store.begin() as connection:
        connection.execute(t.users.update().values(password_hash=None))
    assert browser(app).get(f"{API}/sign-in").json() == {"local": False, "oidc": None}


# How often.


def test_the_sixth_wrong_password_in_a_minute_is_refused_with_how_long_to_wait(app: FastAPI, browser: Any) -> None:
    answers = [sign_in(browser(app), password=OTHER) for _ in range(PER_USER + 1)]
    assert [answer.status_code for answer in answers] == [401] * PER_USER + [429]
    error = answers[-1].json()["error"]
    assert error["code"] == "rate_limited"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    # The right one must wait as well, from anywhere; others need not.
    assert sign_in(browser(app, "192.0.2.9")).status_code == 429
    assert sign_in(browser(app), "eve").status_code == 200


def test_names_that_nobody_has_are_limited_alike(app: FastAPI, browser: Any) -> None:
    answers = [sign_in(browser(app), "nobody", OTHER).status_code for _ in range(PER_USER + 1)]
    assert answers == [401] * PER_USER + [429]


def test_one_address_may_try_twenty_names_a_minute_and_successes_do_not_buy_more(app: FastAPI, browser: Any) -> None:
    thief = browser(app, "192.0.2.7")
    for number in range(PER_ADDRESS):
        assert sign_in(thief, f"guess{number}", OTHER).status_code == 401
        if number % 5 == 0:
            assert sign_in(thief, "eve").status_code == 200
    assert sign_in(thief, "another", OTHER).status_code == 429
    assert sign_in(thief, "eve").status_code == 429
    assert sign_in(browser(app, "192.0.2.8"), "eve").status_code == 200


def test_a_success_takes_back_its_own_attempt_only(app: FastAPI, state: Any, browser: Any) -> None:
    for _ in range(PER_USER - 1):
        sign_in(browser(app), password=OTHER)
    for _ in range(3):
        assert sign_in(browser(app)).status_code == 200
    assert sign_in(browser(app), password=OTHER).status_code == 401
    assert sign_in(browser(app)).status_code == 429


def test_neighbours_in_ipv6_count_as_one(app: FastAPI, browser: Any) -> None:
    seen = [
        sign_in(browser(app, f"2001:db8:1:2::{number:x}"), f"guess{number}", OTHER).status_code
        for number in range(PER_ADDRESS + 1)
    ]
    assert seen == [401] * PER_ADDRESS + [429]
    assert sign_in(browser(app, "2001:db8:1:3::1"), "guess", OTHER).status_code == 401


def test_after_a_minute_it_is_forgotten(app: FastAPI, state: Any, browser: Any) -> None:
    for _ in range(PER_USER + 1):
        sign_in(browser(app), password=OTHER)
    with state.store.begin() as connection:
        connection.execute(t.attempts.update().values(at=t.attempts.c.at - WINDOW))
    assert sign_in(browser(app)).status_code == 200
    assert rows(state, t.attempts) == []  # and swept away


def test_waiting_as_long_as_told_is_long_enough_and_no_longer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from farthing.errors import RequestRefused
    from farthing.server.auth import password_sign_in as limits

    clock = [10**18]
    monkeypatch.setattr(limits, "now", lambda: clock[0])
    for _ in range(PER_USER):
        counted_attempt(store, "bob", "192.0.2.7")
        clock[0] += 7 * 10**9
    with pytest.raises(RequestRefused) as refused:
        counted_attempt(store, "bob", "192.0.2.7")
    assert refused.value.fields == {"retry_after": 60 - 35}
    clock[0] += 24 * 10**9
    with pytest.raises(RequestRefused):
        counted_attempt(store, "bob", "192.0.2.7")
    clock[0] += 10**9
    counted_attempt(store, "bob", "192.0.2.7")


def test_of_many_at_once_no_more_than_the_limit_are_let_through(store: Store) -> None:
    from farthing.errors import RequestRefused

    passed: list[int] = []
    start = threading.Barrier(12)

    def attempt(number: int) -> None:
        start.wait(600)
        try:
            counted_attempt(store, "bob", f"192.0.2.{number}")
        except RequestRefused:
            return
        passed.append(number)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert len(passed) <= PER_USER
    with store.reading() as connection:
        assert len(login_rows.attempts_since(connection, "user:bob", 0)) == len(passed)
