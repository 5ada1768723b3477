"""What a session of the query session will cost and promise, from public facts and before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from farthing.accounting import calibrate
from farthing.adaptive.query_session.initial_measurements import Opening, composed
from farthing.adaptive.query_session.multiplicative_weights import most_updates, updates_needed
from farthing.adaptive.query_session.session_rounds import TwoSidedThreshold, reach_of_noise
from farthing.errors import Infeasible, InvalidValue
from farthing.mechanisms import DiscreteGaussian, DiscreteLaplace
from farthing.numerics.bounds import ceiling
from farthing.privacy.events import (
    ApproxDP,
    Composed,
    Event,
    GaussianNoise,
    checked_count,
    checked_delta,
    checked_mechanism_epsilon,
    checked_real,
)


@dataclass(frozen=True, slots=True)
class SplitBudget:
    """The better of Laplace and Gaussian noise on every answer, and how far the worst answer is off.

    Attributes:
        mechanism: "Laplace" or "Gaussian".
        standard_error: The standard error of every answer, in rows.
        error: How far the worst answer is off, in rows.

    >>> split_budget(1.0, 1e-9, 10_000, 1, 0.95).mechanism
    'Gaussian'
    """

    mechanism: str
    standard_error: float
    error: int


def split_budget(epsilon: float, delta: float, queries: int, sensitivity: int, confidence: float) -> SplitBudget:
    """The least error of all `queries` answers at once, under optimal composition and with discrete noise.

    >>> split = split_budget(1.0, 0.0, 1, 1, 0.95)
    >>> split.mechanism, round(split.standard_error, 3), split.error
    ('Laplace', 1.357, 3)
    """
    each = epsilon / queries
    if delta > 0 and queries > 1:
        each = calibrate(
            lambda parameter: [Composed(((ApproxDP(parameter), queries),))],
            epsilon,
            delta,
            direction="epsilon",
            bracket=(each * (1 - 1e-9), 1.1 * epsilon),
            tolerance=1e-6,
        ).parameter
    laplace = DiscreteLaplace(each, sensitivity, cells=queries)
    choices = [("Laplace", laplace.standard_error, laplace.error(confidence, every_cell=True))]
    if delta > 0:
        # By the curve of continuous noise: that of noise as narrow as a step rises and falls.
        multiplier = calibrate(
            lambda parameter: [Composed(((GaussianNoise(parameter), queries),))], epsilon, delta
        ).parameter
        gaussian = DiscreteGaussian(multiplier * sensitivity, 1, cells=queries)
        choices.append(("Gaussian", gaussian.standard_error, gaussian.error(confidence, every_cell=True)))
    name, standard_error, error = min(choices, key=lambda choice: choice[2])
    return SplitBudget(name, standard_error, math.ceil(error))


MOST_CELLS = 2**22
STARTS = ("auto", "cells", "none")
GUARANTEED: Final = "guaranteed"
"""In place of alpha: the smallest for which all questions are answered, whatever they are."""

# Of epsilon for the start: a good start saves more questions than more updates would.
_SHARES = (
    0.75,
    0.5,
    0.25,
)
_ENOUGH = 2  # rounds, where there is a choice
_FAINT = 0.8  # of the error: a start off by more than that on a common question leaves most of the work to updates
_ROOM = 0.4  # of alpha * rows: the error that every update is sure to find
_FEW = 2  # updates: hardly enough for two sittings
_PARTS = 2**16
_MOST_UPDATES = 2**16
_LEAST_EPSILON = 1e-100  # below it noise may reach further than a double; far above it no answer is of any use
_LARGEST = 2**53  # numbers of rows and questions stay exact as doubles
_START_WORDS = ("blocks of cells", "tables of one column", "tables of two columns")


@dataclass(frozen=True, slots=True)
class QuerySessionPlan:
    """The prices and promises of one session, all fixed before the first question.

    Attributes:
        cells: How many cells the domain has.
        epsilon: The epsilon of the whole session.
        delta: The delta of the whole session.
        alpha: The accuracy that was asked for, as a part of `rows`.
        queries: How many questions the errors hold for.
        rows: About how many rows there are; public.
        sensitivity: How far neighbours' cells can be apart in l1.
        confidence: The probability that all errors hold at once.
        start: "cells" if the session starts from noisy cells, "none" if from even weights.
        opening: The noisy cells and tables that it starts from, if it does.
        updates: How many updates there are.
        round_epsilon: The epsilon of one update.
        threshold_parts: How many of 2^16 parts of a round's epsilon go to the noise of its thresholds.
        threshold: Where a round's noise is centred.
        error: The bound on every free answer, in rows.
        paid_error: The bound on every paid answer, in rows.
        least_gain: The error that every update is sure to find, with the same probability.
        most_updates: The number of updates that can then be needed at all.
        split_budget: What the same budget would give if it were divided over the questions.
        guaranteed: Whether its updates suffice for all of its questions, whatever is asked.
        warnings: What to think about before opening the session.

    >>> from farthing.adaptive.query_session.session_plan import plan_query_session
    >>> plan = plan_query_session(2**16, epsilon=1.0, delta=1e-9, alpha=0.01, queries=10_000, rows=100_000)
    >>> plan.start, round(plan.start_epsilon, 4), plan.updates >= 3, plan.error <= 1000
    ('cells', 0.5625, True, True)
    >>> from farthing.accounting import compose
    >>> compose([plan.event]).epsilon_at(1e-9).upper <= 1.0
    True
    """

    cells: int
    epsilon: float
    delta: float
    alpha: float
    queries: int
    rows: int
    sensitivity: int
    confidence: float
    start: str
    opening: Opening | None
    updates: int
    round_epsilon: float
    threshold_parts: int
    threshold: int
    error: int
    paid_error: int
    least_gain: int
    most_updates: int
    split_budget: SplitBudget
    guaranteed: bool = False
    warnings: tuple[str, ...] = field(default=(), compare=False)  # why its price protects little, if it does

    def __post_init__(self) -> None:
        # Read back from JSON, parts are mappings.
        if isinstance(self.opening, Mapping):
            object.__setattr__(self, "opening", Opening(**self.opening))
        if isinstance(self.split_budget, Mapping):
            object.__setattr__(self, "split_budget", SplitBudget(**self.split_budget))

    @property
    def start_epsilon(self) -> float:
        """Epsilon of the noise on every cell at the start; 0 for a start from nothing."""
        return 0.0 if self.opening is None else self.opening.cell_epsilon

    @property
    def event(self) -> Event:
        """What the whole session costs; charge it once, before the opening."""
        opening = [] if self.opening is None else self.opening.events(self.sensitivity, self.delta, self.cells)
        return composed(opening, ApproxDP(self.round_epsilon), self.updates)

    @property
    def round(self) -> TwoSidedThreshold:
        """The mechanism of one round: the comparison of questions with a threshold."""
        return TwoSidedThreshold(self.round_epsilon, self.threshold, self.sensitivity, self.threshold_parts)

    @property
    def updates_needed(self) -> int:
        """The number of updates that can be needed at all, as sharply as it is proven."""
        return updates_needed(self.cells, self.rows, self.alpha, self.least_gain, even=self.opening is None)

    @property
    def start_error(self) -> float:
        """The noise of the start on a question about half of the cells, at first sight: one standard error, in rows.

        What is made of the start is nearer than that where the table has structure that shows.
        """
        if self.opening is None:
            return math.inf
        return math.sqrt(self.opening.of_cells(self.sensitivity, self.cells).variance * self.cells / 2)

    @property
    def caution(self) -> str | None:
        """A warning where the updates are likely to be used up long before the questions; None if there is none.

        >>> plan_query_session(2**16, 1.0, 1e-9, alpha=0.01, queries=10_000, rows=100_000).caution
        >>> print(plan_query_session(2**16, 1.0, 1e-9, alpha=0.003, queries=10_000, rows=100_000).caution)
        alpha is small for this domain: ...
        """
        if self.guaranteed or self.start_error <= _FAINT * self.error:
            return None
        known = "" if self.opening is None else f", and the start may be off by {self.start_error:,.0f}"
        return (
            f"alpha is small for this domain: {self.error:,} rows are promised{known}. Questions that the start gets "
            f"wrong may use up the updates ({self.updates:,}) after a few dozen questions; a larger alpha, fewer "
            "columns or wider bins last longer."
        )

    @property
    def guarantee(self) -> str | None:
        """What a guaranteed session promises about its end, and what that rests on; None if it is not guaranteed."""
        if not self.guaranteed:
            return None
        most = math.floor((1 + self.alpha) * self.rows)
        return (
            f"no questions use up the updates before {self.queries:,} are answered, in one sitting, if there are at "
            f"most {most:,} rows"
        )

    @property
    def is_outdone(self) -> bool:
        """Whether separate noisy counts of as many questions would be nearer for the same price."""
        return self.split_budget.error < self.error

    def reaches(self, doublings: int = 0) -> tuple[int, int]:
        """How far the noises of thresholds and questions go, for 2^doublings times the planned questions.

        Half of what may fail is for the thresholds, a quarter for the planned questions, an eighth for as many
        again, and so on: the promise covers all of them, however many come.

        Args:
            doublings: How often the number of planned questions is doubled.

        Returns:
            The reach of the thresholds' noise and that of the questions' noise.
        """
        return _reaches(self.round.rates, self.updates, self.queries, self.confidence, doublings)

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready data, by which a session is known again; warnings are no part of it."""
        # Plans of earlier versions have no word on a guarantee.
        left_out = {"warnings"} if self.guaranteed else {"warnings", "guaranteed"}
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    def __str__(self) -> str:
        percent = f"{self.confidence:.4g}".removeprefix("0.")
        start = (
            "all cells equal"
            if self.opening is None
            else f"{_START_WORDS[self.opening.order]} and all cells, these with epsilon {self.start_epsilon:.3g}"
        )
        guaranteed = (f"  guaranteed        {self.guarantee}",) if self.guaranteed else ()
        needed = min(self.updates_needed, self.most_updates)
        enough = "as many as can be needed" if self.guaranteed else f"the theorem needs at most {needed:,}"
        lines = (
            f"query session over {self.cells:,} cells, epsilon {self.epsilon:.3g}, delta {self.delta:.3g}",
            f"  start             {start}",
            f"  updates           {self.updates:,}, epsilon {self.round_epsilon:.3g} each ({enough})",
            f"  free answers      within {self.error:,} of about {self.rows:,} rows",
            f"  paid answers      within {self.paid_error:,}",
            f"  confidence        0.{percent}, for {self.queries:,} questions at once",
            *guaranteed,
            f"  a split budget    within {self.split_budget.error:,} ({self.split_budget.mechanism})"
            + (": better than this, for questions known in advance" if self.is_outdone else ""),
        )
        cautions = [self.caution] if self.caution else []
        if self.updates <= _FEW and not self.guaranteed:
            cautions.append(
                "few updates: each process that asks uses one up when it ends, so ask everything in one sitting."
            )
        cautions_and_warnings = [f"  caution           {words}" for words in cautions]
        cautions_and_warnings += [f"  warning           {words}" for words in self.warnings]
        return "\n".join((*lines, *cautions_and_warnings))


