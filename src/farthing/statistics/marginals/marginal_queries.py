"""Questions to a release of marginals: any condition on columns that stand together in one of its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InvalidData, InvalidValue
from farthing.inference import Answer
from farthing.inference.answers import FurtherQueries
from farthing.inference.consistent_marginals import Subset, closure, residual, summed
from farthing.statistics.marginals.marginal_transforms import MarginalCells
from farthing.statistics.marginals.single_margins import SingleMargins
from farthing.statistics.measurements import Kind
from farthing.statistics.ranges.cell_conditions import condition_on, mask_of, query_columns
from farthing.statistics.ranges.error_shapes import NORMAL, UNKNOWN, ShapedInterval
from farthing.statistics.ranges.range_queries import (
    query_text,
    restored_correction,
    restored_ranges,
    stored_correction,
)
from farthing.statistics.ranges.strategy_codec import restored_axis, stored_axis

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MarginalQueries:
    """The estimated cells of all tables, and the variance of each residual they are made of."""

    name: str
    cells: MarginalCells
    estimate: Floats
    residual_variances: Mapping[Subset, float]
    kind: Kind
    clustered: int = 0
    correction: Floats | None = None  # R: other measurements take |R m|^2 off the variance of a function m of margins

    def query(self, what: Any, confidence: float) -> Answer:
        """The sum of the cells that `what` holds of, in the smallest table that has its columns."""
        groups, axes = self.cells.groups, self.cells.axes
        named = query_columns(what, (*groups, *axes))
        subset = tuple(place for place, axis in enumerate(axes) if axis.column in named)
        held = [one for one in self.cells.subsets if set(subset) <= set(one)]
        if not held:
            names = ", ".join(axes[place].column for place in subset)
            raise InvalidValue(
                "query",
                names,
                f"must be at most {self.cells.way} columns, as the tables have",
                "ask for marginals of more columns, or for fewer in one condition",
            )
        if not subset and not groups:
            subset = held[0][:1]  # a question about all rows, or none: any column will do
        table = self._tables[held[0]]
        own = np.array([summed(group, held[0], subset) for group in table])
        shape = tuple(len(axis) for axis in groups)
        mask = mask_of(what, (*groups, *(axes[place] for place in subset)))
        wide = np.broadcast_to(mask, (*shape, *own.shape[1:])).reshape(own.shape).astype(float)
        centre = float(np.sum(wide * own))
        noise = math.fsum(self._variance(subset, group) for group in wide if group.any())
        if self.correction is not None and subset:
            function = SingleMargins(self.cells.sizes).of_sum(subset, wide[0])
            noise = max(noise - float(np.sum((self.correction @ function) ** 2)), 0.0)
        sampling = self.clustered * max(centre, 0.0)
        error = math.sqrt(noise + sampling)
        distribution = NORMAL if self.kind == "gaussian" else UNKNOWN
        return Answer.within(
            f"{self.name}: {query_text(what)}",
            max(centre, 0.0),
            error,
            ShapedInterval(np.array([centre]), np.array([error]), distribution),
            confidence=confidence,
        )

    @cached_property
    def _tables(self) -> dict[Subset, Floats]:
        return self.cells.tables(self.estimate)

    def _variance(self, subset: Subset, query: Floats) -> float:
        return variance_of_sum(self.residual_variances, self.cells.sizes, subset, query)

    def labels(self) -> tuple[str, ...]:
        """What the cells are called: they need not be stored."""
        return self.cells.labels

    @property
    def example(self) -> str:
        """A question that can be asked."""
        return condition_on(self.cells.axes[-1])

    def stored(self) -> dict[str, Any]:
        """Everything it needs but for the estimate, as JSON-ready data."""
        return {
            "kind": "marginals",
            "name": self.name,
            "groups": [stored_axis(axis) for axis in self.cells.groups],
            "axes": [stored_axis(axis) for axis in self.cells.axes],
            "way": self.cells.way,
            "residuals": [[list(part), value] for part, value in self.residual_variances.items()],
            "noise": self.kind,
            "clustered": self.clustered,
            **({} if self.correction is None else {"correction": stored_correction(self.correction)}),
        }


def variance_of_sum(
    residual_variances: Mapping[Subset, float], sizes: Sequence[int], subset: Subset, query: Floats
) -> float:
    """The variance of sum(query * table of subset): `MarginalFit` says why.

    >>> variance_of_sum({(): 4.0, (0,): 9.0}, (2,), (0,), np.array([1.0, 0.0]))  # 4 / 2^2 + 9 / 2
    5.5
    """
    total, scale = 0.0, float(np.sum(query * query))
    for part in closure([subset]):
        own = residual(summed(query, subset, part))
        size = float(np.sum(own * own))
        if size > 1e-24 * scale:
            away = math.prod(sizes[column] for column in subset if column not in part)
            total += residual_variances[part] * size / float(away) ** 2
    return total


def restored_marginals(form: Mapping[str, Any], estimate: Any) -> MarginalQueries:
    """The questions of a stored release of marginals."""
    groups, axes = (tuple(restored_axis(axis) for axis in form[key]) for key in ("groups", "axes"))
    return MarginalQueries(
        form["name"],
        MarginalCells(groups, axes, form["way"]),
        np.array(estimate, dtype=float),
        {tuple(part): value for part, value in form["residuals"]},
        form["noise"],
        form["clustered"],
        restored_correction(form.get("correction"), sum(len(axis) for axis in axes)),
    )


def restored_queries(form: Mapping[str, Any], centre: Any = None, values: Any = None) -> FurtherQueries:
    """The questions of a stored answer; `centre` is what its intervals lie around, `values` its own."""
    if form.get("kind") == "ranges":
        return restored_ranges(form, values)
    if form.get("kind") == "marginals":
        return restored_marginals(form, centre)
    raise InvalidData("stored answer", "is of a kind that this farthing does not know", "use a newer one")
