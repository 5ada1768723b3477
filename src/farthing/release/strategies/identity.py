"""Every cell by itself: the strategy that everything else must beat."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.errors import InvalidValue
from farthing.release.strategies.trees import TreeStrategy


@dataclass(frozen=True)
class IdentityStrategy(TreeStrategy):
    """A tree of one level over a domain of any shape.

    >>> strategy = cells_alone((3, 4))
    >>> strategy.shape, strategy.levels
    ((3, 4), (Level(name='cells', size=12, l1=1, l2_squared=1),))
    """

    domain: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the domain."""
        return self.domain


def cells_alone(shape: tuple[int, ...]) -> IdentityStrategy:
    """The identity over a domain; refused where nobody could count the cells one by one.

    >>> cells_alone((10,) * 30)
    Traceback (most recent call last):
    farthing.errors.InvalidValue: strategy='identity': has too many cells to measure each (at most 2^40).
    """
    size = math.prod(shape)
    if not size <= 2**40:
        raise InvalidValue("strategy", "identity", "has too many cells to measure each (at most 2^40)")
    return IdentityStrategy("identity", size, (1,), shape)
