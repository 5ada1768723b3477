"""Post-processing: what may be said from noisy numbers, and how far off it is. No rows and no way to any.

terms, noise_sums    the noise in an answer, and the law of its sum
error_laws           standard errors, and errors at a confidence, cell by cell
answers              values with their intervals
ratios, moments      means, variances and standard deviations, with intervals that hold for any count
least_squares        cells that were measured more than once, totals equal to their parts
implicit, regular_tree             the same for a design known by its products, and for blocks of cells
nonnegative, isotonic, rounding    numbers moved to where the truth must lie
nonnegative_norms, increasing_norms, intersections   the same in any norm, and for several sets at once
graphical            one distribution over many columns from noisy tables over few of them
"""

from farthing.inference.answers import Answer
from farthing.inference.error_distributions import ErrorLaw, Measured, Ratio, StatedLaw, errors_of_laws
from farthing.inference.integer_rounding import rounded, rounded_tree
from farthing.inference.isotonic import nearest_increasing, nearest_increasing_in_norm
from farthing.inference.least_squares import LeastSquares, implicit_least_squares, tree_least_squares
from farthing.inference.noise_sums import deviation_of_sum, error_of_sum, tail_of_sum
from farthing.inference.noise_terms import Term
from farthing.inference.nonnegative import (
    nearest_in_all,
    nearest_nonnegative,
    nonnegative_cells,
    nonnegative_in_norm,
)
from farthing.inference.regular_tree import RegularTree
from farthing.inference.variance_estimates import StandardDeviation, Variance

__all__ = [
    "Answer",
    "ErrorLaw",
    "LeastSquares",
    "Measured",
    "Ratio",
    "RegularTree",
    "StandardDeviation",
    "StatedLaw",
    "Term",
    "Variance",
    "deviation_of_sum",
    "error_of_sum",
    "errors_of_laws",
    "implicit_least_squares",
    "nearest_in_all",
    "nearest_increasing",
    "nearest_increasing_in_norm",
    "nearest_nonnegative",
    "nonnegative_cells",
    "nonnegative_in_norm",
    "rounded",
    "rounded_tree",
    "tail_of_sum",
    "tree_least_squares",
]
