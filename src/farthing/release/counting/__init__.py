"""Counts of every kind from as few cells as they need.

predicates   a condition as and, or, not over atoms that look at one column each where that can be seen
cells        the cells of a column as a statistic reports them
questions    a statistic of the count family as a function from cells of a product to its own cells
pieces       the values of a column that no question tells apart
refinement   the coarsest cells from which several questions can be answered
grouping     which questions share their cells, and which are better measured by themselves
shares       how many rows are expected where, from public knowledge
outputs      the answers, with their errors before and after
"""
