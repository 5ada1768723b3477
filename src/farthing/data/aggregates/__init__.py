"""Bounded aggregates: the only things that leave an engine, each with its exact integer sensitivities.

Count, CellCounts             rows, in all or in every cell of a cross product
Sum, Moments, CrossProducts   sums on an integer grid
Histogram, OrderCounts        counts over a public grid of a column
SoftPartition                 sums of functions of a column that add up to one, for the price of one count
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
from farthing.data.aggregates.soft_partitions import SoftPartition

__all__ = [
    "Aggregate",
    "CellCounts",
    "Count",
    "CrossProducts",
    "Histogram",
    "Moments",
    "OrderCounts",
    "SoftPartition",
    "Sum",
]
