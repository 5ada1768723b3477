"""Which levels to measure for a list of marginals, and how to divide a budget over them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.inference.consistent_marginals import (
    Subset,
    Tables,
    closure,
    from_residuals,
    largest,
    residual,
    summed,
)
from farthing.inference.noise_terms import Floats
from farthing.matrix.strategies.marginals.marginal_levels import MarginalLevel
from farthing.matrix.strategies.marginals.residual_noise import (
    best_shares,
    cell_coefficient,
    cell_coefficients,
    most_even_weights,
    precisions,
)
from farthing.matrix.strategies.strategy import Integers, Norm
from farthing.mechanisms.mechanism import checked_integers
from farthing.privacy.events import checked_count, checked_real


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """A plan with known noise.

    Args:
        plan: What is measured.
        variances: The variance of every number of each level; infinite where nothing is measured.

    Statement:
        Every level that determines the residual of T does so with covariance (v / precision) times the same projector,
        and independently of the other residuals. The mean weighted by precision / v is the least-squares estimate,
        with variance 1 / sum(precision / v) times the projector. A sum q over the cells of marginal S then has variance
            sum over T in S of variance_T * |residual(q summed onto T)|^2 / prod(n_i: i in S but not in T)^2.
    Source: Aitken 1935 for each residual; the residuals are orthogonal (Xiao, He, Zhang & Kifer, arXiv:2305.08175v2).
    Assumes: independent noises of the stated variances.
    Direction: equality, up to rounding of about 1e-12.
    Checked by: tests/theorems/test_residual_variances.py

    >>> from farthing.matrix.strategies.marginals import plan_marginals
    >>> plan = plan_marginals([2, 3], [(0, 1)])
    >>> fit = plan.fit([100.0] * len(plan.levels))
    >>> fit.variance_per_cell((0, 1)), fit.variance((0,), [1.0, 0.0])
    (9.25925925925926, 50.0)
    """

    plan: MarginalPlan
    variances: Floats

    @cached_property
    def residual_variances(self) -> dict[Subset, float]:
        """The variance of each residual, to be multiplied by its projector; infinite where it is not determined."""
        known = precisions(self.plan.levels, self.plan.parts) @ (1.0 / self.variances)
        with np.errstate(divide="ignore"):
            return dict(zip(self.plan.parts, (1.0 / known).tolist(), strict=True))

    def residuals(self, measured: Sequence[NDArray[Any]]) -> Tables:
        """The least-squares residual of every set of columns that was measured.

        Args:
            measured: The measured numbers, one array for each level.

        Returns:
            One table for each set of columns.
        """
        if len(measured) != len(self.plan.levels):
            raise InvalidValue("measured", len(measured), f"must be {len(self.plan.levels)}, one for each level")
        sums: Tables = {}
        for level, numbers, variance in zip(self.plan.levels, measured, self.variances, strict=True):
            if not variance < math.inf:
                continue
            for part in self.plan.parts_of(level):
                own = level.residual(numbers, part) * (level.precision(part) / variance)
                sums[part] = sums[part] + own if part in sums else own
        return {part: residual(total) * self.residual_variances[part] for part, total in sums.items()}

    def estimate(self, measured: Sequence[NDArray[Any]], subsets: Iterable[Subset] | None = None) -> Tables:
        """The tables of some marginals; any two agree where they overlap.

        Args:
            measured: The measured numbers, one array for each level.
            subsets: Which marginals; those planned by default.

        Returns:
            One table for each marginal.
        """
        chosen = self.plan.subsets if subsets is None else tuple(subsets)
        for subset in chosen:
            self.variance_per_cell(subset)  # refuses what was not measured
        residuals = self.residuals(measured)
        return {subset: from_residuals(self.plan.sizes, residuals, subset) for subset in chosen}

    def variance_per_cell(self, subset: Subset) -> float:
        """The variance of each cell of a marginal: the same for all of its cells.

        Args:
            subset: The columns of the marginal.

        Returns:
            The variance.
        """
        live = self.plan.live(subset)
        return math.fsum(
            cell_coefficient(self.plan.sizes, live, part) * self._variance_of(part) for part in closure([live])
        )

    def variance(self, subset: Subset, query: ArrayLike) -> float:
        """The variance of sum(query * table) for the table of `subset`.

        Args:
            subset: The columns of the marginal.
            query: One coefficient for each cell of its table.

        Returns:
            The variance.
        """
        weights = np.asarray(query, dtype=float)
        shape = tuple(self.plan.sizes[column] for column in subset)
        if weights.shape != shape:
            raise InvalidValue("query", weights.shape, f"must have the shape {shape} of the marginal")
        total = 0.0
        for part in closure([self.plan.live(subset)]):
            own = residual(summed(weights, subset, part))
            size = float(np.sum(own * own))
            if size > 1e-24 * float(np.sum(weights * weights)):
                away = math.prod(self.plan.sizes[column] for column in subset if column not in part)
                total += self._variance_of(part) * size / float(away) ** 2
        return total

    @property
    def total_variance(self) -> float:
        """The sum over all planned marginals and their cells of the variance."""
        return float(self.plan.energies(weighted=False) @ [self._variance_of(part) for part in self.plan.asked])

    def _variance_of(self, part: Subset) -> float:
        variance = self.residual_variances.get(part, math.inf)
        if not variance < math.inf:
            names = ", ".join(self.plan.columns[column] for column in part)
            raise InvalidValue(
                "columns",
                names,
                "must be within one of the marginals that were measured",
                "plan one that has them",
            )
        return variance


Objective = Literal["sum", "max"]
MOST_CELLS = 2**26  # of one marginal
_MOST_LEVELS = 500
LARGEST_JOINT = 2**20  # cells of a table over all columns, where measuring that one is tried as well


@dataclass(frozen=True, eq=False)
class MarginalPlan:
    """What is measured for some marginals: levels, and the share of the budget of each. Made by `plan_marginals`.

    Attributes:
        columns: The names of the columns.
        sizes: How many values each has.
        subsets: The marginals that were asked for.
        weights: How much each of them matters.
        norm: "l1" for Laplace noise, "l2" for Gaussian noise.
        levels: What is measured.
        shares: The share of the budget of each level.

    >>> plan = plan_marginals({"sex": 2, "age": 10, "region": 5}, [("sex", "age"), ("age", "region")])
    >>> [level.plain.name for level in plan.levels]
    ['total', '0', '1', '2', '0 x 1', '1 x 2']
    >>> plan.shares.round(3)
    array([0.025, 0.021, 0.226, 0.054, 0.191, 0.483])
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    subsets: tuple[Subset, ...]
    weights: tuple[float, ...]
    norm: Norm
    levels: tuple[MarginalLevel, ...]
    shares: Floats

    @cached_property
    def asked(self) -> tuple[Subset, ...]:
        """The sets of columns whose residuals the marginals consist of."""
        return closure(map(self.live, self.subsets))

    @cached_property
    def parts(self) -> tuple[Subset, ...]:
        """The sets whose residuals the levels determine: more than asked where a larger table is measured."""
        return closure([level.subset for level in self.levels])

    def live(self, subset: Subset) -> Subset:
        """The columns of `subset` that have more than one value; the others say nothing.

        Args:
            subset: A set of columns.

        Returns:
            Those of them that say something.
        """
        for column in subset:
            if not 0 <= column < len(self.sizes):
                raise InvalidValue("column", column, f"must be 0 to {len(self.sizes) - 1}")
        return tuple(column for column in subset if self.sizes[column] > 1)

    def parts_of(self, level: MarginalLevel) -> list[Subset]:
        """The sets whose residuals this level determines.

        Args:
            level: A level of the plan.

        Returns:
            The sets.
        """
        return [part for part in closure([level.subset]) if set(level.contrasts) <= set(part)]

    def energies(self, *, weighted: bool = True) -> Floats:
        """By how much the variance of each residual asked for enters the (weighted) sum over all cells.

        Args:
            weighted: Whether the weights of the marginals count.

        Returns:
            One number for each residual.
        """
        return energies_of(self.sizes, self.subsets, self.weights if weighted else None, self.asked)

    @cached_property
    def tables_needed(self) -> tuple[Subset, ...]:
        """The largest tables that the levels are made from: give these to `measure_exact`, and no others are needed."""
        return largest(level.subset for level in self.levels)

    def measure_exact(self, tables: Mapping[Subset, NDArray[Any]]) -> list[Integers]:
        """The true numbers of every level from whole-number tables: private, for a mechanism and nothing else.

        Tables of fewer columns are summed from any given table that has them.

        Args:
            tables: Private tables of whole numbers by their columns.

        Returns:
            One array for each level.

        Raises:
            InvalidValue: If no table has the columns of a level.
        """
        arrays = {subset: checked_integers(table, "tables") for subset, table in tables.items()}
        for subset, table in arrays.items():
            shape = tuple(self.sizes[column] for column in subset)
            if table.shape != shape:
                raise InvalidData("tables", f"must have the shape {shape} for the columns {subset}")
        smallest: dict[Subset, Subset] = {}  # for every set of columns, the smallest table that has them
        for columns in sorted(arrays, key=lambda own: (-arrays[own].size, own)):
            smallest.update((part, columns) for part in closure([columns]))
        numbers = []
        for level in self.levels:
            if level.subset not in smallest:
                raise InvalidValue("tables", sorted(tables), f"must have a table with the columns {level.subset}")
            columns = smallest[level.subset]
            numbers.append(level.exact(_sums(arrays[columns], columns, level.subset)))
        return numbers

    def unit_variances(self) -> Floats:
        """The noise variance of each level at epsilon = 1 (l1) or mu = 1 (l2), for continuous noise."""
        with np.errstate(divide="ignore"):
            if self.norm == "l1":
                return np.array([2.0 * level.plain.l1**2 for level in self.levels]) / self.shares**2
            return np.array([float(level.plain.l2_squared) for level in self.levels]) / self.shares

    def fit(self, variances: Sequence[float] | Floats) -> MarginalFit:
        """The estimator when every number of level l has noise of variance `variances[l]`.

        Args:
            variances: One variance for each level; infinite where it is not measured.

        Returns:
            The estimator.
        """
        numbers = np.asarray(variances, dtype=float)
        if numbers.shape != (len(self.levels),):
            raise InvalidValue("variances", numbers.shape, f"must be {len(self.levels)}, one for each level")
        if not np.all(numbers > 0):
            raise InvalidValue("variances", variances, "must be numbers > 0")
        return MarginalFit(self, numbers)


