"""The one-time link works once, for ten minutes, on and from the server's own machine."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from farthing.errors import RequestRefused
from farthing.server.auth.api_tokens import secret_hash
from farthing.server.auth.login_sessions import login_link, login_name
from farthing.server.auth.user_rules import add_user, change_user, remove_user
from farthing.server.store import now
from farthing.server.store import store_tables as t

API = "/api/v1"
HERE = "http://127.0.0.1:8642"
PROBLEM = "/#/login?problem=link"
GOOD = "four words are enough"


@pytest.fixture(scope="module")
def server(serve: Any) -> FastAPI:
    return serve()  # type: ignore[no-any-return]


@pytest.fixture
def app(server: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """A server without people, started by Grace."""
    monkeypatch.setattr(getpass, "getuser", lambda: "Grace Hopper")
    with server.state.farthing.store.begin() as connection:
        for table in (t.users, t.logins, t.links):
            connection.execute(table.delete())
    yield server


def opened(client: Any, link: str) -> str:
    """Who is signed in after opening a link, or where the browser is sent instead."""
    answer = client.get(link.removeprefix(HERE))
    assert answer.status_code == 303
    if answer.headers["location"] != "/":
        assert "set-cookie" not in answer.headers
        return str(answer.headers["location"])
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    return str(client.get(f"{API}/me").json()["name"])


def test_the_first_link_makes_a_curator_of_whoever_runs_the_server(app: FastAPI, browser: Any) -> None:
    link = login_link(app.state.farthing)
    assert link.startswith(f"{HERE}/login?token=") and len(link.partition("=")[2]) == 43
    client = browser(app)
    assert opened(client, link) == "grace.hopper"
    me = client.get(f"{API}/me").json()
    assert (me["role"], me["via"]) == ("curator", "link")
    client.headers["X-CSRF-Token"] = me["csrf"]
    assert client.post(f"{API}/users", json={"name": "bob", "role": "analyst"}).status_code == 201
    assert client.post(f"{API}/logout").status_code == 204


def test_a_link_works_once(app: FastAPI, browser: Any) -> None:
    link = login_link(app.state.farthing)
    assert opened(browser(app), link) == "grace.hopper"
    assert opened(browser(app), link) == PROBLEM
    assert opened(browser(app), login_link(app.state.farthing)) == "grace.hopper"


def test_a_link_works_for_ten_minutes_and_is_kept_as_a_mark(app: FastAPI, browser: Any) -> None:
    link = login_link(app.state.farthing)
    with app.state.farthing.store.begin() as connection:
        (row,) = connection.execute(t.links.select()).all()
        assert row.hash == secret_hash(link.partition("=")[2])
        assert 590 * 10**9 < row.expires - now() <= 600 * 10**9
        connection.execute(t.links.update().values(expires=now()))
    assert opened(browser(app), link) == PROBLEM


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "testclient", ""])
def test_a_link_works_from_this_machine_only(app: FastAPI, browser: Any, address: str) -> None:
    link = login_link(app.state.farthing)
    assert opened(browser(app, address), link) == PROBLEM
    assert opened(browser(app, "::1"), link) == "grace.hopper"


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "0.0.0.0"},
        {"host": "192.0.2.7"},
        {"proxy": True, "public_url": "https://farthing.example.org"},
    ],
)
def test_a_server_that_others_can_reach_makes_and_takes_no_links(
    serve: Any, browser: Any, settings: dict[str, Any]
) -> None:
    app = serve(**settings)
    state = app.state.farthing
    with pytest.raises(RequestRefused, match="farthing users add"):
        login_link(state)
    with state.store.begin() as connection:  # even if there were one
        connection.execute(
            t.links.insert().values(hash=secret_hash("word"), user="ada", expires=now() + 10**12, used=None)
        )
    here = settings.get("public_url", HERE)
    assert opened(browser(app, here=here), "/login?token=word") == PROBLEM


@pytest.mark.parametrize("token", ["", "?token=", "?token=x", "?token=%00", "?token=%ED%A0%80", "?next=//evil"])
def test_a_made_up_link_leads_to_the_sign_in_screen(app: FastAPI, browser: Any, token: str) -> None:
    assert opened(browser(app), f"/login{token}") in (PROBLEM, "/#/login")


def test_an_endless_link_is_refused(app: FastAPI, browser: Any) -> None:
    assert browser(app).get("/login?token=" + "x" * 5000).status_code == 422


def test_a_link_does_not_raise_a_role_nor_let_in_who_was_locked_out(app: FastAPI, browser: Any) -> None:
    state = app.state.farthing
    add_user(state.store, state.passwords, "ada", "curator", by="a test")
    add_user(state.store, state.passwords, "grace.hopper", "analyst", by="a test")
    client = browser(app)
    assert opened(client, login_link(state)) == "grace.hopper"
    assert client.get(f"{API}/me").json()["role"] == "analyst"
    change_user(state.store, state.passwords, "grace.hopper", by="a test", disabled=True)
    assert opened(browser(app), login_link(state)) == PROBLEM
    remove_user(state.store, "grace.hopper", by="a test")
    assert opened(browser(app), login_link(state)) == PROBLEM


def test_whoever_came_by_a_link_may_set_a_first_password(app: FastAPI, browser: Any) -> None:
    client = browser(app)
    opened(client, login_link(app.state.farthing))
    client.headers["X-CSRF-Token"] = client.get(f"{API}/me").json()["csrf"]
    assert client.post(f"{API}/password", json={"new": GOOD}).status_code == 204
    assert client.post(f"{API}/password", json={"new": GOOD + " again"}).status_code == 422  # now the old one counts
    answer = browser(app).post(f"{API}/login", json={"user": "grace.hopper", "password": GOOD})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("login", "name"),
    [
        ("ada", "ada"),
        ("CORP\\Ada", "corp.ada"),
        ("_www", "www"),
        ("\u4f60", "curator"),
        ("", "curator"),
        ("server", "curator"),
    ],
)
def test_any_login_name_becomes_a_user_name(login: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: login)
    assert login_name() == name


def test_a_container_without_a_name_for_its_user_still_has_a_curator(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert login_name() == "curator"
