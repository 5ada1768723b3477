"""A sketch of a multiset of epsilons that adds: constant size, constant-time updates, mergeable.

The transform needs only sums of analytic functions over the epsilons. Within one octave [2^m, 2^(m+1)] such a sum
is reproduced, to double precision, by `_NODES` Chebyshev points with real weights: the weights are the sums of the
Lagrange basis over the epsilons, and sums add. Octaves with few epsilons are kept as they are.

The nearest singularity of log cosh((z + 1/2) e) lies at |(z + 1/2) e| = pi / 2; seen from an octave its Bernstein
ellipse has radius at least 5.8 on the real axis, so the interpolation error is below 6^-_NODES. Far up the line
(t e near pi / 2) the sketch is not valid, and the estimate stops before (`contour.sketched_line`); with the many
epsilons of a sketched octave the integrand is negligible there, which the estimate checks.
Only estimates use the sketch; proofs go back to the epsilons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from farthing.accounting.loss_transforms import Array

_NODES = 20
_DENSE = 2048  # epsilons in an octave from which on it is sketched
_INDEX = np.arange(_NODES)
_ANGLES = (_INDEX + 0.5) * np.pi / _NODES
_POINTS = np.cos(_ANGLES)
# Row j: the Lagrange basis polynomial of node j, in Chebyshev polynomials.
_BASIS = np.cos(np.outer(_ANGLES, _INDEX)) * np.where(_INDEX == 0, 1, 2) / _NODES


@dataclass(frozen=True, eq=False)
class Sketch:
    """Chebyshev moments by octave, and the epsilons of sparse octaves as they are."""

    moments: Mapping[int, Array] = field(default_factory=dict)
    epsilons: Array = field(default_factory=lambda: np.zeros(0))
    counts: Array = field(default_factory=lambda: np.zeros(0))

    def plus(self, epsilons: Array, counts: NDArray[np.int64]) -> Sketch:
        """The sketch of the larger multiset; `epsilons` are positive."""
        if len(epsilons) < _DENSE:
            return self._with_sparse(epsilons, counts.astype(np.float64))
        mantissa, octave = np.frexp(epsilons)
        first = int(octave.min())
        sizes = np.bincount(octave - first)
        dense = np.flatnonzero(sizes >= _DENSE) + first
        if len(dense) == 0:
            return self._with_sparse(epsilons, counts.astype(np.float64))
        weights = None if counts.max() == 1 else counts.astype(np.float64)
        table = np.zeros((_NODES, len(sizes)))
        _accumulate(table, 4 * mantissa - 3, octave - first, weights)
        moments = dict(self.moments)
        for key in dense.tolist():
            moments[key] = moments[key] + table[:, key - first] if key in moments else table[:, key - first]
        result = Sketch(moments, self.epsilons, self.counts)
        if len(dense) == np.count_nonzero(sizes):
            return result
        sparse = sizes[octave - first] < _DENSE
        return result._with_sparse(epsilons[sparse], counts[sparse].astype(np.float64))

    def merge(self, other: Sketch) -> Sketch:
        """The sketch of both multisets together."""
        moments = dict(self.moments)
        for key, values in other.moments.items():
            moments[key] = moments[key] + values if key in moments else values
        return Sketch(moments, self.epsilons, self.counts)._with_sparse(other.epsilons, other.counts)

    def _with_sparse(self, epsilons: Array, counts: Array) -> Sketch:
        """Keep a few more epsilons as they are, unless that makes their octave dense."""
        if not len(epsilons):
            return self
        mine, numbers = np.concatenate([self.epsilons, epsilons]), np.concatenate([self.counts, counts])
        moments = dict(self.moments)
        _, octave = np.frexp(mine)
        into = np.zeros(len(mine), dtype=bool)
        for key in sorted(set(octave.tolist())):
            here = octave == key
            if key in moments or np.count_nonzero(here) >= _DENSE:
                table = np.zeros((_NODES, 1))
                place = np.zeros(int(np.count_nonzero(here)), dtype=np.int64)
                _accumulate(table, 4 * np.frexp(mine[here])[0] - 3, place, numbers[here])
                moments[key] = moments.get(key, 0.0) + table[:, 0]
                into |= here
        return Sketch(moments, mine[~into], numbers[~into])

    def nodes(self) -> tuple[Array, Array]:
        """Epsilons and real weights that stand for the whole multiset."""
        epsilons, weights = [self.epsilons], [self.counts]
        for key, values in self.moments.items():
            epsilons.append(np.ldexp((_POINTS + 3) / 4, key))
            weights.append(_BASIS @ values)
        return np.concatenate(epsilons), np.concatenate(weights)

    def dense_octaves(self) -> list[tuple[float, float]]:
        """(largest epsilon, number of epsilons) of each sketched octave."""
        return [(2.0**key, float(values[0])) for key, values in self.moments.items()]


def _accumulate(table: Array, x: Array, octave: NDArray[np.int64], weights: Array | None) -> None:
    """table[j, o] += sum of weight * T_j(x) over the entries of octave o, by the three-term recurrence."""
    size = table.shape[1]
    chunk = 1 << 14
    for start in range(0, len(x), chunk):
        part = slice(start, start + chunk)
        here, place = x[part], octave[part]
        older, old = np.ones_like(here), here.copy()
        if weights is not None:
            older, old = older * weights[part], old * weights[part]
        table[0] += np.bincount(place, older, size)
        table[1] += np.bincount(place, old, size)
        twice = 2 * here
        for j in range(2, _NODES):
            older, old = old, twice * old - older
            table[j] += np.bincount(place, old, size)
