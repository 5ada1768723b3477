"""Clients who are killed at random moments, and what is left of the ledger afterwards."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from system.ledger.checks import problems
from system.ledger.nursery import PATIENCE, Client, Nursery, lines_of, refuse_failures
from system.ledger.places import Place

EPSILON = 0.01
FITS = 40  # charges; some rounds end in refusals, which are killed as well
LANES = 4
MOST_SAID = 9  # lines before a kill by the clock: an answer is three of them
LONGEST = 0.04  # seconds of spending after them
MOST_LINES = 5_000  # of the ledger's own code before a kill


@dataclass(frozen=True)
class Victim:
    """A client, what its lane had said before it, and how it is to die: at a line, while it opens, or by the clock."""

    client: Client
    lane: int
    said_before: int
    at_line: bool
    opening: bool


def killed(
    nursery: Nursery, place: Place, kills: int, chance: random.Random, variant: str = "charge first"
) -> tuple[list[str], list[dict[str, Any]]]:
    """The problems after `kills` deaths of clients at `place`, four at a time, and what was seen."""
    place.prepare(FITS * EPSILON)
    victims: dict[int, Victim] = {}
    for n in range(kills):
        lane, at_line, opening = n % LANES, n % (2 * LANES) < LANES, chance.random() < 0.25
        if lane in victims:
            _end(nursery, place, victims[lane], chance)
        said = lines_of(nursery.file(place, lane))
        task = {
            "variant": variant,
            "epsilon": EPSILON,
            "opening": opening,
            "first": max((line["begun"] for line in said if "begun" in line), default=0),
            "lines": int(MOST_LINES * chance.random() ** 2) if at_line else None,
        }
        client = nursery.start(place, "spend", lane, **task)
        victims[lane] = Victim(client, lane, len(said), at_line, opening)
    for victim in victims.values():
        _end(nursery, place, victim, chance)
    said = nursery.said(place, LANES)
    refuse_failures(said)
    return problems(place, said, EPSILON, FITS), said


def _end(nursery: Nursery, place: Place, victim: Victim, chance: random.Random) -> None:
    """Killed at some moment; one that dies by itself, at a line, is given the time to get there."""
    if victim.at_line and victim.client.wait(2.0):
        return
    file, until = nursery.file(place, victim.lane), time.monotonic() + PATIENCE
    said = victim.said_before + chance.randrange(1, MOST_SAID)  # a busy machine lets it wait
    while not (victim.at_line or victim.opening) and len(lines_of(file)) < said:
        assert time.monotonic() < until, "a client never said what it did"
        if victim.client.wait(0.002):  # by an exception, which it told: the test ends with it
            return
    time.sleep(chance.uniform(0.0, LONGEST))
    victim.client.kill()
    assert victim.client.wait()
