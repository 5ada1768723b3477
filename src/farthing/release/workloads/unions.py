"""Unions: several workloads over the same cells, asked together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats
from farthing.release.workloads.base import Workload, default_columns


@dataclass(frozen=True, eq=False)
class Union(Workload):
    """The queries of all parts, one part after the other.

    `weights` say how much each part matters when a strategy is chosen: they scale its rows in `gram`, `gram_times`
    and `trace`, and nothing else. Answers and variances are always those of the queries as they were asked.

    >>> from farthing.release.workloads import prefix, total
    >>> workload = union(prefix(3), total(3), weights=(1.0, 2.0))
    >>> workload.answers([1, 2, 4])
    array([1., 3., 7., 7.])
    >>> workload.gram()[0]
    array([7., 6., 5.])
    """

    parts: tuple[Workload, ...]
    weights: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape that all parts share."""
        return self.parts[0].shape

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The axes that all parts share."""
        return self.parts[0].columns

    @property
    def queries(self) -> int:
        """The queries of all parts."""
        return sum(part.queries for part in self.parts)

    @property
    def trace(self) -> float:
        """The traces of the parts, weighted."""
        return sum(w * w * part.trace for w, part in zip(self.weights, self.parts, strict=True))

    def times(self, vectors: Floats) -> Floats:
        """The parts' answers, one after the other."""
        return np.concatenate([part.times(vectors) for part in self.parts])

    def transposed_times(self, values: Floats) -> Floats:
        """The sum over the parts."""
        found = np.zeros((self.cells, values.shape[1]))
        stops = list(accumulate(part.queries for part in self.parts))
        for part, stop in zip(self.parts, stops, strict=True):
            found += part.transposed_times(values[stop - part.queries : stop])
        return found

    def diagonals(self, covariances: Floats) -> Floats:
        """The parts' variances, one after the other."""
        return np.concatenate([part.diagonals(covariances) for part in self.parts])

    def _gram_times(self, vectors: Floats) -> Floats:
        found = np.zeros_like(vectors)
        for weight, part in zip(self.weights, self.parts, strict=True):
            found += weight * weight * part._gram_times(vectors)
        return found

    def _gram(self) -> Floats:
        found = np.zeros((self.cells, self.cells))
        for weight, part in zip(self.weights, self.parts, strict=True):
            found += weight * weight * part._gram()
        return found

    def label(self, i: int) -> str:
        """The label of the query in its part."""
        place = self._check_query(i)
        for part in self.parts[:-1]:
            if place < part.queries:
                return part.label(place)
            place -= part.queries
        return self.parts[-1].label(place)

    def renamed(self, columns: tuple[str, ...]) -> Union:
        """The same union over axes of other names."""
        return Union(tuple(part.renamed(columns) for part in self.parts), self.weights)

    def _essence(self) -> tuple[object, ...]:
        return ("union", *(part.digest for part in self.parts), *map(float.hex, self.weights))


def union(*parts: Workload, weights: Sequence[float] | None = None) -> Union:
    """The queries of all parts together; `weights` say how much each part matters when a strategy is chosen.

    >>> from farthing.release.workloads import identity, prefix
    >>> workload = union(prefix(100, column="age"), identity(100))
    >>> workload.queries, workload.label(150)
    (200, 'age = 50')
    """
    if not parts or not all(isinstance(part, Workload) for part in parts):
        raise InvalidValue("parts", parts, "must be workloads", "for example union(prefix(64), identity(64))")
    shapes = [part.shape for part in parts]
    if len(set(shapes)) != 1:
        raise InvalidValue(
            "parts", shapes, "must all be over the same shape", "use product with total for axes left out"
        )
    given = (1.0,) * len(parts) if weights is None else tuple(float(weight) for weight in weights)
    if len(given) != len(parts) or not all(1e-50 <= weight <= 1e50 for weight in given):
        rule = f"must be {len(parts)} numbers from 1e-50 to 1e50, one for each part"
        raise InvalidValue("weights", weights, rule)
    plain = default_columns(len(shapes[0]))
    named = {part.columns for part in parts if part.columns != plain}
    if len(named) > 1:
        raise InvalidValue("parts", sorted(named), "must all be over the same columns", "use renamed")
    columns = named.pop() if named else plain
    flat: list[Workload] = []
    scales: list[float] = []
    for part, weight in zip(parts, given, strict=True):
        inner = zip(part.parts, part.weights, strict=True) if isinstance(part, Union) else ((part, 1.0),)
        for own, own_weight in inner:
            flat.append(own if own.columns == columns else own.renamed(columns))
            scales.append(weight * own_weight)
    return Union(tuple(flat), tuple(scales))
