"""Bounded aggregates: the only things that leave an engine, each with its exact integer sensitivities.

Count, CellCounts             rows, in all or in every cell of a cross product
DistinctCount                 values that at least one row has
Sum, Moments, CrossProducts   sums on an integer grid
Histogram, OrderCounts        counts over a public grid of a column
SoftPartition                 sums of functions of a column that add up to one, for the price of one count
Bounded, UnitBound            any of these with a bound of its own on what one unit adds; counts of people are such
BoundedGroups                 the same where groups are bounded, in each of which there are many cells
"""

from farthing.data.aggregates.aggregate import Aggregate
from farthing.data.aggregates.counts_and_sums import (
    CellCounts,
    Count,
    CrossProducts,
    Histogram,
    Moments,
    OrderCounts,
    Sum,
)
from farthing.data.aggregates.distinct_counts import DistinctCount
from farthing.data.aggregates.soft_partitions import SoftPartition
from farthing.data.aggregates.unit_bounds import Bounded, BoundedGroups, UnitBound

__all__ = [
    "Aggregate",
    "Bounded",
    "BoundedGroups",
    "CellCounts",
    "Count",
    "CrossProducts",
    "DistinctCount",
    "Histogram",
    "Moments",
    "OrderCounts",
    "SoftPartition",
    "Sum",
    "UnitBound",
]
