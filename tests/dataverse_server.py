"""A strict Dataverse on loopback, for tests: real HTTP, the rules of 6.11 that a deposit meets, and faults on demand.

A request that breaks a rule is answered with an error and noted in `faults`, which a test compares with nothing.
"""

from __future__ import annotations

import base64
import email.parser
import email.policy
import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

from publications import SCHEMAS

TOKEN = "f3b1a0c2-token-of-nobody"
CUTS = ("before", "during", "after", "answer")


@dataclass
class Call:
    """One request, as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """Which call of the API it is."""
        return f"{self.method} {re.sub(r'/[0-9]+', '/N', self.path)}"


@dataclass
class State:
    """What the server holds, and how it is to behave."""

    datasets: dict[str, dict[str, Any]] = field(default_factory=dict)
    auxiliary: dict[tuple[int, str, str], bytes] = field(default_factory=dict)
    variables: dict[int, bytes] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    number: int = 100
    created: int = 201
    locks: int = 0
    locked: int = 0
    publishing: int = 0
    trouble: dict[int, str] = field(default_factory=dict)
    heard: int = 0
    slow: float = 0.0
    told: dict[str, Any] = field(default_factory=dict)
    open: threading.Event = field(default_factory=threading.Event)

    def next_number(self) -> int:
        self.number += 1
        return self.number


def _fields() -> dict[str, tuple[str, bool, str, bool]]:
    """Of each citation field: its class, whether it is multiple, its parent, whether it is required."""
    lines = (SCHEMAS / "dataverse" / "citation.tsv").read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("#datasetField"))
    end = next(place for place, line in enumerate(lines) if line.startswith("#controlledVocabulary"))
    head = [one.strip() for one in lines[start].split("\t")]
    rows = [dict(zip(head, line.split("\t"), strict=False)) for line in lines[start + 1 : end]]
    parents = {row["parent"].strip() for row in rows}
    return {
        row["name"].strip(): (
            "compound"
            if row["name"].strip() in parents
            else "controlledVocabulary"
            if row["allowControlledVocabulary"].strip() == "TRUE"
            else "primitive",
            row["allowmultiples"].strip() == "TRUE",
            row["parent"].strip(),
            row["required"].strip() == "TRUE",
        )
        for row in rows
    }


FIELDS = _fields()


def faults_of(version: Any) -> Iterator[str]:
    """What Dataverse would refuse in the metadata of a version."""
    if set(version) != {"license", "metadataBlocks"} or set(version["license"]) != {"name", "uri"}:
        yield f"a version has {sorted(version)}"
    given = version["metadataBlocks"]["citation"]["fields"]
    names = [one["typeName"] for one in given]
    if len(set(names)) != len(names):
        yield "a field is there twice"
    required = {name for name, (_, _, parent, needed) in FIELDS.items() if needed and not parent}
    if required - set(names):
        yield f"required and missing: {sorted(required - set(names))}"
    for one in given:
        yield from _field_faults(one, "")


def _field_faults(one: dict[str, Any], parent: str) -> Iterator[str]:
    if set(one) != {"typeName", "typeClass", "multiple", "value"}:
        yield f"a field has {sorted(one)}"
        return
    kind, multiple, above, _ = FIELDS.get(one["typeName"], ("", False, "", False))
    if (one["typeClass"], above) != (kind, parent) or one["multiple"] is not multiple:
        yield f"{one['typeName']} is {one['typeClass']}, multiple {one['multiple']}, in {parent!r}"
    values = one["value"] if multiple else [one["value"]]
    if not values or not isinstance(values, list):
        yield f"{one['typeName']} holds nothing"
        return
    for value in values:
        if kind != "compound":
            if not isinstance(value, str) or not value:
                yield f"{one['typeName']} holds {value!r}"
            continue
        needed = {name for name, (_, _, of, must) in FIELDS.items() if of == one["typeName"] and must}
        if needed - set(value):
            yield f"{one['typeName']} lacks {sorted(needed - set(value))}"
        for name, part in value.items():
            if part["typeName"] != name:
                yield f"{name} calls itself {part['typeName']}"
            yield from _field_faults(part, one["typeName"])


class Refusal(Exception):
    """An answer that is not OK."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Dataverse(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def _handle(self) -> None:
        state = self.state
        number, state.heard = state.heard, state.heard + 1
        trouble = state.trouble.pop(number, "")
        if trouble == "before":
            self._cut()
            return
        length = int(self.headers.get("Content-Length", 0))
        if trouble == "during":
            self.rfile.read(length // 2)
            self._cut()
            return
        body = self.rfile.read(length) if length else self._chunks()
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        call = Call(self.command, unquote(parts.path), query, dict(self.headers.items()), body)
        state.calls.append(call)
        if trouble.isdigit():
            self._answer(int(trouble), {"status": "ERROR", "message": f"told to: {TOKEN}"}, {"Retry-After": "3"})
            return
        if call.path == "/dataset.xhtml":  # what people open needs no token here
            self._answer(200, _page(state, call), {"Content-Type": "text/html; charset=utf-8"})
            return
        if re.fullmatch(_SIGNED_CALLS, call.path) and "token" in call.query:
            self._answer(*_signed(state, call, parts.query), {})
            return
        try:
            status, data = self._result(call)
            answer: Any = data if isinstance(data, bytes) else {"status": "OK", "data": data}
        except Refusal as refusal:
            status, answer = refusal.status, {"status": "ERROR", "message": refusal.message}
        except (KeyError, ValueError, TypeError, IndexError) as problem:
            state.faults.append(f"{call.name}: {problem!r}")
            status, answer = 400, {"status": "ERROR", "message": "malformed"}
        if trouble == "after":
            self._cut()
            return
        if trouble == "slow":
            state.open.wait(20.0)
        self._answer(status, answer, {}, half=trouble == "answer")

    do_GET = do_POST = do_PUT = do_DELETE = _handle

    def _chunks(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return b""
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _cut(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, status: int, answer: Any, headers: dict[str, str], *, half: bool = False) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if half else content)
        if half:
            self._cut()

    def _result(self, call: Call) -> tuple[int, Any]:
        if call.headers.get("X-Dataverse-key") != TOKEN:
            raise Refusal(401, "Bad api key")
        if TOKEN in call.path or TOKEN in str(call.query) or TOKEN.encode() in call.body:
            self.state.faults.append(f"the token is in {call.name}")
        for pattern, act in _ROUTES.items():
            match = re.fullmatch(pattern, f"{call.method} {call.path}")
            if match:
                status, data = act(self.state, call, *match.groups())
                return status, data
        self.state.faults.append(f"there is no {call.name}")
        raise Refusal(404, "no such call")


def _dataset(state: State, call: Call) -> dict[str, Any]:
    found = state.datasets.get(call.query["persistentId"])
    if found is None:
        raise Refusal(404, "Dataset with Persistent ID not found.")
    return found


_SIGNED_CALLS = r"/api/v1/files/7(/metadata/8/toolparams/1)?"
SIGNATURE = "until=2026-11-20T01:02:03.456&user=finch&method=GET&token=5f1d0c2e"


def launch_link(url: str) -> str:
    """What Dataverse puts into `callback` when somebody chooses farthing on file 7."""
    return base64.b64encode(f"{url}/api/v1/files/7/metadata/8/toolparams/1?{SIGNATURE}".encode()).decode()


def _signed(state: State, call: Call, query: str) -> tuple[int, Any]:
    """A call at a signed address: the signature says who asks, and a token would be one too many."""
    if call.method != "GET" or "X-Dataverse-key" in call.headers:
        state.faults.append(f"{call.name} with a token")
    if query != SIGNATURE:
        return 401, {"status": "ERROR", "message": f"Bad signature: {query}"}
    here = f"http://{call.headers['Host']}"
    if call.path.endswith("/toolparams/1"):
        signed = {"name": "describeFile", "httpMethod": "GET", "timeOut": 10}
        signed["signedUrl"] = f"{here}/api/v1/files/7?{SIGNATURE}"
        told = {"siteUrl": here, "datasetPid": "doi:10.5072/FK2/ORIGINAL", "fileId": 7, **state.told}
        return 200, {"status": "OK", "data": {"queryParameters": told, "signedUrls": [signed]}}
    return 200, {"status": "OK", "data": {"label": "birds & <b>people</b>.tab", "restricted": True}}


def _page(state: State, call: Call) -> bytes:
    """What was deposited, for people: the metadata as it came, the files by folder, what is beside the original."""
    one = _dataset(state, call)
    fields = one["version"]["metadataBlocks"]["citation"]["fields"]
    facts = "".join(f"<dt>{each['typeName']}</dt><dd>{_words(each['value'])}</dd>" for each in fields[1:])
    files = "".join(
        f"<tr><td>{escape('/'.join(filter(None, (each['directoryLabel'], each['name']))))}</td>"
        f"<td>{escape(each['description'].partition(' [farthing')[0])}</td></tr>"
        for each in one["files"]
    )
    beside = "".join(f"<li>{escape(tag)} {version}, beside file {file}</li>" for file, tag, version in state.auxiliary)
    title = escape(fields[0]["value"])
    return f"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 Helvetica, Arial, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem;
  overflow-wrap: anywhere }}
