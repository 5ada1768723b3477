"""From log potentials on the cliques to probabilities: one pass up the tree, one pass down.

Up: each clique is normalised, for each value of its separator, to the law of its other columns given the separator; the
logarithm of what was divided out is the message to the parent. Down: those laws are multiplied by the probabilities of
the separators. One exponential per cell, nothing overflows, and neighbours agree up to rounding because the child's
table is made from the parent's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.marginals import Subset
from farthing.inference.terms import Floats


@dataclass(frozen=True)
class Calibrated:
    """The laws of all cliques, as tables over the clique's columns in its own order."""

    conditionals: tuple[Floats, ...]  # residual given separator
    marginals: tuple[Floats, ...]
    log_partition: float


def calibrated(tree: JunctionTree, potentials: list[Floats]) -> Calibrated:
    """The distribution that is proportional to exp(the sum of all potentials). The potentials are overwritten.

    >>> from farthing.inference.graphical.junction_tree import junction_tree
    >>> tree = junction_tree((2, 2, 2), [(0, 1), (1, 2)])
    >>> found = calibrated(tree, [np.log([[1.0, 2.0], [3.0, 4.0]]), np.log([[1.0, 3.0], [2.0, 2.0]])])
    >>> found.marginals[1], round(float(np.exp(found.log_partition)), 9)
    (array([[0.1, 0.3],
           [0.3, 0.3]]), 40.0)
    """
    above = list(potentials)
    conditionals: list[Floats] = [np.empty(0)] * len(above)
    log_partition = 0.0
    for place in range(len(above) - 1, -1, -1):
        clique = tree.cliques[place]
        lengths = tree.shape(place)
        shared = lengths[: len(clique.separator)]
        table = above[place].reshape(math.prod(shared), -1)
        top = table.max(axis=1, keepdims=True)
        table -= top
        np.exp(table, out=table)
        whole = table.sum(axis=1, keepdims=True)
        table /= whole
        conditionals[place] = table.reshape(lengths)
        message = (top + np.log(whole)).reshape(shared)
        if clique.parent < 0 or not clique.separator:
            log_partition += float(message)
        else:
            columns = tree.cliques[clique.parent].columns
            above[clique.parent] += placed(message, clique.separator, columns)
    marginals: list[Floats] = []
    for place, clique in enumerate(tree.cliques):
        law = conditionals[place]
        if clique.separator:
            shared_law = onto(marginals[clique.parent], tree.cliques[clique.parent].columns, clique.separator)
            law = law * shared_law.reshape(shared_law.shape + (1,) * len(clique.residual))
        marginals.append(law)
    return Calibrated(tuple(conditionals), tuple(marginals), log_partition)


def lowest_sum(tree: JunctionTree, potentials: list[Floats]) -> float:
    """The least sum of all potentials over all combinations of values of all columns."""
    above = list(potentials)
    least = 0.0
    for place in range(len(above) - 1, -1, -1):
        clique = tree.cliques[place]
        shared = tree.shape(place)[: len(clique.separator)]
        message = above[place].reshape(math.prod(shared), -1).min(axis=1).reshape(shared)
        if clique.separator:
            columns = tree.cliques[clique.parent].columns
            above[clique.parent] = above[clique.parent] + placed(message, clique.separator, columns)
        else:
            least += float(message)
    return least


def placed(table: Floats, columns: Subset, among: Subset) -> Floats:
    """A table over `columns` as one that can be added to or multiplied with a table over `among`."""
    order = sorted(range(len(columns)), key=lambda axis: among.index(columns[axis]))
    lengths = dict(zip(columns, table.shape, strict=True))
    return table.transpose(order).reshape([lengths.get(column, 1) for column in among])


def onto(table: Floats, columns: Subset, wanted: Subset) -> Floats:
    """A table over `columns` summed to one over `wanted`, its axes in that order."""
    away = tuple(axis for axis, column in enumerate(columns) if column not in wanted)
    kept = [column for column in columns if column in wanted]
    summed = table.sum(axis=away) if away else table
    return np.asarray(summed.transpose([kept.index(column) for column in wanted]))
