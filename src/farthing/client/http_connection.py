"""A connection to a server: JSON there and back, refusals as exceptions, and retries that cannot spend twice."""

from __future__ import annotations

import ipaddress
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from farthing.errors import (
    AnswerForfeited,
    BudgetExceeded,
    EngineError,
    FarthingError,
    Infeasible,
    InvalidExpression,
    InvalidValue,
    LedgerTampered,
    LedgerUnavailable,
    MissingExtra,
    NotAllowed,
    RequestRefused,
    SessionEnded,
)

if TYPE_CHECKING:
    import httpx


# The classes as the local API raises them. A message is the server's own: it is not put together twice.
_CLASSES: dict[str, type[FarthingError]] = {
    "budget_exceeded": BudgetExceeded,
    "session_ended": SessionEnded,
    "infeasible": Infeasible,
    "answer_forfeited": AnswerForfeited,
    "invalid_value": InvalidValue,
    "invalid_expression": InvalidExpression,
    "engine_error": EngineError,
    "not_allowed": NotAllowed,
    "ledger_tampered": LedgerTampered,
    "ledger_unavailable": LedgerUnavailable,
}
# What code that catches them may read, where the server did not say.
_ABSENT: dict[str, Any] = {
    "requested": None, "remaining": None, "budget_id": "", "rounds": 0, "way_out": "", "blocking": (),
    "closest": None, "epsilon": float("inf"), "request_id": "", "reason": "", "name": "", "value": None,
    "rule": "", "text": "", "position": None, "engine": "", "kind": "", "role": "", "action": "", "problem": "",
    "sequence": None, "offers": {}, "holds": {},
}  # fmt: skip
_FIELDS: dict[type[FarthingError], tuple[str, ...]] = {
    BudgetExceeded: ("requested", "remaining", "budget_id"),
    SessionEnded: ("requested", "remaining", "budget_id", "rounds", "way_out"),
    Infeasible: ("blocking", "closest", "hardest", "epsilon", "offers", "holds"),
    AnswerForfeited: ("request_id", "reason"),
    InvalidValue: ("name", "value", "rule", "way_out"),
    InvalidExpression: ("text", "position", "rule", "way_out"),
    EngineError: ("engine", "kind", "way_out"),
    NotAllowed: ("role", "action"),
    LedgerTampered: ("problem", "sequence"),
    LedgerUnavailable: ("reason", "way_out"),
}


def refusal_of(envelope: Mapping[str, Any]) -> FarthingError:
    """The exception of an error envelope's inside: the class and the fields of the local API, the server's words.

    >>> found = refusal_of({"code": "budget_exceeded", "message": "too much.", "fields": {"requested": 0.5}})
    >>> type(found).__name__, str(found), found.requested
    ('BudgetExceeded', 'too much.', 0.5)
    >>> refusal_of({"code": "conflict", "message": "somebody was quicker.", "fields": {}}).code
    'conflict'
    """
    code, message = str(envelope.get("code", "internal")), str(envelope.get("message", "the server refused."))
    fields = envelope.get("fields")
    facts: Mapping[str, Any] = fields if isinstance(fields, Mapping) else {}
    kind = _CLASSES.get(code)
    if kind is None:
        return RequestRefused(code, message, facts)
    return _worded_error(kind, message, facts)


def _worded_error(kind: type[FarthingError], message: str, facts: Mapping[str, Any]) -> FarthingError:
    new: Callable[..., FarthingError] = kind.__new__
    problem = new(kind, message)  # past __init__, which would word it again
    problem.args = (message,)
    for name in _FIELDS[kind]:
        value = facts.get(name, _ABSENT.get(name))
        setattr(problem, name, tuple(value) if isinstance(value, list) else value)
    return problem


_WAITS = (0.2, 0.5, 1.0, 2.0, 4.0)  # seconds between attempts: an instance that is replaced is back by then
_TRANSIENT = {502, 503, 504}


