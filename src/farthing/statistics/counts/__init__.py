"""Counts of every kind from as few cells as they need.

predicates   a condition as and, or, not over atoms that look at one column each where that can be seen
cells        the cells of a column as a statistic reports them
questions    a statistic of the count family as a function from cells of a product to its own cells
pieces       the values of a column that no question tells apart
piece_counts what an engine adds up for them
refinement   the coarsest cells from which several questions can be answered
grouping     which questions share their cells, and which are better measured by themselves
distributions         distributions of error that are found once and scaled
shares       how many rows are expected where, from public knowledge
combination  counts that were measured more than once, by least squares
consistency  counts that are counts: none below zero, totals that agree with their parts
cdf          shares of rows below edges
count_outputs the answers, with their errors before and after
outputs      from statistics to slots and outputs
"""
