"""farthing: differential privacy, accounted to the last farthing.

dataset       a table that stays in its engine, with its unit and its public facts
linked, table several tables of the same people, linked by keys
unknown       declares a column whose range or values nobody knows: a study finds them first
Study         a dataset with a budget: plan, then release
count, sum, mean, variance, std, histogram, top, quantile, quantiles, median, cdf, ranges, contingency, marginals,
linear_regression, count_distinct
              the statistics a study may ask for
open_ledger   the account that nobody can overdraw
Client        the same API, over a server (needs the extra `client`)
compose       what several mechanisms cost together, as a proven interval
calibrate     the least noise that fits a budget
audit         try to contradict what a mechanism claims, by running it
privacy       events: what a mechanism did, as facts an accountant can price
accounting    composition, the classical theorems, filters, calibration
mechanisms    noise that can be trusted, each with its event and its exact error
data          schemas, transformations with their stability, bounded aggregates
statistics    what is asked, what is measured to answer it, and answers with their errors
matrix        many queries of one histogram, measured through a strategy and answered together
adaptive      questions that depend on earlier answers: query sessions, synthetic tables, holdouts, monitors, series
ledger        append-only budgets, charges and answers
study         plans and releases
auditing      empirical lower bounds on epsilon
plots         Altair charts (needs the extra `plots`)

A name is imported when it is first used, so that a program loads no more than it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing import (
        accounting,
        adaptive,
        data,
        errors,
        ledger,
        matrix,
        mechanisms,
        privacy,
        release,
        statistics,
        study,
    )
    from farthing.accounting import Composition, calibrate, compose
    from farthing.auditing import audit
    from farthing.client import Client
    from farthing.data import dataset, linked, table, unknown
    from farthing.errors import FarthingError
    from farthing.ledger import open_ledger
    from farthing.numerics import Bounds
    from farthing.statistics import (
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
    from farthing.study import Study

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Client",
    "Composition",
    "FarthingError",
    "Study",
    "__version__",
    "accounting",
    "adaptive",
    "audit",
    "calibrate",
    "cdf",
    "compose",
    "contingency",
    "count",
    "count_distinct",
    "data",
    "dataset",
    "errors",
    "histogram",
    "ledger",
    "linear_regression",
    "linked",
    "marginals",
    "matrix",
    "mean",
    "mechanisms",
    "median",
    "open_ledger",
    "privacy",
    "quantile",
    "quantiles",
    "ranges",
    "release",
    "statistics",
    "std",
    "study",
    "sum",
    "table",
    "top",
    "unknown",
    "variance",
]

_HOMES = {
    "accounting": ("Composition", "calibrate", "compose"),
    "auditing": ("audit",),
    "client": ("Client",),
    "data": ("dataset", "linked", "table", "unknown"),
    "errors": ("FarthingError",),
    "ledger": ("open_ledger",),
    "numerics": ("Bounds",),
    "statistics": (
        "cdf", "contingency", "count", "count_distinct", "histogram", "linear_regression", "marginals", "mean",
        "median", "quantile", "quantiles", "ranges", "std", "sum", "top", "variance",
    ),
    "study": ("Study",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # A public name, imported now and kept.
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(f"farthing.{home}"), name)
            break
    else:
        if name not in __all__:
            raise AttributeError(f"module 'farthing' has no attribute {name!r}")
        value = importlib.import_module(f"farthing.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
