"""Workloads: the queries that are asked of a histogram, as matrices that are never written out.

>>> from farthing.release import workloads
>>> workloads.prefix(1_048_576).queries
1048576
"""

from farthing.release.workloads.base import Workload
from farthing.release.workloads.intervals import Intervals
from farthing.release.workloads.marginal import Marginals, conjunctions, marginals
from farthing.release.workloads.products import (
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
