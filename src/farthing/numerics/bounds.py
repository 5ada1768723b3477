"""An enclosure of a number that cannot be computed exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

from farthing.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Bounds:
    """`lower <= truth <= upper`, floating-point error included when `proven`.

    `float(bounds)` is `upper`, because that is what gets charged. `estimate` is the best single value inside;
    it is for pictures and comparisons, never for charging.

    >>> b = Bounds(1.0, 1.5)
    >>> float(b), b.width, b.estimate, b.proven
    (1.5, 0.5, 1.25, True)
    >>> 1.2 in b
    True
    >>> Bounds(2.0, 1.0)
    Traceback (most recent call last):
        ...
    farthing.errors.InvalidValue: upper=1.0: must be at least lower=2.0.
    """

    lower: float
    upper: float
    estimate: float = math.nan
    proven: bool = True

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # written so that NaN fails
            raise InvalidValue("upper", self.upper, f"must be at least lower={self.lower!r}")
        value = self.estimate
        if math.isnan(value):
            # The difference, not the sum, so that two large bounds cannot overflow on the way to their middle.
            value = self.upper if math.isinf(self.upper) else self.lower + (self.upper - self.lower) / 2
        object.__setattr__(self, "estimate", min(max(value, self.lower), self.upper))

    def __float__(self) -> float:
        return float(self.upper)

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """`upper - lower`; 0 when both are the same infinity."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def __str__(self) -> str:
        word = "proven" if self.proven else "estimated"
        return f"{self.estimate:.9g} ({word} in [{self.lower:.12g}, {self.upper:.12g}])"
