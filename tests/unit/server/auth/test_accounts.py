"""The routes about people and tokens: what they show, what they refuse, and that secrets are shown once or never."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from farthing.server.auth.api_tokens import secret_hash
from farthing.server.auth.user_rules import add_user
from farthing.server.store import now
from farthing.server.store import store_tables as t

API = "/api/v1"
GOOD, OTHER = "four words are enough", "five other words are better"
PEOPLE = {"ada": "curator", "bob": "analyst", "eve": "auditor"}


@pytest.fixture(scope="module")
def server(serve: Any) -> FastAPI:
    return serve()  # type: ignore[no-any-return]


@pytest.fixture
def app(server: FastAPI) -> FastAPI:
    state = server.state.farthing
    with state.store.begin() as connection:
        for table in (t.users, t.logins, t.attempts, t.tokens):
            connection.execute(table.delete())
    for name, role in PEOPLE.items():
        add_user(state.store, state.passwords, name, role, by="a test", password=GOOD)
    return server


def signed_in(client: TestClient, user: str) -> TestClient:
    answer = client.post(f"{API}/login", json={"user": user, "password": GOOD})
    client.headers["X-CSRF-Token"] = answer.json()["csrf"]
    return client


@pytest.fixture
def ada(app: FastAPI, browser: Any) -> TestClient:
    return signed_in(browser(app), "ada")


@pytest.fixture
def bob(app: FastAPI, browser: Any) -> TestClient:
    return signed_in(browser(app), "bob")


def test_users_are_listed_without_anything_secret(ada: TestClient) -> None:
    shown = ada.get(f"{API}/users").json()["users"]
    assert [(user["name"], user["role"]) for user in shown] == sorted(PEOPLE.items())
    assert set(shown[0]) == {"name", "role", "disabled", "has_password", "oidc_subject", "created"}
    assert all(user["has_password"] and user["created"].endswith("Z") for user in shown)
    assert "argon2" not in str(shown)


def test_a_curator_adds_changes_and_removes_people(ada: TestClient, app: FastAPI, browser: Any) -> None:
    made = ada.post(f"{API}/users", json={"name": "amy", "role": "analyst", "password": GOOD})
    assert (made.status_code, made.json()["role"]) == (201, "analyst")
    amy = signed_in(browser(app), "amy")
    changed = ada.patch(f"{API}/users/amy", json={"role": "auditor", "oidc_subject": "amy@example.org"})
    assert (changed.json()["role"], changed.json()["oidc_subject"]) == ("auditor", "amy@example.org")
    assert amy.get(f"{API}/me").json()["role"] == "auditor"
    assert ada.patch(f"{API}/users/amy", json={"oidc_subject": None}).json()["oidc_subject"] is None
    assert ada.patch(f"{API}/users/amy", json={"disabled": True}).json()["disabled"] is True
    assert amy.get(f"{API}/me").status_code == 401
    assert ada.delete(f"{API}/users/amy").status_code == 204
    assert ada.delete(f"{API}/users/amy").status_code == 404
    again = {"name": "amy", "role": "analyst"}
    assert ada.post(f"{API}/users", json=again).json()["error"]["fields"]["way_out"] == "returning"
    assert ada.post(f"{API}/users", json=again | {"returning": True}).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/users", {"name": "bob", "role": "analyst"}, 409),
        ("POST", "/users", {"name": "Amy", "role": "analyst"}, 422),
        ("POST", "/users", {"name": "amy\n", "role": "analyst"}, 422),
        ("POST", "/users", {"name": "amy", "role": "removed"}, 422),
        ("POST", "/users", {"name": "amy", "role": "analyst", "password": "tiny"}, 422),
        ("POST", "/users", {"name": "amy", "role": "analyst", "returning": 1}, 422),
        ("POST", "/users", {"name": "amy", "role": "analyst", "created": 5}, 422),
        ("POST", "/users", {"name": "amy", "role": "analyst", "oidc_subject": "\u0000"}, 422),
        ("PATCH", "/users/nobody", {"role": "analyst"}, 404),
        ("PATCH", "/users/bob", {"role": "boss"}, 422),
        ("PATCH", "/users/bob", {"disabled": "yes"}, 422),
        ("PATCH", "/users/bob", {"name": "rob"}, 422),
        ("PATCH", "/users/ada", {"role": "analyst"}, 403),
        ("PATCH", "/users/ada", {"disabled": True}, 403),
        ("PATCH", "/users/ada", {"password": OTHER}, 403),  # the old one is asked for elsewhere
        ("POST", "/users", {"name": "server", "role": "analyst"}, 422),
        ("DELETE", "/users/ada", None, 403),
        ("DELETE", "/users/B%00b", None, 422),
        ("DELETE", "/tokens/0123456789abcdef", None, 404),
        ("DELETE", "/tokens/x", None, 422),
        ("POST", "/tokens", {"scopes": []}, 422),
        ("POST", "/tokens", {"scopes": ["rule"]}, 422),
        ("POST", "/tokens", {"scopes": "read"}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "days": 366}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "days": 0}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "days": 1.5}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "days": True}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "label": "a\nb"}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "label": "x" * 101}, 422),
        ("POST", "/tokens", {"scopes": ["read"], "user": "eve"}, 422),
    ],
)
def test_what_breaks_a_rule_is_refused_and_changes_nothing(
    ada: TestClient, method: str, path: str, body: Any, status: int
) -> None:
    before = ada.get(f"{API}/users").json()
    answer = ada.request(method, f"{API}{path}", json=body)
    assert answer.status_code == status, answer.text
    assert {"code", "message", "fields"} == set(answer.json()["error"])
    assert ada.get(f"{API}/users").json() == before
    assert ada.get(f"{API}/tokens").json() == {"tokens": []}


def test_a_token_is_shown_once_and_stored_as_a_mark(bob: TestClient, app: FastAPI, browser: Any) -> None:
    made = bob.post(f"{API}/tokens", json={"label": "nightly", "scopes": ["plan", "read", "read"], "days": 7})
    word = made.json()["token"]
    assert made.status_code == 201 and word.startswith("ft_") and len(word) == 46
    assert made.json()["scopes"] == ["read", "plan"]
    (listed,) = bob.get(f"{API}/tokens").json()["tokens"]
    assert listed == {name: value for name, value in made.json().items() if name != "token"}
    assert (listed["label"], listed["state"]) == ("nightly", "live")
    with app.state.farthing.store.reading() as connection:
        (row,) = connection.execute(t.tokens.select()).all()
    assert row.hash == secret_hash(word) and word not in str(row)
    assert 6.9 < (row.expires - now()) / 86400e9 <= 7
    script = browser(app)
    script.headers["Authorization"] = f"Bearer {word}"
    me = script.get(f"{API}/me").json()
    assert (me["name"], me["scopes"], me["via"], me["csrf"]) == ("bob", ["read", "plan"], "token", None)


def test_a_token_needs_neither_cookie_nor_origin_nor_csrf(bob: TestClient, ada: TestClient, app: FastAPI) -> None:
    word = ada.post(f"{API}/tokens", json={"scopes": ["manage"]}).json()["token"]
    script = TestClient(app, base_url="http://127.0.0.1:8642", headers={"Authorization": f"bearer {word}"})
    assert script.patch(f"{API}/users/bob", json={"role": "auditor"}).json()["role"] == "auditor"


def test_a_token_ends_when_it_is_revoked_or_its_time_is_over(bob: TestClient, app: FastAPI, browser: Any) -> None:
    made = [bob.post(f"{API}/tokens", json={"scopes": ["read"]}).json() for _ in range(3)]
    scripts = []
    for token in made:
        script = browser(app)
        script.headers["Authorization"] = f"Bearer {token['token']}"
        scripts.append(script)
    assert bob.delete(f"{API}/tokens/{made[0]['id']}").status_code == 204
    assert bob.delete(f"{API}/tokens/{made[0]['id']}").status_code == 204  # again is no mistake
    with app.state.farthing.store.begin() as connection:
        connection.execute(t.tokens.update().where(t.tokens.c.id == made[1]["id"]).values(expires=now()))
    answers = [script.get(f"{API}/me") for script in scripts]
    assert [answer.status_code for answer in answers] == [401, 401, 200]
    unknown = browser(app).get(f"{API}/me", headers={"Authorization": "Bearer ft_unknown"})
    assert answers[0].text == answers[1].text == unknown.text  # nobody learns which
    assert "make a new one" in unknown.json()["error"]["message"]
    assert unknown.headers["www-authenticate"].startswith("Bearer")
    states = {token["id"]: token["state"] for token in bob.get(f"{API}/tokens").json()["tokens"]}
    assert [states[token["id"]] for token in made] == ["revoked", "expired", "live"]


def test_nobody_sees_or_revokes_anothers_tokens(ada: TestClient, bob: TestClient) -> None:
    made = bob.post(f"{API}/tokens", json={"scopes": ["read"]}).json()
    assert ada.get(f"{API}/tokens").json() == {"tokens": []}
    assert ada.delete(f"{API}/tokens/{made['id']}").status_code == 404
    assert bob.get(f"{API}/tokens").json()["tokens"][0]["state"] == "live"


@pytest.mark.parametrize(
    ("user", "scope", "status"),
    [
        ("ada", "manage", 201),
        ("bob", "spend", 201),
        ("bob", "manage", 422),
        ("eve", "plan", 201),
        ("eve", "spend", 422),
    ],
)
def test_a_token_has_no_scope_above_its_owners_role(
    app: FastAPI, browser: Any, user: str, scope: str, status: int
) -> None:
    client = signed_in(browser(app), user)
    assert client.post(f"{API}/tokens", json={"scopes": ["read", scope]}).status_code == status


def test_a_user_has_at_most_a_hundred_live_tokens(bob: TestClient, app: FastAPI) -> None:
    with app.state.farthing.store.begin() as connection:
        for number in range(100):
            row = {"id": f"{number:016x}", "user": "bob", "label": "", "hash": str(number), "scopes": "read"}
            connection.execute(t.tokens.insert().values(**row, created=now(), expires=now() + 10**15))
    assert bob.post(f"{API}/tokens", json={"scopes": ["read"]}).status_code == 409
    assert bob.delete(f"{API}/tokens/{5:016x}").status_code == 204
    assert bob.post(f"{API}/tokens", json={"scopes": ["read"]}).status_code == 201


def test_secrets_are_in_no_log_and_in_no_body_but_the_one_that_makes_them(
    app: FastAPI, browser: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything about people is done once, and the canaries are looked for everywhere."""
    caplog.set_level(logging.DEBUG)
    heard: list[tuple[str, str]] = []
    passwords = {
        "first": "canary one flies over", "second": "canary two flies over", "typo": "canary three flies over",
        "weak": "canary4", "new": "canary five flies over",
    }  # fmt: skip

    def call(client: TestClient, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = client.request(method, f"{API}{path}", json=body, headers=headers)
        heard.append((f"{method} {path}", answer.text + str({**answer.headers, "set-cookie": ""})))
        return answer

    ada = signed_in(browser(app), "ada")
    call(ada, "POST", "/users", {"name": "amy", "role": "analyst", "password": passwords["first"]})
    call(ada, "PATCH", "/users/amy", {"password": passwords["second"]})
    call(ada, "PATCH", "/users/amy", {"password": passwords["weak"]})
    call(ada, "PATCH", "/users/amy", {"passwort": passwords["new"], "password": [passwords["new"]]})
    amy = browser(app)
    call(amy, "POST", "/login", {"user": "amy", "password": passwords["typo"]})
    call(amy, "POST", "/login", {"user": passwords["typo"].replace(" ", "."), "password": "amy"})
    call(amy, "POST", "/login", {"user": "canary6", "password": passwords["typo"]})
    csrf = call(amy, "POST", "/login", {"user": "amy", "password": passwords["second"]}).json()["csrf"]
    amy.headers["X-CSRF-Token"] = csrf
    session = amy.cookies["farthing_session"]
    call(amy, "POST", "/password", {"old": passwords["typo"], "new": passwords["new"]})
    call(amy, "POST", "/password", {"old": passwords["second"], "new": passwords["new"]})
    token = call(amy, "POST", "/tokens", {"scopes": ["read"], "label": "x"}).json()["token"]
    for path in ("/me", "/tokens", "/users", "/sign-in"):
        call(amy, "GET", path)
        call(browser(app), "GET", path, Authorization=f"Bearer {token}")
        call(browser(app), "GET", path, Authorization=f"Bearer {token}x")
    call(ada, "GET", "/users")
    call(amy, "POST", "/logout")
    call(ada, "DELETE", "/users/amy")
    call(amy, "POST", "/login", {"user": "amy", "password": passwords["new"]})

    secrets = {**passwords, "session": session, "token": token, "csrf": csrf, "name": "canary6"}
    secrets |= {f"mark of {name}": secret_hash(secret) for name, secret in secrets.items()}
    allowed = {("POST /tokens", "token"), ("POST /login", "csrf"), ("GET /me", "csrf")}
    found = {(where, name) for where, text in heard for name, secret in secrets.items() if secret in text}
    assert found == allowed
    log = caplog.text + str([vars(record) for record in caplog.records])
    assert [name for name, secret in secrets.items() if secret in log] == []
    assert "canary" not in log and "argon2" not in log
    assert "user amy: new password, by amy" in log  # something is logged, after all
