"""A server that is not what it seems gets one request, no token elsewhere, no memory and no time without end."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.publication import dataverse
from farthing.publication.dataverse import Dataverse
from farthing.publication.dataverse_metadata import variables_xml
from farthing.publication.deposit import DepositPlan, NotesFile, _Depositor

TOKEN = "f3b1a0c2-token-of-nobody"
Write = Callable[[bytes], object]


@contextmanager
def saying(content: bytes, *, status: int = 200, drip: float = 0.0, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that gives one answer to everything, and what it was asked."""
    asked: list[str] = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

        def _handle(self) -> None:
            asked.append(f"{self.path} {self.headers.get('X-Dataverse-key')} {self.headers.get('Accept-Encoding')}")
            with suppress(OSError):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(content)
                while drip and not ended.wait(drip):
                    self.wfile.write(b" ")
                    self.wfile.flush()

        do_GET = do_POST = do_PUT = do_DELETE = _handle

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def connected(url: str, timeout: float = 20.0) -> Dataverse:
    return Dataverse(url, TOKEN, timeout=timeout, sleep=lambda seconds: None)


CALLS: dict[str, Callable[[Dataverse], object]] = {
    "create": lambda server: server.create("birds", {"datasetVersion": {}}),
    "contents": lambda server: server.contents("birds"),
    "version": lambda server: server.version("doi:10.5072/A/B"),
    "add": lambda server: server.add("doi:10.5072/A/B", "a.csv", b"", "text/csv", {}),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b'"OK"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"status": "OK", "data": 7}',
        b'{"status": "OK", "data": "x"}',
        b'{"status": "OK", "data": {"persistentId": 7, "files": [{"dataFile": {"id": 1e999}}]}}',
        b'{"status": "OK", "data": {"persistentId": "doi:\\u001b[2J", "files": [{"dataFile": {"id": "../../x"}}]}}',
        b'{"status": "OK", "data": {"persistentId": "' + b"x" * 300 + b'", "files": {}}}',
        b'{"status": {"OK": 1}, "data": null}',
    ],
    ids=lambda content: content[:50].decode("latin-1"),
)
def test_an_answer_of_another_form_is_a_refusal(content: bytes, call: str) -> None:
    with saying(content) as (url, _):
        server = connected(url)
        try:
            if call == "version" and b'"data": {' in content:
                assert isinstance(CALLS[call](server), dict)
            else:
                with pytest.raises(RequestRefused, match="not what a Dataverse sends"):
                    CALLS[call](server)
        finally:
            server.close()


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"message": ["\\u001b[2J"]}', b"null", b"\xff"])
def test_a_refusal_of_another_form_is_a_refusal(content: bytes) -> None:
    with saying(content, status=400) as (url, _):
        server = connected(url)
        with pytest.raises(RequestRefused, match="refused with 400") as refusal:
            server.version("doi:10.5072/A/B")
        server.close()
    assert str(refusal.value).isprintable() and TOKEN not in str(refusal.value)


MARKED = '"description": "[farthing sha256:%s]"' % ("ab" * 32)
NUMBERED = [f'[{{{MARKED}, "dataFile": {{"id": {number}}}}}]' for number in ('"../x"', "1e999", "null")]


@pytest.mark.parametrize("files", ["7", "[7]", f"[{{{MARKED}}}]", f'[{{{MARKED}, "dataFile": 7}}]', *NUMBERED])
def test_a_list_of_files_of_another_form_is_a_refusal(files: str, tmp_path: Path) -> None:
    with saying(f'{{"status": "OK", "data": {{"files": {files}}}}}'.encode()) as (url, _):
        depositor = object.__new__(_Depositor)
        depositor.server = connected(url)
        with pytest.raises(RequestRefused, match="not what a Dataverse sends"):
            depositor._held("doi:10.5072/A/B")
        depositor.server.close()


def test_a_listed_dataset_has_a_name_that_can_be_shown() -> None:
    listed = b'{"status": "OK", "data": [{"type": "dataset", "protocol": "doi", "authority": "\\u001b[2J"}, 7,'
    with saying(listed + b' {"type": "dataset", "protocol": "doi", "authority": "10.5072", "identifier": "A"}]}') as (
        url,
        _,
    ):
        server = connected(url)
        assert server.contents("birds") == ["doi:10.5072/A"]
        server.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_token_does_not_follow_a_redirect(status: int) -> None:
    with saying(b"") as (elsewhere, heard), saying(b"", status=status, Location=f"{elsewhere}/api") as (url, asked):
        server = connected(url)
        for call in CALLS.values():
            with pytest.raises(RequestRefused):
                call(server)
        server.close()
        assert heard == [] and all(TOKEN in one for one in asked)


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with saying(b"", drip=0.02) as (url, _):
        server = connected(url, timeout=0.5)
        with pytest.raises(RequestRefused, match="does not come to the end"):
            server.create("birds", {})
        server.close()
    monkeypatch.setattr(dataverse, "_LARGEST_ANSWER", 1000)
    with saying(bytes(2000)) as (url, _):
        server = connected(url)
        with pytest.raises(RequestRefused, match="larger than any should be"):
            server.create("birds", {})
        server.close()


def test_a_packed_answer_is_not_unpacked() -> None:
    """A megabyte of it could be a thousand."""
    bomb = gzip.compress(bytes(10_000_000))
    with saying(bomb, Content_Encoding="gzip") as (url, asked):
        server = connected(url)
        assert server.attached(7, "dpJson", "v1") == bomb
        with pytest.raises(RequestRefused, match="not what a Dataverse sends"):
            server.create("birds", {})
        server.close()
        assert all(one.endswith(" identity") for one in asked)


def test_the_token_is_in_no_trace(tmp_path: Path) -> None:
    """Whatever an error hangs on to: no text of it, of its causes or of what it is shown as has the token."""
    errors: list[BaseException] = []
    with saying(f'{{"message": "no: {TOKEN}"}}'.encode(), status=403) as (url, _):
        for address in (url, "http://127.0.0.1:9"):
            server = connected(address, timeout=5.0)
            for call in CALLS.values():
                with pytest.raises(RequestRefused) as refusal:
                    call(server)
                errors.append(refusal.value)
            server.close()
    import traceback

    for error in errors:
        shown = "".join(traceback.format_exception(error))
        chain: BaseException | None = error
        while chain is not None:
            shown += f"{chain}{chain!r}{chain.args}"
            chain = chain.__context__
        assert TOKEN not in shown


@pytest.mark.parametrize("url", ["https://exa\nmple.org", "https://[::1", "https://a:b:c", "\0"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(FarthingError):
        connected(url).close()


@pytest.mark.parametrize(
    "book",
    [
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'.encode("utf-16"),
        b'<?xml version="1.0" encoding="no-such"?><a',
        b"\xff\xfe",
        b"",
        b"<a>" * 10,
    ],
)
def test_a_codebook_of_another_form_is_a_refusal(book: bytes) -> None:
    edition: Any = None
    with pytest.raises(InvalidValue, match="codebook"):
        variables_xml(edition, {}, book, 1)


def test_notes_and_plans_name_no_other_place(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"server": "https://example.org", "persistent_id": 7}')
    with pytest.raises(InvalidValue, match="not those of a deposit"):
        NotesFile(tmp_path / "notes.json").load("https://example.org")
    with pytest.raises(InvalidValue, match="must look like doi"):
        DepositPlan("birds", "doi:10.5072/../../x y")
