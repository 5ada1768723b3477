"""What is measured so that a workload can be answered: the strategies of the matrix mechanism.

base, matrix, kronecker      a strategy, its levels and its estimator; one given by a matrix; products over axes
energies, division, blocks   what the error of a tree depends on, and its best levels
identity, trees, hierarchical, weighted_tree, wavelet
pricing, registry            the noise that a budget buys; strategies by name
"""

from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.strategy import Estimator, Level, Norm, Strategy
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.strategies.wavelet import WaveletStrategy

__all__ = ["Estimator", "Level", "MatrixStrategy", "Norm", "Strategy", "TreeStrategy", "WaveletStrategy"]
