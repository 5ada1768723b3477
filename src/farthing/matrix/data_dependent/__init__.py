"""Strategies that look at the data and pay for it: every step is a release of its own, out of one budget.

step_budget        what a budget is divided into: parts of epsilon, or of the squared mu of Gaussian noise
buckets            neighbouring cells taken together; least squares from measurements of several partitions
dawa               a private partition, then the buckets measured for the workload
bucket_refinement  a coarse look, then narrow buckets where the rows are
strategy_choice    `auto`: cheap looks at the rows decide between the above and the best fixed strategy
"""
