"""From aggregates to queries and back: as few passes as possible, integers added up by the client.

Aggregates are grouped so that the product of all their cells stays small. Each group is one GROUP BY over the axes of
all of its aggregates at once; what an aggregate does not ask to see apart is added up here, exactly. One scan then
serves the whole plan, without any feature that only some engines have, and every engine returns the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.data.aggregates.aggregate_shape import MOST_CELLS, Aggregate, Axis, Feature
from farthing.data.expressions import read
from farthing.data.schema import Schema
from farthing.errors import InvalidValue


@dataclass(frozen=True)
class Gathering:
    """One query: the axes to group by, the features to sum, and which aggregate uses which."""

    aggregates: Mapping[str, Aggregate]
    axes: tuple[Axis, ...]
    features: tuple[Feature, ...]
    schema: Schema

    @property
    def columns(self) -> set[str]:
        """The columns that the query looks at; no other has to be read."""
        parts: tuple[Axis | Feature, ...] = (*self.axes, *self.features)
        return {name for part in parts for name in part.columns}

    def query(self, table: Any) -> Any:
        """The Ibis expression: one group for each combination of cells that has rows."""
        columns = {f"a{place}": axis.value(table) for place, axis in enumerate(self.axes)}
        for place, feature in enumerate(self.features):
            value = feature.value(table)
            columns[f"f{place}"] = value.cast("decimal(38, 0)") if feature.wide else value
        narrow = table.select(**columns)
        sums = {f"s{place}": narrow[f"f{place}"].sum() for place in range(len(self.features))}
        return narrow.aggregate(by=[f"a{place}" for place in range(len(self.axes))], **sums)

    def answers(self, rows: Iterable[tuple[Any, ...]]) -> dict[str, np.ndarray[Any, Any]]:
        """Each aggregate's integers; a cell that no row fell into is 0."""
        found = list(rows)
        width = len(self.axes)
        places = [[axis.places.get(row[number]) for row in found] for number, axis in enumerate(self.axes)]
        sums = [[int(row[width + number] or 0) for row in found] for number in range(len(self.features))]
        return {name: self._answer(aggregate, places, sums) for name, aggregate in self.aggregates.items()}

    def _answer(
        self, aggregate: Aggregate, places: list[list[int | None]], sums: list[list[int]]
    ) -> np.ndarray[Any, Any]:
        own_axes = aggregate.axes(self.schema)
        own = [places[self.axes.index(axis)] for axis in own_axes]
        shape = tuple(len(axis) for axis in own_axes)
        features = features_of(aggregate, self.schema)
        # Which of the two it is depends on public facts alone, never on how large a sum came out.
        kind = object if any(feature.wide for feature in features) else np.int64
        result = np.zeros((*shape, len(features)), dtype=kind)
        flat = result.reshape(-1, len(features))
        index = _flat_index(own, shape, len(sums[0]) if sums else 0)
        inside = index >= 0
        for number, feature in enumerate(features):
            column = np.array(sums[self.features.index(feature)], dtype=kind)
            np.add.at(flat[:, number], index[inside], column[inside])
        return aggregate.finished(result)


def gatherings(
    aggregates: Mapping[str, Aggregate], schema: Schema, *, apart: bool = False
) -> list[Gathering]:
    """The aggregates in as few queries as their cells allow; `apart` for one query each."""
    groups: list[dict[str, Aggregate]] = []
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise InvalidValue(name, aggregate, "must be an aggregate", "for example Count(by='sex')")
        axes = aggregate.axes(schema)
        own = math.prod(len(axis) for axis in axes)
        if own > MOST_CELLS:
            raise InvalidValue(
                name, f"{own:,} cells", f"must have at most {MOST_CELLS:,} cells", "use fewer or wider ones"
            )
        for group in groups:
            together = {*axes}.union(*(other.axes(schema) for other in group.values()))
            if not apart and math.prod(len(axis) for axis in together) <= MOST_CELLS:
                group[name] = aggregate
                break
        else:
            groups.append({name: aggregate})
    return [_gathering(group, schema) for group in groups]


def features_of(aggregate: Aggregate, schema: Schema) -> tuple[Feature, ...]:
    """The features of an aggregate, with its own `where` applied: a row that fails it adds nothing."""
    features = aggregate.features(schema)
    if aggregate.where is None:
        return features
    predicate = read(aggregate.where, schema)
    if not predicate.is_predicate:
        raise InvalidValue("where", predicate.text, "must be true or false", "compare it with something")

    def filtered(feature: Feature) -> Feature:
        import ibis

        columns = (*feature.columns, *predicate.columns)

        def value(table: Any) -> Any:
            return predicate.to_ibis(table, cells_read=True).ifelse(feature.value(table), ibis.null("int64"))

        return Feature(("where", predicate.text, *feature.key), columns, feature.lower, feature.upper, value)

    return tuple(map(filtered, features))


def _gathering(group: dict[str, Aggregate], schema: Schema) -> Gathering:
    axes = dict.fromkeys(axis for aggregate in group.values() for axis in aggregate.axes(schema))
    features = dict.fromkeys(
        feature for aggregate in group.values() for feature in features_of(aggregate, schema)
    )
    return Gathering(group, tuple(axes), tuple(features), schema)


def _flat_index(places: list[list[int | None]], shape: tuple[int, ...], rows: int) -> np.ndarray[Any, Any]:
    """The place of every group in the flattened answer; -1 where a cell is missing."""
    index = np.zeros(rows, dtype=np.int64)
    known = np.ones(rows, dtype=bool)
    for own, size in zip(places, shape, strict=True):
        codes = np.array([-1 if place is None else place for place in own], dtype=np.int64)
        known &= codes >= 0
        index = index * size + codes
    return np.where(known, index, -1)
