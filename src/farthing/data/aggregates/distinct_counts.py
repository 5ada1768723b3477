"""How many different values of a column there are, among the rows that are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from farthing.data.aggregates.aggregate import Aggregate, Axis, Feature, Names, axis_of, names_of
from farthing.data.aggregates.counts_and_sums import one
from farthing.data.schema import Schema
from farthing.data.stability import REPLACE, Sensitivity


@dataclass(frozen=True)
class DistinctCount(Aggregate):
    """How many values of `column` at least one row has; one number for each cell of `by`.

    Args:
        column: A column with a finite list of values: categories, flags, whole numbers or dates.
        by: The columns whose cells are counted apart.
        where: Look only at the rows for which this condition is true.

    Raises:
        InvalidValue: If a name stands twice in `by`.

    >>> import pyarrow
    >>> from farthing.data import dataset
    >>> drugs = pyarrow.table({"person": [1, 1, 2], "drug": ["x", "y", "x"]})
    >>> drugs = dataset(drugs, unit="person", max_rows=5, schema={"drug": ["x", "y", "z"]})
    >>> drugs.exact({"drugs": DistinctCount("drug")})["drugs"].tolist()
    2
    >>> drugs.sensitivity(DistinctCount("drug")).l1
    3
    """

    column: str
    by: Names = ()  # type: ignore[assignment]
    where: Any = None

    of_presence: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", names_of(self.by))

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """Those of `by`, then the values of the column."""
        return (*super().axes(schema), axis_of(self.column, schema))

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        return (Feature(("one",), (), 0, 1, one),)

    def finished(self, sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The number of values with a row."""
        return np.asarray((sums[..., 0] > 0).sum(axis=-1, dtype=np.int64))

    def sensitivity(self, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """How far neighbours differ when `rows` rows belong to what changes.

        Statement:
            Let there be v values and g groups, and let one neighbour have up to R rows more than the other. A row has
            one value in one group, so that the number of group j differs by d_j with 0 <= d_j <= min(v, R) and
            sum d_j <= R. If up to R rows are replaced by as many, a group gains or loses, |d_j| <= min(v, R), and
            sum |d_j| <= 2 R; with one group, |d_1| <= min(v, R). So, with c = min(v, R) and a total of t = R or 2 R,
                linf = c,  l1 = min(t, g c),  l0 = min(g, t),  l2^2 = q c^2 + (t - q c)^2 with q = floor(t / c),
            or g c^2 where g <= q. The same holds if R bounds the pairs of a group and a value in place of rows, however
            many rows have each: a second row of a pair changes nothing. So m units of at most k pairs each (`Bounded`
            with max_cells=k) have R = m k, and m units of at most k rows have it too.
        Source: a sum of squares under bounds on each term and on their sum is largest at an extreme point.
        Assumes: every row has one value of the column at most.
        Direction: upper bounds; attained without replacement.
        Checked by: tests/unit/data/test_distinct_counts.py

        >>> from farthing.data.schema import Categories
        >>> DistinctCount("drug").sensitivity(Schema({"drug": Categories(["x", "y", "z"])}), 2, "add-remove").l1
        2
        """
        *groups, values = (len(axis) for axis in self.axes(schema))
        number, most = math.prod(groups), min(values, rows)
        total = rows * (2 if neighbours == REPLACE and number > 1 else 1)
        if not most:
            return Sensitivity(0, 0, 0, 0)
        full = min(number, total // most)
        rest = total - full * most if full < number else 0
        return Sensitivity(
            l0=min(number, total),
            l1=min(total, number * most),
            l2_squared=full * most**2 + rest**2,
            linf=most,
        )
