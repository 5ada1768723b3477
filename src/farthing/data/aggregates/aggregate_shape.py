"""What every aggregate is made of: axes (public cells, a row lies in one) and features (integers a row adds there)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals, Schema
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
        """The largest absolute value."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def wide(self) -> bool:
        """Whether a sum over the largest table needs more than 64 bits."""
        return self.size * MOST_ROWS >= 2**63


class Aggregate:
    """A bounded aggregate: integers that leave the engine, and how far one unit can move them."""

    by: tuple[str, ...]
    where: Any

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
        return sensitivity_of_rows(self.cell_count(schema), self.ranges(schema), rows, neighbours)


def names_of(names: Names, argument: str = "by") -> tuple[str, ...]:
    """One name or several, as a tuple without repetitions."""
    listed = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) != len(listed):
        raise InvalidValue(argument, names, "must be names of columns, each once")
    return listed


def domain_of(name: str, schema: Schema, argument: str = "column") -> Domain:
    """The domain of a column that must be there."""
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
        raise InvalidValue(
            "by", name, f"must have at most {MOST_CELLS:,} cells", f"bin it first: bin({name}=10)"
        )
