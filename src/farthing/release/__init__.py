"""From statistics to measurements and back to answers: what is asked, what is measured, what may be said.

statistics    what may be asked: count, mean, histogram, quantile ...
facts         what may be known before anything is spent
noise, slots  what is measured, and how it is made private
outputs       a statistic as a function of what was measured, with its error before and after
"""

from farthing.release.statistics import (
    Statistic,
    cdf,
    contingency,
    count,
    histogram,
    linear_regression,
    mean,
    median,
    quantile,
    quantiles,
    std,
    sum,
    variance,
)

__all__ = [
    "Statistic",
    "cdf",
    "contingency",
    "count",
    "histogram",
    "linear_regression",
    "mean",
    "median",
    "quantile",
    "quantiles",
    "std",
    "sum",
    "variance",
]