def plan_marginals(
    sizes: Mapping[str, int] | Sequence[int],
    subsets: Sequence[Sequence[int | str]],
    *,
    norm: Norm = "l2",
    weights: Sequence[float] | None = None,
    objective: Objective = "sum",
    largest_table: int = LARGEST_JOINT,
) -> MarginalPlan:
    """What to measure so that the marginals of `subsets` have the least error.

    Nothing here is ever as large as the table over all columns.

    Args:
        sizes: How many values each column has, by name or in order.
        subsets: The marginals, each by its columns.
        norm: "l2" plans for Gaussian noise and is the optimum; "l1" plans for Laplace noise, the best of several
            families.
        weights: How much each marginal matters; all the same by default.
        objective: "sum" makes the sum of the variances of all cells least, each marginal times its weight; "max" makes
            the largest weight * variance of any cell least.
        largest_table: Limits the tables of more columns than were asked for, which Laplace noise may be better off
            with.

    Returns:
        The plan.

    Raises:
        InvalidValue: If an argument is out of its range.

    >>> plan = plan_marginals([2, 2, 2], [(0, 1), (1, 2)])
    >>> plan.measure_exact({(0, 1): np.array([[3, 0], [2, 5]]), (1, 2): np.array([[1, 4], [5, 0]])})
    [array([10]), array([-4]), array([0]), array([2]), array([6]), array([-8])]
    >>> [level.subset for level in plan_marginals([2, 2, 2], [(0, 1), (1, 2)], norm="l1").levels]
    [(0, 1, 2)]
    """
    columns, lengths = _checked_sizes(sizes)
    sets = _checked_subsets(subsets, columns, lengths)
    if norm not in ("l1", "l2"):
        raise InvalidValue("norm", norm, 'must be "l1" or "l2"')
    if objective not in ("sum", "max"):
        raise InvalidValue("objective", objective, 'must be "sum" or "max"')
    importance = _checked_weights(weights, len(sets))
    live = [tuple(c for c in subset if lengths[c] > 1) for subset in sets]
    parts = closure(live)
    residual_levels = _levels(lengths, [(part, part) for part in parts])
    if objective == "max":
        # One price a residual stands for the levels of either norm: shares for l1 are then found for these weights.
        prices = np.array([math.prod(1.0 - 1.0 / lengths[c] for c in part) for part in parts])
        even = most_even_weights(cell_coefficients(lengths, sets, parts), np.array(importance), prices)
        counted = even * importance / [math.prod(lengths[c] for c in subset) for subset in sets]
    else:
        counted = np.array(importance)
    energies = energies_of(lengths, sets, counted, parts)
    if norm == "l2":
        levels = residual_levels
        shares = best_shares(levels, parts, energies, norm)
    else:
        levels, shares = min(
            (_tried(family, lengths, parts, energies) for family in _families(lengths, live, parts, largest_table)),
            key=lambda trial: trial[2],
        )[:2]
    places = [place for place, share in enumerate(shares) if share > 0]
    return MarginalPlan(
        columns,
        lengths,
        sets,
        tuple(map(float, importance)),
        norm,
        tuple(levels[place] for place in places),
        shares[places],
    )


