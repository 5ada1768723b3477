"""The cells of one column as a statistic reports them: its own values, or the ranges between edges."""

from __future__ import annotations

import datetime
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from farthing.data.aggregates.aggregate import MOST_CELLS
from farthing.data.aggregates.bin_edges import MOST_EDGES, checked_edges, equal_edges
from farthing.data.schema import Categories, Dates, Domain, Flags, Integers, Reals
from farthing.errors import InvalidValue

FEW_VALUES = 1_000
"""Up to here, whole numbers and days are their own cells when a histogram says nothing about bins."""


@dataclass(frozen=True)
class CellAxis:
    """The cells of a column, with or without edges; a missing value lies in none of them."""

    column: str
    domain: Domain
    edges: tuple[Any, ...] | None = None

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """What the cells are called: their values, or pairs of edges."""
        if self.edges is not None:
            return tuple(pairwise(self.edges))
        return values_of(self.domain)

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {value: place for place, value in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    def place(self, value: Any) -> int:
        """The cell of a value; -1 for a missing one."""
        if value is None:
            return -1
        if self.edges is None:
            return self._places[value]
        return max(0, min(bisect_right(self.edges, value), len(self.edges) - 1) - 1)


def values_of(domain: Domain) -> tuple[Any, ...]:
    """The values of a domain that has a finite list of them."""
    if isinstance(domain, Categories):
        return domain.values
    if isinstance(domain, Flags):
        return (False, True)
    if isinstance(domain, Integers):
        return tuple(range(domain.lower, domain.upper + 1))
    assert isinstance(domain, Dates)
    days = range((domain.upper - domain.lower).days + 1)
    return tuple(domain.lower + datetime.timedelta(days=day) for day in days)


def size_of(domain: Domain) -> int | None:
    """How many values a domain has; None for real numbers."""
    if isinstance(domain, Reals):
        return None
    if isinstance(domain, Categories | Flags):
        return len(values_of(domain))
    if isinstance(domain, Dates):
        return (domain.upper - domain.lower).days + 1
    return domain.upper - domain.lower + 1


def groups_of(column: str, domain: Domain) -> CellAxis:
    """The cells of a column in `by`."""
    size = size_of(domain)
    if size is None:
        raise InvalidValue("by", column, "must have a finite list of values", f"cut it first: dataset.bin({column}=10)")
    if size > MOST_CELLS:
        raise InvalidValue(
            "by",
            column,
            f"must have at most {MOST_CELLS:,} values, not {size:,}",
            f"cut it first: dataset.bin({column}=10)",
        )
    return CellAxis(column, domain)


def cut_of(column: str, domain: Domain, bins: int | tuple[Any, ...] | None) -> CellAxis:
    """The cells of a column that is cut into `bins`, or into its values where they are few."""
    if bins is None:
        size = size_of(domain)
        if size is None or (size > FEW_VALUES and not isinstance(domain, Categories)):
            raise InvalidValue(
                "bins",
                None,
                f"must be given for column {column!r}",
                "for example bins=20, or a list of edges",
            )
        return CellAxis(column, domain)
    if isinstance(domain, Categories | Flags):
        raise InvalidValue("bins", bins, f"must be left out for {column!r}, which has categories of its own")
    if isinstance(bins, int):
        if bins >= MOST_EDGES:
            raise InvalidValue("bins", bins, f"must be at most {MOST_EDGES - 1:,}", "use fewer, wider bins")
        size = size_of(domain)
        if size is not None and bins > max(1, size - 1):
            raise InvalidValue(
                "bins",
                bins,
                f"must be at most {max(1, size - 1):,} for {column!r}",
                "leave it out: every value is then a cell of its own",
            )
        return CellAxis(column, domain, equal_edges(column, domain, bins))
    edges = bins
    if isinstance(domain, Integers) and all(float(edge).is_integer() for edge in bins if _is_number(edge)):
        edges = tuple(int(edge) if _is_number(edge) else edge for edge in bins)
    return CellAxis(column, domain, checked_edges(column, domain, edges))


def _is_number(edge: Any) -> bool:
    return isinstance(edge, int | float) and not isinstance(edge, bool)
