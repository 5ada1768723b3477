"""`answer_workload`: many queries of one histogram, answered together for the price of few."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidData, InvalidValue, MissingExtra
from farthing.inference import Answer
from farthing.inference.answers import with_error
from farthing.inference.controlled_rounding import rounded
from farthing.inference.error_distributions import ErrorDistribution
from farthing.inference.noise_sums import checked_confidence
from farthing.matrix.data_dependent.buckets import MOST_IN_ORDER, nonnegative_histogram
from farthing.matrix.data_dependent.dawa import PARTITION_PART, PUBLISHED_PART
from farthing.matrix.data_dependent.strategy_choice import (
    PILOT_PART,
    SHAPE_PART,
    Outcome,
    automatic,
    partitioned,
    suits_choice,
)
from farthing.matrix.strategies.strategy import Estimator, Floats, Integers, Strategy
from farthing.matrix.strategies.strategy_noise import Priced, priced
from farthing.matrix.strategies.strategy_registry import CHOOSING, checked_name
from farthing.matrix.strategy_candidates import (
    Candidates,
    StrategyPrices,
    error_distribution,
    named,
    prices_with_optimum,
    table_of,
    unweighted,
)
from farthing.matrix.workloads.condition_language import Question, language
from farthing.matrix.workloads.interval_queries import AllRanges, Identity, Intervals, Prefix, Total
from farthing.matrix.workloads.nonnegative_histograms import nearest_in_answers
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms.mechanism import checked_integers
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.numerics import Bounds
from farthing.privacy.events import Event, checked_delta, checked_mechanism_epsilon

_MOST_ROWS = 2**20
_MOST_DRAWN = 2000
_MOST_LISTED = 8


@dataclass(frozen=True, eq=False, repr=False)
class WorkloadAnswers:
    """The answers of a workload, their standard errors, and the histogram they come from.

    Printed, ± is one standard error. `answers` and `standard_errors` have one number for each query, `estimate` is the
    reconstructed histogram. `query` asks anything else that the cells can answer: it is computed from what was released
    and costs nothing.

    Attributes:
        workload: The queries.
        strategy: The name of the strategy that was measured.
        event: What was released, for an accountant.
        cost: The proven epsilon at `delta`.
        delta: The delta of the release.
        cells: The reconstructed histogram, flat.
        centre: The unbiased histogram, where `cells` were moved to where the truth must lie.
        estimator: Gives the variance of any query of the cells.
        distribution: Maps a query to the distribution of its error.
        candidates: The strategies that were weighed.
        confidence: The confidence of intervals.
        note: What numbers cannot say.
        look: What looking at the data took of the budget, if there was a look.
        whole: Whether the cells were rounded to whole numbers.

    >>> from farthing.matrix import answer_workload, workloads
    >>> release = answer_workload([5, 0, 12, 3] * 16, workloads.prefix(64), epsilon=1.0, strategy="tree")
    >>> release.answers.shape, release.estimate.shape, release.strategy, release.cost.upper <= 1.0
    ((64,), (64,), 'tree', True)
    >>> bool(np.all(release.standard_errors > 0)), round(release.rmse, 1)
    (True, 5.8)
    >>> release.query("10 <= x < 25").name
    '10 <= x < 25'
    """

    workload: Workload
    strategy: str
    event: Event
    cost: Bounds
    delta: float
    cells: Floats
    centre: Floats
    estimator: Estimator
    distribution: Callable[[Floats], ErrorDistribution]
    candidates: Candidates
    confidence: float = 0.95
    note: str = ""
    look: str = ""
    whole: bool = field(default=False)

    @cached_property
    def answers(self) -> Floats:
        """The answer of every query, from the reconstructed histogram: they all agree with one another."""
        return self.workload.answers(self.cells)

    @cached_property
    def standard_errors(self) -> Floats:
        """The standard error of every answer, known before anything was measured.

        They are those of the unbiased estimate; moving it to be non-negative makes most answers better.
        """
        return np.sqrt(self.estimator.query_variances(self.workload))

    @property
    def estimate(self) -> NDArray[Any]:
        """The reconstructed histogram, shaped like the domain; whole numbers if they were asked for."""
        shaped = self.cells.reshape(self.workload.shape)
        return shaped.astype(np.int64) if self.whole else shaped

    @cached_property
    def rmse(self) -> float:
        """The expected root mean squared error over the queries."""
        return math.sqrt(self.estimator.total_variance(unweighted(self.workload)) / self.workload.queries)

    def query(self, what: Question, confidence: float | None = None) -> Answer:
        """One more question of the same cells: "10 <= age < 25", a pair, a mapping of columns, or coefficients.

        It is post-processing of what was released: free, at any time, as often as one likes.

        Args:
            what: A condition ("10 <= age < 25"), a pair (lower, upper), a mapping of columns, or one coefficient for
                each cell.
            confidence: The confidence of the interval; the release's own by default.

        Returns:
            The answer with its interval; `standard_errors` has one standard error.

        Raises:
            InvalidValue: If the question cannot be read, or needs cells that the strategy did not measure.
        """
        vector = language().coefficients(what, self.workload.columns, self.workload.shape)
        name = what if isinstance(what, str) else repr(what) if isinstance(what, tuple | dict) else "query"
        variance = self.estimator.variance(vector)
        if not math.isfinite(variance):
            way_out = 'use strategy="identity", or ask for it in the workload'
            raise InvalidValue("query", what, "needs cells that this strategy did not measure", way_out)
        answer = Answer.around(
            name,
            float(vector @ self.cells),
            self.distribution(vector),
            confidence=self.confidence if confidence is None else confidence,
            centre=float(vector @ self.centre),
            least=0.0 if bool(np.all(vector >= 0)) else -math.inf,
        )
        # What an interval rests on goes with it.
        return replace(answer, note=self.note) if self.note else answer

    def explain(self) -> str:
        """In words: what was asked, what was measured, what it costs, and why this strategy."""
        of_delta = f" at delta = {self.delta:.3g}" if self.delta > 0 else ""
        lines = [
            f"{self.workload.queries:,} queries over {self.workload.cells:,} cells, answered through {self.strategy!r}"
            f" for epsilon = {self.cost.upper:.4g}{of_delta}.",
            f"Expected error of a query: {self.rmse:.4g} (root mean square).",
            *([self.look] if self.look else []),
            *([self.note] if self.note else []),
            "",
            str(self.candidates),
        ]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """One row for each query: query, answer, standard_error. Refused above 2^20 queries."""
        if not self.workload.queries <= _MOST_ROWS:
            rule = f"must be at most {_MOST_ROWS:,} to be listed one by one"
            raise InvalidValue("queries", self.workload.queries, rule, "use answers and standard_errors")
        numbers = zip(self.answers.tolist(), self.standard_errors.tolist(), strict=True)
        return [
            {"query": self.workload.label(place), "answer": answer, "standard_error": error}
            for place, (answer, error) in enumerate(numbers)
        ]

    def to_frame(self) -> Any:
        """A tidy pandas table: query, answer, standard_error."""
        import pandas

        return pandas.DataFrame(self.records())

    def to_dict(self) -> dict[str, Any]:
        """Answers, errors, cost and candidates as plain data."""
        return {
            "strategy": self.strategy,
            "epsilon": self.cost.upper,
            "delta": self.delta,
            "event": self.event.to_dict(),
            "rmse": self.rmse,
            "columns": list(self.workload.columns),
            "estimate": self.estimate.tolist(),
            "answers": self.records(),
            "candidates": [
                {"strategy": one.strategy, "rmse": one.rmse, "why": one.why, "chosen": one.chosen}
                for one in self.candidates
            ],
            "note": self.note,
            "look": self.look,
        }

    def to_json(self) -> str:
        """The plain data of `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def plot(self) -> Any:
        """Answers with bands of two standard errors, as an Altair chart (needs the extra `plots`)."""
        try:
            import altair as module
        except ImportError:
            raise MissingExtra("pictures", "altair", "plots") from None
        altair: Any = module
        step = max(1, self.workload.queries // _MOST_DRAWN)
        places = range(0, self.workload.queries, step)
        rows = [
            {
                "query": place,
                "label": self.workload.label(place),
                "answer": float(self.answers[place]),
                "lower": float(self.answers[place] - 2 * self.standard_errors[place]),
                "upper": float(self.answers[place] + 2 * self.standard_errors[place]),
            }
            for place in places
        ]
        base = altair.Chart(altair.Data(values=rows)).encode(x=altair.X("query:Q", title="query"))
        band = base.mark_area(opacity=0.3, color="#56B4E9").encode(y=altair.Y("lower:Q", title="answer"), y2="upper:Q")
        line = base.mark_line(color="#0072B2").encode(
            y="answer:Q", tooltip=["label:N", "answer:Q", "lower:Q", "upper:Q"]
        )
        title = f"{self.workload.queries:,} answers through {self.strategy} for epsilon {self.cost.upper:.4g}"
        return (band + line).properties(title=title, width=520, height=260)

    def __len__(self) -> int:
        return self.workload.queries

    def __repr__(self) -> str:
        head = (
            f"{self.workload.queries:,} answers over {self.workload.cells:,} cells: strategy {self.strategy}, "
            f"epsilon {self.cost.upper:.4g}, expected error {self.rmse:.4g}"
        )
        if not self.workload.queries <= _MOST_ROWS:
            return head
        listed = min(_MOST_LISTED, self.workload.queries)
        labels = [self.workload.label(place) for place in range(listed)]
        width = max(map(len, labels))
        rows = [
            f"  {label:<{width}}  {with_error(float(answer), float(error))}"
            for label, answer, error in zip(labels, self.answers, self.standard_errors, strict=False)
        ]
        more = self.workload.queries - listed
        meaning = f"± is one standard error; query(...) gives an interval of {100 * self.confidence:.6g}%"
        return "\n".join([head, *rows, *([f"  ... and {more:,} more"] if more else []), f"  ({meaning})"])


def answer_workload(
    histogram: ArrayLike,
    workload: Workload,
    *,
    epsilon: float,
    delta: float = 0.0,
    strategy: str | Strategy = "auto",
    nonnegative: bool | None = None,
    integers: bool = False,
    confidence: float = 0.95,
) -> WorkloadAnswers:
    """Private answers to all queries of `workload` on a histogram of whole numbers.

    Counts so large that sums could overflow are clamped silently, because a message would reveal them: above 2^62 over
    the number of cells, for optimised strategies and Gaussian noise some thousand times lower (2^36 for 4,096 cells),
    and above 2^53 where they come as doubles.

    One call is one release that costs (epsilon, delta). It writes to no ledger: a `Study` does that.

    Adding or removing one row changes one cell by 1. Named strategies give unbiased answers by default; `auto` moves
    the histogram to where it must lie.

    Args:
        histogram: How many rows are in each cell: whole numbers, flat or shaped like the workload's domain.
        workload: The queries.
        epsilon: The epsilon of the release, > 0.
        delta: The delta of the release; with one, the noise may be Gaussian.
        strategy: What is measured: a strategy or its name. `auto` takes what has the least expected error; the answer's
            `candidates` lists the others that were weighed.
        nonnegative: Whether to move the histogram to where it must lie.
        integers: Whether to round the histogram, keeping its total.
        confidence: The confidence of intervals.

    Returns:
        The answers, their standard errors and the reconstructed histogram.

    Raises:
        InvalidData: If the histogram is not of whole numbers or has another shape.
        InvalidValue: If an argument is out of its range, or the strategy cannot answer the workload.

    >>> import numpy as np
    >>> from farthing.matrix import answer_workload, workloads
    >>> ages = np.array([3, 1, 4, 1, 5, 9, 2, 6] * 8)
    >>> release = answer_workload(ages, workloads.all_ranges(64), epsilon=0.5)
    >>> release.answers.shape, release.cost.upper <= 0.5
    ((2080,), True)
    >>> answer_workload([1.5, 2.0], workloads.prefix(2), epsilon=1.0)
    Traceback (most recent call last):
    farthing.errors.InvalidData: histogram: must be whole numbers, not float; count rows in cells first.
    """
    return _answer_workload(
        histogram,
        workload,
        epsilon=epsilon,
        delta=delta,
        strategy=strategy,
        nonnegative=nonnegative,
        integers=integers,
        confidence=confidence,
        source=SYSTEM,
    )


def _answer_workload(
    histogram: ArrayLike,
    workload: Workload,
    *,
    epsilon: float,
    delta: float = 0.0,
    strategy: str | Strategy = "auto",
    nonnegative: bool | None = None,
    integers: bool = False,
    confidence: float = 0.95,
    source: Source,
) -> WorkloadAnswers:
    """As `answer_workload`, with randomness from `source`; only tests hand over anything but the system's."""
    if not isinstance(workload, Workload):
        way_out = "make one with farthing.matrix.workloads, such as prefix(100)"
        raise InvalidValue("workload", type(workload).__name__, "must be a workload", way_out)
    budget, leak = checked_mechanism_epsilon(epsilon), checked_delta(delta)
    level = checked_confidence(confidence)
    name = strategy.name if isinstance(strategy, Strategy) else checked_name(strategy)
    settle = name in CHOOSING if nonnegative is None else _flag("nonnegative", nonnegative)
    whole = _flag("integers", integers)
    if name in _PARTITION_PARTS or (name == "auto" and suits_choice(workload)):
        part = _PARTITION_PARTS.get(name)
        steps = automatic if part is None else partial(partitioned, part=part)
        counts = checked_histogram(histogram, workload)
        outcome = steps(counts, workload, budget, leak, source, nonnegative=settle)
        return _answers_of(outcome, workload, name, delta=leak, confidence=level, whole=whole)
    chosen, candidates = _chosen(strategy, workload, budget, leak)
    cells = checked_histogram(histogram, workload)
    measured = chosen.measure(cells, source)
    centre = chosen.estimator.estimate(measured)
    estimate = _nonnegative(workload, chosen, centre, measured) if settle else centre
    if whole:
        estimate = _rounded(estimate)
    return WorkloadAnswers(
        workload=workload,
        strategy=chosen.strategy.name,
        event=chosen.event,
        cost=chosen.cost,
        delta=leak,
        cells=estimate,
        centre=centre,
        estimator=chosen.estimator,
        distribution=partial(error_distribution, chosen),
        candidates=candidates,
        confidence=level,
        whole=whole,
    )


_PARTITION_PARTS = {"dawa": PARTITION_PART, "dawa-published": PUBLISHED_PART}


def _answers_of(
    outcome: Outcome, workload: Workload, name: str, *, delta: float, confidence: float, whole: bool
) -> WorkloadAnswers:
    """The answers of steps that looked at the data first."""
    return WorkloadAnswers(
        workload=workload,
        strategy=outcome.strategy,
        event=outcome.spending.event,
        cost=outcome.spending.cost,
        delta=delta,
        cells=_rounded(outcome.estimate) if whole else outcome.estimate,
        centre=outcome.centre,
        estimator=outcome.estimator,
        distribution=outcome.distribution,
        candidates=outcome.candidates,
        confidence=confidence,
        note=outcome.note,
        look=_look(name, outcome),
        whole=whole,
    )


def _look(name: str, outcome: Outcome) -> str:
    """What looking at the data first took of the budget, in words; it follows from which way the release went."""
    spending = outcome.spending
    if name in _PARTITION_PARTS:
        took, what = _PARTITION_PARTS[name], "choosing which cells to join"
    elif spending.kind == "gaussian" or outcome.strategy == "refined":
        took, what = PILOT_PART, "a noisy number of rows, which decided what the rest measured"
    else:
        took = PILOT_PART + SHAPE_PART
        what = "a noisy number of rows and how evenly they are spread, which decided what the rest measured"
    if spending.kind == "laplace" or name in _PARTITION_PARTS:
        return f"Of epsilon = {spending.epsilon:.4g}, {float(took) * spending.epsilon:.4g} went to {what}."
    return f"Of mu squared, the measure of a budget of Gaussian noise, {float(took):.0%} went to {what}."


def checked_histogram(histogram: Any, workload: Workload) -> Integers:
    """The private counts, flat; what is wrong with them is reported without showing any."""
    try:
        cells = checked_integers(_counts(histogram), "histogram")
    except InvalidData as error:
        rule, way_out = error.rule, "count rows in cells first"
    else:
        fits = cells.size == workload.cells and (cells.ndim == 1 or cells.shape == workload.shape)
        if fits and not bool(np.any(cells < 0)):
            return cells.ravel()
        rule = "must be counts, none of them negative" if fits else f"must have {workload.cells:,} cells"
        shape = " x ".join(f"{size:,}" for size in workload.shape)
        way_out = "count rows in cells first" if fits else f"the workload is over {shape} cells"
    # Raised here, where no other error is being handled that might carry values along.
    raise InvalidData("histogram", rule, way_out)


def _counts(histogram: Any) -> Any:
    """Doubles that are all whole numbers, as many tools write counts, are taken as what they stand for."""
    if not (isinstance(histogram, np.ndarray) and histogram.dtype.kind == "f"):
        return histogram
    doubles = histogram.astype(np.float64)
    if not bool(np.all(np.isfinite(doubles) & (doubles == np.floor(doubles)))):
        return histogram
    # Clamped, not refused: one more row must never decide whether there is an answer. Beyond 2^53 doubles skip counts.
    return np.clip(doubles, -(2.0**53), 2.0**53).astype(np.int64)


def _chosen(strategy: str | Strategy, workload: Workload, epsilon: float, delta: float) -> tuple[Priced, Candidates]:
    """What is measured, and the table that says why; nothing private is looked at."""
    if isinstance(strategy, Strategy):
        if strategy.cells != workload.cells:
            rule = f"must be over {workload.cells:,} cells, as the workload is"
            raise InvalidValue("strategy", strategy.name, rule)
        name, one = strategy.name, priced(strategy, workload, epsilon, delta)
    else:
        name = checked_name(strategy)
        if name == "auto":
            return _least(workload, epsilon, delta)
        one = named(name, workload, epsilon, delta)
    _check_answerable(one, name, workload)
    instead = f"; no search does better than {one.strategy.name}"
    why = "asked for" + (instead if name == "optimised" and one.strategy.name != name else "")
    return one, table_of(StrategyPrices({name: one}, {}), workload, name, why)


def _least(workload: Workload, epsilon: float, delta: float) -> tuple[Priced, Candidates]:
    """The strategy of least expected error among those that suit the workload."""
    ones = prices_with_optimum(workload, epsilon, delta)
    if not ones.prices:
        reasons = "; ".join(f"{name} {reason}" for name, reason in ones.refused.items())
        raise InvalidValue("workload", workload.cells, f"suits no strategy: {reasons}")
    best = min(ones.prices, key=lambda name: ones.prices[name].total_variance(workload))
    _check_answerable(ones.prices[best], best, workload)
    return ones.prices[best], table_of(ones, workload, best)


def _check_answerable(one: Priced, name: str, workload: Workload) -> None:
    if not math.isfinite(one.total_variance(workload)):
        raise InvalidValue("strategy", name, "does not measure enough to answer this workload")


def _nonnegative(workload: Workload, chosen: Priced, centre: Floats, measured: list[Floats]) -> Floats:
    """Cells >= 0 whose answers move as little as possible; where nothing better is known, a fit to the measurements."""
    # In closed form, over any number of cells.
    if isinstance(workload, Prefix | AllRanges | Identity | Total):
        return nearest_in_answers(centre, workload)
    known = isinstance(workload, Intervals) and workload.cells <= MOST_IN_ORDER
    return nonnegative_histogram(workload, centre, [] if known else [chosen.estimator.nonnegative(measured)])


def _rounded(estimate: Floats) -> Floats:
    """Whole numbers near the estimate that keep its total, to the nearest whole number."""
    return np.asarray(rounded(estimate, total=round(float(estimate.sum()))), dtype=float)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidValue(name, value, "must be True or False")
    return bool(value)
