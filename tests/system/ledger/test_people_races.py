"""The people of a server on both databases: what two instances do at the same moment happens once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from farthing.errors import RequestRefused
from farthing.server.auth.api_tokens import make_token, user_by_token
from farthing.server.auth.password_sign_in import PER_USER, counted_attempt
from farthing.server.auth.passwords import Passwords
from farthing.server.auth.user_rules import add_user, change_user, known_user
from farthing.server.store import Store, login_rows, now, user_rows
from farthing.server.store.login_rows import Flow, Login
from system.ledger.conftest import NewPlace
from system.ledger.nursery import PATIENCE

T = TypeVar("T")
HOUR = 3600 * 10**9
PASSWORDS = Passwords(cheap=True)


@pytest.fixture
def instances(new_place: NewPlace) -> Iterator[list[Store]]:
    """Two servers' stores beside one ledger, made at the same moment."""
    url = new_place().url
    made = at_once([lambda: Store.beside(url), lambda: Store.beside(url)])
    assert all(isinstance(store, Store) for store in made), made
    yield made
    for store in made:
        store.close()


def at_once(calls: list[Callable[[], T]]) -> list[Any]:
    """What each call gives, or the refusal it ended with."""
    start, ended = threading.Barrier(len(calls)), [None] * len(calls)

    def one(number: int, call: Callable[[], Any]) -> None:
        start.wait(PATIENCE)
        try:
            ended[number] = call()
        except Exception as problem:
            ended[number] = problem  # type: ignore[call-overload]

    threads = [threading.Thread(target=one, args=each) for each in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return ended


@pytest.mark.slow
def test_two_curators_who_demote_each_other_leave_one(instances: list[Store]) -> None:
    here, there = instances
    for name in ("ada", "abe"):
        add_user(here, PASSWORDS, name, "curator", by="a test")
    for _ in range(5):
        ended = at_once(
            [
                lambda: change_user(here, PASSWORDS, "ada", by="abe", role="analyst"),
                lambda: change_user(there, PASSWORDS, "abe", by="ada", disabled=True),
            ]
        )
        refused = [end for end in ended if isinstance(end, RequestRefused)]
        assert len(refused) == 1 and "last curator" in str(refused[0]), ended
        with here.reading() as connection:
            assert len(user_rows.active_curators(connection)) == 1
        change_user(here, PASSWORDS, "ada", by="a test", role="curator")
        change_user(here, PASSWORDS, "abe", by="a test", disabled=False)


def test_of_two_who_take_a_name_one_gets_it(instances: list[Store]) -> None:
    ended = at_once([lambda s=s: add_user(s, PASSWORDS, "bob", "analyst", by="a test") for s in instances])
    refused = [end for end in ended if isinstance(end, RequestRefused)]
    assert len(refused) == 1 and refused[0].code == "conflict"


def test_a_link_and_a_sign_in_elsewhere_are_used_once(instances: list[Store]) -> None:
    at = now()

    def use_link(store: Store) -> str | None:
        with store.begin() as connection:
            return login_rows.use_link(connection, "link", now())

    def take_flow(store: Store) -> Flow | None:
        with store.begin() as connection:
            return login_rows.take_flow(connection, "flow", now())

    with instances[0].begin() as connection:
        login_rows.write_link(connection, "link", "ada", at + HOUR, at)
        login_rows.write_flow(connection, "flow", Flow("nonce", "verifier", at + HOUR), at)
    for use in (use_link, take_flow):
        ended = at_once([lambda s=s, use=use: use(s) for s in instances * 4])
        assert sum(end is not None for end in ended) == 1, ended


@pytest.mark.slow
def test_attempts_through_two_instances_count_together(instances: list[Store]) -> None:
    calls = [lambda n=n: counted_attempt(instances[n % 2], "bob", f"192.0.2.{n}") for n in range(3 * PER_USER)]
    ended = at_once(calls)
    passed = [end for end in ended if not isinstance(end, RequestRefused)]
    assert len(passed) <= PER_USER and not any(isinstance(end, Exception) for end in passed), ended
    with instances[0].reading() as connection:
        assert len(login_rows.attempts_since(connection, "user:bob", 0)) == len(passed)
    for n in range(len(passed), PER_USER):  # those who come one by one get the rest, and no more
        counted_attempt(instances[n % 2], "bob", f"192.0.2.{n}")
    with pytest.raises(RequestRefused):
        counted_attempt(instances[1], "bob", "192.0.2.200")


def test_whoever_is_disabled_through_one_instance_is_out_of_the_other_at_once(instances: list[Store]) -> None:
    here, there = instances
    add_user(here, PASSWORDS, "ada", "curator", by="a test")
    add_user(
        here,
        PASSWORDS,
        "bob",
        "analyst",
        by="a test",
        subject="bob@example.org",
        password="four words are enough",
    )
    _, word = make_token(there, known_user(there, "bob"), "", frozenset({"read"}), 1, by="bob")
    with there.begin() as connection:
        login_rows.open_login(connection, "mark", Login("bob", "password", now() + HOUR), "", now())
        assert user_rows.find_by_subject(connection, "BOB@example.org", any_case=True) is not None
    assert user_by_token(there, word) is not None
    change_user(here, PASSWORDS, "bob", by="ada", disabled=True)
    assert user_by_token(there, word) is None
    with there.reading() as connection:
        assert login_rows.find_login(connection, "mark", now()) is None
    with pytest.raises(RequestRefused, match="signs in under"):
        add_user(there, PASSWORDS, "rob", "analyst", by="a test", subject="bob@example.org")