def energies_of(
    sizes: Sequence[int],
    subsets: Sequence[Subset],
    weights: Sequence[float] | Floats | None,
    parts: Sequence[Subset],
) -> Floats:
    """The factor of each residual's variance in the weighted sum of the variances of all cells."""
    cells = np.array([float(math.prod(sizes[c] for c in subset)) for subset in subsets])
    counted = cells if weights is None else cells * np.asarray(weights)
    return np.asarray(cell_coefficients(sizes, subsets, parts).T @ counted)


def _sums(table: NDArray[Any], subset: Subset, onto: Subset) -> NDArray[Any]:
    """Sums of private counts, in Python's whole numbers where int64 might not hold them."""
    if table.size * int(np.abs(table).max(initial=0)) >= 2**62:
        table = table.astype(object)
    return summed(table, subset, onto)


def _levels(sizes: Sequence[int], wanted: Sequence[tuple[Subset, Subset]]) -> list[MarginalLevel]:
    return [MarginalLevel(subset, tuple(sizes[c] for c in subset), contrasts) for subset, contrasts in wanted]


def _families(
    sizes: Sequence[int], subsets: Sequence[Subset], parts: Sequence[Subset], largest_table: int
) -> list[list[MarginalLevel]]:
    """Sets of levels worth trying for Laplace noise, where no closed form is known.

    A contrast of two values costs no more than a cell and tells twice as much; one of more values costs more than it
    tells. So columns of two values are taken in contrasts or not, all others by cells.
    """
    binary = {column for column, n in enumerate(sizes) if n == 2}
    used = tuple(sorted({column for subset in subsets for column in subset}))
    families: list[list[tuple[Subset, Subset]]] = [
        [(subset, ()) for subset in largest(subsets)],
        [(subset, ()) for subset in parts],
        [(subset, tuple(c for c in subset if c in binary)) for subset in parts],
    ]
    if _cells(sizes, used) <= largest_table:
        families.append([(used, ())])
    wider = [*parts]
    # Tables of more columns tell about many marginals at once.
    for more in range(len(parts[-1]) + 1, len(used) + 1):
        wider += [subset for subset in combinations(used, more) if _cells(sizes, subset) <= largest_table]
        if len(wider) > _MOST_LEVELS:
            break
        families.append([(subset, ()) for subset in wider])
    unique = {tuple(dict.fromkeys(family)): None for family in families}
    return [_levels(sizes, list(family)) for family in unique]


