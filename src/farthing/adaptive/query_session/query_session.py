"""Online private multiplicative weights: a stream of counting questions, of which only the surprising ones cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from farthing.adaptive.prior_releases import KnownTable
from farthing.adaptive.query_session.initial_histogram import Start, noisy_start, starting_weights
from farthing.adaptive.query_session.multiplicative_weights import Cells, Mask, goal_of_step, stepped
from farthing.adaptive.query_session.session_plan import QuerySessionPlan, centre_of_gap
from farthing.adaptive.query_session.session_rounds import OpenRound
from farthing.adaptive.session_journal import Journal
from farthing.errors import FarthingError, InvalidData, InvalidValue, LedgerUnavailable, SessionEnded
from farthing.matrix.workloads.condition_language import Question
from farthing.mechanisms.mechanism import checked_integers
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.statistics.cells.cell_axes import Axis

_MOST_TEXTS = 2**16  # masks of texts that are kept, and
_MOST_KEPT = 2**26  # cells of them


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a counting question: how many rows, within `error` with the plan's confidence.

    Attributes:
        value: How many rows.
        error: How far the answer may be off, for all answers of the session at once; None for an estimate, which has no
            bound.
        paid: Whether the answer used up an update.
        rows: How many rows the table has, about.

    >>> answer = Answer(value=1200, error=300, paid=False, rows=10_000)
    >>> print(answer), answer.fraction
    1,200 ± 300 (free)
    (None, 0.12)
    """

    value: int
    error: int | None
    paid: bool
    rows: int

    @property
    def fraction(self) -> float:
        """The answer as a part of the rows that the plan speaks of."""
        return self.value / self.rows

    def __str__(self) -> str:
        if self.error is None:
            return f"about {self.value:,} (an estimate)"
        return f"{self.value:,} ± {self.error:,} ({'paid' if self.paid else 'free'})"


@dataclass(frozen=True, slots=True)
class Step:
    """The state after a question, for plots.

    Attributes:
        question: The number of the question.
        value: The answer.
        error: How far it may be off.
        paid: Whether it used up an update.
        updates: How many updates are used up.
        correction: How far a paid answer is from what was expected.
    """

    question: int
    value: int
    error: int
    paid: bool
    updates: int
    correction: int = 0


