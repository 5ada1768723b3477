"""Messages to the operator's address about requests: signed, without private data, and never in anybody's way.

A message is put into a queue and sent by a thread of its own. It is tried a few times; what cannot be delivered is a
line of the log. The address is a setting of the server, redirects are not followed, and the answer is not read. An
address that answers a byte now and then is given up like one that does not answer.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import logging
import queue
import secrets
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from farthing.server.settings import WebhookSettings

TIMEOUT = 5.0  # seconds to connect, and as many for the whole answer
PAUSES = (1.0, 10.0, 60.0)  # seconds before another attempt
MOST_WAITING = 1_000
SIGNATURE, MOMENT = "X-Farthing-Signature", "X-Farthing-Timestamp"

_log = logging.getLogger("farthing.server.webhook")


def signature(secret: str, moment: str, body: bytes) -> str:
    """What a message is signed with: HMAC-SHA256 of its time and its body, so that an old one cannot be sent again.

    >>> signature("a long enough secret", "0", b"{}")[:14]
    'sha256=516eb6f'
    """
    return f"sha256={hmac.new(secret.encode(), moment.encode() + b'.' + body, hashlib.sha256).hexdigest()}"


class Webhook:
    """Tells the operator's address what happened; does nothing where there is none.

    >>> Webhook(None).tell("request.submitted", request=7)
    """

    def __init__(self, settings: WebhookSettings | None, pauses: Sequence[float] = PAUSES) -> None:
        self._settings, self._pauses = settings, tuple(pauses)
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING)
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def tell(self, event: str, **facts: Any) -> None:
        """Have a message sent soon; returns at once, whatever becomes of it."""
        if self._settings is None or self._stopping.is_set():
            return
        words = {"event": event, "id": secrets.token_hex(8), "at": int(time.time()), **facts}
        body = json.dumps(words, separators=(",", ":")).encode()
        try:
            self._waiting.put_nowait(body)
        except queue.Full:
            _log.warning("%s is not reported: %d messages wait already", event, MOST_WAITING)
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="farthing-webhook", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Give what waits one more attempt, for as long as one may take."""
        self._stopping.set()
        if self._thread is not None:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                return
            self._thread.join(2 * TIMEOUT)

    def _run(self) -> None:
        while (body := self._waiting.get()) is not None:
            for pause in (*self._pauses, None):
                problem = self._sent(body)
                if problem is None:
                    break
                if pause is None or self._stopping.wait(pause):
                    _log.warning("a message about a request was not delivered (%s)", problem)
                    break

    def _sent(self, body: bytes) -> str | None:
        """Send once; why it did not arrive, in a word that holds nothing of the answer."""
        assert self._settings is not None
        moment = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            MOMENT: moment,
            SIGNATURE: signature(self._settings.secret, moment, body),
        }
        request = urllib.request.Request(self._settings.url, body, headers, method="POST")
        try:
            with urllib.request.build_opener(_NoRedirect, _Http, _Https).open(request, timeout=TIMEOUT):
                return None
        except urllib.error.HTTPError as problem:
            problem.close()
            return f"status {problem.code}"
        except (OSError, ValueError) as problem:
            return type(problem).__name__
        except Exception as problem:  # such as an answer that is not HTTP: nothing of it may end the thread
            return type(problem).__name__


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An address may not send the message elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Patient:
    """A connection with an end: `timeout` alone is for one read, and an answer may come byte by byte for ever."""

    sock: socket.socket

    def getresponse(self) -> http.client.HTTPResponse:
        """The answer, if all of its head is there in time."""
        timer = threading.Timer(TIMEOUT, _hang_up, (self.sock,))
        timer.daemon = True
        timer.start()
        try:
            answer: http.client.HTTPResponse = super().getresponse()  # type: ignore[misc]
        finally:
            timer.cancel()
        return answer


class _HttpConnection(_Patient, http.client.HTTPConnection):
    pass


class _HttpsConnection(_Patient, http.client.HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HttpConnection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HttpsConnection, req, context=ssl.create_default_context())


def _hang_up(connected: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # of TLS too: the read that waits ends
