"""Marginals of many columns, measured so that all of them are as exact as the budget allows.

marginal_levels  what is measured of one set of columns: whole numbers of known sensitivity
residual_noise   how a budget is best divided, over residuals (Gaussian noise) or levels that overlap (Laplace noise)
marginal_plan    the levels and shares for a list of marginals, and tables from what was measured
"""

from farthing.matrix.strategies.marginals.marginal_levels import MarginalLevel
from farthing.matrix.strategies.marginals.marginal_plan import MarginalFit, MarginalPlan, plan_marginals

__all__ = ["MarginalFit", "MarginalLevel", "MarginalPlan", "plan_marginals"]
