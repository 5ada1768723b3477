"""Requests that do not arrive are given up; those that do are answered, however long that takes."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from farthing.server.http import request_limits
from farthing.server.http.request_limits import TimedProtocol

LIMIT = 0.4  # seconds, for heads and bodies of these tests
HEAD = b"POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """`slow` reads late and answers later, `deaf` answers without reading, all others echo what was sent."""
    assert scope["type"] == "http"
    body = b""
    if scope["path"] == "/slow":
        await asyncio.sleep(2 * LIMIT)
    while scope["path"] != "/deaf":
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    if scope["path"] == "/slow":
        await asyncio.sleep(2 * LIMIT)
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server that is impatient within half a second."""
    with pytest.MonkeyPatch.context() as patch, socket.socket() as door:
        patch.setattr(request_limits, "HEAD", LIMIT)
        patch.setattr(request_limits, "BODY", LIMIT)
        door.bind(("127.0.0.1", 0))
        door.listen()
        server = uvicorn.Server(
            uvicorn.Config(app, http=TimedProtocol, lifespan="off", log_config=None, timeout_keep_alive=30)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]})
        thread.start()
        yield door.getsockname()[1]
        server.should_exit = True
        thread.join(600)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=600)


def wait_until_closed(line: socket.socket, drip: bytes = b"") -> None:
    """Until the server hangs up on somebody who sends a byte now and then."""
    began = time.monotonic()
    line.settimeout(LIMIT / 8)
    while True:
        try:
            if line.recv(4096) == b"":
                break
        except TimeoutError:
            try:
                line.sendall(drip)
            except OSError:
                break
        except OSError:
            break
        assert time.monotonic() - began < 600, "it is waited for without end"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: lo",
        HEAD % b"echo",
        HEAD % b"echo" + b"ab",
        HEAD % b"deaf",
        b"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\nGET /echo HTTP/1.1\r\nX",
    ],
)
def test_whoever_does_not_finish_a_request_is_hung_up_on(port: int, sent: bytes) -> None:
    began = time.monotonic()  # before the server's own clock starts: a busy machine only makes it longer
    with connected(port) as line:
        line.sendall(sent)
        wait_until_closed(line)
        assert time.monotonic() - began > 0.5 * LIMIT


def test_a_request_that_drips_takes_no_longer(port: int) -> None:
    with connected(port) as line:
        line.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        wait_until_closed(line, drip=b"a")


@pytest.mark.slow
def test_an_answer_may_take_longer_than_a_request(port: int) -> None:
    with connected(port) as line:
        for _ in range(2):  # on the same connection
            line.sendall(HEAD % b"slow" + b"abcd")
            answer = b""
            while not answer.endswith(b"abcd"):
                piece = line.recv(4096)
                assert piece, "it hung up on somebody who had said everything"
                answer += piece
