"""What outputs of strategies have in common: they read one slot, that of their strategy."""

from __future__ import annotations

from dataclasses import dataclass

from farthing.release.outputs import Output
from farthing.release.ranging.strategy_slots import StrategySlot


@dataclass(frozen=True, eq=False)
class StrategyOutput(Output):
    """An output that is estimated from the measurements of one strategy."""

    @property
    def slot(self) -> StrategySlot:
        """The one it reads."""
        (slot,) = self.slots
        assert isinstance(slot, StrategySlot)
        return slot