def plan_query_session(
    domain: Sequence[Sized] | int,
    epsilon: float,
    delta: float,
    alpha: float,
    queries: int,
    rows: int,
    sensitivity: int = 1,
    updates: int | None = None,
    start: str = "auto",
    confidence: float = 0.95,
) -> QuerySessionPlan:
    """The plan of a session over a public domain: its axes, or the number of its cells.

    Args:
        domain: The axes of the domain, or the number of its cells.
        epsilon: The epsilon of the whole session.
        delta: The delta of the whole session.
        alpha: The accuracy, as a part of `rows`.
        queries: How many questions the errors hold for.
        rows: How many rows there are: a public number or guess.
        sensitivity: How far neighbours' cells can be apart in l1.
        updates: How many updates; by default as many rounds as leave room for `alpha`, at most those the theorem needs.
        start: "cells", "none", or "auto" for the better one.
        confidence: The probability that all errors hold at once.

    Returns:
        The plan.

    Raises:
        Infeasible: If no division of the budget reaches `alpha`.
        InvalidValue: If an argument is out of its range.

    >>> print(plan_query_session(4096, epsilon=1.0, delta=1e-9, alpha=0.02, queries=1000, rows=50_000))
    query session over 4,096 cells, ...
    >>> plan_query_session(4096, epsilon=1.0, delta=1e-9, alpha=1e-4, queries=1000, rows=50_000)
    Traceback (most recent call last):
        ...
    farthing.errors.Infeasible: alpha=0.0001: must be at least ... for epsilon=1 and about 50,000 rows; ...
    """
    facts = _Facts(
        shape=_checked_shape(domain),
        epsilon=_checked_epsilon(epsilon),
        delta=checked_delta(delta),
        alpha=_checked_part(alpha, "alpha"),
        queries=_at_least_one(queries, "queries"),
        rows=_at_least_one(rows, "rows"),
        sensitivity=_at_least_one(sensitivity, "sensitivity"),
        confidence=_checked_part(confidence, "confidence"),
    )
    if start not in STARTS:
        raise InvalidValue("start", start, f"must be one of {', '.join(STARTS)}")
    wanted = None if updates is None else _at_least_one(updates, "updates")
    if wanted is not None and wanted > _MOST_UPDATES:
        raise InvalidValue("updates", updates, f"must be at most {_MOST_UPDATES:,}")
    shares = {"auto": (*_SHARES, 0.0), "cells": _SHARES, "none": (0.0,)}[start]
    for least in (_ENOUGH, 1):
        for share in shares:
            rounds = facts.most_rounds(share, wanted)
            if rounds >= (wanted or least) and (share or least == 1 or start == "none"):
                return facts.plan(share, rounds)
    raise facts.refusal(_SHARES[-1] if start == "auto" else shares[-1], wanted)


