"""Workloads: the queries that are asked of a histogram, as matrices that are never written out.

>>> from farthing.matrix import workloads
>>> workloads.prefix(1_048_576).queries
1048576
"""

from farthing.matrix.workloads.interval_queries import Intervals
from farthing.matrix.workloads.marginal_workload import Marginals, conjunctions, marginals
from farthing.matrix.workloads.named_workloads import (
    Product,
    Union,
    all_ranges,
    identity,
    prefix,
    product,
    ranges,
    total,
    union,
)
from farthing.matrix.workloads.workload import Workload

__all__ = [
    "Intervals",
    "Marginals",
    "Product",
    "Union",
    "Workload",
    "all_ranges",
    "conjunctions",
    "identity",
    "marginals",
    "prefix",
    "product",
    "ranges",
    "total",
    "union",
]
