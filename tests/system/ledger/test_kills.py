"""Whatever a client saw is in the ledger, however the client or the server ended."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from system.ledger.approvals import killed_deciding, raced_deciding
from system.ledger.conftest import NewPlace
from system.ledger.kills import killed
from system.ledger.nursery import Nursery
from system.ledger.places import postgres_place
from system.ledger.restarts import restarted


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_every_answer_seen_before_a_kill_is_in_the_ledger(clients: Nursery, new_place: NewPlace) -> None:
    answers = 0
    for seed in range(5, 25):
        found, said = killed(clients, new_place(), 16, random.Random(seed))
        assert found == []
        answers += sum("request" in line for line in said)
        if answers > 4:
            return
    pytest.fail("nobody was answered before a kill: nothing was tested")


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_client_that_answers_before_it_charges_is_caught(clients: Nursery, new_place: NewPlace) -> None:
    """The power of the kills: the same harness, with the mistake that it looks for. When a kill hits is up to the
    machine: where eight of them all missed, more follow."""
    found: list[str] = []
    for seed in range(5, 35):
        found += killed(clients, new_place(), 8, random.Random(seed), "release first")[0]
        if any("seen and never charged" in problem or "answered twice" in problem for problem in found):
            return
    pytest.fail(str(found))


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_nothing_is_lost_or_doubled_when_postgres_is_stopped_at_once(
    clients: Nursery, mortal_postgres: dict[str, Any], tmp_path: Path
) -> None:
    server = Path(mortal_postgres["directory"])
    place = postgres_place(mortal_postgres, tmp_path)
    found, said = restarted(clients, place, server, 2, 30, random.Random(5))
    assert found == []
    assert any("unavailable" in line for line in said)  # otherwise nobody was writing when the server stopped


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_what_was_approved_is_used_once_however_its_curators_and_analysts_end(
    clients: Nursery, new_place: NewPlace, tmp_path: Path
) -> None:
    """Never charged twice, never released uncharged, never charged before it is approved, and approved once."""
    assert killed_deciding(clients, new_place(), 8, random.Random(5), requests=5, fits=4) == ([], 4)
    assert raced_deciding(clients, new_place(), tmp_path, racers=4, requests=4, fits=3) == ([], 3)
