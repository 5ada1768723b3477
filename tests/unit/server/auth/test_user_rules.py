"""There is always a curator, nobody raises themselves, and whoever is locked out is out at once."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from farthing.errors import FarthingError, InvalidValue, RequestRefused
from farthing.server.auth.api_tokens import make_token, user_by_token
from farthing.server.auth.passwords import Passwords
from farthing.server.auth.user_rules import add_user, change_user, known_user, remove_user
from farthing.server.store import Store, login_rows, now, user_rows
from farthing.server.store.login_rows import Login

HOUR = 3600 * 10**9
GOOD = "four words are enough"


class People:
    """The rules on one store, said shortly."""

    def __init__(self, store: Store, passwords: Passwords) -> None:
        self.store, self.passwords = store, passwords
        for name, role in (("ada", "curator"), ("bob", "analyst"), ("eve", "auditor")):
            self.add(name, role)

    def add(self, name: str, role: str, **more: Any) -> None:
        add_user(self.store, self.passwords, name, role, by=more.pop("by", "a test"), **more)

    def change(self, name: str, by: str = "a test", **changes: Any) -> None:
        change_user(self.store, self.passwords, name, by=by, **changes)

    def remove(self, name: str, by: str = "a test") -> None:
        remove_user(self.store, name, by=by)

    def roles(self) -> dict[str, str]:
        with self.store.reading() as connection:
            return {user.name: user.role for user in user_rows.everybody(connection)}

    def let_in(self, name: str) -> str:
        """A session and a token; returns the token."""
        at = now()
        with self.store.begin() as connection:
            login_rows.open_login(connection, f"mark of {name}", Login(name, "password", at + HOUR), "", at)
            login_rows.write_link(connection, f"link of {name}", name, at + HOUR, at)
        return make_token(self.store, known_user(self.store, name), "", frozenset({"read"}), 1, by=name)[1]

    def is_in(self, name: str, token: str) -> tuple[bool, bool, bool]:
        with self.store.begin() as connection:
            session = login_rows.find_login(connection, f"mark of {name}", now()) is not None
            link = login_rows.use_link(connection, f"link of {name}", now()) is not None
        return session, link, user_by_token(self.store, token) is not None


@pytest.fixture
def people(store: Store, passwords: Passwords) -> People:
    return People(store, passwords)


@pytest.mark.parametrize(
    "change",
    [
        lambda people: people.change("ada", role="analyst"),
        lambda people: people.change("ada", role="auditor"),
        lambda people: people.change("ada", disabled=True),
        lambda people: people.remove("ada"),
    ],
    ids=["analyst", "auditor", "disabled", "removed"],
)
def test_the_last_curator_stays_until_there_is_another(people: People, change: Any) -> None:
    token = people.let_in("ada")
    with pytest.raises(RequestRefused, match="last curator") as refused:
        change(people)
    assert refused.value.code == "conflict" and people.roles()["ada"] == "curator"
    assert people.is_in("ada", token) == (True, True, True)  # the refusal undid all of it
    people.add("abe", "curator", password=GOOD)
    change(people)
    people.add("amy", "analyst")
    with pytest.raises(RequestRefused, match="last curator"):
        people.change("abe", disabled=True)


def test_a_disabled_curator_is_none(people: People) -> None:
    people.add("abe", "curator")
    people.change("abe", disabled=True)
    with pytest.raises(RequestRefused, match="last curator"):
        people.remove("ada")
    people.remove("abe")


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_nobody_changes_their_own_role(people: People, role: str) -> None:
    people.add("abe", "curator")
    for changes in ({"role": role}, {"disabled": True}):
        with pytest.raises(RequestRefused, match="ask another curator") as refused:
            people.change("abe", by="abe", **changes)
        assert refused.value.code == "not_allowed"
    with pytest.raises(RequestRefused, match="ask another curator"):
        people.remove("abe", by="abe")
    # Even if a route let them come so far:
    with pytest.raises(RequestRefused, match="ask another curator"):
        people.change("bob", by="bob", role="curator")
    assert people.roles() == {"abe": "curator", "ada": "curator", "bob": "analyst", "eve": "auditor"}


def test_whoever_is_disabled_is_out_at_once_and_their_tokens_stay_revoked(people: People) -> None:
    bobs, eves = people.let_in("bob"), people.let_in("eve")
    people.change("bob", disabled=True)
    assert people.is_in("bob", bobs) == (False, False, False)
    people.change("bob", disabled=False)
    assert people.is_in("bob", bobs) == (False, False, False)
    assert people.is_in("eve", eves) == (True, True, True)


def test_whoever_is_removed_is_out_and_the_name_stays_theirs(people: People) -> None:
    token = people.let_in("bob")
    people.change("bob", subject="bob@example.org")
    people.remove("bob")
    assert people.is_in("bob", token) == (False, False, False)
    assert "bob" not in people.roles()
    with people.store.reading() as connection:
        assert user_rows.find_by_subject(connection, "bob@example.org") is None
        assert user_rows.password_hash(connection, "bob") is None
    for change in (lambda: people.change("bob", role="curator"), lambda: people.remove("bob")):
        with pytest.raises(RequestRefused, match="no user 'bob'"):
            change()
    with pytest.raises(RequestRefused, match="there was a user 'bob' before"):
        people.add("bob", "analyst")
    people.add("bob", "auditor", returning=True)
    assert people.roles()["bob"] == "auditor"
    assert people.is_in("bob", token)[2] is False


def test_a_new_password_ends_sessions_and_leaves_tokens(people: People) -> None:
    token = people.let_in("bob")
    people.change("bob", password=GOOD)
    assert people.is_in("bob", token) == (False, False, True)


def test_a_lowered_role_lowers_the_tokens(people: People) -> None:
    user = known_user(people.store, "bob")
    _, word = make_token(people.store, user, "", frozenset({"read", "spend"}), 1, by="bob")
    people.change("bob", role="auditor")
    found = user_by_token(people.store, word)
    assert found is not None and found[1] == {"read"}


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("Ada", "ada"),
        ("ada lovelace", "ada.lovelace"),
        (".ada", "ada"),
        ("ada\n", "ada"),
        ("", "ada"),
        ("x" * 65, "x" * 64),
        ("\u0430da", "da"),  # a Cyrillic letter that looks like a Latin one
    ],
)
def test_a_name_that_could_be_mistaken_is_refused_with_one_that_could_not(
    people: People, name: str, way_out: str
) -> None:
    with pytest.raises(InvalidValue, match="lower-case letters") as refused:
        people.add(name, "analyst")
    assert repr(way_out) in refused.value.way_out
    people.add(way_out + ("2" if way_out == "ada" else ""), "analyst") if len(way_out) < 64 else None


def test_two_people_cannot_be_one_person_elsewhere(people: People) -> None:
    people.change("bob", subject="x@example.org")
    with pytest.raises(RequestRefused, match=r"^somebody else signs in under 'x@example\.org'") as refused:
        people.change("eve", subject="x@example.org")
    assert refused.value.code == "conflict"
    people.change("bob", subject=None)
    people.change("eve", subject="x@example.org")


@pytest.mark.parametrize("subject", ["", " x", "x\0y", "x" * 256, "\u00e4"])
def test_a_subject_that_cannot_be_read_aloud_is_refused(people: People, subject: str) -> None:
    with pytest.raises(InvalidValue):
        people.change("bob", subject=subject)


def test_every_change_is_logged_with_who_made_it_and_without_secrets(
    people: People, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    people.add("amy", "analyst", by="ada", password=GOOD)
    people.change("amy", by="ada", role="auditor", disabled=True, password=GOOD + " more", subject="amy@x.org")
    people.change("amy", by="ada", disabled=False)
    people.remove("amy", by="ada")
    assert [record.getMessage() for record in caplog.records if record.name == "farthing.server.people"] == [
        "user amy added as analyst, by ada",
        "user amy: role analyst became auditor, by ada",
        "user amy: disabled, by ada",
        "user amy: new password, by ada",
        "user amy: signs in elsewhere under another name, by ada",
        "user amy: enabled, by ada",
        "user amy removed, by ada",
    ]
    assert GOOD not in caplog.text and "argon2" not in caplog.text


def test_what_changes_nothing_is_not_logged(people: People, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    people.change("bob", role="analyst", disabled=False)
    with pytest.raises(FarthingError):
        people.change("ada", role="analyst")
    assert caplog.records == []
