"""farthing: differential privacy, accounted to the last farthing."""

__version__ = "0.1.0"
