"""The state of one running server: what it holds open, and what it keeps at hand so that the next answer is quick.

Nothing here is the only copy: declarations are read from the store and budgets from the ledger every time, and what is
kept is used only where they are the same as when it was made.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

import sqlalchemy as sa
from fastapi import Depends, Request

from farthing.ledger import Ledger, open_ledger
from farthing.server.auth.passwords import Passwords
from farthing.server.auth.permissions import Caller, RequestSlots
from farthing.server.http.access_log import Metrics
from farthing.server.services.accountant_process import AccountantProcess
from farthing.server.services.deposit_threads import DepositThreads
from farthing.server.services.ledger_history import LedgerHistory
from farthing.server.services.open_sessions import OpenSessions
from farthing.server.services.webhook import Webhook
from farthing.server.settings import ACTOR, Settings
from farthing.server.store import Store
from farthing.study import Plan
from farthing.study.documents.data_folder import DataFolder

if TYPE_CHECKING:
    from farthing.server.auth.oidc_provider import Provider
    from farthing.study.release_list import ReleaseRecord
    from farthing.study.synthesis.synthetic_table import Synthetic

V = TypeVar("V")
MOST_DATASETS = 64
MOST_PLANS = 64
MOST_LISTS = 16  # of releases
MOST_TABLES = 4  # synthetic ones, with the models they are drawn from


class RecentValues(Generic[V]):
    """The values that were used last, by key; safe to use from several threads.

    >>> recent = RecentValues(2)
    >>> for key in "abca":
    ...     _ = recent.keep(key, key.upper())
    >>> recent.value("c"), recent.value("b")
    ('C', None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def value(self, key: Hashable) -> V | None:
        """What is kept under a key."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def keep(self, key: Hashable, value: V) -> V:
        """Keep a value, and drop the one that was not used for longest."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return value


class PlanCache:
    """The data folder, and the datasets and plans that were used last."""

    def __init__(self, data: Path) -> None:
        self.folder = DataFolder(data)
        self.datasets: RecentValues[tuple[Any, Any]] = RecentValues(MOST_DATASETS)
        # By who asks for which statistics: where the next search starts.
        self.latest: RecentValues[Plan] = RecentValues(MOST_PLANS)
        # By everything that was asked and how the budget stood.
        self.proven: RecentValues[Plan] = RecentValues(MOST_PLANS)


class Workers(Protocol):
    """The processes that do what takes longer than a request."""

    def start(self) -> None:
        """Start them in the background."""

    def wake(self) -> None:
        """Tell them that there is work."""

    def stop(self) -> None:
        """Let them finish what they have."""


@dataclass(frozen=True, eq=False)
class State:
    """Everything that one server holds open."""

    settings: Settings
    store: Store
    root: Ledger  # acts as the server; `ledger(who)` acts as somebody
    workers: Workers
    passwords: Passwords
    provider: Provider | None  # where people may sign in elsewhere
    accountant: AccountantProcess
    plans: PlanCache
    history: LedgerHistory
    sessions: OpenSessions
    webhook: Webhook
    deposits: DepositThreads = field(default_factory=DepositThreads)
    releases: RecentValues[list[ReleaseRecord]] = field(default_factory=lambda: RecentValues(MOST_LISTS))
    tables: RecentValues[Synthetic] = field(default_factory=lambda: RecentValues(MOST_TABLES))
    slots: RequestSlots = field(default_factory=RequestSlots)
    metrics: Metrics = field(default_factory=Metrics)
    stopping: threading.Event = field(default_factory=threading.Event)  # streams of events end when it is set

    @classmethod
    def open(cls, settings: Settings, workers: Callable[[Settings, Store], Workers]) -> State:
        """Open the ledger and the store of the settings; `workers` makes the processes that do the work."""
        root = open_ledger(settings.ledger, actor=ACTOR, role="curator", key=settings.ledger_key)
        try:
            store = Store.beside(settings.ledger)
        except BaseException:
            root.close()
            raise
        return cls(
            settings=settings,
            store=store,
            root=root,
            workers=workers(settings, store),
            passwords=Passwords(cheap=settings.cheap_passwords),
            provider=_provider(settings),
            accountant=AccountantProcess(),
            plans=PlanCache(settings.data),
            history=LedgerHistory(root),
            sessions=OpenSessions(),
            webhook=Webhook(settings.webhook),
        )

    def ledger(self, who: Caller) -> Ledger:
        """The ledger as this caller may use it: entries carry their name, and their role decides."""
        return self.root.acting(who.name, who.role)

    def check(self) -> None:
        """Raise unless the ledger and the store answer."""
        self.root.datasets()
        with self.store.reading() as connection:
            connection.execute(sa.select(1))

    def close(self) -> None:
        """Close the store and the ledger."""
        self.deposits.close()
        self.webhook.close()
        self.accountant.close()
        self.store.close()
        self.root.close()


def _provider(settings: Settings) -> Provider | None:
    if settings.oidc is None:
        return None
    from farthing.server.auth.oidc_provider import Provider

    return Provider(settings.oidc)


def the_state(request: Request) -> State:
    """What the app holds open; a dependency of routes."""
    state = request.app.state.farthing
    assert isinstance(state, State)
    return state


TheState = Annotated[State, Depends(the_state)]
