"""Errors of estimates from a strategy that other counts of the same rows say something about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.inference.linked_counts import LinkedEstimate
from farthing.statistics.counts.slot_combination import Combination
from farthing.statistics.measurements import Kind, Noise
from farthing.statistics.ranges.error_shapes import NORMAL, Shape

Floats = NDArray[np.float64]

_MOST_SHAPES = 24


@dataclass(frozen=True, eq=False)
class CombinedErrors:
    """A combination of slots under given noises, seen from one slot of a strategy."""

    combination: Combination
    noises: Mapping[str, Noise]
    name: str
    vectors: Mapping[str, int]
    estimate: LinkedEstimate

    @classmethod
    def of(cls, combination: Combination | None, noises: Mapping[str, Noise], name: str) -> CombinedErrors | None:
        """None where nobody else says anything about the slot's numbers."""
        if combination is None:
            return None
        vectors, estimate = combination.under(noises)
        return cls(combination, noises, name, vectors, estimate) if name in vectors and len(vectors) > 1 else None

    @property
    def vector(self) -> int:
        """The slot's own number among the vectors."""
        return self.vectors[self.name]

    @property
    def moved(self) -> Floats:
        """The covariance of the slot's numbers with the gap of every relation, at noise of variance 1."""
        return self.estimate.linked.moved(self.vector)

    @property
    def _variances(self) -> Floats:
        slots = {slot.name: slot for slot in self.combination.slots}
        return np.array([slots[name].variance(self.noises[name]) for name in self.vectors])

    def variances(self, crossed: Floats, squares: Floats) -> Floats:
        """Of linear functions of the slot's numbers, given what `moved` makes of them and their own squares."""
        return np.asarray(self.estimate.square_weights(self.vector, crossed, squares) @ self._variances)

    def covariances(self, one: Floats, other: Floats, products: Floats) -> Floats:
        """Of pairs of such functions; `products` is what they have in common in the slot's own noise of variance 1."""
        return self.estimate.covariance(self.vector, one, other, products)

    @property
    def correction(self) -> Floats:
        """R, so that a function f has the variance that the slot alone gives it, less |R f|^2."""
        variance = float(self.estimate.variances[self.vector])
        sizes, directions = np.linalg.eigh(self.estimate.inverse)
        factor = np.sqrt(np.maximum(sizes, 0.0))[:, None] * directions.T
        return np.asarray(variance * factor @ self.moved.T)

    @property
    def kind(self) -> Kind:
        """Gaussian where all noises are: then so is every sum of them."""
        return "gaussian" if all(self.noises[name].kind == "gaussian" for name in self.vectors) else "laplace"

    def shape(self, crossed: Floats, squares: Floats, functions: Floats | None) -> Shape:
        """The shapes of the distributions of functions' errors, from up to 24 of them.

        `functions` are these as functions of the slot's numbers; without them its own noise may have any shape.
        """
        if self.kind == "gaussian":
            return NORMAL
        chosen = np.unique(np.linspace(0, len(crossed) - 1, min(_MOST_SHAPES, len(crossed))).astype(int))
        taken = self.estimate.multipliers(self.vector, crossed[chosen])
        parts = self.estimate.square_weights(self.vector, crossed[chosen], squares[chosen]) * self._variances
        shares = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
        single = np.zeros(len(chosen))
        least = np.zeros(len(chosen))
        for name, vector in self.vectors.items():
            if self.noises[name].kind == "gaussian":
                continue
            slot = next(slot for slot in self.combination.slots if slot.name == name)
            own = vector == self.vector
            if own and functions is None:
                single += shares[:, vector] ** 2
                continue
            weights = -self.estimate.linked.spread(vector, taken)
            weights = weights + functions[chosen] if own and functions is not None else weights
            if slot.covariance(self.noises[name].kind) is None:
                squares_here = np.maximum((weights**2).sum(axis=1), 1e-100)
                fourths = (weights**4).sum(axis=1) / squares_here**2
            else:
                fourths = np.array([slot.concentration(each[None, :], self.noises[name].kind) for each in weights])
            single += shares[:, vector] ** 2 * fourths
            least += shares[:, vector] ** 2 * fourths
        return Shape(float(np.clip(least.min(), 0.0, 1.0)), float(np.clip(single.max(), 0.0, 1.0)))
