"""Where a server may listen, which port it gets, and what it says when it may not."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner

from farthing.cli import main, serve_command
from farthing.errors import InvalidValue
from farthing.server.http.origin_checks import check_binding
from farthing.server.server_process import NEXT_PORTS, Server, Started, listening_socket
from farthing.server.settings import Settings

TLS = {"tls_certificate": Path("a"), "tls_key": Path("b")}


def test_a_port_that_is_taken_is_refused_if_it_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            InvalidValue, match=f"port={port}: is in use; stop the process that has it, or choose another"
        ):
            listening_socket("127.0.0.1", port, exact=True)


def test_otherwise_the_next_that_is_free_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        door, found = listening_socket("127.0.0.1", port, exact=False)
        door.close()
    assert port < found <= port + NEXT_PORTS


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_are_sent_at_once_and_do_not_wait_for_the_one_before_to_be_acknowledged(host: str) -> None:
    """A response is two writes, and the second would wait 40 ms on every connection that is used again."""
    door, port = listening_socket(host, 0, exact=True)

    async def sends_at_once() -> bool:
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
            theirs = answer.get_extra_info("socket")
            found.set_result(bool(theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            answer.close()

        async with await asyncio.start_server(connected, sock=door):
            _, writer = await asyncio.open_connection(host, port)
            try:
                return await found
            finally:
                writer.close()
                await writer.wait_closed()

    assert asyncio.run(sends_at_once())


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(InvalidValue, match="is no address of this machine"):
        listening_socket("192.0.2.1", 0, exact=True)


@pytest.mark.parametrize(
    ("told", "users", "refused"),
    [
        ({}, 0, ""),
        ({"host": "::1"}, 0, ""),
        ({"host": "localhost"}, 0, ""),
        ({"host": "0.0.0.0"}, 0, "nobody has an account"),
        ({"host": "::"}, 0, "nobody has an account"),
        ({"host": "0.0.0.0"}, 5, "passwords unencrypted"),
        ({"host": "example.org", "public_url": "https://example.org"}, 5, "passwords unencrypted"),
        ({"host": "0.0.0.0", "proxy": True}, 5, "needs the address that people type"),
        ({"proxy": True, "public_url": "https://example.org"}, 0, "nobody has an account"),
        ({"proxy": True, "public_url": "https://example.org"}, 1, ""),
        ({"host": "0.0.0.0", "proxy": True, "public_url": "https://example.org"}, 1, ""),
        ({"host": "192.0.2.7", **TLS}, 1, ""),
        ({"host": "0.0.0.0", **TLS}, 1, "needs the address that people type"),
        ({"host": "0.0.0.0", "public_url": "https://example.org", **TLS}, 1, ""),
        ({"host": "0.0.0.0", **TLS}, 0, "nobody has an account"),
    ],
)
def test_others_are_let_in_only_with_accounts_and_without_clear_passwords(
    told: dict[str, object], users: int, refused: str
) -> None:
    settings = Settings(ledger="study.db", **told)  # type: ignore[arg-type]
    if not refused:
        check_binding(settings, users)
        return
    with pytest.raises(InvalidValue, match=refused):
        check_binding(settings, users)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--host='0.0.0.0': can be reached by others"),
        (["--data", "nowhere"], "--data='nowhere': must be a folder"),
        (
            ["--public-url", "https://x.example/path"],
            "--public-url='https://x.example/path': must be an http",
        ),
        (["--public-url", "https://user:canary@x.example/p"], "--public-url='...'"),
        (["--port", "70000"], "--port=70000: must be from 0 to 65535"),
        (["--workers", "-1"], "--workers=-1: must be from 0 to 64"),
        (["--tls-key", "x.pem"], "needs a certificate and its key"),
        (
            ["--tls-key", "x.pem", "--tls-certificate", "y.pem"],
            "--tls-certificate='y.pem': must be a certificate",
        ),
        (["--oidc-issuer", "https://id.example"], "--oidc-issuer='https://id.example': needs the other"),
        (["--oidc-issuer", "https://id.example", "--oidc-client-id", "x"], "give --public-url too"),
        (["--behind-proxy"], "needs the address that people type"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_made(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(main, ["serve", *words])
    assert run.exit_code == 2, run.output
    assert said in " ".join(run.output.split())
    assert "canary" not in run.output
    assert list(tmp_path.iterdir()) == []


def test_a_proxy_is_not_let_in_before_there_is_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(main, ["serve", "--behind-proxy", "--public-url", "https://x.example"])
    assert run.exit_code == 2
    assert "farthing users add NAME --role curator" in run.output
    assert [path.name for path in tmp_path.iterdir()] == ["farthing.server.db"]  # no ledger was made


def test_without_the_servers_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "farthing.server.server_process", None)
    run = CliRunner().invoke(main, ["serve"])
    assert run.exit_code == 2
    assert "pip install 'farthing[server]'" in run.output


def test_a_link_that_makes_its_user_says_that_there_is_none_before(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(self: uvicorn.Server, sockets: object = None) -> None:
        """No port is opened."""

    monkeypatch.setattr(uvicorn.Server, "startup", nothing)
    monkeypatch.setattr("farthing.server.server_process.login_name", lambda: "owner")
    said: list[Started] = []
    asyncio.run(Server(served.app, served.settings, said.append).startup())
    served.add("owner", "curator")
    asyncio.run(Server(served.app, served.settings, said.append).startup())
    before, after = (serve_command._address_lines(facts) for facts in said)
    assert "Opening it adds owner as a user; `farthing users token owner` works only after that." in before
    assert "sign in as owner" in after and "adds owner" not in after
