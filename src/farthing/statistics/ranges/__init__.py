"""Ranges and cdfs of many cells: measured through a strategy, answered by least squares, open to any number of queries.

strategy_transforms         whole-number combinations of cells, and how far one unit moves them
strategy_slots              measurements of such combinations
error_shapes                the distribution of an estimate from very many noises
range_design                from statistics to slots and outputs, with the strategy of the least error
range_outputs, cdf_outputs  the answers, with their errors before and after
cell_conditions, range_queries  questions asked afterwards
strategy_codec              all of it as plain data, and back
"""
