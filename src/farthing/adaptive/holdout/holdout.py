"""A holdout set that can be asked again and again without being overfitted: Thresholdout."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from farthing.adaptive.holdout.holdout_plan import LEVELS, HoldoutPlan, shared_plan
from farthing.adaptive.holdout.holdout_sums import STEPS, Statistic, rows_of
from farthing.adaptive.holdout.population_guarantee import HoldoutGuarantee
from farthing.adaptive.session_journal import Journal, MemoryJournal
from farthing.errors import InvalidValue, SessionEnded
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.mechanisms.threshold_session import ThresholdSession
from farthing.privacy.events import Event, checked_real


@dataclass(frozen=True)
class HoldoutAnswer:
    """A mean that may be believed: the training mean if it agrees with the holdout, else the holdout's with noise.

    Attributes:
        value: The mean.
        error: How far it may be from the population's mean, for all answers at once.
        paid: Whether it used up a correction.
        training: The mean over the training rows.

    >>> answer = HoldoutAnswer(value=0.5, error=0.07, paid=True, training=0.68)
    >>> round(answer.overfit, 2)
    0.18
    >>> print(answer)
    0.5 ± 0.07 (corrected: the training rows say 0.68)
    """

    value: float
    error: float
    paid: bool
    training: float

    @property
    def overfit(self) -> float:
        """By how much the training mean is above the answer; 0 for an answer that was let through."""
        return self.training - self.value

    def __str__(self) -> str:
        interval = f"{self.value:.3g} ± {self.error:.2g}"
        return f"{interval} (corrected: the training rows say {self.training:.3g})" if self.paid else interval


class Holdout:
    """Thresholdout: questions about a holdout set, as many as were planned for, each chosen after the last answer.

    `ask` compares a statistic's mean over `training` with that over `holdout`, both noisy: if they agree to within
    `threshold` the training mean is the answer and nothing is used up; otherwise the answer is the holdout mean with
    noise, and one of `corrections` is used up. The last one ends the session. `guarantee` says how far all answers may
    be from the population's means.

    Tables are anything the statistics can take: arrays, data frames, mappings of columns, tuples (X, y). If both are
    datasets, statistics are expressions ("age > 30", or a number), and no row leaves its engine.

    Args:
        training: The rows that may be looked at freely.
        holdout: The rows that only `ask` looks at.
        epsilon: The epsilon of the whole session, when one holdout row is replaced.
        delta: The delta of the whole session.
        queries: How many questions the guarantee holds for.
        corrections: How many answers may come from the holdout.
        threshold: How far the means may be apart; the plan chooses it by default.
        confidence: The probability that the guarantee holds for all answers at once.
        journal: Keeps the session beyond the process; in memory by default.

    Raises:
        InvalidValue: If an argument is out of its range, or there are too few rows for the noise.

    Statement:
        The answers of a session are (epsilon, delta)-DP in the holdout rows when one of them is replaced, however the
        questions are chosen; the training rows are taken to be known to the analyst.
        Proof: let c be the training mean in whole steps of 1/STEPS. The sum of floor(value STEPS) - c over the holdout
        rows is a whole number that moves by at most STEPS when a row is replaced, and so does its size. A round is a
        run of the sparse vector with one positive on the latter (see `SparseVector`), then one answer of the discrete
        Laplace mechanism on the former. All prices are fixed before the first question, so that the session is the
        adaptive composition of `plan.event`. Free answers and the rounding of paid ones to 1/256 are post-processing.
    Source: Dwork, Feldman, Hardt, Pitassi, Reingold & Roth, "Generalization in adaptive data analysis and holdout
        reuse", arXiv:1506.02629v2, Figure 1 (Thresholdout); Science 349 (2015), pages 636-638.
    Departs from source: exact discrete noise; prices by optimal composition; a budget of corrections that stops.
    Assumes: a statistic treats rows one by one; the holdout rows were not used to choose the questions otherwise.
    Direction: epsilon is an upper bound.
    Checked by: tests/unit/adaptive/holdout/test_holdout.py

    >>> import numpy as np
    >>> rows = np.random.default_rng(1).integers(0, 2, (20_000, 3)).astype(float)
    >>> session = Holdout(rows[:10_000], rows[10_000:], epsilon=1.0, queries=100, corrections=3)
    >>> answer = session.ask(lambda table: table[:, 0])
    >>> answer.paid, abs(answer.value - 0.5) < 0.02
    (False, True)
    >>> session
    Holdout(10000 rows, 1 of 100 questions asked, 3 of 3 corrections left)
    """

    def __init__(
        self,
        training: Any,
        holdout: Any,
        *,
        epsilon: float,
        delta: float = 0.0,
        queries: int = 1_000,
        corrections: int = 10,
        threshold: float | None = None,
        confidence: float = 0.95,
        journal: Journal | None = None,
    ) -> None:
        self._training, self._holdout = rows_of(training, holdout)
        self._plan = shared_plan(
            HoldoutPlan(
                self._holdout.rows,
                self._training.rows,
                epsilon,
                delta,
                queries,
                corrections,
                threshold,
                confidence,
            )
        )
        if not self._plan.threshold < 1:
            raise InvalidValue(
                "holdout",
                f"{self._plan.rows} rows",
                "must have more rows for so small an epsilon and so many corrections: the noise hides every difference",
                "plan for fewer corrections or more epsilon; Holdout.needed gives the rows that a tolerance needs",
            )
        self._journal: Journal = MemoryJournal() if journal is None else journal
        self._source: Source = SYSTEM
        self._lock = threading.Lock()
        self._session: ThresholdSession | None = None
        self._journal.opening(dict)  # nothing is drawn yet: a charge, if the journal makes any
        self._round = self._asked = 0
        self._answers: dict[str, HoldoutAnswer] = {}
        self._catch_up()

    @staticmethod
    def plan(
        rows: int,
        epsilon: float,
        delta: float = 0.0,
        *,
        queries: int = 1_000,
        corrections: int = 10,
        threshold: float | None = None,
        confidence: float = 0.95,
        training_rows: int | None = None,
    ) -> HoldoutPlan:
        """The prices and the guarantee of a session over so many holdout rows; no row is needed for that.

        Args:
            rows: How many holdout rows there are.
            epsilon: The epsilon of the whole session.
            delta: The delta of the whole session.
            queries: How many questions the guarantee holds for.
            corrections: How many answers may come from the holdout.
            threshold: How far the means may be apart; the plan chooses it by default.
            confidence: The probability that the guarantee holds for all answers at once.
            training_rows: How many training rows there are; as many as holdout rows by default.

        Returns:
            The plan.

        Raises:
            InvalidValue: If an argument is out of its range.

        >>> [round(Holdout.plan(rows, epsilon=1.0).guarantee.error_free, 2) for rows in (2_000, 20_000, 200_000)]
        [0.57, 0.11, 0.03]
        """
        other = rows if training_rows is None else training_rows
        return HoldoutPlan(rows, other, epsilon, delta, queries, corrections, threshold, confidence)

    @staticmethod
    def needed(
        tolerance: float,
        epsilon: float,
        delta: float = 0.0,
        *,
        queries: int = 1_000,
        corrections: int = 10,
        confidence: float = 0.95,
    ) -> int:
        """How many holdout rows (and as many training rows) it takes until all answers are within `tolerance`.

        Args:
            tolerance: How far an answer may be from the population's mean, between 0 and 1.
            epsilon: The epsilon of the whole session.
            delta: The delta of the whole session.
            queries: How many questions the guarantee holds for.
            corrections: How many answers may come from the holdout.
            confidence: The probability that the guarantee holds for all answers at once.

        Returns:
            The number of holdout rows.

        Raises:
            InvalidValue: If an argument is out of its range, or no number of rows is enough.

        >>> rows = Holdout.needed(0.05, epsilon=1.0)
        >>> Holdout.plan(rows, epsilon=1.0).guarantee.error_free <= 0.05
        True
        """
        wanted = checked_real(tolerance, "tolerance")
        if not 0 < wanted < 1:
            raise InvalidValue("tolerance", tolerance, "must be above 0 and below 1", "0.05 is usual")

        def enough(rows: int) -> bool:
            plan = HoldoutPlan(rows, rows, epsilon, delta, queries, corrections, None, confidence)
            return max(plan.guarantee.error_free, plan.guarantee.error_paid) <= wanted

        high = 16
        while not enough(high):
            if high >= 2**41:
                raise InvalidValue(
                    "tolerance",
                    tolerance,
                    "is smaller than any number of rows can reach",
                    "ask for 0.005 or more",
                )
            high *= 2
        low = high // 2
        while high - low > max(1, high >> 10):  # to a thousandth, and never too few
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def ask(self, statistic: Statistic | str) -> HoldoutAnswer:
        """The mean of `statistic`, from the training rows if the holdout agrees, else from the holdout with noise.

        An expression that was asked before gets the same answer, also in a script that is run again, and uses nothing
        up. (Functions cannot be compared.)

        Args:
            statistic: A function of a table that gives each row a number in [0, 1], out of that row alone (values
                beyond are clamped, NaN counts as 0); for datasets an expression.

        Returns:
            The mean, with its error and whether it used up a correction.

        Raises:
            InvalidData: If the statistic does not give one number for each row.
            SessionEnded: If the questions or the corrections are used up.
        """
        plan = self._plan
        words = self._training.words(statistic)
        if words is None:
            self._refuse_if_over()
        centre = self._training.total(statistic) // plan.training_rows
        key = None if words is None else hashlib.sha256(f"{centre} {words}".encode()).hexdigest()
        with self._lock:
            if key is not None and key not in self._answers and self._session is None:
                self._catch_up()
            if key in self._answers:
                return self._answers[key]
        self._refuse_if_over()
        excess = self._holdout.total(statistic) - plan.rows * centre
        with self._lock:
            if key in self._answers:  # while the rows were read
                return self._answers[key]
            self._refuse_if_over()
            session = self._running()
            self._asked += 1
            about = {"asked": self._asked, "centre": centre, "key": key}
            if session._ask_steps(abs(excess)):
                about["level"] = self._corrected_level(centre, excess, about)
            elif key is not None:
                self._journal.note(about)
            return self._answer(about)

    def _answer(self, about: Mapping[str, Any]) -> HoldoutAnswer:
        """The answer that was recorded or noted, kept for when the same is asked again."""
        training, guarantee, level = about["centre"] / STEPS, self._plan.guarantee, about.get("level")
        if level is None:
            answer = HoldoutAnswer(training, guarantee.error_free, paid=False, training=training)
        else:
            answer = HoldoutAnswer(level / LEVELS, guarantee.error_paid, paid=True, training=training)
        return answer if about.get("key") is None else self._answers.setdefault(about["key"], answer)

    def _catch_up(self) -> None:
        """What was asked and answered in this session, by whichever process."""
        recorded = self._journal.history()
        self._round = max([self._round, *(number for number, _ in recorded)])
        for about in [*(record for _, record in recorded), *self._journal.notes()]:
            self._asked = max(self._asked, int(about["asked"]))
            if about.get("key") is not None:  # earlier versions did not record what was asked
                self._answer(about)

    def _corrected_level(self, centre: int, excess: int, about: Mapping[str, Any]) -> int:
        """A noisy mean of the holdout, in whole levels, recorded before anybody sees it; the round is over."""
        self._session = None
        noisy = self._plan.measurement._answer(excess, self._source)
        mean = (Fraction(noisy, self._plan.rows) + centre) / STEPS
        level = min(max(round(mean * LEVELS), 0), LEVELS)
        self._journal.end(self._round, {**about, "level": level})
        return level

    def _running(self) -> ThresholdSession:
        """The round at hand, or the next that nobody has begun."""
        while self._session is None or self._session.stopped:  # stopped: interrupted before it was recorded
            if self._round >= self._plan.corrections:
                raise self._over()
            is_ours = self._journal.begin(self._round + 1)
            self._round += 1
            if is_ours:
                self._session = self._plan.comparison.start(self._plan.threshold_steps, self._source)
        return self._session

    def _refuse_if_over(self) -> None:
        if self._session is None and self._round >= self._plan.corrections:
            raise self._over()
        if self._asked >= self._plan.queries:
            raise SessionEnded(
                "questions",
                self._plan.queries,
                "plan for more next time: the guarantee grows only with their logarithm",
            )

    def _over(self) -> SessionEnded:
        return SessionEnded(
            "corrections",
            self._plan.corrections,
            "earlier answers stand; continue with fresh holdout rows, or plan for more corrections next time",
        )

    @property
    def guarantee(self) -> HoldoutGuarantee:
        """How far the answers may be from the population's means; print it."""
        return self._plan.guarantee

    @property
    def event(self) -> Event:
        """What the whole session costs in privacy of the holdout rows, asked or not."""
        return self._plan.event

    @property
    def threshold(self) -> float:
        """How far a training mean may be from the holdout's before it is corrected."""
        return self._plan.threshold

    @property
    def questions(self) -> int:
        """How many questions were asked, as far as is known here."""
        return self._asked

    @property
    def corrections_left(self) -> int:
        """How many corrections may still be made, the one that is waited for included."""
        return self._plan.corrections - self._round + (self._session is not None)

    def __repr__(self) -> str:
        return (
            f"Holdout({self._plan.rows} rows, {self._asked} of {self._plan.queries} questions asked, "
            f"{self.corrections_left} of {self._plan.corrections} corrections left)"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a holdout session cannot be copied or pickled: a copy would answer with the same noise")
