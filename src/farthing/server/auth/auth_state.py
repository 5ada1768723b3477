"""What signing in needs of the application's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from farthing.ledger import Ledger
    from farthing.server.auth.oidc_provider import Provider
    from farthing.server.auth.passwords import Passwords
    from farthing.server.settings import Settings
    from farthing.server.store import Store


class AuthState(Protocol):
    """The part of the application's state that this package sees."""

    @property
    def settings(self) -> Settings:
        """What the server was started with."""

    @property
    def store(self) -> Store:
        """Where people, tokens and login sessions are kept."""

    @property
    def root(self) -> Ledger:
        """The ledger: names that have a grant in it are not given away."""

    @property
    def passwords(self) -> Passwords:
        """What hashes and checks passwords."""

    @property
    def provider(self) -> Provider | None:
        """Where people may sign in elsewhere, if that is set up."""
