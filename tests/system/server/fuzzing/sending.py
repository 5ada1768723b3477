"""A case on its way: bent towards what exists as its intent says, with the headers of whoever sends it."""

from __future__ import annotations

import gzip
import json
import random
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import quote

import requests
from schemathesis import Case

from system.server.fuzzing.cases import Trial
from system.server.fuzzing.drafts import DAYS, GROUPS, NUMBERS, condition
from system.server.fuzzing.known import Known
from system.server.fuzzing.meant import MEANT, Mind, Wish
from system.server.fuzzing.tables import DECLARED

LONG = 300.0  # seconds; nothing takes so long unless something is broken
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
_TYPES = ("application/json", "application/json; charset=utf-16", "text/plain", "application/x-www-form-urlencoded",
          "multipart/form-data; boundary=x", "application/problem+json", "")  # fmt: skip


class Sender:
    """Sends trials to one server."""

    def __init__(self, url: str, known: Known) -> None:
        self.url, self.known = url, known
        self.session = requests.Session()
        self.session.trust_env = False  # no proxy, no passwords of this machine
        self.session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def prepared(self, trial: Trial) -> tuple[Case, requests.PreparedRequest]:
        """The case as it will be checked, and the request."""
        draw = random.Random(trial.dice)
        user = self.known.people.user(trial.way, *trial.call)
        plain = trial.call not in self.known.done
        wish = MEANT[trial.call](Mind(draw, self.known, trial.way, user, plain))
        case, raw, kind = bent(trial, wish, draw)
        headers = self.known.people.header(trial.way.name, *trial.call)
        sent = case.as_transport_kwargs(base_url=self.url, headers=headers)
        sent.pop("verify", None)
        if raw is not None:
            sent.pop("json", None)
            sent["data"] = raw
            sent["headers"] = {**sent["headers"], "Content-Type": kind}
            if draw.random() < 0.05:
                sent["headers"]["Content-Encoding"] = "gzip"
        if trial.intent == "stray":
            if draw.random() < 0.3:
                sent["headers"] = {
                    **sent["headers"],
                    "Host": draw.choice(("evil.example", "127.0.0.1.evil", "[::1", "")),
                }
            else:
                sent["method"] = draw.choice([each for each in _METHODS if each not in _taken(case)])
        return case, self.session.prepare_request(requests.Request(**sent))

    def send(self, request: requests.PreparedRequest) -> requests.Response:
        """The answer, wholly read."""
        return self.session.send(request, allow_redirects=False, timeout=LONG)


def bent(trial: Trial, wish: Wish, draw: random.Random) -> tuple[Case, bytes | None, str]:
    """The case with what its intent puts in; a body that Schemathesis has not made comes as bytes of its own."""
    case, intent = trial.case, trial.intent
    path = {name: quote(str(value), safe="") for name, value in wish.path.items()}
    if intent in ("wild", "negative") and draw.random() < 0.5:
        return case, None, ""  # as it was drawn
    query, body = case.query, case.body
    has_body = wish.body is not None
    raw, kind = None, "application/json"
    if intent == "addressed" and isinstance(body, dict):
        dataset = draw.choice(("people", "visits"))
        body = named(body, dataset, draw)
        raw = json.dumps(body).encode()
    if intent in ("meant", "nearly", "malformed", "stray"):
        query = dict(wish.query)
        body = wish.body if has_body else case.body
        if intent == "nearly":
            path, query, spoiled = _spoiled(path, query, wish.body, trial.junk, draw)
            body = spoiled if has_body else body
        if has_body:
            raw = json.dumps(body).encode()
        if intent == "malformed":
            raw, kind = _malformed(raw or b"{}", draw), draw.choice(_TYPES)
    made = case.operation.Case(
        path_parameters=path,
        query=query,
        headers=dict(case.headers or {}),
        body=body,
        media_type=case.media_type,
    )
    return made, raw, kind


def named(body: Any, dataset: str, draw: random.Random) -> Any:
    """What was drawn, but about a table that exists and mostly about columns that it has."""
    if isinstance(body, list):
        return [named(each, dataset, draw) for each in body]
    if not isinstance(body, dict):
        return body
    columns = NUMBERS[dataset] + GROUPS[dataset] + DAYS[dataset]
    names: dict[str, Any] = {
        "dataset": dataset,
        "source": DECLARED[dataset]["source"],
        "column": draw.choice(columns),
        "target": draw.choice(NUMBERS[dataset]),
        "by": draw.choice(GROUPS[dataset]),
        "columns": draw.sample(columns, draw.randrange(1, 4)),
        "features": NUMBERS[dataset][:1],
        "where": condition(draw, dataset),
        "question": condition(draw, dataset),
    }
    if isinstance(body.get("columns"), dict):  # of a declaration
        names["columns"] = dict(zip(columns, body["columns"].values(), strict=False)) or DECLARED[dataset]["columns"]
    return {
        name: names[name]
        if name in names and value is not None and draw.random() < 0.9
        else named(value, dataset, draw)
        for name, value in body.items()
    }


def _spoiled(
    path: dict[str, Any], query: dict[str, Any], body: Any, junk: Any, draw: random.Random
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """One of path, query and body with one thing in it that is wrong."""
    places = ["path"] * bool(path) + ["query"] + ["body"] * (4 * (body is not None))
    place = draw.choice(places)
    text = junk if isinstance(junk, str) and junk.isprintable() and junk else repr(junk)
    if place == "path":
        path = {**path, draw.choice(sorted(path)): quote(text[:300], safe="") or "x"}
    elif place == "query":
        query = {**query, draw.choice([*query, "dataset", "limit", "proof"]): text[:300]}
    else:
        body = _replaced(json.loads(json.dumps(body)), junk, draw)
    return path, query, body


def _replaced(body: Any, junk: Any, draw: random.Random) -> Any:
    """A copy with a value replaced, left out, doubled or added somewhere inside."""
    if not isinstance(body, dict | list) or not body or draw.random() < 0.05:
        return junk
    keys = list(body) if isinstance(body, dict) else list(range(len(body)))
    key = draw.choice(keys)
    if isinstance(body[key], dict | list) and draw.random() < 0.7:
        body[key] = _replaced(body[key], junk, draw)
        return body
    what = draw.choice(("replace", "replace", "replace", "drop", "wrap", "add"))
    if what == "drop":
        del body[key]
    elif what == "add" and isinstance(body, dict):
        body[str(junk)[:50]] = body[key]
    elif what == "add":
        body.append(junk)
    else:
        body[key] = junk if what == "replace" else [body[key]]
    return body


def _malformed(body: bytes, draw: random.Random) -> bytes:
    """Bytes that are no good JSON, or that stand for something that no JSON should."""
    return draw.choice(
        (
            b"", b"{", b"nul", b"[" * 50_000, b'{"a":' * 20_000, b"\xff\xfe\x00", b"\xef\xbb\xbf" + body, body[:-1],
            body + body, body.replace(b"{", b'{"dataset": "people", ', 1), b"9" * 10_000, b'{"epsilon": 1e99999}',
            b'{"epsilon": ' + b"9" * 6_000 + b"}", b'{"epsilon": NaN}', b'{"\\ud800": "\\udfff"}',
            body.decode().encode("utf-16"), gzip.compress(body),
            b'"' + b"a" * (2 << 20) + b'"', b"--x\r\n\r\n--x--", b"a=1&b=2", body,
        )
    )  # fmt: skip


def _taken(case: Case) -> set[str]:
    """The methods that an address takes."""
    return {method.upper() for method in case.operation.schema[case.operation.path]}
