"""Traitor tracing as a program: questions that cannot all be answered without betraying somebody.

Every row is a key. A broadcast is a ciphertext that each key reads as 0 or 1, and the question is: which share of the
rows reads 1? A program that answers all such questions well is like a pirate decoder made from the rows. Broadcasts
that differ for one user only, and look alike to everybody without that user's key, find out whose keys it contains.
This is a toy: a broadcast has one bit for each user, where real schemes are short; the argument is the same.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from farthing.errors import InvalidValue
from farthing.privacy.events import checked_count


@dataclass(frozen=True)
class Key:
    """A row: whose it is, and a secret.

    Attributes:
        user: The number of the user, from 0.
        secret: 32 bytes that nobody else has.

    >>> Key(0, bytes(32)).read(Broadcast(b"", (1,))) in (0, 1)
    True
    """

    user: int
    secret: bytes

    def read(self, broadcast: Broadcast) -> int:
        """What this user reads in a broadcast.

        Args:
            broadcast: The broadcast.

        Returns:
            0 or 1.
        """
        return broadcast.sealed[self.user] ^ _pad(self.secret, broadcast.nonce)


@dataclass(frozen=True)
class Broadcast:
    """A question: a bit for every user, each hidden under a pad that only the user's key makes.

    Attributes:
        nonce: What makes the pads of this broadcast.
        sealed: A hidden bit for every user.

    >>> len(TracingScheme(3).broadcast(2).sealed)
    3
    """

    nonce: bytes
    sealed: tuple[int, ...]

    def share_of(self, rows: Sequence[Key]) -> float:
        """The true answer: the share of the rows that reads 1.

        Args:
            rows: The table.

        Returns:
            A number from 0 to 1.
        """
        return fmean(key.read(self) for key in rows)


Answerer = Callable[[Broadcast], float]
"""Anything that answers every broadcast: a mechanism that holds the rows, a summary, a model."""


@dataclass(frozen=True)
class Accusation:
    """What tracing found.

    Attributes:
        user: Whose key the answers depend on most.
        jump: By how much the mean answer grows when only this user reads 1 instead of 0.
        least_jump: At least one user's jump is this large: the rise from nobody to everybody, divided by the users.

    >>> scheme = TracingScheme(4)
    >>> accusation = trace(scheme, lambda question: question.share_of(scheme.keys[:1]), repeats=1)
    >>> accusation.user, accusation.jump, accusation.least_jump
    (0, 1.0, 0.25)
    """

    user: int
    jump: float
    least_jump: float


class TracingScheme:
    """Keys for users in an order, and broadcasts that the first few of them read as 1 and all others as 0.

    Args:
        users: How many users there are, at least 1.

    Raises:
        InvalidValue: If `users` is no such number.

    >>> scheme = TracingScheme(5)
    >>> [key.read(scheme.broadcast(2)) for key in scheme.keys]
    [1, 1, 0, 0, 0]
    """

    def __init__(self, users: int) -> None:
        if checked_count(users, "users") < 1:
            raise InvalidValue("users", users, "must be at least 1")
        self.keys = tuple(Key(user, secrets.token_bytes(32)) for user in range(users))

    def broadcast(self, ones: int) -> Broadcast:
        """A fresh broadcast that the first `ones` users read as 1, and the others as 0.

        Args:
            ones: How many users, from 0 to all.

        Returns:
            The broadcast. Without the key of user i, nobody can tell `broadcast(i)` from `broadcast(i + 1)`.

        Raises:
            InvalidValue: If there are fewer users than that.
        """
        if checked_count(ones, "ones") > len(self.keys):
            raise InvalidValue("ones", ones, f"must be at most the {len(self.keys)} users")
        nonce = secrets.token_bytes(16)
        return Broadcast(nonce, tuple(int(key.user < ones) ^ _pad(key.secret, nonce) for key in self.keys))


def trace(scheme: TracingScheme, answer: Answerer, repeats: int = 30) -> Accusation:
    """Find a user whose row must have gone into the answers.

    Args:
        scheme: The scheme of the keys.
        answer: Answers broadcasts; nothing else is known about it.
        repeats: How many fresh broadcasts of each kind are asked.

    Returns:
        The user of the largest jump.

    Raises:
        InvalidValue: If `repeats` is not a whole number above 0.

    Statement:
        Let p_i be the mean answer to `repeats` broadcasts that the first i of n users read as 1. If every answer is
        within a < 1/2 of the truth, p_n - p_0 >= 1 - 2 a, and some jump p_(i+1) - p_i is at least t = (1 - 2 a) / n.
        Somebody is accused, so some user with a chance of at least 1 / n; but from answers that were made without that
        user's key, with a chance of at most exp(-repeats t^2). An (epsilon, delta)-DP summary that is as accurate
        would need 1 / n <= e^epsilon exp(-repeats t^2) + delta: with enough repeats, a delta of 1 / n.
    Source: Dwork, Naor, Reingold, Rothblum & Vadhan, STOC 2009, on traitor tracing and private summaries, after Chor,
        Fiat & Naor, CRYPTO 1994; Hoeffding's inequality for the difference of two means.
    Assumes: pads (HMAC-SHA256) that look like random bits; answers fixed before the broadcasts are drawn.
    Direction: the accused is the user of the largest mean jump over `repeats` broadcasts; more of them err less.
    Checked by: tests/unit/auditing/test_traitor_tracing.py

    >>> scheme = TracingScheme(20)
    >>> traitors = [scheme.keys[7], scheme.keys[13]]
    >>> trace(scheme, lambda question: question.share_of(traitors), repeats=1).user in (7, 13)
    True
    """
    if checked_count(repeats, "repeats") < 1:
        raise InvalidValue("repeats", repeats, "must be at least 1")
    users = len(scheme.keys)
    means = [fmean(answer(scheme.broadcast(ones)) for _ in range(repeats)) for ones in range(users + 1)]
    jumps = [after - before for before, after in pairwise(means)]
    user = max(range(users), key=jumps.__getitem__)
    return Accusation(user, jumps[user], (means[-1] - means[0]) / users)


def _pad(secret: bytes, nonce: bytes) -> int:
    return hmac.new(secret, nonce, hashlib.sha256).digest()[0] & 1
