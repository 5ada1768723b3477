"""Notes of free answers: few entries for many answers, nothing lost at an orderly end, and processes side by side."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farthing.curator import session_notes
from farthing.curator.session_notes import SessionNotes, write_notes
from farthing.errors import LedgerUnavailable
from farthing.ledger import Ledger, open_ledger

SCRIPT = """
import sys, pyarrow, farthing as ft
people = ft.dataset(pyarrow.table({"age": [30, 41, 52] * 2_000}), schema={"age": (0, 110)}, rows=6_000)
study = ft.Study(people, epsilon=20.0, ledger=sys.argv[1], account="people")
session = study.query_session(0.2, 200, columns="age", start="none")
answers = []
for year in range(1, 100):
    try:
        answers.append(session.ask(f"age < {year}"))
    except ft.errors.SessionEnded:
        answers.append(None)
print(answers, session.updates)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "study.db") as opened:
        opened.register("survey", epsilon=1.0)
        yield opened
    session_notes._WAITING.clear()


def notes(ledger: Ledger, name: str = "monday") -> SessionNotes:
    return SessionNotes(
        ledger, lambda number: f"{name} notes {number}", lambda name: ledger.charge("survey", 0.0, request_id=name)
    )


def test_many_answers_make_few_entries_and_all_are_there_when_the_study_is_closed(ledger: Ledger) -> None:
    writer = notes(ledger)
    for number in range(2_000):
        writer.add({"value": number})
        found = len(notes(ledger, "tuesday").read()) or len(writer.read())
        assert found * 17 >= (number + 1) * 16 - 17  # a process that is killed loses a sixteenth
    write_notes(ledger)
    assert [one["value"] for one in notes(ledger).read()] == list(range(2_000))
    assert ledger.budget("survey").count < 120
    assert not [one for one in session_notes._WAITING if one.ledger is ledger]


def test_the_same_session_opened_twice_in_a_process_sees_what_waits(ledger: Ledger) -> None:
    first = notes(ledger)
    for number in range(40):
        first.add({"value": number})
    assert len(first.read()) < 40
    assert [one["value"] for one in notes(ledger).read()] == list(range(40))


def test_notes_of_processes_side_by_side_are_all_kept(ledger: Ledger) -> None:
    both = notes(ledger), notes(ledger)
    for number in range(30):
        both[number % 2].add({"value": number})
    write_notes()
    assert sorted(one["value"] for one in both[0].read()) == list(range(30))
    assert both[0].read() == both[1].read() == notes(ledger).read()


def test_a_note_that_was_charged_and_never_written_hides_nothing(ledger: Ledger) -> None:
    writer = notes(ledger)
    writer.add({"value": 1})
    ledger.charge("survey", 0.0, request_id="monday notes 2")
    writer.add({"value": 2})
    assert [one["value"] for one in notes(ledger).read()] == [1, 2]


def test_what_cannot_be_written_waits(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise LedgerUnavailable("the ledger is locked")

    writer = notes(ledger)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "charge", away)
        writer.add({"value": 1})
    assert notes(ledger).read() == [{"value": 1}]  # as they were written by then


def test_a_session_keeps_only_so_many(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_notes, "MOST", 5)
    for number in range(9):
        writer = notes(ledger)
        writer.read()  # as every session does that is opened
        writer.add({"value": number})
    assert [one["value"] for one in notes(ledger).read()] == list(range(5))


@pytest.mark.slow
@pytest.mark.draws(false_alarm=0, miss=0)
def test_a_script_that_closes_nothing_gets_its_answers_when_it_is_run_again(tmp_path: Path) -> None:
    """Whatever is drawn: what was answered or refused is so again. Lost answers would begin a round in every run."""

    def run() -> str:
        words = [sys.executable, "-c", SCRIPT, str(tmp_path / "study.db")]
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout

    first, again = run().rsplit(" ", 1), run().rsplit(" ", 1)
    assert again[0] == first[0]
    # A round that was under way when the first script ended is used up; the second begins none.
    assert int(again[1]) <= int(first[1]) + 1 and run().rsplit(" ", 1) == again
