"""The composed privacy loss of a multiset of charges, in the forms that engines ask for.

Everything is made when first asked for and then kept; nothing is ever changed.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from farthing.accounting.charges import Charges, Chunk, Kinds, Leaks, collect_leaks, joined, sort_events
from farthing.accounting.lattice import Lattice, recognise
from farthing.accounting.loss_transforms import Array, Transform
from farthing.accounting.sketch import Sketch


class ComposedLoss:
    """Charges sorted by kind, with their transform, sketch, lattice and leaks.

    `off_lattice` says that a part of the charges is known to share no lattice, so the whole shares none; `calm` that
    their transform is known not to come back far up the line, which more charges can only make truer.
    """

    def __init__(
        self, charges: Charges, sketch: Sketch | None = None, off_lattice: bool = False, calm: bool = False
    ) -> None:
        self.charges = charges
        self.calm = calm
        self._sketch = sketch
        self._off_lattice = off_lattice

    @cached_property
    def kinds(self) -> Kinds:
        """Events other than (epsilon, delta) pairs."""
        return sort_events(self.charges.events, alone=self.charges.k == 1)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Everything that is randomized response to the accountant."""
        geometric = self.kinds.geometric
        return (*self.charges.chunks, geometric) if len(geometric) else self.charges.chunks

    @property
    def exact(self) -> bool:
        """Whether the epsilons are doubles as given, and not rounded quotients."""
        return not len(self.kinds.geometric)

    @cached_property
    def leaks(self) -> Leaks:
        """The positive deltas."""
        return collect_leaks(self.charges.chunks)

    @cached_property
    def transform(self) -> Transform:
        """The transform over distinct epsilons, for proofs."""
        chunk = joined(self.chunks)
        epsilons, inverse = np.unique(chunk.epsilons, return_inverse=True)
        counts = np.bincount(inverse, chunk.counts.astype(np.float64), len(epsilons)).astype(np.float64)
        positive = epsilons > 0
        return self._transform(epsilons[positive], counts[positive])

    @cached_property
    def sketch(self) -> Sketch:
        """The sketch of the epsilons, for estimates."""
        if self._sketch is not None:
            return self._sketch
        sketch = Sketch()
        for chunk in self.chunks:
            positive = chunk.epsilons > 0
            if positive.all():
                sketch = sketch.plus(chunk.epsilons, chunk.counts)
            else:
                sketch = sketch.plus(chunk.epsilons[positive], chunk.counts[positive])
        return sketch

    @cached_property
    def sketch_transform(self) -> Transform:
        """The transform over the sketch's nodes, for estimates of large multisets."""
        return self._transform(*self.sketch.nodes())

    def _transform(self, epsilons: Array, weights: Array) -> Transform:
        kinds = self.kinds
        gaussian = math.fsum(n / m / m for m, n in kinds.gaussian)
        return Transform(
            epsilons,
            weights,
            kinds.laplace,
            kinds.laplace_counts,
            gaussian,
            kinds.ranges,
            kinds.range_counts,
            kinds.stepped,
        )

    @property
    def distinct(self) -> int:
        """How many distinct positive epsilons there are."""
        return len(self.transform.epsilons)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice shared by all epsilons, if there is one and nothing else takes part."""
        kinds = self.kinds
        if self._off_lattice or kinds.grid or not self.transform.only_responses:
            return None
        return recognise(self.transform.epsilons)

    @cached_property
    def quick_lattice(self) -> Lattice | None:
        """The same for estimates: a look at a few epsilons of a large array is enough to say no."""
        if self._off_lattice:
            return None
        for chunk in self.chunks:
            few = chunk.epsilons[:64] if len(chunk) > 4096 else np.zeros(0)
            if few.any() and recognise(few[few > 0]) is None:
                return None
        return self.lattice

    @cached_property
    def cheap_transform(self) -> Transform:
        """The transform to search and to estimate with: the true one where it is small, else the sketch's."""
        return self.sketch_transform if self.sketched else self.transform

    @property
    def sketched(self) -> bool:
        """Whether estimates go through the sketch."""
        return self.charges.k > 4096 and bool(self.chunks) and self.quick_lattice is None

    @cached_property
    def witnesses(self) -> Array:
        """Some hundreds of the epsilons, evenly picked."""
        if not self.chunks:
            return np.zeros(0)
        largest = max(self.chunks, key=len)
        few = largest.epsilons[:: max(1, len(largest) // 400)]
        return few[few > 0]

    @cached_property
    def top(self) -> float:
        """The largest possible loss."""
        return self.transform.top()[0]

    def losses(self, most: int) -> list[float] | None:
        """All losses >= 0 that can occur, when there are at most `most`; None otherwise."""
        transform = self.transform
        if self.kinds.grid or not transform.only_responses:
            return None
        top = self.top
        if self.lattice is not None and top / self.lattice.span < most:
            below = [top - self.lattice.span * j for j in range(int(top / self.lattice.span) + 1)]
        elif self.charges.k <= 6:
            depths = [0.0]
            for e, n in zip(transform.epsilons.tolist(), transform.weights.tolist(), strict=True):
                depths = [depth + 2 * e * j for depth in depths for j in range(int(n) + 1)]
            below = [top - depth for depth in depths]
        else:
            return None
        return sorted({0.0, *(loss for loss in below if loss >= 0)})

    def largest_loss(self, limit: float) -> list[float]:
        """The largest loss if there is one below `limit`, as a list of one or none."""
        return [] if self.kinds.grid or not self.top <= limit else [self.top]

    def merge(self, other: ComposedLoss) -> ComposedLoss:
        """Both together; sketches are added, not rebuilt."""
        sketch = self.sketch.merge(other.sketch) if self._has_sketch else None
        off_lattice = "quick_lattice" in self.__dict__ and self.quick_lattice is None
        return ComposedLoss(self.charges.merge(other.charges), sketch, off_lattice, self.calm)

    @property
    def _has_sketch(self) -> bool:
        return "sketch" in self.__dict__ or self._sketch is not None
