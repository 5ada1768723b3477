"""Questions to a release of ranges, asked afterwards: any condition on its cells, with the error of its own sum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.inference import Answer
from farthing.statistics.cells.statistic_cells import CellAxis
from farthing.statistics.measurements import Kind
from farthing.statistics.ranges.cell_conditions import condition_on, mask_of
from farthing.statistics.ranges.error_shapes import NORMAL, UNKNOWN, Shape, ShapedInterval
from farthing.statistics.ranges.strategy_codec import (
    restored_axis,
    restored_transform,
    stored_axis,
    stored_transform,
)
from farthing.statistics.ranges.strategy_transforms import StrategyTransform

Floats = NDArray[np.float64]

MOST_CELLS_SHAPED = 1_024
"""Up to here the shape of an estimate's distribution comes from its coefficients; beyond, any shape is allowed for."""


@dataclass(frozen=True, eq=False)
class RangeQueries:
    """The cells of a release (groups x cells) by least squares and as they are shown, and how they were measured.

    Values are sums of `settled`, the cells as shown, so that answers agree; errors and intervals are those of
    the unbiased `estimate`. `deviation` is the standard deviation of the noise on every measured number. `clustered`
    is how many rows of one unit count together where the answer is about a population, else 0.
    """

    name: str
    axes: tuple[CellAxis, ...]
    estimate: Floats
    settled: Floats
    transform: StrategyTransform
    kind: Kind
    deviation: float
    clustered: int = 0
    listed: bool = False  # then the answer shows ranges rather than these cells
    correction: Floats | None = None  # R: other measurements take |R q|^2 off the variance of a query q

    def query(self, what: Any, confidence: float) -> Answer:
        """The sum of the cells that `what` holds of."""
        mask = mask_of(what, self.axes).reshape(self.estimate.shape).astype(float)
        centre, value = float(np.sum(mask * self.estimate)), float(np.sum(mask * self.settled))
        asked = [row for row in mask if row.any()]
        variances = [self.transform.estimator.variance(row) for row in asked]
        noise = math.fsum(variances) * self.deviation**2
        if self.correction is not None:
            noise = max(noise - float(np.sum((self.correction @ mask.reshape(-1)) ** 2)), 0.0)
        shape = self._shape(asked, variances)
        sampling = self.clustered * max(centre, 0.0)
        error = math.sqrt(noise + sampling)
        interval = ShapedInterval(np.array([centre]), np.array([error]), shape.blurred if sampling else shape)
        return Answer.within(
            f"{self.name}: {query_text(what)}", max(value, 0.0), error, interval, confidence=confidence
        )

    def _shape(self, asked: list[Floats], variances: list[float]) -> Shape:
        """Groups have noises of their own: their fourth powers add up as their squares do."""
        if self.kind == "gaussian":
            return NORMAL
        if self.correction is not None or self.transform.strategy.cells > MOST_CELLS_SHAPED or not asked:
            return UNKNOWN
        shares = self.transform.kurtosis(np.array(asked).T)
        if not np.all(np.isfinite(shares)):
            return UNKNOWN
        share = float(shares @ np.asarray(variances) ** 2 / max(sum(variances) ** 2, 1e-300))
        return Shape(share, share)

    @cached_property
    def _stored(self) -> dict[str, Any]:
        return {
            "kind": "ranges",
            "name": self.name,
            "axes": [stored_axis(axis) for axis in self.axes],
            "estimate": [float(f"{value:.9g}") for value in self.estimate.reshape(-1)],
            "settled": [float(f"{value:.9g}") for value in self.settled.reshape(-1)] if self.listed else "as shown",
            "transform": stored_transform(self.transform),
            "noise": self.kind,
            "deviation": self.deviation,
            "clustered": self.clustered,
            **({} if self.correction is None else {"correction": stored_correction(self.correction)}),
        }

    @property
    def example(self) -> str:
        """A question that can be asked."""
        return condition_on(self.axes[-1])

    def stored(self) -> dict[str, Any]:
        """Everything it needs, as JSON-ready data."""
        return self._stored


def restored_ranges(form: Mapping[str, Any], answers: Any) -> RangeQueries:
    """The questions of a stored release of ranges; `answers` are the values that were released.

    Releases of older ledgers have sums of the estimate, and still do.
    """
    transform = restored_transform(form["transform"])
    settled = form.get("settled", form["estimate"])
    estimate, cells = (
        np.array(values, dtype=float).reshape(transform.groups, -1)
        for values in (form["estimate"], answers if settled == "as shown" else settled)
    )
    return RangeQueries(
        form["name"],
        tuple(restored_axis(axis) for axis in form["axes"]),
        estimate,
        cells,
        transform,
        form["noise"],
        form["deviation"],
        form["clustered"],
        settled != "as shown",
        restored_correction(form.get("correction"), estimate.size),
    )


_MOST_STORED = 20_000  # numbers of a correction that are kept with a release


def stored_correction(correction: Floats) -> list[float]:
    """A correction as plain numbers; nothing where they are very many: errors are then those of the own measurement.

    Cut off towards zero, so that no stored error is too small.
    """
    if correction.size > _MOST_STORED:
        return []
    return [float(f"{value * (1 - 1e-8):.9g}") for value in correction.reshape(-1)]


def restored_correction(numbers: list[float] | None, cells: int) -> Floats | None:
    """The correction of `stored_correction`; None in releases that have none."""
    return None if numbers is None else np.array(numbers, dtype=float).reshape(-1, cells)


def query_text(what: Any) -> str:
    """A question in words, for the name of its answer.

    >>> query_text((10, 25)), query_text({"sex": "F", "age": (10, 25)}), query_text("age < 25")
    ('10 to 25', 'sex = F and age = 10 to 25', 'age < 25')
    """
    if isinstance(what, tuple):
        return " to ".join(map(str, what))
    if isinstance(what, Mapping):
        return " and ".join(f"{name} = {query_text(value)}" for name, value in what.items())
    return str(what)
