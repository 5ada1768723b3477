"""Graphical models: one distribution over many columns from noisy tables over few of them. Post-processing.

junction_tree    which columns stand in one table, and how many cells that makes
elimination      from weights to probabilities, up and down the tree; the tables of any columns
noisy_tables     noisy tables, and where their cells lie in the tree
model_fit        the distribution of greatest entropy nearest to the noisy tables
graphical_model  all of it in one object, and rows drawn from it
"""

from farthing.inference.graphical.graphical_model import GraphicalModel
from farthing.inference.graphical.junction_tree import model_cells
from farthing.inference.graphical.model_fit import fit_graphical
from farthing.inference.graphical.noisy_tables import Measured

__all__ = ["GraphicalModel", "Measured", "fit_graphical", "model_cells"]
