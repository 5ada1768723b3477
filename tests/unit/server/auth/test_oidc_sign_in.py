"""Signing in at a provider: a real one on this machine, and every lie it or somebody else could tell."""

from __future__ import annotations

import hashlib
import logging
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi import FastAPI

from farthing.server.auth.oidc_provider import SignInFailed
from farthing.server.auth.user_rules import change_user, remove_user
from farthing.server.store import now
from farthing.server.store import store_tables as t
from unit.server.auth.little_provider import LittleProvider, begun, finished, setting

API = "/api/v1"
PROBLEM = "/#/login?problem=provider"


@pytest.fixture
def app(at_provider: FastAPI) -> FastAPI:
    return at_provider


def test_whoever_the_provider_knows_and_we_know_is_signed_in(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    client = browser(app)
    assert client.get(f"{API}/sign-in").json()["oidc"] == {"name": "the little one", "start": "/oidc/start"}
    assert finished(client, begun(client, provider)) == "bob"
    me = client.get(f"{API}/me").json()
    assert (me["role"], me["via"]) == ("analyst", "session")


def test_the_cookies_are_strict_but_for_the_one_that_comes_back_from_another_site(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    client = browser(app)
    start = client.get("/oidc/start")
    flow = start.headers["set-cookie"].lower()
    assert flow.startswith("farthing_flow=") and "samesite=lax" in flow and "httponly" in flow
    assert "path=/oidc" in flow and "max-age=600" in flow
    back = client.get("/oidc/callback", params=provider.signed_in(start.headers["location"]))
    cookies = {cookie.split("=")[0]: cookie.lower() for cookie in back.headers.get_list("set-cookie")}
    assert "samesite=strict" in cookies["farthing_session"]
    assert "max-age=0" in cookies["farthing_flow"]


def test_the_store_keeps_no_state_that_could_be_used(app: FastAPI, browser: Any) -> None:
    asked = parse_qs(urlsplit(browser(app).get("/oidc/start").headers["location"]).query)
    with app.state.farthing.store.begin() as connection:
        (row,) = connection.execute(t.oidc_flows.select()).all()
    assert row.state_hash == hashlib.sha256(asked["state"][0].encode()).hexdigest()
    assert row.nonce == asked["nonce"][0]
    assert 0 < row.expires - now() <= 600 * 10**9


def test_a_key_on_a_curve_is_as_good(app: FastAPI, browser: Any, provider: LittleProvider) -> None:
    provider.lie = lambda header, claims: header.update(alg="ES256", kid="key-ec")
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"


@pytest.mark.usefixtures("unknown")
def test_a_public_client_and_one_that_posts_its_secret_are_understood(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    provider.document["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"
    setting(app, client_secret=None)
    client = browser(app)
    assert finished(client, begun(client, provider)) == PROBLEM  # this provider wants a secret


# Lies about the way.


def test_a_state_is_good_once(app: FastAPI, browser: Any, provider: LittleProvider) -> None:
    client = browser(app)
    back = begun(client, provider)
    flow = client.cookies["farthing_flow"]
    assert finished(client, back) == "bob"
    thief = browser(app)
    thief.cookies.set("farthing_flow", flow)
    asked = len(provider.asked)
    assert finished(thief, back) == PROBLEM
    assert len(provider.asked) == asked  # the provider was not even asked


@pytest.mark.parametrize("change", [{"state": "another"}, {"state": ""}, {"code": ""}, {"iss": "https://evil"}])
def test_what_comes_back_must_be_what_was_begun(
    app: FastAPI, browser: Any, provider: LittleProvider, change: dict[str, str]
) -> None:
    client = browser(app)
    assert finished(client, begun(client, provider) | change) == PROBLEM


def test_nobody_can_finish_in_anothers_browser_what_they_began_in_theirs(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    """Otherwise a victim would work in the account of whoever sent them a link."""
    attacker, victim = browser(app), browser(app)
    back = begun(attacker, provider)
    assert finished(victim, back) == PROBLEM
    begun(victim, provider)  # with a sign-in of their own under way, too
    assert finished(victim, back) == PROBLEM


def test_a_sign_in_that_took_too_long_is_begun_again(app: FastAPI, browser: Any, provider: LittleProvider) -> None:
    client = browser(app)
    back = begun(client, provider)
    with app.state.farthing.store.begin() as connection:
        connection.execute(t.oidc_flows.update().values(expires=now()))
    assert finished(client, back) == PROBLEM


def test_a_code_of_another_sign_in_is_refused_by_the_provider(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    """PKCE: a stolen code is worth nothing without the verifier, which never leaves the store."""
    victim, thief = browser(app), browser(app)
    stolen = begun(victim, provider)["code"]
    own = begun(thief, provider)
    assert finished(thief, own | {"code": stolen}) == PROBLEM


def test_what_the_provider_says_no_to_ends_at_the_sign_in_screen(app: FastAPI, browser: Any) -> None:
    client = browser(app)
    assert finished(client, {"error": "access_denied", "error_description": "<script>", "state": "x"}) == PROBLEM


@pytest.mark.parametrize("more", ["next=https://evil", "redirect_uri=https://evil", "return_to=//evil", "url=/evil"])
def test_no_address_in_a_request_is_ever_followed(
    app: FastAPI, browser: Any, provider: LittleProvider, more: str
) -> None:
    client = browser(app)
    answer = client.get(f"/oidc/start?{more}")
    asked = parse_qs(urlsplit(answer.headers["location"]).query)
    assert asked["redirect_uri"] == ["http://127.0.0.1:8642/oidc/callback"]
    assert answer.headers["location"].startswith(provider.issuer)
    back = provider.signed_in(answer.headers["location"])
    there = client.get(f"/oidc/callback?code={back['code']}&state={back['state']}&{more}")
    assert there.headers["location"] == "/"


def test_the_way_back_does_not_follow_the_name_in_the_request(app: FastAPI, browser: Any) -> None:
    answer = browser(app).get("/oidc/start", headers={"Host": "localhost:9999"})
    asked = parse_qs(urlsplit(answer.headers["location"]).query)
    assert asked["redirect_uri"] == ["http://127.0.0.1:8642/oidc/callback"]


# A provider that is out of order.


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", (500, b"{}")),
        ("/.well-known/openid-configuration", (302, b"{}")),
        ("/.well-known/openid-configuration", (200, b"<html>")),
        ("/.well-known/openid-configuration", (200, b"[]")),
        ("/.well-known/openid-configuration", (200, b"{}")),
        ("/.well-known/openid-configuration", (200, b" " * (2 << 20))),
        ("/keys", (404, b"{}")),
        ("/keys", (200, b'{"keys": 5}')),
        ("/keys", (200, b'{"keys": [5, {}, {"kty": "RSA", "kid": "key-rsa"}]}')),
        ("/keys", (200, b'{"keys": [{"kty": "RSA", "kid": "key-rsa", "n": "", "e": "!"}]}')),
        ("/token", (400, b'{"error": "invalid_grant"}')),
        ("/token", (200, b'{"id_token": 5}')),
        ("/token", (200, b"[" * 100_000)),
    ],
)
def test_a_provider_that_answers_nonsense_lets_nobody_in(
    app: FastAPI, browser: Any, provider: LittleProvider, path: str, answer: tuple[int, bytes]
) -> None:
    client = browser(app)
    provider.answers[path] = answer
    start = client.get("/oidc/start")
    if start.headers["location"] != PROBLEM:
        assert finished(client, provider.signed_in(start.headers["location"])) == PROBLEM


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example.org"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "http://evil.example.org/authorize"},
        {"authorization_endpoint": None},
    ],
)
def test_a_document_that_leads_elsewhere_is_not_followed(
    app: FastAPI, browser: Any, provider: LittleProvider, document: dict[str, Any]
) -> None:
    provider.document = document
    assert browser(app).get("/oidc/start").headers["location"] == PROBLEM


def test_a_provider_that_is_away_sends_people_to_the_sign_in_screen(app: FastAPI, browser: Any) -> None:
    setting(app, issuer="http://127.0.0.1:9/realm")
    assert browser(app).get("/oidc/start").headers["location"] == PROBLEM
    setting(app, issuer="http://issuer.example.org")  # not https: not even asked
    assert browser(app).get("/oidc/start").headers["location"] == PROBLEM


def test_a_provider_that_is_slow_does_not_hold_up_everybody_else(
    app: FastAPI, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from farthing.server.auth import oidc_provider as module

    setting(app, issuer="http://127.0.0.1:9/realm")
    answered, waiting = threading.Event(), threading.Semaphore(0)

    def slow(*_: Any) -> dict[str, Any]:
        waiting.release()
        assert answered.wait(600)
        raise SignInFailed("it does not answer")

    monkeypatch.setattr(module, "_answer", slow)
    client = browser(app)
    with ThreadPoolExecutor(20) as many:
        begun_at_once = [many.submit(client.get, "/oidc/start") for _ in range(20)]
        for _ in range(module._MOST_WAITING):
            assert waiting.acquire(timeout=600)
        # All others are told at once, so that at most so many threads wait.
        told: set[Any] = set()
        while len(told) < 20 - module._MOST_WAITING:
            more, _ = wait(set(begun_at_once) - told, timeout=300, return_when=FIRST_COMPLETED)
            told |= more
            if not more:
                break
        answered.set()
    assert len(told) == 20 - module._MOST_WAITING
    assert {each.result().headers["location"] for each in begun_at_once} == {PROBLEM}
    assert not waiting.acquire(blocking=False)


@pytest.mark.usefixtures("unknown")
def test_a_new_key_is_fetched_once_and_a_made_up_one_does_not_make_us_ask_without_end(
    app: FastAPI, browser: Any, provider: LittleProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from farthing.server.auth import oidc_provider as module

    provider.keys_shown = 1
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"
    provider.keys_shown = 2
    provider.lie = lambda header, claims: header.update(alg="ES256", kid="key-ec")
    for _ in range(3):
        client = browser(app)
        assert finished(client, begun(client, provider)) == PROBLEM  # asked less than half a minute ago
    assert provider.asked.count("/keys") == 1
    monkeypatch.setattr(module, "_AGAIN", 0.0)
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"
    assert provider.asked.count("/keys") == 2
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_without_a_provider_there_is_no_such_way(serve: Any, browser: Any) -> None:
    client = browser(serve())
    assert [client.get(path).status_code for path in ("/oidc/start", "/oidc/callback?code=x&state=y")] == [
        404,
        404,
    ]


# Who it is.


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ada@example.org"},
        {"email": "bob@example.org", "email_verified": False},
        {"email": "bob@example.org", "email_verified": "true"},
        {"email": "bob@example.org", "email_verified": None},
        {"email": ["bob@example.org"]},
        {"email": "\ud800", "sub": "\0"},
        {"email": "x@example.org", "sub": "bob@example.org"},
        {"email": "", "preferred_username": "bob", "name": "bob"},
    ],
)
def test_who_is_not_known_for_certain_is_not_let_in(
    app: FastAPI, browser: Any, provider: LittleProvider, claims: dict[str, Any]
) -> None:
    provider.claims |= claims
    client = browser(app)
    assert finished(client, begun(client, provider)) == PROBLEM


def test_an_address_is_the_same_in_capitals(app: FastAPI, browser: Any, provider: LittleProvider) -> None:
    provider.claims["email"] = "Bob@Example.ORG"
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"
    provider.claims["email"] = "\u212aob@example.org"  # the sign for Kelvin becomes k in small letters
    state = app.state.farthing
    change_user(state.store, state.passwords, "bob", by="a test", subject="kob@example.org")
    client = browser(app)
    assert finished(client, begun(client, provider)) == PROBLEM


def test_without_a_verified_address_the_providers_own_name_for_them_counts(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    state = app.state.farthing
    change_user(state.store, state.passwords, "bob", by="a test", subject="s-1")
    provider.claims["email_verified"] = False
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"


def test_another_claim_can_name_people(app: FastAPI, browser: Any, provider: LittleProvider) -> None:
    setting(app, claim="staff_number")
    provider.claims["staff_number"] = "17"
    client = browser(app)
    assert finished(client, begun(client, provider)) == PROBLEM  # the address counts no more
    state = app.state.farthing
    change_user(state.store, state.passwords, "bob", by="a test", subject="17")
    client = browser(app)
    assert finished(client, begun(client, provider)) == "bob"


def test_a_disabled_or_removed_user_is_not_let_in(app: FastAPI, browser: Any, provider: LittleProvider) -> None:
    state = app.state.farthing
    change_user(state.store, state.passwords, "bob", by="a test", disabled=True)
    client = browser(app)
    assert finished(client, begun(client, provider)) == PROBLEM
    remove_user(state.store, "bob", by="a test")
    client = browser(app)
    assert finished(client, begun(client, provider)) == PROBLEM


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "Grace Hopper"}, "grace.hopper"),
        ({"preferred_username": "ada"}, "ada-2"),  # never somebody who is here already
        ({"preferred_username": "curator", "role": "curator", "roles": ["curator"]}, "curator"),
        ({}, "grace"),
        ({"preferred_username": "\u4f60\u597d"}, "analyst"),
    ],
)
def test_with_create_strangers_become_analysts_and_nothing_more(
    app: FastAPI, browser: Any, provider: LittleProvider, claims: dict[str, Any], name: str
) -> None:
    setting(app, create=True)
    provider.claims |= {"sub": "s-2", "email": "grace@example.org"} | claims
    for _ in range(2):  # the second time they are known
        client = browser(app)
        assert finished(client, begun(client, provider)) == name
        assert client.get(f"{API}/me").json()["role"] == "analyst"


