"""A PostgreSQL that is stopped at once again and again under writers who do not give up."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from backends.keeper import wish
from system.ledger.checks import problems
from system.ledger.nursery import PATIENCE, Nursery, refuse_failures
from system.ledger.places import Place

EPSILON = 0.001
WRITERS = 8


def restarted(
    nursery: Nursery, place: Place, server: Path, restarts: int, attempts: int, chance: random.Random
) -> tuple[list[str], list[dict[str, Any]]]:
    """The problems after `restarts` immediate stops while each writer made `attempts` requests, and what was seen.

    The budget is short of what the writers want by a tenth, so that the last of them are refused.
    """
    fits = WRITERS * attempts * 9 // 10
    place.prepare(fits * EPSILON)
    clients = [nursery.start(place, "persist", lane, attempts=attempts, epsilon=EPSILON) for lane in range(WRITERS)]
    for n in range(restarts):  # by how far the writers are and not by the clock: machines differ
        _wait_for_charges(nursery, place, int(fits * (n + chance.uniform(0.1, 0.7)) / restarts))
        wish(server, "restart")
    for client in clients:
        assert client.wait()
    said = nursery.said(place, WRITERS)
    refuse_failures(said)
    finished = sum("done" in line for line in said)
    found = [] if finished == WRITERS else [f"only {finished} writers came to an end"]
    return found + problems(place, said, EPSILON, fits), said


def _wait_for_charges(nursery: Nursery, place: Place, least: int) -> None:
    """Until the writers have made so many charges together."""
    until = time.monotonic() + PATIENCE
    files = [nursery.file(place, lane) for lane in range(WRITERS)]
    while sum(file.read_bytes().count(b'"charged"') for file in files if file.exists()) < least:
        refuse_failures(nursery.said(place, WRITERS))
        assert time.monotonic() < until, f"the writers never made {least} charges"
        time.sleep(0.02)
