"""farthing: differential privacy, accounted to the last farthing.

compose       what several mechanisms cost together, as a proven interval
calibrate     the least noise that fits a budget
privacy       events: what a mechanism did, as facts an accountant can price
accounting    composition, the classical theorems, filters, calibration
plots         Altair charts (needs the extra `plots`)
"""

from farthing import accounting, errors, privacy
from farthing.accounting import Composition, calibrate, compose
from farthing.errors import FarthingError
from farthing.numerics import Bounds

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Composition",
    "FarthingError",
    "__version__",
    "accounting",
    "calibrate",
    "compose",
    "errors",
    "privacy",
]