class Connection:
    """What `Client` speaks through. The token is in no message, no repr and no log."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 60.0,
        insecure: bool = False,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("clients", "httpx", "client") from None
        self._httpx = httpx
        self.url = checked_url(url, insecure=insecure)
        headers = {"Authorization": f"Bearer {checked_token(token)}", "Accept": "application/json"}
        # A proxy of the environment is for other machines: it must not see a token that never leaves this one.
        outside = not self.url.startswith("http://") or insecure
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1",
            headers=headers,
            timeout=timeout,
            transport=transport,
            trust_env=outside,
        )

    def get(self, path: str, **query: Any) -> Any:
        """What a GET of `path` answers."""
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any], *, repeatable: bool = True, **query: Any) -> Any:
        """What a POST answers; `repeatable` says that sending it twice is the same as once."""
        return self.call("POST", path, body, query, repeatable=repeatable)

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON with which the server answers a PUT."""
        return self.call("PUT", path, body)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = True,
    ) -> Any:
        """One request, as JSON. What is `repeatable` is sent again while the server cannot be reached."""
        response = self._sent(method, path, body, query, repeatable=repeatable)
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError:
            raise _refusal_in(response) from None

    def text(self, path: str, **query: Any) -> str:
        """What a GET of `path` answers, as text."""
        return str(self._sent("GET", path, None, query, repeatable=True).text)

    def bytes(self, path: str, **query: Any) -> bytes:
        """What a GET of `path` answers, as it was sent."""
        return self._sent("GET", path, None, query, repeatable=True).content

    def lines(self, path: str, **query: Any) -> Iterator[str]:
        """The lines of a long answer, one by one."""
        with self._http.stream("GET", path, params=_query_parameters(query)) as response:
            if response.status_code >= 300:
                response.read()
                raise _refusal_in(response)
            yield from response.iter_lines()

    def close(self) -> None:
        """Close the connection; what was charged stays charged."""
        self._http.close()

    def _sent(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, Any] | None,
        *,
        repeatable: bool,
    ) -> httpx.Response:
        content = None if body is None else _json(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        for wait in (*_WAITS, None):
            try:
                response = self._http.request(
                    method, path, content=content, headers=headers, params=_query_parameters(query or {})
                )
            except self._httpx.TransportError as problem:
                lost = not isinstance(problem, self._httpx.ConnectError)
                if wait is None or (lost and not repeatable):
                    raise self._unreachable(problem, lost=lost) from None
            else:
                if response.status_code < 300:
                    return response
                refused = _refusal_in(response)  # a redirect as well: the token is sent to this address only
                passing = response.status_code in _TRANSIENT and not isinstance(refused, LedgerTampered)
                if wait is None or not repeatable or not passing:
                    raise refused
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, problem: Exception, *, lost: bool) -> LedgerUnavailable:
        """The driver's own words stay out: they may repeat headers."""
        what = "did not answer" if lost else "cannot be reached"
        return LedgerUnavailable(
            f"the server at {self.url} {what} ({type(problem).__name__})",
            "check that it runs, then ask again: the same request id is never charged twice",
        )

    def __repr__(self) -> str:
        return f"Connection({self.url!r})"


def checked_url(url: object, *, insecure: bool) -> str:
    """The address of a server, without a path; plain http only on this machine, because the token goes with it.

    >>> checked_url("http://127.0.0.1:8642/", insecure=False)
    'http://127.0.0.1:8642'
    >>> checked_url("http://stats.example.org", insecure=False)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: url='http://stats.example.org': must be https: the token would be readable ...
    """
    if not isinstance(url, str):
        raise InvalidValue("url", url, "must be the address of a server", "such as http://127.0.0.1:8642")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidValue("url", "...", "must be an address that can be read") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise InvalidValue("url", "...", "must be http:// or https:// and a host", "such as http://127.0.0.1:8642")
    if parts.username or parts.password:
        raise InvalidValue("url", "...", "must hold no name or password", "give token=")
    quoted_host = f"[{host}]" if ":" in host else host
    address = f"{parts.scheme}://{quoted_host}" + (f":{port}" if port else "") + parts.path.rstrip("/")
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise InvalidValue(
            "url",
            address,
            "must be https: the token would be readable on the way",
            "use https, or pass insecure=True on a network that you trust",
        )
    return address


def checked_token(token: object) -> str:
    """An API token; it is not repeated in the message."""
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
        raise InvalidValue(
            "token",
            "...",
            "must be an API token",
            "make one on the page under People, or with farthing users token",
        )
    return token.strip()


def part(text: str) -> str:
    """A name as one part of a path.

    >>> part("sick days/2024")
    'sick%20days%2F2024'
    """
    return quote(text, safe="")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _json(body: Mapping[str, Any]) -> str:
    try:
        return json.dumps(_named(body), allow_nan=False, default=_plain)
    except ValueError:
        raise InvalidValue("body", "...", "must hold finite numbers", "leave out NaN and infinity") from None


def _named(value: Any) -> Any:
    """The same with texts as names: JSON has no other keys, and the server knows how categories are written."""
    if isinstance(value, Mapping):
        return {_name(key): _named(inner) for key, inner in value.items()}
    return [_named(inner) for inner in value] if isinstance(value, list | tuple) else value


def _name(key: Any) -> str:
    key = key.item() if hasattr(key, "item") else key  # of NumPy
    return str(key).lower() if isinstance(key, bool) else str(key)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as numbers, dates as texts."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise InvalidValue("value", value, "cannot be sent as JSON", "use texts, numbers, lists and dates")


def _query_parameters(query: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }


def _refusal_in(response: httpx.Response) -> Exception:
    try:
        return refusal_of(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        message = f"the server answered {response.status_code} without saying why; is there a farthing at this address?"
        return RequestRefused("internal", message, {"status": response.status_code})


WAIT = 20.0  # seconds that the server may hold a request for us
_LOOK = 0.3  # seconds between two looks at what is waiting or running


def awaited(
    connection: Connection,
    path: str,
    body: Mapping[str, Any],
    progress: Callable[[float], None] | None,
    again: str,
) -> dict[str, Any]:
    """What became of the job that `body` asks for; if the wait is interrupted, the message says to ask `again`."""
    try:
        view: dict[str, Any] = connection.post(path, {**body, "wait": WAIT})
        while view["state"] in ("queued", "running"):
            if progress is not None:
                progress(float(view["progress"]))
            time.sleep(_LOOK)
            view = connection.get(f"{path}/{part(view.get('request_id') or view['id'])}")
    except KeyboardInterrupt as stopped:
        stopped.add_note(f"the server continues, and what it charges stays spent; {again}")
        raise
    return view
