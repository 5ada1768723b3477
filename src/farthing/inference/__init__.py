"""Post-processing: what may be said from noisy numbers, and how far off it is. No rows and no way to any.

noise_terms, noise_sums    the noise in an answer, and the distribution of its sum
error_distributions        standard errors, errors at a confidence, and intervals of ratios
answers                    values with their intervals, which can be computed with
noisy_numbers, comparisons which noise is in which answer, and what follows for differences and ratios
significance               tests of hypotheses, with p-values that account for the noise
variance_estimates         variances and standard deviations, with intervals that hold for any count
least_squares              cells that were measured more than once, totals equal to their parts
regular_tree               the same for blocks of cells
nonnegative, isotonic      numbers moved to where the truth must lie, in any norm
controlled_rounding        and to whole numbers
consistent_marginals       tables over few columns that agree with each other
graphical                  one distribution over many columns from noisy tables over few of them
"""

from farthing.inference.answers import Answer
from farthing.inference.controlled_rounding import rounded, rounded_tree
from farthing.inference.error_distributions import (
    ErrorDistribution,
    Measured,
    Ratio,
    StatedDistribution,
    errors_of_distributions,
)
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
from farthing.inference.significance import Significance, adjusted
from farthing.inference.variance_estimates import StandardDeviation, Variance

# Deprecated names, importable until 1.0.
ErrorLaw, StatedLaw, errors_of_laws = ErrorDistribution, StatedDistribution, errors_of_distributions

__all__ = [
    "Answer",
    "ErrorDistribution",
    "ErrorLaw",
    "LeastSquares",
    "Measured",
    "Ratio",
    "RegularTree",
    "Significance",
    "StandardDeviation",
    "StatedDistribution",
    "StatedLaw",
    "Term",
    "Variance",
    "adjusted",
    "deviation_of_sum",
    "error_of_sum",
    "errors_of_distributions",
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
