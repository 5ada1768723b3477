"""Marginals of many columns, measured so that all of them are as exact as the budget allows.

levels      what is measured of one set of columns: whole numbers of known sensitivity
optimum     how a budget is best divided over the residuals (Gaussian noise)
shares      how a budget is best divided over levels that overlap (Laplace noise)
plan        the levels and shares for a list of marginals; never needs a table over all columns
fit         tables from measurements, and the variance of every cell and of any sum of cells
"""

from farthing.matrix.strategies.marginals.marginal_levels import MarginalLevel
from farthing.matrix.strategies.marginals.marginal_plan import MarginalFit, MarginalPlan, plan_marginals

__all__ = ["MarginalFit", "MarginalLevel", "MarginalPlan", "plan_marginals"]
