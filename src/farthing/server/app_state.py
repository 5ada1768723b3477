"""What one running server holds open. All of it can be opened again by another: nothing is remembered here alone."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING

from farthing.ledger import Ledger, open_ledger
from farthing.server.http.request_limits import Turns
from farthing.server.services.accountant_process import Reckoner
from farthing.server.settings import Settings
from farthing.server.store import Store

if TYPE_CHECKING:
    from farthing.server.auth.oidc_provider import Provider
    from farthing.server.auth.passwords import Passwords
    from farthing.server.auth.permissions import Caller
    from farthing.server.jobs.job_worker import Workers
    from farthing.server.services.ledger_pages import Books
    from farthing.server.services.session_service import Asking
    from farthing.study import Study

ACTOR = "server"


class State:
    """The settings, the store and the ledger of one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stopping = threading.Event()  # set when the server is told to stop: streams of events end then
        self.reckoner = Reckoner()
        self.turns = Turns()
        self._making = threading.Lock()
        self._asking: Asking | None = None
        self._books: Books | None = None
        self.root: Ledger = open_ledger(settings.ledger, actor=ACTOR, role="curator", key=settings.ledger_key)
        try:
            self.store = Store.beside(settings.ledger)
        except BaseException:
            self.root.close()
            raise

    @cached_property
    def passwords(self) -> Passwords:
        """What hashes and checks passwords."""
        from farthing.server.auth.passwords import Passwords

        return Passwords(cheap=self.settings.cheap_passwords)

    @cached_property
    def provider(self) -> Provider | None:
        """Where people may sign in elsewhere, if that is set up."""
        from farthing.server.auth.oidc_provider import Provider

        return None if self.settings.oidc is None else Provider(self.settings.oidc)

    @cached_property
    def workers(self) -> Workers:
        """The processes that do what takes longer than a request; started with the application."""
        from farthing.server.jobs.job_worker import Workers

        return Workers(self)

    @property
    def asking(self) -> Asking:
        """The sessions that are open here."""
        from farthing.server.services.session_service import Asking

        with self._making:  # two of them would each begin a round of a session, and waste one
            if self._asking is None:
                self._asking = Asking()
            return self._asking

    @property
    def books(self) -> Books:
        """What is kept at hand of the ledger."""
        from farthing.server.services.ledger_pages import Books

        with self._making:
            if self._books is None:
                self._books = Books(self)
            return self._books

    def ledger(self, who: Caller) -> Ledger:
        """The ledger as this caller may use it: entries carry their name, and their role decides."""
        return self.root.acting(who.name, who.role)

    def study(self, who: Caller, dataset: str) -> Study:
        """The study of a registered dataset, as this caller may use it."""
        from farthing.server.services.dataset_declarations import study_of

        return study_of(self, who, dataset)

    def close(self) -> None:
        """Close the store and the ledger."""
        self.reckoner.close()
        self.store.close()
        self.root.close()
