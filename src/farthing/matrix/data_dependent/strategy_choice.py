"""`auto` and `dawa`: which strategy the data deserve, found out for a small part of the budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.error_distributions import ErrorDistribution
from farthing.inference.noise_terms import Term
from farthing.matrix.data_dependent.bucket_refinement import noisy_roughness, refined
from farthing.matrix.data_dependent.buckets import BucketEstimator, counted, level_of, nonnegative_histogram
from farthing.matrix.data_dependent.dawa import PARTITION_PART, dawa
from farthing.matrix.data_dependent.step_budget import Spending
from farthing.matrix.strategies.optimisation import cached_optimum, optimised
from farthing.matrix.strategies.strategy import Estimator, Floats, Integers
from farthing.matrix.strategies.strategy_noise import Priced
from farthing.matrix.strategies.strategy_registry import find, search_notice
from farthing.matrix.strategy_candidates import (
    Candidate,
    Candidates,
    StrategyPrices,
    error_distribution,
    reason_not_to_search,
    rmse_of,
    table_of,
    unweighted,
)
from farthing.matrix.workloads.interval_queries import Intervals
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms.randomness import Source

PILOT_PART = Fraction(3, 200)
"""Of the budget, for the number of rows."""
SHAPE_PART = Fraction(7, 200)
"""Of the budget, for how far many rows are from a few even pieces."""
MOST_CELLS = 4096
_FEW_ROWS = 65.0  # times the error of the best fixed strategy: up to so many rows, refinement does better
_PIECE = 0.5  # errors of the best fixed strategy that a piece must be worth
_SMOOTH = 12.5  # the same: up to so rough, `dawa` does better; found by trials on 45 shapes
_LONG = 1.45  # how much worse single cells must be than a tree: otherwise queries are too short for buckets
_HARD = 4.0  # noises of one count that a query must be off by: easier workloads are best measured as they are
_QUICK = ("identity", "hierarchical", "wavelet", "tree")
_BIASED = (
    "Neighbouring cells were measured together where that pays, so answers are biased towards an even spread within a "
    "bucket. Standard errors cover the noise and an estimate of this bias; a narrow spike may lie outside the interval."
)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a release with several steps ends in: cells, how well they are known, what was paid, and why."""

    strategy: str
    spending: Spending
    estimate: Floats
    centre: Floats
    estimator: Estimator
    distribution: Callable[[Floats], ErrorDistribution]
    candidates: Candidates
    note: str = ""


def suits_choice(workload: Workload) -> bool:
    """Whether the number of rows may change what is best: intervals of many cells, on a domain of moderate size.

    >>> from farthing.matrix.workloads import identity, prefix, ranges
    >>> suits_choice(prefix(1024)), suits_choice(identity(1024)), suits_choice(prefix(2**20))
    (True, False, False)
    >>> suits_choice(ranges(1024, [(10, 500)]))
    False
    """
    if not isinstance(workload, Intervals) or not workload.cells <= MOST_CELLS:
        return False
    single, tree = (
        math.sqrt(find(name, workload, "l1").unit_error(workload, "l1") / workload.queries)
        for name in ("identity", "tree")
    )
    # Few queries are best measured as they are: a row is then in as many of them as overlap.
    starts, stops = (np.bincount(ends, minlength=workload.cells + 1) for ends in workload.edges)
    direct = math.sqrt(2.0) * float(np.max(np.cumsum(starts - stops)))
    return tree * _LONG <= single and min(tree, direct) >= _HARD * math.sqrt(2.0)


def automatic(
    cells: Integers, workload: Workload, epsilon: float, delta: float, source: Source, *, nonnegative: bool
) -> Outcome:
    """A noisy number of rows decides: few rows are measured by refinement, many by the best fixed strategy.

    With Laplace noise there is a second look where rows are many: if they are a few even pieces, `dawa` measures
    them. Whichever way it goes, all looks together take no more than the whole budget: the cost is known before, and
    it is that of `Spending`.
    """
    spending = best_spending(workload, epsilon, delta)
    rest = 1 - PILOT_PART
    everything = np.array([0, workload.cells], dtype=np.int64)
    pilot = counted(cells, everything, spending.noise(level_of(everything, "rows"), PILOT_PART), source)
    prices = _fixed(workload, spending, rest)
    least = min(rmse_of(one, workload) for one in prices.values())
    rows = float(pilot.values[0])
    about = f"about {max(rows, 0.0):,.0f} rows (± {math.sqrt(pilot.variance):,.0f}), found for {float(PILOT_PART):.1%}"
    if rows <= _FEW_ROWS * least:
        estimator = refined(cells, workload, spending, rest, [pilot], source)
        table = _with_buckets("refined", estimator, workload, f"best for {about}", prices, spending, rest)
        spending.check([one.noise for one in estimator.measured])
        return _of_buckets("refined", estimator, spending, workload, table, nonnegative)
    looked = [pilot.noise]
    # A partition is chosen for a part of epsilon, which Gaussian noise has none of to spare.
    if spending.kind == "laplace":
        rest -= SHAPE_PART
        prices = _fixed(workload, spending, rest)
        price = max(1, round(_PIECE * least))
        shape = noisy_roughness(cells, price, spending, SHAPE_PART, source)
        looked.append(shape.noise)
        smooth = shape.rows <= _SMOOTH * least
        about += f", {'in' if smooth else 'not in'} a few even pieces, found for {float(SHAPE_PART):.1%}"
        if smooth:
            choosing = spending.choice(rest * PARTITION_PART)
            part = rest * (1 - PARTITION_PART)
            estimator = dawa(cells, workload, spending, choosing, part, [pilot], source)
            table = _with_buckets("dawa", estimator, workload, f"best for {about}", prices, spending, rest)
            spending.check([shape.noise, *(one.noise for one in estimator.measured)], [choosing])
            return _of_buckets("dawa", estimator, spending, workload, table, nonnegative)
    if cached_optimum(workload, spending.norm) is not None or not reason_not_to_search(workload, spending.norm):
        strategy = optimised(workload, spending.norm, progress=search_notice(workload))
        prices["optimised"] = spending.priced(strategy, workload, rest)
    name = min(prices, key=lambda one: prices[one].total_variance(workload))
    chosen = prices[name]
    spending.check([*looked, *(one for one in chosen.noises if one is not None)])
    centre = chosen.estimator.estimate(chosen.measure(cells, source))
    table = table_of(StrategyPrices(prices, {}), workload, name, f"least expected error for {about}")
    return Outcome(
        strategy=name,
        spending=spending,
        estimate=nonnegative_histogram(workload, centre) if nonnegative else centre,
        centre=centre,
        estimator=chosen.estimator,
        distribution=partial(error_distribution, chosen),
        candidates=table,
    )


