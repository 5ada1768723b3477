"""Processes that ask in one session, at once or after one was killed: each round is run once, and nothing is lost."""

from __future__ import annotations

import json
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

CHILD = """
import json, sys
from contracts.test_answerer_processes import WORDS, asked, studied
from system.ledger.places import Place
with Place(*json.loads(sys.argv[1])).open() as ledger:
    session = studied(ledger).query_session(**WORDS)
    print("open", flush=True)
    sys.stdin.readline()
    for question in asked(int(sys.argv[2])):
        answer = session.ask(question)
        print(json.dumps([question, answer.value, answer.error, answer.paid]), flush=True)
"""


def table() -> pa.Table:
    """Nobody knows these rows: two lumps, and a bit of everything."""
    rng = np.random.default_rng(5)
    age = np.concatenate([np.full(3600, 3), np.full(2700, 55), rng.integers(0, 64, 2700)])
    return pa.table({"age": age, "sex": rng.choice(["F", "M"], ROWS, p=[0.8, 0.2])})


def studied(ledger: Ledger) -> ft.Study:
    people = ft.dataset(table(), schema={"age": (0, 63), "sex": ["F", "M"]})
    return ft.Study(people, 40.0, 1e-9, ledger=ledger, name="people")


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


@contextmanager
def asking(place: Place, *seeds: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that have opened the session and wait for a line."""
    facts = json.dumps([place.url, place.key])
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", CHILD, facts, str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="tests",
        )
        for seed in seeds
    ]  # fmt: skip
    try:
        for child in children:
            assert child.stdout is not None and child.stdout.readline() == "open\n"
        yield children
    finally:
        for child in children:
            child.kill()
            child.communicate()


def started(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def told(text: str) -> dict[str, list[Any]]:
    return {question: facts for question, *facts in map(json.loads, text.splitlines())}


def rounds(ledger: Ledger) -> dict[str, int]:
    """How many rounds were begun, and how many recorded."""
    kinds = [entry.kind for entry in ledger.entries("people") if " round " in entry.request_id]
    return {kind: kinds.count(kind) for kind in ("charge", "released")}


@pytest.mark.slow
@pytest.mark.draws(false_alarm=1e-10, miss=0)
def test_two_processes_ask_at_once_in_one_session(place: Place) -> None:
    with asking(place, 1, 2) as children:
        for child in children:
            started(child)
        found = [child.communicate(timeout=120)[0] for child in children]
    answers = [told(text) for text in found]
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
    with asking(place, 1) as (child,):
        assert child.stdout is not None
        started(child)
        seen = told("".join(child.stdout.readline() for _ in range(30)))
        child.kill()
        seen |= told(child.communicate()[0])
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
