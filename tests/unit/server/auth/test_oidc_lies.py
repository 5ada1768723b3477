"""Identities that are not right: each lie a provider, or somebody in its name, could tell is refused."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from fastapi import FastAPI

from unit.server.auth.little_provider import LittleProvider, begun, finished

PROBLEM = "/#/login?problem=provider"


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
    "not yet": changed(nbf=int(time.time()) + 86_400),
    "made in the future": changed(iat=int(time.time()) + 86_400),
    "no time": changed(iat=None),
    "no subject": changed(sub=None),
    "alg none": lambda provider: lambda header, claims: by_hand({"alg": "none"}, claims, None),
    "alg None": lambda provider: lambda header, claims: by_hand({"alg": "None", "kid": "key-rsa"}, claims, None),
    "no alg": lambda provider: lambda header, claims: by_hand({"kid": "key-rsa"}, claims, None),
    "alg a list": lambda provider: lambda header, claims: by_hand({"alg": ["RS256"]}, claims, None),
    "HS256 with the public key": lambda provider: (
        lambda header, claims: by_hand({"alg": "HS256", "kid": "key-rsa"}, claims, public_pem(provider))
    ),
    "HS256 with our secret": lambda provider: (
        lambda header, claims: by_hand({"alg": "HS256", "kid": "key-rsa"}, claims, provider.client_secret.encode())
    ),
    "RS512": lambda provider: lambda header, claims: jwt.encode(claims, provider.rsa, "RS512", {"kid": "key-rsa"}),
    "PS256": lambda provider: lambda header, claims: jwt.encode(claims, provider.rsa, "PS256", {"kid": "key-rsa"}),
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
    at_provider: FastAPI, browser: Any, provider: LittleProvider, what: str
) -> None:
    client = browser(at_provider)
    back = begun(client, provider)
    provider.lie = LIES[what](provider)
    assert finished(client, back) == PROBLEM
