"""Passwords are kept as argon2id, and checked with the same work whether the user exists or not."""

from __future__ import annotations

import threading

import pytest
from argon2 import PasswordHasher, extract_parameters, profiles

from farthing.errors import RequestRefused
from farthing.server.auth.passwords import AT_A_TIME, WAITING, Passwords, checked_password

GOOD = "four words are enough"


@pytest.mark.slow
def test_what_is_used_outside_of_tests_is_the_profile_of_rfc_9106() -> None:
    kept = Passwords().hash_of(GOOD)
    assert extract_parameters(kept) == profiles.RFC_9106_LOW_MEMORY
    assert GOOD not in kept


def test_the_same_password_is_kept_differently_each_time(passwords: Passwords) -> None:
    assert passwords.hash_of(GOOD) != passwords.hash_of(GOOD)


def test_a_password_fits_however_the_keyboard_composes_it(passwords: Passwords) -> None:
    assert passwords.fits(passwords.hash_of("caf\u00e9 caf\u00e9 caf\u00e9"), "cafe\u0301 cafe\u0301 cafe\u0301")


@pytest.mark.parametrize("kept", ["", "not a hash", "$argon2id$v=19$m=8,t=1,p=1$xx$yy", None])
def test_nothing_fits_what_is_no_hash(passwords: Passwords, kept: str | None) -> None:
    assert not passwords.fits(kept, GOOD)


def test_a_lone_surrogate_is_a_wrong_password_and_not_a_crash(passwords: Passwords) -> None:
    assert not passwords.fits(passwords.hash_of(GOOD), "\ud800" * 12)


def test_an_unknown_user_costs_the_same_work_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: both check one hash of the same parameters."""
    passwords, checked = Passwords(cheap=True), []
    kept = passwords.hash_of(GOOD)
    passwords.warm()
    real = PasswordHasher.verify

    def counted(self: PasswordHasher, against: str, password: bytes) -> bool:
        checked.append(extract_parameters(against))
        return real(self, against, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    monkeypatch.setattr(PasswordHasher, "hash", lambda *_: pytest.fail("nothing is hashed at sign-in"))
    for against in (kept, None):
        assert not passwords.fits(against, "three words are")
    assert len(checked) == 2 and checked[0] == checked[1]


def test_the_decoy_is_nobodys_password() -> None:
    passwords = Passwords(cheap=True)
    passwords.warm()
    assert not passwords.fits(None, "")


def test_only_a_few_are_checked_at_a_time_and_a_flood_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    passwords = Passwords(cheap=True)
    kept = passwords.hash_of(GOOD)
    inside, most, refused = 0, 0, 0
    lock, go_on = threading.Lock(), threading.Event()

    def look() -> None:
        if refused == 4 and inside >= AT_A_TIME:  # all others wait
            go_on.set()

    def slow(*_: object) -> bool:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            look()
        go_on.wait(600)
        with lock:
            inside -= 1
        return True

    def checked() -> None:
        nonlocal refused
        try:
            assert passwords.fits(kept, GOOD)
        except RequestRefused as refusal:
            assert refusal.code == "rate_limited"
            with lock:
                refused += 1
                look()

    monkeypatch.setattr(PasswordHasher, "verify", slow)
    threads = [threading.Thread(target=checked) for _ in range(AT_A_TIME + WAITING + 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert (most, refused) == (AT_A_TIME, 4)
    assert passwords.fits(kept, GOOD)  # there is room again


@pytest.mark.parametrize(
    ("weak", "rule"),
    [
        ("", "has 0 characters"),
        ("x", "has 1 character;"),
        ("elevenchars", "has 11 characters"),
        ("x" * 201, "has 201 characters"),
        ("aaaaaaaaaaaa", "is easily guessed"),
        ("abcabcabcabc", "is easily guessed"),
        ("lovelace2026 lovelace", "is easily guessed"),
    ],
)
def test_a_weak_password_is_refused_without_being_repeated(weak: str, rule: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        checked_password(weak, "lovelace")
    assert rule in str(refused.value) and refused.value.code == "invalid_value"
    assert len(weak) < 3 or weak not in f"{refused.value} {refused.value.fields}"


@pytest.mark.parametrize(
    "good", [GOOD, "            x y z", "correcthorse", "\u5bc6\u7801" * 3 + "abcdef", "x" * 196 + "abcd"]
)
def test_length_is_the_only_rule_for_everything_else(good: str) -> None:
    assert checked_password(good, "ada") == good
