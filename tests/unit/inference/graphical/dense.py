"""Small models with drawn weights, and the whole table that they stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from farthing.inference.graphical import GraphicalModel
from farthing.inference.graphical.elimination import calibrated, placed
from farthing.inference.graphical.junction_tree import junction_tree

SHAPES: dict[str, list[tuple[int, ...]]] = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "circle": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "star": [(2, 0), (2, 1), (2, 3), (2, 4)],
    "two parts": [(0, 3), (1, 4)],
    "triples": [(0, 1, 2), (2, 3, 4)],
    "nothing": [],
}
SIZES = (2, 3, 4, 1, 3)


def drawn_model(shape: str, total: float = 1000.0) -> tuple[GraphicalModel, NDArray[np.float64]]:
    """A model whose cliques have drawn potentials, and the same by multiplying everything out."""
    draw = np.random.default_rng(len(shape))
    tree = junction_tree(SIZES, SHAPES[shape])
    potentials = [3.0 * draw.normal(size=tree.shape(place)) for place in range(len(tree.cliques))]
    logarithm = np.zeros(SIZES)
    for clique, table in zip(tree.cliques, potentials, strict=True):
        logarithm = logarithm + placed(table, clique.columns, tuple(range(len(SIZES))))
    whole = np.exp(logarithm)
    model = GraphicalModel(tree, total, calibrated(tree, potentials), {}, 0.0, 0.0)
    return model, total * whole / whole.sum()
