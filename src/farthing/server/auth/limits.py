"""How often somebody may try to sign in: 5 times a minute under one name, 20 times from one address.

Attempts are rows, written before the password is looked at, so that many at once through several instances cannot
all slip under the limit. A success takes back its own attempt and nobody else's.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from farthing.errors import RequestRefused
from farthing.server.store import Store, attempts, now

PER_USER, PER_ADDRESS = 5, 20
WINDOW = 60 * 10**9  # nanoseconds


@dataclass(frozen=True)
class Attempt:
    """One attempt that was counted."""

    keys: list[str]
    at: int

    def take_back(self, store: Store) -> None:
        """It was a success: it counts no more."""
        with store.begin() as connection:
            attempts.take_back(connection, self.keys, self.at)


def counted_attempt(store: Store, user: str, address: str) -> Attempt:
    """Count an attempt, or refuse it and say how long to wait; a refused one is not counted."""
    limits = {f"user:{user}": PER_USER, f"address:{neighbourhood(address)}": PER_ADDRESS}
    attempt = Attempt(list(limits), now())
    with store.begin() as connection:
        attempts.forget_before(connection, attempt.at - WINDOW)
        attempts.write(connection, attempt.keys, attempt.at)
    # Counted in a second transaction: whoever else has written by now has committed, and is seen.
    wait = 0
    with store.begin() as connection:
        for key, limit in limits.items():
            others = attempts.times_since(connection, key, attempt.at - WINDOW)
            if attempt.at in others:  # not if an instance whose clock is far ahead has swept it away
                others.remove(attempt.at)
            if len(others) >= limit:
                wait = max(wait, others[-limit] + WINDOW - attempt.at)
        if wait:
            attempts.take_back(connection, attempt.keys, attempt.at)
    if wait:
        seconds = max(1, -(-wait // 10**9))
        raise RequestRefused(
            "rate_limited",
            f"too many attempts to sign in; wait {seconds} seconds and try again.",
            {"retry_after": seconds},
        )
    return attempt


def neighbourhood(address: str) -> str:
    """What counts as one address: with IPv6, whoever has one has 2**64 of them.

    >>> neighbourhood("192.0.2.7"), neighbourhood("2001:db8:1:2:3::4"), neighbourhood("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::', '192.0.2.7')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False).network_address)
