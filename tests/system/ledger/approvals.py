"""Curators who approve the same requests, analysts who use them, all killed at random moments or racing."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

from system.ledger.checks import problems
from system.ledger.nursery import PATIENCE, Client, Nursery, refuse_failures, shut_gate, wait_until_said
from system.ledger.places import DATASET, Place

EPSILON = 0.01
ANALYST = "bob"
LANES = 4  # of those who are killed: half of them approve, half of them use
MOST_LINES = 8_000  # of the ledger's own code before a kill


def prepared(place: Place, requests: int, fits: int) -> list[int]:
    """A ledger whose account has room for `fits` of the `requests` that its analyst has submitted; their numbers."""
    place.prepare(fits * EPSILON)
    with place.open(actor="steward") as ledger:
        ledger.grant(DATASET, ANALYST, 0.0)
        bob = ledger.acting(ANALYST, "analyst").requests
        return [bob.submit(DATASET, EPSILON, digest=f"plan {n}", purpose="a test").id for n in range(requests)]


def killed_deciding(
    nursery: Nursery, place: Place, kills: int, chance: random.Random, requests: int = 12, fits: int = 8
) -> tuple[list[str], int]:
    """The problems after so many deaths, and how many requests were used; the last clients live."""
    numbers = prepared(place, requests, fits)
    running: dict[int, Client] = {}
    for n in range(kills):
        lane, lines = n % LANES, int(MOST_LINES * chance.random() ** 2)
        if lane in running:
            assert running[lane].wait()
        running[lane] = _started(nursery, place, lane, numbers, lines=lines)
    for lane in range(LANES):
        if lane in running:
            assert running[lane].wait()
    for lane in range(2):  # an approver, then a user: what was left half done is finished
        assert _started(nursery, place, lane, numbers).wait()
    return found_in(nursery, place, numbers, LANES, fits)


def raced_deciding(
    nursery: Nursery, place: Place, folder: Path, *, racers: int, requests: int = 12, fits: int = 8
) -> tuple[list[str], int]:
    """The problems when so many approve and use the same requests from one moment on."""
    numbers = prepared(place, requests, fits)
    with shut_gate(folder) as gate:
        clients = [_started(nursery, place, lane, numbers, gate=str(gate)) for lane in range(racers)]
        wait_until_said(nursery, place, racers, "ready")
    for client in clients:
        assert client.wait()
    assert _started(nursery, place, 1, numbers).wait()
    return found_in(nursery, place, numbers, racers, fits)


def _started(nursery: Nursery, place: Place, lane: int, numbers: list[int], **task: Any) -> Client:
    role = "use" if lane % 2 else "approve"
    return nursery.start(place, role, lane, requests=numbers, epsilon=EPSILON, timeout=PATIENCE, **task)


def found_in(nursery: Nursery, place: Place, numbers: list[int], lanes: int, fits: int) -> tuple[list[str], int]:
    """What is wrong: an approval or a use that happened twice, in the wrong order, or without the other."""
    said = nursery.said(place, lanes)
    refuse_failures(said)
    found = problems(place, said, EPSILON, fits)
    with place.open(actor="auditor", role="auditor") as ledger:
        entries = list(ledger.entries())
        grant = ledger.budget(DATASET, ANALYST)
    approved = Counter(entry.body["request"] for entry in entries if entry.kind == "approved")
    uses = [(entry.right or {}).get("request") for entry in entries if entry.kind == "charge"]
    found += [f"request {number} was approved {times} times" for number, times in approved.items() if times != 1]
    found += [f"request {number} was never approved" for number in numbers if number not in approved]
    found += [f"request {number} was used twice" for number, times in Counter(uses).items() if times > 1]
    first = {entry.body["request"]: entry.sequence for entry in reversed(entries) if entry.kind == "approved"}
    found += [
        f"entry {entry.sequence} was charged without an approval"
        for entry in entries
        if entry.kind == "charge" and first.get((entry.right or {}).get("request"), entry.sequence) >= entry.sequence
    ]
    if len(uses) != fits:
        found.append(f"{len(uses)} requests were used in a budget for {fits}")
    if grant.count or grant.spent_upper:
        found.append(f"a grant of 0 has paid for {grant.count} charges")
    return found, len(uses)
