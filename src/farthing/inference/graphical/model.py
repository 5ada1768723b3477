"""A distribution over the rows of a table, held as the tables of a junction tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidValue
from farthing.inference.graphical.elimination import Marginals
from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.graphical.measured import Key
from farthing.inference.graphical.propagation import Calibrated
from farthing.inference.graphical.sampling import sampled_rows
from farthing.inference.marginals import Subset
from farthing.inference.terms import Floats

_MOST_VALUES = 2**28  # rows times columns: two gibibytes, several times over


@dataclass(frozen=True, eq=False, repr=False)
class GraphicalModel:
    """What `fit_graphical` finds: tables of any columns, counts of any conjunction, synthetic rows.

    `loss` is half the sum of squared errors at the measured cells, in units of their noise; no distribution has less
    than `loss - gap`.

    >>> from farthing.inference.graphical import Measured, fit_graphical
    >>> model = fit_graphical((2, 3), [Measured((1,), [10.0, 30.0, 60.0], 1.0)], 100)
    >>> model
    GraphicalModel(2 columns, 5 cells in 2 cliques, total 100)
    """

    tree: JunctionTree
    total: float
    law: Calibrated
    weights: Mapping[Key, Floats]  # logarithms of what each measured cell multiplies its rows by
    loss: float
    gap: float

    def __repr__(self) -> str:
        where = f"{self.tree.cells} cells in {len(self.tree.cliques)} cliques"
        return f"GraphicalModel({len(self.sizes)} columns, {where}, total {self.total:g})"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each column."""
        return self.tree.sizes

    @cached_property
    def _marginals(self) -> Marginals:
        return Marginals(self.tree, self.law)

    def marginal(self, subset: Sequence[int]) -> Floats:
        """The expected counts of all combinations of values of these columns, axes in the order of `subset`.

        >>> from farthing.inference.graphical import Measured, fit_graphical
        >>> model = fit_graphical((2, 2), [Measured((1,), [25.0, 75.0], 1.0)], 100)
        >>> model.marginal((1, 0)).round(1)
        array([[12.5, 12.5],
               [37.5, 37.5]])
        """
        columns = tuple(int(column) for column in subset)
        if len(set(columns)) != len(columns) or not set(columns) <= set(range(len(self.sizes))):
            raise InvalidValue(
                "subset", columns, f"must be different columns from 0 to {len(self.sizes) - 1}"
            )
        return self.total * self._marginals.table(columns)

    def marginals(self, subsets: Iterable[Sequence[int]]) -> dict[Subset, Floats]:
        """The tables of many sets of columns; what they have in common is worked out once."""
        return {tuple(subset): self.marginal(subset) for subset in subsets}

    def query(self, masks: Mapping[int, ArrayLike]) -> float:
        """The expected number of rows in a conjunction: for each column, which of its values count.

        A mask is an array of truth values, one for each value of the column, or of numbers to multiply by.

        >>> from farthing.inference.graphical import Measured, fit_graphical
        >>> model = fit_graphical((2, 3), [Measured((0,), [25.0, 75.0], 1.0)], 100)
        >>> round(model.query({0: [False, True], 1: [True, True, False]}), 6)
        50.0
        """
        factors = {int(column): np.asarray(mask, dtype=float) for column, mask in masks.items()}
        for column, factor in factors.items():
            if not 0 <= column < len(self.sizes):
                raise InvalidValue("column", column, f"must be from 0 to {len(self.sizes) - 1}")
            if factor.shape != (self.sizes[column],):
                raise InvalidValue(
                    "mask", factor.shape, f"must have {self.sizes[column]} values for column {column}"
                )
        return self.total * self._marginals.expectation(factors)

    def rows(
        self, count: int | None = None, generator: np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Synthetic rows, one code for each column; as many as the total says unless `count` is given.

        The rows are post-processing: their randomness need not be secret, and is taken from the system by default.

        >>> from farthing.inference.graphical import Measured, fit_graphical
        >>> model = fit_graphical((2, 3), [Measured((1,), [10.0, 30.0, 60.0], 1.0)], 100)
        >>> np.bincount(model.rows()[:, 1])
        array([10, 30, 60])
        """
        wanted = round(self.total) if count is None else int(count)
        if not wanted >= 0:
            raise InvalidValue("count", count, "must be a whole number >= 0")
        if not wanted * max(len(self.sizes), 1) <= _MOST_VALUES:
            raise InvalidValue(
                "count",
                wanted,
                f"must be at most {_MOST_VALUES // max(len(self.sizes), 1):,} of these columns",
            )
        return sampled_rows(self.tree, self.law, wanted, generator or np.random.default_rng())
