"""The memory of a session: what was opened, which rounds were begun, and what each of them found.

A session has an opening and a fixed number of rounds. A round is begun before its first question and recorded before
anybody sees what it found, so that a session can be resumed anywhere and no round is ever run twice. A round that shows
nothing while it runs can be recorded in one go (`record_once`): then no crash loses it.

What a running round answers free of charge is noted beside the rounds, so that a script that is run again gets the same
answers and begins no round.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from farthing.errors import FarthingError, InvalidData, InvalidValue
from farthing.privacy.events import checked_count

__all__ = ["Journal", "MemoryJournal", "checked_record"]

Record = Mapping[str, Any]


class Journal(Protocol):
    """Where a session is kept. Rounds are numbered from 1; several sessions of one name may share a journal.

    What is raised by `opening`, `begin` or `end` means that nothing may be shown; calling it again is always safe.
    """

    def opening(self, draw: Callable[[], Record]) -> Record:
        """Charge the session, draw, record and return what was drawn: JSON-ready data of whole numbers and texts.

        If the session was opened before, what was recorded then comes back and `draw` is never called.
        """

    def begin(self, round_number: int) -> bool:
        """Durably begin this round; False when anybody began it before: it is spent then, and the next is tried."""

    def begun(self) -> int:
        """How many rounds were begun, by anybody: so many are spent or running."""

    def end(self, round_number: int, record: Record) -> None:
        """Record what the round found, before anybody sees it.

        Raises a FarthingError if this journal did not begin the round or somebody gave it up: then what it found must
        not be shown.
        """

    def record_once(self, round_number: int, draw: Callable[[], Record]) -> Record:
        """The record of a round that shows nothing before it is recorded: drawn now, unless somebody has recorded it.

        Of several draws for one round, by processes that race or after one that died, the first that is recorded
        counts, and nobody ever sees another. Rounds are recorded in order.
        """

    def history(self) -> Sequence[tuple[int, Record]]:
        """All finished rounds with their records, in the order in which they were recorded, by any process.

        It only ever grows at its end: a reader who has seen a part of it needs to look at the rest only.
        """

    def note(self, answer: Record) -> None:
        """Keep an answer that has used nothing up, for a script that is run again.

        It has been or may be shown, so nothing depends on it but what is asked again: it may be written down later, or
        be lost with the process.
        """

    def notes(self) -> Sequence[Record]:
        """The answers that were noted by any process, oldest first; the list only grows at its end."""


class MemoryJournal:
    """A journal that lives as long as this object: for tests, audits and people without a ledger.

    It works in the process that made it and in no other. A forked child has a copy, and each copy would give out every
    round once more: the same session, paid for once and run twice.

    >>> journal = MemoryJournal()
    >>> journal.opening(lambda: {"start": [3, -1]})
    {'start': [3, -1]}
    >>> journal.opening(lambda: {"start": [0, 0]})
    {'start': [3, -1]}
    >>> journal.begin(1), journal.begin(1), journal.begin(2)
    (True, False, True)
    >>> journal.end(2, {"sign": 1}); journal.end(1, {"sign": -1})
    >>> journal.history(), journal.begun()
    ([(2, {'sign': 1}), (1, {'sign': -1})], 2)
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._opening: str | None = None
        self._begun: set[int] = set()
        self._ended: dict[int, str] = {}  # in the order of recording
        self._noted: list[str] = []

    def opening(self, draw: Callable[[], Record]) -> Record:
        """The record that was drawn when the session was opened.

        Args:
            draw: Draws it, if it was not drawn before.

        Returns:
            The record.
        """
        with self._here():
            if self._opening is None:
                self._opening = checked_record(draw())
            return _read(self._opening)

    def begin(self, round_number: int) -> bool:
        """Begin a round, which can be done once.

        Args:
            round_number: The number of the round, from 1 on.

        Returns:
            True if nobody had begun it before.
        """
        number = checked_round(round_number)
        with self._here():
            first = number not in self._begun
            self._begun.add(number)
            return first

    def begun(self) -> int:
        """The number of the last round that was begun."""
        with self._here():
            return max(self._begun, default=0)

    def end(self, round_number: int, record: Record) -> None:
        """Keep the record of a round that was begun; the same one again changes nothing.

        Args:
            round_number: The number of the round.
            record: The record, as plain data.

        Raises:
            InvalidValue: If the round was not begun, or has another record.
        """
        number, text = checked_round(round_number), checked_record(record)
        with self._here():
            if number not in self._begun or self._ended.get(number, text) != text:
                raise InvalidValue("round_number", number, "must be a round that was begun and has no record")
            self._ended[number] = text

    def record_once(self, round_number: int, draw: Callable[[], Record]) -> Record:
        """The record of a round, drawn now unless it has one.

        Args:
            round_number: The number of the round.
            draw: Draws the record.

        Returns:
            The record that counts.
        """
        number = checked_round(round_number)
        with self._here():
            if number not in self._ended:
                self._begun.add(number)
                self._ended[number] = checked_record(draw())
            return _read(self._ended[number])

    def history(self) -> list[tuple[int, Record]]:
        """All records, each a copy of the caller's own."""
        with self._here():
            return [(number, _read(text)) for number, text in self._ended.items()]

    def note(self, answer: Record) -> None:
        """Keep an answer that has used nothing up.

        Args:
            answer: The answer, as plain data.
        """
        text = checked_record(answer)
        with self._here():
            self._noted.append(text)

    def notes(self) -> list[Record]:
        """All of them, each a copy of the caller's own."""
        with self._here():
            return [_read(text) for text in self._noted]

    @contextmanager
    def _here(self) -> Iterator[None]:
        """In turn, and in the process that knows all that was begun."""
        # Before the lock, which a thread of the parent may have held forever.
        if os.getpid() != self._process:
            raise FarthingError(
                "this session is kept in the memory of another process, and a copy of it would use its rounds "
                "a second time; open it in this process and pay for it, or keep it in a ledger."
            )
        with self._lock:
            yield

    def __repr__(self) -> str:
        return f"MemoryJournal({len(self._begun)} rounds begun, {len(self._ended)} recorded)"


def checked_record(record: Record) -> str:
    """A record as text: JSON of whole numbers, texts, lists and mappings, which reads the same everywhere.

    >>> checked_record({"sign": 1, "cells": [2, 3]})
    '{"sign":1,"cells":[2,3]}'
    >>> checked_record({"gap": 0.5})
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidData: record: must hold whole numbers, texts, lists and mappings, not float.
    """
    if not isinstance(record, Mapping):
        raise InvalidData("record", f"must be a mapping, not {type(record).__name__}")
    return json.dumps(_plain(record), separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise InvalidData("record", f"must hold whole numbers, texts, lists and mappings, not {type(value).__name__}")


def checked_round(number: object) -> int:
    """A round's number: whole, from 1."""
    count = checked_count(number, "round_number")
    if count < 1:
        raise InvalidValue("round_number", number, "must be at least 1")
    return count


def _read(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    return data
