"""Tables from measurements: least squares residual by residual, and the variance of whatever is read off them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.marginals import Subset, Tables, closure, from_residuals, residual, summed
from farthing.inference.terms import Floats
from farthing.release.strategies.marginals.optimum import cell_coefficient
from farthing.release.strategies.marginals.shares import precisions

if TYPE_CHECKING:
    from farthing.release.strategies.marginals.plan import MarginalPlan


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """A plan with known noise: `variances[l]` is that of every number of level l; infinite where nothing is measured.

    Statement:
        Every level that determines the residual of T does so with covariance (v / precision) times the same projector,
        and independently of the other residuals. The mean weighted by precision / v is the least-squares estimate,
        with variance 1 / sum(precision / v) times the projector. A sum q over the cells of marginal S then has variance
            sum over T in S of variance_T * |residual(q summed onto T)|^2 / prod(n_i: i in S but not in T)^2.
    Source: Aitken 1935 for each residual; the residuals are orthogonal (Xiao, He, Zhang & Kifer, arXiv:2305.08175v2).
    Assumes: independent noises of the stated variances.
    Direction: equality, up to rounding of about 1e-12.
    Checked by: tests/theorems/test_residual_variances.py

    >>> from farthing.release.strategies.marginals import plan_marginals
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
        """The least-squares residual of every set of columns that was measured."""
        if len(measured) != len(self.plan.levels):
            raise InvalidValue(
                "measured", len(measured), f"must be {len(self.plan.levels)}, one for each level"
            )
        sums: Tables = {}
        for level, numbers, variance in zip(self.plan.levels, measured, self.variances, strict=True):
            if not variance < math.inf:
                continue
            for part in self.plan.parts_of(level):
                own = level.residual(numbers, part) * (level.precision(part) / variance)
                sums[part] = sums[part] + own if part in sums else own
        return {part: residual(total) * self.residual_variances[part] for part, total in sums.items()}

    def estimate(self, measured: Sequence[NDArray[Any]], subsets: Iterable[Subset] | None = None) -> Tables:
        """The table of every marginal asked for (default: those planned); any two agree where they overlap."""
        asked = self.plan.subsets if subsets is None else tuple(subsets)
        for subset in asked:
            self.variance_per_cell(subset)  # refuses what was not measured
        residuals = self.residuals(measured)
        return {subset: from_residuals(self.plan.sizes, residuals, subset) for subset in asked}

    def variance_per_cell(self, subset: Subset) -> float:
        """The variance of each cell of a marginal: the same for all of its cells."""
        live = self.plan.live(subset)
        return math.fsum(
            cell_coefficient(self.plan.sizes, live, part) * self._variance_of(part)
            for part in closure([live])
        )

    def variance(self, subset: Subset, query: ArrayLike) -> float:
        """The variance of sum(query * table) for the table of `subset`."""
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
        return float(
            self.plan.energies(weighted=False) @ [self._variance_of(part) for part in self.plan.asked]
        )

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
