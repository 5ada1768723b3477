"""The cells of columns, and conditions on them: what counts, ranges, marginals and query sessions ask about.

statistic_cells   the cells of one column as a statistic reports them: its values, or the ranges between edges
predicates        conditions as and, or, not over atoms, three-valued
column_pieces     the pieces of a column that the questions about it tell apart
cell_axes         the public names of the cells along one column, and which of them a condition holds for
cell_queries      a condition, a pair or a mapping of columns as one number for each cell
"""

from farthing.matrix.workloads.condition_language import use_language
from farthing.statistics.cells.cell_queries import CellConditions

__all__ = ["CellConditions"]

use_language(CellConditions())  # workloads know no expressions, and are asked in these conditions all the same
