"""What exists on the server by now: ids and names that were given back, so that cases reach what lies behind them."""

from __future__ import annotations

import secrets
from collections import defaultdict
from typing import Any

import requests

from farthing.server.auth.api_tokens import SCOPES_OF_ROLE, new_secret, secret_hash
from farthing.server.store import draft_rows, now
from system.server.fuzzing.people import HOUR, People
from system.server.fuzzing.tables import DECLARED

_MOST = 40  # of each kind and owner; the oldest are forgotten


class Known:
    """Ids by kind and owner; "" owns what belongs to nobody."""

    def __init__(self, people: People) -> None:
        self.people = people
        self._ids: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.drafts: dict[str, tuple[dict[str, Any], int]] = {}  # a plan's id -> its draft and version
        self.asked: dict[str, dict[str, Any]] = {}  # a session's id -> what it was opened with
        self.receipts: list[Any] = [None]
        self.done: set[tuple[str, str]] = set()  # operations that somebody has got through
        for name in DECLARED:
            self.note("dataset", "", name)
        self.dispensable("person", "")

    def note(self, kind: str, owner: str, name: str) -> None:
        """Remember an id."""
        ids = self._ids[kind, owner]
        ids.append(name)
        del ids[:-_MOST]

    def all(self, kind: str, owner: str = "") -> list[str]:
        """The ids of a kind that somebody has."""
        return self._ids[kind, owner]

    def dispensable(self, kind: str, owner: str) -> str:
        """The id of something that may go, made for that as long as there are few: what others look at stays."""
        known = self._ids[kind, owner]
        if len(known) >= _MOST:
            return known[0]
        if kind == "person":
            name = self.fresh()
            self.people.add(name, "analyst")
        elif kind == "token":
            scopes = SCOPES_OF_ROLE.get(owner, frozenset({"read"}))
            name = self.people.token_row(owner, scopes, secret_hash(new_secret()), now() + HOUR)
        elif kind == "request":
            name = self._requested(len(known))
        elif kind == "study":
            name = draft_rows.make_study(self.people.store, owner, "people", "to be forgotten").id
        else:
            words = {"dataset": "people", "statistics": [{"kind": "count"}]}
            name = draft_rows.make_draft(self.people.store, owner, "people", None, words).id
        if kind != "token":
            self.note(kind, owner, name)
        return name

    def _requested(self, waiting: int) -> str:
        """The number of a request of the analyst that waits for a curator."""
        count = {"kind": "count", "by": "sex"}
        body = {
            "draft": {"dataset": "people", "statistics": [count], "epsilon": (1 + secrets.randbelow(10**6)) / 10**8},
            "purpose": f"the {waiting}.",
        }
        header = self.people.header("analyst token", "POST", "/api/v1/requests")
        made = requests.post(f"{self.people.here}/api/v1/requests", json=body, headers=header)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def forget(self, kind: str, owner: str, name: str) -> None:
        """What was removed is known no more."""
        if name in self._ids[kind, owner]:
            self._ids[kind, owner].remove(name)

    def learn(self, call: tuple[str, str], user: str, path: dict[str, Any], sent: Any, told: Any) -> None:
        """Take from a success what can be used later."""
        self.done.add(call)
        method, address = call[0], call[1].removeprefix("/api/v1")
        body = told if isinstance(told, dict) else {}
        if (method, address) == ("POST", "/plans"):
            self.note("plan", user, body["id"])
            self.drafts[body["id"]] = (sent, body["version"])
        elif (method, address) == ("PUT", "/plans/{id}"):
            self.drafts[body["id"]] = ({**sent}, body["version"])
        elif (method, address) == ("POST", "/studies"):
            self.note(f"study of {body['dataset']}", user, body["id"])
            self.note("study", user, body["id"])
        elif (method, address) == ("POST", "/releases"):
            self.note("release", user, body["request_id"])
            if body.get("receipt"):
                self.receipts = [*self.receipts[-20:], body["receipt"]]
        elif (method, address) == ("POST", "/sessions"):
            self.note("session", user, body["id"])
            self.asked[body["id"]] = sent
        elif (method, address) == ("POST", "/series"):
            self.note("series", user, body["id"])
        elif (method, address) == ("POST", "/synthetic-tables"):
            self.note("synthetic table", user, body["id"])
        elif (method, address) == ("POST", "/requests"):
            for owner in (user, ""):
                self.note("request", owner, str(body["id"]))
        elif address.endswith(("/approve", "/decline", "/withdraw", "/change")):
            for owner in (user, body["analyst"], ""):
                self.forget("request", owner, str(body["id"]))
        elif (method, address) == ("POST", "/tokens"):
            self.note("token", user, body["id"])
            self.people.canaries.secret("token that was made", body["token"])
        elif (method, address) == ("POST", "/datasets"):
            if body["account"] not in ("people", "visits"):  # whose budgets other cases need
                self.note("own dataset", "", body["name"])
        elif (method, address) == ("POST", "/users"):
            self.note("person", "", body["name"])
            if sent.get("password"):
                self.people.passwords[body["name"]] = sent["password"]
        elif (method, address) == ("POST", "/password"):
            self.people.passwords[user] = sent["new"]
        elif method == "DELETE":
            kind = address.split("/")[1].removesuffix("s").replace("user", "person").replace("studie", "study")
            for value in path.values():
                for owner in (user, ""):
                    self.forget(kind, owner, str(value))

    def fresh(self) -> str:
        """A name that nobody has used."""
        return f"n{secrets.token_hex(5)}"
