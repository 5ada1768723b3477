"""Many processes, one budget: exactly as many charges succeed as fit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from system.ledger.nursery import PATIENCE, Nursery, refuse_failures, shut_gate, wait_until_said
from system.ledger.places import Place

EPSILON = 0.01


def raced(
    nursery: Nursery, place: Place, folder: Path, *, processes: int, attempts: int, **task: Any
) -> list[dict[str, Any]]:
    """Everything that `processes` clients saw who all charged from one moment on, and waited for each other."""
    task = {"timeout": PATIENCE, **task}
    with shut_gate(folder) as gate:
        clients = [
            nursery.start(place, "race", lane, attempts=attempts, epsilon=EPSILON, gate=str(gate), **task)
            for lane in range(processes)
        ]
        wait_until_said(nursery, place, processes, "ready")
    for client in clients:
        assert client.wait()
    said = nursery.said(place, processes)
    refuse_failures(said)
    return said


def tally(said: list[dict[str, Any]]) -> Counter[str]:
    """How many charges were made and how many refused."""
    return Counter(word for line in said for word in ("charged", "refused") if word in line)