def test_a_stranger_cannot_take_the_name_for_which_a_grant_is_waiting(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
    state = app.state.farthing
    state.root.register("census", 1.0)
    state.root.grant("census", "carol", 0.5)
    setting(app, create=True)
    for wanted, name in (("carol", "carol-2"), ("server", "server-2")):
        provider.claims |= {"sub": wanted, "email": f"{wanted}@evil.org", "preferred_username": wanted}
        client = browser(app)
        assert finished(client, begun(client, provider)) == name


def test_no_word_of_a_sign_in_is_logged(
    app: FastAPI, browser: Any, provider: LittleProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = browser(app)
    back = begun(client, provider)
    with app.state.farthing.store.begin() as connection:
        (flow,) = connection.execute(t.oidc_flows.select()).all()
    provider.lie = lambda header, claims: claims.update(nonce="another")
    finished(client, back)
    provider.lie = None
    back_again = begun(client, provider)
    assert finished(client, back_again) == "bob"
    assert "sign-in at the provider failed: the nonce is another" in caplog.text
    assert "user bob signed in through the provider" in caplog.text
    # The client of these tests logs the addresses it asks for; we do not.
    told = "\n".join(record.getMessage() for record in caplog.records if "testclient" not in record.getMessage()
                     and "127.0.0.1:8642" not in record.getMessage())  # fmt: skip
    secrets = [*back.values(), *back_again.values(), flow.nonce, flow.verifier, provider.client_secret]
    secrets += [client.cookies["farthing_session"]]
    assert [secret for secret in secrets if secret in told] == []
