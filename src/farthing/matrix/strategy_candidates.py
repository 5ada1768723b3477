"""Which strategies were weighed for a workload, what each would do, and why one of them won."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.error_distributions import ErrorDistribution
from farthing.inference.noise_terms import Kind, Term
from farthing.matrix.strategies.marginal_strategy import marginal_tables
from farthing.matrix.strategies.optimisation import cached_optimum, optimised
from farthing.matrix.strategies.optimisation.p_identity_error import Progress
from farthing.matrix.strategies.strategy import Floats, Norm
from farthing.matrix.strategies.strategy_noise import LevelNoise, Priced, norm_of, priced
from farthing.matrix.strategies.strategy_registry import find, search_notice, suitable
from farthing.matrix.workloads.interval_queries import Identity, Total
from farthing.matrix.workloads.named_workloads import Product, Union
from farthing.matrix.workloads.workload import Workload
from farthing.mechanisms import DiscreteLaplace

_MOST_TERMS = 24


def error_distribution(one: Priced, query: Floats) -> ErrorDistribution:
    """The exact distribution where few noises decide; where thousands do, the small ones are taken as normal."""
    coefficients = one.estimator.coefficients(query)
    if coefficients is None:
        return ErrorDistribution([Term("normal", float(np.sqrt(one.estimator.variance(query))))])
    terms = [
        (noise, size, count)
        for noise, own in zip(one.noises, coefficients, strict=True)
        if noise is not None
        for size, count in _grouped(own)
    ]
    terms.sort(key=lambda term: -(term[1] ** 2) * term[0].variance)
    rest = sum(size**2 * noise.variance * count for noise, size, count in terms[_MOST_TERMS:])
    largest_terms = [
        Term(_kind(noise), _scale(noise), float(size / noise.finer), count)
        for noise, size, count in terms[:_MOST_TERMS]
    ]
    return ErrorDistribution([*largest_terms, *([Term("normal", float(np.sqrt(rest)))] if rest > 0 else [])])


def _grouped(coefficients: Floats) -> list[tuple[float, int]]:
    """Sizes of coefficients and how often each comes; those that are rounding are left out."""
    sizes = np.abs(np.ravel(coefficients))
    largest = float(sizes.max(initial=0.0))
    if not largest > 0:
        return []
    steps, counts = np.unique(np.rint(sizes[sizes > 1e-9 * largest] * (1e9 / largest)), return_counts=True)
    return list(zip((steps * (largest / 1e9)).tolist(), counts.tolist(), strict=True))


def _kind(noise: LevelNoise) -> Kind:
    return "laplace" if isinstance(noise.mechanism, DiscreteLaplace) else "gaussian"


def _scale(noise: LevelNoise) -> float:
    if isinstance(noise.mechanism, DiscreteLaplace):
        return noise.mechanism.scale
    return float(Fraction(noise.mechanism.noise_multiplier) * Fraction(noise.mechanism.l2_sensitivity))


_MOST_SEARCHED = {"l1": 4096, "l2": 512}  # cells: half a minute at most
_LONGEST_AXIS = 128
_MOST_PRODUCT_CELLS = 2**14


@dataclass(frozen=True, slots=True)
class Candidate:
    """One strategy: its expected root mean squared error a query (None if it was not worked out), and why.

    >>> Candidate("tree", 108.6, "least expected error", chosen=True).strategy
    'tree'
    """

    strategy: str
    rmse: float | None
    why: str
    chosen: bool = False


class Candidates(tuple[Candidate, ...]):
    """The strategies that were weighed, best first; prints as a table.

    >>> print(Candidates([Candidate("tree", 108.6, "least expected error", True), Candidate("dawa", None, "no")]))
      strategy  expected error  why
    * tree               108.6  least expected error
      dawa                   -  no
    """

    __slots__ = ()

    def __str__(self) -> str:
        errors = ["-" if one.rmse is None else f"{one.rmse:.4g}" for one in self]
        name = max([len("strategy"), *(len(one.strategy) for one in self)])
        number = max([len("expected error"), *map(len, errors)])
        lines = [f"  {'strategy':<{name}}  {'expected error':>{number}}  why"]
        for one, error in zip(self, errors, strict=True):
            mark = "*" if one.chosen else " "
            lines.append(f"{mark} {one.strategy:<{name}}  {error:>{number}}  {one.why}".rstrip())
        return "\n".join(lines)

    @property
    def chosen(self) -> Candidate:
        """The one that was used."""
        return next(one for one in self if one.chosen)


@dataclass(frozen=True, eq=False)
class StrategyPrices:
    """What was found for every name: priced strategies, or the reason why there is none."""

    prices: dict[str, Priced]
    refused: dict[str, str]


def named(name: str, workload: Workload, epsilon: float, delta: float) -> Priced:
    """The named strategy, at its best with Laplace noise or (with a delta) Gaussian noise."""
    if name == "optimised":
        return optimised_at_best(workload, epsilon, delta, search_notice(workload))
    candidates = [priced(find(name, workload, "l1"), workload, epsilon, delta, "laplace")]
    if delta > 0:
        with suppress(InvalidValue):  # noise too narrow for a proof: there is Laplace noise
            candidates.append(priced(find(name, workload, "l2"), workload, epsilon, delta, "gaussian"))
    return min(candidates, key=lambda one: one.total_variance(workload))


def optimised_at_best(workload: Workload, epsilon: float, delta: float, progress: Progress) -> Priced:
    """The optimised strategy with the noise that suits it best, or a plain one that does no worse.

    A search weighs continuous noise. With a large epsilon and few cells whole-number noise is narrower, and cells or
    blocks that are measured as they are gain by it.

    >>> from farthing.matrix.workloads import all_ranges
    >>> one = optimised_at_best(all_ranges(16), 1.0, 0.0, lambda fraction: None)
    >>> one.strategy.name, round(rmse_of(one, all_ranges(16)), 3)
    ('tree', 3.324)
    """
    candidates = [priced(optimised(workload, "l1", progress=progress), workload, epsilon, delta, "laplace")]
    if delta > 0:
        with suppress(InvalidValue):
            strategy = optimised(workload, "l2", progress=progress)
            candidates.append(priced(strategy, workload, epsilon, delta, "gaussian"))
    plain = "tree" if len(workload.shape) == 1 else "identity"
    with suppress(InvalidValue):
        candidates.append(named(plain, workload, epsilon, delta))
    return min(candidates, key=lambda one: one.total_variance(workload))


def prices_of_strategies(workload: Workload, epsilon: float, delta: float, names: Iterable[str] = ()) -> StrategyPrices:
    """Every strategy that suits the workload, or those of `names`; nothing is measured, nothing is spent."""
    prices: dict[str, Priced] = {}
    refused: dict[str, str] = {}
    for name in names or suitable(workload):
        try:
            prices[name] = named(name, workload, epsilon, delta)
        except InvalidValue as error:
            refused[name] = error.rule
    return StrategyPrices(prices, refused)


def prices_with_optimum(workload: Workload, epsilon: float, delta: float) -> StrategyPrices:
    """As `prices_of_strategies`, with an optimised strategy if it was found before or will be found in reasonable time.

    The search is for the kind of noise that does best so far.
    """
    ones = prices_of_strategies(workload, epsilon, delta)
    if not ones.prices:
        return ones
    best = min(ones.prices.values(), key=lambda one: one.total_variance(workload))
    norm = norm_of(best.kind)
    strategy = cached_optimum(workload, norm)
    reason = "" if strategy is not None else reason_not_to_search(workload, norm)
    if reason:
        return StrategyPrices(ones.prices, ones.refused | {"optimised": reason})
    try:
        if strategy is None:
            strategy = optimised(workload, norm, progress=search_notice(workload))
        price = priced(strategy, workload, epsilon, delta, best.kind)
    except InvalidValue as error:
        return StrategyPrices(ones.prices, ones.refused | {"optimised": error.rule})
    return StrategyPrices(ones.prices | {"optimised": price}, ones.refused)


def reason_not_to_search(workload: Workload, norm: Norm) -> str:
    """Why `auto` does not look for an optimised strategy by itself; empty if it does."""
    if isinstance(workload, Identity | Total):
        return "nothing is better than measuring the queries themselves"
    if len(workload.shape) == 1:
        most = _MOST_SEARCHED[norm]
        if workload.cells <= most:
            return ""
        return f'not looked for above {most:,} cells; strategy="optimised" finds it once and keeps it'
    if marginal_tables(workload) is not None:
        return "marginals have a best strategy of their own"
    if max(workload.shape) <= _LONGEST_AXIS and workload.cells <= _MOST_PRODUCT_CELLS:
        return ""
    return 'not looked for over so many cells; strategy="optimised" does'


def table_of(weighed_ones: StrategyPrices, workload: Workload, chosen: str, why: str = "") -> Candidates:
    """The table of what was weighed, best first."""
    totals = {name: one.total_variance(workload) for name, one in weighed_ones.prices.items()}
    least = min(totals, key=lambda name: totals[name])
    rows = []
    for name in sorted(totals, key=lambda one: totals[one]):
        ratio = math.sqrt(totals[name] / totals[least]) if totals[least] > 0 else 1.0
        reason = f"{ratio:.3g} times the error of {least}" if ratio >= 1.005 else f"as good as {least}"
        if name == least:
            reason = "least expected error"
        noise = " (Gaussian noise)" if weighed_ones.prices[name].kind == "gaussian" else ""
        if name == chosen and why:
            reason = why
        rows.append(Candidate(name, rmse_of(weighed_ones.prices[name], workload), reason + noise, name == chosen))
    rows += [Candidate(name, None, reason) for name, reason in weighed_ones.refused.items()]
    return Candidates(rows)


def rmse_of(one: Priced, workload: Workload) -> float:
    """The root mean squared error a query, whatever weights the parts of the workload have for choosing."""
    return math.sqrt(one.total_variance(unweighted(workload)) / workload.queries)


def unweighted(workload: Workload) -> Workload:
    """The same queries, all of the same importance: errors are those of the queries as they were asked.

    >>> from farthing.matrix.workloads import prefix, total, union
    >>> unweighted(union(prefix(3), total(3), weights=(1.0, 2.0))).weights
    (1.0, 1.0)
    """
    if isinstance(workload, Union):
        return Union(tuple(map(unweighted, workload.parts)), (1.0,) * len(workload.parts))
    if isinstance(workload, Product):
        return Product(tuple(map(unweighted, workload.factors)))
    return workload
