"""The API of a Dataverse server, as far as a deposit needs it: one method for each call, and what its answers mean.

Guides and source disagree about status codes (200 or 201), so both are taken. What only reads is tried again when the
server is busy or gone; what changes something is not, for nobody can know whether it was done: whoever deposits looks
first. The token is sent to one host only, redirects are not followed, and no message, log or repr has it.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import ssl
import stat
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from farthing.errors import InvalidValue, MissingExtra, RequestRefused

if TYPE_CHECKING:
    import httpx

TOKEN_VARIABLE = "DATAVERSE_API_TOKEN"
_TOKEN = re.compile(r"[A-Za-z0-9._-]{8,200}")
_BUSY = frozenset({429, 500, 502, 503, 504})
_TRIES = 5
_LONGEST_WAIT = 60.0
_LARGEST_ANSWER = 50_000_000


class Interrupted(RequestRefused):
    """A call whose outcome nobody knows: the server was busy or gone. Looking again says what became of it."""


def read_token(file: str | os.PathLike[str] | None) -> str:
    """The token from a file that only its owner can read, or from the environment.

    Raises:
        InvalidValue: If there is none, others can read the file, or it is no token; the token is in no message.
    """
    if file is not None:
        place = Path(file)
        try:
            mode = place.stat().st_mode
            text = place.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidValue("token-file", str(file), f"cannot be read ({type(problem).__name__})") from None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidValue("token-file", str(file), "can be read by others", f"chmod 600 {file}")
        where = f"the file {file}"
    else:
        text = os.environ.get(TOKEN_VARIABLE, "").strip()
        where = f"${TOKEN_VARIABLE}"
        if not text:
            raise InvalidValue(
                "token", None, "is needed for a deposit", f"set {TOKEN_VARIABLE}, or name a --token-file"
            )
    return checked_token(text, f"in {where} ")


def checked_token(text: str, where: str = "") -> str:
    """A token, if it looks like one; it is in no message.

    >>> checked_token("not one")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: token='...': does not look like a token of Dataverse.
    """
    if not _TOKEN.fullmatch(text):
        raise InvalidValue("token", "...", f"{where}does not look like a token of Dataverse")
    return text


class Dataverse:
    """A connection to one server, which is not trusted: every answer is bounded in size, time and form.

    Args:
        url: Its address.
        token: The API token; empty for addresses that the server has signed.
        timeout: How long the server may say nothing, and how long one answer may take once it has begun, in seconds.
        sleep: Waits between attempts.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float = 120.0, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("deposits", "httpx", "publish") from None
        self.url = checked_address(url)
        self._token, self._sleep = token, sleep
        self._errors, self._timeout = httpx.TransportError, timeout
        try:
            self._client = httpx.Client(
                base_url=self.url,
                headers={
                    **({"X-Dataverse-key": token} if token else {}),
                    "Accept": "application/json, */*;q=0.5",
                    "Accept-Encoding": "identity",  # what is packed could be of any length
                },
                timeout=httpx.Timeout(timeout, connect=min(timeout, 20.0)),
                follow_redirects=False,
                verify=_certificates(),
            )
        except httpx.InvalidURL:
            raise InvalidValue("dataverse", url, "must be the address of a server") from None

    def __repr__(self) -> str:
        return f"Dataverse({self.url!r})"

    def close(self) -> None:
        """Close the connection to the server."""
        self._client.close()

    def create(self, collection: str, dataset: Mapping[str, Any]) -> str:
        """A new dataset in a collection: its persistent identifier."""
        data = self._changed("POST", f"/api/dataverses/{quote(collection, safe='')}/datasets", json=dataset)
        return _persistent(data)

    def contents(self, collection: str) -> list[str]:
        """The persistent identifiers of the datasets in a collection, drafts included."""
        listed = self._read(f"/api/dataverses/{quote(collection, safe='')}/contents")
        if not isinstance(listed, list):
            raise strange("the list of a collection")
        named = [_listed(one) for one in listed if isinstance(one, dict) and one.get("type") == "dataset"]
        return [one for one in named if is_name(one)]

    def version(self, persistent_id: str) -> dict[str, Any]:
        """The latest version of a dataset, a draft if there is one: metadata, state and files."""
        version = self._read("/api/datasets/:persistentId/versions/:latest", persistentId=persistent_id)
        if not isinstance(version, dict):
            raise strange("the version of a dataset")
        return version

    def edit(self, persistent_id: str, dataset: Mapping[str, Any]) -> None:
        """Replace the metadata of the draft, which is made if there is none."""
        path = "/api/datasets/:persistentId/versions/:draft"
        self._changed("PUT", path, {"persistentId": persistent_id}, json=dataset["datasetVersion"])

    def add(self, persistent_id: str, name: str, content: bytes, kind: str, about: Mapping[str, Any]) -> int:
        """Add a file: the number that the server gave it."""
        parts = {"file": (name, content, kind), "jsonData": (None, json.dumps(about), "application/json")}
        data = self._changed("POST", "/api/datasets/:persistentId/add", {"persistentId": persistent_id}, files=parts)
        try:
            return int(data["files"][0]["dataFile"]["id"])
        except (KeyError, TypeError, IndexError, ValueError, OverflowError):
            raise strange("an added file") from None

    def delete(self, file_id: int) -> None:
        """Take a file out of the draft."""
        self._changed("DELETE", f"/api/files/{file_id}")

    def ingesting(self, persistent_id: str) -> bool:
        """Whether the server still reads a table that was uploaded."""
        locks = self._read("/api/datasets/:persistentId/locks", persistentId=persistent_id, type="Ingest")
        return bool(locks)

    def attach(self, file_id: int, tag: str, version: str, content: bytes, kind: str) -> bool:
        """Attach a file of differentially private statistics beside another; False where there is one already."""
        path = f"/api/access/datafile/{file_id}/auxiliary/{tag}/{version}"
        fields = {"origin": "farthing", "isPublic": "true", "type": "DP"}
        parts = {"file": (f"{tag}-{version}", content, kind)}
        try:
            self._changed("POST", path, data=fields, files=parts)
        except RequestRefused as refusal:
            if refusal.fields.get("status") == 409:
                return False
            raise
        return True

    def attached(self, file_id: int, tag: str, version: str) -> bytes | None:
        """What is attached beside a file; None where there is nothing."""
        answer = self._tried("GET", f"/api/access/datafile/{file_id}/auxiliary/{tag}/{version}")
        return None if answer.status_code == 404 else self._checked(answer).content

    def codebook(self, file_id: int) -> bytes | None:
        """The codebook of an ingested table; None of a file that was not ingested."""
        answer = self._tried("GET", f"/api/access/datafile/{file_id}/metadata")
        return None if answer.status_code in (400, 404) else self._checked(answer).content

    def describe(self, file_id: int, variables: bytes) -> None:
        """Set labels and notes of the variables of an ingested table."""
        self._changed("PUT", f"/api/edit/{file_id}", content=variables, headers={"Content-Type": "application/xml"})

    def publish(self, persistent_id: str, kind: str) -> None:
        """Publish the draft as a major or a minor version."""
        path = "/api/datasets/:persistentId/actions/:publish"
        self._changed("POST", path, {"persistentId": persistent_id, "type": kind})

    def signed(self, path: str) -> Any:
        """What is at an address that the server has signed: its query, which says who asks, goes as it is."""
        return self._data(self._checked(self._sent("GET", path)))

    def wait(self, seconds: float) -> None:
        """Wait so many seconds before looking again."""
        self._sleep(seconds)

    def _read(self, path: str, **query: str) -> Any:
        return self._data(self._checked(self._tried("GET", path, query)))

    def _tried(self, method: str, path: str, query: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer to a question, asked again while the server is busy or gone."""
        for attempt in range(_TRIES):
            try:
                answer = self._sent(method, path, query)
                if answer.status_code not in _BUSY:
                    return answer
                raise _busy(answer, attempt)
            except Interrupted as interruption:
                if attempt == _TRIES - 1:
                    raise
                self._sleep(float(str(interruption.fields.get("delay", 2.0**attempt))))
        raise AssertionError("the last attempt returns or raises")

    def _changed(self, method: str, path: str, query: Mapping[str, str] | None = None, **body: Any) -> Any:
        """What the server says to a change; `Interrupted` where nobody knows whether it was made."""
        answer = self._sent(method, path, query, **body)
        if answer.status_code in _BUSY:
            raise _busy(answer, 0)
        return self._data(self._checked(answer))

    def _sent(self, method: str, path: str, query: Mapping[str, str] | None = None, **body: Any) -> httpx.Response:
        try:
            with self._client.stream(method, path, params=query, **body) as answer:
                pieces, length, begun = [], 0, time.monotonic()
                for piece in answer.iter_raw():
                    length += len(piece)
                    if time.monotonic() - begun > self._timeout:
                        raise Interrupted("slow", f"{self.url} does not come to the end of its answer.", {})
                    if length > _LARGEST_ANSWER:
                        raise RequestRefused("too_large", "the server's answer is larger than any should be.", {})
                    pieces.append(piece)
                answer._content = b"".join(pieces)
                return answer
        except self._errors as problem:  # its text may quote the request
            raise Interrupted("unreachable", f"{self.url} cannot be reached ({type(problem).__name__}).", {}) from None

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.status_code in (200, 201, 202):
            return answer
        try:
            said = str(json.loads(answer.content)["message"])
        except (ValueError, KeyError, TypeError, RecursionError):
            said = "no reason was given"
        said = said.replace(self._token, "...") if self._token else "the address is not valid, or has expired"
        said = "".join(one for one in said if one.isprintable())[:300]
        status = answer.status_code
        advice = _ADVICE.get(status, "")
        raise RequestRefused("refused", f"the server refused with {status}: {said}.{advice}", {"status": status})

    def _data(self, answer: httpx.Response) -> Any:
        try:
            document = json.loads(answer.content)
            if document["status"] != "OK":
                raise ValueError
            return document.get("data")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise strange("a call") from None


_ADVICE = {
    301: " Give the address to which it redirects.",
    302: " Give the address to which it redirects.",
    401: " The token is not one of this server, or has expired.",
    403: " The owner of the token may not do this: ask for the right to add datasets to the collection.",
    404: " Check the name of the collection, dataset or file.",
    409: " Somebody else is editing the dataset, or this was done before.",
    413: " A file is larger than the server accepts.",
}


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates that are trusted: read once in a process."""
    import httpx

    return httpx.create_ssl_context()


def checked_address(url: str) -> str:
    """The address of a server: https, or this machine.

    >>> checked_address("https://demo.dataverse.org/")
    'https://demo.dataverse.org'
    >>> checked_address("http://demo.dataverse.org")
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: dataverse='http://demo.dataverse.org': must begin with https://, or be this machine.
    """
    try:
        parts = urlsplit(url)
        host, plain = parts.hostname or "", parts.scheme == "http"
        loopback = host == "localhost" or (host[:1].isdigit() and ipaddress.ip_address(host).is_loopback)
        _ = parts.port
    except ValueError:
        raise InvalidValue("dataverse", url, "must be the address of a server") from None
    if parts.username or parts.password:
        raise InvalidValue("dataverse", "...", "must hold no name or password", "the token says who you are")
    if any(letter in "?#@" or not letter.isprintable() or letter.isspace() for letter in url):
        raise InvalidValue(
            "dataverse", url, "must be the address of a server alone, such as https://demo.dataverse.org"
        )
    if not host or not (parts.scheme == "https" or (plain and loopback)):
        raise InvalidValue("dataverse", url, "must begin with https://, or be this machine")
    return url.rstrip("/")


def _busy(answer: httpx.Response, attempt: int) -> Interrupted:
    words = f"the server is busy ({answer.status_code}); run the same command later, and it continues."
    return Interrupted("busy", words, {"delay": _delay(answer, attempt)})


def _delay(answer: httpx.Response, attempt: int) -> float:
    """How long to wait: as the server says, within bounds."""
    said = answer.headers.get("Retry-After", "")
    seconds = float(said) if said.isascii() and said.isdigit() and len(said) < 6 else 2.0**attempt
    return min(seconds, _LONGEST_WAIT)


def _persistent(data: Any) -> str:
    persistent = data.get("persistentId") if isinstance(data, dict) else None
    if not (isinstance(persistent, str) and is_name(persistent)):
        raise strange("a new dataset")
    return persistent


def is_name(text: str) -> bool:
    """Whether it can be the persistent identifier of a dataset."""
    return 3 < len(text) < 200 and text.isprintable()


def _listed(one: Mapping[str, Any]) -> str:
    separator = one.get("separator") or "/"
    return f"{one.get('protocol')}:{one.get('authority')}{separator}{one.get('identifier')}"


def strange(what: str) -> RequestRefused:
    """What is said of an answer that Dataverse would not give."""
    return RequestRefused("strange", f"the answer about {what} is not what a Dataverse sends; check the address.")
