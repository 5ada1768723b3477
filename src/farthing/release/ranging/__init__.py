"""Ranges, cdfs of many cells and marginals: measured through a strategy, answered by least squares, asked for ever.

transforms         whole-number combinations of cells, and how far one unit moves them
strategy_slots     measurements of such combinations
choosing           the strategy of the least error for a statistic
shapes             the law of an estimate from very many noises
range_outputs, cdf_outputs   the answers, with their errors before and after
conditions, asking           questions asked afterwards
axes, stored_strategies      the same as plain data
outputs            from statistics to slots and outputs
"""