class QuerySession:
    """Answers to a stream of counting questions over a public domain, each at once.

    A question is first answered from public weights. If the noisy difference to the rows is near, the answer stands
    and is free; if not, it is corrected, the weights are moved, and one update is used up.

    Args:
        plan: All prices and errors, fixed in advance.
        axes: The columns of the domain.
        cells: Fetches the private counts, one for each cell of the domain, when they are first needed; nothing that
            this object shows holds them.
        journal: Charges the prices and remembers the answers.
        known: Tables of earlier releases: they make the start better and cost nothing.

    Raises:
        InvalidValue: If the plan was made for another domain.

    >>> from farthing.adaptive.session_journal import MemoryJournal
    >>> from farthing.adaptive.query_session.session_plan import plan_query_session
    >>> axes = [Axis("sex", ("F", "M")), Axis("age", range(100))]
    >>> plan = plan_query_session(axes, epsilon=1.0, delta=1e-9, alpha=0.02, queries=1000, rows=50_000)
    >>> query_session = QuerySession(plan, axes, lambda: np.full((2, 100), 250), MemoryJournal())
    >>> answer = query_session.ask("sex = 'M' and age < 30")
    >>> abs(answer.value - 7500) <= answer.error <= 1000
    True
    >>> query_session.updates + query_session.updates_left == plan.updates, query_session.questions
    (True, 1)
    """

    def __init__(
        self,
        plan: QuerySessionPlan,
        axes: Sequence[Axis],
        cells: Callable[[], ArrayLike],
        journal: Journal,
        known: Sequence[KnownTable] = (),
    ) -> None:
        self._set_up(plan, axes, cells, journal, known, SYSTEM)

    @classmethod
    def _with_source(
        cls,
        plan: QuerySessionPlan,
        axes: Sequence[Axis],
        cells: Callable[[], ArrayLike],
        journal: Journal,
        source: Source,
        known: Sequence[KnownTable] = (),
    ) -> QuerySession:
        """The same with another source of randomness; only tests hand one over."""
        query_session = cls.__new__(cls)
        query_session._set_up(plan, axes, cells, journal, known, source)
        return query_session

    def _set_up(
        self,
        plan: QuerySessionPlan,
        axes: Sequence[Axis],
        cells: Callable[[], ArrayLike],
        journal: Journal,
        known: Sequence[KnownTable],
        source: Source,
    ) -> None:
        self.plan = plan
        self.axes = tuple(axes)
        self._shape = tuple(len(axis) for axis in self.axes)
        if plan.cells != np.prod(self._shape, dtype=object):
            raise InvalidValue("plan", f"{plan.cells:,} cells", "must be for the cells of these axes")
        self._fetch, self._journal, self._source = cells, journal, source
        self._lock = threading.RLock()
        self._private: Cells[np.int64] | None = None
        self._asking: OpenRound | None = None
        self._unrecorded: tuple[int, dict[str, Any]] | None = None
        self._round = 0  # the last round known to be begun by anybody
        self._own = 0  # the last round begun here
        self._rounds_used = 0  # how many finished rounds of the journal are part of the weights
        self._answers: dict[Any, tuple[str, Answer]] = {}
        self._notes_used = 0  # how many notes of the journal are among the answers
        self._texts: dict[str, Mask] = {}
        self._mask_cells = 0  # cells of these masks
        self._history: list[Step] = []
        self._asked = 0
        self._opening = journal.opening(lambda: noisy_start(plan, self._rows().values, source))
        self._read_notes()
        self._known = tuple(known)
        self._guess: tuple[Start, Cells[np.float64]] | None = None
        self._steps: list[tuple[Mask, int, float, float]] = []  # not yet part of the weights
        self._catch_up()

    @property
    def updates(self) -> int:
        """How many updates are used up, unfinished rounds of processes that ended included."""
        return self._round - (self._asking is not None)

    @property
    def updates_left(self) -> int:
        """How many answers may still be paid for."""
        return self.plan.updates - self.updates

    @property
    def running(self) -> bool:
        """Whether a round is under way here; if the process ends before it does, an update is lost."""
        return self._asking is not None

    @property
    def questions(self) -> int:
        """How many different questions were asked, as far as is known here (elsewhere: until the last update)."""
        return self._asked

    @property
    def history(self) -> tuple[Step, ...]:
        """The answers given by this object, in order."""
        return tuple(self._history)

    @property
    def answered(self) -> tuple[tuple[str, Answer], ...]:
        """The questions that `ask` answers again even when no update is left, as they were asked, with their answers.

        Paid and free ones of the whole session, as far as is known here.
        """
        with self._lock:
            return tuple(self._answers.values())

    def prepare(self) -> None:
        """Work out the first guess now, which the first question would wait for: many cells take their time."""
        with self._lock:
            self._weights()

    @property
    def caution(self) -> str | None:
        """A warning where the table seems to be another one than the plan speaks of; None if there is none.

        It is read off the noisy start, which is paid for and public. Rows that lack a value, or have one that the
        schema does not name, lie in no cell and are not counted.
        """
        with self._lock:
            start, _ = self._weights()
        if self.plan.opening is None or start.most >= self.plan.rows / 2:
            return None
        return (
            f"only about {(start.least + start.most) / 2:,.0f} rows lie in the cells of this session, and the plan "
            f"assumes {self.plan.rows:,}: compare the categories and types of the schema with the table, and which "
            "columns may lack values."
        )

    def ask(self, question: Question) -> Answer:
        """The number of rows for which a condition holds; free as long as it is near what was expected.

        The same question gets the same answer again, also in a script that is run again, and uses nothing up. When the
        updates are used up it is refused, unless it has an answer already; `estimate` still works.

        Args:
            question: A condition on the columns, or a mapping of columns to values or pairs.

        Returns:
            The answer, with its error and whether it used up an update.

        Raises:
            InvalidValue: If the question cannot be read.
            SessionEnded: If the updates are used up and the question has no answer yet.
        """
        with self._lock:
            mask = self._mask(question)
            if self._unrecorded is not None:
                self._record()
            if mask.fingerprint not in self._answers and not self.running:
                self._read_notes()  # before a round is begun for what another process got free of charge
            if mask.fingerprint not in self._answers:
                answer = self._new_answer(mask, question)
                self._answers.setdefault(mask.fingerprint, (_question_text(question), answer))
            return self._answers[mask.fingerprint][1]

    def key(self, question: Question) -> str:
        """A fingerprint of the cells that a question counts: equal for the same question in other words.

        Args:
            question: A condition on the columns.

        Returns:
            The fingerprint, in hexadecimal digits.

        Raises:
            InvalidValue: If the question cannot be read.
        """
        with self._lock:
            return self._mask(question).fingerprint

    def estimate(self, question: Question) -> Answer:
        """An answer from the weights alone: free, always available, and without a bound on its error.

        Args:
            question: A condition on the columns.

        Returns:
            The answer; its `error` is None.

        Raises:
            InvalidValue: If the question cannot be read.

        >>> from farthing.adaptive.session_journal import MemoryJournal
        >>> from farthing.adaptive.query_session.session_plan import plan_query_session
        >>> plan = plan_query_session(4, 1.0, 0.0, alpha=0.1, queries=10, rows=1000, start="none")
        >>> query_session = QuerySession(plan, [Axis("x", range(4))], lambda: [1000, 0, 0, 0], MemoryJournal())
        >>> print(query_session.estimate("x = 1"))
        about 250 (an estimate)
        """
        with self._lock:
            return Answer(self._expected(self._mask(question)), None, False, self.plan.rows)

    def _new_answer(self, mask: Mask, question: Question) -> Answer:
        asking = self._current_round()
        expected = self._expected(mask)
        comparison = asking.ask(int(self._rows().sum_under(mask)) - expected)
        self._asked += 1
        if comparison is None:
            answer = Answer(expected, self.plan.error, False, self.plan.rows)
            note = {"cells": mask.fingerprint, "question": _question_text(question), "value": expected}
            self._journal.note({**note, "asked": self._asked})
        else:
            self._asking = None
            record = {
                "mask": mask.record,
                "question": _question_text(question),
                "asked": self._asked,
                "expected": expected,
                "side": comparison.side,
                "gap": comparison.gap,
            }
            self._unrecorded = self._own, record
            self._record()
            _, answer = self._answers[mask.fingerprint]
        correction = abs(answer.value - expected)
        self._history.append(Step(self._asked, answer.value, answer.error or 0, answer.paid, self.updates, correction))
        return answer

    def _record(self) -> None:
        """Record what a round found, before it is shown; while the ledger is away, the next question tries again."""
        assert self._unrecorded is not None
        number, record = self._unrecorded
        try:
            self._journal.end(number, record)
        except LedgerUnavailable:
            raise
        except FarthingError:
            self._unrecorded = None  # somebody gave the round up: what it found is never shown
            raise
        self._unrecorded = None
        self._catch_up()

    def _current_round(self) -> OpenRound:
        """The round under way in this process, or the next one that nobody has begun."""
        if self._asking is not None and self._asking.here and not self._asking.over:
            return self._asking
        self._asking = None  # of a parent, or interrupted between its last answer and the record: it is lost
        self._catch_up()
        self._rows()  # fetch before the round is begun: a failure here costs nothing
        while self._round < self.plan.updates:
            number = self._round + 1
            mine = self._journal.begin(number)
            self._round = number
            if mine:
                self._own = number
                self._catch_up()
                self._asking = self.plan.round._start(self._source)
                return self._asking
        raise SessionEnded(
            "updates",
            self.plan.updates,
            "what can still be asked is in .answered, estimate() answers other questions without a promise, and a new "
            "session can be opened and paid for",
        )

    def _catch_up(self) -> None:
        """Bring in all finished rounds of the journal, of any process, in the order in which they were recorded."""
        finished = self._journal.history()
        for _, record in finished[self._rounds_used :]:
            self._apply_round(record)
        self._rounds_used = len(finished)
        self._round = max(self._round, self._journal.begun())

    def _read_notes(self) -> None:
        """Bring in what any process answered free of charge; the first answer to a question counts."""
        notes = self._journal.notes()
        for note in notes[self._notes_used :]:
            answer = Answer(int(note["value"]), self.plan.error, False, self.plan.rows)
            self._answers.setdefault(note["cells"], (note["question"], answer))
            self._asked = max(self._asked, int(note["asked"]))
        self._notes_used = len(notes)

    def _apply_round(self, record: Mapping[str, Any]) -> None:
        """Move the weights as a recorded round says, and keep its answer: public data only."""
        mask = Mask.read(record["mask"])
        side, gap, expected = int(record["side"]), int(record["gap"]), int(record["expected"])
        self._asked = max(self._asked, int(record["asked"]))
        plan = self.plan
        doublings = max(0, (self._asked - 1) // plan.queries).bit_length()
        thresholds, questions = plan.reaches(doublings)
        shift = centre_of_gap(plan.round.rates)
        least = expected + side * (plan.threshold + gap - questions)
        likely = expected + side * (plan.threshold + gap + shift)
        error = max(questions + shift, thresholds - shift)
        before = self._answers.get(mask.fingerprint)
        # Of two processes that paid for the same question, the first that recorded its answer is right for all.
        if before is None or not before[1].paid:
            self._answers[mask.fingerprint] = (
                record["question"],
                Answer(max(likely, 0), error, True, plan.rows),
            )
        self._steps.append((mask, side, float(least), float(likely)))

    def _weights(self) -> tuple[Start, Cells[np.float64]]:
        """The start, and the weights after all rounds that were brought in; worked out when somebody asks."""
        if self._guess is None:
            start = starting_weights(self.plan, self.axes, self._opening, self._known)
            self._guess = start, Cells(start.weights)
        start, weights = self._guess
        for mask, side, least, likely in self._steps:
            weight = float(weights.sum_under(mask))
            if weight > 0 and side * (least - weight) > 0:
                factor = goal_of_step(weight, least, likely) / weight
                weights = Cells(stepped(weights.values, mask.counted, factor, start.least, start.most))
        self._guess, self._steps = (start, weights), []
        return self._guess

    def _expected(self, mask: Mask) -> int:
        _, weights = self._weights()
        return round(float(weights.sum_under(mask)))

    def _mask(self, question: Question) -> Mask:
        if not isinstance(question, str):
            return Mask.of(question, self.axes)
        mask = self._texts.get(question)
        if mask is None:
            mask = Mask.of(question, self.axes)
            self._mask_cells += mask.counted.size
            if len(self._texts) >= _MOST_TEXTS or self._mask_cells > _MOST_KEPT:
                self._texts.clear()
                self._mask_cells = mask.counted.size
            self._texts[question] = mask
        return mask

    def _rows(self) -> Cells[np.int64]:
        if self._private is None:
            counts = checked_integers(self._fetch(), "cells")
            if counts.size != self.plan.cells:
                raise InvalidData("cells", "must be a count for each cell of the domain")
            self._private = Cells(np.maximum(counts, 0).reshape(self._shape))
        return self._private

    def __repr__(self) -> str:
        return (
            f"QuerySession({' x '.join(axis.column for axis in self.axes)}, {self.questions:,} questions, "
            f"{self.updates_left:,} of {self.plan.updates:,} updates left)"
        )


def _question_text(question: Question) -> str:
    """A question as a person would know it again."""
    if isinstance(question, str):
        return question
    return str(question) if isinstance(question, Mapping | tuple) else "an array of cells"
