"""Post-processing: what may be said from noisy numbers, and how far off it is. No rows and no way to any.

terms, noise_sums    the noise in an answer, and the law of its sum
error_laws           standard errors, and errors at a confidence, cell by cell
answers              values with their intervals
ratios, moments      means, variances and standard deviations, with intervals that hold for any count
"""

from farthing.inference.answers import Answer
from farthing.inference.error_laws import ErrorLaw, StatedLaw, errors_of_laws
from farthing.inference.moments import StandardDeviation, Variance
from farthing.inference.noise_sums import deviation_of_sum, error_of_sum, tail_of_sum
from farthing.inference.ratios import Measured, Ratio
from farthing.inference.terms import Term

__all__ = [
    "Answer",
    "ErrorLaw",
    "Measured",
    "Ratio",
    "StandardDeviation",
    "StatedLaw",
    "Term",
    "Variance",
    "deviation_of_sum",
    "error_of_sum",
    "errors_of_laws",
    "tail_of_sum",
]
