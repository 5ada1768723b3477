"""Ways of coming in: every role with a token and with a browser's session, and those who must stay outside."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from farthing.server.auth.api_tokens import ROLES, SCOPES_OF_ROLE, new_secret, secret_hash
from farthing.server.auth.login_sessions import COOKIE, csrf_of
from farthing.server.auth.passwords import Passwords
from farthing.server.auth.permissions import SAFE, rule_of
from farthing.server.auth.user_rules import add_user
from farthing.server.store import Store, now
from farthing.server.store.store_tables import attempts, links, logins, tokens
from system.server.fuzzing.canaries import Canaries

HOUR = 3600 * 10**9
LET_IN, UNKNOWN, REFUSED = 0, 401, 403
# What ends the session that it comes with, or others of the same user: each takes a session, and a user, of its own.
ENDS_SESSIONS = {
    ("POST", "/api/v1/logout"),
    ("POST", "/api/v1/password"),
    ("POST", "/api/v1/login"),
    ("GET", "/login"),
    ("GET", "/oidc/callback"),
}


@dataclass(frozen=True)
class Way:
    """One way of coming in."""

    name: str
    role: str | None  # None: nobody
    scopes: frozenset[str] = frozenset()
    session: bool = False
    word: bool = True  # whether the page's word comes with a session

    def ends(self, method: str, path: str) -> int:
        """How the table of permissions says that a call must end: let in, or refused with a status."""
        rule = rule_of(method, path)
        if rule is None:
            return LET_IN
        if self.role is None:
            return UNKNOWN
        if self.role not in rule.roles or (rule.session_only and not self.session):
            return REFUSED
        if rule.scope not in self.scopes:
            return REFUSED
        return REFUSED if self.session and not self.word and method not in SAFE else LET_IN


WAYS = {
    way.name: way
    for way in (
        *(Way(f"{role} token", role, SCOPES_OF_ROLE[role]) for role in ROLES),
        *(Way(f"{role} session", role, SCOPES_OF_ROLE[role], session=True) for role in ROLES),
        Way("reading token", "curator", frozenset({"read"})),
        Way("session without its word", "curator", SCOPES_OF_ROLE["curator"], session=True, word=False),
        Way("expired token", None),
        Way("nobody", None),
    )
}


class People:
    """The accounts of a run, their words, and headers for every way of coming in."""

    def __init__(self, store: Store, canaries: Canaries) -> None:
        self.store, self.canaries, self.here = store, canaries, ""
        self.archive, self.archive_token = "", ""  # of a Dataverse that the server may deposit in
        self.passwords: dict[str, str] = {}
        for role in ROLES:
            for name in (role, f"{role}.mover"):
                self.add(name, role)
        self.add("expendable", "analyst")
        self._words: dict[str, str] = {}
        for way in WAYS.values():
            if way.session:
                self._words[way.name] = self.session(str(way.role))
            elif way.role is not None:
                self._words[way.name] = self.token(way.role, way.scopes)
        self._words["expired token"] = self.token("curator", SCOPES_OF_ROLE["curator"], now() - 1)

    def add(self, name: str, role: str) -> None:
        """Give somebody an account with a password."""
        self.passwords[name] = self.canaries.secret("password", secrets.token_urlsafe(18))
        add_user(self.store, Passwords(cheap=True), name, role, by="a test", password=self.passwords[name])

    def user(self, way: Way, method: str, path: str) -> str:
        """Whose account a call uses."""
        return f"{way.role}.mover" if way.session and (method, path) in ENDS_SESSIONS else str(way.role)

    def header(self, name: str, method: str = "GET", path: str = "") -> dict[str, str]:
        """The headers of a way of coming in."""
        way = WAYS[name]
        if name == "nobody":
            return {}
        if not way.session:
            return {"Authorization": f"Bearer {self._words[name]}"}
        user = self.user(way, method, path)
        session = self.session(user) if user.endswith(".mover") else self._words[name]
        found = {"Cookie": f"{COOKIE}={session}", "Origin": self.here}
        return found | ({"X-CSRF-Token": csrf_of(session)} if way.word else {})

    def token(self, user: str, scopes: frozenset[str], expires: int | None = None) -> str:
        """A token of somebody; its id is known as well where it may be revoked."""
        word = self.canaries.secret(f"token of {user}", new_secret("ft_"))
        self.token_row(user, scopes, secret_hash(word), expires or now() + 24 * HOUR)
        return word

    def token_row(self, user: str, scopes: frozenset[str], mark: str, expires: int) -> str:
        """Write a token down; returns its id."""
        made = secrets.token_hex(8)
        with self.store.begin() as connection:
            connection.execute(
                tokens.insert().values(
                    id=made, user=user, label="a test", hash=mark, scopes=" ".join(sorted(scopes)),
                    expires=expires, created=now(), revoked=None,
                )
            )  # fmt: skip
        return made

    def session(self, user: str) -> str:
        """The word of a new web session."""
        word = self.canaries.secret(f"session of {user}", new_secret())
        with self.store.begin() as connection:
            connection.execute(
                logins.insert().values(
                    hash=secret_hash(word), user=user, csrf_hash=secret_hash(csrf_of(word)), expires=now() + 24 * HOUR,
                    via="session",
                )
            )  # fmt: skip
        return word

    def link(self, user: str) -> str:
        """The word of a one-time link."""
        word = self.canaries.secret("one-time link", new_secret())
        with self.store.begin() as connection:
            connection.execute(
                links.insert().values(hash=secret_hash(word), user=user, expires=now() + HOUR, used=None)
            )
        return word

    def forget_attempts(self) -> None:
        """Let people sign in again, whatever was tried before."""
        with self.store.begin() as connection:
            connection.execute(attempts.delete())
