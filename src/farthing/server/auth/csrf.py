"""The word that a page must repeat with every change, so that another site cannot use the cookie.

It is derived from the session's own word: the page learns it from `/api/v1/me`, every instance can check it without
looking anything up, and it ends with the session.
"""

from __future__ import annotations

import hmac

from farthing.server.auth.secret_words import derived_word

HEADER = "X-CSRF-Token"


def csrf_of(session: str) -> str:
    """The word that belongs to a session's cookie.

    >>> csrf_of("a session") == csrf_of("a session") != csrf_of("another")
    True
    """
    return derived_word(session, "farthing csrf")


def csrf_fits(session: str, word: str | None) -> bool:
    """Whether `word` is the one that belongs to the session; the time it takes says nothing.

    >>> csrf_fits("a session", csrf_of("a session")), csrf_fits("a session", ""), csrf_fits("a session", None)
    (True, False, False)
    """
    return hmac.compare_digest(csrf_of(session).encode(), (word or "").encode("utf-8", "surrogatepass"))
