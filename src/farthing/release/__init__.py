"""From statistics to measurements and back to answers: what is asked, what is measured, what may be said.

statistics    what may be asked: count, mean, histogram, quantile ...
facts         what may be known before anything is spent
noise, slots  what is measured, and how it is made private
outputs       a statistic as a function of what was measured, with its error before and after
designs       the slots and outputs of one plan
counting      counts, histograms, tables and shares from the fewest cells
moments       sums, means, variances and standard deviations from shared sums
ranging       ranges, cdfs of many cells and marginals, by a strategy
quantile_outputs, regression_outputs
workloads, strategies   many queries of one histogram, and what is measured to answer them
answering, answered     answer_workload: arrays in, answers with their errors out
"""

from farthing.matrix import workloads
from farthing.matrix.workload_answers import WorkloadAnswers, answer_workload
from farthing.statistics.constructors import (
    Statistic,
    cdf,
    contingency,
    count,
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
    variance,
)
from farthing.statistics.design import Design, design_of
from farthing.statistics.slots import Noise

__all__ = [
    "Design",
    "Noise",
    "Statistic",
    "WorkloadAnswers",
    "answer_workload",
    "cdf",
    "contingency",
    "count",
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
    "variance",
    "workloads",
]
