"""Statistics: what is asked, what is measured to answer it, and answers with their errors.

constructors   count, mean, histogram, quantile and the others
statistic      a statistic as a frozen value
design         the measurements and outputs of one plan
measurements   what is measured, the noise it gets, and what is read from it
cells          the cells of columns, and conditions on them
counts, moments, quantiles, regression, ranges, marginals   each kind with its design and its outputs
"""

from farthing.statistics.design import Design, design_of
from farthing.statistics.measurements import Noise

# Last, out of alphabetical order: otherwise the packages `quantiles`, `ranges` and `marginals`, which the design
# imports, would replace the functions of these names.
from farthing.statistics.constructors import (  # isort: skip
    Statistic,
    cdf,
    contingency,
    count,
    count_distinct,
    histogram,
    linear_regression,
    marginals,
    mean,
    median,
    quantile,
    quantiles,
    ranges,
    std,
    sum,
    top,
    variance,
)

__all__ = [
    "Design",
    "Noise",
    "Statistic",
    "cdf",
    "contingency",
    "count",
    "count_distinct",
    "design_of",
    "histogram",
    "linear_regression",
    "marginals",
    "mean",
    "median",
    "quantile",
    "quantiles",
    "ranges",
    "std",
    "sum",
    "top",
    "variance",
]
