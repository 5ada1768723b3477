"""An OpenID Connect provider: its endpoints, its keys, and the exchange of a code for an identity.

Everything it says is checked against OpenID Connect Core 1.0, section 3.1.3.7: the signature by one of its published
keys with RS256 or ES256 (never an algorithm that the token itself proposes), issuer, audience, times, nonce.
"""

from __future__ import annotations

import hmac
import json
import ssl
import threading
import time
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import jwt

from farthing.errors import FarthingError
from farthing.server.auth.api_tokens import secret_hash
from farthing.server.http.origin_checks import is_loopback
from farthing.server.settings import OidcSettings

ALGORITHMS = {"RS256": "RSA", "ES256": "EC"}  # and the type of key that each takes
LEEWAY = 30  # seconds by which clocks may differ
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_LARGEST = 1 << 20  # bytes of any answer
_MOST_WAITING = 8  # that wait for it at a time: each holds a thread, of which there are some forty
_FRESH = 3600.0  # seconds for which its document and keys are believed
_AGAIN = 30.0  # seconds before its keys are fetched again because of a key that is not among them


class SignInFailed(FarthingError):
    """The provider's answer was not believed, or it gave none; the reason is for the log, not for the caller.

    >>> print(SignInFailed("the nonce is another"))
    signing in at the provider failed: the nonce is another.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"signing in at the provider failed: {reason}.")


class Provider:
    """One provider as its issuer describes it; what it says is kept for an hour."""

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._waiting = threading.BoundedSemaphore(_MOST_WAITING)
        self._document: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, list[dict[str, Any]]] | None = None

    def address_to_start(self, redirect_uri: str, state: str, nonce: str, challenge: str) -> str:
        """Where to send the browser."""
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid email profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = self._endpoint("authorization_endpoint")
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"

    def identity_for(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> dict[str, Any]:
        """The claims of the person who brought the code, all of them checked."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        answer = self._posted(self._endpoint("token_endpoint"), form)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInFailed("it gave no identity")
        return self._checked(token, nonce)

    def _checked(self, token: str, nonce: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise SignInFailed("its identity cannot be read") from None
        algorithm = header.get("alg")
        # Compared with ours: "none" and HS256 never reach a verifier.
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise SignInFailed("its identity is not signed with RS256 or ES256")
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(algorithm, header.get("kid")),
                algorithms=[algorithm],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=LEEWAY,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except (jwt.PyJWTError, TypeError, ValueError, ArithmeticError) as problem:  # a time may be a list
            raise SignInFailed(f"its identity is not valid ({type(problem).__name__})") from None
        several = not isinstance(claims["aud"], str) and len(claims["aud"]) > 1
        if ("azp" in claims or several) and claims.get("azp") != self.settings.client_id:
            raise SignInFailed("its identity was made for another party")
        repeated = claims.get("nonce")
        if not isinstance(repeated, str) or not hmac.compare_digest(secret_hash(repeated), secret_hash(nonce)):
            raise SignInFailed("the nonce is another")
        return claims

    def _key(self, algorithm: str, name: object) -> Any:
        """The published key of that name; fetched again, not too often, when it is not among those known."""
        key = self._chosen(algorithm, name, self._published(_FRESH))
        if key is None:
            key = self._chosen(algorithm, name, self._published(_AGAIN))
        if key is None:
            raise SignInFailed("its identity is signed with a key it does not publish")
        try:
            return jwt.PyJWK(key, algorithm=algorithm).key
        except jwt.PyJWTError:
            raise SignInFailed("its key cannot be read") from None

    def _chosen(self, algorithm: str, name: object, keys: list[dict[str, Any]]) -> dict[str, Any] | None:
        fitting = [
            key
            for key in keys
            if key.get("kty") == ALGORITHMS[algorithm]
            and key.get("use", "sig") == "sig"
            and key.get("alg", algorithm) == algorithm
            and (name is None or key.get("kid") == name)
        ]
        return fitting[0] if len(fitting) == 1 else None

    def _published(self, age: float) -> list[dict[str, Any]]:
        with self._lock:
            if self._keys is not None and time.monotonic() - self._keys[0] < age:
                return self._keys[1]
        entries = self._fetched(self._endpoint("jwks_uri")).get("keys")
        keys = [key for key in entries if isinstance(key, dict)] if isinstance(entries, list) else []
        with self._lock:
            self._keys = (time.monotonic(), keys)
        return keys

    def _described(self) -> dict[str, Any]:
        with self._lock:
            if self._document is not None and time.monotonic() - self._document[0] < _FRESH:
                return self._document[1]
        issuer = self.settings.issuer
        _check_address(issuer)
        document = self._fetched(issuer.rstrip("/") + "/.well-known/openid-configuration")
        if document.get("issuer") != issuer:
            raise SignInFailed("its document names another issuer")
        with self._lock:
            self._document = (time.monotonic(), document)
        return document

    def _endpoint(self, name: str) -> str:
        address = self._described().get(name)
        if not isinstance(address, str):
            raise SignInFailed(f"its document has no {name}")
        _check_address(address)
        return address

    def _fetched(self, address: str) -> dict[str, Any]:
        return self._request("GET", address, {}, None)

    def _request(
        self, method: str, address: str, form: Mapping[str, str], login: tuple[str, str] | None
    ) -> dict[str, Any]:
        """One answer of it, unless too many wait for one: anybody may begin to sign in, and a provider may be slow."""
        if not self._waiting.acquire(blocking=False):
            raise SignInFailed("too many wait for it already")
        try:
            return _answer(method, address, form, login)
        finally:
            self._waiting.release()

    def _posted(self, address: str, form: dict[str, str]) -> dict[str, Any]:
        client, secret = self.settings.client_id, self.settings.client_secret
        ways = self._described().get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if secret is None:
            return self._request("POST", address, form | {"client_id": client}, None)
        if "client_secret_basic" not in ways and "client_secret_post" in ways:
            return self._request("POST", address, form | {"client_id": client, "client_secret": secret}, None)
        # RFC 6749, section 2.3.1: both are encoded as in a form before they become a user and a password.
        return self._request("POST", address, form, (quote(client, safe=""), quote(secret, safe="")))


def _check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return
    raise SignInFailed("an address of it is not https")


@cache
def _authorities() -> ssl.SSLContext:
    """Who vouches for providers: read once, it takes long."""
    return httpx.create_ssl_context()


def _answer(method: str, address: str, form: Mapping[str, str], login: tuple[str, str] | None) -> dict[str, Any]:
    """What the provider says, as JSON; redirects are not followed, and nothing of its text goes into a message."""
    try:
        with (
            httpx.Client(
                timeout=_TIMEOUT,
                follow_redirects=False,
                verify=_authorities(),
                trust_env=not is_loopback(urlsplit(address).hostname or ""),  # a proxy is for what is elsewhere
            ) as client,
            client.stream(
                method,
                address,
                data=form or None,
                auth=login if login is not None else httpx.USE_CLIENT_DEFAULT,
                headers={"Accept": "application/json"},
            ) as response,
        ):
            body = b""
            for piece in response.iter_bytes():
                body += piece
                if len(body) > _LARGEST:
                    raise SignInFailed("its answer is too long")
    except httpx.HTTPError as problem:
        raise SignInFailed(f"it does not answer ({type(problem).__name__})") from None
    except httpx.InvalidURL:
        raise SignInFailed("an address of it cannot be read") from None
    if response.status_code != 200:
        raise SignInFailed(f"it answered with status {response.status_code}")
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise SignInFailed("its answer is not JSON") from None
    if not isinstance(answer, dict):
        raise SignInFailed("its answer is not an object")
    return answer
