"""Graphical models: one distribution over many columns from noisy tables over few of them. Post-processing.

junction_tree   which columns stand in one table, and how many cells that makes
propagation     from weights to probabilities, up and down the tree
measured        noisy tables, and where their cells lie in the tree
descent         a quasi-Newton method for convex functions
fitting         the distribution nearest to the noisy tables, of greatest entropy
elimination     the tables of any columns
sampling        rows whose tables are those of the model up to rounding
model           all of it in one object
"""

from farthing.inference.graphical.graphical_model import GraphicalModel
from farthing.inference.graphical.junction_tree import model_cells
from farthing.inference.graphical.model_fit import fit_graphical
from farthing.inference.graphical.noisy_tables import Measured

__all__ = ["GraphicalModel", "Measured", "fit_graphical", "model_cells"]
