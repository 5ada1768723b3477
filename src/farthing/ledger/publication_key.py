"""The key that signs what is published from a ledger, so that readers can check it without the ledger.

Receipts and entries are signed with the ledger's secret key, which also checks them. Publications are signed with
Ed25519, so that anybody who has the public half can check them. The secret half is derived from the ledger's key and
identity: there is no second secret to keep, to lose or to steal, a copy of the ledger's key is a copy of both, and the
same release always has the same signature. The public half reveals nothing about the ledger's key, because HMAC-SHA256
is one-way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from farthing.errors import MissingExtra

LENGTH = 32


def ed25519() -> Any:
    """The module that signs, or a refusal that names the extra to install."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519 as module
    except ImportError:
        raise MissingExtra("signatures", "cryptography", "publish") from None
    return module


@dataclass(frozen=True)
class PublicationKey:
    """Signs publications of one ledger. Made by `Ledger.publication_key`; the secret never shows in its repr.

    >>> key = PublicationKey(bytes(32))
    >>> key.public[:8], is_signature(bytes.fromhex(key.public), key.signature(b"a"), b"a")
    ('3b6a27bc', True)
    """

    _seed: bytes = field(repr=False)

    @property
    def public(self) -> str:
        """The public half, as 64 hexadecimal digits: to be shown where readers trust you."""
        own = ed25519().Ed25519PrivateKey.from_private_bytes(self._seed)
        public: bytes = own.public_key().public_bytes_raw()
        return public.hex()

    def signature(self, message: bytes) -> bytes:
        """The signature of a message: 64 bytes, the same each time.

        Args:
            message: What is signed.

        Returns:
            The signature.

        Raises:
            MissingExtra: If the extra `publish` is not installed.
        """
        signed: bytes = ed25519().Ed25519PrivateKey.from_private_bytes(self._seed).sign(message)
        return signed


def is_signature(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a signature is that of a message under a public key; anything malformed is not.

    >>> is_signature(bytes(32), bytes(64), b"a")
    False
    """
    from cryptography.exceptions import InvalidSignature

    try:
        ed25519().Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
