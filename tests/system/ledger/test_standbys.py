"""A ledger on a server that must have everything on a standby server as well, before it is confirmed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import LedgerUnavailable
from farthing.ledger import Ledger
from system.ledger.checks import problems
from system.ledger.nursery import PATIENCE
from system.ledger.places import DATASET, Place, postgres_place
from system.ledger.server_rows import administrator

EPSILON = 0.001
_LOOKS: dict[str, Callable[[Ledger], object]] = {
    "a charge": lambda ledger: ledger.charge(DATASET, EPSILON, request_id="one"),
    "the same charge": lambda ledger: ledger.charge(DATASET, EPSILON, request_id="zero"),
    "a stored answer": lambda ledger: ledger.stored("zero"),
    "all entries": lambda ledger: list(ledger.entries()),
    "a verification": lambda ledger: ledger.verify(),
}


@contextmanager
def _standby_that_never_comes(place: Place, facts: dict[str, Any]) -> Iterator[None]:
    """The server waits for a standby, and an administrator ends every such wait; it warns whoever waited."""
    stop = threading.Event()

    def end_waits() -> None:
        with administrator(place, facts) as server:
            server.autocommit = True
            while not stop.wait(0.05):
                server.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")

    ending = threading.Thread(target=end_waits)
    ending.start()
    try:
        with administrator(place, facts) as server:
            server.autocommit = True
            _demand_standby(server, "nobody")
            yield
            _demand_standby(server, "")
    finally:
        stop.set()
        ending.join()


def _demand_standby(server: Any, name: str) -> None:
    """Wait for a standby of this name from now on, or for none; the server takes a moment to hear of it."""
    server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
    server.execute("SELECT pg_reload_conf()")
    server.execute("SET synchronous_commit = on")
    warnings: list[Any] = []
    server.add_notice_handler(warnings.append)
    until = time.monotonic() + PATIENCE
    waits = not name
    while waits != bool(name):
        warnings.clear()
        server.execute("SELECT pg_logical_emit_message(true, 'test', '')")
        waits = bool(warnings)
        assert time.monotonic() < until, "the server did not hear of its standby"


@pytest.mark.slow
def test_a_wait_for_a_standby_that_somebody_ended_confirms_nothing(
    mortal_postgres: dict[str, Any], tmp_path: Path
) -> None:
    """The server says so by a warning and no error, and the connection's own settings would keep that back."""
    for level in ("notice", "error"):
        place = postgres_place(mortal_postgres, tmp_path)
        place.prepare(1.0)
        with Place(f"{place.url}?options=-cclient_min_messages%3D{level}", place.key).open() as ledger:
            ledger.charge(DATASET, EPSILON, request_id="zero")
            with _standby_that_never_comes(place, mortal_postgres):
                assert [name for name, look in _LOOKS.items() if _confirms(ledger, look)] == [], level
            assert ledger.charge(DATASET, EPSILON, request_id="one").repeated and ledger.verify().ok
        assert problems(place, [], EPSILON, 1000) == []


def _confirms(ledger: Ledger, look: Callable[[Ledger], object]) -> bool:
    try:
        look(ledger)
    except LedgerUnavailable:
        return False
    return True
