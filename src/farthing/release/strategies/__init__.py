"""What is measured so that a workload can be answered: the strategies of the matrix mechanism.

base        a strategy, its levels, and the least-squares estimator that belongs to it
"""

from farthing.release.strategies.base import Estimator, Level, Norm, Strategy
from farthing.release.strategies.matrix import MatrixStrategy

__all__ = ["Estimator", "Level", "MatrixStrategy", "Norm", "Strategy"]
