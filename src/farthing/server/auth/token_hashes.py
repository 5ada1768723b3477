"""Random words that let somebody in, and the marks under which the store knows them.

A word has 256 random bits, so nobody can guess it from its mark and a fast hash without salt is enough; people's
passwords, which can be guessed, are hashed slowly (`passwords.py`). The store never holds a word itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

TOKEN_PREFIX = "ft_"  # so that scanners of repositories and logs can find a token that was left in them


def fresh_word(prefix: str = "") -> str:
    """A new secret word of 256 random bits.

    >>> len(fresh_word()), fresh_word("ft_")[:3], fresh_word() == fresh_word()
    (43, 'ft_', False)
    """
    return prefix + secrets.token_urlsafe(32)


def mark_of(word: str) -> str:
    """What the store keeps of a word.

    >>> mark_of("word")
    '98c1eb4ee93476743763878fcb96a25fbc9a175074d64004779ecb5242f645e6'
    """
    return hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()


def derived_word(word: str, purpose: str) -> str:
    """A second word that only a holder of the first can make, and that does not give the first away.

    >>> derived_word("word", "csrf") == derived_word("word", "csrf") != derived_word("word", "other")
    True
    """
    mac = hmac.digest(word.encode("utf-8", "surrogatepass"), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