def plan_guaranteed_session(
    domain: Sequence[Sized] | int,
    epsilon: float,
    delta: float,
    queries: int,
    rows: int,
    sensitivity: int = 1,
    confidence: float = 0.95,
) -> QuerySessionPlan:
    """The session with the smallest alpha that cannot end before all its questions are answered, whatever they are.

    Args:
        domain: The axes of the domain, or the number of its cells.
        epsilon: The epsilon of the whole session.
        delta: The delta of the whole session.
        queries: How many questions, each of which may depend on all answers before it.
        rows: How many rows there are: a public number or guess.
        sensitivity: How far neighbours' cells can be apart in l1.
        confidence: The probability that all answers are within alpha * rows.

    Returns:
        The plan: `alpha` is the smallest, rounded up to three digits, and `updates` covers all that can be needed;
        `guarantee` says so, and what it rests on.

    Raises:
        Infeasible: If no alpha below 1 can be guaranteed.
        InvalidValue: If an argument is out of its range.

    Statement:
        A session from even weights, with R updates of which each finds an error of at least g rows (`least_gain`, what
        alpha N leaves of the noise of thresholds and questions), never ends early if R >= `updates_needed`: about
        4 (N / g)^2 ln K, but for factors of 1 + alpha. g is at least 0.4 alpha N. It cannot end before its last
        question either if R >= `queries`, since a question uses up at most one update.
    Source: `updates_needed`; Hardt & Rothblum 2010, Theorem 1.1, without constants.
    Assumes: at most (1 + alpha) times `rows` rows; a start without earlier releases; one process that asks all of the
        questions: a restart uses up an update.
    Direction: alpha upward, by less than a hundredth.
    Checked by: tests/theorems/test_multiplicative_weights_updates.py

    >>> plan = plan_guaranteed_session(256, epsilon=1.0, delta=0.0, queries=1000, rows=10_000_000)
    >>> plan.alpha, plan.updates, plan.start
    (0.0..., 1000, 'none')
    """
    facts = _Facts(
        shape=_checked_shape(domain),
        epsilon=_checked_epsilon(epsilon),
        delta=checked_delta(delta),
        alpha=0.99,
        queries=_at_least_one(queries, "queries"),
        rows=_at_least_one(rows, "rows"),
        sensitivity=_at_least_one(sensitivity, "sensitivity"),
        confidence=_checked_part(confidence, "confidence"),
    )
    if not facts.enough_rounds():
        raise Infeasible(
            f"epsilon={facts.epsilon:.3g}: must be larger for {facts.rows:,} rows: no alpha below 1 can be guaranteed "
            "for every question; raise epsilon, ask fewer questions, take fewer cells, or give alpha as a number: then "
            "updates may run out.",
            blocking=("epsilon",),
            closest=None,
            epsilon=facts.epsilon,
        )
    low, high = 1 / (facts.rows + 1), 0.99
    while high > low * 1.005:
        middle = float(ceiling(math.sqrt(low * high), 3))
        if not low < middle < high:
            break
        low, high = (low, middle) if replace(facts, alpha=middle).enough_rounds() else (middle, high)
    best = replace(facts, alpha=high)
    return replace(best.plan(0.0, best.enough_rounds()), guaranteed=True)


