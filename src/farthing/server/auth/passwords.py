"""People's passwords: what is accepted as one, and how it is kept (argon2id, RFC 9106).

Checking takes the same time whether the user exists or not: where there is nothing to check against, a decoy is
checked. Each check takes 64 MiB, so only a few run at a time and a few more wait; the rest are sent away, so that a
flood of sign-ins does not hold up everybody else.
"""

from __future__ import annotations

import secrets
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from argon2 import PasswordHasher, profiles
from argon2.exceptions import Argon2Error, InvalidHashError

from farthing.errors import RequestRefused

SHORTEST, LONGEST = 12, 200
AT_A_TIME, WAITING = 4, 12


class Passwords:
    """Hashes and checks passwords; `cheap` is for tests only.

    >>> passwords = Passwords(cheap=True)
    >>> hashed = passwords.hash_of("four words are enough")
    >>> passwords.fits(hashed, "four words are enough"), passwords.fits(hashed, "three words are"), hashed[:9]
    (True, False, '$argon2id')
    >>> passwords.fits(None, "four words are enough")
    False
    """

    def __init__(self, *, cheap: bool = False) -> None:
        parameters = profiles.CHEAPEST if cheap else profiles.RFC_9106_LOW_MEMORY
        self._hasher = PasswordHasher.from_parameters(parameters)
        self._turn = threading.BoundedSemaphore(AT_A_TIME)
        self._room = threading.BoundedSemaphore(AT_A_TIME + WAITING)
        self._decoy: str | None = None

    def hash_of(self, password: str) -> str:
        """What the store keeps of a password."""
        with self._taking_turns():
            return self._hasher.hash(_bytes_of(password))

    def fits(self, password_hash: str | None, password: str) -> bool:
        """Whether this is the password; with nothing password_hash, False after the same work."""
        against = password_hash or self._nobodys()
        with self._taking_turns():
            try:
                return self._hasher.verify(against, _bytes_of(password)) and password_hash is not None
            except (Argon2Error, InvalidHashError):
                return False

    def is_outdated(self, password_hash: str) -> bool:
        """Whether it was hashed with other parameters than are used today.

        >>> Passwords(cheap=False).is_outdated(Passwords(cheap=True).hash_of("four words are enough"))
        True
        """
        return self._hasher.check_needs_rehash(password_hash)

    def warm(self) -> None:
        """Make the decoy now, so that the first unknown user does not wait longer than a known one."""
        self._nobodys()

    @contextmanager
    def _taking_turns(self) -> Iterator[None]:
        if not self._room.acquire(blocking=False):
            raise RequestRefused(
                "rate_limited", "too many people are signing in at the moment; try again.", {"retry_after": 2}
            )
        try:
            with self._turn:
                yield
        finally:
            self._room.release()

    def _nobodys(self) -> str:
        if self._decoy is None:
            self._decoy = self.hash_of(secrets.token_urlsafe(32))
        return self._decoy


def checked_password(password: str, user: str) -> str:
    """The password, if it is long enough and not the user's name; there are no rules about its characters.

    >>> checked_password("four words are enough", "ada")
    'four words are enough'
    >>> checked_password("tiny", "ada")
    Traceback (most recent call last):
        ...
    farthing.errors.RequestRefused: password: has 4 characters; use 12 to 200, for example four words.
    """
    length = len(_normal(password))
    if not SHORTEST <= length <= LONGEST:
        characters = "1 character" if length == 1 else f"{length} characters"
        raise _weak(f"has {characters}", f"use {SHORTEST} to {LONGEST}, for example four words")
    if len(set(password)) < 4 or password.casefold().replace(user.casefold(), "").strip(" 0123456789") == "":
        raise _weak("is easily guessed", "use four unrelated words")
    return password


def _weak(rule: str, way_out: str) -> RequestRefused:
    """The refusal; the password is neither in the message nor among the fields."""
    fields = {"name": "password", "rule": rule, "way_out": way_out}
    return RequestRefused("invalid_value", f"password: {rule}; {way_out}.", fields)


def _normal(password: str) -> str:
    """The same characters however a keyboard composes them; NIST SP 800-63B, section 5.1.1.2."""
    return unicodedata.normalize("NFKC", password)


def _bytes_of(password: str) -> bytes:
    return _normal(password).encode("utf-8", "surrogatepass")
