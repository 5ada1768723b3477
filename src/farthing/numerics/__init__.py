"""Numbers that carry their error: enclosures, directed rounding, one-sided search."""

from farthing.numerics.bounds import Bounds

__all__ = ["Bounds"]
