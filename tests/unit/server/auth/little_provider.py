"""A little OpenID Connect provider in a thread: real addresses, a real key, and lies on demand."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from fastapi import FastAPI
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from starlette.testclient import TestClient

from farthing.server import OidcSettings
from farthing.server.auth.oidc_provider import Provider

API = "/api/v1"
Lie = Callable[[dict[str, Any], dict[str, Any]], str | None]


class LittleProvider:
    """Answers as the standard says, but for `lie`: it may change header and claims, or give another token."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.client_id, self.client_secret = "farthing", "a secret: with/odd characters"
        self.claims: dict[str, Any] = {}
        self.lie: Lie | None = None
        self.document: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes]] = {}  # what to answer at a path instead
        self.keys_shown = 2
        self.asked: list[str] = []
        self.granted: dict[str, dict[str, str]] = {}  # code -> what it was asked with
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self.server.server_port}/realm"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.honest()

    def honest(self) -> None:
        """Forget all lies."""
        self.lie, self.answers, self.document, self.keys_shown = None, {}, {}, 2
        self.claims = {"sub": "s-1", "email": "bob@example.org", "email_verified": True}
        self.asked.clear()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(600)

    def signed_in(self, address: str) -> dict[str, str]:
        """What a person does there: the query with which the browser is sent back."""
        parts = urlsplit(address)
        assert parts.path == "/realm/authorize"
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == self.client_id and "openid" in asked["scope"].split()
        code = f"code-{len(self.granted)}-of-the-provider"
        self.granted[code] = asked
        return {"code": code, "state": asked["state"]}

    def token(self, asked: dict[str, str]) -> str:
        header = {"alg": "RS256", "kid": "key-rsa"}
        claims = {
            "iss": self.issuer,
            "aud": self.client_id,
            "iat": int(time.time()),
            "exp": int(time.time()) + 300,
            "nonce": asked["nonce"],
        } | self.claims
        made = self.lie(header, claims) if self.lie is not None else None
        if made is not None:
            return made
        key = {"RS256": self.rsa, "ES256": self.ec}[header["alg"]]
        return jwt.encode(claims, key, algorithm=header["alg"], headers=header)

    def published(self) -> dict[str, Any]:
        keys = [
            RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True) | {"kid": "key-rsa", "use": "sig"},
            ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True) | {"kid": "key-ec", "alg": "ES256"},
        ]
        return {"keys": keys[: self.keys_shown]}

    def described(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        } | self.document

    def exchanged(self, form: dict[str, str], login: str | None) -> tuple[int, dict[str, Any]]:
        from urllib.parse import quote

        asked = self.granted.pop(form.get("code", ""), None)  # a code is good once
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        known = f"{quote(self.client_id, safe='')}:{quote(self.client_secret, safe='')}"
        basic = "Basic " + base64.b64encode(known.encode()).decode()
        posted = (form.get("client_id"), form.get("client_secret")) == (self.client_id, self.client_secret)
        if not (login == basic or posted):
            return 401, {"error": "invalid_client"}
        if (
            asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.token(asked)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self._path()
                if path == "/.well-known/openid-configuration":
                    self._say(200, provider.described())
                elif path == "/keys":
                    self._say(200, provider.published())
                else:
                    self._say(404, {})

            def do_POST(self) -> None:
                path = self._path()
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                assert path == "/token"
                self._say(*provider.exchanged(form, self.headers["Authorization"]))

            def _path(self) -> str:
                path = self.path.removeprefix("/realm")
                provider.asked.append(path)
                return path

            def _say(self, status: int, content: dict[str, Any]) -> None:
                path = self.path.removeprefix("/realm")
                status, body = provider.answers.get(path, (status, json.dumps(content).encode()))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if status in (301, 302, 307):
                    self.send_header("Location", f"{provider.issuer}/elsewhere")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def setting(app: FastAPI, **changes: Any) -> None:
    """The same provider, set up otherwise."""
    state = app.state.farthing
    provider = Provider(OidcSettings(**(vars(state.provider.settings) | changes)))
    app.state.farthing = replace(state, provider=provider)


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
