"""`farthing users` prepares a server before it starts, and never shows a secret but the token it makes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from farthing.cli.commands import main
from farthing.server.auth import passwords
from farthing.server.auth.api_tokens import user_by_token
from farthing.server.store import Store

GOOD = "four words are enough"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Argon2 with its least parameters."""
    monkeypatch.setattr(passwords.profiles, "RFC_9106_LOW_MEMORY", passwords.profiles.CHEAPEST)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


def run(place: Path, *words: str, typed: str = "") -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["users", *words, "--ledger", str(place)], input=typed)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert GOOD not in result.output
    return result.exit_code, result.stdout, result.stderr


def add(place: Path, name: str, role: str) -> None:
    assert run(place, "add", name, "--role", role, "--password-stdin", typed=GOOD + "\n")[0] == 0


def listed(place: Path) -> dict[str, dict[str, object]]:
    return {user["name"]: user for user in json.loads(run(place, "list", "--json")[1])["users"]}


def test_users_can_be_there_before_the_server_and_the_ledger(place: Path) -> None:
    code, out, _ = run(place, "add", "ada", "--role", "curator", typed=f"{GOOD}\n{GOOD}\n")
    assert (code, out) == (0, "ada added as curator\n")
    assert run(place, "list")[1] == "ada  curator  password\n"
    assert not place.exists()
    store = place.with_name("study.server.db")
    assert stat.S_IMODE(os.stat(store).st_mode) == 0o600
    assert GOOD.encode() not in store.read_bytes()


def test_two_passwords_that_differ_are_asked_for_again(place: Path) -> None:
    typed = f"{GOOD}\nfour other words here\n{GOOD}\n{GOOD}\n"
    code, _, err = run(place, "add", "ada", "--role", "curator", typed=typed)
    assert code == 0 and "do not match" in err


def test_a_ledger_without_users_is_not_made_by_looking_at_it(place: Path) -> None:
    for words in (("list",), ("role", "ada", "analyst"), ("token", "ada")):
        code, _, err = run(place, *words)
        assert code == 2 and "has no users yet; check --ledger" in err
    assert list(place.parent.iterdir()) == []


@pytest.mark.slow
def test_roles_change_and_the_last_curator_stays(place: Path) -> None:
    add(place, "ada", "curator")
    add(place, "bob", "analyst")
    for words in (("role", "ada", "auditor"), ("disable", "ada")):
        code, _, err = run(place, *words)
        assert code == 2 and "'ada' is the last curator who can sign in" in err
    assert run(place, "role", "bob", "curator")[:2] == (0, "bob is curator now\n")
    assert run(place, "disable", "ada")[0] == 0
    assert run(place, "list")[1] == "ada  curator  disabled, password\nbob  curator  password\n"
    assert run(place, "disable", "bob")[0] == 2  # a disabled curator is none
    assert run(place, "enable", "ada")[0] == 0 and not listed(place)["ada"]["disabled"]


def test_a_token_is_printed_alone_and_works_until_its_owner_is_disabled(place: Path) -> None:
    add(place, "ada", "curator")
    add(place, "bob", "analyst")
    code, out, err = run(place, "token", "bob", "--scopes", "read,plan", "--label", "nightly")
    word = out.strip()
    assert code == 0 and out == f"{word}\n" and word.startswith("ft_") and word not in err
    store = Store.beside(place)
    found = user_by_token(store, word)
    assert found is not None and (found[0].name, found[1]) == ("bob", {"read", "plan"})
    assert run(place, "disable", "bob")[0] == 0
    assert user_by_token(store, word) is None
    assert run(place, "token", "bob")[0] == 2
    assert run(place, "enable", "bob")[0] == 0
    assert user_by_token(store, word) is None  # revoked for good
    store.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "Bob", "--role", "analyst"), "name='Bob': must be 1 to 64 lower-case letters"),
        (("add", "ada", "--role", "analyst"), "there is a user 'ada' already"),
        (("add", "bob", "--role", "boss"), "'boss' is not one of 'curator', 'analyst', 'auditor'"),
        (("role", "nobody", "analyst"), "there is no user 'nobody'"),
        (("password", "nobody"), "there is no user 'nobody'"),
        (("token", "nobody"), "farthing serve prints adds its user only when somebody opens it"),
        (("token", "ada", "--scopes", "rule"), "scopes='rule': must be some of read, plan, spend, manage"),
        (("token", "ada", "--scopes", ","), "must be some of read"),
        (("token", "ada", "--days", "366"), "days=366: must be from 1 to 365"),
        (("token", "ada", "--days", "0"), "days=0: must be from 1 to 365"),
        (("token", "ada", "--days", "-1"), "days='-1'"),
        (("token", "ada", "--label", "a\nb"), "label='a\\nb': must be at most 100 printable"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_the_rule(place: Path, words: tuple[str, ...], said: str) -> None:
    add(place, "ada", "curator")
    typed = f"{GOOD}\n{GOOD}\n"
    code, _, err = run(place, *words, typed=typed)
    assert code == 2 and said in err
    assert set(listed(place)) == {"ada"}


@pytest.mark.parametrize("weak", ["", "short", "ada ada ada ada 1", "aaaaaaaaaaaaaaa", "x" * 201])
def test_a_weak_password_is_refused_and_not_repeated(place: Path, weak: str) -> None:
    code, out, err = run(place, "add", "ada", "--role", "curator", "--password-stdin", typed=weak + "\n")
    assert code == 2 and "password: " in err
    assert not weak or weak not in out + err


def test_whoever_signs_in_elsewhere_needs_no_password(place: Path) -> None:
    code, _, _ = run(place, "add", "eve", "--role", "auditor", "--subject", "eve@example.org")
    assert code == 0
    assert run(place, "list")[1] == "eve  auditor  single sign-on as eve@example.org\n"
    assert run(place, "add", "eva", "--role", "auditor", "--subject", "eve@example.org")[0] == 2
