"""Every cell by itself: the strategy that everything else must beat."""

from __future__ import annotations

from dataclasses import dataclass

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
    """The identity over a domain."""
    size = 1
    for axis in shape:
        size *= axis
    return IdentityStrategy("identity", size, (1,), shape)