def partitioned(
    cells: Integers,
    workload: Workload,
    epsilon: float,
    delta: float,
    source: Source,
    *,
    nonnegative: bool,
    part: Fraction = PARTITION_PART,
) -> Outcome:
    """DAWA: a private partition for a part of epsilon, then counts of its buckets."""
    name = "dawa" if part == PARTITION_PART else "dawa-published"
    if len(workload.shape) != 1 or not workload.cells <= MOST_CELLS:
        rule = f"must be for one axis of at most {MOST_CELLS:,} cells"
        raise InvalidValue("strategy", name, rule, 'use "auto"')
    spending = best_spending(workload, epsilon, delta, part)
    rest = 1 - (spending.chosen if spending.kind == "laplace" else Fraction(0))
    estimator = dawa(cells, workload, spending, spending.choosing, rest, [], source)
    spending.check([one.noise for one in estimator.measured])
    table = Candidates([_own_row(name, estimator, workload, "asked for")])
    return _of_buckets(name, estimator, spending, workload, table, nonnegative)


def best_spending(workload: Workload, epsilon: float, delta: float, chosen: Fraction = Fraction(0)) -> Spending:
    """Laplace noise, or with a delta Gaussian noise where a tree of it is expected to do better."""
    options = [Spending(epsilon, delta, "laplace", chosen)]
    try:
        options.append(Spending(epsilon, delta, "gaussian", chosen))
    except InvalidValue:  # no delta to speak of
        return options[0]
    errors = []
    for one in options:
        rest = 1 - (chosen if one.kind == "laplace" else Fraction(0))
        errors.append(one.priced(find("tree", workload, one.norm), workload, rest).total_variance(workload))
    return options[int(np.argmin(errors))]


def _of_buckets(
    name: str,
    estimator: BucketEstimator,
    spending: Spending,
    workload: Workload,
    table: Candidates,
    nonnegative: bool,
) -> Outcome:
    return Outcome(
        strategy=name,
        spending=spending,
        estimate=nonnegative_histogram(workload, estimator.centre) if nonnegative else estimator.centre,
        centre=estimator.centre,
        estimator=estimator,
        distribution=lambda query: ErrorDistribution([Term("normal", math.sqrt(estimator.variance(query)))]),
        candidates=table,
        note=_BIASED,
    )


def _fixed(workload: Workload, spending: Spending, part: Fraction) -> dict[str, Priced]:
    return {name: spending.priced(find(name, workload, spending.norm), workload, part) for name in _QUICK}


def _own_row(name: str, estimator: BucketEstimator, workload: Workload, why: str) -> Candidate:
    total = estimator.total_variance(unweighted(workload))
    reason = f"{why}; {len(estimator.edges) - 1:,} buckets"
    return Candidate(name, math.sqrt(total / workload.queries), reason, chosen=True)


def _with_buckets(
    name: str,
    estimator: BucketEstimator,
    workload: Workload,
    why: str,
    others: dict[str, Priced],
    spending: Spending,
    part: Fraction,
) -> Candidates:
    """The table: what was measured, and what fixed strategies would do; none is searched for only to be listed."""
    rivals = dict(others)
    known = cached_optimum(workload, spending.norm)
    if known is not None:
        rivals["optimised"] = spending.priced(known, workload, part)
    rows = [Candidate(other, rmse_of(one, workload), "without looking") for other, one in rivals.items()]
    rows.sort(key=lambda one: one.rmse or 0.0)
    if known is None:
        rows.append(Candidate("optimised", None, "not searched for: another one was better already"))
    return Candidates([_own_row(name, estimator, workload, why), *rows])