def _cells(sizes: Sequence[int], subset: Subset) -> int:
    return math.prod(sizes[column] for column in subset)


def _tried(
    levels: list[MarginalLevel], sizes: Sequence[int], parts: Sequence[Subset], energies: Floats
) -> tuple[list[MarginalLevel], Floats, float]:
    shares = best_shares(levels, parts, energies, "l1")
    moved = np.array([float(level.plain.l1) for level in levels])
    known = precisions(levels, parts) @ (shares**2 / (2 * moved**2))
    return levels, shares, float(np.sum(energies / known))


def _checked_sizes(sizes: Mapping[str, int] | Sequence[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    named = sizes if isinstance(sizes, Mapping) else {f"x{place}": size for place, size in enumerate(sizes)}
    for name, size in named.items():
        if not checked_count(size, f"size of {name}") >= 1:
            raise InvalidValue(f"size of {name}", size, "must be a whole number >= 1")
    if not named:
        raise InvalidValue("sizes", sizes, "must name at least one column")
    return tuple(named), tuple(int(size) for size in named.values())


def _checked_subsets(
    subsets: Sequence[Sequence[int | str]], columns: tuple[str, ...], sizes: tuple[int, ...]
) -> tuple[Subset, ...]:
    place = {name: column for column, name in enumerate(columns)}
    distinct: dict[Subset, None] = {}
    for subset in subsets:
        wanted = (subset,) if isinstance(subset, str) else tuple(subset)
        for column in wanted:
            if not (column in place if isinstance(column, str) else 0 <= checked_count(column, "column") < len(sizes)):
                raise InvalidValue("column", column, f"must be one of {', '.join(columns)}")
        whole = tuple(sorted({place[c] if isinstance(c, str) else int(c) for c in wanted}))
        if len(whole) != len(wanted):
            raise InvalidValue("subset", subset, "must name each column once")
        cells = math.prod(sizes[c] for c in whole)
        if not cells <= MOST_CELLS:
            raise InvalidValue(
                "subset",
                subset,
                f"must have at most {MOST_CELLS:,} cells, not {cells:,}",
                "use fewer columns, or fewer values of them",
            )
        distinct[whole] = None
    if not distinct:
        raise InvalidValue("subsets", subsets, "must hold at least one marginal")
    return tuple(distinct)


def _checked_weights(weights: Sequence[float] | None, count: int) -> Floats:
    if weights is None:
        return np.ones(count)
    numbers = np.array([checked_real(weight, "weight") for weight in weights])
    if len(numbers) != count or not np.all((numbers > 0) & np.isfinite(numbers)):
        raise InvalidValue("weights", weights, f"must be {count} finite numbers > 0, one for each marginal")
    return numbers
