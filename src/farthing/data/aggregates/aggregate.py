"""What every aggregate is made of: axes (public cells, a row lies in one) and features (integers a row adds there).

From aggregates to queries and back: as few passes as possible, integers added up by the client.

Aggregates are grouped so that the product of all their cells stays small. Each group is one GROUP BY over the axes of
all of its aggregates at once; what an aggregate does not ask to see apart is added up here, exactly. One scan then
serves the whole plan, without any feature that only some engines have, and every engine returns the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from farthing.data.expressions import read
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema, not_found_yet
from farthing.data.stability import Sensitivity, sensitivity_of_rows
from farthing.errors import InvalidValue

LARGEST_TERM = 2**62
"""What one row adds stays below this, so that no engine overflows before it starts to sum."""

MOST_ROWS = 10**12
MOST_CELLS = 2**17

Names = str | Sequence[str]


@dataclass(frozen=True)
class Axis:
    """A list of public cells; `value` gives the raw key of a row's cell, or NULL."""

    key: tuple[Any, ...]
    columns: tuple[str, ...]
    labels: tuple[Any, ...]
    value: Callable[[Any], Any] = field(compare=False, repr=False)
    places: Mapping[Any, int] = field(compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Feature:
    """An integer between `lower` and `upper` that a row adds to its cell; NULL adds nothing."""

    key: tuple[Any, ...]
    columns: tuple[str, ...]
    lower: int
    upper: int
    value: Callable[[Any], Any] = field(compare=False, repr=False)

    @property
    def size(self) -> int:
        """The largest absolute value that a row can add."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def wide(self) -> bool:
        """Whether a sum over the largest table needs more than 64 bits."""
        return self.size * MOST_ROWS >= 2**63


class Aggregate:
    """A bounded aggregate: integers that leave the engine, and how far one unit can move them."""

    by: tuple[str, ...]
    where: Any

    of_presence: ClassVar[bool] = False
    """Whether a cell only says that a row is in it: a second row of a unit there changes nothing."""

    def axes(self, schema: Schema) -> tuple[Axis, ...]:
        """The public cells, outermost first."""
        return tuple(axis_of(name, schema) for name in self.by)

    def features(self, schema: Schema) -> tuple[Feature, ...]:
        """What a row adds to its cell."""
        raise AssertionError("every aggregate has features")

    def cell_count(self, schema: Schema) -> int:
        """How many cells there are; a row lies in one of them at most."""
        return math.prod(len(axis) for axis in self.axes(schema))

    def ranges(self, schema: Schema) -> list[tuple[int, int]]:
        """Between which integers each entry of a row's vector lies."""
        return [(feature.lower, feature.upper) for feature in self.features(schema)]

    def finished(self, sums: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The answer from the sums, whose shape is that of the axes and then the features; one feature has no axis."""
        return sums[..., 0] if sums.shape[-1] == 1 else sums

    def sensitivity(self, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """How far neighbours differ when `rows` rows belong to what changes."""
        return self.sensitivity_in(self.cell_count(schema), schema, rows, neighbours)

    def sensitivity_in(self, cells: int, schema: Schema, rows: int, neighbours: str) -> Sensitivity:
        """The same if there were so many cells."""
        return sensitivity_of_rows(cells, self.ranges(schema), rows, neighbours)


def names_of(names: Names, argument: str = "by") -> tuple[str, ...]:
    """One name or several, as a tuple without repetitions."""
    listed = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) != len(listed):
        raise InvalidValue(argument, names, "must be names of columns, each once")
    return tuple(map(str, listed))  # plain text, also of numpy's


def domain_of(name: str, schema: Schema, argument: str = "column") -> Domain:
    """The domain of a column that must be there."""
    if name in schema.unknown:
        raise not_found_yet(name, argument)
    if name not in schema:
        known = ", ".join(schema)
        raise InvalidValue(argument, name, "must be a column of the schema", f"there are: {known}")
    return schema[name]


def axis_of(name: str, schema: Schema) -> Axis:
    """The cells of a column: its categories, its whole numbers or its days."""
    domain = domain_of(name, schema, "by")
    if isinstance(domain, Categories):
        labels: tuple[Any, ...] = domain.values
    elif isinstance(domain, Flags):
        labels = (False, True)
    elif isinstance(domain, Reals):
        raise InvalidValue("by", name, "must have a finite list of cells", f"bin it first: bin({name}=10)")
    elif isinstance(domain, Integers):
        _refuse_too_many(name, domain.upper - domain.lower + 1)
        labels, places = _whole_numbers(domain.lower, domain.upper)
        return Axis(("column", name), (name,), labels, lambda table: table[name], places)
    else:
        labels = _days(name, domain)
    places = {label: place for place, label in enumerate(labels)}
    return Axis(("column", name), (name,), labels, lambda table: table[name], places)


@lru_cache(maxsize=8)  # as many as 100,000 of them, asked for many times in a plan
def _whole_numbers(lower: int, upper: int) -> tuple[tuple[int, ...], Mapping[Any, int]]:
    labels = tuple(range(lower, upper + 1))
    return labels, MappingProxyType({label: place for place, label in enumerate(labels)})


def _days(name: str, domain: Dates) -> tuple[Any, ...]:
    count = (domain.upper - domain.lower).days + 1
    _refuse_too_many(name, count)
    return tuple(domain.lower + timedelta(days=day) for day in range(count))


def _refuse_too_many(name: str, count: int) -> None:
    if count > MOST_CELLS:
        raise InvalidValue("by", name, f"must have at most {MOST_CELLS:,} cells", f"bin it first: bin({name}=10)")


@dataclass(frozen=True)
class AggregateQuery:
    """One query: the axes to group by, the features to sum, and which aggregate uses which."""

    aggregates: Mapping[str, Aggregate]
    axes: tuple[Axis, ...]
    features: tuple[Feature, ...]
    schema: Schema

    looks_at_all_rows: ClassVar[bool] = False
    """Whether it bounds the rows of a unit itself, and must see all of them."""

    @property
    def columns(self) -> set[str]:
        """The columns that the query looks at; no other has to be read."""
        parts: tuple[Axis | Feature, ...] = (*self.axes, *self.features)
        return {name for part in parts for name in part.columns}

    def expression(self, table: Any) -> Any:
        """The Ibis expression: one group for each combination of cells that has rows."""
        columns = {f"a{place}": axis.value(table) for place, axis in enumerate(self.axes)}
        for place, feature in enumerate(self.features):
            value = feature.value(table)
            columns[f"f{place}"] = value.cast("decimal(38, 0)") if feature.wide else value
        narrow = table.select(**columns)
        sums = {f"s{place}": narrow[f"f{place}"].sum() for place in range(len(self.features))}
        return narrow.aggregate(by=[f"a{place}" for place in range(len(self.axes))], **sums)

    @property
    def bits(self) -> dict[str, int | None]:
        """The columns of the query, and how many bits their sums take at most, whatever the rows."""
        axes: dict[str, int | None] = {f"a{place}": None for place in range(len(self.axes))}
        return {**axes, **{f"s{place}": 128 if part.wide else 64 for place, part in enumerate(self.features)}}

    def answers(self, columns: Sequence[Sequence[Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Each aggregate's integers from the columns of the query; a cell that no row fell into is 0."""
        width = len(self.axes)
        places = {
            axis.key: _places_in(axis.places, column) for axis, column in zip(self.axes, columns[:width], strict=True)
        }
        sums = dict(zip(self.features, columns[width:], strict=True))
        groups: dict[tuple[Any, ...], np.ndarray[Any, Any]] = {}
        return {name: self._answer(own, places, sums, groups) for name, own in self.aggregates.items()}

    def _answer(
        self,
        aggregate: Aggregate,
        places: Mapping[tuple[Any, ...], np.ndarray[Any, Any]],
        sums: Mapping[Feature, Sequence[Any]],
        groups: dict[tuple[Any, ...], np.ndarray[Any, Any]],
    ) -> np.ndarray[Any, Any]:
        axes, features = aggregate.axes(self.schema), features_of(aggregate, self.schema)
        shape = tuple(len(axis) for axis in axes)
        # Which of the two it is depends on public facts alone, never on how large a sum came out.
        kind = object if any(feature.wide for feature in features) else np.int64
        result = np.zeros((*shape, len(features)), dtype=kind)
        flat = result.reshape(-1, len(features))
        keys = tuple(axis.key for axis in axes)
        if keys not in groups:
            groups[keys] = _flat_index([places[key] for key in keys], shape, len(sums[features[0]]))
        index = groups[keys]
        inside = index >= 0
        for number, feature in enumerate(features):
            # By way of Python's own integers, which no sum overflows.
            own = np.array(list(map(int, sums[feature])) if kind is object else sums[feature], dtype=kind)
            np.add.at(flat[:, number], index[inside], own[inside])
        return aggregate.finished(result)


def aggregate_queries(
    aggregates: Mapping[str, Aggregate], schema: Schema, *, apart: bool = False
) -> list[AggregateQuery]:
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
    return [_aggregate_query(group, schema) for group in groups]


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


def _aggregate_query(group: dict[str, Aggregate], schema: Schema) -> AggregateQuery:
    axes = dict.fromkeys(axis for aggregate in group.values() for axis in aggregate.axes(schema))
    features = dict.fromkeys(feature for aggregate in group.values() for feature in features_of(aggregate, schema))
    return AggregateQuery(group, tuple(axes), tuple(features), schema)


def _places_in(places: Mapping[Any, int], column: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The place of every value of a column, -1 for none.

    >>> _places_in({"F": 0, None: 1}, ["F", None, "M"]).tolist()
    [0, 1, -1]
    >>> _places_in({2: 0, 5: 1, None: 2}, np.ma.array([5, 3, 2, 9, 0], mask=[0, 0, 0, 0, 1])).tolist()
    [1, -1, 0, -1, 2]
    """
    if not isinstance(column, np.ndarray):
        return np.array([places.get(value, -1) for value in column], dtype=np.int64)
    codes, inverse = np.unique(np.ma.getdata(column), return_inverse=True)  # whole numbers: each is looked up once
    placed = np.array([places.get(value, -1) for value in codes.tolist()], dtype=np.int64)[inverse]
    return np.where(np.ma.getmaskarray(column), places.get(None, -1), placed)


def _flat_index(places: Sequence[np.ndarray[Any, Any]], shape: tuple[int, ...], rows: int) -> np.ndarray[Any, Any]:
    """The place of every group in the flattened answer; -1 where a cell is missing."""
    index = np.zeros(rows, dtype=np.int64)
    known = np.ones(rows, dtype=bool)
    for codes, size in zip(places, shape, strict=True):
        known &= codes >= 0
        index = index * size + codes
    return np.where(known, index, -1)
