"""Processes that ask in one session, at once or after one was killed: each round is run once, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as ft
from farthing.ledger import Ledger
from system.ledger.places import Place, sqlite_place

ROWS = 9_000
# Every answer of a session lies within its error at once, but for once in 1e10 sessions.
WORDS = {
    "alpha": 0.05,
    "queries": 300,
    "rows": ROWS,
    "start": "none",
    "confidence": 1 - 1e-10,
    "request_id": "monday",
}

GO = "go\n"
# What it imports takes longer than what it does: it forks when it has imported, and before it opens anything.
PROCESSES = """
import json, os, sys
import ibis.backends.duckdb
from contracts.test_answerer_processes import answered, said
*others, last = map(int, sys.argv[2:])
try:
    answered(json.loads(sys.argv[1]), next((seed for seed in others if os.fork() == 0), last))
finally:
    said(None)
"""


def table() -> pa.Table:
    """Nobody knows these rows: two lumps, and a bit of everything."""
    rng = np.random.default_rng(5)
    age = np.concatenate([np.full(3600, 3), np.full(2700, 55), rng.integers(0, 64, 2700)])
    return pa.table({"age": age, "sex": rng.choice(["F", "M"], ROWS, p=[0.8, 0.2])})


def studied(ledger: Ledger) -> ft.Study:
    people = ft.dataset(table(), schema={"age": (0, 63), "sex": ["F", "M"]})
    return ft.Study(people, 40.0, 1e-9, ledger=ledger, account="people")


def asked(seed: int) -> dict[str, int]:
    """Conditions, and how many rows meet them."""
    rng, rows = np.random.default_rng(seed), table()
    age, sex = rows["age"].to_numpy(), rows["sex"].to_numpy(zero_copy_only=False)
    found = {}
    for _ in range(60):
        low, high = sorted(rng.choice(65, 2, replace=False).tolist())
        who = "FM"[low % 2]
        exact = int(np.sum((sex == who) & (age >= low) & (age < high)))
        found[f"sex = '{who}' and {low} <= age and age < {high}"] = exact
    return found


def said(*facts: Any) -> None:
    """A line at once: two processes write to one pipe, which stays open when one of them has ended."""
    os.write(1, json.dumps(facts).encode() + b"\n")


def answered(facts: tuple[str, str], seed: int) -> None:
    """One of the processes: opens the session, says so, waits for a line, and asks."""
    with Place(*facts).open() as ledger:
        session = studied(ledger).query_session(**WORDS)
        said(seed)
        if os.read(0, len(GO)) != GO.encode():
            return  # who would have said it is gone
        for question in asked(seed):
            answer = session.ask(question)
            said(seed, question, answer.value, answer.error, answer.paid)


@contextmanager
def asking(place: Place, *seeds: int) -> Iterator[subprocess.Popen[str]]:
    """Processes that have opened the session and wait for a line each; the last is the one that can be killed."""
    words = [sys.executable, "-W", "ignore", "-c", PROCESSES, json.dumps([place.url, place.key]), *map(str, seeds)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="tests") as processes:
        assert processes.stdout is not None
        try:
            assert {json.loads(processes.stdout.readline())[0] for _ in seeds} == set(seeds)
            yield processes
        finally:
            processes.kill()


def started(processes: subprocess.Popen[str], count: int) -> None:
    assert processes.stdin is not None
    processes.stdin.write(GO * count)
    processes.stdin.flush()


def told(text: str, seed: int) -> dict[str, list[Any]]:
    lines = map(json.loads, text.splitlines())
    return {line[1]: line[2:] for line in lines if line[0] == seed}


def rounds(ledger: Ledger) -> dict[str, int]:
    """How many rounds were begun, and how many recorded."""
    kinds = [entry.kind for entry in ledger.entries("people") if " round " in entry.request_id]
    return {kind: kinds.count(kind) for kind in ("charge", "released")}


@pytest.mark.slow
@pytest.mark.draws(false_alarm=1e-10, miss=0)
def test_two_processes_ask_at_once_in_one_session(place: Place) -> None:
    with asking(place, 1, 2) as processes:
        started(processes, 2)
        found = processes.communicate(timeout=600)[0]
    answers = [told(found, seed) for seed in (1, 2)]
    assert [set(one) for one in answers] == [set(asked(1)), set(asked(2))]
    paid = {q: v for one in answers for q, v in one.items() if v[2]}
    with place.open() as ledger:
        study = studied(ledger)
        again = study.query_session(**WORDS)
        made = rounds(ledger)
        assert made["charge"] <= again.plan.updates
        assert len(paid) > 4 and made["released"] >= len(paid) and made["charge"] <= made["released"] + 2
        for question, (value, error, _) in paid.items():
            answer = again.ask(question)
            assert (answer.value, answer.error, answer.paid) == (value, error, True)
        exact = asked(1) | asked(2)
        for one in answers:
            assert all(abs(value - exact[question]) <= error for question, (value, error, _) in one.items())
        assert 39.9 < study.budget.spent_upper <= 40.0 and ledger.verify().ok


@pytest.mark.slow
@pytest.mark.draws(false_alarm=1e-10, miss=0)
def test_a_killed_process_loses_its_round_and_nothing_else(tmp_path: Path) -> None:
    place = sqlite_place(tmp_path)
    with asking(place, 1) as process:
        assert process.stdout is not None
        started(process, 1)
        seen = told("".join(process.stdout.readline() for _ in range(30)), 1)
        process.kill()
        seen |= told(process.communicate()[0], 1)
    with place.open() as ledger:
        before = studied(ledger).budget
        made = rounds(ledger)
        again = studied(ledger).query_session(**WORDS)
        paid = {question for question, (_, _, was_paid) in seen.items() if was_paid}
        # A record may have been written and its answer not shown; the other way round is impossible.
        assert len(paid) <= made["released"] <= len(paid) + 1 and made["charge"] <= made["released"] + 1
        for question in paid:
            answer = again.ask(question)
            assert [answer.value, answer.error, answer.paid] == seen[question]
        for question, exact in asked(9).items():
            answer = again.ask(question)
            assert answer.error is not None and abs(answer.value - exact) <= answer.error
        assert again.updates + again.updates_left == again.plan.updates
        after = studied(ledger).budget
        assert (after.spent_upper, after.remaining) == (before.spent_upper, before.remaining)
        assert ledger.verify().ok
