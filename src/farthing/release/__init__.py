"""The names of `farthing.matrix` and `farthing.statistics` from when they were one package.

.. deprecated:: 0.1.0
   Import them from there. `farthing.release` and `farthing.release.workloads` are the same objects under their old name
   and go with 1.0.
"""

from farthing.matrix import WorkloadAnswers, answer_workload, workloads
from farthing.statistics import (
    Design,
    Noise,
    Statistic,
    cdf,
    contingency,
    count,
    count_distinct,
    design_of,
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
    "WorkloadAnswers",
    "answer_workload",
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
    "workloads",
]
