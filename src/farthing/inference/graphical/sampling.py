"""Rows whose tables are those of the model up to rounding: whole numbers are spread, not drawn."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from farthing.inference.graphical.junction_tree import JunctionTree
from farthing.inference.graphical.propagation import Calibrated
from farthing.inference.terms import Floats

Codes = NDArray[np.int64]

_MOST_EVEN = 2**25  # coordinates, a quarter of a gibibyte


def sampled_rows(tree: JunctionTree, law: Calibrated, count: int, generator: np.random.Generator) -> Codes:
    """`count` rows of codes, in random order.

    From the root down: of the rows that share a value of the separator, each combination of the other columns gets
    its expected number, rounded up or down so that each is right on average. Which of those rows get which is settled
    by points that fill the cube more evenly than random ones, so that tables across cliques are nearly right as well.
    """
    rows = np.zeros((count, len(tree.sizes)), dtype=np.int64)
    points = _even_points(count, len(tree.cliques), generator)
    for place, clique in enumerate(tree.cliques):
        lengths = tree.shape(place)
        shared, own = lengths[: len(clique.separator)], lengths[len(clique.separator) :]
        held = _codes(rows, clique.separator, shared)
        sizes = np.bincount(held, minlength=math.prod(shared))
        counts = spread(law.conditionals[place].reshape(len(sizes), -1), sizes, generator)
        order = np.lexsort((points[:, place], held))
        cells = np.repeat(np.tile(np.arange(counts.shape[1]), len(sizes)), counts.reshape(-1))
        rows[order[:, None], list(clique.residual)] = np.stack(np.unravel_index(cells, own), axis=1)
    return rows[generator.permutation(count)]


def _even_points(count: int, dimensions: int, generator: np.random.Generator) -> Floats:
    """Sobol's points, shifted at random; independent ones where there are so many that they are even enough."""
    if count < 2 or count * dimensions > _MOST_EVEN:
        return generator.random((count, dimensions))
    from scipy.stats.qmc import Sobol

    points = Sobol(dimensions, scramble=False).random_base2((count - 1).bit_length())[:count]
    return np.asarray((points + generator.random(dimensions)) % 1.0)


def spread(laws: Floats, totals: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """For each row of `laws` its total, divided into whole numbers: each is its expectation, rounded up or down.

    >>> spread(np.array([[0.5, 0.25, 0.25]]), np.array([8]), np.random.default_rng(1))
    array([[4, 2, 2]])
    """
    reached = np.cumsum(laws, axis=1)
    reached *= totals[:, None] / np.maximum(reached[:, -1:], np.finfo(float).tiny)
    reached[:, -1] = totals
    # One offset for each law: a cell is rounded up with the probability of its fraction.
    whole = np.floor(np.minimum(reached, totals[:, None]) + generator.random((len(totals), 1))).astype(
        np.int64
    )
    whole = np.minimum(whole, totals[:, None])
    return np.diff(whole, axis=1, prepend=0)


def _codes(rows: Codes, columns: tuple[int, ...], lengths: tuple[int, ...]) -> Codes:
    if not columns:
        return np.zeros(len(rows), dtype=np.int64)
    return np.ravel_multi_index(tuple(rows[:, column] for column in columns), lengths)
