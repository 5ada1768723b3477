"""Counts of every kind from as few cells as they need.

count_queries      a statistic of the count family as a function from cells of a product to its own cells
cell_partitions    which questions share their cells, and which are better measured by themselves
piece_counts       what an engine adds up for them
expected_shares    how many rows are expected where, from public knowledge
count_outputs      the answers, with their errors before and after; none below zero, totals that agree with their parts
slot_combination   counts that were measured more than once, by least squares
cumulative_shares  shares of rows below edges
count_design       from statistics to slots and outputs
"""
