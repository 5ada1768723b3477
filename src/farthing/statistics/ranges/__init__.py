"""Ranges, cdfs of many cells and marginals: measured through a strategy, answered by least squares, asked for ever.

transforms         whole-number combinations of cells, and how far one unit moves them
strategy_slots     measurements of such combinations
choosing           the strategy of the least error for a statistic
shapes             the distribution of an estimate from very many noises
strategy_outputs, range_outputs, cdf_outputs   the answers, with their errors before and after
marginal_cells, marginal_transforms, marginal_outputs   the same for marginals
conditions, asking, marginal_asking     questions asked afterwards
axes, labels, stored_strategies, restoring    all of it as plain data, and back
outputs            from statistics to slots and outputs
"""
