"""farthing: differential privacy, accounted to the last farthing.

compose       what several mechanisms cost together, as a proven interval
calibrate     the least noise that fits a budget
dataset       a table that stays in its engine, with its unit and its public facts
audit         try to contradict what a mechanism claims, by running it
privacy       events: what a mechanism did, as facts an accountant can price
accounting    composition, the classical theorems, filters, calibration
mechanisms    noise that can be trusted, each with its event and its exact error
data          schemas, transformations with their stability, bounded aggregates
auditing      empirical lower bounds on epsilon
plots         Altair charts (needs the extra `plots`)
"""

from farthing import accounting, data, errors, mechanisms, privacy
from farthing.accounting import Composition, calibrate, compose
from farthing.auditing import audit
from farthing.data import dataset
from farthing.errors import FarthingError
from farthing.numerics import Bounds

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Composition",
    "FarthingError",
    "__version__",
    "accounting",
    "audit",
    "calibrate",
    "compose",
    "data",
    "dataset",
    "errors",
    "mechanisms",
    "privacy",
]
