"""Strategies of least error, found by optimisers that see a workload and never a row.

p_identity_error     the error of [cells; a few sums] under Laplace noise, and its gradient
initial_weights      hat functions at a few scales, where the search begins
laplace_optimum      the best strategy for Laplace noise
gaussian_optimum     the best strategy for Gaussian noise, with a certificate from the dual problem
p_identity_strategy  cells beside sums in whole numbers
workload_optimum     all of it, over several axes: found once, kept on disk
"""

from farthing.matrix.strategies.optimisation.workload_optimum import cached_optimum, optimised

__all__ = ["cached_optimum", "optimised"]
