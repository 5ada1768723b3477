"""Strategies of least error, found by optimisers that see a workload and never a row.

objective   the error of [cells; a few sums] under Laplace noise, and its gradient
starts      tents at a few scales, where the search begins
descent     L-BFGS-B between bounds, best point kept
laplace     the best strategy for Laplace noise
gaussian    the best strategy for Gaussian noise, with a certificate from the dual problem
widening    the same for many cells, over tents
strategy    cells beside sums in whole numbers; triangular: a square matrix
axes        products over several axes, one factor at a time
making      all of it: found once, kept on disk
"""

from farthing.matrix.strategies.optimisation.workload_optimum import kept, optimised

__all__ = ["kept", "optimised"]
