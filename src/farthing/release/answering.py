"""`answer_workload`: many queries of one histogram, answered together for the price of few."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidData, InvalidValue
from farthing.inference.noise_sums import checked_confidence
from farthing.inference.rounding import rounded
from farthing.mechanisms.base import checked_integers, checked_mechanism_epsilon
from farthing.mechanisms.randomness import SYSTEM, Source
from farthing.privacy.events import checked_delta
from farthing.release.answered import WorkloadAnswers
from farthing.release.candidates import Candidates, Weighed, named, table_of, weighed_at_best
from farthing.release.data_dependent.choice import (
    PILOT_PART,
    SHAPE_PART,
    Outcome,
    automatic,
    partitioned,
    suits_choice,
)
from farthing.release.data_dependent.dawa import PARTITION_PART
from farthing.release.data_dependent.settling import MOST_IN_ORDER, settled
from farthing.release.error_of_query import error_law
from farthing.release.strategies.base import Floats, Integers, Strategy
from farthing.release.strategies.pricing import Priced, priced
from farthing.release.strategies.registry import CHOOSING, checked_name
from farthing.release.workloads.base import Workload
from farthing.release.workloads.intervals import AllRanges, Identity, Intervals, Prefix, Total
from farthing.release.workloads.settling import nearest_in_answers


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

    `histogram` counts rows in cells (flat, or shaped like the workload's domain); adding or removing one row changes
    one cell by 1. `strategy` decides what is measured: `auto` takes what has the least expected error, and
    `found.candidates` tells which others were weighed. Named strategies give unbiased answers unless `nonnegative`
    moves the histogram to where it must lie; `auto` does so by itself. `integers` rounds it, keeping its total.

    Counts so large that sums could overflow are clamped, without a word, because a word would tell: above 2^62 over the
    number of cells, for optimised strategies and Gaussian noise some thousand times lower (2^36 for 4,096 cells), and
    above 2^53 where they come as doubles.

    One call is one release that costs (epsilon, delta). It writes to no ledger: a `Study` does that.

    >>> import numpy as np
    >>> from farthing.release import answer_workload, workloads
    >>> ages = np.array([3, 1, 4, 1, 5, 9, 2, 6] * 8)
    >>> found = answer_workload(ages, workloads.all_ranges(64), epsilon=0.5)
    >>> found.answers.shape, found.cost.upper <= 0.5
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
        way_out = "make one with farthing.release.workloads, such as prefix(100)"
        raise InvalidValue("workload", type(workload).__name__, "must be a workload", way_out)
    budget, leak = checked_mechanism_epsilon(epsilon), checked_delta(delta)
    level = checked_confidence(confidence)
    name = strategy.name if isinstance(strategy, Strategy) else checked_name(strategy)
    settle = name in CHOOSING if nonnegative is None else _flag("nonnegative", nonnegative)
    whole = _flag("integers", integers)
    if name == "dawa" or (name == "auto" and suits_choice(workload)):
        steps = partitioned if name == "dawa" else automatic
        outcome = steps(
            checked_histogram(histogram, workload), workload, budget, leak, source, nonnegative=settle
        )
        return WorkloadAnswers(
            workload=workload,
            strategy=outcome.strategy,
            event=outcome.spending.event,
            cost=outcome.spending.cost,
            delta=leak,
            cells=_rounded(outcome.estimate) if whole else outcome.estimate,
            centre=outcome.centre,
            estimator=outcome.estimator,
            law=outcome.law,
            candidates=outcome.candidates,
            confidence=level,
            note=outcome.note,
            look=_look(name, outcome),
            whole=whole,
        )
    chosen, candidates = _chosen(strategy, workload, budget, leak)
    cells = checked_histogram(histogram, workload)
    measured = chosen.measure(cells, source)
    centre = chosen.estimator.estimate(measured)
    estimate = _settled(workload, chosen, centre, measured) if settle else centre
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
        law=partial(error_law, chosen),
        candidates=candidates,
        confidence=level,
        whole=whole,
    )


def _look(name: str, outcome: Outcome) -> str:
    """What looking at the data first took of the budget, in words; it follows from which way the release went."""
    spending = outcome.spending
    if name == "dawa":
        took, what = PARTITION_PART, "choosing which cells to join"
    elif spending.kind == "gaussian" or outcome.strategy == "refined":
        took, what = PILOT_PART, "a noisy number of rows, which decided what the rest measured"
    else:
        took = PILOT_PART + SHAPE_PART
        what = "a noisy number of rows and how even they lie, which decided what the rest measured"
    if spending.kind == "laplace" or name == "dawa":
        return f"Of epsilon = {spending.epsilon:.4g}, {float(took) * spending.epsilon:.4g} went to {what}."
    return f"Of mu squared, which is how Gaussian noise counts its budget, {float(took):.0%} went to {what}."


def checked_histogram(histogram: Any, workload: Workload) -> Integers:
    """The private counts, flat; what is wrong with them is told without showing any."""
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


def _chosen(
    strategy: str | Strategy, workload: Workload, epsilon: float, delta: float
) -> tuple[Priced, Candidates]:
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
    return one, table_of(Weighed({name: one}, {}), workload, name, why)


def _least(workload: Workload, epsilon: float, delta: float) -> tuple[Priced, Candidates]:
    """The strategy of least expected error among those that suit the workload."""
    ones = weighed_at_best(workload, epsilon, delta)
    if not ones.found:
        reasons = "; ".join(f"{name} {reason}" for name, reason in ones.refused.items())
        raise InvalidValue("workload", workload.cells, f"suits no strategy: {reasons}")
    best = min(ones.found, key=lambda name: ones.found[name].total_variance(workload))
    _check_answerable(ones.found[best], best, workload)
    return ones.found[best], table_of(ones, workload, best)


def _check_answerable(one: Priced, name: str, workload: Workload) -> None:
    if not math.isfinite(one.total_variance(workload)):
        raise InvalidValue("strategy", name, "does not measure enough to answer this workload")


def _settled(workload: Workload, chosen: Priced, centre: Floats, measured: list[Floats]) -> Floats:
    """Cells >= 0 whose answers move as little as possible; where nothing better is known, a fit to the measurements."""
    if isinstance(
        workload, Prefix | AllRanges | Identity | Total
    ):  # in closed form, over any number of cells
        return nearest_in_answers(centre, workload)
    known = isinstance(workload, Intervals) and workload.cells <= MOST_IN_ORDER
    return settled(workload, centre, [] if known else [chosen.estimator.nonnegative(measured)])


def _rounded(estimate: Floats) -> Floats:
    """Whole numbers near the estimate that keep its total, to the nearest whole number."""
    return np.asarray(rounded(estimate, total=round(float(estimate.sum()))), dtype=float)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InvalidValue(name, value, "must be True or False")
    return bool(value)
