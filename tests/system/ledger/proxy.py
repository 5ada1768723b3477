"""A network between a client and a server that can fall silent, without closing anything."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Passes everything on, until it is told to swallow what the server answers."""

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._word: bytes | None = None
        self._silent = False
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow_after(self, word: bytes) -> None:
        """Swallow all answers once a client has sent something with this word in it."""
        self._word = word

    def heal(self) -> None:
        """Pass everything on again; what was swallowed is lost."""
        self._word, self._silent = None, False

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, asking: bool) -> None:
        with source, target, suppress(OSError):
            while data := source.recv(1 << 16):
                if asking and self._word is not None and self._word in data:
                    self._silent = True
                if asking or not self._silent:
                    target.sendall(data)


@contextmanager
def stalling_proxy(host: str, port: int) -> Iterator[Proxy]:
    """A proxy to this server, on a port of its own."""
    proxy = Proxy(host, port)
    try:
        yield proxy
    finally:
        proxy.close()
