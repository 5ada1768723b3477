"""The nearest point of several convex sets at once, from the nearest point of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from farthing.errors import InvalidValue
from farthing.inference.terms import Floats

Projection = Callable[[Floats], Floats]


def nearest_in_all(
    values: ArrayLike,
    projections: Sequence[Projection],
    *,
    tolerance: float = 1e-12,
    most_rounds: int = 10_000,
) -> Floats:
    """The point nearest to `values` that lies in every set; each set is given by its own nearest point.

    All projections must measure distance in the same norm.

    Statement:
        Going round the sets, each time adding back what the last projection onto the same set took away, leads to the
        projection onto their intersection. A truth in all of the sets is therefore never further away afterwards.
    Source: Boyle & Dykstra, "A method for finding projections onto the intersection of convex sets in Hilbert
        spaces", Lecture Notes in Statistics 37 (1986) 28-47, Theorem 2.
    Assumes: closed convex sets with a point in common; projections in one norm.
    Direction: stops when a round moves no number by more than `tolerance` of the largest; refused when that does
        not happen within `most_rounds`, as for sets without a common point.
    Checked by: tests/theorems/test_projections_in_norms.py

    >>> from farthing.inference import nearest_increasing, nearest_nonnegative
    >>> nearest_in_all([5.0, -1.0, 2.0], [nearest_increasing, lambda x: nearest_nonnegative(x, total=6.0)])
    array([2., 2., 2.])
    """
    found = np.asarray(values, dtype=float).reshape(-1).copy()
    if not np.all(np.isfinite(found)):
        raise InvalidValue("values", "an array", "must be finite")
    taken = [np.zeros_like(found) for _ in projections]
    for _ in range(most_rounds):
        moved = 0.0
        for place, projection in enumerate(projections):
            asked = found + taken[place]
            nearest = np.asarray(projection(asked), dtype=float).reshape(-1)
            # What a set takes away settles last: while it still changes, the round is not the last one.
            moved = max(moved, float(np.abs(asked - nearest - taken[place]).max(initial=0.0)))
            taken[place] = asked - nearest
            found = nearest
        if moved <= tolerance * max(1.0, float(np.abs(found).max(initial=0.0))):
            return found
    raise InvalidValue(
        "most_rounds", most_rounds, "is not enough for these sets", "see that they have a point in common"
    )
