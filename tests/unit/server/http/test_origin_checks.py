"""What is refused before any route looks: foreign names, other sites' changes, bodies that are too large."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from farthing.server.app import _calls
from farthing.server.auth.permissions import check_every
from farthing.server.http.origin_checks import Forwarded, OriginChecks
from farthing.server.http.security_headers import HEADERS, SafeHeaders
from farthing.server.routes import dataset_routes
from farthing.server.settings import Settings
from unit.server.conftest import HERE, Served

CHANGE = "/api/v1/compose"
EVIL = ["evil", "evil.example", "localhost.evil", "127.0.0.1.evil:8642", "evil@127.0.0.1", "127.0.0.1/evil", "",
        "127.0.0.1:port", "localhost:8642,evil", "[::1", "0.0.0.0:8642", "169.254.169.254"]  # fmt: skip


@pytest.mark.parametrize("host", EVIL)
def test_a_foreign_host_is_refused_whatever_is_asked(curator: TestClient, host: str) -> None:
    for path in ("/", "/healthz", "/api/v1/me"):
        answer = curator.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "host_refused")


@pytest.mark.parametrize("host", ["localhost:8642", "127.0.0.1:9000", "[::1]:8642", "LOCALHOST"])
def test_this_machine_may_be_called_by_its_names(stranger: TestClient, host: str) -> None:
    assert stranger.get("/healthz", headers={"Host": host}).status_code == 200


def test_two_hosts_are_no_host(served: Served) -> None:
    twice = {"type": "http", "method": "GET", "scheme": "http", "path": "/healthz"}
    headers = [(b"host", b"127.0.0.1:8642"), (b"host", b"evil")]
    problem = OriginChecks(served.app, served.settings)._problem({**twice, "headers": headers})
    assert problem is not None
    assert problem.code == "host_refused"


def test_a_declared_name_is_allowed_and_its_origin_too() -> None:
    told = Settings(ledger="x", public_url="https://farthing.example.org", allowed_hosts=("other.example.org:8443",))
    doors = OriginChecks(lambda *_: None, told)  # type: ignore[arg-type, return-value]
    for host, origin, fits in (
        ("farthing.example.org", "https://farthing.example.org", True),
        ("farthing.example.org:443", "https://farthing.example.org", True),
        ("other.example.org:8443", "https://farthing.example.org", True),
        ("farthing.example.org", "http://farthing.example.org.evil", False),
        ("other.example.org", "https://farthing.example.org", False),
    ):
        headers = [(b"host", host.encode()), (b"origin", origin.encode())]
        scope = {"type": "http", "method": "POST", "scheme": "http", "path": "/", "headers": headers}
        assert (doors._problem(scope) is None) == fits, (host, origin)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:3000"},  # another program on the same machine
        {"Origin": "https://127.0.0.1:8642"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": ""},
    ],
)
def test_a_change_from_another_site_is_refused(curator: TestClient, headers: dict[str, str]) -> None:
    answer = curator.post(CHANGE, json={}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf")


def test_a_change_with_a_cookie_needs_to_say_where_it_comes_from(served: Served) -> None:
    client = served.signed_in("ada")
    del client.headers["origin"]
    assert client.post(CHANGE, json={}).json()["error"]["code"] == "csrf"
    assert client.post(CHANGE, json={}, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 422


@pytest.mark.parametrize("word", ["", "wrong", "é".encode("latin-1")])
def test_a_change_with_a_cookie_needs_the_pages_word(curator: TestClient, word: Any) -> None:
    answer = curator.post(CHANGE, json={}, headers={"X-CSRF-Token": word})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "csrf")


def test_a_program_with_a_token_needs_neither(served: Served) -> None:
    assert served.with_token("ada", "plan").post(CHANGE, json={}).status_code == 422


def test_a_body_above_the_limit_is_refused_announced_or_not(served: Served, curator: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(3):
            yield b" " * (served.settings.body_limit // 2)

    for body in (b" " * (served.settings.body_limit + 1), pieces()):
        answer = curator.post(CHANGE, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("length", ["-1", "many", "1" * 400])
def test_a_length_that_is_none_is_refused(curator: TestClient, length: str) -> None:
    answer = curator.post(CHANGE, content=b"{}", headers={"Content-Length": length})
    assert answer.status_code == 413


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/static/js/main.js", "/healthz", "/nothing", "/api/v1/me", "/openapi.json"])
def test_every_answer_carries_the_headers(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    static = path == "/" or path.startswith("/static")
    assert answer.headers["cache-control"] == ("no-cache" if static else "no-store")
    assert "strict-transport-security" not in answer.headers


def test_only_a_server_over_tls_tells_browsers_to_stay_there() -> None:
    app: Any = None
    assert "Strict-Transport-Security" not in SafeHeaders(app, Settings(ledger="x")).headers
    https = Settings(ledger="x", public_url="https://farthing.example.org")
    assert "Strict-Transport-Security" in SafeHeaders(app, https).headers


def test_only_a_declared_proxy_is_believed() -> None:
    seen: list[tuple[str, str]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"][0], scope["scheme"]))

    for declared in (False, True):
        scope = {
            "type": "http",
            "client": ("127.0.0.1", 9),
            "scheme": "http",
            "headers": [(b"x-forwarded-for", b"6.6.6.6, 10.0.0.7"), (b"x-forwarded-proto", b"https")],
        }
        anyio.run(Forwarded(app, Settings(ledger="x", proxy=declared)), scope, None, None)
    assert seen == [("127.0.0.1", "http"), ("10.0.0.7", "https")]


@pytest.mark.parametrize(
    "lines",
    [[b"6.6.6.6, 10.0.0.7"], [b"6.6.6.6", b"10.0.0.7"], [b"10.0.0.7"], [b"6.6.6.6, 7.7.7.7", b"10.0.0.7"]],
)
def test_a_proxy_may_add_its_word_in_a_line_of_its_own(lines: list[bytes]) -> None:
    seen: list[tuple[str, str]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"][0], scope["scheme"]))

    claimed = [(b"x-forwarded-proto", b"https"), (b"x-forwarded-proto", b"http")]
    headers = [(b"x-forwarded-for", line) for line in lines] + claimed
    scope = {"type": "http", "client": ("127.0.0.1", 9), "scheme": "http", "headers": headers}
    anyio.run(Forwarded(app, Settings(ledger="x", proxy=True)), scope, None, None)
    assert seen == [("10.0.0.7", "http")]


def test_what_nobody_foresaw_is_a_number_and_the_log_has_no_words(
    served: Served, stranger: TestClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("the cell holds canary-4711")

    monkeypatch.setattr(served.state.root, "datasets", broken)
    with caplog.at_level(logging.INFO):
        answer = stranger.get("/readyz")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    number = answer.json()["error"]["message"].rsplit(" ", 1)[1].rstrip(".")
    assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    failure = next(record for record in caplog.records if record.name == "farthing.server.failures")
    assert number in failure.getMessage()
    assert "RuntimeError at" in failure.getMessage()
    assert "canary" not in caplog.text + answer.text


def test_the_log_has_no_query_no_cookie_and_one_line_per_request(
    curator: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "farthing.server.requests"):
        curator.get("/login", params={"token": "canary-link"})
        curator.get("/api/v1/me")
        curator.get("/api/v1/datasets/a%0d%0aforged")
    lines = [record.getMessage() for record in caplog.records if record.name == "farthing.server.requests"]
    assert len(lines) == 3
    assert "canary" not in caplog.text
    assert not any(curator.cookies["farthing_session"] in line for line in lines)
    assert lines[1].split()[1:5] == ["ada", "GET", "/api/v1/me", "200"]
    assert "%0D%0Aforged" in lines[2]
    assert not any("\n" in line or "\r" in line for line in lines)


@pytest.mark.parametrize(
    "body", [b'{"user": 5, "password": ["canary-word"]}', b'{"canary-word', b"\xff\xfecanary-word"]
)
def test_a_refused_body_is_not_repeated(stranger: TestClient, body: bytes) -> None:
    answer = stranger.post("/api/v1/login", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_request")
    assert answer.json()["error"]["fields"]["problems"]
    assert "canary" not in answer.text


def test_an_app_with_a_route_that_no_row_allows_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LookupError, match="GET /api/v1/forgotten has no row"):
        check_every([("GET", "/api/v1/me"), ("GET", "/api/v1/forgotten")])


def test_an_app_with_a_route_past_the_guard_does_not_start() -> None:
    from fastapi import APIRouter

    router = APIRouter()
    router.get("/past")(lambda: None)
    with pytest.raises(TypeError, match="/past is not behind the guard"):
        list(_calls(router.routes))
    assert list(_calls(dataset_routes.router.routes)) is not None


@pytest.mark.parametrize(
    "path",
    ["../settings.py", "%2e%2e/__init__.py", "..%2f__init__.py", "js/../../__init__.py", ".hidden", "js", "js/",
     "%00", "c:%5cx", "x" * 5000, "%2fetc%2fpasswd", "//etc/passwd"],
)  # fmt: skip
def test_nothing_outside_the_page_is_served(stranger: TestClient, path: str) -> None:
    assert stranger.get(f"{HERE}/static/{path}").status_code == 404


def test_a_link_out_of_the_page_is_not_followed(tmp_path: Path) -> None:
    from farthing.server.routes.page_routes import page_file

    inside = tmp_path / "static"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    (inside / "own.txt").write_text("own")
    assert page_file(inside, "link.txt") is None
    assert page_file(inside, "own.txt") == (inside / "own.txt").resolve()


def test_a_file_that_has_not_changed_is_not_sent_again(stranger: TestClient) -> None:
    first = stranger.get("/")
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    again = stranger.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert stranger.get("/static/js/main.js").headers["content-type"] == "text/javascript; charset=utf-8"
