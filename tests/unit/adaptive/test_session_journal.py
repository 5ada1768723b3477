"""A journal gives every round to one asker only, and hands back what was recorded and nothing else."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farthing.adaptive.session_journal import MemoryJournal, checked_record
from farthing.errors import FarthingError, InvalidData, InvalidValue


def test_the_opening_is_drawn_once() -> None:
    journal = MemoryJournal()
    drawn = iter([1, 2, 3])
    assert [journal.opening(lambda: {"start": next(drawn)}) for _ in range(3)] == [{"start": 1}] * 3
    assert next(drawn) == 2


def test_an_opening_that_fails_is_drawn_again() -> None:
    journal = MemoryJournal()
    with pytest.raises(ZeroDivisionError):
        journal.opening(lambda: {"start": 1 // 0})
    assert journal.opening(lambda: {"start": 2}) == {"start": 2}


def test_a_round_is_begun_by_one_of_many_threads() -> None:
    journal = MemoryJournal()
    won: list[int] = []

    def race() -> None:
        won.extend(number for number in range(1, 101) if journal.begin(number))

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(1, 101))


def test_only_a_round_that_was_begun_ends_and_only_once() -> None:
    journal = MemoryJournal()
    with pytest.raises(InvalidValue):
        journal.end(1, {"sign": 1})
    journal.begin(1)
    journal.end(1, {"sign": 1})
    journal.end(1, {"sign": 1})  # the same again: a repeat after a lost connection
    with pytest.raises(InvalidValue):
        journal.end(1, {"sign": -1})
    assert journal.history() == [(1, {"sign": 1})]


def test_history_grows_at_its_end_in_the_order_of_recording() -> None:
    journal = MemoryJournal()
    for number in (1, 2, 3):
        journal.begin(number)
    journal.end(3, {"k": "third"})
    before = journal.history()
    journal.end(1, {"k": "first"})
    assert journal.history() == [*before, (1, {"k": "first"})]


def test_what_a_caller_does_to_a_record_does_not_change_the_journal() -> None:
    journal, record = MemoryJournal(), {"cells": [1, 2]}
    journal.begin(1)
    journal.end(1, record)
    record["cells"].append(3)
    journal.history()[0][1]["cells"].append(4)
    assert journal.history() == [(1, {"cells": [1, 2]})]


@pytest.mark.parametrize("value", [0.5, float("nan"), np.int64(3), {1: 2}, b"x", {2}])
def test_a_record_of_anything_but_whole_numbers_and_texts_is_refused(value: object) -> None:
    with pytest.raises(InvalidData) as caught:
        checked_record({"value": value})
    assert repr(value) not in str(caught.value)


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "1"])
def test_rounds_are_numbered_from_one(number: object) -> None:
    with pytest.raises(InvalidValue):
        MemoryJournal().begin(number)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "use",
    [
        lambda journal: journal.opening(dict),
        lambda journal: journal.begin(2),
        lambda journal: journal.end(1, {"sign": 1}),
        lambda journal: journal.begun(),
        lambda journal: journal.history(),
    ],
)
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking with threads is the point
@pytest.mark.draws(false_alarm=0, miss=0)  # holds whatever the processes draw
def test_a_forked_child_has_no_rounds_of_its_own(use: Callable[[MemoryJournal], Any]) -> None:
    """A copy would give out every round once more: a session paid for once, run as often as there are processes."""
    journal = MemoryJournal()
    journal.opening(dict)
    journal.begin(1)
    told, telling = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        try:
            use(journal)
        except FarthingError as refusal:
            telling.send(str(refusal))
        else:
            telling.send("answered")

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    said = told.recv() if told.poll(30) else "nothing"
    process.join()
    assert "another process" in said
    assert journal.begin(2)
