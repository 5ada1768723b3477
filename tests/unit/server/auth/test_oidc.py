"""Signing in at a provider: a real one on this machine, and every lie it or somebody else could tell."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from fastapi import FastAPI
from starlette.testclient import TestClient

from farthing.server import OidcSettings
from farthing.server.auth.people import add_user, change_user, remove_user
from farthing.server.auth.provider import Provider
from farthing.server.store import now
from farthing.server.store import tables as t
from unit.server.auth.little_provider import LittleProvider

API = "/api/v1"
PROBLEM = "/#/login?problem=provider"


@pytest.fixture(scope="module")
def provider() -> Iterator[LittleProvider]:
    made = LittleProvider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def served_app(serve: Any, provider: LittleProvider) -> FastAPI:
    oidc = OidcSettings(provider.issuer, provider.client_id, provider.client_secret, name="the little one")
    return serve(oidc=oidc)  # type: ignore[no-any-return]


@pytest.fixture
def app(served_app: FastAPI, provider: LittleProvider) -> Iterator[FastAPI]:
    """The server with its people as they were, and an honest provider whose document and keys are known already."""
    state = served_app.state.farthing
    with state.store.begin() as connection:
        for table in (t.users, t.logins, t.oidc_flows):
            connection.execute(table.delete())
    add_user(state.store, state.passwords, "ada", "curator", by="a test")
    add_user(state.store, state.passwords, "bob", "analyst", by="a test", subject="bob@example.org")
    provider.honest()
    known = state.provider
    yield served_app
    state.provider = known


@pytest.fixture
def unknown(app: FastAPI) -> None:
    """Nothing is known of the provider yet."""
    setting(app)


def setting(app: FastAPI, **changes: Any) -> None:
    """The same provider, set up otherwise."""
    state = app.state.farthing
    state.provider = Provider(OidcSettings(**(vars(state.provider.settings) | changes)))


def begun(client: TestClient, provider: LittleProvider) -> dict[str, str]:
    """The browser has been at the provider, and is sent back with this."""
    answer = client.get("/oidc/start")
    assert answer.status_code == 303
    return provider.signed_in(answer.headers["location"])


def finished(client: TestClient, back: dict[str, str]) -> str:
    """Who is signed in after coming back, or where the browser is sent instead."""
    answer = client.get("/oidc/callback", params=back)
    assert answer.status_code == 303
    if answer.headers["location"] != "/":
        assert "farthing_session" not in answer.headers.get("set-cookie", "")
        return str(answer.headers["location"])
    return str(client.get(f"{API}/me").json()["name"])


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


# Lies about the identity.


def public_pem(provider: LittleProvider) -> bytes:
    form, encoding = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.Encoding.PEM
    return provider.rsa.public_key().public_bytes(encoding, form)


def by_hand(header: dict[str, Any], claims: dict[str, Any], key: bytes | None) -> str:
    """A token that PyJWT would refuse to make."""

    def part(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    signed = f"{part(json.dumps(header).encode())}.{part(json.dumps(claims).encode())}"
    mac = b"" if key is None else hmac.digest(key, signed.encode(), "sha256")
    return f"{signed}.{part(mac)}"


def changed(**changes: Any) -> Callable[[LittleProvider], Any]:
    """A lie in the claims; None leaves one out."""

    def lie(provider: LittleProvider) -> Any:
        def told(header: dict[str, Any], claims: dict[str, Any]) -> None:
            claims.update(changes)
            for name in [name for name, value in changes.items() if value is None]:
                del claims[name]

        return told

    return lie


LIES: dict[str, Callable[[LittleProvider], Any]] = {
    "another nonce": changed(nonce="another"),
    "no nonce": changed(nonce=None),
    "a nonce that is no text": changed(nonce=["x"]),
    "another audience": changed(aud="another"),
    "audiences without us": changed(aud=["another", "more"]),
    "us among others, for another party": changed(aud=["farthing", "another"], azp="another"),
    "us among others, for nobody": changed(aud=["farthing", "another"]),
    "us, for another party": changed(azp="another"),
    "no audience": changed(aud=None),
    "another issuer": changed(iss="https://evil.example.org"),
    "an issuer that begins alike": lambda provider: changed(iss=provider.issuer + "/")(provider),
    "no issuer": changed(iss=None),
    "expired": changed(exp=int(time.time()) - 60),
    "no end": changed(exp=None),
    "an end that is no number": changed(exp="never"),
    "an end that is a list": changed(exp=[1]),
    "an end without end": changed(exp=float("inf")),
    "a nonce that no text can be": changed(nonce="\ud800"),
    "not yet": changed(nbf=int(time.time()) + 600),
    "made in the future": changed(iat=int(time.time()) + 600),
    "no time": changed(iat=None),
    "no subject": changed(sub=None),
    "alg none": lambda provider: lambda header, claims: by_hand({"alg": "none"}, claims, None),
    "alg None": lambda provider: (
        lambda header, claims: by_hand({"alg": "None", "kid": "key-rsa"}, claims, None)
    ),
    "no alg": lambda provider: lambda header, claims: by_hand({"kid": "key-rsa"}, claims, None),
    "alg a list": lambda provider: lambda header, claims: by_hand({"alg": ["RS256"]}, claims, None),
    "HS256 with the public key": lambda provider: (
        lambda header, claims: by_hand({"alg": "HS256", "kid": "key-rsa"}, claims, public_pem(provider))
    ),
    "HS256 with our secret": lambda provider: (
        lambda header, claims: by_hand(
            {"alg": "HS256", "kid": "key-rsa"}, claims, provider.client_secret.encode()
        )
    ),
    "RS512": lambda provider: (
        lambda header, claims: jwt.encode(claims, provider.rsa, "RS512", {"kid": "key-rsa"})
    ),
    "PS256": lambda provider: (
        lambda header, claims: jwt.encode(claims, provider.rsa, "PS256", {"kid": "key-rsa"})
    ),
    "a stranger's key": lambda provider: (
        lambda header, claims: jwt.encode(claims, provider.stranger, "RS256", {"kid": "key-rsa"})
    ),
    "a key that is not published": lambda provider: (
        lambda header, claims: jwt.encode(claims, provider.stranger, "RS256", {"kid": "key-unknown"})
    ),
    "a key that it brings along": lambda provider: (
        lambda header, claims: jwt.encode(
            claims,
            provider.stranger,
            "RS256",
            {"jwk": jwt.algorithms.RSAAlgorithm.to_jwk(provider.stranger.public_key(), as_dict=True)},
        )
    ),
    "RS256 named after the curve's key": lambda provider: (
        lambda header, claims: jwt.encode(claims, provider.rsa, "RS256", {"kid": "key-ec"})
    ),
    "changed after it was signed": lambda provider: (
        lambda header, claims: swapped(
            jwt.encode(claims, provider.rsa, "RS256", {"kid": "key-rsa"}),
            claims | {"email": "ada@example.org"},
        )
    ),
    "not a token": lambda provider: lambda header, claims: "not.a.token",
    "nothing": lambda provider: lambda header, claims: "",
}


def swapped(token: str, claims: dict[str, Any]) -> str:
    header, _, signature = token.split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"{header}.{body}.{signature}"


@pytest.mark.parametrize("what", LIES)
def test_an_identity_that_is_not_right_is_not_believed(
    app: FastAPI, browser: Any, provider: LittleProvider, what: str
) -> None:
    client = browser(app)
    back = begun(client, provider)
    provider.lie = LIES[what](provider)
    assert finished(client, back) == PROBLEM


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


@pytest.mark.parametrize(
    "change", [{"state": "another"}, {"state": ""}, {"code": ""}, {"iss": "https://evil"}]
)
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


def test_a_sign_in_that_took_too_long_is_begun_again(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
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
    assert (
        finished(client, {"error": "access_denied", "error_description": "<script>", "state": "x"}) == PROBLEM
    )


@pytest.mark.parametrize(
    "more", ["next=https://evil", "redirect_uri=https://evil", "return_to=//evil", "url=/evil"]
)
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


@pytest.mark.usefixtures("unknown")
def test_a_new_key_is_fetched_once_and_a_made_up_one_does_not_make_us_ask_without_end(
    app: FastAPI, browser: Any, provider: LittleProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from farthing.server.auth import provider as module

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


def test_a_disabled_or_removed_user_is_not_let_in(
    app: FastAPI, browser: Any, provider: LittleProvider
) -> None:
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
    provider.lie = changed(nonce="another")(provider)
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
