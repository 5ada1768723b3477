"""The matrix mechanism: many queries of one histogram, measured through a strategy and answered together.

workloads          what is asked: ranges, marginals, products, any matrix
strategies         what is measured instead: trees, wavelets, marginals, optimised matrices
data_dependent     strategies that look at the data, and pay for it
workload_answers   answer_workload: an array in, answers with their errors out
"""

from farthing.matrix import workloads
from farthing.matrix.workload_answers import WorkloadAnswers, answer_workload

__all__ = ["WorkloadAnswers", "answer_workload", "workloads"]
