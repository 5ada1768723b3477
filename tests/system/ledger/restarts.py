"""A PostgreSQL that is stopped at once again and again under writers who do not give up."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from backends.keeper import wish
from system.ledger.checks import problems
from system.ledger.nursery import Nursery, refuse_failures
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
    clients = [
        nursery.start(place, "persist", lane, attempts=attempts, epsilon=EPSILON) for lane in range(WRITERS)
    ]
    for _ in range(restarts):
        time.sleep(chance.uniform(0.3, 1.0))
        wish(server, "restart")
    for client in clients:
        assert client.wait()
    said = nursery.said(place, WRITERS)
    refuse_failures(said)
    finished = sum("done" in line for line in said)
    found = [] if finished == WRITERS else [f"only {finished} writers came to an end"]
    return found + problems(place, said, EPSILON, fits), said
