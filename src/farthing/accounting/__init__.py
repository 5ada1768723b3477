"""What a list of events costs together: composition, theorems, filters, calibration."""

from farthing.accounting.compose import Composition, compose
from farthing.accounting.curves import Region, TradeoffFunction
from farthing.accounting.pricing import EngineChoice

__all__ = ["Composition", "EngineChoice", "Region", "TradeoffFunction", "compose"]
