"""Strategies that look at the data and pay for it: every step is a release of its own, out of one budget.

spending    what a budget is divided into: parts of epsilon, or of the squared mu of Gaussian noise
buckets     neighbouring cells taken together; least squares from measurements of several partitions
settling    cells that are nowhere below zero, near in the norm of the workload
costs       how far the cells of an interval are from all being equal
dawa        a private partition, then the buckets measured for the workload
refinement  a coarse look, then narrow buckets where the rows are
pieces      how far a histogram is from a few even pieces
choice      `auto`: cheap looks at the rows decide between the above and the best fixed strategy
"""
