"""Bounded aggregates: the only things that leave an engine, each with its exact integer sensitivities.

Count, CellCounts             rows, in all or in every cell of a cross product
Sum, Moments, CrossProducts   sums on an integer grid
Histogram, OrderCounts        counts over a public grid of a column
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

__all__ = ["Aggregate", "CellCounts", "Count", "CrossProducts", "Histogram", "Moments", "OrderCounts", "Sum"]
