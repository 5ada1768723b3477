"""What is measured so that a workload can be answered: the strategies of the matrix mechanism.

strategy, matrix_strategy, kronecker  a strategy, its levels and estimator; one given by a matrix; products of them
workload_energies, nested_blocks  what the error of a tree depends on; estimators level by level
tree_strategies, wavelet, fourier  identity, trees of blocks, Haar's wavelet, Hadamard coefficients
marginals, marginal_strategy  tables of every few columns
optimisation, strategy_cache  strategies of least error, found once and kept on disk
strategy_noise, strategy_registry  the noise that a budget buys; strategies by name
"""

from farthing.matrix.strategies.matrix_strategy import MatrixStrategy
from farthing.matrix.strategies.strategy import Estimator, Level, Norm, Strategy
from farthing.matrix.strategies.tree_strategies import TreeStrategy
from farthing.matrix.strategies.wavelet import WaveletStrategy

__all__ = ["Estimator", "Level", "MatrixStrategy", "Norm", "Strategy", "TreeStrategy", "WaveletStrategy"]