@dataclass(frozen=True, slots=True)
class _Facts:
    """The public facts of a session."""

    shape: tuple[int, ...]
    epsilon: float
    delta: float
    alpha: float
    queries: int
    rows: int
    sensitivity: int
    confidence: float

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def most(self) -> int:
        """The error allowed, in rows."""
        return math.floor(self.alpha * self.rows)

    def most_rounds(self, share: float, wanted: int | None) -> int:
        """The largest useful number of rounds that leaves room for alpha; or `wanted` if that does, or 0."""
        if wanted is not None:
            return wanted if self._room(share, wanted) else 0
        low, high = 0, 1
        while high <= _MOST_UPDATES and self._useful(share, high):
            low, high = high, 2 * high
        high = min(high, _MOST_UPDATES + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._useful(share, middle) else (low, middle)
        return low

    def enough_rounds(self) -> int:
        """The least number of rounds, from even weights, that can be needed with so many; 0 if there is none."""
        rounds = 1
        while rounds <= _MOST_UPDATES:
            least = self._room(0.0, rounds)
            if not least:
                return 0
            # With more rounds each has less of the budget and finds only larger errors, so that more are needed.
            needed = min(self.queries, updates_needed(self.cells, self.rows, self.alpha, least, even=True))
            if needed <= rounds:
                return rounds
            rounds = needed
        return 0

    def _useful(self, share: float, rounds: int) -> bool:
        """Whether there is room for alpha with so many rounds, and the theorem does not rule them out."""
        least = self._room(share, rounds)
        return least > 0 and rounds <= most_updates(self.cells, self.rows, self.alpha, least)

    def _room(self, share: float, rounds: int) -> int:
        """The error that every update is sure to find with so many rounds; 0 if that is too little."""
        *_, thresholds, questions = self._round(share, rounds)
        room = self.most - thresholds - questions
        return room + 1 if room >= max(1, _ROOM * self.most) else 0

    def _round(self, share: float, rounds: int) -> tuple[float, int, int, int]:
        """Epsilon of a round, the parts of it for its thresholds, and how far both noises reach."""
        each = self._epsilon_of_round(share, rounds)
        unproven = 1 - self.confidence
        # The sum of both reaches is least when the rates are as the roots of the logarithms.
        thresholds = math.sqrt(math.log(4 * rounds / unproven))
        questions = math.sqrt(math.log(8 * self.queries / unproven))
        parts = round(_PARTS * thresholds / (thresholds + questions))
        rates = TwoSidedThreshold(each, 0, self.sensitivity, parts).rates
        return each, parts, *_reaches(rates, rounds, self.queries, self.confidence)

    def _epsilon_of_round(self, share: float, rounds: int) -> float:
        plain = (1 - share) * self.epsilon / rounds
        if self.delta == 0:
            return plain * (1 - 1e-12)  # for the rounding of sums
        opening = self.opening(share)
        parts = [] if opening is None else opening.events(self.sensitivity, self.delta, self.cells)
        return calibrate(
            lambda each: [composed(parts, ApproxDP(each), rounds)],
            self.epsilon,
            self.delta,
            direction="epsilon",
            bracket=(plain / 64, plain * 64),
            tolerance=1e-4,
        ).parameter

    def opening(self, share: float) -> Opening | None:
        """What is measured at the start, for this part of epsilon."""
        if not share:
            return None
        return _opening(self.shape, share * self.epsilon, self.delta, self.sensitivity)

    def plan(self, share: float, rounds: int) -> QuerySessionPlan:
        each, parts, thresholds, questions = self._round(share, rounds)
        threshold = self.most - thresholds + 1
        least = threshold - questions
        shift = centre_of_gap(TwoSidedThreshold(each, 0, self.sensitivity, parts).rates)
        return QuerySessionPlan(
            cells=self.cells,
            epsilon=self.epsilon,
            delta=self.delta,
            alpha=self.alpha,
            queries=self.queries,
            rows=self.rows,
            sensitivity=self.sensitivity,
            confidence=self.confidence,
            start="cells" if share else "none",
            opening=self.opening(share),
            updates=rounds,
            round_epsilon=each,
            threshold_parts=parts,
            threshold=threshold,
            error=self.most,
            paid_error=max(questions + shift, thresholds - shift),
            least_gain=least,
            most_updates=most_updates(self.cells, self.rows, self.alpha, least),
            split_budget=split_budget(self.epsilon, self.delta, self.queries, self.sensitivity, self.confidence),
        )

    def refusal(self, share: float, wanted: int | None) -> Infeasible:
        rounds = wanted or 1
        *_, thresholds, questions = self._round(share, rounds)
        fewest = max(thresholds + questions + 1, math.ceil((thresholds + questions) / (1 - _ROOM)))
        # As it is told, so that it is kept when it is typed back.
        least = float(ceiling(fewest / self.rows, 3))
        while least < 1 and not replace(self, alpha=least)._room(share, rounds):
            least = float(ceiling(least * (1 + 1e-9), 3))
        several = "" if rounds == 1 else f" and {rounds:,} updates"
        return Infeasible(
            f"alpha={self.alpha:.6g}: must be at least {least:.3g} for epsilon={self.epsilon:.3g} and about "
            f"{self.rows:,} rows{several}; raise alpha or epsilon, or ask for fewer queries or updates.",
            blocking=("alpha",),
            closest=least,
            epsilon=self.epsilon,
        )


@lru_cache(maxsize=64)
def _opening(shape: tuple[int, ...], epsilon: float, delta: float, sensitivity: int) -> Opening:
    return Opening.chosen(shape, epsilon, delta, sensitivity)


def centre_of_gap(rates: tuple[Fraction, Fraction]) -> int:
    """What a gap is short of on average: the mean of the threshold's noise less that of the question's."""
    threshold, question = (1 / math.expm1(float(rate)) for rate in rates)
    return round(threshold - question)


def _reaches(
    rates: tuple[Fraction, Fraction], rounds: int, queries: int, confidence: float, doublings: int = 0
) -> tuple[int, int]:
    failure = 1 - confidence
    return (
        reach_of_noise(rates[0], 2 * rounds, failure / 2),
        reach_of_noise(rates[1], 2 * queries << doublings, failure / (4 << doublings)),
    )


def _checked_shape(domain: Sequence[Sized] | int) -> tuple[int, ...]:
    shape = (domain,) if isinstance(domain, int) else tuple(len(axis) for axis in domain)
    cells = math.prod(shape)
    if not 1 <= checked_count(cells, "cells") <= MOST_CELLS:
        raise InvalidValue(
            "cells",
            cells,
            f"must be from 1 to {MOST_CELLS:,}",
            "take fewer columns or wider bins, or make a synthetic table, which has no such limit",
        )
    return shape


def _checked_epsilon(value: object) -> float:
    number = checked_mechanism_epsilon(value)
    if not number >= _LEAST_EPSILON:
        raise InvalidValue("epsilon", value, f"must be at least {_LEAST_EPSILON:g}")
    return number


def _checked_part(value: object, name: str) -> float:
    number = checked_real(value, name)
    if not 0 < number < 1:
        raise InvalidValue(name, value, "must be above 0 and below 1")
    return number


def _at_least_one(value: object, name: str) -> int:
    number = checked_count(value, name)
    if not 1 <= number <= _LARGEST:
        raise InvalidValue(name, value, "must be a whole number from 1 to 2^53")
    return number