dl {{ display: grid; grid-template-columns: 9rem 1fr; gap: .4rem 1rem }} dd {{ margin: 0 }}
td {{ border-top: 1px solid #8885; padding: .3rem 1rem .3rem 0; vertical-align: top }}
</style></head><body><p>The Dataverse of the tests</p><h1>{title}</h1>
<p>{escape(call.query["persistentId"])} ({one["state"].lower()})</p>
<h2>Metadata</h2><dl>{facts}</dl><h2>Files</h2><table>{files}</table>
{f"<h2>Auxiliary files, type DP</h2><ul>{beside}</ul>" if beside else ""}</body></html>""".encode()


def _words(value: Any) -> str:
    if isinstance(value, list):
        return "<br>".join(map(_words, value))
    if isinstance(value, dict):
        return ", ".join(_words(part["value"]) for part in value.values())
    return escape(str(value))


def _create(state: State, call: Call, alias: str) -> tuple[int, Any]:
    if alias != "birds":
        raise Refusal(404, f"Can't find dataverse with identifier='{alias}'")
    document = json.loads(call.body)
    if call.headers.get("Content-Type") != "application/json" or set(document) != {"datasetVersion"}:
        raise ValueError("not native JSON")
    state.faults += list(faults_of(document["datasetVersion"]))
    number = state.next_number()
    persistent = f"doi:10.5072/FK2/B{number}"
    state.datasets[persistent] = {"id": number, "version": document["datasetVersion"], "files": [], "state": "DRAFT"}
    return state.created, {"id": number, "persistentId": persistent}


def _contents(state: State, call: Call, alias: str) -> tuple[int, Any]:
    listed = [{"type": "dataverse", "id": 1, "title": "another collection"}]
    for persistent, one in state.datasets.items():
        protocol, _, rest = persistent.partition(":")
        authority, _, identifier = rest.partition("/")
        known = {"protocol": protocol, "authority": authority, "identifier": identifier}
        listed.append({"type": "dataset", "id": one["id"], **known})
    return 200, listed


def _version(state: State, call: Call) -> tuple[int, Any]:
    one = _dataset(state, call)
    if one["state"] == "PUBLISHING":
        state.publishing -= 1
        if state.publishing <= 0:
            one["state"] = "RELEASED"
    shown = "DRAFT" if one["state"] == "PUBLISHING" else one["state"]
    return 200, {**one["version"], "versionState": shown, "files": [_shown(each) for each in one["files"]]}


def _shown(file: dict[str, Any]) -> dict[str, Any]:
    """A file as it is listed: an ingested one has another name and other bytes."""
    name = re.sub(r"\.csv$", ".tab", file["name"]) if file["ingested"] else file["name"]
    kept = {"id": file["id"], "filename": name}
    folder = {"directoryLabel": file["directoryLabel"]} if file["directoryLabel"] else {}
    return {"label": name, "description": file["description"], "restricted": False, **folder, "dataFile": kept}


def _edit(state: State, call: Call) -> tuple[int, Any]:
    one = _dataset(state, call)
    version = json.loads(call.body)
    state.faults += list(faults_of(version))
    one["version"], one["state"] = version, "DRAFT"
    return 200, {"id": one["id"]}


def _parts(call: Call) -> dict[str, Any]:
    head = f"Content-Type: {call.headers['Content-Type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + call.body)
    return {str(part.get_param("name", header="content-disposition")): part for part in message.iter_parts()}


def _add(state: State, call: Call) -> tuple[int, Any]:
    one = _dataset(state, call)
    if state.locked > 0:
        raise Refusal(403, "Dataset cannot be edited due to Ingest lock.")
    parts = _parts(call)
    if set(parts) != {"file", "jsonData"}:
        raise ValueError(f"parts {sorted(parts)}")
    about = json.loads(parts["jsonData"].get_payload(decode=True))
    if set(about) != {"description", "directoryLabel", "categories", "restrict", "tabIngest"}:
        raise ValueError(f"jsonData {sorted(about)}")
    content, name = parts["file"].get_payload(decode=True), parts["file"].get_filename()
    if not re.fullmatch(r"[^:<>;#/\"*|?\\]+", name) or not re.fullmatch(r"[\w\-. /]*", about["directoryLabel"]):
        raise ValueError(f"the name {name!r}")
    same = [each for each in one["files"] if (each["directoryLabel"], each["name"]) == (about["directoryLabel"], name)]
    if same:
        state.faults.append(f"{name} was uploaded twice")
    ingested = about["tabIngest"] == "true" and name.endswith(".csv")
    file = {"id": state.next_number(), "name": name, "content": content, "ingested": ingested, **about}
    one["files"].append(file)
    one["state"] = "DRAFT"
    state.locked = state.locks if ingested else 0
    return state.created, {"files": [{"label": name, "dataFile": {"id": file["id"], "filename": name}}]}


def _locks(state: State, call: Call) -> tuple[int, Any]:
    one = _dataset(state, call)
    if call.query.get("type") != "Ingest":
        raise ValueError("which locks?")
    state.locked = max(0, state.locked - 1)
    return 200, [{"lockType": "Ingest", "user": "finch", "dataset": one["id"]}] if state.locked else []


def _file(state: State, number: int) -> dict[str, Any]:
    for one in state.datasets.values():
        for file in one["files"]:
            if file["id"] == number:
                return file
    raise Refusal(404, "File not found.")


def _delete(state: State, call: Call, number: str) -> tuple[int, Any]:
    file = _file(state, int(number))
    for one in state.datasets.values():
        if file in one["files"]:
            one["files"].remove(file)
            one["state"] = "DRAFT"
    return 200, {"message": "deleted"}


def _attach(state: State, call: Call, number: str, tag: str, version: str) -> tuple[int, Any]:
    if int(number) != 7:
        raise Refusal(400, "The file does not exist.")
    parts = _parts(call)
    fields = {name: part.get_payload(decode=True).decode() for name, part in parts.items() if name != "file"}
    if fields != {"origin": "farthing", "isPublic": "true", "type": "DP"} or "file" not in parts:
        raise ValueError(f"fields {fields}")
    key = (int(number), tag, version)
    if key in state.auxiliary:
        raise Refusal(409, "Auxiliary file already exists.")
    state.auxiliary[key] = parts["file"].get_payload(decode=True)
    return 200, {"formatTag": tag, "formatVersion": version, "type": "DP", "isPublic": True}


def _attached(state: State, call: Call, number: str, tag: str, version: str) -> tuple[int, Any]:
    held = state.auxiliary.get((int(number), tag, version))
    if held is None:
        raise Refusal(404, "Auxiliary file not found.")
    return 200, held


def _codebook(state: State, call: Call, number: str) -> tuple[int, Any]:
    file = _file(state, int(number))
    if not file["ingested"]:
        raise Refusal(400, "not a tabular file")
    names = file["content"].decode().splitlines()[0].split(",")
    book = ElementTree.Element("codeBook", {"xmlns": "ddi:codebook:2_5"})
    described = ElementTree.SubElement(book, "dataDscr")
    for place, name in enumerate(names):
        ElementTree.SubElement(described, "var", {"ID": f"v{int(number) * 100 + place}", "name": name})
    return 200, ElementTree.tostring(book)


def _describe(state: State, call: Call, number: str) -> tuple[int, Any]:
    file = _file(state, int(number))
    root = ElementTree.fromstring(call.body)
    identities = [one.get("ID") for one in root]
    names = file["content"].decode().splitlines()[0].split(",")
    wanted = [f"v{int(number) * 100 + place}" for place in range(len(names))]
    known = {"location", "labl", "universe", "notes", "qstn", "catgry"}
    if root.tag != "dataDscr" or identities != wanted or {part.tag for one in root for part in one} - known:
        raise ValueError("the variables")
    state.variables[int(number)] = call.body
    return 200, {"message": "Updated"}


def _publish(state: State, call: Call) -> tuple[int, Any]:
    one = _dataset(state, call)
    if call.query.get("type") not in ("major", "minor"):
        raise ValueError("which version?")
    if one["state"] != "DRAFT" or state.locked:
        raise Refusal(409, "This dataset version is already published, or locked.")
    one["published"] = one.get("published", 0) + 1
    one["state"] = "PUBLISHING" if state.publishing else "RELEASED"
    return (202 if state.publishing else 200), {"id": one["id"]}


_PERSISTENT = "/api/datasets/:persistentId"
_AUXILIARY = r"/api/access/datafile/(\d+)/auxiliary/(\w+)/([\w.]+)"
_ROUTES = {
    r"POST /api/dataverses/([^/]+)/datasets": _create,
    r"GET /api/dataverses/([^/]+)/contents": _contents,
    f"GET {_PERSISTENT}/versions/:latest": _version,
    f"PUT {_PERSISTENT}/versions/:draft": _edit,
    f"POST {_PERSISTENT}/add": _add,
    f"GET {_PERSISTENT}/locks": _locks,
    f"POST {_PERSISTENT}/actions/:publish": _publish,
    r"DELETE /api/files/(\d+)": _delete,
    f"POST {_AUXILIARY}": _attach,
    f"GET {_AUXILIARY}": _attached,
    r"GET /api/access/datafile/(\d+)/metadata": _codebook,
    r"PUT /api/edit/(\d+)": _describe,
}


@contextmanager
def serving(state: State) -> Iterator[str]:
    """The address of a server that holds this state."""
    handler = type("Handler", (Dataverse,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        state.open.set()
        server.shutdown()
        server.server_close()
        thread.join()


def shape_of(state: State) -> Any:
    """What a deposit left on the server, without the numbers that it gave."""
    return [
        (
            one["state"],
            one.get("published", 0),
            sorted(
                (each["directoryLabel"], each["name"], hashlib.sha256(each["content"]).hexdigest(), each["description"])
                for each in one["files"]
            ),
            sorted((tag, version, content) for (_, tag, version), content in state.auxiliary.items()),
            len(state.variables),
        )
        for one in state.datasets.values()
    ]
